"""The tree of trees over the segments of several axes, as far as it was kept [DNRR15, section 3.3]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Bools, Floats, Ints, UInts
from partita.lazy import cached_property
from partita.public.axis.base import Hierarchy
from partita.public.axis.curve import apportion
from partita.public.base import damaged
from partita.public.boxes.density import Measure, Stretches
from partita.public.boxes.plan import Corners, runs

_ONE: Final = np.uint64(1)
_BLOCK: Final = 1024  # boxes that are covered at once: more are faster, and need more memory


@final
@dataclass(frozen=True, eq=False)
class AxisSegments:
    """The segments of the axes of a release: the last position of each, increasing, along every axis.

    >>> segments = AxisSegments((np.array([2, 3, 9], np.uint64),))
    >>> box = np.array([[1]], np.uint64), np.array([[5]], np.uint64)
    >>> [ends.tolist() for ends in segments.touched(*box)], [cut.tolist() for cut in segments.cut(*box)]
    ([[[0]], [[2]]], [[[True]], [[True]]])
    """

    edges: tuple[UInts, ...]

    @cached_property
    def starts(self) -> tuple[UInts, ...]:
        """The first position of each segment."""
        return tuple(np.concatenate([np.zeros(1, np.uint64), edges[:-1] + _ONE]) for edges in self.edges)

    @cached_property
    def wide(self) -> tuple[Bools, ...]:
        """Which segments have several positions, and so can be cut by a box."""
        return tuple(edges > starts for edges, starts in zip(self.edges, self.starts, strict=True))

    def touched(self, lows: Corners, highs: Corners) -> tuple[Ints, Ints]:
        """The first and the last segment along each axis that have a position in common with each box."""
        return self._locate(lows), self._locate(highs)

    def cut(self, lows: Corners, highs: Corners) -> tuple[Bools, Bools]:
        """Whether the first and the last of these have positions outside of the box."""
        starts, ends = self.boxes(*self.touched(lows, highs))
        return starts < lows, ends > highs

    def inside(self, lows: Corners, highs: Corners) -> tuple[Ints, Ints]:
        """The first and the last segment along each axis that lie in each box; there may be none."""
        (firsts, lasts), (cut_first, cut_last) = self.touched(lows, highs), self.cut(lows, highs)
        return firsts + cut_first, lasts - cut_last

    def boxes(self, firsts: Ints, lasts: Ints) -> tuple[Corners, Corners]:
        """The corners of boxes of segments."""
        starts = [each[firsts[:, axis]] for axis, each in enumerate(self.starts)]
        ends = [each[lasts[:, axis]] for axis, each in enumerate(self.edges)]
        return np.stack(starts, axis=1), np.stack(ends, axis=1)

    def _locate(self, corners: Corners) -> Ints:
        found = [np.searchsorted(edges, corners[:, axis]) for axis, edges in enumerate(self.edges)]
        return np.stack(found, axis=1)


@final
@dataclass(frozen=True)
class SegmentTree:
    """The binary tree over the segments 0, ..., size-1 of one axis, its nodes numbered as in a heap.

    The root is 1, and the children of h are 2h and 2h + 1. All segments lie equally deep, so every point
    lies in one node of each level; at the right edge a node may have one child only.

    >>> tree = SegmentTree(5)
    >>> tree.levels, tree.most, [bound.tolist() for bound in tree.spans(np.array([1, 3, 12]))]
    (4, 4, [[0, 4, 4], [5, 5, 5]])
    """

    size: int

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The same tree by levels, leaves first."""
        return Hierarchy.of(size=self.size, branching=2)

    @property
    def levels(self) -> int:
        """The number of nodes over one segment."""
        return self.hierarchy.levels

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(self.hierarchy.nodes)

    @property
    def most(self) -> int:
        """No run of segments needs more nodes to cover it.

        It is the root; or a child of the root and then at most one node on each level below; or at most
        two nodes on each level below the children of the root.
        """
        return max(1, self.levels - 1, 2 * (self.levels - 2))

    def there(self, nodes: Ints) -> Bools:
        """Which numbers belong to nodes of the tree."""
        inside = (nodes >= 1) & (nodes < 1 << self.levels)
        return np.asarray(inside & (self.spans(np.where(inside, nodes, 1))[0] < self.size))

    def spans(self, nodes: Ints) -> tuple[Ints, Ints]:
        """The first segment of each node, and the one behind its last."""
        level = self.levels - np.frexp(nodes.astype(np.float64))[1].astype(np.int64)
        first = (nodes << level) - (1 << (self.levels - 1))
        return first, np.minimum(first + (1 << level), self.size)

    def children(self, nodes: Ints) -> tuple[Ints, Ints]:
        """The children of some nodes, and for each the place of its parent among them."""
        parents, children = np.repeat(np.arange(nodes.size), 2), (2 * nodes[:, None] + (0, 1)).ravel()
        there = self.there(children)
        return parents[there], children[there]

    def covers(self, firsts: Ints, lasts: Ints) -> tuple[Ints, Ints]:
        """The fewest nodes that make up each run of segments: how many, and all of them, run by run."""
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        for level, first, behind in self.hierarchy.runs(firsts, lasts):
            run, place = spread(first, behind)
            found.append((run, place + (1 << (self.levels - 1 - level))))
        run, node = (np.concatenate(series) for series in zip(*found, strict=True))
        return np.bincount(run, minlength=firsts.size), node[np.argsort(run, kind="stable")]


@final
@dataclass(frozen=True, eq=False)
class Stage:
    """The kept nodes of all trees of one dimension, in the order of their owners and then their numbers.

    The owner of a tree is a kept node of the dimension before, by its place there; the first dimension has
    one tree, of owner 0.
    """

    tree: SegmentTree
    owners: Ints
    nodes: Ints
    counts: NDArray[Any]

    @staticmethod
    def of(tree: SegmentTree, levels: Sequence[tuple[Ints, Ints, NDArray[Any]]]) -> Stage:
        """The stage that has these nodes, given level by level."""
        nothing = (np.zeros(0, np.int64),) * 3
        owners, nodes, counts = (np.concatenate(series) for series in zip(nothing, *levels, strict=True))
        order = np.lexsort((nodes, owners))
        return Stage(tree, owners[order], nodes[order], counts[order])

    @cached_property
    def keys(self) -> Ints:
        """One increasing number for each node."""
        return np.asarray((self.owners << self.tree.levels) | self.nodes)

    @cached_property
    def values(self) -> Floats:
        """The noisy counts as floats."""
        return np.asarray(self.counts.astype(np.float64))

    def find(self, owners: Ints, nodes: Ints) -> Ints:
        """The place of each node, or -1 if it was not kept."""
        if not self.keys.size:
            return np.full(nodes.size, -1)
        wanted = (owners << self.tree.levels) | nodes
        place = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
        return np.where(self.keys[place] == wanted, place, -1)

    @cached_property
    def parents(self) -> Ints:
        """The place of the parent of each node; -1 for roots."""
        return self.find(self.owners, self.nodes >> 1)

    @cached_property
    def held(self) -> Floats:
        """The noisy counts that are positive; only in a tree that is not pruned are there others."""
        return np.maximum(self.values, 0.0)

    @cached_property
    def below(self) -> Floats:
        """What the kept children of each node hold together."""
        inner = self.nodes > 1
        return np.bincount(self.parents[inner], self.held[inner], self.nodes.size).astype(np.float64)

    @cached_property
    def by_depth(self) -> list[Ints]:
        """The places of the nodes of each level, roots first."""
        depths = np.frexp(self.nodes.astype(np.float64))[1]
        return [np.flatnonzero(depths == depth) for depth in range(1, self.tree.levels + 1)]

    def check(self, *, owners: int, positive: bool = True) -> None:
        """Raise InvalidRelease if these are not trees, with positive counts where they were pruned."""
        if not self.owners.size == self.nodes.size == self.counts.size:
            raise damaged("nodes", "must have an owner and a count each")
        if bool((self.owners < 0).any()) or bool((self.owners >= owners).any()):
            raise damaged("owners", "must be kept nodes of the dimension before")
        if not self.tree.there(self.nodes).all() or bool((self.keys[1:] <= self.keys[:-1]).any()):
            raise damaged("nodes", "must be nodes of their trees in increasing order")
        if bool(((self.parents < 0) != (self.nodes == 1)).any()):
            raise damaged("nodes", "must hang together")
        if positive and bool((self.counts < 1).any()):
            raise damaged("noisy", "must be positive, as all counts that are kept")


class KeptCover(NamedTuple):
    """The kept nodes of the last dimension in the covers of some boxes: the box of each, and its place.

    For each box: how many nodes of the last dimension were `looked` for, and how many nodes of any
    dimension were `missed`, because they were pruned or lie below one that was.
    """

    boxes: Ints
    places: Ints
    looked: Ints
    missed: Ints


class CoverSums(NamedTuple):
    """For each box the sum of the kept nodes in its cover, their number, and the number of missed ones."""

    values: Floats
    kept: Ints
    missed: Ints


@final
@dataclass(frozen=True, eq=False)
class TreeOfTrees:
    """One stage for each dimension; every noisy count that is not in it lay below `floor`, which is zero if
    none is missing. Trees that are not `pruned` lack nodes only where there was no room for all.
    """

    stages: tuple[Stage, ...]
    floor: int
    pruned: bool = True

    def __post_init__(self) -> None:
        owners = 1
        for stage in self.stages:
            stage.check(owners=owners, positive=self.pruned)
            owners = stage.owners.size
        if not self.floor and self.kept != count_all_nodes(self.trees):
            raise damaged("floor", "must be positive if nodes are missing")

    @property
    def trees(self) -> tuple[SegmentTree, ...]:
        """The tree of each dimension."""
        return tuple(stage.tree for stage in self.stages)

    @property
    def kept(self) -> int:
        """The number of nodes that were kept."""
        return sum(stage.nodes.size for stage in self.stages)

    @property
    def total(self) -> float:
        """The count of the first root; if it was pruned, it lay below the floor."""
        return float(self.stages[0].values[0]) if self.kept else float(self.floor)

    def sums(self, firsts: Ints, lasts: Ints) -> CoverSums:
        """The sums of the covers of many boxes, a row of first and of last segments for each."""
        found = []
        for start in range(0, max(1, len(firsts)), _BLOCK):
            cover = self.cover(firsts[start : start + _BLOCK], lasts[start : start + _BLOCK])
            held, boxes = self.stages[-1].values[cover.places], cover.missed.size
            values = np.bincount(cover.boxes, held, boxes).astype(np.float64)
            found.append((values, np.bincount(cover.boxes, None, boxes), cover.missed))
        return CoverSums(*(np.concatenate(series) for series in zip(*found, strict=True)))

    def squares(self, firsts: Ints, lasts: Ints, parts: int) -> Ints:
        """How many nodes cover each `parts` boxes; one that is in k of their covers counts k^2 times."""
        cover, places = self.cover(firsts, lasts), self.stages[-1].nodes.size
        pairs, times = np.unique(cover.boxes // parts * places + cover.places, return_counts=True)
        return np.bincount(pairs // max(1, places), times**2, len(firsts) // parts).astype(np.int64)

    def cover(self, firsts: Ints, lasts: Ints) -> KeptCover:
        """The product of the covers along each axis, dimension by dimension, as far as nodes were kept."""
        boxes = np.arange(len(firsts))
        places, looked, missed = np.zeros((3, len(firsts)), np.int64)
        for axis, stage in enumerate(self.stages):
            numbers, nodes = stage.tree.covers(firsts[:, axis], lasts[:, axis])
            stops = np.cumsum(numbers)[boxes]
            pairs, wanted = spread(stops - numbers[boxes], stops)
            boxes, found = boxes[pairs], stage.find(places[pairs], nodes[wanted])
            there = found >= 0
            looked = np.bincount(boxes, minlength=len(firsts))
            missed += np.bincount(boxes[~there], minlength=len(firsts))
            boxes, places = boxes[there], found[there]
        return KeptCover(boxes, places, looked, missed)


def nodes_over_one_point(trees: Sequence[SegmentTree]) -> int:
    """How many nodes hold a point: one of each level, for each that holds it of the dimension before."""
    return sum(accumulate((tree.levels for tree in trees), mul))


def count_all_nodes(trees: Sequence[SegmentTree]) -> int:
    """The number of nodes if none were pruned."""
    return sum(count_nodes_by_stage(trees))


def count_nodes_by_stage(trees: Sequence[SegmentTree]) -> list[int]:
    """The number of nodes of each dimension if none were pruned."""
    return [*accumulate((tree.nodes for tree in trees), mul)]


def spread(firsts: Ints, behind: Ints) -> tuple[Ints, Ints]:
    """All integers of all runs first, ..., behind-1, run by run: which run, and which integer."""
    lengths = behind - firsts
    return np.repeat(np.arange(lengths.size), lengths), runs(firsts, lengths)


@final
@dataclass(frozen=True, eq=False)
class Pieces:
    """Disjoint boxes that share out the total of a tree of trees: for what needs a density, not a cover.

    What lies in each box lows, ..., highs is spread evenly inside.
    """

    lows: Corners
    highs: Corners
    masses: Floats

    @staticmethod
    def of(trees: TreeOfTrees, segments: AxisSegments) -> Pieces:
        """The total from the top down: a node hands all it has to its kept children, by their noisy counts.

        A node without kept children is cut along the next axis by its own tree; without a tree there it is
        a piece. So a pruned node has nothing, as in the covers, and the pieces add up to the count of the
        first root; if that was pruned, everything is one piece and holds nothing.
        """
        open_, done = _Parts.everything(trees), []
        for axis, stage in enumerate(trees.stages):
            rooted = stage.find(np.arange(open_.masses.size), np.ones(open_.masses.size, np.int64)) >= 0
            done.append(open_.some(~rooted))
            open_ = open_.handed_down(stage, axis)
        firsts, lasts, masses, _ = (
            np.concatenate(series) for series in zip(*done, open_.some(open_.alive), strict=True)
        )
        return Pieces(*segments.boxes(firsts, lasts), masses)

    def within(self, lows: Corners, highs: Corners) -> tuple[Floats, tuple[Corners, Corners], Floats]:
        """For the pieces that meet a box: the mass of each, the part inside of the box, and its share."""
        meet = ((self.lows <= highs) & (self.highs >= lows)).all(axis=1)
        inside = np.maximum(self.lows[meet], lows), np.minimum(self.highs[meet], highs)
        even: list[Measure] = [None] * self.lows.shape[1]
        whole, part = Stretches.along(even, self.lows[meet], self.highs[meet]), Stretches.along(even, *inside)
        shares = [own.shares(common) for own, common in zip(whole, part, strict=True)]
        return self.masses[meet], inside, np.prod(shares, axis=0)

    def points(self, rows: int) -> Corners:
        """Rows in proportion to the masses; inside of a piece they follow each other by irrational steps."""
        weights = self.masses if self.masses.any() else np.ones(self.masses.size)
        shares = apportion(rows, weights)
        piece = np.repeat(np.arange(shares.size), shares)
        lows, wide = self.lows[piece], (self.highs - self.lows)[piece]
        turns = np.outer(np.arange(1, rows + 1), _steps(lows.shape[1])) % 1.0
        steps = np.floor(turns * (wide.astype(np.float64) + 1.0))
        return np.asarray(lows + np.minimum(steps.astype(np.uint64), wide))


class _Parts(NamedTuple):
    """Boxes of segments on the way down, their masses, and which of them have anything left to share out."""

    firsts: Ints
    lasts: Ints
    masses: Floats
    alive: Bools

    @staticmethod
    def everything(trees: TreeOfTrees) -> _Parts:
        ends = np.array([[tree.size - 1 for tree in trees.trees]])
        total = trees.stages[0].held[:1]
        return _Parts(np.zeros_like(ends), ends, total if total.size else np.zeros(1), np.ones(1, bool))

    def some(self, chosen: Bools) -> _Parts:
        """Those of the chosen that are alive."""
        left = chosen & self.alive
        return _Parts(self.firsts[left], self.lasts[left], self.masses[left], self.alive[left])

    def handed_down(self, stage: Stage, axis: int) -> _Parts:
        """The nodes of the trees that these own, each with what its owner hands down to it."""
        firsts, lasts = self.firsts[stage.owners], self.lasts[stage.owners]
        firsts[:, axis], behind = stage.tree.spans(stage.nodes)
        lasts[:, axis] = behind - 1
        owned = np.where(self.alive, self.masses, 0.0)[stage.owners]
        held = np.where(stage.nodes > 1, 0.0, owned)
        for level in stage.by_depth[1:]:
            parents = stage.parents[level]
            shared = np.maximum(
                stage.below[parents], 1.0
            )  # counts are whole, so a positive sum is at least 1
            held[level] = held[parents] * stage.held[level] / shared
        masses = np.where(stage.below > 0, 0.0, held)  # nodes with kept children keep nothing
        return _Parts(firsts, lasts, masses, masses > 0)


def _steps(axes: int) -> Floats:
    """Steps along each axis whose multiples, without their whole parts, spread evenly over the unit cube.

    Powers of the root of x^(axes+1) = x + 1, the golden ratio for one axis.
    """
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (axes + 1))
    return root ** -np.arange(1.0, axes + 1)
