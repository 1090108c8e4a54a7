"""Guarantees and calibrated intervals on fresh noise."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from partita.public.axis.base import AxisRelease
from partita.testing.doubles import EndlessTape, tape_noise
from partita.trusted.mechanisms.partition import PartitionTents, Tents
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import Histogram

pytestmark = pytest.mark.statistics

CELLS = 3_000
SMOOTH = np.array([int(6 * np.exp(-((i - 900) ** 2) / 200_000)) for i in range(CELLS)])
LUMPY = np.where(np.arange(CELLS) % 97 == 5, 60, np.arange(CELLS) % 301 == 0)
DATA = {"smooth": SMOOTH, "lumpy": LUMPY}
BETA = 0.2
RELEASES = 150


def made(name: str, form: str, epsilon: str, noise: Noise = SYSTEM) -> AxisRelease:
    data = Histogram.dense(DATA[name])
    if form == "tents":
        return Tents(size=CELLS, epsilon=epsilon).release(data, noise=noise)
    total = data.total if form == "informed" else 0
    return PartitionTents(size=CELLS, epsilon=epsilon, total=total).release(data, noise=noise)


def most_failures(trials: int, chance: float) -> float:
    """A binomial count exceeds this with probability under 1e-7, by Bernstein's inequality."""
    log = np.log(1e7)
    return float(trials * chance + np.sqrt(2 * trials * chance * (1 - chance) * log) + log)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("form", ["tents", "partition", "informed"])
def test_guaranteed_bounds_fail_no_more_than_they_say(name: str, form: str) -> None:
    """Over 150 releases `worst` and `error` miss the truth at most beta of the time; test error 1e-6."""
    upto = np.concatenate([[0], np.cumsum(DATA[name])])
    asked = [(0, CELLS - 1), (700, 1_100), (5, 5), (1_234, 2_345)]
    misses = np.zeros(len(asked) + 1)
    first, last = np.triu_indices(CELLS // 10)
    lows, highs = (10 * first).astype(np.uint64), (10 * last + 9).astype(np.uint64)
    truths = upto[10 * last + 10] - upto[10 * first]
    for _ in range(RELEASES):
        release = made(name, form, "1")
        for index, (low, high) in enumerate(asked):
            bottom, top = release.count(low, high).worst(BETA)
            misses[index] += not bottom <= upto[high + 1] - upto[low] <= top
        misses[-1] += np.abs(release.counts(lows, highs) - truths).max() > release.error(BETA)

    assert misses.max() <= most_failures(RELEASES, BETA)


@pytest.mark.parametrize("form", ["tents", "partition", "informed"])
@pytest.mark.parametrize("name", DATA)
def test_calibrated_intervals_cover(name: str, form: str) -> None:
    """Intervals at 90, 95 and 99% hold for what they say less 2%, over 20 releases of 300 ranges each.

    The noise is from fixed tapes, so the figures are the same in each run.
    """
    upto = np.concatenate([[0], np.cumsum(DATA[name])])
    ends = np.sort((np.arange(600) * 7_919 % CELLS).reshape(300, 2), axis=1)
    lows, highs = (ends[:, side].astype(np.uint64) for side in (0, 1))
    truths = upto[ends[:, 1] + 1] - upto[ends[:, 0]]
    releases = [made(name, form, "1", noise=tape_noise(EndlessTape(seed))) for seed in range(20)]
    away = np.array([np.abs(r.counts(lows, highs) - truths) / r.errors(lows, highs) for r in releases])

    for confidence in (0.90, 0.95, 0.99):
        reach = NormalDist().inv_cdf((1 + confidence) / 2)
        assert (away <= reach).mean() >= confidence - 0.02
