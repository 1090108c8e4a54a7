"""The cap: its exact law on tiny lines, what it loses, and that true values do not enter."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain import Category, Integer, Real
from partita.errors import InvalidParameter
from partita.public.sums.base import ValueLine
from partita.public.sums.knots import (
    Knots,
    Tops,
    ValueBuckets,
    align_caps,
    clear_level,
    highest_clear,
    octave_level,
)
from partita.testing import RationalNoise, law, privacy_loss
from partita.trusted.mechanisms.sums import ValueCap
from partita.trusted.secret import Points

FAR = 10**6
BASE = Fraction(1, 2)


class _Told:
    """Enumerated noise whose far values are told apart by side only: all thresholds lie between them.

    Null, invalid and the origin, which choose nothing, get none: there are fewer branches.
    """

    def __init__(self, noise: RationalNoise) -> None:
        self.noise = noise

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        names = {"below": -FAR, "above": FAR}
        return np.array([*x[:3], *(names.get(y, y) for y in self.noise.add(x[3:], scale))], dtype=object)


def _law(domain: Integer, counts: tuple[int, ...]) -> Any:
    cap = ValueCap(value=domain, epsilon=1)
    places = np.arange(len(counts))[:, np.newaxis]
    points = Points.from_rows(places, axes=[cap.value.axis], counts=counts)

    def run(noise: RationalNoise) -> Tops:
        noisy = cap.measure(points, session=_Told(noise))  # type: ignore[arg-type]
        return cap.buckets.tops(noisy, cap.scale)

    return law(run, RationalNoise(BASE, window=range(2)))


def test_the_law_of_the_cap_loses_no_more_than_epsilon() -> None:
    """One row more, in any position, changes the probability of every choice by at most e^epsilon."""
    domain, nothing = Integer(-1, 1), (0,) * 7
    before = _law(domain, nothing)
    for place in (0, 1, 3, 4, 6):
        after = _law(domain, (*nothing[:place], 1, *nothing[place + 1 :]))
        assert privacy_loss(before, after, base=BASE, unit=Fraction(1)) <= 1


def test_rows_at_the_origin_and_without_a_number_choose_nothing() -> None:
    """The caps are the same whatever the first three buckets hold."""
    buckets = ValueBuckets(ValueLine.of(Integer(-50, 1000)))
    noisy = np.arange(buckets.size) * 30
    other = np.concatenate([[10**6, -5, 10**9], noisy[3:]])
    assert buckets.tops(noisy, Fraction(20)) == buckets.tops(other, Fraction(20))


def test_every_position_has_one_bucket_in_order() -> None:
    """Buckets grow with the distance from the origin, on both sides, and special cells have their own."""
    buckets = ValueBuckets(ValueLine.of(Integer(-9, 20)))
    found = buckets.of(np.arange(34, dtype=np.uint64))

    assert sorted(set(found.tolist())) == list(range(buckets.size))
    assert found[[33, 32, 10, 31, 0]].tolist() == [0, 1, 2, 3 + len(buckets.above), buckets.size - 1]
    assert np.diff(found[11:31]).min() >= 0
    assert np.diff(found[1:10]).max() <= 0


def test_clear_values_set_the_cap() -> None:
    """Noise off, the cap is the first that holds the largest values that many rows have, times four."""
    cap = ValueCap(value=Integer(0, 10**9), epsilon="1/20")
    noisy = np.zeros(cap.buckets.size, np.int64)
    noisy[3 + cap.buckets.above.index(1280)] = 500
    noisy[3 + cap.buckets.above.index(1792)] = 90
    assert cap.buckets.tops(noisy, cap.scale) == Tops(4 * 1792, None, (1792, None))
    noisy[3 + cap.buckets.above.index(7 << 24)] = 200
    assert cap.buckets.tops(noisy, cap.scale) == Tops(4 * 1792, None, (1792, None))


def test_a_side_that_is_not_clear_has_the_cap_of_the_other() -> None:
    """Its values may be as large: a fifth of all rows is seldom clear by itself. None where none can be."""
    buckets, scale = ValueBuckets(ValueLine.of(Integer(-300, 10**6))), Fraction(20)
    first = {"up": 3, "down": 4 + len(buckets.above)}
    for side in first:
        noisy = np.zeros(buckets.size, np.int64)
        noisy[first[side] + buckets.below.index(160)] = 500
        assert buckets.tops(noisy, scale) == Tops(640, 640, (160, 160))
    noisy[first["up"] + buckets.above.index(5 << 10)] = 500
    assert buckets.tops(noisy, scale).seen == (5 << 10, 160)
    noisy[first["down"] :] = 0
    assert buckets.tops(noisy, scale).seen == (5 << 10, buckets.below[-1])


def test_where_nothing_is_clear_the_fullest_bucket_caps_both_sides() -> None:
    """On whichever side it is; a line with one side has one cap."""
    scale = Fraction(20)
    for domain, tops in (
        (Integer(-300, 900), Tops(48, 48, (12, 12))),
        (Integer(0, 900), Tops(48, None, (12, None))),
    ):
        buckets = ValueBuckets(ValueLine.of(domain))
        for first in (3, *((4 + len(buckets.above),) if domain.low < 0 else ())):
            noisy = np.zeros(buckets.size, np.int64)
            noisy[first + buckets.above.index(12)] = 30
            assert buckets.tops(noisy, scale) == tops


@pytest.mark.parametrize(("domain", "outside"), [(Integer(0, 10**6), -1), (Integer(-(10**6), 0), 3)])
def test_rows_beyond_a_bound_at_the_origin_choose_nothing(domain: Integer, outside: int) -> None:
    """They count as the origin; where they are all that is clear, the caps are a guess by the other side."""
    buckets, scale = ValueBuckets(ValueLine.of(domain)), Fraction(20)
    noisy = np.zeros(buckets.size, np.int64)
    noisy[3 + buckets.above.index(12) if domain.high else 4 + buckets.below.index(12)] = 30
    alone = buckets.tops(noisy, scale)
    noisy[outside] = 5_000

    assert buckets.tops(noisy, scale) == alone
    assert not buckets.is_clear(noisy, scale)
    assert buckets.tops(noisy, scale, earlier=True) != alone


def test_a_column_of_one_value_has_no_caps() -> None:
    """There is nothing to choose, whatever lies out of bounds."""
    buckets = ValueBuckets(ValueLine.of(Integer(7, 7)))
    assert buckets.tops(np.full(buckets.size, 10**6), Fraction(20)) == Tops(None, None, (None, None))


def test_empty_octaves_are_seldom_clear() -> None:
    """The levels are what their tails ask for: an empty bucket passes with probability beta / 2L at most."""
    scale = Fraction(20)
    level = clear_level(scale, 100)
    ratio = np.exp(-1 / 20)
    assert ratio ** (level + 1) / (1 + ratio) <= 1e-3 / 200
    assert octave_level(scale, 100) > level
    assert highest_clear(np.array([[level, level + 1]]), clear=level, near=level).tolist() == [1]


def test_both_sides_share_their_odd_number() -> None:
    """Caps of both sides are aligned upwards, so that one unit of mass serves both."""
    for up in (1, 3, 20, 448, 7 << 40):
        for down in (1, 5, 6, 1 << 50):
            tops = align_caps(up, down)[:2]
            assert max(tops) == max(up, down)  # type: ignore[type-var]
            assert all(found >= given for found, given in zip(tops, (up, down), strict=True))  # type: ignore[operator]
            assert len({Knots(cap).odd for cap in tops if cap}) == 1


def test_only_numbers_have_sums() -> None:
    """Other columns, and lines beyond 2^63 cells, are refused by name."""
    for domain in (Category(["a", "b"]), Integer(-(2**63), 2**63 - 1)):
        with pytest.raises(InvalidParameter) as caught:
            ValueCap(value=domain, epsilon=1)
        assert caught.value.parameter == "value"
    assert ValueCap(value=Real(-1, 1, step="0.01"), epsilon=1).value.step == Fraction(1, 100)
