"""What is known about the leaves of a released tree, as linear evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from partita.public.axis.curve.curve import Floats, UInts
from partita.public.axis.tree_solver.tree_solver import TreeSolver
from partita.public.bounds.linear_ranges import Combination, Position
from partita.public.bounds.posterior import Posterior


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LastLooks:
    """The last look at each leaf, in the order of their cells: `values` with noise of the `rates`.

    A leaf spends all that it has left on its last look, so that look decided nothing: given all
    others, the last looks are independent noisy counts of leaves that are fixed.
    """

    ends: UInts
    values: Floats
    rates: Floats

    def combined(self, weights: Floats) -> Combination:
        """The weighted sum of the last looks."""
        return Combination(float(weights @ self.values), weights, self.rates)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LeafModel:
    """How the solved leaves vary, by the least squares that put all looks together."""

    posterior: Posterior
    solver: TreeSolver

    def variance(self, weights: Floats) -> float:
        """The variance of the weighted sum of the leaves."""
        return self.posterior.variance(weights)

    def range_variances(self, first: Position, last: Position) -> Floats:
        """The variances of sums of the leaves between two positions."""
        return self.solver.range_variances(first, last)
