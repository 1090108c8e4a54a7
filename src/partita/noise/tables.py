"""Ordered categorical laws, sampled by inverse CDF with certified thresholds.

Category i is chosen when the uniform lies in [cdf(i), cdf(i+1)). With thresholds
t(i) = floor(2^bits cdf(i+1)), the first word decides unless it equals a threshold; those
rare words are refined digit by digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partita.noise import fast
from partita.noise.reals import Exact, Uniform, floor
from partita.noise.words import UInts, WordSource

__all__ = ["UNSURE", "Ints", "Table"]

Ints = NDArray[np.int64]

_GUIDE_BITS: Final = 12
UNSURE: Final = -1


class Table:
    """A categorical law given by its cumulative probabilities.

    `cdf(i)` is the probability of a category below i, increasing in i. With `count` the law
    has exactly that many categories; without, it goes on for ever, and thresholds are
    tabulated until they reach the last word.
    """

    def __init__(self, cdf: Callable[[int], Exact], count: int | None = None, *, bits: int) -> None:
        self._cdf = cdf
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
        while category != self._last and not uniform.below(self._cdf(category + 1)):
            category += 1
        return category

    def _tabulate(self) -> list[int]:
        """floor(2^bits cdf(i+1)) for every i that the first word can tell from the last category."""
        if self._last is not None:
            return [floor(self._cdf(i + 1), self.bits) for i in range(self._last)]
        thresholds = [floor(self._cdf(1), self.bits)]
        while thresholds[-1] < (1 << self.bits) - 1:
            thresholds.append(floor(self._cdf(len(thresholds) + 1), self.bits))
        return thresholds
