"""Real numbers known by shrinking enclosures, and uniforms known digit by digit.

A `Real` is a function that returns an enclosure (`flint.arb`) of one fixed number at the
working precision in force. Every decision here is certified: precision rises until the
enclosure leaves no doubt, so the outcome never depends on rounding.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TypeAlias

from flint import arb, ctx, fmpq, fmpz

from partita.trusted.noise.laws.words import Uncopyable, WordSource

Real: TypeAlias = Callable[[], arb]
Exact: TypeAlias = Fraction | Real

_PRECISION = threading.RLock()
_GUARD_BITS = 64


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with enclosures of `bits` bits; the precision in force before is put back."""
    with _PRECISION:
        before, ctx.prec = ctx.prec, bits
        try:
            yield
        finally:
            ctx.prec = before


def enclose(value: Fraction) -> arb:
    """An enclosure of a rational number at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def floor(value: Exact, shift: int = 0) -> int:
    """The integer part of 2^shift times `value`, certified.

    A `Real` must not be a dyadic rational: no precision could tell on which side it lies.
    Values built from exp of a nonzero rational never are (Lindemann).

    >>> floor(lambda: arb(1).exp(), 3)
    21
    """
    if isinstance(value, Fraction):
        return (value.numerator << shift) // value.denominator
    bits = shift + _GUARD_BITS
    while True:
        with precision(bits):
            found = (value() * arb(fmpz(1) << shift)).floor().unique_fmpz()
        if found is not None:
            return int(found)
        bits *= 2


class Uniform(Uncopyable):
    """A uniform real in [0, 1) of which only the digits asked for were drawn."""

    def __init__(self, source: WordSource, first: int | None = None) -> None:
        self._source = source
        self.bits = source.bits
        self.digits = int(source.take(1)[0]) if first is None else first

    def refine(self) -> None:
        """Draw one more word of digits."""
        self.digits = (self.digits << self._source.bits) | int(self._source.take(1)[0])
        self.bits += self._source.bits

    def below(self, value: Exact) -> bool:
        """Whether U < value; draws more digits only while they matter."""
        while True:
            side = _side(value, self.digits, self.bits)
            if side:
                return side > 0
            self.refine()

    def reaches(self, tail: Exact) -> bool:
        """Whether U >= 1 - tail. A tail may be tiny: 1 - U is compared with it, not U with nearly 1."""
        while True:
            side = _side(tail, (1 << self.bits) - 1 - self.digits, self.bits)
            if side:
                return side > 0
            self.refine()

    def integer_below(self, count: int) -> int:
        """floor(count U): uniform among 0, ..., count-1."""
        while True:
            low = self.digits * count >> self.bits
            if low == (self.digits * count + count - 1) >> self.bits:
                return low
            self.refine()


def _side(value: Exact, digits: int, bits: int) -> int:
    """Where a value lies: 1 at or above [digits, digits+1] / 2^bits, -1 at or below it, 0 strictly inside."""
    if isinstance(value, Fraction):
        scaled, whole = value.numerator << bits, digits * value.denominator
        return (scaled >= whole + value.denominator) - (scaled <= whole)
    working = bits + _GUARD_BITS
    while True:
        with precision(working):
            scaled_value = value() * arb(fmpz(1) << bits)
            if scaled_value >= digits + 1:
                return 1
            if scaled_value <= digits:
                return -1
            if digits < scaled_value < digits + 1:
                return 0
        working *= 2
