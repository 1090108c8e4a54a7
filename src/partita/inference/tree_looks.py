"""The looks at the nodes of a tree: noisy counts in the order in which they were released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.errors import InvalidRelease
from partita.inference.curve import Floats
from partita.inference.spending_plan import UNITS
from partita.inference.tree_shape import TreeShape

__all__ = ["TreeLooks"]

Ints = NDArray[np.int64]

_ROUNDING: Final = 1e-9


@final
@dataclass(frozen=True, eq=False)
class TreeLooks:
    """Looks at `nodes` that cost `units` each and gave `noisy` counts.

    They were taken in steps, all looks of a step at once: `steps` says how many each step took.
    What is looked at in a step, and with how many units, was decided by the steps before.
    """

    steps: Ints
    nodes: Ints
    units: Ints
    noisy: NDArray[Any]

    @staticmethod
    def step(nodes: Ints, units: Ints, noisy: NDArray[Any]) -> TreeLooks:
        """The looks of one step."""
        return TreeLooks(np.array([nodes.size]), nodes, units, noisy)

    @staticmethod
    def join(steps: Sequence[TreeLooks]) -> TreeLooks:
        """Steps, one after another."""
        return TreeLooks(
            np.concatenate([each.steps for each in steps]),
            np.concatenate([each.nodes for each in steps]),
            np.concatenate([each.units for each in steps]),
            np.concatenate([each.noisy for each in steps]),
        )

    @cached_property
    def values(self) -> Floats:
        """The noisy counts as floats."""
        return self.noisy.astype(np.float64)

    @cached_property
    def squares(self) -> Floats:
        """The squared units of each look, the inverse of its variance but for a factor."""
        return self.units.astype(np.float64) ** 2

    def rates(self, unit: float) -> Floats:
        """The inverse of the noise scale of each look."""
        return np.asarray(self.units.astype(np.float64) * unit)

    def means(self, count: int) -> tuple[Floats, Floats]:
        """The mean of the looks at each of `count` nodes, and the sum of their squared units."""
        squares, weighted = np.zeros(count), np.zeros(count)
        np.add.at(squares, self.nodes, self.squares)
        np.add.at(weighted, self.nodes, self.squares * self.values)
        return np.divide(weighted, squares, out=np.zeros(count), where=squares > 0), squares

    def last(self, count: int) -> Ints:
        """The last look at each of `count` nodes; -1 where there was none."""
        last = np.full(count, -1)
        last[self.nodes] = np.arange(self.nodes.size)
        return last

    def reach(self, unit: float, beta: float) -> Floats:
        """How far each look may lie from its count; all of them are right with probability 1 - beta.

        Step l with K looks gives each a share beta 6/(pi^2 l^2 K), known before the step is taken, and
        the shares add up to at most beta. A look of rate e = units * unit, a = exp(-e), misses by more
        than h with probability 2 a^(h+1)/(1+a).
        """
        at = np.repeat(np.arange(1, self.steps.size + 1), self.steps)
        looks = np.repeat(self.steps, self.steps)
        return half_width(self.rates(unit), beta * 6 / (math.pi * at) ** 2 / looks)

    def check(self, shape: TreeShape) -> None:
        """Refuse looks that are not of this tree, or that spend more than the budget of a path."""
        count, looks = shape.first.size, self.nodes.size
        if not self.units.size == self.noisy.size == looks or bool((self.steps < 1).any()):
            raise _broken("must be as many of each kind")
        if bool((self.steps > looks).any()) or self.steps.sum() != looks:
            raise _broken("must be taken in the steps given")
        if not looks or int(self.nodes.min()) < 1 or int(self.nodes.max()) >= count:
            raise _broken("must be at nodes of the tree")
        if int(self.units.min()) < 1 or int(self.units.max()) > UNITS:
            raise _broken(f"must cost between 1 and {UNITS} units")
        self._check_paths(shape)

    def _check_paths(self, shape: TreeShape) -> None:
        spent = np.zeros(shape.first.size, dtype=np.int64)
        np.add.at(spent, self.nodes, self.units)
        if bool((spent[1:] < 1).any()):
            raise _broken("must be at every node")
        for family in shape.families:
            spent[family.nodes] += spent[family.parents].repeat(family.sizes)
        if int(spent.max()) > UNITS:
            raise _broken(f"must cost at most {UNITS} units on every path")


def half_width(rates: Floats, beta: Floats) -> Floats:
    """The least integer h with P[|noise| > h] <= beta, for discrete Laplace noise of scale 1/rate."""
    needed = np.log(2.0 / (beta * (1.0 + np.exp(-rates)))) / rates
    return np.maximum(np.ceil(needed * (1 + _ROUNDING)) - 1.0, 0.0)


def _broken(rule: str) -> InvalidRelease:
    return InvalidRelease("looks", rule, fix="ask the publisher for the file again")
