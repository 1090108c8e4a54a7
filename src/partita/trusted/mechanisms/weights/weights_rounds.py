"""Private multiplicative weights on masses over any universe: the rounds that all variants share [HLM12]."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.public.queries.operator.operator import Operator
from partita.public.workload.release.change import Change
from partita.public.workload.weights.budget import Rates, WeightsBudget
from partita.public.workload.weights.margin import Margin
from partita.public.workload.weights.measured import Scales, Weighed, grain_of, steps_of
from partita.trusted.noise.system.protocol import Noise

_STEPS: Final = 10
_FIRST_STEPS: Final = 40
"""Enough for the first guess, of which only a choice of a query depends."""

_MOST_BINS: Final = 256
_FULL_BIN: Final = 8
"""A bin of the first guess is expected to hold as many times the noise of its count."""


def weigh(
    data: NDArray[Any],
    *,
    operator: Operator,
    unit: int,
    change: Change,
    budget: WeightsBudget,
    session: Noise,
    arrays: Any = None,
) -> Weighed:
    """Measure the total, sums along axes, and in every round a query that the guess answers badly.

    `data` has the mass of every cell, a row counting `unit`; neighbours differ by `change`. It costs the
    budget between them. The number of rounds and the bins are chosen from the noisy total.
    """
    truth = operator.answers(data) // grain_of(change.of_answer(operator))
    total = int(session.add(int(data.sum()), change.of_total / budget.total))
    plan = planned(max(1.0, total / unit), operator, unit, change, budget)
    marginals = [session.add(margin.sums(data), plan.scales.marginal) for margin in plan.margins]
    weighed = Weighed(
        operator=operator,
        unit=unit,
        grain=grain_of(change.of_answer(operator)),
        total=total,
        margins=plan.margins,
        marginals=np.concatenate([np.zeros(0, np.int64), *marginals]),
        indices=np.zeros(0, np.int64),
        noisy=np.zeros(0, np.int64),
        scales=plan.scales,
        arrays=arrays,
    )
    return _rounds(truth, weighed, plan.rounds, session)


def _rounds(truth: NDArray[Any], weighed: Weighed, rounds: int, session: Noise) -> Weighed:
    """Choose a query that the guess answers badly, measure it, and guess again; the last guess is settled."""
    fit = weighed.settled(_FIRST_STEPS) if rounds > 1 else None
    for left in range(rounds, 0, -1):
        guess = weighed.x if fit is None else fit.x
        off = abs(truth - weighed.rounded(weighed.answered(guess)))
        index = int(session.exponential(off, weighed.scales.selection))
        weighed = weighed.grown(index, int(session.add(int(truth[index]), weighed.scales.answer)))
        fit = fit.with_blocks(weighed.blocks).climb(_STEPS) if fit is not None and left > 2 else None
    return weighed


class Plan(NamedTuple):
    """What is measured after the total."""

    rounds: int
    margins: tuple[Margin, ...]
    scales: Scales


def planned(rows: float, operator: Operator, unit: int, change: Change, budget: WeightsBudget) -> Plan:
    """What suits about so many rows, as the noisy total has them."""
    axes = warm_axes(operator.shape, budget)
    rounds = budget.rounds_for(rows, len(operator), len(axes), change.of_cells / unit)
    rates = budget.rates(rounds, len(axes))
    scales = scales_of(rates, change, operator)
    margins = margins_for(operator.shape, axes, rows * unit / float(scales.marginal))
    return Plan(rounds, margins, scales)


def warm_axes(shape: tuple[int, ...], budget: WeightsBudget) -> list[int]:
    """The axes along which the first guess is measured: all that have several positions."""
    return [axis for axis, width in enumerate(shape) if width > 1 and budget.warm]


def scales_of(rates: Rates, change: Change, operator: Operator) -> Scales:
    """The noise that each look needs for what it may cost."""
    reach = change.of_answer(operator)
    answer = steps_of(reach, grain_of(reach))
    return Scales(
        total=change.of_total / rates.total,
        marginal=change.of_cells / rates.marginal if rates.marginal else Fraction(1),
        selection=2 * answer / rates.selection,
        answer=answer / rates.answer,
    )


def margins_for(shape: tuple[int, ...], axes: list[int], loudness: float) -> tuple[Margin, ...]:
    """Bins along each axis, where all rows together are so many times the noise of a bin."""
    most = min(_MOST_BINS, int(min(loudness, 1e9) / _FULL_BIN))
    return tuple(Margin(shape, axis, max(1, min(shape[axis], most))) for axis in axes)
