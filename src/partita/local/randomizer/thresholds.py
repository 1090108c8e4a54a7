"""Chances out of 2^64 that keep a privacy loss, rounded to the private side by integer arithmetic."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

from partita.errors.checks import check
from partita.numbers import rational

WHOLE: Final = 1 << 64
"""A threshold of so much is certainty."""

_LEAST_EPSILON: Final = Fraction(1, 1 << 20)
_LARGEST_EPSILON: Final = 32
_FIRST_BITS: Final = 192


def checked_epsilon(epsilon: object) -> Fraction:
    """epsilon as an exact number for which a threshold can be told from one half and from one."""
    exact = rational(epsilon, "epsilon")
    rule, fix = "must lie between 2^-20 and 32", "pass for example 1"
    check(_LEAST_EPSILON <= exact <= _LARGEST_EPSILON, "epsilon", rule, given=epsilon, fix=fix)
    return exact


def exp_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals below and above e^x for x >= 0, about 2^-bits apart, by the exponential series.

    Every term is rounded down for the one and up for the other. The series is left where a term is at
    most half of the one before, so that what is left out is at most the last term.

    >>> low, high = exp_bounds(Fraction(1), 64)
    >>> low < high, float(low)
    (True, 2.718281828459045)
    """
    one = 1 << bits
    low = high = below = above = one
    n = 0
    while above > 1 or n < 2 * x:
        n += 1
        below = below * x.numerator // (x.denominator * n)
        above = -(-above * x.numerator // (x.denominator * n))
        low, high = low + below, high + above
    return Fraction(low, one), Fraction(high + above, one)


@lru_cache(maxsize=256)
def threshold(epsilon: Fraction, favoured: int, others: int) -> int:
    """floor(2^64 p) for p = e^epsilon f / (e^epsilon f + o), f favoured outcomes against o others.

    With a chance of at most p to be among the favoured, each of them is at most e^epsilon times as
    likely as each of the others. The bounds are narrowed until both have the same integer part, which
    comes to an end because e^epsilon is irrational.

    >>> threshold(Fraction(1), 1, 1) / WHOLE
    0.7310585786300049
    """
    bits = _FIRST_BITS
    while True:
        low, high = (_scaled(bound * favoured, others) for bound in exp_bounds(epsilon, bits))
        if low == high:
            return low
        bits *= 2


def _scaled(weight: Fraction, others: int) -> int:
    return int(WHOLE * weight / (weight + others))
