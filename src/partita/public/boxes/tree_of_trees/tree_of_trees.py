"""The tree of trees over the segments of several axes, as far as it was kept [DNRR15, section 3.3]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.base.tree_cover import Hierarchy
from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.base.released import damaged
from partita.public.boxes.plan.runs import runs

_BLOCK: Final = 1024


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
        """Which numbers are those of nodes."""
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
    def below(self) -> Floats:
        """What the kept children of each node have together."""
        inner = self.nodes > 1
        return np.bincount(self.parents[inner], self.values[inner], self.nodes.size).astype(np.float64)

    @cached_property
    def by_depth(self) -> list[Ints]:
        """The places of the nodes of each level, roots first."""
        depths = np.frexp(self.nodes.astype(np.float64))[1]
        return [np.flatnonzero(depths == depth) for depth in range(1, self.tree.levels + 1)]

    def check(self, *, owners: int) -> None:
        """Refuse what no pruned tree can be."""
        if not self.owners.size == self.nodes.size == self.counts.size:
            raise damaged("nodes", "must have an owner and a count each")
        if bool((self.owners < 0).any()) or bool((self.owners >= owners).any()):
            raise damaged("owners", "must be kept nodes of the dimension before")
        if not self.tree.there(self.nodes).all() or bool((self.keys[1:] <= self.keys[:-1]).any()):
            raise damaged("nodes", "must be nodes of their trees in increasing order")
        if bool(((self.parents < 0) != (self.nodes == 1)).any()):
            raise damaged("nodes", "must hang together")
        if bool((self.counts < 1).any()):
            raise damaged("noisy", "must be positive, as all counts that are kept")


class Cover(NamedTuple):
    """The kept nodes of the last dimension in the covers of some boxes: the box of each, and its place.

    For each box: how many nodes of the last dimension were `looked` for, and how many nodes of any
    dimension were `missed`, because they were pruned or lie below one that was.
    """

    boxes: Ints
    places: Ints
    looked: Ints
    missed: Ints


class Sums(NamedTuple):
    """For each box the sum of the kept nodes in its cover, how many they are, and how many were missed."""

    values: Floats
    kept: Ints
    missed: Ints


@final
@dataclass(frozen=True, eq=False)
class TreeOfTrees:
    """One stage for each dimension; every noisy count that is not in it lay below `floor`."""

    stages: tuple[Stage, ...]
    floor: int

    def __post_init__(self) -> None:
        owners = 1
        for stage in self.stages:
            stage.check(owners=owners)
            owners = stage.owners.size

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

    def sums(self, firsts: Ints, lasts: Ints) -> Sums:
        """The sums of the covers of many boxes, a row of first and of last segments for each."""
        blocks = [slice(start, start + _BLOCK) for start in range(0, max(1, len(firsts)), _BLOCK)]
        found = [self._sums(self.cover(firsts[block], lasts[block])) for block in blocks]
        return Sums(*(np.concatenate(series) for series in zip(*found, strict=True)))

    def squares(self, firsts: Ints, lasts: Ints, parts: int) -> Ints:
        """How many nodes cover each `parts` boxes; one that is in k of their covers counts k^2 times."""
        cover, places = self.cover(firsts, lasts), self.stages[-1].nodes.size
        pairs, times = np.unique(cover.boxes // parts * places + cover.places, return_counts=True)
        return np.bincount(pairs // max(1, places), times**2, len(firsts) // parts).astype(np.int64)

    def _sums(self, cover: Cover) -> Sums:
        held, boxes = self.stages[-1].values[cover.places], cover.missed.size
        values = np.bincount(cover.boxes, held, boxes).astype(np.float64)
        return Sums(values, np.bincount(cover.boxes, None, boxes), cover.missed)

    def cover(self, firsts: Ints, lasts: Ints) -> Cover:
        """The product of the covers along each axis, dimension by dimension, as far as nodes were kept."""
        boxes = np.arange(len(firsts))
        places, looked, missed = np.zeros((3, len(firsts)), np.int64)
        for axis, stage in enumerate(self.stages):
            pairs, nodes = _along(stage.tree, firsts[:, axis], lasts[:, axis], boxes)
            boxes, found = boxes[pairs], stage.find(places[pairs], nodes)
            there = found >= 0
            looked = np.bincount(boxes, minlength=len(firsts))
            missed += np.bincount(boxes[~there], minlength=len(firsts))
            boxes, places = boxes[there], found[there]
        return Cover(boxes, places, looked, missed)


def _along(tree: SegmentTree, firsts: Ints, lasts: Ints, boxes: Ints) -> tuple[Ints, Ints]:
    """For each of some boxes, in turn, the cover of its run: whose, and which node."""
    numbers, nodes = tree.covers(firsts, lasts)
    stops = np.cumsum(numbers)[boxes]
    pairs, wanted = spread(stops - numbers[boxes], stops)
    return pairs, nodes[wanted]


def nodes_over_one_point(trees: Sequence[SegmentTree]) -> int:
    """How many nodes hold a point: one of each level, for each that holds it of the dimension before."""
    return sum(accumulate((tree.levels for tree in trees), mul))


def nodes_in_all(trees: Sequence[SegmentTree]) -> int:
    """How many nodes there would be if none were pruned."""
    return sum(accumulate((tree.nodes for tree in trees), mul))


def spread(firsts: Ints, behind: Ints) -> tuple[Ints, Ints]:
    """All integers of all runs first, ..., behind-1, run by run: which run, and which integer."""
    lengths = behind - firsts
    return np.repeat(np.arange(lengths.size), lengths), runs(firsts, lengths)
