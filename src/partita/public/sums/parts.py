"""The keys cut into parts, where to cut them, and a tree of measurements over the parts in a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.lazy import cached_property
from partita.numbers import freeze
from partita.public.axis.base import Hierarchy
from partita.public.base import damaged
from partita.public.bounds import spread_ranges
from partita.public.boxes.base import Region
from partita.public.boxes.plan import Corners, SignedBox, volumes

MOST_PARTS: Final = 2**12  # the most parts of a cut: more are finer, and need more time for least squares
LEAF: Final = -1  # marks a part, in the place of the axis along which a node is halved
_MOST_SPECIAL: Final = 64  # special cells get parts of their own if they are at most this many
_TRIED: Final = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 128, 256)  # branchings
_MOST_TRIED: Final = 128  # ranges by which branchings are compared
_AT_ONCE: Final = 2**21  # coefficients that are held in memory at once

Box: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


class KeyCounts(Protocol):
    """What was released about the keys: counts of boxes of positions, special cells included."""

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The count of each box, corners included."""


class PartWeights(NamedTuple):
    """A question as weights of the parts: the weight of each, and the bounds within which it lies."""

    mean: Floats
    least: Floats
    most: Floats

    @property
    def cuts(self) -> Ints:
        """The parts that the question cuts."""
        return np.flatnonzero(self.least < self.most)


class KeyWalk(NamedTuple):
    """Corners of the parts; for each node its second half and its number among the parts; the depth."""

    lows: Corners
    highs: Corners
    second: Ints
    number: Ints
    depth: int


@final
@dataclass(frozen=True, eq=False)
class KeyTree:
    """A tree of halves over the product of some axes, in preorder; its leaves are the parts.

    `along` holds the axis along which a node is halved, -1 for a part, and `at` the first position of its
    second half. With no axes at all there is one part.
    """

    axes: tuple[Axis, ...]
    along: Ints
    at: UInts
    walk: KeyWalk = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.along.size != self.at.size or not 1 <= self.along.size < 2 * MOST_PARTS:
            raise damaged("cut", f"must have 1 to {MOST_PARTS} parts")
        if bool((self.along < LEAF).any()) or bool((self.along >= len(self.axes)).any()):
            raise damaged("cut", "must halve along its axes")
        freeze(self, walk=self._walk())

    @property
    def parts(self) -> int:
        """The number of parts."""
        return int((self.along == LEAF).sum())

    @property
    def lows(self) -> Corners:
        """The lowest position of each part along each axis."""
        return self.walk.lows

    @property
    def highs(self) -> Corners:
        """The highest position of each part along each axis."""
        return self.walk.highs

    def of(self, places: Corners) -> Ints:
        """The part of each point, a row of positions."""
        if len(self.axes) == 1:
            return np.asarray(np.searchsorted(self.lows[:, 0], places[:, 0], side="right") - 1)
        _, _, second, number, depth = self.walk
        node, rows = np.zeros(len(places), np.int64), np.arange(len(places))
        for _ in range(depth):
            axis = self.along[node]
            behind = places[rows, axis] >= self.at[node] if self.axes else np.zeros(len(places), np.bool_)
            node = np.where(axis == LEAF, node, np.where(behind, second[node], node + 1))
        return np.asarray(number[node])

    def weigh(
        self, boxes: Sequence[SignedBox], density: KeyCounts | None = None, region: Region | None = None
    ) -> PartWeights:
        """The weights of a signed sum of boxes: a part that is cut counts by the share of it inside.

        The share is that of the released counts if there are any, otherwise that of the cells. With a region
        only what lies in it counts: of a part that it cuts the share of the cells.
        """
        mean, least, most = np.zeros((3, self.parts))
        for low, high, sign in boxes:
            shares = self._shares(low, high, density)
            if region is not None:
                some = np.flatnonzero(shares)
                lows, highs = self._within(low, high)
                shares[some] *= region.shares(lows[some], highs[some])
            inside, touched = (shares >= 1.0) * float(sign), (shares > 0.0) * float(sign)
            mean += sign * shares
            least += np.minimum(inside, touched)
            most += np.maximum(inside, touched)
        return PartWeights(mean, least, most)

    def _shares(self, low: tuple[int, ...], high: tuple[int, ...], density: KeyCounts | None) -> Floats:
        if not self.axes:
            return np.ones(self.parts)
        lows, highs = self._within(low, high)
        touched = (lows <= highs).all(axis=1)
        whole = touched & (lows == self.lows).all(axis=1) & (highs == self.highs).all(axis=1)
        shares = whole.astype(np.float64)
        cut = np.flatnonzero(touched & ~whole)
        if cut.size:
            shares[cut] = self._inner_shares(cut, lows[cut], highs[cut], density)
        return np.asarray(shares)

    def _within(self, low: tuple[int, ...], high: tuple[int, ...]) -> tuple[Corners, Corners]:
        """The part of each part that lies in a box; corners in the wrong order if none does."""
        return np.maximum(self.lows, np.array(low, np.uint64)), np.minimum(
            self.highs, np.array(high, np.uint64)
        )

    def _inner_shares(self, parts: Ints, lows: Corners, highs: Corners, density: KeyCounts | None) -> Floats:
        """The share of each part that a box inside it holds: more than nothing, and less than all."""
        shares = volumes(lows, highs) / volumes(self.lows[parts], self.highs[parts])
        if density is not None:
            inside, whole = density.counts(lows, highs), density.counts(self.lows[parts], self.highs[parts])
            shares = np.where((whole > 1.0) & (inside >= 0.0), inside / np.maximum(whole, 1.0), shares)
        return np.asarray(np.clip(shares, 1e-9, 1.0 - 1e-9))

    def _walk(self) -> KeyWalk:
        second, number = np.zeros((2, self.along.size), np.int64)
        waiting, depth = [(_everything(self.axes), LEAF, 0)], 0
        boxes: list[Box] = []
        for node, (along, at) in enumerate(zip(self.along.tolist(), self.at.tolist(), strict=True)):
            if not waiting:
                raise damaged("cut", "must be a tree")
            box, parent, deep = waiting.pop()
            depth = max(depth, deep)
            if parent != LEAF:
                second[parent] = node
            if along == LEAF:
                number[node] = len(boxes)
                boxes.append(box)
                continue
            first, behind = _halve(box, along, at)
            waiting += [(behind, node, deep + 1), (first, LEAF, deep + 1)]
        if waiting:
            raise damaged("cut", "must be a tree")
        lows, highs = (
            np.array([box[end] for box in boxes], np.uint64).reshape(len(boxes), len(self.axes))
            for end in (0, 1)
        )
        return KeyWalk(lows, highs, second, number, depth)


def _everything(axes: Sequence[Axis]) -> Box:
    return (0,) * len(axes), tuple(axis.width - 1 for axis in axes)


def _halve(box: Box, along: int, at: int) -> tuple[Box, Box]:
    """The part of a box below a position along an axis, and the part from there on."""
    low, high = box
    if not low[along] < at <= high[along]:
        raise damaged("cut", "must halve boxes inside")
    before, after = slice(along), slice(along + 1, None)
    return (low, (*high[before], at - 1, *high[after])), ((*low[before], at, *low[after]), high)


def count_cells(axes: Sequence[Axis]) -> int:
    """The number of cells of the product, special cells included."""
    return math.prod(axis.width for axis in axes)


def cut_into_cells(axes: tuple[Axis, ...]) -> KeyTree:
    """Every cell of the product a part of its own."""
    return _grow(axes, lambda boxes: [True] * len(boxes))


def cut_by_counts(axes: tuple[Axis, ...], density: KeyCounts, *, enough: float) -> KeyTree:
    """Halved wherever the released counts are above `enough`; special cells apart, if they are few."""
    free = math.prod(1 + axis.before + axis.after for axis in axes) <= _MOST_SPECIAL

    def worth(boxes: list[Box]) -> list[bool]:
        lows, highs = (np.array([box[end] for box in boxes], np.uint64) for end in (0, 1))
        counts = density.counts(lows, highs)
        return [
            count > enough or (free and _special_cut(axes, box) is not None)
            for count, box in zip(counts.tolist(), boxes, strict=True)
        ]

    return _grow(axes, worth)


class _Node:
    """A box that becomes a part, or is halved."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.split: tuple[int, int] | None = None
        self.halves: tuple[_Node, ...] = ()

    def preorder(self) -> Iterator[tuple[int, int]]:
        """Axis and position of every node below, this one first."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node.split or (LEAF, 0)
            waiting += reversed(node.halves)


def _grow(axes: tuple[Axis, ...], worth: Callable[[list[Box]], list[bool]]) -> KeyTree:
    """Halve the boxes that are `worth` it, level by level, until there are as many parts as allowed."""
    root = _Node(_everything(axes))
    level, left = [root], MOST_PARTS - 1
    while level and left:
        level = [node for node in level if node.box[0] != node.box[1]]
        chosen = worth([node.box for node in level]) if level else []
        level = [node for node, more in zip(level, chosen, strict=True) if more][:left]
        left -= len(level)
        for node in level:
            node.split = _special_cut(axes, node.box) or _middle_cut(axes, node.box)
            node.halves = tuple(_Node(half) for half in _halve(node.box, *node.split))
        level = [half for node in level for half in node.halves]
    along, at = zip(*root.preorder(), strict=True)
    return KeyTree(axes, np.array(along, np.int64), np.array(at, np.uint64))


def _special_cut(axes: Sequence[Axis], box: Box) -> tuple[int, int] | None:
    """Along which axis and where to halve so that a special cell is separated; None if there is none."""
    for along, (axis, low, high) in enumerate(zip(axes, *box, strict=True)):
        behind = axis.before + axis.size
        if low < high and (low < axis.before or high >= behind):
            return along, behind if axis.before <= low < behind else low + 1
    return None


def _middle_cut(axes: Sequence[Axis], box: Box) -> tuple[int, int]:
    """The middle of a box along the axis of which it has the largest share."""
    ends = list(zip(axes, *box, strict=True))
    shares = [(high - low) / axis.width for axis, low, high in ends]
    along = max(range(len(axes)), key=shares.__getitem__)
    _, low, high = ends[along]
    return along, (low + high + 1) // 2


@final
@dataclass(frozen=True)
class PartTree:
    """Nodes of `branching` children over a row of parts, leaves first, all measured with the same noise.

    Every level is measured but that of the root.
    """

    parts: int
    branching: int

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The parts of every node."""
        return Hierarchy.of(size=self.parts, branching=self.branching, root=False)

    @property
    def levels(self) -> int:
        """How many nodes hold a part: the number of levels."""
        return self.hierarchy.levels

    @property
    def nodes(self) -> int:
        """The number of nodes on all levels."""
        return sum(self.hierarchy.nodes)

    @property
    def top(self) -> int:
        """The number of nodes of the highest level, the last ones."""
        return self.hierarchy.nodes[-1]

    def sums(self, parts: NDArray[Any]) -> NDArray[Any]:
        """The sum of every node, leaves first, from those of the parts along the last axis."""
        levels = [parts]
        for _ in range(self.levels - 1):
            levels.append(self.sum_siblings(levels[-1]))
        return np.concatenate(levels, axis=-1)

    def estimate_parts(self, measured: Floats) -> Floats:
        """The parts by least squares, all at once: what `plain` says of each of them by itself.

        >>> tree = PartTree(4, 2)
        >>> tree.estimate_parts(np.array([1.0, 2.0, 3.0, 4.0, 6.0, 7.0])).tolist()
        [2.0, 3.0, 3.0, 4.0]
        """
        variances, shares = self.plain.variances, self.plain.shares
        nodes = np.split(measured, np.cumsum(self.hierarchy.nodes)[:-1])
        levels = nodes[:1]
        for own, share in zip(nodes[1:], variances[1:], strict=True):
            levels.append(share * own + (1.0 - share) * self.sum_siblings(levels[-1]))
        found = levels[-1]
        for level in range(self.levels - 2, -1, -1):
            lacking = found - self.sum_siblings(levels[level])
            found = levels[level] + shares[level] * self.repeat_parents(lacking, level)
        return np.asarray(found)

    @cached_property
    def plain(self) -> Blend:
        """Least squares, by the measured nodes alone."""
        return Blend(self, np.full(self.parts, np.inf))

    def squares(self, asked: Floats) -> Floats:
        """The sum of the squared coefficients of each question, some questions at a time."""
        at_once = max(1, _AT_ONCE // self.nodes)
        blocks = (asked[start : start + at_once] for start in range(0, len(asked), at_once))
        return np.concatenate([np.square(self.plain(block).nodes).sum(axis=1) for block in blocks])

    @cached_property
    def typical(self) -> float:
        """The mean of `squares` over ranges of parts, spread evenly over all ranges."""
        lows, highs = (ends[:: max(1, ends.size // _MOST_TRIED)] for ends in spread_ranges(self.parts))
        places = np.arange(self.parts)
        ranges = (places >= lows[:, np.newaxis]) & (places <= highs[:, np.newaxis])
        return float(self.squares(ranges.astype(np.float64)).mean())

    def sum_siblings(self, nodes: NDArray[Any]) -> NDArray[Any]:
        """Sums over siblings."""
        return np.add.reduceat(nodes, np.arange(0, nodes.shape[-1], self.branching), axis=-1)

    def repeat_parents(self, parents: Floats, level: int) -> Floats:
        """The number of its parent for each node of a level."""
        return np.asarray(parents[..., np.arange(self.hierarchy.nodes[level]) // self.branching])


class PartCoefficients(NamedTuple):
    """The coefficients of the measured nodes and of the guesses of parts in a linear estimate."""

    nodes: Floats
    guesses: Floats


@final
@dataclass(frozen=True, eq=False)
class Blend:
    """Least squares from the measured nodes of a tree and guesses of its parts.

    `distrust` is the variance of each part's guess in units of that of a measurement; infinite if there is
    no guess. The estimate of any linear function of the parts is linear in both. One pass up and one pass
    down the tree find the coefficients; their squares times the variances add up to the variance.
    """

    tree: PartTree
    distrust: Floats

    def __call__(self, asked: Floats) -> PartCoefficients:
        """The coefficients for each linear question, a row of weights over the parts."""
        tree = self.tree
        pulls = [np.asarray(asked * np.ones_like(self.distrust))]
        for shares in self.shares:
            pulls.append(tree.sum_siblings(pulls[-1] * shares))
        given, found = pulls[-1], []
        for level in range(tree.levels - 1, 0, -1):
            own = self.variances[level]
            found.append(given * own)
            given = pulls[level - 1] + tree.repeat_parents(given * (1.0 - own) - pulls[level], level - 1)
        own = self.variances[0]
        nodes = np.concatenate([given * own, *reversed(found)], axis=-1)
        return PartCoefficients(nodes, given * (1.0 - own))

    @cached_property
    def variances(self) -> list[Floats]:
        """The variance of each node by itself and what is below it, in units of one measurement.

        Where all that is below has variance v, the best of both has v / (v + 1), which is also the share
        of the node's own measurement in it.
        """
        below, variances = self.distrust, []
        for level in range(self.tree.levels):
            variances.append(1.0 - 1.0 / (1.0 + below))
            below = self.tree.sum_siblings(variances[level])
        return variances

    @cached_property
    def shares(self) -> list[Floats]:
        """The share of what siblings lack that each node takes: that of its variance."""
        return [
            variances / self.tree.repeat_parents(self.tree.sum_siblings(variances), level)
            for level, variances in enumerate(self.variances[:-1])
        ]


@lru_cache(maxsize=64)
def best_tree(parts: int) -> PartTree:
    """The tree with the least noise for ranges of parts, every level counted: by exact variances."""
    tried = {min(branching, max(2, parts)) for branching in (*_TRIED, parts)}
    trees = [PartTree(parts, branching) for branching in sorted(tried)]
    return min(trees, key=lambda tree: tree.typical * tree.levels**2)
