"""Least squares over the leaves of a tree, exactly: once up from the leaves, once down from the root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.cached import cached_property
from partita.inference.curve import Floats
from partita.inference.tree_shape import Families, TreeShape

__all__ = ["TreeSolver"]

_BATCH: Final = 2**18


class _Level(NamedTuple):
    """One level's part of the elimination: how far each child gives way, and all children of a parent."""

    family: Families
    child: Floats
    together: Floats


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
