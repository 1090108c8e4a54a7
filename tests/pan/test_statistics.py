"""Errors and bounds of sketches on fresh noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from partita import Answer
from partita.pan import Density, Distinct, RampRegisters, Registers

pytestmark = pytest.mark.statistics

RUNS = 400
"""Of each sketch."""

TIMES = np.arange(4000) % 5
IDS = np.repeat(np.arange(4000), TIMES)


def _density() -> Answer:
    sketch = Density(universe=4000, epsilon=1)
    sketch.update_many(IDS)
    return sketch.release("density")


def _book() -> Answer:
    sketch = Density(universe=4000, epsilon=1, variant="book")
    sketch.update_many(IDS)
    return sketch.release("density")


def _registers(name: str) -> Callable[[], Answer]:
    def run() -> Answer:
        sketch = Registers(universe=4000, epsilon=1, most=10)
        sketch.update_many(IDS)
        return sketch.release(name)

    return run


def _ramp() -> Answer:
    sketch = RampRegisters(universe=4000, epsilon=1, tops=[3])
    sketch.update_many(IDS)
    return sketch.release("mean-3")


def _distinct() -> Answer:
    sketch = Distinct(epsilon=1, buckets=1024, most=10**5)
    sketch.update_many(range(10_000))
    return sketch.release("distinct")


@pytest.mark.parametrize(
    ("run", "truth"),
    [
        (_density, 0.8),
        (_book, 0.8),
        (_registers("exactly-2"), 0.2),
        (_registers("mean-3"), 1.8),
        (_registers("heavy-3"), 0.4),
        (_ramp, 1.8),
    ],
)
def test_errors_are_as_they_are_said_to_be(run: Callable[[], Answer], truth: float) -> None:
    """The root mean square error is at most a fifth above the standard error, and bounds fail rarely.

    The mean of 400 squares that are nearly normal exceeds 1.44 times its expectation with probability below
    1e-8. Guaranteed bounds fail with probability 0.05 at most, and 50 failures of 400 have probability below
    1e-8.
    """
    answers = [run() for _ in range(RUNS)]

    errors = np.array([answer.value - truth for answer in answers])
    assert np.sqrt((errors**2).mean()) <= 1.2 * answers[0].error
    assert np.sqrt((errors**2).mean()) >= 0.5 * answers[0].error
    assert abs(errors.mean()) <= 6 * answers[0].error / np.sqrt(RUNS)
    assert sum(not _within(answer.worst(0.05), truth) for answer in answers) < 50


def test_distinct_counts_and_its_interval_covers() -> None:
    """60 runs of 10,000 ids: about as far off as said, and inside of guaranteed bounds nearly always.

    A mean of 60 squares exceeds 2.56 times its expectation with probability below 1e-8, so do 18 failures.
    """
    answers = [_distinct() for _ in range(60)]

    errors = np.array([answer.value - 10_000 for answer in answers])
    said = np.mean([answer.error for answer in answers])
    assert np.sqrt((errors**2).mean()) <= 1.6 * said
    assert sum(not _within(answer.worst(0.05), 10_000) for answer in answers) < 18


def _within(bounds: tuple[float, float], truth: float) -> bool:
    low, high = bounds
    return low <= truth <= high
