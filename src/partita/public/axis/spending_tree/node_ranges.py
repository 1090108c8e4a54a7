"""Guaranteed ranges for the counts of a tree's nodes, from single looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partita.public.axis.curve.curve import Floats, Ints
from partita.public.axis.tree_solver.tree_looks import TreeLooks
from partita.public.axis.tree_solver.tree_shape import Families


class NodeRange(NamedTuple):
    """A count at least `low` and at most `high`, for each of several nodes."""

    low: Floats
    high: Floats

    def at(self, nodes: Ints | slice) -> NodeRange:
        """Of some of the nodes."""
        return NodeRange(self.low[nodes], self.high[nodes])

    def within(self, other: NodeRange) -> NodeRange:
        """Both hold."""
        return NodeRange(np.maximum(self.low, other.low), np.minimum(self.high, other.high))

    def minus(self, other: NodeRange) -> NodeRange:
        """What remains if a part is taken away."""
        return NodeRange(self.low - other.high, self.high - other.low)

    def summed(self, family: Families) -> NodeRange:
        """The sums over the children of each parent."""
        return NodeRange(family.sum(self.low[family.nodes]), family.sum(self.high[family.nodes]))


def seen(families: Sequence[Families], count: int, looks: TreeLooks, unit: float, beta: float) -> NodeRange:
    """The range of each of `count` nodes, all right at once with probability 1 - beta.

    Looks decide what is looked at next, so no combination of looks has a known law; but a single look
    has one given those before it. A range is what all looks at a node allow, and what `tighten` adds.
    """
    reach = looks.reach(unit, beta)
    low, high = np.zeros(count), np.full(count, np.inf)
    np.maximum.at(low, looks.nodes, looks.values - reach)
    np.minimum.at(high, looks.nodes, looks.values + reach)
    tighten(families, NodeRange(low, high))
    return NodeRange(low, np.maximum(low, high))


def tighten(families: Sequence[Families], ends: NodeRange) -> None:
    """Once upward, by the sum of the children, and once downward, by the parent less the siblings."""
    for family in reversed(families):
        parents = family.parents
        ends.low[parents], ends.high[parents] = ends.at(parents).within(ends.summed(family))
    for family in families:
        own = ends.at(family.nodes)
        whole = NodeRange(*(family.spread(end[family.parents]) for end in ends))
        siblings = NodeRange(*(family.spread(end) for end in ends.summed(family)))
        others = NodeRange(siblings.low - own.low, siblings.high - own.high)
        ends.low[family.nodes], ends.high[family.nodes] = own.within(whole.minus(others))
