"""Guaranteed intervals for the counts of a released tree's nodes, whatever the looks decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np

from partita.public.axis.curve.curve import Bools, Floats
from partita.public.axis.spending_tree.node_ranges import NodeRange, seen
from partita.public.axis.tree_solver.tree_looks import TreeLooks
from partita.public.axis.tree_solver.tree_shape import Families, TreeShape
from partita.public.bounds.signed_ranges import SignedRange, laid_over


@final
@dataclass(frozen=True, eq=False)
class TreeIntervals:
    """The count of every node lies between `low` and `high`, all at once, with probability 1 - beta.

    Each node's interval is what all its looks allow, tightened by what its relatives allow.
    """

    shape: TreeShape
    low: Floats
    high: Floats

    @staticmethod
    def of(shape: TreeShape, looks: TreeLooks, unit: float, beta: float) -> TreeIntervals:
        """The intervals of all looks. The total is no look: it may have decided that there is a tree."""
        return TreeIntervals(shape, *seen(shape.families, shape.first.size, looks, unit, beta))

    def signed_sum(self, terms: Iterable[SignedRange]) -> tuple[float, float]:
        """Bounds on a signed sum of ranges; cells that are added and taken away alike are left out."""
        low = high = 0.0
        for first, behind, factor in laid_over((low, high + 1, sign) for low, high, sign in terms):
            ends = [factor * end for end in self.between(first, behind - 1)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def between(self, first: int, last: int) -> tuple[float, float]:
        """Bounds on the count of the cells first, ..., last.

        A node inside of them counts whole and a leaf that they cut with anything up to its upper end.
        What is known about the cells outside of them bounds the rest from the other side.
        """
        start, end = np.uint64(first), np.uint64(last)
        inside = (self.shape.first >= start) & (self.shape.last <= end)
        outside = (self.shape.last < start) | (self.shape.first > end)
        part, rest = self._cut(inside, outside), self._cut(outside, inside)
        for family in reversed(self.shape.families):
            cut = ~(inside | outside)[family.parents]
            self._lift(family, cut, part, rest)
        return float(part.low[0]), float(part.high[0])

    def prefixes(self) -> tuple[Floats, Floats]:
        """Bounds on the count before each leaf, in order, and on the count of all cells at the end."""
        before = NodeRange(np.zeros_like(self.low), np.zeros_like(self.high))
        for family in self.shape.families:
            for end, own in zip(before, self._elder(family), strict=True):
                end[family.nodes] = family.spread(end[family.parents]) + own
        leaves = self.shape.leaves
        return np.append(before.low[leaves], self.low[0]), np.append(before.high[leaves], self.high[0])

    def _elder(self, family: Families) -> NodeRange:
        """Bounds on the count of the siblings before each child."""
        own = NodeRange(self.low[family.nodes], self.high[family.nodes])
        whole = NodeRange(self.low[family.parents], self.high[family.parents])
        sums = own.summed(family._replace(nodes=slice(None)))
        before = NodeRange(*(_running(family, ends) for ends in own))
        behind = NodeRange(
            *(family.spread(all_) - ends - each for all_, ends, each in zip(sums, before, own, strict=True))
        )
        rest = NodeRange(*(family.spread(end) for end in whole)).minus(own).minus(behind)
        return before.within(rest)

    def _cut(self, inside: Bools, outside: Bools) -> NodeRange:
        """The part of each node that lies inside, as far as its own interval tells."""
        return NodeRange(np.where(inside, self.low, 0.0), np.where(outside, 0.0, self.high))

    def _lift(self, family: Families, cut: Bools, part: NodeRange, rest: NodeRange) -> None:
        """For parents that are cut: what their children tell of each side, and each side of the other."""
        parents = family.parents[cut]
        whole = NodeRange(self.low[parents], self.high[parents])
        sides = [NodeRange(*(end[cut] for end in side.summed(family))) for side in (part, rest)]
        for side, own, other in ((part, *sides), (rest, *reversed(sides))):
            side.low[parents], side.high[parents] = own.within(whole.minus(other))


def _running(family: Families, values: Floats) -> Floats:
    """The sum of the values before each child in its family."""
    before = np.cumsum(values) - values
    return before - family.spread(before[family.starts])
