"""Released noisy prefixes; a range is the difference of two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.numbers import failure
from partita.public.axis.base.noisy_sum import checked_ranges
from partita.public.axis.curve.curve import Floats, UInts
from partita.public.axis.flat.flat import FlatRelease
from partita.public.bounds.query_error import largest_reach
from partita.public.bounds.signed_ranges import Run

_ONE = np.uint64(1)
_ROOM = 2**62


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ThresholdRelease(FlatRelease):
    """The noisy count of the cells 0, ..., t for every cell t."""

    kind: ClassVar[str] = "thresholds"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"thresholds": ("SU",)}
    max_series: ClassVar[int] = 1
    largest_size: ClassVar[int] = 2**24

    @staticmethod
    def length(size: int) -> int:
        """One for each cell."""
        return size

    def runs(self, low: int, high: int) -> Iterator[Run]:
        """The prefix up to high without the one before low."""
        yield high, high + 1, 1
        if low > 0:
            yield low - 1, low, -1

    @property
    def prefixes(self) -> Floats:
        """As they were released."""
        return self.noisy.astype(np.float64)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """Differences of prefixes."""
        low, high = checked_ranges(lows, highs, self.size)
        return np.asarray((self._upto[high + _ONE] - self._upto[low]).astype(np.float64))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors of one prefix or two, exactly."""
        low, _ = checked_ranges(lows, highs, self.size)
        return np.sqrt(np.where(low > 0, 2.0, 1.0) * self.line.variance)

    def error(self, beta: float) -> float:
        """The smaller of two bounds: every range at its share of beta, or twice the largest of all noises."""
        chance = float(failure(beta))
        ranges = self.size * (self.size + 1) // 2
        each = self.line.reach(2, chance / ranges)
        return min(each, 2 * largest_reach(self.scale, self.size, chance))

    @cached_property
    def _upto(self) -> NDArray[Any]:
        """The count before each cell and of all; Python ints where differences might not fit."""
        fits = all(-_ROOM < bound < _ROOM for bound in (int(self.noisy.min()), int(self.noisy.max())))
        return np.concatenate([[0], self.noisy.astype(np.int64 if fits else object)])
