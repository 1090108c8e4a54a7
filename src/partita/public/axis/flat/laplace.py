"""A noisy count released for every interval there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from partita.numbers import failure
from partita.public.axis.base.noisy_sum import checked_ranges
from partita.public.axis.curve.curve import Floats, UInts
from partita.public.axis.flat.flat import FlatRelease
from partita.public.bounds.query_error import largest_reach
from partita.public.bounds.signed_ranges import Run


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LaplaceRelease(FlatRelease):
    """The noisy count of every interval, in the order (0, 0), (0, 1), ..., (1, 1), (1, 2), ...

    Two intervals side by side do not add up to the interval that both make up: each has its own noise.
    """

    kind: ClassVar[str] = "laplace"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"laplace": ("SU",)}
    max_series: ClassVar[int] = 1
    largest_size: ClassVar[int] = 1447

    @staticmethod
    def length(size: int) -> int:
        """One for each interval."""
        return size * (size + 1) // 2

    def runs(self, low: int, high: int) -> Iterator[Run]:
        """The interval itself."""
        place = self._place(low, high)
        yield place, place + 1, 1

    @property
    def prefixes(self) -> Floats:
        """The intervals that begin with the first cell."""
        return self.noisy[: self.size].astype(np.float64)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The intervals themselves."""
        low, high = checked_ranges(lows, highs, self.size)
        places: NDArray[Any] = self._place(low.astype(np.int64), high.astype(np.int64))
        return np.asarray(self.noisy[places].astype(np.float64))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """One standard error for all."""
        low, _ = checked_ranges(lows, highs, self.size)
        return np.full(low.shape, self.line.variance**0.5)

    def error(self, beta: float) -> float:
        """The largest of all noises, by the exact tail of each."""
        return largest_reach(self.scale, self.noisy.size, float(failure(beta)))

    def _place(self, low: Any, high: Any) -> Any:
        """Where an interval stands: behind those that begin before it and those that end before it."""
        return low * self.size - low * (low - 1) // 2 + high - low
