"""Questions: many ranges of cells at once, and how far answers are from the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from partita import Histogram
from partita.inference.curve import Floats, UInts

Ints: TypeAlias = NDArray[np.int64]

Counts: TypeAlias = Callable[[UInts, UInts], Floats]
"""Answers to the ranges low..high, both included: what a release gives for many at once."""

Method: TypeAlias = Callable[[Histogram, str], Counts]
"""One fresh release of a histogram at an epsilon."""


@dataclass(frozen=True)
class Queries:
    """Ranges of the cells low, ..., high, both included."""

    lows: UInts
    highs: UInts

    @classmethod
    def half_open(cls, lows: Ints, stops: Ints) -> Queries:
        """The ranges low, ..., stop-1."""
        return cls(lows.astype(np.uint64), stops.astype(np.uint64) - np.uint64(1))

    @classmethod
    def prefixes(cls, highs: UInts) -> Queries:
        """The ranges 0, ..., high."""
        return cls(np.zeros_like(highs), highs)

    def truth(self, histogram: Histogram) -> Floats:
        """The exact counts."""
        before = np.concatenate([[0], np.cumsum(histogram.counts)])
        upto = before[np.searchsorted(histogram.cells, self.highs, side="right")]
        below = before[np.searchsorted(histogram.cells, self.lows, side="left")]
        return np.asarray(upto - below, dtype=np.float64)

    def some(self, most: int) -> Queries:
        """At most this many of them, evenly spread over the list."""
        chosen = np.unique(np.linspace(0, self.lows.size - 1, most).astype(np.int64))
        return Queries(self.lows[chosen], self.highs[chosen])


@dataclass(frozen=True)
class Work:
    """One histogram at one epsilon, and lists of questions by name."""

    dataset: str
    n: int
    epsilon: str
    histogram: Histogram
    queries: Mapping[str, Queries]

    @property
    def strength(self) -> float:
        """n epsilon: what decides how much can be learned."""
        return self.n * float(self.epsilon)


@dataclass(frozen=True)
class Misses:
    """Mean, root mean square and maximum of |answer - truth|, each a mean over trials.

    `spread` is the standard error of the first, relative to it.
    """

    L1: float
    RMSE: float
    largest: float
    spread: float

    @classmethod
    def over(cls, trials: list[Floats]) -> Misses:
        """From |answer - truth| in each trial."""
        means = np.array([trial.mean() for trial in trials])
        deviation = means.std(ddof=1) / len(means) ** 0.5 if len(means) > 1 else 0.0
        return cls(
            L1=float(means.mean()),
            RMSE=float(np.mean([np.sqrt((trial**2).mean()) for trial in trials])),
            largest=float(np.mean([trial.max() for trial in trials])),
            spread=float(deviation / max(means.mean(), 1e-12)),
        )


def misses(method: Method, work: Work, trials: int) -> dict[str, Misses]:
    """What a method misses each list of questions by, over fresh releases."""
    truth = {name: queries.truth(work.histogram) for name, queries in work.queries.items()}
    wrong: dict[str, list[Floats]] = {name: [] for name in work.queries}
    for _ in range(trials):
        counts = method(work.histogram, work.epsilon)
        for name, queries in work.queries.items():
            wrong[name].append(np.abs(counts(queries.lows, queries.highs) - truth[name]))
    return {name: Misses.over(found) for name, found in wrong.items()}
