"""Errors on fresh noise: what plans promise, what answers bound; family-wise error about 1e-6."""

from __future__ import annotations

import numpy as np
import pytest

from partita.trusted.streams.family import CounterFamily
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse import SparseCounter
from partita.trusted.streams.tree_counter import RandomizedResponseCounter

pytestmark = pytest.mark.statistics

HORIZON = 2**16


def _arrivals(number: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """One event in each of so many periods, all sets of periods alike."""
    xs = np.zeros(HORIZON, dtype=np.int64)
    xs[np.random.default_rng(seed).choice(HORIZON, number, replace=False)] = 1
    return xs


def test_a_hint_gives_a_sparse_counter_the_error_that_was_planned() -> None:
    """For 100 events in 2^16 periods the mean squared error is far below that of a counter, 390."""
    errors = []
    for seed in range(40):
        xs = _arrivals(100, seed)
        outputs = SparseCounter(epsilon=1, horizon=HORIZON, expected=100).update_many(xs)
        errors.append(float(np.mean((outputs - np.cumsum(xs)) ** 2)))

    assert np.mean(errors) < 100


def test_bounds_of_a_sparse_counter_hold() -> None:
    """But for probability beta, at the end and everywhere: none of 60 runs at 10^-9."""
    for seed in range(60):
        xs = _arrivals(500, seed)
        counter = SparseCounter(epsilon=1, horizon=HORIZON, expected=100 if seed % 2 else None)
        outputs = counter.update_many(xs)
        answer = counter.answer(1e-9)
        assert answer.low <= 500 <= answer.high
        assert np.abs(outputs - np.cumsum(xs)).max() <= answer.everywhere


def test_a_family_has_the_variance_it_says() -> None:
    """4,000 keys: the mean square of the last outputs is within a sixth of it, six standard errors."""
    family = CounterFamily(keys=4000, epsilon=1, horizon=300)
    family.advance(217)

    assert float(np.mean(family.value**2)) == pytest.approx(family.variance(), rel=1 / 6)


def test_a_window_has_the_variance_it_says() -> None:
    """Means of squares in one place of 600 blocks, within a half."""
    counter = SlidingCounter(window=30, epsilon=1)
    outputs = counter.update_many(np.zeros(600 * 32, dtype=np.int64))
    last = outputs[31::32][2:]

    assert counter._tree.horizon == 32
    assert float(np.mean(last**2)) == pytest.approx(counter.variance(), rel=0.5)


def test_randomized_response_is_right_on_average() -> None:
    """200 counters of 1,000 bits: the mean is within six standard errors, and the variance within a half."""
    bits = np.arange(1000) % 3 == 0
    ends = []
    for _ in range(200):
        counter = RandomizedResponseCounter(epsilon=1, horizon=1000)
        ends.append(counter.update_many(bits.astype(np.int64))[-1])
    variance = float(counter.variances([1000])[0])

    assert abs(np.mean(ends) - bits.sum()) < 6 * (variance / 200) ** 0.5
    assert float(np.var(ends)) == pytest.approx(variance, rel=0.5)
