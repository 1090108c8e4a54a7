"""Answers: the only floats that leave a release, each with its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import final

from partita.exact import failure

__all__ = ["Answer"]


@final
@dataclass(frozen=True)
class Answer:
    """A value, its standard error, and guaranteed bounds.

    `bounds(beta)` is an interval that misses the truth with probability at most beta, for any
    data. `interval` is calibrated by a normal model instead: narrower, and not a guarantee.

    >>> Answer(10.0, 2.0, bounds=lambda beta: (0.0, 22.0)).worst(0.05)
    (0.0, 22.0)
    """

    value: float
    error: float
    bounds: Callable[[float], tuple[float, float]] = field(compare=False, repr=False)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold with about this confidence; a model, not a guarantee."""
        half = NormalDist().inv_cdf((1 + float(failure(confidence, "confidence"))) / 2) * self.error
        return self.value - half, self.value + half

    def worst(self, beta: float = 0.05) -> tuple[float, float]:
        """Bounds that fail with probability at most beta, whatever the data."""
        return self.bounds(float(failure(beta)))

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"Answer({self.value:.6g} ± {self.error:.3g})"
