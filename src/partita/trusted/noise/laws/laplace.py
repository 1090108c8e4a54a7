"""Discrete Laplace and geometric noise, exactly, with a fixed number of words per sample.

With a = exp(-1/scale): X = M or ~M (that is -1-M) by a sign bit that is Bernoulli(a/(1+a)),
where M is Geometric(a) and independent. Large scales use a mixed radix, M = 2^shift H + L:
H is Geometric(a^(2^shift)) and the digits of L are truncated geometric, all independent.
The sign shares its word with H. See docs/proofs/noise.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache, reduce
from operator import lshift, or_
from typing import Final

from partita.trusted.noise.laws.reals import Real, enclose
from partita.trusted.noise.laws.tables import Ints, Table
from partita.trusted.noise.laws.words import WordSource

BLOCK: Final = 1 << 14
_TOP_SCALE: Final = 32
_DIGIT_BITS: Final = 12


class GeometricTables:
    """Tables from which both one-sided and two-sided geometric noise of one scale are drawn."""

    def __init__(self, scale: Fraction, bits: int) -> None:
        self.rate = 1 / scale
        self.shift = _shift(scale)
        self.top = Table(self._signed_tail, bits=bits)
        self.digits = tuple(
            (place, Table(self._digit_tail(place, width), 1 << width, bits=bits))
            for place, width in _places(self.shift)
        )

    @property
    def words_per_sample(self) -> int:
        """How many words each sample takes before any doubt."""
        return 1 + len(self.digits)

    def blocks(self, count: int, source: WordSource, *, compiled: bool) -> Iterator[tuple[Ints, Ints | None]]:
        """(2H + sign, L) of `count` samples, block by block; M is 2^shift H + L, and no L stands for zero.

        A block takes all its top words, then the words of each digit, then, in the same
        order, the words that doubtful samples ask for.
        """
        for start in range(0, count, BLOCK):
            yield self._block(min(BLOCK, count - start), source, compiled)

    def _block(self, count: int, source: WordSource, compiled: bool) -> tuple[Ints, Ints | None]:
        looked_up = []
        for table in (self.top, *(digit for _, digit in self.digits)):
            words = source.take(count)
            looked_up.append((table, table.look_up(words, compiled=compiled), words))
        top, *digits = (table.settle(found, words, source) for table, found, words in looked_up)
        places = (place for place, _ in self.digits)
        low = reduce(or_, map(lshift, digits, places)) if digits else None
        return top, low

    def _survival(self, steps: int) -> Real:
        """exp(-rate steps): the probability of at least `steps` failures."""
        rate = self.rate * steps
        return lambda: (-enclose(rate)).exp()

    def _signed_tail(self, category: int) -> Real:
        """Categories 2H (plus) and 2H+1 (minus); (a + a^b)/(1+a) of the tail at H is without its plus."""
        high, minus = divmod(category, 2)
        above = self._survival(high << self.shift)
        if not minus:
            return above
        unit, step = self._survival(1), self._survival(1 << self.shift)
        return lambda: above() * (unit() + step()) / (1 + unit())

    def _digit_tail(self, place: int, width: int) -> Callable[[int], Real]:
        """One digit of L: geometric with unit 2^place, truncated to 2^width values."""
        everything = self._survival(1 << (place + width))

        def tail(digit: int) -> Real:
            above = self._survival(digit << place)
            return lambda: (above() - everything()) / (1 - everything())

        return tail


@lru_cache(maxsize=256)
def tables(scale: Fraction, bits: int) -> GeometricTables:
    """The tables of a scale, made once."""
    return GeometricTables(scale, bits)


def _shift(scale: Fraction) -> int:
    """How many low bits are split off, so that the top table stays small."""
    shift = 0
    while scale > _TOP_SCALE << shift:
        shift += 1
    return shift


def _places(shift: int) -> Iterator[tuple[int, int]]:
    for place in range(0, shift, _DIGIT_BITS):
        yield place, min(_DIGIT_BITS, shift - place)
