"""A released histogram: every cell with noise of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from partita.numbers import failure
from partita.public.axis.base.noisy_sum import checked_ranges
from partita.public.axis.curve.curve import Floats, UInts
from partita.public.axis.flat.flat import FlatRelease
from partita.public.bounds.signed_ranges import Run

_ONE = np.uint64(1)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class HistogramRelease(FlatRelease):
    """The noisy count of each cell; a range is the sum of its cells."""

    kind: ClassVar[str] = "histogram"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"histogram": ("DMNS06",)}
    max_series: ClassVar[int] = 1
    largest_size: ClassVar[int] = 2**24

    @staticmethod
    def length(size: int) -> int:
        """One for each cell."""
        return size

    def runs(self, low: int, high: int) -> Iterator[Run]:
        """The cells themselves."""
        yield low, high + 1, 1

    @property
    def prefixes(self) -> Floats:
        """Running sums."""
        return np.asarray(self.line.running[1:].astype(np.float64))

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """Sums of cells, by differences of running sums."""
        low, high = checked_ranges(lows, highs, self.size)
        return self.line.sums(low, high + _ONE)

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors of sums of cells, exactly."""
        low, high = checked_ranges(lows, highs, self.size)
        return np.sqrt(((high - low).astype(np.float64) + 1.0) * self.line.variance)

    def error(self, beta: float) -> float:
        """The smaller of two bounds: every range at its share of beta, or all prefixes by Lévy's inequality.

        Noise is symmetric, so the largest of its running sums exceeds t at most twice as often as
        the last one does, and so below; a range is a difference of two running sums.
        """
        chance = float(failure(beta))
        ranges = self.size * (self.size + 1) // 2
        each = self.line.reach(self.size, chance / ranges)
        return min(each, 2 * self.line.reach(self.size, chance / 2))
