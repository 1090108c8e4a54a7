"""Public tail bounds against direct summation."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import gmpy2
import pytest
from gmpy2 import mpfr, mpq

from partita.trusted.noise.hazard import (
    Law,
    RealBound,
    difference,
    difference_quantile,
    floor_log,
    geometric_quantile,
    scaled,
)
from partita.trusted.noise.laws import floor

LAWS: tuple[Law, ...] = ("laplace", "geometric")
SCALES = [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(6)]


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with gmpy2.context(gmpy2.get_context(), precision=300):
        yield


def real(x: Fraction) -> Any:
    return mpfr(mpq(x.numerator, x.denominator))


def pmf(law: Law, scale: Fraction) -> dict[int, Any]:
    """All values but those of probability below exp(-160)."""
    reach = int(160 * scale) + 2
    a = gmpy2.exp(-1 / real(scale))
    if law == "geometric":
        return {k: (1 - a) * a**k for k in range(reach)}
    return {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-reach, reach + 1)}


def tail_by_summation(law: Law, scale: Fraction, least: int) -> Any:
    """P[N - N' >= least] = sum over n of P[N' = n] P[N >= least + n]."""
    probabilities = pmf(law, scale)
    above, total = {}, mpfr(0)
    for k in range(max(probabilities), min(probabilities) - 1, -1):
        total += probabilities[k]
        above[k] = total
    return sum((p * above.get(least + n, mpfr(0)) for n, p in probabilities.items()), mpfr(0))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_the_tail_of_a_difference_is_the_sum_of_its_probabilities(law: Law, scale: Fraction) -> None:
    """P[N - N' >= least] agrees with direct summation to 150 bits."""
    for least in (1, 2, 3, 10, 25):
        found = mpfr(floor(difference(law, scale, least), 200)) / mpfr(2) ** 200

        assert abs(found - tail_by_summation(law, scale, least)) < gmpy2.exp2(-150)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("failure", [Fraction(9, 10), Fraction(1, 4), Fraction(1, 100), Fraction(1, 10**9)])
def test_a_difference_quantile_is_the_least_one(law: Law, scale: Fraction, failure: Fraction) -> None:
    """P[N - N' >= q] <= failure, and no smaller q >= 1 will do."""
    q = difference_quantile(law, scale, failure)

    assert tail_by_summation(law, scale, q) <= real(failure)
    assert q == 1 or tail_by_summation(law, scale, q - 1) > real(failure)


@pytest.mark.parametrize("scale", [*SCALES, Fraction(10**9), Fraction(2**62)])
@pytest.mark.parametrize("failure", [Fraction(9, 10), Fraction(1, 2), Fraction(1, 10**12)])
def test_a_geometric_quantile_is_the_least_one(scale: Fraction, failure: Fraction) -> None:
    """a^q <= failure, and a^(q-1) is larger."""
    q = geometric_quantile(scale, failure)

    assert gmpy2.exp(-q / real(scale)) <= real(failure)
    assert gmpy2.exp(-(q - 1) / real(scale)) > real(failure)


@pytest.mark.parametrize("factor", [Fraction(1, 7), Fraction(1), Fraction(10**30)])
@pytest.mark.parametrize("value", [Fraction(11, 10), Fraction(2), Fraction(10**40)])
def test_a_logarithm_is_rounded_down(value: Fraction, factor: Fraction) -> None:
    """floor_log(value, factor) = floor(factor ln(value))."""
    assert floor_log(value, factor) == int(gmpy2.floor(real(factor) * gmpy2.log(real(value))))


def test_a_bound_is_compared_without_rounding() -> None:
    """1000 P[N - N' >= 1] for one-sided noise of scale 1 is 268.94..."""
    bound = scaled(difference("geometric", Fraction(1), 1), 1000)

    assert bound.reaches(268)
    assert not bound.reaches(269)
    assert float(bound) == pytest.approx(268.9414213699951)
    assert isinstance(bound, RealBound)
