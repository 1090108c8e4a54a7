"""Answers carry bounds; the bounds on sums of noise hold by exact convolution."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from operator import add, mul, sub, truediv
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita import Answer
from partita.errors import InvalidParameter
from partita.public.bounds import laplace_sum_reach, laplace_variance


def _answer() -> Answer:
    return Answer(10.0, lambda: 2.0, bounds=lambda beta: (10.0 - 1 / beta, 10.0 + 1 / beta))


def test_intervals_are_those_of_a_normal_law() -> None:
    """95 percent of a normal law lie within 1.96 standard errors."""
    low, high = _answer().interval(0.95)

    assert (low, high) == pytest.approx((10 - 3.919928, 10 + 3.919928))


def test_worst_bounds_are_asked_of_the_release() -> None:
    """`worst` passes beta on to the bounds of the answer."""
    assert _answer().worst(0.25) == (6.0, 14.0)
    assert _answer().worst() == pytest.approx((0.0, 30.0))


@pytest.mark.parametrize("share", [0, 1, -0.5, 1.5, math.nan, math.inf, "1e-301", 1 - 2**-52])
def test_shares_lie_strictly_between_zero_and_one(share: Any) -> None:
    """A confidence or a failure probability of 0, 1 or NaN is refused by name."""
    with pytest.raises(InvalidParameter, match=r"^confidence must (lie between 0 and 1|be a finite number)"):
        _answer().interval(share)
    with pytest.raises(InvalidParameter, match=r"^beta must (lie between 0 and 1|be a finite number)"):
        _answer().worst(share)


def test_answers_are_numbers() -> None:
    """An answer is a float, equal answers are equal, and text shows ± half of the 95% interval."""
    assert (float(_answer()), repr(_answer())) == (10.0, "Answer(10.0 ± 3.9)")
    assert _answer() == Answer(10.0, lambda: 2.0, bounds=lambda beta: (0.0, 1.0))


@pytest.mark.parametrize("work", [add, sub, mul, truediv])
def test_answers_go_with_numbers_and_answers_only(work: Callable[[Any, Any], object]) -> None:
    """Text is neither, and a product of two answers is not offered."""
    with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
        work(_answer(), "3")
    with pytest.raises(TypeError, match="unsupported operand"):
        mul(_answer(), _answer())


def _masses(scale: Fraction, reach: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """P[X = k] of discrete Laplace noise for |k| <= reach."""
    a = math.exp(-1 / scale)
    return (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1, dtype=np.float64))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(10)])
def test_the_variance_is_that_of_the_law(scale: Fraction) -> None:
    """2a / (1-a)^2 is the sum of k^2 P[X = k]."""
    reach = math.ceil(50 * scale) + 50
    squares = np.arange(-reach, reach + 1, dtype=np.float64) ** 2

    assert laplace_variance(scale) == pytest.approx(float((squares * _masses(scale, reach)).sum()), rel=1e-12)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3), Fraction(8)])
@pytest.mark.parametrize("terms", [1, 2, 5, 12])
def test_sums_of_noise_stay_within_their_reach(scale: Fraction, terms: int) -> None:
    """P[|X1 + ... + Xm| > t], by convolution, is at most beta, and t is not four times too large."""
    reach = math.ceil(60 * scale) + 20
    one = _masses(scale, reach)
    total = one
    for _ in range(terms - 1):
        total = np.convolve(total, one)
    values = np.abs(np.arange(total.size) - total.size // 2)
    for beta in (0.5, 0.05, 1e-3, 1e-9):
        t = laplace_sum_reach(scale, terms, beta)
        assert float(total[values > t].sum()) <= beta
        assert float(total[values > t / 4 - 1].sum()) > beta


@given(st.integers(1, 500), st.floats(1e-12, 0.5), st.integers(1, 40))
def test_the_reach_grows_with_terms_and_confidence(scale: int, beta: float, terms: int) -> None:
    """More noise or a smaller beta never shortens the reach; no noise has none."""
    reach = laplace_sum_reach(Fraction(scale), terms, beta)

    assert reach <= laplace_sum_reach(Fraction(scale), terms + 1, beta)
    assert reach <= laplace_sum_reach(Fraction(scale), terms, beta / 2)
    assert laplace_sum_reach(Fraction(scale), 0, beta) == 0


def _skewed(value: float, low: float, high: float) -> Answer:
    """An answer whose interval is given, and wide bounds for certain."""
    return Answer(value, lambda: 1.0, lambda beta: (-100.0, 100.0), -100.0, likely=lambda beta: (low, high))


def test_a_sum_keeps_the_middles_of_intervals() -> None:
    """Of independent parts middles add up, half-widths as errors do, and the sum's value is inside."""
    both = Answer.together([_skewed(9.0, 2.0, 8.0), _skewed(5.0, 1.0, 9.0)])

    assert both.interval() == (5.0, 15.0)  # about 5 + 5, with 3 and 4 to either side
    low, high = Answer.together([_skewed(30.0, 2.0, 8.0), _skewed(5.0, 1.0, 9.0)]).interval()
    assert low <= 35.0 <= high


def test_a_value_that_is_scaled_stays_in_its_interval() -> None:
    """Brought to another total, the value is reached by the interval, which is no shorter."""
    scaled = _skewed(6.0, 2.0, 8.0).adjusted(2.0)

    assert scaled.value == 12.0
    assert scaled.interval() == (2.0, 12.0)
