"""The nodes of a released tree: boxes of cells, level by level, each level cutting up the one above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats, Ints, UInts
from partita.public.base.released import damaged

_MOST_LEVELS: Final = 65
_LARGEST_SIZE: Final = 2**63


class TreeLevel(NamedTuple):
    """Nodes of one level: their first and last cells, and whether they are cut further."""

    first: UInts
    last: UInts
    expanded: Bools


class Families(NamedTuple):
    """The nodes of one level, and where in it the children of each parent begin."""

    nodes: slice
    parents: Ints
    starts: Ints
    sizes: Ints

    def sum(self, children: Floats) -> Floats:
        """The sum over the children of each parent."""
        return np.asarray(np.add.reduceat(children, self.starts))

    def spread(self, parents: Floats) -> Floats:
        """The parent's number for each child."""
        return np.repeat(parents, self.sizes)

    def table(self) -> tuple[Ints, Bools]:
        """A row for each parent: the places of its children in the level, and which of them are there."""
        columns = np.arange(int(self.sizes.max()))
        there = columns < self.sizes[:, None]
        return np.where(there, self.starts[:, None] + columns, 0), there


@final
@dataclass(frozen=True, eq=False)
class TreeShape:
    """All nodes, the root first; `levels` says how many there are of each level.

    Nodes of a level are in the order of their cells. The children of an expanded node make it up
    exactly, so the nodes that are not expanded, the leaves, make up all cells.
    """

    levels: Ints
    first: UInts
    last: UInts
    expanded: Bools

    def __post_init__(self) -> None:
        count = self.first.size
        if not self.last.size == self.expanded.size == count or not 2 <= self.levels.size <= _MOST_LEVELS:
            raise damaged("nodes", "must be as many of each kind")
        if bool((self.levels < 1).any()) or bool((self.levels > count).any()) or self.levels.sum() != count:
            raise damaged("nodes", "must be on the levels given")
        if self.levels[0] != 1 or self.first[0] != 0 or int(self.last[0]) >= _LARGEST_SIZE:
            raise damaged("nodes", "must begin with a root over cells 0, ..., size-1, size at most 2^63")
        if bool((self.first > self.last).any()) or bool((self.last > self.last[0]).any()):
            raise damaged("nodes", "must hold at least one cell each, and cells of the root only")
        self._check_levels()

    @staticmethod
    def join(levels: Sequence[TreeLevel]) -> TreeShape:
        """The shape that has these levels, from the root down."""
        sizes = np.array([level.first.size for level in levels])
        return TreeShape(sizes, *(np.concatenate(series) for series in zip(*levels, strict=True)))

    @cached_property
    def slices(self) -> list[slice]:
        """Where in the arrays the nodes of each level are."""
        ends = np.cumsum(self.levels).tolist()
        return [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]

    @cached_property
    def families(self) -> list[Families]:
        """Every level below the root, as children of their parents."""
        return [
            self._families(above, nodes) for above, nodes in zip(self.slices, self.slices[1:], strict=False)
        ]

    @cached_property
    def widths(self) -> Floats:
        """The number of cells of each node."""
        return (self.last - self.first).astype(np.float64) + 1.0

    @cached_property
    def leaves(self) -> Ints:
        """The nodes that are not expanded, in the order of their cells."""
        leaves = np.flatnonzero(~self.expanded)
        return leaves[np.argsort(self.first[leaves])]

    @cached_property
    def spans(self) -> tuple[Ints, Ints]:
        """The number of leaves before each node, and up to its end."""
        before = np.searchsorted(self.first[self.leaves], self.first)
        return before, np.searchsorted(self.last[self.leaves], self.last) + 1

    @cached_property
    def parents(self) -> Ints:
        """The parent of each node; the root's is the root."""
        below = [family.parents.repeat(family.sizes) for family in self.families]
        return np.concatenate([np.zeros(1, np.int64), *below])

    def _families(self, above: slice, nodes: slice) -> Families:
        parents = above.start + np.flatnonzero(self.expanded[above])
        starts = np.searchsorted(self.first[nodes], self.first[parents])
        return Families(nodes, parents, starts, np.diff(starts, append=nodes.stop - nodes.start))

    def _check_levels(self) -> None:
        """Each level must make up the expanded nodes of the level above, and the last one has none."""
        for above, nodes in zip(self.slices, self.slices[1:], strict=False):
            outer = above.start + np.flatnonzero(self.expanded[above])
            first, last = self.first[nodes], self.last[nodes]
            follows = first[1:] == last[:-1] + np.uint64(1)
            opens = np.concatenate([[True], ~follows | np.isin(first[1:], self.first[outer])])
            closes = np.concatenate([opens[1:], [True]])
            if not (
                np.array_equal(first[opens], self.first[outer])
                and np.array_equal(last[closes], self.last[outer])
            ):
                raise damaged("nodes", "must make up the expanded nodes of the level above")
        if not self.expanded[0] or bool(self.expanded[self.slices[-1]].any()):
            raise damaged("nodes", "must end with leaves")
