"""The Laplace mechanism on every interval: places, sensitivity, the exact expected largest error."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from partita import Histogram, InvalidParameter, Laplace
from partita.testing import ZeroNoise


def _expected_largest(scale: Fraction, number: int) -> float:
    """E max |X_i|, from the law: the sum over k >= 1 of 1 - P[|X| < k]^number."""
    falling = math.exp(-1 / scale)
    steps = np.arange(1, int(scale * (math.log(number) + 45)) + 2)
    return float((-np.expm1(number * np.log1p(-2 * falling**steps / (1 + falling)))).sum())


@pytest.mark.parametrize("size", range(1, 13))
def test_the_sensitivity_is_the_largest_number_of_intervals_over_a_cell(size: int) -> None:
    """Counted one by one, no cell lies in more intervals, and some cell lies in as many."""
    over = [
        sum(low <= cell <= high for low in range(size) for high in range(low, size)) for cell in range(size)
    ]

    assert Laplace(size=size, epsilon=1).sensitivity == max(over)


def test_intervals_stand_in_order() -> None:
    """Intervals are listed by their first cell, then by their last."""
    release = Laplace(size=3, epsilon=1).release(Histogram.dense([1, 10, 100]), noise=ZeroNoise())

    assert release.noisy.tolist() == [1, 11, 111, 10, 110, 100]


@pytest.mark.parametrize("size", [1448, 2**20])
def test_large_universes_are_refused(size: int) -> None:
    """More than about a million intervals are too many."""
    assert Laplace.released.length(1447) <= 2**20 < Laplace.released.length(1448)
    with pytest.raises(InvalidParameter) as refused:
        Laplace(size=size, epsilon=1)

    assert refused.value.parameter == "size"


@pytest.mark.parametrize("size", [1, 2, 5, 40])
@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_the_expected_largest_error_is_at_most_that_of_equation_6(size: int, epsilon: object) -> None:
    """All noises are independent, so the expectation of the largest is exact, and the formula lies above."""
    mechanism = Laplace(size=size, epsilon=epsilon)
    exact = _expected_largest(mechanism.scale, size * (size + 1) // 2)

    assert 0.5 * mechanism.largest_error < exact <= mechanism.largest_error


def test_equation_6_grows_like_the_square() -> None:
    """Sensitivity (D+1)^2/4 over epsilon, times ln(D(D+1)/2) + 1."""
    mechanism = Laplace(size=99, epsilon=1)

    assert mechanism.largest_error == pytest.approx(2500 * (math.log(99 * 50) + 1))
