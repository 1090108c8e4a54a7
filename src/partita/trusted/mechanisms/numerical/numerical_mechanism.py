"""What every mechanism for numerical queries is made with, and how those that weigh rows do it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.numbers import freeze, frozen
from partita.public.axis.curve.curve import Ints, UInts
from partita.public.workload.decomposition.decomposed import Decomposed, Method, checked_method, space_of
from partita.public.workload.decomposition.decomposition import spread_masses
from partita.public.workload.decomposition.graded import Graded
from partita.public.workload.decomposition.space import DecomposedSpace, Space, grade_factors
from partita.public.workload.numerical.numerical_reading import MOST_CELLS, MOST_GRADED
from partita.public.workload.release.change import Change
from partita.public.workload.weights.budget import MOST_ROUNDS, WeightsBudget
from partita.public.workload.weights.measured import Weighed
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.mechanisms.weights.weights_rounds import scales_of, warm_axes, weigh
from partita.trusted.mechanisms.workload.workload_mechanism import WorkloadMechanism
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.secret.points import PointCounts

_FEWER_CELLS: Final = (
    "choose coarser domains, or ask for products of classes and one value, "
    "such as ranges(age) * value(income), which are taken apart by themselves"
)


@frozen(kw_only=True)
class NumericalMechanism(WorkloadMechanism, ABC):
    """A mechanism for queries that add up weights of rows, none of them negative."""

    def _check_weights(self) -> None:
        """Refuse queries that ask nothing, and negative weights."""
        super()._check_weights()
        rule, fix = "must have no negative weights", "ask for positive and negative parts by themselves"
        check(self.operator.lowest >= 0, "queries", rule, given=self.queries, fix=fix)


@frozen(kw_only=True)
class WeighingMechanism(NumericalMechanism, ABC):
    """A mechanism that answers graded queries by private multiplicative weights.

    `decomposition` says over which cells: "none" is the universe itself; "hat" and "binary" are classes by
    knots, for queries that are a product of classes and one value; "auto" is "hat" for these and "none" for
    others. `rounds` fixes the number of rounds, which else follows from the noisy number of rows.
    """

    decomposition: Method = "auto"
    rounds: int | None = None

    def _convert(self) -> None:
        super()._convert()
        freeze(self, decomposition=checked_method(self.decomposition))
        self._check_sizes()

    @property
    @abstractmethod
    def widest(self) -> Graded:
        """The graded queries, if every row had the largest weight of the universe."""

    @property
    def weighing(self) -> Fraction:
        """The epsilon of the weights."""
        return self.epsilon

    @property
    def budget(self) -> WeightsBudget:
        """How it is shared among the total, the first guess and the rounds."""
        return WeightsBudget(epsilon=self.weighing, delta=self.delta, rounds=self.rounds)

    @property
    def uses_delta(self) -> bool:
        """Whether some number of rounds is paid for by another theorem than the pure one."""
        return self.budget.uses_delta(len(self.widest), len(warm_axes(self.space.shape, self.budget)))

    @cached_property
    def space(self) -> Space:
        """The cells that are weighed."""
        return space_of(self.operator, self.decomposition)

    @property
    def change(self) -> Change:
        """By how much neighbours differ, in mass."""
        return Change.of(self.neighbors, contributions=self.contributions, row=self.space.most)

    @cached_property
    def decomposed(self) -> Decomposed | None:
        """The queries taken apart into classes and a value, where the cells are of these."""
        return Decomposed.of(self.operator) if isinstance(self.space, DecomposedSpace) else None

    def masses(self, points: PointCounts) -> NDArray[Any]:
        """The mass in each cell: counts of rows, or values laid on knots."""
        if self.decomposed is None or not isinstance(self.space, DecomposedSpace):
            return self.counts(points)
        return points.folded(partial(_masses, self.decomposed, self.space))

    def weighed(self, graded: Graded, points: PointCounts, session: Noise) -> Weighed:
        """The graded queries answered by multiplicative weights, for `weighing` between neighbours."""
        return weigh(
            self.masses(points),
            operator=graded,
            unit=self.space.unit,
            change=self.change,
            budget=self.budget,
            session=session,
        )

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error if rows reach the largest weight of the universe; measured."""
        budget, axes = self.budget, len(warm_axes(self.space.shape, self.budget))
        cost = budget.cost(rows, self._rounds(rows), axes, self.change.of_cells / self.space.unit)
        return cost * float(np.sqrt(np.mean(grade_factors(self.space.whole) ** 2)))

    def predicted_numbers(self, rows: int) -> int:
        """The total, the sums along axes, and two numbers for each round."""
        return 1 + sum(self.space.shape) + 2 * self._rounds(rows)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """The number of rounds T and the epsilon of each look."""
        rounds = self._rounds(rows)
        rates = self.budget.rates(rounds, len(warm_axes(self.space.shape, self.budget)))
        cells = " x ".join(map(str, self.space.shape))
        return (
            f"Multiplicative weights over {cells} cells and {len(self.widest)} graded queries.",
            f"T = {rounds} rounds, epsilon0 = {float(rates.selection):.6g} to select, "
            f"{float(rates.answer):.6g} to answer ({rates.rule} composition).",
        )

    def _rounds(self, rows: int) -> int:
        axes = len(warm_axes(self.space.shape, self.budget))
        return self.budget.rounds_for(rows, len(self.widest), axes, self.change.of_cells / self.space.unit)

    def _check_sizes(self) -> None:
        """Refuse what cannot be held."""
        cells, graded = math.prod(self.space.shape), self.space.graded
        if cells > MOST_CELLS:
            raise _too_many("universe", cells, f"at most {MOST_CELLS} cells are weighed", _FEWER_CELLS)
        if graded > MOST_GRADED:
            rule = f"at most {MOST_GRADED} queries are weighed, all thresholds counted"
            raise _too_many("queries", graded, rule, 'ask for fewer, or use "composition"')

    def _check(self) -> None:
        for rounds in (self.budget.rounds or 1, self.budget.rounds or MOST_ROUNDS):
            self._check_scales(rounds)

    def _check_scales(self, rounds: int) -> None:
        rates = self.budget.rates(rounds, len(warm_axes(self.space.shape, self.budget)))
        scales = scales_of(rates, self.change, self.space.whole)
        for scale in (scales.total, scales.marginal, scales.selection, scales.answer):
            check_scale(scale, self.epsilon)


def _masses(decomposed: Decomposed, space: DecomposedSpace, places: UInts, counts: Ints) -> NDArray[Any]:
    """Values laid on the knots of their classes."""
    cells, values = decomposed.cells(places), decomposed.values(places)
    table = spread_masses(space.decomposition, cells, values, counts, math.prod(space.classes.shape))
    return table.reshape(space.shape)


def _too_many(name: str, given: int, rule: str, fix: str) -> InvalidParameter:
    return InvalidParameter(name, f"must be such that {rule}", given=given, fix=fix)
