"""Answers: the only floats that leave a release, each with its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.exact import failure

__all__ = ["Answer", "Answers"]


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
    bounds: Callable[[float], tuple[float, float]]

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


@final
@dataclass(frozen=True, eq=False)
class Answers:
    """Many answers at once: arrays of values and of standard errors."""

    values: NDArray[np.float64]
    error: NDArray[np.float64]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)
