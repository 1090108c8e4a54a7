"""Guaranteed bounds on linear questions, from the ranges of nodes and from the last looks at leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.axis.spending_tree.node_ranges import NodeRange, seen
from partita.public.axis.tree_solver.tree_looks import TreeLooks
from partita.public.bounds.linear_ranges import Combination
from partita.public.boxes.cover.asked import Asked, Layer
from partita.public.boxes.density.density import Density
from partita.public.boxes.engine.widest_miss import widest_miss, widest_miss_of_looks
from partita.public.boxes.plan.families import spans_of


@final
@dataclass(frozen=True, eq=False)
class BoxBounds:
    """What the looks at the nodes of a tree say for certain; a look of one unit has the rate `unit`.

    The proofs are in docs/proofs/boxes_bounds.md.
    """

    density: Density
    looks: TreeLooks
    unit: float
    _last_ranges: dict[float, NodeRange] = field(default_factory=dict, init=False, repr=False)

    def ranges(self, beta: float) -> NodeRange:
        """The counts of all nodes lie in their ranges at once with probability 1 - beta.

        The last ones are remembered: who looks for a quantile asks with the same beta again and again.
        """
        if beta not in self._last_ranges:
            density = self.density
            self._last_ranges.clear()
            self._last_ranges[beta] = seen(
                density.families, len(density.nodes.lows), self.looks, self.unit, beta
            )
        return self._last_ranges[beta]

    def bounds(self, asked: Asked, beta: float) -> tuple[float, float]:
        """What the ranges of nodes allow, and what the last looks at leaves do, with half of beta each."""
        nodes, leaves = ranged(asked, self.ranges(beta / 2)), self._last(asked, beta / 2)
        return max(nodes[0], leaves[0]), min(nodes[1], leaves[1])

    def error(self, beta: float) -> float:
        """No box at all misses the truth by more with probability 1 - beta: by nodes and by last looks."""
        last = self.looks.last(len(self.density.nodes.lows))
        looks, rates = self.looks.values[last], self.looks.rates(self.unit)[last]
        nodes = widest_miss(self.density, self.ranges(beta / 2))
        return min(nodes, widest_miss_of_looks(self.density, looks, rates, beta / 2))

    def _last(self, asked: Asked, beta: float) -> tuple[float, float]:
        """The last look at a leaf decided nothing: given all others, those are independent noisy counts."""
        low = self._combined(self._weights(asked.nodes, asked.coefficients.least))
        high = self._combined(self._weights(asked.nodes, asked.coefficients.most))
        return low.value - low.reach(beta / 2), high.value + high.reach(beta / 2)

    def _combined(self, weights: Floats) -> Combination:
        used = np.flatnonzero(weights)
        look = self._last_looks[used]
        value = float(weights[used] @ self.looks.values[look])
        return Combination(value, weights[used], self.looks.rates(self.unit)[look])

    def _weights(self, nodes: Ints, each: Floats) -> Floats:
        """For every leaf the number of the node that it is in, of nodes that make up the tree."""
        first, behind = (end[nodes] for end in self._spans)
        order = np.argsort(first)
        return np.repeat(each[order], (behind - first)[order])

    @cached_property
    def _spans(self) -> tuple[Ints, Ints]:
        return spans_of(self.density.nodes, self.density.families)

    @cached_property
    def _last_looks(self) -> Ints:
        """The last look at each leaf, in the order of `spans_of`."""
        leaves = np.flatnonzero(self.density.nodes.leaves)
        ordered = leaves[np.argsort(self._spans[0][leaves])]
        return self.looks.last(len(self.density.nodes.lows))[ordered]


def ranged(asked: Asked, ranges: NodeRange) -> tuple[float, float]:
    """Bounds on a question if every node is in its range; asked either way round, both hold."""
    low, high = _ranged(asked, ranges)
    if bool((asked.coefficients.least >= 0.0).all()):
        return low, high
    other = _ranged(asked.negated, ranges)
    return max(low, -other[1]), min(high, -other[0])


def _ranged(asked: Asked, ranges: NodeRange) -> tuple[float, float]:
    """The answer's part in each node, and the rest of its count, from the leaves up to the root.

    Of a node that is split its children tell both, and since both together are the node, each tells
    something about the other.
    """
    part, rest = _own(asked.layers[-1], ranges)
    for layer, below in zip(asked.layers[-2::-1], asked.layers[:0:-1], strict=True):
        starts = below.families(layer, asked.density)
        sides = [NodeRange(*(np.add.reduceat(end, starts) for end in side)) for side in (part, rest)]
        part, rest = _own(layer, ranges)
        whole = ranges.at(layer.nodes[layer.split])
        for side, mine, other in ((part, *sides), (rest, *reversed(sides))):
            side.low[layer.split], side.high[layer.split] = mine.within(whole.minus(other))
    return float(part.low[0]), float(part.high[0])


def _own(layer: Layer, ranges: NodeRange) -> tuple[NodeRange, NodeRange]:
    """Part and rest as far as the nodes of a layer tell themselves."""
    least, most, _, _ = layer.coefficients
    own = ranges.at(layer.nodes)
    return _times(least, most, own), _times(1.0 - most, 1.0 - least, own)


def _times(least: Floats, most: Floats, counts: NodeRange) -> NodeRange:
    """Counts in their ranges times coefficients in theirs."""
    return NodeRange(
        np.minimum(least * counts.low, least * counts.high), np.maximum(most * counts.low, most * counts.high)
    )
