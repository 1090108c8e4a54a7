"""Certified thresholds and hazards against a second library: MPFR, by gmpy2."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpfr, mpq

from partita.trusted.noise.hazard import NEGLIGIBLE, Hazard, Law, float_hazard
from partita.trusted.noise.laws import GeometricTables, ThresholdTable

SCALES = [Fraction(s) for s in ("1/100", "1/3", "1", "20", "32", "100", "4097/3")] + [
    Fraction(2**20),
    Fraction(2**62),
]
HAZARD_SCALES = [Fraction(s) for s in ("1/9", "1", "7/2", "100", "1000000")]
LAWS: tuple[Law, ...] = ("laplace", "geometric")


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    """1,200 bits for every computation by MPFR."""
    with gmpy2.context(gmpy2.get_context(), precision=1200):
        yield


def real(x: Fraction) -> Any:
    return mpfr(mpq(x.numerator, x.denominator))


def floor(x: Any, bits: int) -> int:
    return int(gmpy2.floor(gmpy2.mul_2exp(x, bits)))


def signed_cdf(category: int, scale: Fraction, shift: int) -> Any:
    """P[2H + sign < category], summed up the plain way."""
    a, q = gmpy2.exp(-1 / real(scale)), gmpy2.exp(-(1 << shift) / real(scale))
    high, minus = divmod(category, 2)
    before = 1 - q**high
    return before + (1 - q) * q**high * (1 / (1 + a)) if minus else before


@pytest.mark.parametrize("scale", SCALES)
def test_every_threshold_of_sign_and_high_part_is_the_floor_of_its_probability(scale: Fraction) -> None:
    """t(i) = floor(2^64 (1 - tail(i+1))), and the table ends where the next would be 2^64 - 1 again."""
    drawn = GeometricTables(scale, 64)
    count = drawn.top.thresholds.size

    expected = [floor(signed_cdf(i + 1, scale, drawn.shift), 64) for i in range(count)]

    assert drawn.top.thresholds.tolist() == expected
    assert expected.index(2**64 - 1) == count - 1


@pytest.mark.parametrize("scale", [Fraction(100), Fraction(4097, 3), Fraction(2**20), Fraction(2**62)])
def test_every_threshold_of_a_digit_is_the_floor_of_its_probability(scale: Fraction) -> None:
    """Digits are geometric with unit 2^place, cut off at their width."""
    places = []
    for place, table in GeometricTables(scale, 64).digits:
        places.append(place)
        count = table.thresholds.size + 1
        rate = gmpy2.exp2(mpfr(place)) / real(scale)
        total = 1 - gmpy2.exp(-count * rate)
        step = 1 if count < 256 else 61

        for digit in range(0, count - 1, step):
            cdf = (1 - gmpy2.exp(-(digit + 1) * rate)) / total
            assert int(table.thresholds[digit]) == floor(cdf, 64), (place, digit)

    assert places == list(range(0, GeometricTables(scale, 64).shift, 12))


def test_scales_are_split_only_above_32() -> None:
    """The high part has a scale of at most 32, and more than 16 once anything is split off."""
    for scale in [Fraction(32), Fraction(33), Fraction(2**40 + 1), Fraction(2**62)]:
        top = scale / (1 << GeometricTables(scale, 8).shift)

        assert top <= 32
        assert scale <= 32 or top > 16


def test_words_are_looked_up_next_to_every_threshold() -> None:
    """While thresholds are apart: below one is its category, above is the next one, on it is a doubt."""
    table = GeometricTables(Fraction(3), 64).top
    for place, t in enumerate(table.thresholds[:200].tolist()):
        assert table.look_up(np.array([t - 1, t, t + 1], dtype=np.uint64)).tolist() == [place, -1, place + 1]


def test_a_law_of_finitely_many_categories_ends_with_the_last() -> None:
    """The last category has no threshold: every word above the others is its own."""
    table = ThresholdTable(lambda i: Fraction(3 - i, 3), 3, bits=64)

    assert table.thresholds.tolist() == [2**64 // 3, 2 * 2**64 // 3]
    assert table.look_up(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64)).tolist() == [0, 1, 2]


def test_one_category_needs_no_threshold() -> None:
    """A certain outcome is certain on every word."""
    table = ThresholdTable(lambda i: Fraction(i), 1, bits=64)

    assert table.look_up(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64)).tolist() == [0, 0, 0]


def hazard_by_mpfr(law: Law, level: int, scale: Fraction) -> Any:
    """-ln P[noise <= level]."""
    rate = 1 / real(scale)
    a = gmpy2.exp(-rate)
    if law == "geometric":
        return -gmpy2.log1p(-gmpy2.exp(-(level + 1) * rate))
    if level < 0:
        return -gmpy2.log(gmpy2.exp(level * rate) / (1 + a))
    return -gmpy2.log1p(-gmpy2.exp(-(level + 1) * rate) / (1 + a))


def levels(law: Law, scale: Fraction) -> list[int]:
    steps = sorted({int(x * scale / 4) for x in range(161)} | set(range(12)))
    return steps if law == "geometric" else [-1 - k for k in reversed(steps)] + steps


@pytest.mark.parametrize("bits", [64, 192, 384])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", HAZARD_SCALES)
def test_fixed_hazards_are_floors(law: Law, scale: Fraction, bits: int) -> None:
    """fixed(bits)[k] = floor(2^bits h(k)), for negative levels too."""
    fixed = Hazard(law, scale).fixed(bits)
    ks = levels(law, scale)

    assert [fixed[k] for k in ks] == [floor(hazard_by_mpfr(law, k, scale), bits) for k in ks]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("power", range(-20, 63, 4))
def test_float_hazards_are_close(law: Law, power: int) -> None:
    """Floats lie within 2^-40 of the hazard, relatively, wherever it is not negligible."""
    scale = Fraction(2) ** power
    checked = 0
    for level in levels(law, scale):
        exact = hazard_by_mpfr(law, level, scale)
        if exact < NEGLIGIBLE:
            assert float_hazard(level, float(1 / scale), law == "laplace") <= NEGLIGIBLE
            continue
        found = mpfr(float_hazard(level, float(1 / scale), law == "laplace"))
        assert abs(found - exact) <= exact * gmpy2.exp2(-40), level
        checked += 1

    assert checked or (law == "geometric" and power < -9)


def test_hazards_that_vanish_in_floats_are_negligible() -> None:
    """Even 2^64 positions at such a level stay below `NEGLIGIBLE`, and the integers are certified zeros."""
    hazard = Hazard("laplace", Fraction(1))

    assert hazard.floats[2**63] == 0.0
    assert hazard.fixed(192)[2**63] == 0
    assert hazard_by_mpfr("laplace", 800, Fraction(1)) * 2**64 < NEGLIGIBLE


def test_success_is_certain_only_for_one_sided_noise_below_zero() -> None:
    """Two-sided noise may lie below any level."""
    assert Hazard("geometric", Fraction(1)).certain(-1)
    assert not Hazard("geometric", Fraction(1)).certain(0)
    assert not Hazard("laplace", Fraction(1)).certain(-(10**6))
    assert float_hazard(-1, 1.0, False) == float("inf")
