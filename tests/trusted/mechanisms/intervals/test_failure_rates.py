"""Guaranteed bounds on fresh noise. Error probability of this file: 42 comparisons of 1e-9, 4.2e-8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import partita as pt
from partita import Histogram
from partita.public.axis.base import Term
from partita.trusted.noise.laws import Words
from partita.trusted.noise.system import SystemNoise

pytestmark = pytest.mark.statistics

SIZE, RUNS, BETA, SURE = 24, 400, 0.2, 1e-9
COUNTS = np.array([(11 * i) % 7 + 90 * (i == 15) for i in range(SIZE)])
BEFORE = np.concatenate([[0], np.cumsum(COUNTS)])
LOWS, HIGHS = np.triu_indices(SIZE)

MECHANISMS: dict[str, Callable[..., Any]] = {
    "laplace": pt.Laplace,
    "thresholds": pt.Thresholds,
    "histogram": pt.HistogramCounts,
    "tree": pt.Tree,
    "rootless": lambda **given: pt.Tree(branching=3, root=False, **given),
    "raw": lambda **given: pt.Tree(consistent=False, **given),
    "weighted": lambda **given: pt.Tree(branching=5, weights=(1, 2, "1/2"), **given),
    "intervals-paper": pt.PaperIntervals,
}
QUESTIONS = [
    [Term(4, 4)],
    [Term(3, 20)],
    [Term(0, SIZE - 1)],
    [Term(2, 9), Term(7, 22, -1)],
    [Term(0, 11), Term(12, 23, -1)],
]


def _truth(terms: list[Term]) -> int:
    return sum(sign * int(BEFORE[high + 1] - BEFORE[low]) for low, high, sign in terms)


def _consistent(failures: int) -> bool:
    """Whether so many failures are not too many for a failure rate of beta; wrong with 1e-9."""
    return bool(stats.binom.sf(failures - 1, RUNS, BETA) > SURE)


@pytest.mark.parametrize("name", MECHANISMS)
def test_bounds_fail_at_most_as_often_as_stated(name: str) -> None:
    """Each of five questions leaves `worst(0.2)`, and any range at all exceeds `error(0.2)`, in a fifth."""
    mechanism = MECHANISMS[name](size=SIZE, epsilon=1)
    noise, data = SystemNoise(Words, path="numpy"), Histogram.dense(COUNTS)
    missed, exceeded = [0] * len(QUESTIONS), 0
    for _ in range(RUNS):
        release = mechanism.release(data, noise=noise)
        for place, terms in enumerate(QUESTIONS):
            low, high = release.answer(*terms).worst(BETA)
            missed[place] += not low <= _truth(terms) <= high
        misses = np.abs(release.counts(LOWS, HIGHS) - (BEFORE[HIGHS + 1] - BEFORE[LOWS]))
        exceeded += bool(misses.max() > release.error(BETA))

    assert all(_consistent(failures) for failures in missed)
    assert _consistent(exceeded)


def test_half_a_bound_fails_too_often() -> None:
    """The comparison has teeth: bounds of half the width are not consistent with the stated rate."""
    mechanism, noise = pt.Laplace(size=SIZE, epsilon=1), SystemNoise(Words, path="numpy")
    releases = [mechanism.release(Histogram.dense(COUNTS), noise=noise) for _ in range(RUNS)]

    failures = sum(
        bool(np.abs(release.noisy - mechanism.exact(COUNTS)).max() > release.error(BETA) / 2)
        for release in releases
    )

    assert not _consistent(failures)
