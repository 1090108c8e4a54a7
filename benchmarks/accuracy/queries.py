"""Questions: many ranges or boxes of cells at once, and how far answers are from the truth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from partita import Answer, Histogram, Points
from partita.arrays import Floats, UInts

Ints: TypeAlias = NDArray[np.int64]

Data = TypeVar("Data", Histogram, Points)
"""What is released: counts along one axis, or points along several."""

Counts: TypeAlias = Callable[[UInts, UInts], Floats]
"""Answers to what lies between lows and highs, both included: what a release gives for many at once."""

Method: TypeAlias = Callable[[Data, str], Counts]
"""One fresh release of the data at an epsilon."""


@dataclass(frozen=True)
class Questions(ABC, Generic[Data]):
    """What lies between low and high, both included, for each row of the two arrays."""

    lows: UInts
    highs: UInts

    @abstractmethod
    def truth(self, data: Data) -> Floats:
        """The exact counts."""

    @abstractmethod
    def alone(self, release: Any) -> list[Answer]:
        """The answers of a release that is asked one question after another."""

    def some(self, most: int) -> Self:
        """At most this many of them, evenly spread over the list."""
        return self.at(np.unique(np.linspace(0, len(self.lows) - 1, most).astype(np.int64)))

    def at(self, places: Ints) -> Self:
        """Those at the given places of the list."""
        return type(self)(self.lows[places], self.highs[places])


@dataclass(frozen=True)
class Queries(Questions[Histogram]):
    """Ranges of the cells low, ..., high, both included."""

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

    def alone(self, release: Any) -> list[Answer]:
        """What `count` gives for each range."""
        pairs = zip(self.lows.tolist(), self.highs.tolist(), strict=True)
        return [release.count(low, high) for low, high in pairs]


@dataclass(frozen=True)
class Work(Generic[Data]):
    """One set of data at one epsilon, and lists of questions by name."""

    dataset: str
    n: int
    epsilon: str
    data: Data
    queries: Mapping[str, Questions[Data]]

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


def misses(method: Method[Data], work: Work[Data], trials: int) -> dict[str, Misses]:
    """What a method misses each list of questions by, over fresh releases."""
    truth = {name: queries.truth(work.data) for name, queries in work.queries.items()}
    wrong: dict[str, list[Floats]] = {name: [] for name in work.queries}
    for _ in range(trials):
        counts = method(work.data, work.epsilon)
        for name, queries in work.queries.items():
            wrong[name].append(np.abs(counts(queries.lows, queries.highs) - truth[name]))
    return {name: Misses.over(found) for name, found in wrong.items()}
