"""A round of private multiplicative weights over a million cells with ten thousand range queries."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.clock import Work, times
from benchmarks.speed.row import Row, Target
from benchmarks.speed.weights_workload import ranges_over
from partita.public.workload.release import Change
from partita.public.workload.weights import Measurements, WeightsBudget, WeightsFit
from partita.trusted.mechanisms.weights import weigh
from partita.trusted.noise.system import SYSTEM

WIDTH, RANGES, ROWS, MEASURED = 1000, 100, 10**6, 20
STEPS = 10
SECONDS = Target("figure", "<=", 0.5)


def weights_round(quick: bool) -> Row:
    """One round: all scores, a selection, a noisy answer, ten steps; against one pass over all answers."""
    weighed, fit, truth = begun(quick)
    session = SYSTEM.session()

    def turn() -> object:
        off = abs(truth - weighed.to_grains(weighed.answer_from(fit.x)))
        index = session.exponential(off, weighed.scales.selection)
        grown = weighed.add_round(index, int(session.add(int(truth[index]), weighed.scales.answer)))
        return fit.with_blocks(grown.blocks).climb(STEPS)

    x = fit.x
    ours, theirs = Work("a round", turn), Work("all answers once", lambda: weighed.answer_from(x))
    shape = " x ".join(map(str, weighed.operator.shape))
    return times(quick, ours, theirs, target=SECONDS, cells=shape, queries=len(weighed.operator))


@cache
def begun(quick: bool) -> tuple[Measurements, WeightsFit, NDArray[np.int64]]:
    """A release after twenty rounds, its guess, and the true answers."""
    rng = np.random.default_rng(0)
    width = WIDTH // (10 if quick else 1)
    operator = ranges_over((width, width), RANGES, rng)
    centre = rng.normal(size=(ROWS, 1))
    places = ((0.8 * centre + 0.6 * rng.normal(size=(ROWS, 2)) + 4) / 8 * width).astype(np.int64)
    data = np.zeros(operator.shape, np.int64)
    np.add.at(data, tuple(places.clip(0, width - 1).T), 1)
    weighed = weigh(
        data,
        operator=operator,
        unit=1,
        change=Change(1),
        budget=WeightsBudget(epsilon=1, rounds=2 if quick else MEASURED),
        session=SYSTEM.session(),
    )
    return weighed, weighed.fit_mass(), operator.answers(data)
