"""The looks at the nodes of a tree: noisy counts in the order in which they were released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.axis.tree_solver.spending_rule import UNITS
from partita.public.axis.tree_solver.tree_shape import Families
from partita.public.base.released import damaged
from partita.public.bounds.tails import half_width, laplace_variances


class Tree(Protocol):
    """Nodes that were looked at: which of them are cut further, and each level as children of its parents."""

    @property
    def expanded(self) -> Bools: ...

    @property
    def families(self) -> list[Families]: ...


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

    def rates(self, unit: float) -> Floats:
        """The inverse of the noise scale of each look."""
        return np.asarray(self.units.astype(np.float64) * unit)

    def means(self, count: int, unit: float) -> tuple[Floats, Floats]:
        """The mean of the looks at each of `count` nodes, and its variance; infinite where there is none."""
        precisions = 1.0 / laplace_variances(self.rates(unit))
        precision, weighted = np.zeros(count), np.zeros(count)
        np.add.at(precision, self.nodes, precisions)
        np.add.at(weighted, self.nodes, precisions * self.values)
        seen = precision > 0
        means = np.divide(weighted, precision, out=np.zeros(count), where=seen)
        return means, np.divide(1.0, precision, out=np.full(count, np.inf), where=seen)

    def last(self, count: int) -> Ints:
        """The last look at each of `count` nodes; -1 where there was none."""
        last = np.full(count, -1)
        last[self.nodes] = np.arange(self.nodes.size)
        return last

    def first(self, count: int) -> Ints:
        """The first look at each of `count` nodes; -1 where there was none."""
        first = np.full(count, -1)
        first[self.nodes[::-1]] = np.arange(self.nodes.size)[::-1]
        return first

    def spent(self, count: int, families: Sequence[Families]) -> Ints:
        """The units that were spent on the path from the root down to each of `count` nodes."""
        spent = np.zeros(count, dtype=np.int64)
        np.add.at(spent, self.nodes, self.units)
        for family in families:
            spent[family.nodes] += spent[family.parents].repeat(family.sizes)
        return spent

    def reach(self, unit: float, beta: float) -> Floats:
        """How far each look may lie from its count; all of them are right with probability 1 - beta.

        Step l with K looks gives each a share beta 6/(pi^2 l^2 K), known before the step is taken, and
        the shares add up to at most beta.
        """
        at = np.repeat(np.arange(1, self.steps.size + 1), self.steps)
        looks = np.repeat(self.steps, self.steps)
        return half_width(self.rates(unit), np.log(beta * 6 / (math.pi * at) ** 2 / looks))

    def check(self, tree: Tree, *, first: int = 1) -> None:
        """Refuse looks that are not of this tree, or that spend more than the budget of a path.

        Every node from `first` on must have been looked at, and none before it.
        """
        count, looks = tree.expanded.size, self.nodes.size
        if not self.units.size == self.noisy.size == looks or bool((self.steps < 1).any()):
            raise damaged("looks", "must be as many of each kind")
        if bool((self.steps > looks).any()) or self.steps.sum() != looks:
            raise damaged("looks", "must be taken in the steps given")
        if not looks or int(self.nodes.min()) < first or int(self.nodes.max()) >= count:
            raise damaged("looks", "must be at nodes of the tree")
        if int(self.units.min()) < 1 or int(self.units.max()) > UNITS:
            raise damaged("looks", f"must cost between 1 and {UNITS} units")
        self._check_paths(tree, first)

    def _check_paths(self, tree: Tree, first: int) -> None:
        if bool((self.first(tree.expanded.size)[first:] < 0).any()):
            raise damaged("looks", "must be at every node")
        if int(self.spent(tree.expanded.size, tree.families).max()) > UNITS:
            raise damaged("looks", f"must cost at most {UNITS} units on every path")
