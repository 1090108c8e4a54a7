"""Private multiplicative weights, offline: many linear queries from one synthetic distribution [HLM12]."""

from __future__ import annotations

from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, final

from partita.errors.checks import check
from partita.numbers import Exact, freeze, frozen, parameter
from partita.public.workload.release.change import Change
from partita.public.workload.weights.budget import MOST_ROUNDS, WeightsBudget
from partita.public.workload.weights.multiplicative_weights import WeightsRelease
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.mechanisms.weights.weights_rounds import planned, scales_of, warm_axes, weigh
from partita.trusted.mechanisms.workload.workload_mechanism import WorkloadMechanism
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts

_MOST_CELLS: Final = 2**27
_MANY_CELLS: Final = 2**24
_SECONDS_PER_CELL: Final = 3.7e-7
"""Measured with NumPy: a round over a million cells takes 0.12 to 0.37 seconds; the longest is told."""

_CALIBRATION: Final = 0.5
"""Measured errors over what the budget expects: on random ranges about this, within a factor of three."""


@final
@frozen(kw_only=True)
class MultiplicativeWeights(WorkloadMechanism):
    """Publish once; answer many linear queries of any kind from one synthetic distribution over all cells.

    Guarantee: epsilon-DP, pure; (epsilon, delta)-DP by zero-concentrated accounting if delta > 0. [HLM12]
    Error:     measured in every release: with probability 1 - beta no answer misses by more than error(beta);
               O(n^(2/3) (log k)^(1/2) (log |X|)^(1/6) / epsilon^(1/3)) for the paper's version.
    Proof:     docs/proofs/multiplicative_weights.md (integer scores, warm start, measured bounds)

    It measures the total, sums along each axis in bins, and then in every round the query that its guess
    answers worst, chosen with noise. `rounds` and the `warm` share of the sums along axes are chosen from
    public facts and the noisy total unless they are given. `arrays` is an array of the library to compute
    with, on its device; noise and true answers stay with NumPy.
    """

    name: ClassVar[str] = "weights"

    rounds: int | None = field(default=None, repr=False)
    warm: Exact = parameter(default=Fraction(3, 10), repr=False)
    budget: WeightsBudget = field(init=False)
    arrays: Any = field(default=None, repr=False, compare=False)

    def _convert(self) -> None:
        super()._convert()
        budget = WeightsBudget(epsilon=self.epsilon, delta=self.delta, rounds=self.rounds, warm=self.warm)
        freeze(self, rounds=budget.rounds, warm=budget.warm, budget=budget)

    def _return_delta(self) -> None:
        super()._return_delta()
        freeze(self, budget=replace(self.budget, delta=self.delta))

    def _check(self) -> None:
        rule = f"must have at most {_MOST_CELLS} cells"
        fix = 'choose coarser domains or fewer columns, or use "linear" or "composition"'
        check(self.universe.size <= _MOST_CELLS, "universe", rule, given=self.universe.size, fix=fix)
        for rounds in (1, self.budget.rounds or MOST_ROUNDS):
            scales = scales_of(self.budget.rates(rounds, self._axes), self.change, self.operator)
            for scale in (scales.total, scales.marginal, scales.selection, scales.answer):
                check_scale(scale, self.epsilon)

    @property
    def uses_delta(self) -> bool:
        """Whether some number of rounds is paid for by another theorem than the pure one."""
        return self.budget.uses_delta(len(self.operator), self._axes)

    @cached_property
    def change(self) -> Change:
        """What neighbours differ by."""
        return Change.of(self.neighbors, contributions=self.contributions)

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> WeightsRelease:
        """Measure the total, the axes and the rounds; the rest is post-processing."""
        counts = self.counts(self.fitting(points))
        session = noise.session()
        weighed = weigh(
            counts,
            operator=self.operator,
            unit=1,
            change=self.change,
            budget=self.budget,
            session=session,
            arrays=self.arrays,
        )
        return WeightsRelease(
            queries=self.queries,
            universe=self.universe,
            weighed=weighed,
            guarantee=self.guarantee if session.secure else None,
        )

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of an answer; on random ranges, within a factor of three."""
        weight = max(abs(self.operator.lowest), self.operator.highest) / self.operator.granularity
        cost = self.budget.cost(rows, self._rounds(rows), self._axes, self.change.of_cells)
        return _CALIBRATION * cost * weight

    def predicted_numbers(self, rows: int) -> int:
        """The total, a number for each bin, and two for each round."""
        plan = planned(rows, self.operator, 1, self.change, self.budget)
        return 1 + sum(margin.bins for margin in plan.margins) + 2 * plan.rounds

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """The rounds, what each of them costs, and what the first guess is made of."""
        rounds = self._rounds(rows)
        rates = self.budget.rates(rounds, self._axes)
        return (
            f"T = {rounds} rounds for about {rows:,} rows ({rates.rule} composition); each chooses a "
            f"query at eps0 = {float(rates.selection):.4g} and measures it at "
            f"eps0 = {float(rates.answer):.4g}.",
            f"The first guess: the total at {float(rates.total):.4g}, and sums along {self._axes} axes at "
            f"{float(rates.marginal):.4g} each.",
            *self._patience,
        )

    @property
    def _patience(self) -> tuple[str, ...]:
        """About how long a round takes, where that is long and NumPy computes."""
        if self.arrays is not None or self.universe.size <= _MANY_CELLS:
            return ()
        seconds = _SECONDS_PER_CELL * self.universe.size
        return (
            f"A round over {self.universe.size:,} cells takes up to about {seconds:.0f} seconds with NumPy.",
        )

    def _rounds(self, rows: int) -> int:
        return self.budget.rounds_for(rows, len(self.operator), self._axes, self.change.of_cells)

    @property
    def _axes(self) -> int:
        return len(warm_axes(self.operator.shape, self.budget))
