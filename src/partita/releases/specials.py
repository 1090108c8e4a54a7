"""The special cells of a column, released beside its axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from partita.answer import Answer
from partita.inference.tails import laplace_sum_reach, laplace_variance

__all__ = ["Specials"]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Specials:
    """Noisy counts of below, above, invalid, null or other, each with noise of one scale."""

    counts: Mapping[str, int]
    scale: Fraction

    def answer(self, name: str) -> Answer:
        """How many rows are in one special cell."""
        value = self.counts[name]

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(self.scale, 1, beta)
            return max(0.0, value - reach), max(0.0, value + reach)

        return Answer(max(0.0, float(value)), lambda: laplace_variance(self.scale) ** 0.5, bounds)
