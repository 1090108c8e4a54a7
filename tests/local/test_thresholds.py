"""Thresholds by integer arithmetic, and exact columns of uniform draws."""

from __future__ import annotations

import os
import sys
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from partita.errors import InvalidParameter
from partita.local.columns import ColumnDraws
from partita.local.randomizer import WHOLE, KernelDraws, check_epsilon, exp_bounds, threshold
from partita.testing import tape_law
from partita.trusted.noise.laws import Tape, chances, flags, integers_below

EPSILONS = [Fraction(1, 1 << 20), Fraction(1, 7), Fraction(1), Fraction(5, 2), Fraction(32)]
TOP = 1 << 56


@pytest.mark.parametrize("x", EPSILONS)
def test_bounds_of_the_exponential_enclose_it(x: Fraction) -> None:
    """A second library puts e^x strictly between them, and they are close."""
    low, high = exp_bounds(x, 128)
    ctx.prec, before = 300, ctx.prec
    try:
        value = arb(fmpq(x.numerator, x.denominator)).exp()
        assert arb(fmpq(low.numerator, low.denominator)) < value < arb(fmpq(high.numerator, high.denominator))
    finally:
        ctx.prec = before
    assert high - low < Fraction(1, 1 << 60)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("favoured", "others"), [(1, 1), (1, 1023), (364, 729), (1 << 40, 1)])
def test_a_threshold_is_the_last_private_one(epsilon: Fraction, favoured: int, others: int) -> None:
    """With t favoured outcomes are at most e^epsilon times as likely as others; with t + 1 more than that."""
    t = threshold(epsilon, favoured, others)
    low, high = exp_bounds(epsilon, 400)

    assert Fraction(t, favoured) <= low * Fraction(WHOLE - t, others)
    assert Fraction(t + 1, favoured) > high * Fraction(WHOLE - t - 1, others)


@pytest.mark.parametrize("epsilon", [0, -1, 33, "1e-7", float("nan"), "one"])
def test_an_epsilon_without_a_threshold_is_refused(epsilon: object) -> None:
    """Zero, negative, huge and tiny ones, and what is no number."""
    with pytest.raises(InvalidParameter, match="epsilon"):
        check_epsilon(epsilon)


@pytest.mark.parametrize("bound", range(1, 17))
def test_integers_below_a_bound_are_even(bound: int) -> None:
    """Over all tapes of words of four bits, every integer has the same mass, and no other comes."""
    law = tape_law(lambda tape: int(integers_below(tape, bound, 1)[0]), words=3)

    assert set(law) == set(range(bound))
    assert len(set(law.values())) == 1


def test_integers_below_a_bound_are_independent() -> None:
    """Two integers of one call have the mass of all pairs, redrawn words included."""
    law = tape_law(lambda tape: tuple(integers_below(tape, 6, 2).tolist()), words=4)

    assert len(law) == 36
    assert len(set(law.values())) == 1


def test_integers_leave_a_tape_as_it_was() -> None:
    """A word that is drawn again is not written over."""
    words = [15, 3, 7]

    first = integers_below(Tape(words, bits=4), 5, 2)

    assert first.tolist() == [2, 3]
    assert integers_below(Tape(words, bits=4), 5, 2).tolist() == first.tolist()


@pytest.mark.parametrize("bound", [0, -1, 1 << 64])
def test_a_bound_out_of_reach_is_refused(bound: int) -> None:
    """There must be an integer to draw, and it must fit."""
    with pytest.raises(InvalidParameter, match="bound"):
        integers_below(Tape([1]), bound, 1)


@pytest.mark.parametrize("t", [0, 1, 12345, WHOLE // 2, WHOLE - 1])
def test_a_chance_is_a_comparison_with_the_threshold(t: int) -> None:
    """Words below it and no others: so exactly t of 2^64."""
    words = sorted({0, max(0, t - 1), t, min(WHOLE - 1, t + 1), WHOLE - 1})

    expected = [word < t for word in words]

    assert chances(Tape(words), t, len(words)).tolist() == expected
    assert chances(Tape(words), np.full(len(words), t, np.uint64), len(words)).tolist() == expected


def test_a_chance_of_all_is_certain() -> None:
    """2^64 of 2^64."""
    assert chances(Tape([0, WHOLE - 1]), WHOLE, 2).all()


@pytest.mark.parametrize("t", [0, 1, TOP - 1, TOP, 77 * TOP + 5, WHOLE - 1])
@pytest.mark.parametrize("rest", [0, 4, 5, 6, TOP - 1])
def test_flags_compare_a_byte_and_then_the_rest(t: int, rest: int) -> None:
    """Every first byte with the same 56 further bits: the number that they make is compared with t."""
    first = np.arange(256, dtype=np.uint8).view(np.uint64)
    further = [(7 << 56) + rest]

    found = flags(Tape([*first.tolist(), *further]), t, 256)

    assert found.tolist() == [byte * TOP + rest < t for byte in range(256)]


def test_flags_of_any_number() -> None:
    """A count that fills no whole word takes the first bytes of it."""
    assert flags(Tape([0]), TOP, 0).tolist() == []
    assert flags(Tape([5 << 8]), 3 * TOP, 3).tolist() == [True, False, True]


@pytest.mark.parametrize("t", [1, WHOLE // 3, WHOLE - 1])
def test_a_device_compares_the_same_way(monkeypatch: pytest.MonkeyPatch, t: int) -> None:
    """A number of 64 bits from the kernel, below the threshold."""
    for word in (t - 1, t):
        monkeypatch.setattr(os, "urandom", lambda size, word=word: word.to_bytes(8, "little") * (size // 8))

        assert KernelDraws().chance(t) == (word < t)
        assert KernelDraws().row(t, 3) == (0b111 if word < t else 0)


def test_a_row_has_a_word_for_each_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first word decides about the lowest bit; one call of the kernel for all, so time is linear."""
    t, asked = WHOLE // 3, []

    def drawn(size: int) -> bytes:
        asked.append(size)
        return b"".join(word.to_bytes(8, sys.byteorder) for word in (t - 1, t, t, t - 1, 0))

    monkeypatch.setattr(os, "urandom", drawn)
    assert KernelDraws().row(t, 5) == 0b11001
    assert asked == [40]


def test_a_bit_is_put_in_its_place() -> None:
    """One person's row and a column of rows hold the same bits."""
    rows = np.array([[0b10110010, 0b1], [0b11111111, 0b1]], dtype=np.uint8)
    places, bits = np.array([1, 8]), np.array([0, 0])
    expected = [
        KernelDraws().with_bit(int.from_bytes(row.tobytes(), "little"), int(place), int(bit))
        for row, place, bit in zip(rows, places, bits, strict=True)
    ]

    found = ColumnDraws(2, Tape([])).with_bit(rows.copy(), places, bits)

    assert [int.from_bytes(row.tobytes(), "little") for row in found] == expected
