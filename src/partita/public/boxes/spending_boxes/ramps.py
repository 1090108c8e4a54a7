"""Leaves that rise or fall from one side to the other, as the cells beside them say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar, final

import numpy as np

from partita.domain.axis import Axis
from partita.public.axis.curve.curve import Floats, Ints, UInts
from partita.public.boxes.cover.surroundings import Surroundings
from partita.public.boxes.density.density import Density, Held
from partita.public.boxes.plan.nodes import BoxNodes, Corners

Rows = TypeVar("Rows", UInts, Floats)

_NOTICED: Final = 2.0
"""A leaf is cut if some axis moves more than so many times the noise from one half to the other."""

_SOFTENING: Final = 1e-3
"""A side never counts as emptier than this share of the leaf's own fullness."""


def ramped(density: Density, axes: tuple[Axis, ...], *, noise: float) -> Density:
    """The same counts of all nodes, with leaves no longer even inside where their neighbours differ.

    Along an axis with b below and a above a leaf, the leaf's density is that of a ramp from 1 - g to
    1 + g with g = tanh(ln(a/b) / 4): the middle of the three if they grow by equal factors. Axes are
    taken to be independent. The counts of the leaves themselves stay as they are. A leaf is cut into up to
    four pieces along every axis, where a tree would cut it: stretches of nodes stay nested or apart.
    """
    leaves = np.flatnonzero(density.nodes.leaves & (density.held.values > _NOTICED * noise))
    if not leaves.size:
        return density
    slopes = _slopes(density, axes, leaves)
    noticed = density.held.values[leaves] * np.abs(slopes).max(axis=1) > _NOTICED * noise
    return _cut(density, leaves[noticed], slopes[noticed])


def _slopes(density: Density, axes: tuple[Axis, ...], leaves: Ints) -> Floats:
    """g for every leaf, a column for each axis."""
    around, own = Surroundings(density, axes, leaves), density.held.values[leaves]
    columns = []
    for axis in range(len(axes)):
        below, above = (side + _SOFTENING * own for side in around.beside(axis))
        columns.append(np.tanh(np.log(above / below) / 4))
    return np.stack(columns, axis=1)


@final
@dataclass(frozen=True, eq=False)
class _Pieces:
    """The pieces of leaves that are cut, leaf after leaf, and how many each leaf has."""

    lows: Corners
    highs: Corners
    held: Held
    sizes: Ints


class _Level(NamedTuple):
    """Nodes of one level: which old nodes they are (-1 for a piece), which pieces (-1 for old nodes)."""

    old: Ints
    piece: Ints


def _cut(density: Density, leaves: Ints, slopes: Floats) -> Density:
    if not leaves.size:
        return density
    nodes, pieces = density.nodes, _pieces(density, leaves, slopes)
    first_piece = np.full(nodes.children.size, -1)
    first_piece[leaves] = np.cumsum(pieces.sizes) - pieces.sizes
    children = nodes.children.copy()
    children[leaves] = pieces.sizes
    levels = [_Level(np.zeros(1, np.int64), np.full(1, -1))]
    while levels[-1].old.size:
        levels.append(_below(nodes, children, first_piece, levels[-1]))
    return _joined(density, pieces, children, levels[:-1])


def _below(nodes: BoxNodes, children: Ints, first_piece: Ints, level: _Level) -> _Level:
    """The children of a level, old ones and pieces, in the order of their parents."""
    parents = level.old[level.old >= 0]
    parents = parents[children[parents] > 0]
    sizes = children[parents]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    fresh = np.repeat(first_piece[parents] >= 0, sizes)
    old = np.where(fresh, -1, np.repeat(nodes.starts[parents], sizes) + within)
    return _Level(old, np.where(fresh, np.repeat(first_piece[parents], sizes) + within, -1))


def _joined(density: Density, pieces: _Pieces, children: Ints, levels: Sequence[_Level]) -> Density:
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
    held = Held(
        *(_either(old, ours, piece, fresh) for ours, fresh in zip(density.held, pieces.held, strict=True))
    )
    return Density(nodes, density.measures, held)


def _either(old: Ints, ours: Rows, piece: Ints, fresh: Rows) -> Rows:
    """Rows of old nodes where there is one, and rows of pieces elsewhere."""
    rows = ours[old]
    rows[old < 0] = fresh[piece[old < 0]]
    return rows


def _pieces(density: Density, leaves: Ints, slopes: Floats) -> _Pieces:
    """Each leaf cut along every axis as trees are, with its count shared out by the ramps."""
    lows, highs = density.nodes.corners(leaves)
    shifts = _shifts(highs - lows)
    counts = ((highs - lows) >> shifts).astype(np.int64) + 1
    sizes = counts.prod(axis=1)
    leaf = np.repeat(np.arange(leaves.size), sizes)
    at = np.arange(leaf.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    corners, share = (lows[leaf], highs[leaf]), np.ones(leaf.size)
    for axis in reversed(range(counts.shape[1])):
        at, piece = np.divmod(at, counts[leaf, axis])
        first, last = _cut_out(lows[leaf, axis], highs[leaf, axis], shifts[leaf, axis], piece)
        share *= _weight(lows[leaf, axis], highs[leaf, axis], first, last, slopes[leaf, axis])
        corners[0][:, axis], corners[1][:, axis] = first, last
    values = density.held.values[leaves][leaf] * share / np.bincount(leaf, share)[leaf]
    variances = density.held.variances[leaves][leaf] * share**2
    return _Pieces(*corners, Held(values, variances, values**2), sizes)


def _shifts(spans: UInts) -> UInts:
    """Pieces of 2^shift positions are the largest of which a stretch has between two and four, or one."""
    bits = np.zeros(spans.shape, np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        wide = spans >> bits >> np.uint64(step) > 0
        bits = np.where(wide, bits + np.uint64(step), bits)
    return np.where(bits > 0, bits - np.uint64(1), bits)


def _cut_out(lows: UInts, highs: UInts, shifts: UInts, piece: Ints) -> tuple[UInts, UInts]:
    """The first and the last position of a piece; the last one of a stretch may be shorter."""
    first = lows + (piece.astype(np.uint64) << shifts)
    rest = highs - first
    return first, first + np.minimum(rest, (np.uint64(1) << shifts) - np.uint64(1))


def _weight(lows: UInts, highs: UInts, first: UInts, last: UInts, slopes: Floats) -> Floats:
    """The mass of a part of a stretch on a ramp from 1 - slope to 1 + slope."""
    width = (highs - lows).astype(np.float64) + 1.0
    begin, behind = (first - lows) / width, ((last - lows).astype(np.float64) + 1.0) / width
    return np.asarray((behind - begin) * (1.0 + slopes * (begin + behind - 1.0)))
