"""Calibrated intervals keep their promise: often enough right, and not too wide.

Noise comes from fixed tapes, so every figure is the same in each run: a test here fails for a reason or
not at all.
"""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from partita.arrays import Floats, UInts
from partita.testing.doubles import EndlessTape, tape_noise
from partita.trusted.mechanisms.spending_tree import Intervals
from partita.trusted.secret import Histogram

pytestmark = pytest.mark.statistics

RELEASES = 20
QUESTIONS = 500
CONFIDENCES = (0.90, 0.95, 0.99)
REACHES = tuple(NormalDist().inv_cdf((1 + confidence) / 2) for confidence in CONFIDENCES)
ROWS = 20_000


def hump(size: int) -> UInts:
    """Smooth data: a skewed hump."""
    return (np.random.default_rng(1).beta(2, 6, ROWS) * size).astype(np.uint64)


def heaps(size: int) -> UInts:
    """The same, of which half are rounded to hundredths of the axis."""
    rows = hump(size)
    step = np.uint64(size // 100)
    rows[::2] = rows[::2] // step * step
    return rows


def patches(size: int) -> UInts:
    """Two dense patches in an empty axis."""
    rng = np.random.default_rng(2)
    centre = rng.choice([0.2, 0.65], ROWS)
    return (np.clip(centre + 0.01 * rng.standard_normal(ROWS), 0, 0.999) * size).astype(np.uint64)


DATA = {"hump": hump, "heaps": heaps, "patches": patches}


def at_data(rows: UInts) -> tuple[UInts, UInts]:
    """Ranges that end at values which there are."""
    ends = np.sort(np.random.default_rng(3).choice(rows, (QUESTIONS, 2)), axis=1)
    return ends[:, 0], ends[:, 1]


def anywhere(size: int) -> tuple[UInts, UInts]:
    """Ranges that end anywhere."""
    ends = np.random.default_rng(4).integers(0, size, (QUESTIONS, 2), dtype=np.uint64)
    return ends.min(axis=1), ends.max(axis=1)


def measured(histogram: Histogram, epsilon: str, asked: tuple[UInts, UInts]) -> tuple[Floats, Floats]:
    """What every answer of 20 releases misses by, and its standard error."""
    before = np.concatenate([[0], np.cumsum(histogram.counts)])
    upto = before[np.searchsorted(histogram.cells, asked[1], side="right")]
    truth = upto - before[np.searchsorted(histogram.cells, asked[0])]
    made = [
        Intervals(size=histogram.size, epsilon=epsilon).release(
            histogram, noise=tape_noise(EndlessTape(seed))
        )
        for seed in range(RELEASES)
    ]
    return np.array([one.counts(*asked) - truth for one in made]), np.array(
        [one.errors(*asked) for one in made]
    )


@pytest.mark.parametrize("epsilon", ["1/10", "1"])
@pytest.mark.parametrize("size", [2**12, 2**32])
@pytest.mark.parametrize("name", DATA)
def test_intervals_hold_as_often_as_they_say(name: str, size: int, epsilon: str) -> None:
    """Of all questions c - 2% are answered with an interval that holds the truth."""
    rows = DATA[name](size)
    for asked in (at_data(rows), anywhere(size)):
        missed, errors = measured(Histogram.from_cells(rows, size=size), epsilon, asked)
        for reach, confidence in zip(REACHES, CONFIDENCES, strict=True):
            assert (np.abs(missed) <= reach * errors).mean() >= confidence - 0.02


@pytest.mark.parametrize("epsilon", ["1/10", "1"])
@pytest.mark.parametrize("size", [2**12, 2**32])
@pytest.mark.parametrize("name", ["hump", "heaps"])
def test_intervals_are_not_too_wide(name: str, size: int, epsilon: str) -> None:
    """The root mean square half-width is at most 2.5 times what the errors ask for, or 12/epsilon."""
    rows = DATA[name](size)
    for asked in (at_data(rows), anywhere(size)):
        missed, errors = measured(Histogram.from_cells(rows, size=size), epsilon, asked)
        for reach in REACHES:
            widest = max(2.5 * reach * root_mean_square(missed), 12 / float(Fraction(epsilon)))
            assert reach * root_mean_square(errors) <= widest


def root_mean_square(values: Floats) -> float:
    return float(np.sqrt((values**2).mean()))
