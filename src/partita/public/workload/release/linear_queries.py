"""Released noisy answers to linear queries, each with noise of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.numbers import failure, integer
from partita.public.axis.curve.curve import Floats
from partita.public.bounds.query_error import largest_reach
from partita.public.bounds.tails import laplace_variance


@final
@dataclass(frozen=True, eq=False)
class NoisyUnits:
    """Noisy integers in units of one over the granularity, each with noise of the scale, in these units."""

    noisy: NDArray[Any]
    granularity: int
    scale: Fraction

    @cached_property
    def values(self) -> Floats:
        """All answers."""
        return np.asarray(self.noisy.astype(np.float64) / self.granularity)

    @cached_property
    def spread(self) -> float:
        """The standard error of every answer."""
        return math.sqrt(laplace_variance(self.scale)) / self.granularity

    def answer(self, index: int, *, least: float) -> Answer:
        """One answer, of which nothing below `least` can be true."""
        units = int(self.noisy[index])

        def bounds(beta: float) -> tuple[float, float]:
            reach = int(largest_reach(self.scale, 1, beta))
            return (units - reach) / self.granularity, (units + reach) / self.granularity

        return Answer(units / self.granularity, lambda: self.spread, bounds, least)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the truth by more, whatever the data."""
        return largest_reach(self.scale, self.noisy.size, float(failure(beta))) / self.granularity


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LinearQueriesRelease:
    """Noisy answers in units of one over the granularity, each with noise of the scale, in these units.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    noisy: NDArray[Any]
    queries: tuple[tuple[Fraction, ...], ...]
    granularity: int
    scale: Fraction
    guarantee: Guarantee | None = None

    @property
    def values(self) -> Floats:
        """All answers."""
        return self._units.values

    def answer(self, index: int) -> Answer:
        """The answer to one query. Where no weight is negative, neither is the truth."""
        place = integer(index, "index", low=0, high=len(self.queries) - 1)
        return self._units.answer(place, least=0.0 if min(self.queries[place]) >= 0 else -math.inf)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the truth by more, whatever the data."""
        return self._units.error(beta)

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def _units(self) -> NoisyUnits:
        return NoisyUnits(self.noisy, self.granularity, self.scale)
