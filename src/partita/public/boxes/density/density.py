"""A solved tree of boxes: what each node holds, how far that may be off, and where inside it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from partita.arrays import changes
from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats, Ints, UInts
from partita.public.axis.tree_solver.tree_shape import Families
from partita.public.boxes.density.measure import Measure, Stretches
from partita.public.boxes.plan.families import children_of, families_of, summed_up
from partita.public.boxes.plan.nodes import BoxNodes, Corners


class Held(NamedTuple):
    """For some nodes: their counts, the variances of these, and the squares of the counts of leaves."""

    values: Floats
    variances: Floats
    squares: Floats

    def some(self, nodes: Ints | Bools) -> Held:
        """Of some of the nodes."""
        return Held(*(each[nodes] for each in self))

    def gathered(self, groups: Ints, count: int) -> Held:
        """The sum over each group of nodes."""
        return Held(*(np.asarray(np.bincount(groups, each, minlength=count), np.float64) for each in self))

    @staticmethod
    def join(parts: Sequence[Held]) -> Held:
        """Those of all parts, one after another."""
        return Held(*(np.concatenate(each) for each in zip(*parts, strict=True)))


@final
@dataclass(frozen=True, eq=False)
class Density:
    """A tree of boxes with what its nodes hold; inside of a leaf that is spread by the measures.

    Along every axis the nodes of one level have stretches that are the same or apart.
    """

    nodes: BoxNodes
    measures: tuple[Measure, ...]
    held: Held

    @staticmethod
    def of(
        nodes: BoxNodes,
        measures: Sequence[Measure],
        values: Floats,
        variances: Floats,
        *,
        doubted: bool = False,
    ) -> Density:
        """The density of leaves with these values >= 0; every other node holds the sum of its leaves.

        What a leaf holds if it is cut may be its value or, if that is `doubted`, as much more as its
        variance says.
        """
        sums = summed_up(families_of(nodes), values)
        squares = sums**2 + variances if doubted else sums**2
        return Density(nodes, tuple(measures), Held(sums, variances, squares))

    @cached_property
    def families(self) -> list[Families]:
        """Every level below the root, from the root down."""
        return families_of(self.nodes)

    @cached_property
    def stretches(self) -> tuple[Stretches, ...]:
        """The nodes along each axis."""
        return Stretches.along(self.measures, self.nodes.lows, self.nodes.highs)

    @cached_property
    def parents(self) -> Ints:
        """The parent of each node; the root's is the root."""
        below = [family.parents.repeat(family.sizes) for family in self.families]
        return np.concatenate([np.zeros(1, np.int64), *below])

    @property
    def total(self) -> float:
        """The count of everything."""
        return float(self.held.values[0])

    def edges(self, axis: int, leaves: Ints) -> UInts:
        """The ends of pieces of an axis inside of which all these leaves are evenly spread.

        They are where a leaf begins or ends, and where the measure of the axis bends.
        """
        own, curve = self.stretches[axis], self.measures[axis].curve
        lows, bends = own.lows[leaves], own.highs[:1] if curve is None else curve.ends
        return np.unique(np.concatenate([own.highs[leaves], lows[lows > 0] - np.uint64(1), bends]))

    def onto(self, axes: Sequence[int]) -> Density:
        """The tree as it looks along some of its axes: boxes that look the same there are taken together.

        Its answers to questions about these axes alone are those of the whole tree, to the last term.
        Nodes of one level that have the same box are one node. If some of them are leaves and others
        are not, the leaves stay together as one more child of that node, with its box.
        """
        chosen = list(axes)
        level = _Merged.of(self, chosen)
        levels = [level]
        while bool(level.expanded.any()):
            level = level.below(self, chosen)
            levels.append(level)
        return Density(
            _joined(levels),
            tuple(self.measures[axis] for axis in chosen),
            Held.join([each.sums for each in levels]),
        )


@final
@dataclass(frozen=True, eq=False)
class _Merged:
    """Members of one level, those with the same box merged into groups.

    A member is an expanded node of the tree, or leaves that are taken together (their node is -1).
    """

    lows: Corners
    highs: Corners
    groups: Ints
    nodes: Ints
    held: Held
    parents: Ints
    """The group above each group."""

    @staticmethod
    def of(density: Density, axes: list[int]) -> _Merged:
        """The root alone."""
        zero = np.zeros(1, np.int64)
        expanded = np.where(density.nodes.leaves[:1], -1, zero)
        corners = (density.nodes.lows[:1, axes], density.nodes.highs[:1, axes])
        return _Merged(*corners, zero, expanded, density.held.some(zero), zero)

    @cached_property
    def expanded(self) -> Bools:
        """Which groups have a member that is expanded."""
        return np.bincount(self.groups, self.nodes >= 0, minlength=len(self.lows)) > 0

    @cached_property
    def sums(self) -> Held:
        """What each group holds."""
        return self.held.gathered(self.groups, len(self.lows))

    def below(self, density: Density, axes: list[int]) -> _Merged:
        """The children of the members, and the leaves of groups that are expanded, put in groups."""
        tree, split = density.nodes, self.nodes >= 0
        above = self.nodes[split]
        children = children_of(tree, above)
        left = ~split & self.expanded[self.groups]
        parents = np.concatenate([np.repeat(self.groups[split], tree.children[above]), self.groups[left]])
        lows = np.concatenate([tree.lows[children][:, axes], self.lows[self.groups[left]]])
        highs = np.concatenate([tree.highs[children][:, axes], self.highs[self.groups[left]]])
        nodes = np.concatenate([np.where(tree.leaves[children], -1, children), self.nodes[left]])
        first, groups = _alike(parents, lows, highs)
        held = Held.join([density.held.some(children), self.held.some(left)])
        level = _Merged(lows[first], highs[first], groups, nodes, held, parents[first])
        return level._condensed()

    def _condensed(self) -> _Merged:
        """The leaves of each group as one member."""
        leaves = self.nodes < 0
        there, member = np.unique(self.groups[leaves], return_inverse=True)
        held = Held.join([self.held.some(~leaves), self.held.some(leaves).gathered(member, there.size)])
        return _Merged(
            self.lows,
            self.highs,
            np.concatenate([self.groups[~leaves], there]),
            np.concatenate([self.nodes[~leaves], np.full(there.size, -1)]),
            held,
            self.parents,
        )


def _alike(parents: Ints, lows: Corners, highs: Corners) -> tuple[Ints, Ints]:
    """Members with the same parent and the same box: the first of each group, and the group of each.

    Groups are in the order of their parents.
    """
    keys = [*highs.T, *lows.T, parents]
    order = np.lexsort(keys)
    new = changes(*(key[order] for key in keys))
    groups = np.empty(order.size, np.int64)
    groups[order] = np.cumsum(new) - 1
    return order[new], groups


def _joined(levels: Sequence[_Merged]) -> BoxNodes:
    sizes = np.array([len(level.lows) for level in levels])
    children = [
        np.bincount(below.parents, minlength=size) for below, size in zip(levels[1:], sizes, strict=False)
    ]
    counts = np.concatenate([*children, np.zeros(int(sizes[-1]), np.int64)]).astype(np.int64)
    return BoxNodes(
        levels=sizes,
        lows=np.concatenate([level.lows for level in levels]),
        highs=np.concatenate([level.highs for level in levels]),
        starts=1 + np.cumsum(counts) - counts,
        children=counts,
    )
