"""Releases of the shipped mechanisms answer in the language of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.answer import Answer
from partita.domain import Integer, Special
from partita.public.base import Provenance
from partita.public.release import Release
from partita.public.views import View
from partita.testing import ZeroNoise
from partita.trusted.mechanisms.base import WithSpecials
from partita.trusted.mechanisms.catalogue import axis_mechanisms
from partita.trusted.mechanisms.flat import HistogramCounts
from partita.trusted.mechanisms.tree import Tree
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import Histogram

AGES = Integer(0, 120)
ROWS = [*(30 + (7 * i) % 41 for i in range(500)), *[-1] * 7, *[200] * 9, None, "?"]
MECHANISMS = list(axis_mechanisms().values())


def _released(mechanism: Callable[..., Any], noise: Noise) -> Release:
    encoded = AGES.encode(ROWS)
    cells = encoded.cells[encoded.special == Special.ORDINARY]
    beside = {name: int((encoded.special == Special.named(name)).sum()) for name in AGES.specials}
    column = WithSpecials(axis=mechanism(size=AGES.size, epsilon=1), specials=AGES.specials)
    axis, specials = column.release(Histogram.from_cells(cells, size=AGES.size), beside, noise=noise)
    view = View(column="age", domain=AGES, axis=axis, specials=specials, mechanism="any")
    return Release(
        views=(view,), guarantee=axis.guarantee, provenance=Provenance(version="0", day="2026-11-15")
    )


@pytest.mark.parametrize("mechanism", [HistogramCounts, Tree])
def test_without_noise_everything_is_exact(mechanism: Callable[..., Any]) -> None:
    """Counts, many counts, the distribution, quantiles and differences are those of the rows."""
    release = _released(mechanism, ZeroNoise())
    ages = sorted(row for row in ROWS if isinstance(row, int) and 0 <= row <= 120)

    assert release.count().value == len(ROWS)
    assert release.count(age=(None, 50)).value == 7 + sum(age <= 50 for age in ages)
    assert release.counts(age=([30, 40], [39, None])).values.tolist() == [
        sum(30 <= age <= 39 for age in ages),
        9 + sum(age >= 40 for age in ages),
    ]
    assert release.quantile("age", 0.5).value == ages[len(ages) // 2 - 1]
    assert release.cdf("age", [49]).counts.values.tolist() == [sum(age <= 49 for age in ages)]
    both = release.difference({"age": (30, 50)}, {"age": (40, 60)})
    assert both.value == sum(age < 40 for age in ages) - sum(50 < age <= 60 for age in ages)
    made_up = release.synthesize()["age"]
    assert sorted(age for age in made_up if isinstance(age, int)) == ages
    assert made_up.count(None) == 18


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_with_noise_answers_hang_together(mechanism: Callable[..., Any]) -> None:
    """With real noise: many equal single, differences equal count less count, the distribution rises."""
    release = _released(mechanism, SYSTEM)
    first, second = release.count(age=(20, None)), release.count(age=(35, 44))

    many = release.counts(age=([20, 35], [None, 44]))
    assert many.values.tolist() == pytest.approx([first.value, second.value])
    gap = release.difference({"age": (20, None)}, {"age": (35, 44)})
    assert gap.value == pytest.approx(first.value - second.value)
    assert bool((np.diff(release.cdf("age").fractions) >= 0).all())
    low, high = release.quantile("age", 0.5).worst(0.05)
    assert low <= release.quantile("age", 0.5).value <= high  # type: ignore[operator]
    assert release.guarantee == release.view("age").guarantee


@pytest.mark.statistics
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_guarantees_hold_over_many_releases(mechanism: Callable[..., Any]) -> None:
    """Of 200 releases at beta 0.2, more than 80 failures have probability below 1e-9; the same for worst."""
    ages = np.array([row for row in ROWS if isinstance(row, int) and 0 <= row <= 120])
    median = int(np.sort(ages)[len(ages) // 2 - 1])
    truth = 9 + int((ages >= 40).sum())
    failures = np.zeros(3)
    for _ in range(200):
        release = _released(mechanism, SYSTEM)
        low, high = release.quantile("age", 0.5).worst(0.2)
        failures += (
            _misses(release.count(age=(40, None)), truth),
            abs(release.count(age=(40, None)).value - truth) > release.error(0.2),
            not low <= median <= high,  # type: ignore[operator]
        )

    assert failures.max() <= 80


@pytest.mark.statistics
@pytest.mark.parametrize("mechanism", [HistogramCounts, Tree])
def test_intervals_of_quantiles_are_calibrated(mechanism: Callable[..., Any]) -> None:
    """Of 200 intervals at 90%, 50 or more would miss with probability below 1e-8 if they kept their word."""
    ages = sorted(row for row in ROWS if isinstance(row, int) and 0 <= row <= 120)
    median, missed, ranked = ages[len(ages) // 2 - 1], 0, 0
    for _ in range(200):
        found = _released(mechanism, SYSTEM).quantile("age", 0.5)
        low, high = found.interval(0.9)
        missed += not low <= median <= high  # type: ignore[operator]
        value: Any = found.value
        least, most = found.rank_interval(0.9)
        below, upto = sum(age < value for age in ages), sum(age <= value for age in ages)
        ranked += not (least * len(ages) <= upto and below <= most * len(ages))

    assert max(missed, ranked) < 50


def _misses(answer: Answer, truth: float) -> bool:
    low, high = answer.worst(0.2)
    return not low <= truth <= high
