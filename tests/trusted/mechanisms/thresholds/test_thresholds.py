"""Noisy prefixes: their sensitivity, differences, and the exact expected largest error."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from partita import Histogram, Thresholds
from partita.testing import EndlessTape, ZeroNoise, tape_noise


def test_prefixes_are_running_sums() -> None:
    """The count of 0, ..., t for every t, the last of all rows."""
    release = Thresholds(size=4, epsilon=1).release(Histogram.dense([1, 0, 5, 2]), noise=ZeroNoise())

    assert release.noisy.tolist() == [1, 1, 6, 8]


@pytest.mark.parametrize("size", range(1, 9))
def test_the_first_cell_is_in_every_prefix(size: int) -> None:
    """A row in the first cell changes all prefixes, and no row changes more."""
    mechanism = Thresholds(size=size, epsilon=1)
    moved = [int(mechanism.exact(np.eye(size, dtype=np.int64)[cell]).sum()) for cell in range(size)]

    assert max(moved) == moved[0] == mechanism.sensitivity == size


def test_ranges_from_the_first_cell_have_half_the_variance() -> None:
    """A prefix has one noise, any other range two."""
    release = Thresholds(size=9, epsilon=1).release(
        Histogram.dense([1] * 9), noise=tape_noise(EndlessTape(1))
    )

    assert release.count(3, 7).error == pytest.approx(math.sqrt(2) * release.count(0, 7).error)


def _expected_spread(scale: Fraction, size: int) -> float:
    """E[max(Z, 0) - min(Z, 0)] over `size` noises: twice the sum over k >= 1 of P[some Z >= k]."""
    falling = math.exp(-1 / scale)
    steps = np.arange(1, int(scale * (math.log(size) + 45)) + 2)
    above = falling**steps / (1 + falling)
    return float(2 * (-np.expm1(size * np.log1p(-above))).sum())


@pytest.mark.parametrize("size", [1, 2, 3, 10, 300])
@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_the_expected_largest_error_is_at_most_that_of_equation_7(size: int, epsilon: object) -> None:
    """An interval errs by a difference of two noises, or by one: the largest is max - min, exactly known."""
    mechanism = Thresholds(size=size, epsilon=epsilon)
    exact = _expected_spread(mechanism.scale, size)

    assert 0.4 * mechanism.largest_error < exact <= mechanism.largest_error
