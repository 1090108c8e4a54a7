"""Least squares over the leaves of a tree, exactly: once up from the leaves, once down from the root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.axis.tree_solver.tree_shape import Families, TreeShape
from partita.public.bounds.linear_ranges import Position

_BATCH: Final = 2**18


class _Level(NamedTuple):
    """One level's part of the elimination: how far each child gives way, and all children of a parent."""

    family: Families
    child: Floats
    together: Floats


class _Nodes(NamedTuple):
    """For every node: how far it gives way, its elder, its younger and all siblings, and its variance."""

    child: Floats
    elder: Floats
    younger: Floats
    together: Floats
    variance: Floats


class _Sides(NamedTuple):
    """One side of ranges, up to a node each: its part W there is weight X + something of that variance."""

    node: Ints
    weight: Floats
    variance: Floats

    def where(self, chosen: Bools) -> _Sides:
        """Some of them."""
        return _Sides(self.node[chosen], self.weight[chosen], self.variance[chosen])


@final
@dataclass(frozen=True, eq=False)
class TreeSolver:
    """Solves S x = right over the leaves of a tree, in the order of their cells.

    Every node has a `precision` for the sum X of the leaves below it, and an `affinity` to its siblings, one
    number in each family: x' S x is the sum of precision X^2 over all nodes and of
    affinity (X - mean of the siblings' X)^2.

    Given its own X, what is below a node costs h X^2 - 2 g X at least. From the leaves up, with
    k = h + affinity for each of b children and V the sum of their 1/k, a parent has
    h = precision + sum(h/k) / (b V) and g = sum(g/k) / V. From the root down, each child takes
    X = (g + l) / k, where l makes the children add up to their parent.
    """

    shape: TreeShape
    precision: Floats
    affinity: Floats

    def __call__(self, right: Floats) -> Floats:
        """The solution for each right side along the last axis, several at a time."""
        flat = right.reshape(-1, right.shape[-1])
        solved, together = np.empty_like(flat), max(1, _BATCH // flat.shape[1])
        for first in range(0, len(flat), together):
            rows = slice(first, first + together)
            solved[rows] = self._solved(flat[rows])
        return solved.reshape(right.shape)

    def range_variances(self, first: Position, last: Position) -> Floats:
        """The variance of the sum between two positions among the leaves, for each pair of positions.

        Given the sum X of a node, what is below it and the rest are independent, and its children vary by
        diag(c) - c c' / V, where c = 1/k. So both sides of a range climb from their leaves to the children
        of one node, and never subtract what they have added.
        """
        leaf = self.shape.leaves
        found = (last.share - first.share) ** 2 * self._nodes.variance[leaf[last.piece]]
        rows = np.flatnonzero(first.piece != last.piece)
        none = np.zeros(rows.size)
        low = _Sides(leaf[first.piece[rows]], 1.0 - first.share[rows], none)
        high = _Sides(leaf[last.piece[rows]], last.share[rows], none)
        for family in reversed(self.shape.families):
            met = self.shape.parents[low.node] == self.shape.parents[high.node]
            met &= np.minimum(low.node, high.node) >= family.nodes.start
            found[rows[met]] = self._joined(low.where(met), high.where(met))
            rows, low, high = rows[~met], low.where(~met), high.where(~met)
            low = self._lifted(low, self._nodes.younger, self._nodes.elder, family.nodes.start)
            high = self._lifted(high, self._nodes.elder, self._nodes.younger, family.nodes.start)
        return np.asarray(found)

    def _lifted(self, sides: _Sides, inside: Floats, outside: Floats, start: int) -> _Sides:
        """Sides that end in nodes from `start` on, up to their parents; siblings on one side are inside."""
        here = sides.node >= start
        node, weight, variance = sides.where(here)
        own, whole, rest = self._nodes.child[node], inside[node], outside[node]
        apart = own * whole * (1.0 - weight) ** 2 + rest * (weight**2 * own + whole)
        lifted = _Sides(sides.node.copy(), sides.weight.copy(), sides.variance.copy())
        lifted.node[here] = self.shape.parents[node]
        lifted.weight[here] = (weight * own + whole) / self._nodes.together[node]
        lifted.variance[here] = variance + apart / self._nodes.together[node]
        return lifted

    def _joined(self, low: _Sides, high: _Sides) -> Floats:
        """The variance of ranges from one child of a node to another one."""
        one, other = self._nodes.child[low.node], self._nodes.child[high.node]
        middle = np.maximum(self._nodes.elder[high.node] - self._nodes.elder[low.node] - one, 0.0)
        beside = self._nodes.elder[low.node] + self._nodes.younger[high.node]
        apart = beside * (low.weight**2 * one + middle + high.weight**2 * other)
        apart += middle * (one * (1.0 - low.weight) ** 2 + other * (1.0 - high.weight) ** 2)
        apart += one * other * (low.weight - high.weight) ** 2
        together = self._nodes.together[low.node]
        share = (low.weight * one + middle + high.weight * other) / together
        parent = self._nodes.variance[self.shape.parents[low.node]]
        return np.asarray(low.variance + high.variance + apart / together + share**2 * parent)

    def _solved(self, right: Floats) -> Floats:
        sums = self._down(self._up(right))
        return np.asarray(sums[:, self.shape.leaves])

    def _up(self, right: Floats) -> Floats:
        """g for every node."""
        pull = np.zeros((len(right), self.precision.size))
        pull[:, self.shape.leaves] = right
        for family, child, together in self._levels:
            moved = np.add.reduceat(pull[:, family.nodes] * child, family.starts, axis=1)
            pull[:, family.parents] = moved / together
        return pull

    def _down(self, pull: Floats) -> Floats:
        """X for every node."""
        sums = np.empty_like(pull)
        sums[:, 0] = pull[:, 0] / self._stiffness[0]
        for family, child, together in reversed(self._levels):
            lacking = sums[:, family.parents] / together - pull[:, family.parents]
            sums[:, family.nodes] = (pull[:, family.nodes] + lacking.repeat(family.sizes, axis=1)) * child
        return sums

    @property
    def _stiffness(self) -> Floats:
        """h for every node."""
        return self._eliminated[0]

    @property
    def _levels(self) -> list[_Level]:
        """The levels, from the last one up."""
        return self._eliminated[1]

    @cached_property
    def _eliminated(self) -> tuple[Floats, list[_Level]]:
        stiffness, levels = self.precision.copy(), []
        for family in reversed(self.shape.families):
            own = stiffness[family.nodes]
            child = 1.0 / (own + self.affinity[family.nodes])
            together = family.sum(child)
            stiffness[family.parents] += family.sum(own * child) / (family.sizes * together)
            levels.append(_Level(family, child, together))
        return stiffness, levels

    @cached_property
    def _nodes(self) -> _Nodes:
        """What ranges need to know about nodes; the siblings of one are summed up among themselves."""
        nodes = _Nodes(*(np.zeros(self.precision.size) for _ in _Nodes._fields))
        nodes.variance[0] = 1.0 / self._stiffness[0]
        for family, child, together in reversed(self._levels):
            places, there = family.table()
            siblings = np.where(there, child[places], 0.0)
            own, whole = family.nodes, family.spread(together)
            nodes.child[own], nodes.together[own] = child, whole
            nodes.elder[own] = _before(siblings)[there]
            nodes.younger[own] = _before(siblings[:, ::-1])[:, ::-1][there]
            share, above = child / whole, family.spread(nodes.variance[family.parents])
            nodes.variance[own] = share * (nodes.elder[own] + nodes.younger[own]) + share**2 * above
        return nodes


def _before(rows: Floats) -> Floats:
    """The sum of what stands before each number in its row."""
    return np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows[:, :-1], axis=1)], axis=1)
