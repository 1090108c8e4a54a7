"""A row: what a mechanism's error was, what no mechanism can be better than, and who proved that.

The bounds that several rows use are here, too. docs/mechanisms/README.md proves them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from math import exp, expm1, log1p, sqrt

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.accuracy.score import Json, short
from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise.system import SystemNoise

__all__ = ["Distance", "Measured", "count_bound", "largest_bound", "linear_bound", "noises"]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A figure over independent trials, and its standard error.

    >>> Measured.mean([1, 3])
    Measured(value=2.0, error=1.0)
    """

    value: float
    error: float

    @classmethod
    def mean(cls, trials: ArrayLike) -> Measured:
        """One number for each trial: their mean."""
        taken = np.asarray(trials, dtype=float)
        return cls(value=float(taken.mean()), error=float(taken.std(ddof=1)) / sqrt(taken.size))

    @classmethod
    def root(cls, squares: ArrayLike) -> Measured:
        """One mean square for each trial: the root of their mean."""
        square = cls.mean(squares)
        value = sqrt(square.value)
        return cls(value=value, error=square.error / (2 * value) if value else 0.0)

    @classmethod
    def quantile(cls, trials: ArrayLike, share: float) -> Measured:
        """One number for each trial: what this share of them do not exceed; the error by their ranks.

        >>> Measured.quantile(range(101), 0.5)
        Measured(value=50.0, error=5.0)
        """
        taken = np.sort(np.asarray(trials, dtype=float))
        place, apart = share * (taken.size - 1), sqrt(share * (1 - share) * taken.size)
        low, middle, high = np.clip(np.rint([place - apart, place, place + apart]), 0, taken.size - 1)
        return cls(value=float(taken[int(middle)]), error=float(taken[int(high)] - taken[int(low)]) / 2)


@dataclass(frozen=True, kw_only=True)
class Distance:
    """`ratio` is the measured error over the bound: 1 is optimal.

    Without a bound that has a constant, `bound` is None or the error of the best that is known, and
    `source` says which of the two it is.
    """

    mechanism: str
    setting: str
    what: str
    measured: Measured
    bound: float | None
    source: str
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.bound is None else self.measured.value / self.bound

    def to_json(self) -> Json:
        """The row as plain values."""
        return {
            "mechanism": self.mechanism,
            "setting": self.setting,
            "what": self.what,
            "measured": short(self.measured.value),
            "standard_error": short(self.measured.error),
            "bound": None if self.bound is None else short(self.bound),
            "ratio": None if self.ratio is None else short(self.ratio),
            "source": self.source,
            "note": self.note,
        }


def noises(trials: int) -> Iterator[SystemNoise]:
    """The shipped sampler on one fixed tape for each trial: a row says the same in every run."""
    for trial in range(trials):
        yield tape_noise(EndlessTape(trial))


def count_bound(epsilon: float) -> float:
    """The least root mean square error of one count, by any mechanism: that of the geometric one.

    >>> round(count_bound(1.0), 3)
    1.357
    """
    ratio = exp(-epsilon)
    return sqrt(2 * ratio) / (1 - ratio)


def largest_bound(cells: int, epsilon: float) -> float:
    """The least expected largest error over all cells: half of the sum of 1 - tanh(epsilon t / 2)^cells.

    >>> round(largest_bound(1, 1.0), 3)
    0.464
    """
    found = 0.0
    for distance in count(1):
        near = exp(-epsilon * distance)
        missed = -expm1(cells * (log1p(-near) - log1p(near)))
        if missed < 1e-12:
            return found / 2
        found += missed
    raise AssertionError


def linear_bound(gram: ArrayLike, questions: int, epsilon: float) -> float:
    """The least root mean square error of unbiased linear answers from independent discrete Laplace noise.

    `gram` says of any two cells how many of the questions hold both.

    >>> round(linear_bound([[1, 0], [0, 1]], 2, 1.0), 3)
    1.357
    """
    squares = np.linalg.eigvalsh(np.asarray(gram, dtype=float))
    nuclear = float(np.sqrt(np.maximum(squares, 0.0)).sum())
    return count_bound(epsilon) * nuclear / sqrt(squares.size * questions)
