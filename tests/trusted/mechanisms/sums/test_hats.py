"""Knots and hats: whole masses that add up, and from which counts, sums and squares are exact."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from partita.public.sums.knots import DEPTH, Hats, Knots, caps

SMALL = caps(100)
LARGE = [odd << e for odd in (1, 3, 5, 7) for e in (20, 27, 30, 44, 60)]


def _edges(knots: Knots) -> np.ndarray:
    """All values next to a knot, in the middle of a gap, and beyond the cap."""
    around = {k + d for k in knots.offsets for d in (-2, -1, 0, 1, 2)}
    middles = {(a + b) // 2 for a, b in pairwise(knots.offsets)}
    return np.array(sorted(v for v in around | middles if 0 <= v < 2**63), np.int64)


def _moments(hats: Hats, values: np.ndarray) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Count, offset and square that the masses of each value stand for, exactly."""
    first, mass = hats.laid(values)
    rows = []
    for start, masses in zip(first.tolist(), mass.tolist(), strict=True):
        shares = [Fraction(each, hats.unit) for each in masses]
        places = range(start, start + len(shares))
        rows.append(
            (
                sum(shares, Fraction(0)),
                sum((s * Fraction(hats.values[p]) for s, p in zip(shares, places, strict=True)), Fraction(0)),
                sum(
                    (s * Fraction(hats.squares[p]) for s, p in zip(shares, places, strict=True)), Fraction(0)
                ),
            )
        )
    return rows


@pytest.mark.parametrize("cap", SMALL)
@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("degree", [1, 2])
def test_small_values_are_exact(cap: int, degree: int, fine: bool) -> None:
    """Every value up to the cap has mass one, its own offset, and of degree 2 its own square."""
    hats, values = Hats(Knots(cap, fine), degree), np.arange(cap + 3)

    found = _moments(hats, values)

    clamped = [min(int(v), cap) for v in values]
    assert [count for count, _, _ in found] == [1] * len(found)
    assert [offset for _, offset, _ in found] == clamped
    if degree == 2:
        assert [square for _, _, square in found] == [v**2 for v in clamped]


@pytest.mark.parametrize("cap", LARGE)
@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("degree", [1, 2])
def test_large_values_miss_by_no_more_than_is_stated(cap: int, degree: int, fine: bool) -> None:
    """At all boundaries masses are whole, not negative, add up to U, and round by what `rounding` says."""
    hats = Hats(Knots(cap, fine), degree)
    values = _edges(hats.knots)

    mass = hats.laid(values).mass
    found = _moments(hats, values)

    assert bool((mass >= 0).all())
    assert mass.sum(axis=1).tolist() == [hats.unit] * values.size
    for value, (_, offset, square) in zip(values.tolist(), found, strict=True):
        truth = min(value, cap)
        assert 0 <= truth - offset <= Fraction(hats.rounding)
        if degree == 2:
            assert abs(truth**2 - square) <= Fraction(hats.rounding_squares)


def test_values_up_to_two_to_the_32_are_not_rounded() -> None:
    """Ratio-four knots up to 2^32 have no rounding at all, with any cap."""
    assert {Hats(Knots(odd << 32)).rounding for odd in (1, 3, 5, 7)} == {0.0}
    assert Hats(Knots(1 << 60)).rounding > 0.0


def test_knots_follow_the_cap() -> None:
    """A cap four times as large has knots four times as large, once there are thirteen."""
    knots = Knots(5 << (2 * DEPTH))
    assert Knots(4 * knots.cap).offsets == tuple(4 * k for k in knots.offsets)
    assert len(knots) == DEPTH + 2


def test_caps_are_four_an_octave() -> None:
    """Caps grow by at most a third from 3 on, all are an odd number up to 7 times a power of two."""
    found = caps(2**63)
    assert found[-1] == 2**63
    assert {Knots(cap).odd for cap in found} == {1, 3, 5, 7}
    assert all(b <= a + max(1, a // 3) for a, b in pairwise(found))


def test_a_double_mass_at_knots_would_be_seen() -> None:
    """A row that gave its whole mass to both neighbours of a gap breaks the partition of unity."""
    hats = Hats(Knots(32))
    mass = hats.laid(np.array([8, 9])).mass
    assert (mass + (mass == hats.unit) * hats.unit).sum(axis=1).tolist() != [hats.unit] * 2
