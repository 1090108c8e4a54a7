"""Discrete Gaussian noise, exactly: P[X = k] proportional to exp(-k^2 / (2 variance)), all k [CKS20].

Up to a standard deviation of 128 one table holds all values that 64 bits can tell apart, and a sample is one
word. Beyond, values are put together in blocks of 2^shift. A block is chosen by the largest density in it, a
place in the block is uniform, and the value is accepted with the ratio of its density to the largest: at
least 99.3 of 100 are. That ratio is never computed unless it matters: one number for each block says below
which chance every place in it is accepted; floats with a margin decide most of the others, and enclosures
the rest. See docs/proofs/gaussian_noise.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np
from flint import arb, ctx

from partita.arrays import Bools, Ints, UInts
from partita.trusted.noise.laws import (
    BLOCK,
    IntegerArray,
    Real,
    ThresholdTable,
    Uniform,
    WordSource,
    assemble,
    enclose,
    kernels,
)

SMALLEST_VARIANCE: Final = Fraction(1, 2**20)
LARGEST_VARIANCE: Final = Fraction(2**124)
LARGEST_INT64_VARIANCE: Final = 2**100
"""Up to here 64 bits hold every value that a table has: some 2^11 blocks of at most 2^43 values."""
_TOP_DEVIATION: Final = 128
"""Largest standard deviation, in blocks, of a table: its length (19 entries for each) against rejections."""


class GaussianTables:
    """A table of values or of blocks of values, and for each block the chance that is always accepted.

    Category 2j + s of the table is the value j, or the complement -1-j for s = 1. With blocks it is the block
    of the values M = 2^shift j + L, L below 2^shift, or of their complements.
    """

    def __init__(self, variance: Fraction, bits: int, *, top_deviation: int = _TOP_DEVIATION) -> None:
        self.variance, self.bits = variance, bits
        self.shift = 0
        while variance > (top_deviation << self.shift) ** 2:
            self.shift += 1
        self._beyond = 0 if self.shift else 1  # the complement of j is one further from zero than j
        self._partial: tuple[int, list[arb]] = (0, [])
        self.rate = (1 << 2 * self.shift) / (2 * variance)
        self.top = ThresholdTable(self._tail, bits=bits)
        # The digits of a chance are the lowest bits of the word of the place, if enough of them are left.
        self.shares_word = 2 * self.shift <= bits
        self.chance_bits = bits - self.shift if self.shares_word else bits
        self.sure = np.array(list(self._tabulate_sure()) if self.shift else [], np.uint64)
        self.float_rate = float(1 / (2 * variance))

    def blocks(
        self, count: int, source: WordSource, *, margin: float, fast: bool, compiled: bool
    ) -> Iterator[IntegerArray]:
        """`count` samples, some at a time.

        A block of proposals takes its words for the table, then those for the places, then, if they are
        apart, those for the chances; then words for doubtful categories and doubtful chances, in order. What
        was rejected is made up for by another block.
        """
        while count:
            drawn = self._block(min(BLOCK, count), source, margin, fast, compiled)
            count -= drawn.size
            yield drawn

    def _block(
        self, count: int, source: WordSource, margin: float, fast: bool, compiled: bool
    ) -> IntegerArray:
        words = source.take(count)
        if not self.shift:
            categories = self.top.settle(self.top.look_up(words, compiled=compiled), words, source)
            return assemble(categories, None, 0, signed=True, wide=False)
        places = source.take(count)
        chances = places if self.shares_word else source.take(count)
        if compiled:
            values, accepted = kernels().gaussians(
                words, places, chances, self.top.thresholds, self.top.guide, self.top.guide_shift, self.sure,
                self.shift, self.bits, self.chance_bits, self.float_rate, margin,
            )  # fmt: skip
            if accepted >= 0:
                found: IntegerArray = values[:accepted]
                return found
        top = self.top.settle(self.top.look_up(words), words, source)
        low = (places >> np.uint64(self.bits - self.shift)).astype(np.int64)
        if self.shares_word:
            chances = chances & np.uint64((1 << self.chance_bits) - 1)
        kept = self._accept(top, low, chances, source, margin, fast)
        return assemble(top[kept], low[kept], self.shift, signed=True, wide=False)

    def _accept(
        self, top: Ints, low: Ints, chances: UInts, source: WordSource, margin: float, fast: bool
    ) -> Bools:
        """Whether each proposal is accepted."""
        if not fast:
            return np.array([self._decide(*each, source) for each in zip(top, low, chances, strict=True)])
        block = top >> 1
        known = np.minimum(block, self.sure.size - 1)
        accepted = np.asarray(chances < self.sure[known])
        accepted &= block < self.sure.size
        open_ones = np.flatnonzero(~accepted)
        away = (low[open_ones] + (top[open_ones] & 1)).astype(np.float64)
        start = block[open_ones].astype(np.float64) * 2.0 ** (self.shift + 1)
        ratios = np.exp(-(start + away) * away * self.float_rate)
        unit = 2.0**-self.chance_bits
        chance = chances[open_ones].astype(np.float64) * unit
        accepted[open_ones] = chance + (unit + margin) <= ratios
        doubtful = open_ones[(chance + (unit + margin) > ratios) & (chance - margin < ratios)]
        for i in doubtful:
            accepted[i] = self._decide(top[i], low[i], chances[i], source)
        return accepted

    def _decide(self, top: int, low: int, chance: int, source: WordSource) -> bool:
        """Whether a uniform with these first digits lies below the ratio of two densities, exactly."""
        away = int(low) + (int(top) & 1)
        start = (int(top) >> 1) << (self.shift + 1)
        gap = (start + away) * away / (2 * self.variance)
        return Uniform(source, int(chance), bits=self.chance_bits).below(lambda: (-enclose(gap)).exp())

    def _tabulate_sure(self) -> Iterator[int]:
        """For each block, a number of chances that is accepted at every place in it: e^-x >= 1 - x.

        The last place of the complement of block j is 2^shift away from its first: x = rate (2j + 1).
        """
        for block in range(self.top.thresholds.size // 2 + 1):
            yield max(0, ((1 - self.rate * (2 * block + 1)) * (1 << self.chance_bits)).__floor__())

    def _tail(self, category: int) -> Real:
        """The probability of a category of at least this one: plain values or blocks, and complements."""

        def ratio() -> arb:
            plain, turned = self._from((category + 1) // 2), self._from(category // 2 + self._beyond)
            return (plain + turned) / (self._from(0) + self._from(self._beyond))

        return ratio

    def _from(self, first: int) -> arb:
        """The sum of exp(-rate j^2) over all j from `first` on, at the working precision."""
        if self._partial[0] != ctx.prec:
            last = 1
            while self.rate * last**2 < ctx.prec:
                last += 1
            terms = [self._rest(last), *(self._weight(j) for j in reversed(range(last)))]
            self._partial = (ctx.prec, list(accumulate(terms))[::-1])
        sums = self._partial[1]
        return sums[first] if first < len(sums) else self._rest(first)

    def _weight(self, j: int) -> arb:
        return (-enclose(self.rate * j**2)).exp()

    def _rest(self, first: int) -> arb:
        """The same sum, from its first term: the next is e^(-rate (2 first + 1)) of it."""
        step = (-enclose(self.rate * (2 * first + 1))).exp()
        return self._weight(first) * arb(1).union(1 / (1 - step))


@lru_cache(maxsize=256)
def gaussian_tables(variance: Fraction, bits: int) -> GaussianTables:
    """The tables of a variance, made once."""
    return GaussianTables(variance, bits)
