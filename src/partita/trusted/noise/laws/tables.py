"""Ordered categorical laws, sampled by inverse CDF with certified thresholds.

With tail(i) the probability of a category of at least i, category i is chosen when the uniform lies
in [1 - tail(i), 1 - tail(i+1)). With thresholds t(i) = floor(2^bits (1 - tail(i+1))), the first word
decides unless it equals a threshold; those rare words are refined digit by digit. Tails, not
cumulative probabilities, because a tiny tail has digits and a probability near one has none.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partita.trusted.noise.laws import fast
from partita.trusted.noise.laws.reals import Exact, Uniform, floor
from partita.trusted.noise.laws.words import UInts, WordSource

Ints = NDArray[np.int64]

_GUIDE_BITS: Final = 12
UNSURE: Final = -1


class Table:
    """A categorical law given by its tails.

    `tail(i)` is the probability of a category of at least i, positive for every category. With
    `count` the law has exactly that many categories; without, it goes on for ever, and
    thresholds are tabulated until they reach the last word.
    """

    def __init__(self, tail: Callable[[int], Exact], count: int | None = None, *, bits: int) -> None:
        self._tail = tail
        self._last = None if count is None else count - 1
        self.bits = bits
        self.thresholds = np.array(self._tabulate(), dtype=np.uint64)
        self.guide_shift = bits - min(bits, _GUIDE_BITS)
        starts = np.arange(1 << (bits - self.guide_shift), dtype=np.uint64) << np.uint64(self.guide_shift)
        self.guide = np.searchsorted(self.thresholds, starts, side="left")
        self._padded = np.append(self.thresholds, np.uint64(2**64 - 1))

    def draw(self, count: int, source: WordSource, *, compiled: bool = False) -> Ints:
        """`count` independent categories: one word each, then the words that doubt asks for."""
        words = source.take(count)
        return self.settle(self.look_up(words, compiled=compiled), words, source)

    def look_up(self, words: UInts, *, compiled: bool = False) -> Ints:
        """The category of each word, or -1 where the first word does not decide."""
        if compiled:
            found: Ints = fast.kernels().look_up(words, self.thresholds, self.guide, self.guide_shift)
            return found
        categories: Ints = self.guide[words >> np.uint64(self.guide_shift)]
        behind = np.flatnonzero(self._padded[categories] < words)
        while behind.size:
            categories[behind] += 1
            behind = behind[self._padded[categories[behind]] < words[behind]]
        unsure = self._padded[categories] == words
        categories[unsure & (categories < self.thresholds.size)] = UNSURE
        return categories

    def settle(self, categories: Ints, words: UInts, source: WordSource) -> Ints:
        """Decide what the first words left open, in order, with further words."""
        for index in np.flatnonzero(categories == UNSURE):
            categories[index] = self.category(Uniform(source, int(words[index])))
        return categories

    def category(self, uniform: Uniform) -> int:
        """The category in which `uniform` lies, exactly."""
        first = uniform.digits >> (uniform.bits - self.bits)
        category = int(np.searchsorted(self.thresholds, np.uint64(first), side="left"))
        while category != self._last and uniform.reaches(self._tail(category + 1)):
            category += 1
        return category

    def _tabulate(self) -> list[int]:
        """The thresholds that the first word can tell from the last category."""
        if self._last is not None:
            return [self._threshold(category) for category in range(self._last)]
        thresholds = [self._threshold(0)]
        while thresholds[-1] < (1 << self.bits) - 1:
            thresholds.append(self._threshold(len(thresholds)))
        return thresholds

    def _threshold(self, category: int) -> int:
        """floor(2^bits (1 - tail)); a real tail is no multiple of 2^-bits."""
        tail = self._tail(category + 1)
        if isinstance(tail, Fraction):
            return floor(1 - tail, self.bits)
        return (1 << self.bits) - 1 - floor(tail, self.bits)
