"""Certified floors, and uniforms of which only the digits asked for are drawn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import gmpy2
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import TapeExhausted
from partita.trusted.noise.laws import Tape, Uniform, enclose, floor, precision


def exp_floor(x: Fraction, shift: int) -> int:
    """floor(2^shift exp(x)) by MPFR."""
    with gmpy2.context(gmpy2.get_context(), precision=4000):
        return int(gmpy2.floor(gmpy2.exp(gmpy2.mpq(x.numerator, x.denominator)) * gmpy2.mpfr(2) ** shift))


@given(st.fractions(-50, 50).filter(bool), st.integers(0, 300))
def test_floors_of_exponentials_agree_with_mpfr(x: Fraction, shift: int) -> None:
    """floor(exp(x), shift) = floor(2^shift exp(x))."""
    assert floor(lambda: enclose(x).exp(), shift) == exp_floor(x, shift)


@given(st.fractions(), st.integers(0, 100))
def test_floors_of_fractions_are_exact(x: Fraction, shift: int) -> None:
    """A Fraction is rounded down, below zero too."""
    found = floor(x, shift)

    assert found <= x * 2**shift < found + 1


def test_a_number_next_to_an_integer_is_certified() -> None:
    """1 - exp(-1000) has more than 1,400 ones behind the point, and is still below one."""
    just_below = lambda: 1 - (-arb(1000)).exp()  # noqa: E731

    assert floor(just_below) == 0
    assert floor(just_below, 64) == 2**64 - 1


def test_the_precision_before_is_put_back() -> None:
    """Also after an error, and when one precision is set inside another."""
    before = ctx.prec
    with precision(777):
        with precision(99):
            assert ctx.prec == 99
        assert ctx.prec == 777
    with pytest.raises(ZeroDivisionError), precision(777):
        raise ZeroDivisionError

    assert ctx.prec == before


def test_threads_do_not_disturb_each_other() -> None:
    """Floors found by eight threads at once are those found by one."""
    cases = [(Fraction(-k, 7), 40 + 13 * k) for k in range(1, 200)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda case: floor(lambda: enclose(case[0]).exp(), case[1]), cases))

    assert found == [exp_floor(x, shift) for x, shift in cases]


@given(st.integers(0, 2**16 - 1), st.fractions(0, 1))
def test_a_uniform_is_compared_exactly(digits: int, limit: Fraction) -> None:
    """Followed by zeros, a uniform lies below a limit if and only if its digits do."""
    words = [digits >> 12, (digits >> 8) & 15, (digits >> 4) & 15, digits & 15] + [0] * 200

    assert Uniform(Tape(words, bits=4)).below(limit) == (Fraction(digits, 2**16) < limit)


def test_a_uniform_draws_digits_only_while_they_matter() -> None:
    """0.25 against 1/3: one word of four bits decides; 5/16 needs two."""
    easy, hard = Tape([4, 9], bits=4), Tape([5, 9], bits=4)

    assert (Uniform(easy).below(Fraction(1, 3)), easy.used) == (True, 1)
    assert (Uniform(hard).below(Fraction(1, 3)), hard.used) == (False, 2)


def test_digits_once_drawn_are_kept() -> None:
    """A uniform gives consistent answers to several questions."""
    uniform = Uniform(Tape([5, 4], bits=4))

    answers = [uniform.below(Fraction(k, 3 * 2**8)) for k in (2**8 - 13, 2**8, 2**8 + 13)]

    assert answers == [False, True, True]
    assert (uniform.digits, uniform.bits) == (5 * 16 + 4, 8)


def test_a_doubt_at_the_end_of_a_tape_is_an_error() -> None:
    """No answer is made up when digits run out."""
    with pytest.raises(TapeExhausted):
        Uniform(Tape([5, 5], bits=4)).below(Fraction(1, 3))


@given(st.integers(1, 40), st.integers(0, 2**16 - 1))
def test_uniform_integers_are_the_rounded_multiple(count: int, digits: int) -> None:
    """integer_below(count) is floor(count U)."""
    words = [digits >> 8, digits & 255] + [0] * 50

    assert Uniform(Tape(words, bits=8)).integer_below(count) == digits * count >> 16
