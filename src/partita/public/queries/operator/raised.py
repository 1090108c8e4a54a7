"""Queries of one height: each weighs a stretch of positions with it, and all others with zero."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partita.public.queries.operator.structured import Structured, cap

UInts: TypeAlias = NDArray[np.uint64]


class Raised(Structured):
    """Query i weighs what lies from starts[i] up to stops[i] with `height` units, in units of 1/`grain`."""

    starts: UInts
    stops: UInts
    height: int
    grain: int

    @property
    def granularity(self) -> int:
        """Weights are integers over this number."""
        return self.grain

    @property
    def lowest(self) -> int:
        """The height if it is negative."""
        return min(0, self.height)

    @property
    def highest(self) -> int:
        """The height if it is positive."""
        return max(0, self.height)

    def __len__(self) -> int:
        return len(self.starts)

    def single(self, index: int) -> Self:
        """One query."""
        place = self.checked(index)
        return self._with(starts=self.starts[place : place + 1], stops=self.stops[place : place + 1])

    def multiplied(self, units: int, granularity: int = 1) -> Self:
        """The same queries at another height."""
        return self._with(height=self.height * units, grain=self.grain * granularity)

    def truncated(self, tau: int) -> Self:
        """The same queries, not higher than tau."""
        return self._with(height=min(self.height, cap(tau)))

    def above(self, tau: int) -> Self:
        """The same queries at height one if they are higher than tau, else nothing."""
        return self._with(height=int(self.height > cap(tau)), grain=1)

    @abstractmethod
    def _with(self, **changed: Any) -> Self:
        """The same queries with other fields."""
