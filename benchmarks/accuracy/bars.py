"""Error bars beside the truth."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from benchmarks.accuracy.queries import Data, Questions
from partita import Answer
from partita.arrays import Floats
from partita.public.axis.base import AxisRelease
from partita.public.boxes.base import BoxRelease

_ROUNDING = 1e-6


@dataclass(frozen=True)
class Bars:
    """Values, their standard errors, and what is true."""

    values: Floats
    errors: Floats
    truth: Floats

    @classmethod
    def of(cls, release: AxisRelease | BoxRelease, queries: Questions[Data], truth: Floats) -> Bars:
        """All questions in one call."""
        values, errors = (ask(queries.lows, queries.highs) for ask in (release.counts, release.errors))
        return cls(values, errors, truth)

    @classmethod
    def joined(cls, bars: list[Bars]) -> Bars:
        """Several releases together."""
        parts = [(one.values, one.errors, one.truth) for one in bars]
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    @property
    def RMSE(self) -> float:  # noqa: N802 -- the name of the figure everywhere else
        return float(np.sqrt(((self.values - self.truth) ** 2).mean()))

    @property
    def largest(self) -> float:
        """The widest miss."""
        return float(np.abs(self.values - self.truth).max())

    def interval(self, c: float) -> tuple[Floats, Floats]:
        """The ends of `interval(c)`: value +- z error, cut at zero."""
        half = quantile(c) * self.errors
        return np.maximum(0.0, self.values - half), np.maximum(0.0, self.values + half)

    def beyond(self, reach: float) -> bool:
        """Whether any question misses by more than the reach."""
        return self.largest > reach + _ROUNDING

    def covered(self, c: float) -> float:
        """The share of questions whose interval holds the truth."""
        low, high = self.interval(c)
        return float(((low <= self.truth + _ROUNDING) & (self.truth <= high + _ROUNDING)).mean())

    def half_width(self, c: float) -> float:
        """Root mean square over the questions."""
        low, high = self.interval(c)
        return float(np.sqrt((((high - low) / 2) ** 2).mean()))


@dataclass(frozen=True)
class Alone:
    """Questions that were asked one by one, and how often their guaranteed bounds failed."""

    bars: Bars
    failed: int

    @classmethod
    def of(cls, answers: list[Answer], truth: Floats, beta: float) -> Alone:
        """The answer to each question, and its `worst(beta)`."""
        values, errors = (np.array([getattr(a, name) for a in answers]) for name in ("value", "error"))
        bars = Bars(values, errors, truth)
        low, high = np.array([answer.worst(beta) for answer in answers]).T
        failed = (bars.truth < low - _ROUNDING) | (bars.truth > high + _ROUNDING)
        return cls(bars, int(failed.sum()))


def quantile(c: float) -> float:
    """The normal quantile of a two-sided interval."""
    return NormalDist().inv_cdf((1 + c) / 2)
