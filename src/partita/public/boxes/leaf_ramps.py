"""Leaves of a solved tree of boxes that are not even inside: cut into pieces on ramps.

A tree stops where it sees too few rows to look further, and its leaves can be wide. How the counts of their
surroundings differ from side to side says on which side of a leaf rows are likelier to lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np

from partita.arrays import Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.public.boxes.cover import NodeSurroundings
from partita.public.boxes.density import BoxDensity, Measure, NodeCounts
from partita.public.boxes.plan import BoxNodes, Corners

Rows = TypeVar("Rows", UInts, Floats)

# A leaf gets a ramp if its halves along some axis differ by more than so many times the noise.
_NOTICED: Final = 2.0
_SOFTENING: Final = 1e-3  # no side counts as emptier than this share of the leaf's own fullness
_WHOLE: Final = 63  # bits of a piece that no stretch is wider than


class LeafPieces(NamedTuple):
    """Leaves that are cut, their pieces leaf after leaf, and how many each leaf has."""

    leaves: Ints
    lows: Corners
    highs: Corners
    held: NodeCounts
    sizes: Ints

    def as_tree(self, measures: Sequence[Measure]) -> BoxDensity:
        """The pieces alone, below a root that holds all of them."""
        lows = np.concatenate([self.lows.min(axis=0, keepdims=True), self.lows])
        highs = np.concatenate([self.highs.max(axis=0, keepdims=True), self.highs])
        children = np.zeros(len(lows), np.int64)
        children[0] = len(lows) - 1
        nodes = BoxNodes(np.array([1, len(lows) - 1]), lows, highs, np.ones(len(lows), np.int64), children)
        held = NodeCounts(*(np.concatenate([[each.sum()], each]) for each in self.held))
        return BoxDensity(nodes, tuple(measures), held)


def cut_leaves(density: BoxDensity, leaves: Ints, axes: tuple[Axis, ...], *, noise: float) -> LeafPieces:
    """Pieces of those of some leaves that are no longer even inside, because their neighbours differ.

    Along an axis with b below and a above a leaf, the leaf's density is that of a ramp from 1 - g to
    1 + g with g = tanh(ln(a/b) / 4): the middle of the three if they grow by equal factors. Axes are
    taken to be independent. The counts of the leaves themselves stay as they are. A leaf is cut into up to
    four pieces along every axis, where a tree would cut it: stretches of nodes stay nested or apart.
    """
    leaves = leaves[density.held.values[leaves] > _NOTICED * noise]
    around, own, columns = NodeSurroundings(density, axes, leaves), density.held.values[leaves], []
    for axis in range(len(axes)):
        below, above = (side + _SOFTENING * own for side in around.beside(axis))
        columns.append(np.tanh(np.log(above / below) / 4))
    slopes = np.stack(columns, axis=1)  # g for every leaf, a column for each axis
    noticed = own * np.abs(slopes).max(axis=1) > _NOTICED * noise
    return _ramp_pieces(density, leaves[noticed], slopes[noticed])


class _Level(NamedTuple):
    """Nodes of one level: which old nodes they are (-1 for a piece), which pieces (-1 for old nodes)."""

    old: Ints
    piece: Ints


def expand_leaves(density: BoxDensity, pieces: LeafPieces) -> BoxDensity:
    """The tree in which leaves that were cut are expanded into their pieces."""
    if not pieces.leaves.size:
        return density
    nodes = density.nodes
    first_piece = np.full(nodes.children.size, -1)
    first_piece[pieces.leaves] = np.cumsum(pieces.sizes) - pieces.sizes
    children = nodes.children.copy()
    children[pieces.leaves] = pieces.sizes
    levels = [_Level(np.zeros(1, np.int64), np.full(1, -1))]
    while levels[-1].old.size:
        levels.append(_next_level(nodes, children, first_piece, levels[-1]))
    return _join_pieces(density, pieces, children, levels[:-1])


def _next_level(nodes: BoxNodes, children: Ints, first_piece: Ints, level: _Level) -> _Level:
    """The children of a level, old ones and pieces, in the order of their parents."""
    parents = level.old[level.old >= 0]
    parents = parents[children[parents] > 0]
    sizes = children[parents]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    fresh = np.repeat(first_piece[parents] >= 0, sizes)
    old = np.where(fresh, -1, np.repeat(nodes.starts[parents], sizes) + within)
    return _Level(old, np.where(fresh, np.repeat(first_piece[parents], sizes) + within, -1))


def _join_pieces(
    density: BoxDensity, pieces: LeafPieces, children: Ints, levels: Sequence[_Level]
) -> BoxDensity:
    old = np.concatenate([level.old for level in levels])
    piece = np.concatenate([level.piece for level in levels])
    counts = np.where(old >= 0, children[old], 0)
    nodes = BoxNodes(
        levels=np.array([level.old.size for level in levels]),
        lows=_either(old, density.nodes.lows, piece, pieces.lows),
        highs=_either(old, density.nodes.highs, piece, pieces.highs),
        starts=1 + np.cumsum(counts) - counts,
        children=counts,
    )
    counts_of = zip(density.held, pieces.held, strict=True)
    held = NodeCounts(*(_either(old, ours, piece, fresh) for ours, fresh in counts_of))
    return BoxDensity(nodes, density.measures, held)


def _either(old: Ints, ours: Rows, piece: Ints, fresh: Rows) -> Rows:
    """Rows of old nodes where there is one, and rows of pieces elsewhere."""
    rows = ours[old]
    rows[old < 0] = fresh[piece[old < 0]]
    return rows


def _ramp_pieces(density: BoxDensity, leaves: Ints, slopes: Floats) -> LeafPieces:
    """Each leaf cut along every axis as trees are, with its count shared out by the ramps."""
    lows, highs = density.nodes.corners(leaves)
    shifts = _piece_bits(highs - lows)
    # Along an axis with a measure leaves stay whole: the measure says how rows are spread there.
    shifts[:, [measure is not None for measure in density.measures]] = _WHOLE
    counts = ((highs - lows) >> shifts).astype(np.int64) + 1
    sizes = counts.prod(axis=1)
    leaf = np.repeat(np.arange(leaves.size), sizes)
    at = np.arange(leaf.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    corners, share = (lows[leaf], highs[leaf]), np.ones(leaf.size)
    for axis in reversed(range(counts.shape[1])):
        at, piece = np.divmod(at, counts[leaf, axis])
        low, high, shift = lows[leaf, axis], highs[leaf, axis], shifts[leaf, axis]
        first = low + (piece.astype(np.uint64) << shift)
        last = first + np.minimum(high - first, (np.uint64(1) << shift) - np.uint64(1))
        width = (high - low).astype(np.float64) + 1.0
        begin, behind = (first - low) / width, ((last - low).astype(np.float64) + 1.0) / width
        share *= (behind - begin) * (1.0 + slopes[leaf, axis] * (begin + behind - 1.0))
        corners[0][:, axis], corners[1][:, axis] = first, last
    values = density.held.values[leaves][leaf] * share / np.bincount(leaf, share)[leaf]
    variances = density.held.variances[leaves][leaf] * share**2
    return LeafPieces(leaves, *corners, NodeCounts(values, variances, values**2), sizes)


def _piece_bits(spans: UInts) -> UInts:
    """Pieces of 2^shift positions are the largest of which a stretch has between two and four, or one."""
    bits = np.zeros(spans.shape, np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        wide = spans >> bits >> np.uint64(step) > 0
        bits = np.where(wide, bits + np.uint64(step), bits)
    return np.where(bits > 0, bits - np.uint64(1), bits)
