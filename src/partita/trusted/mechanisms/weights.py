"""Private multiplicative weights, offline: many linear queries from one synthetic distribution [HLM12].

`weigh` runs the rounds on masses over any universe, for this mechanism and for numerical queries.
"""

from __future__ import annotations

from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.errors import check
from partita.numbers import Exact, check_choice, check_probability, freeze, frozen, parameter
from partita.public.base import noisy_integers
from partita.public.queries.operator import Operator
from partita.public.workload.printed_weights import (
    MultiplicativeSteps,
    PrintedMeasurements,
    round_scales,
    theorem_bound,
)
from partita.public.workload.release import Change
from partita.public.workload.weights import (
    MOST_ROUNDS,
    MOST_ROUNDS_ASKED,
    Margin,
    Measurements,
    Rates,
    Scales,
    WeightsBudget,
    WeightsRelease,
    choose_grain,
    count_grains,
)
from partita.trusted.mechanisms.base import check_rows, check_scale
from partita.trusted.mechanisms.workload import WorkloadMechanism
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts

_STEPS: Final = 10  # of the fit between two rounds: only the choice of the next query depends on it
_FIRST_STEPS: Final = 40  # for the first guess, which starts from the even distribution
_MOST_BINS: Final = 256
_FULL_BIN: Final = 8  # rows in a bin over the noise of its count: fewer, wider bins for clearer counts


def weigh(
    data: NDArray[Any],
    *,
    operator: Operator,
    unit: int,
    change: Change,
    budget: WeightsBudget,
    session: Noise,
    arrays: Any = None,
) -> Measurements:
    """Measure the total, sums along axes, and in every round a query that the guess answers badly.

    `data` has the mass of every cell, a row counting `unit`; neighbours differ by `change`. It costs the
    budget between them. The number of rounds and the bins are chosen from the noisy total.
    """
    truth = operator.answers(data) // choose_grain(change.of_answer(operator))
    total = int(session.add(int(data.sum()), change.of_total / budget.total))
    plan = plan_measurements(max(1.0, total / unit), operator, unit, change, budget)
    marginals = [session.add(margin.sums(data), plan.scales.marginal) for margin in plan.margins]
    weighed = Measurements(
        operator=operator,
        unit=unit,
        grain=choose_grain(change.of_answer(operator)),
        total=total,
        margins=plan.margins,
        marginals=np.concatenate([np.zeros(0, np.int64), *marginals]),
        indices=np.zeros(0, np.int64),
        noisy=np.zeros(0, np.int64),
        scales=plan.scales,
        arrays=arrays,
    )
    return _rounds(truth, weighed, plan.rounds, session)


def _rounds(truth: NDArray[Any], weighed: Measurements, rounds: int, session: Noise) -> Measurements:
    """Choose a query that the guess answers badly, measure it, and guess again; the last guess is settled."""
    fit = weighed.fit_mass(_FIRST_STEPS) if rounds > 1 else None
    for left in range(rounds, 0, -1):
        guess = weighed.x if fit is None else fit.x
        off = abs(truth - weighed.to_grains(weighed.answer_from(guess)))
        index = int(session.exponential(off, weighed.scales.selection))
        weighed = weighed.add_round(index, int(session.add(int(truth[index]), weighed.scales.answer)))
        fit = fit.with_blocks(weighed.blocks).climb(_STEPS) if fit is not None and left > 2 else None
    return weighed


def weigh_as_printed(
    data: NDArray[Any],
    *,
    operator: Operator,
    change: Change,
    scales: Scales,
    rounds: int,
    session: Noise,
    arrays: Any = None,
) -> PrintedMeasurements:
    """In every round choose a query that the guess answers badly, measure it, and take one step.

    The number of rows is public: neighbours have equally many.
    """
    grain, rows = choose_grain(change.of_answer(operator)), int(data.sum())
    truth = operator.answers(data) // grain
    steps, indices, noisy = MultiplicativeSteps(operator, rows, arrays), list[int](), list[int]()
    nothing = np.zeros(0, np.int64)
    weighed = PrintedMeasurements.of(
        operator, rows=rows, grain=grain, indices=nothing, noisy=nothing, scales=scales, arrays=arrays
    )
    for _ in range(rounds):
        off = abs(truth - weighed.to_grains(weighed.answer_from(steps.guess)))
        indices.append(int(session.exponential(off, scales.selection)))
        noisy.append(int(session.add(int(truth[indices[-1]]), scales.answer)))
        steps.step(indices[-1], float(noisy[-1]) * grain)
    answers = noisy_integers(np.array(noisy, object), "noisy")
    return replace(weighed, indices=np.array(indices, np.int64), noisy=answers)


class MeasurementPlan(NamedTuple):
    """What is measured after the total."""

    rounds: int
    margins: tuple[Margin, ...]
    scales: Scales


def plan_measurements(
    rows: float, operator: Operator, unit: int, change: Change, budget: WeightsBudget
) -> MeasurementPlan:
    """What suits about so many rows, as the noisy total has them: its mass, over a unit.

    Where not all mass of a row counts in an answer, answers are of fewer rows.
    """
    axes = warm_axes(operator.shape, budget)
    rounds = budget.rounds_for(
        rows * (change.moved / change.mass), len(operator), len(axes), change.of_sums / unit
    )
    rates = budget.rates(rounds, len(axes))
    scales = noise_scales(rates, change, operator)
    margins = choose_margins(operator.shape, axes, rows * unit / float(scales.marginal))
    return MeasurementPlan(rounds, margins, scales)


def warm_axes(shape: tuple[int, ...], budget: WeightsBudget) -> list[int]:
    """The axes along which the first guess is measured: all that have several positions."""
    return [axis for axis, width in enumerate(shape) if width > 1 and budget.warm]


def noise_scales(rates: Rates, change: Change, operator: Operator) -> Scales:
    """The noise that each look needs for what it may cost."""
    reach = change.of_answer(operator)
    answer = count_grains(reach, choose_grain(reach))
    return Scales(
        total=change.of_total / rates.total if rates.total else Fraction(1),
        marginal=change.of_cells / rates.marginal if rates.marginal else Fraction(1),
        selection=2 * answer / rates.selection,
        answer=answer / rates.answer,
    )


def check_scales(scales: Scales, epsilon: Fraction) -> None:
    """Refuse an epsilon for which some noise cannot be drawn."""
    for scale in (scales.total, scales.marginal, scales.selection, scales.answer):
        check_scale(scale, epsilon)


def choose_margins(shape: tuple[int, ...], axes: list[int], loudness: float) -> tuple[Margin, ...]:
    """Bins along each axis, where all rows together are so many times the noise of a bin."""
    most = min(_MOST_BINS, int(min(loudness, 1e9) / _FULL_BIN))
    return tuple(Margin(shape, axis, max(1, min(shape[axis], most))) for axis in axes)


# The mechanism.


_MOST_CELLS: Final = 2**27  # a gigabyte for each array of floats
_MANY_CELLS: Final = 2**24  # from here on a plan says how long a round takes
_SECONDS_PER_CELL: Final = 3.7e-7
"""Measured with NumPy: a round over a million cells takes 0.12 to 0.37 seconds; a plan shows the longest."""

Variant: TypeAlias = Literal["fitted", "printed"]
"""All measurements fitted together, after sums along the axes; or the rounds and steps of the paper."""

_BETA: Final = 0.05  # of the bound by which the printed variant chooses its rounds
_ROUNDS_TRIED: Final = sorted({round(2 ** (step / 8)) for step in range(16 * 8 + 1)})
_SLACK: Final = 30.0
"""How many times the printed bound exceeded root-mean-square errors: 16 to 84, over 64 and 256 cells."""

_CALIBRATION: Final = 0.5
"""Measured errors over what the budget expects: on random ranges about this, within a factor of three."""


@final
@frozen(kw_only=True)
class MultiplicativeWeights(WorkloadMechanism):
    """Publish once; answer many linear queries of any kind from one synthetic distribution over all cells.

    Guarantee: epsilon-DP, pure; (epsilon, delta)-DP by zero-concentrated accounting if delta > 0. [HLM12]
    Error:     measured in every release: with probability 1 - beta no answer misses by more than error(beta);
               the paper's version has O(n^(2/3) (log k log |X| / epsilon)^(1/3)) for pure privacy, a number
               before the data in `bound(beta, rows=n)`, and for delta > 0 O~(sqrt(n / epsilon)).
    Proof:     docs/proofs/multiplicative_weights.md (integer scores, warm start, measured bounds)

    It measures the total, sums along each axis in bins, and then in every round the query that its guess
    answers worst, chosen with noise. `rounds` and the `warm` share of the sums along axes are chosen from
    public facts and the noisy total unless they are given. `arrays` is an array of the library to compute
    with, on its device; noise and true answers stay with NumPy.

    `variant="printed"` is the paper's version: the rounds have all of epsilon, each takes one multiplicative
    step, and the average of all guesses answers. It is for rows that change, between which n is public.
    """

    name: ClassVar[str] = "weights"

    variant: Variant = "fitted"
    rounds: int | None = field(default=None, repr=False)
    warm: Exact = parameter(default=Fraction(3, 10), repr=False)
    budget: WeightsBudget = field(init=False)
    arrays: Any = field(default=None, repr=False, compare=False)

    def _convert(self) -> None:
        super()._convert()
        printed = check_choice(self.variant, "variant", get_args(Variant)) == "printed"
        budget = WeightsBudget(
            epsilon=self.epsilon,
            delta=self.delta,
            rounds=self.rounds,
            warm=0 if printed else self.warm,
            counted=not printed,
        )
        freeze(self, rounds=budget.rounds, warm=budget.warm, budget=budget)

    def _return_delta(self) -> None:
        super()._return_delta()
        freeze(self, budget=replace(self.budget, delta=self.delta))

    def _check(self) -> None:
        rule = f"must have at most {_MOST_CELLS} cells"
        fix = 'choose coarser domains or fewer columns, or use "linear" or "composition"'
        check(self.universe.size <= _MOST_CELLS, "universe", rule, given=self.universe.size, fix=fix)
        if self.variant == "printed":
            rule = "must be 'fitted' unless the number of rows is public, as in the paper"
            fix = 'pass neighbors="change-one", for rows and not for persons'
            check(self.same_rows, "variant", rule, given=self.variant, fix=fix)
        for rounds in (1, self.budget.rounds or (MOST_ROUNDS if self.budget.counted else MOST_ROUNDS_ASKED)):
            scales = noise_scales(self.budget.rates(rounds, self._axes), self.change, self.operator)
            check_scales(scales, self.epsilon)

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
        if self.variant == "printed":
            return self._release_as_printed(counts, session)
        weighed = weigh(
            counts,
            operator=self.operator,
            unit=1,
            change=self.change,
            budget=self.budget,
            session=session,
            arrays=self.arrays,
        )
        return WeightsRelease(weighed=weighed, **self._release_facts(session))

    def _release_as_printed(self, counts: NDArray[Any], session: Noise) -> WeightsRelease:
        """The rounds alone, as many as suit the public number of rows."""
        rounds = self._rounds(int(counts.sum()))
        weighed = weigh_as_printed(
            counts,
            operator=self.operator,
            change=self.change,
            scales=self._round_scales(rounds),
            rounds=rounds,
            session=session,
            arrays=self.arrays,
        )
        return WeightsRelease(weighed=weighed, **self._release_facts(session))

    @property
    def bound_of(self) -> str | None:
        """What the theorem bounds; it is about the printed steps alone."""
        return "any answer" if self.variant == "printed" else None

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no answer of the printed variant misses by more, for so many rows.

        Before the data: 2 n sqrt(ln |X| / T) and the noise of T rounds, as in the theorem.
        """
        rule, fix = "must be 'printed' to have a bound before the data", "use error(beta) of the release"
        check(self.variant == "printed", "variant", rule, given=self.variant, fix=fix)
        number = check_rows(rows)
        return self._bound(float(check_probability(beta)), number, self._rounds(number))

    def _bound(self, beta: float, rows: int, rounds: int) -> float:
        grain = choose_grain(self.change.of_answer(self.operator))
        scales = self._round_scales(rounds)
        return theorem_bound(self.operator, grain, scales, rounds=rounds, rows=rows, beta=beta)

    def _round_scales(self, rounds: int) -> Scales:
        scales = noise_scales(self.budget.rates(rounds, 0), self.change, self.operator)
        return round_scales(scales.selection, scales.answer)

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of an answer; on random ranges, within a factor of three.

        For the printed variant it is the theorem's bound over `_SLACK`.
        """
        if self.variant == "printed":
            return self._bound(_BETA, rows, self._rounds(rows)) / _SLACK
        weight = max(abs(self.operator.lowest), self.operator.highest) / self.operator.granularity
        cost = self.budget.cost(rows, self._rounds(rows), self._axes, self.change.of_cells)
        return _CALIBRATION * cost * weight

    def predicted_numbers(self, rows: int) -> int:
        """The total, a number for each bin, and two for each round."""
        if self.variant == "printed":
            return 2 * self._rounds(rows)
        plan = plan_measurements(rows, self.operator, 1, self.change, self.budget)
        return 1 + sum(margin.bins for margin in plan.margins) + 2 * plan.rounds

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """The rounds, what each of them costs, and what the first guess is made of."""
        rounds = self._rounds(rows)
        rates = self.budget.rates(rounds, self._axes)
        if self.variant == "printed":
            return (
                f"T = {rounds} rounds ({rates.rule} composition) as printed, at eps0 = "
                f"{float(rates.answer):.4g}: with probability {1 - _BETA:g} no answer misses by more than "
                f"{self.bound(_BETA, rows=rows):,.0f}.",
                *self._describe_time,
            )
        return (
            f"T = {rounds} rounds for about {rows:,} rows ({rates.rule} composition); each chooses a "
            f"query at eps0 = {float(rates.selection):.4g} and measures it at "
            f"eps0 = {float(rates.answer):.4g}.",
            f"The first guess: the total at {float(rates.total):.4g}, and sums along {self._axes} axes at "
            f"{float(rates.marginal):.4g} each.",
            *self._describe_time,
        )

    @property
    def _describe_time(self) -> tuple[str, ...]:
        """About how long a round takes, if that is long and NumPy computes."""
        cells = self.universe.size
        if self.arrays is not None or cells <= _MANY_CELLS:
            return ()
        seconds = _SECONDS_PER_CELL * cells
        return (f"A round over {cells:,} cells takes up to about {seconds:.0f} seconds with NumPy.",)

    def _rounds(self, rows: int) -> int:
        """As many as the budget says; as printed, those with the least bound."""
        if self.variant == "printed" and self.budget.rounds is None:
            return min(_ROUNDS_TRIED, key=lambda rounds: self._bound(_BETA, rows, rounds))
        return self.budget.rounds_for(rows, len(self.operator), self._axes, self.change.of_cells)

    @property
    def _axes(self) -> int:
        return len(warm_axes(self.operator.shape, self.budget))
