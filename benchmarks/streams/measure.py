"""The mean squared error of a counter over all of its outputs: by its variance, and by running it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple, Protocol

import numpy as np

from benchmarks.accuracy.score import Json, short
from benchmarks.streams.peers import Floats, Ints, Peer
from partita.trusted.streams.counter import Counter

Generator = np.random.Generator
Stream = Callable[[Generator], Ints]
"""What is counted in each period, made afresh for every run."""


class Runnable(Protocol):
    """A counter that can be run."""

    def update_many(self, xs: Ints) -> Floats: ...


class Measurable(Runnable, Protocol):
    """A counter that knows the variances of all its outputs."""

    def variances(self, periods: Ints) -> Floats: ...


class Steppable(Runnable, Protocol):
    """A counter that knows the variance of its last output only."""

    def advance(self, periods: int) -> None: ...

    def variance(self) -> float: ...


Run = Callable[[], Runnable]
Make = Callable[[], Measurable]


@dataclass(frozen=True)
class Effort:
    """How often a counter runs, and for how many periods: powers of two, small ones in a quick run."""

    trials: int = 20
    quick: bool = False

    def periods(self, *bits: int) -> list[int]:
        """The horizons of a row."""
        return [2 ** (each // 2 if self.quick else each) for each in bits]

    def verdict(self, figure: float, target: float | None) -> bool | None:
        """Whether a target is met; None without one, and in a quick run, which proves nothing."""
        return None if target is None or self.quick else figure <= target


class Found(NamedTuple):
    """A mean over runs, and its standard error as a share of it."""

    mse: float
    spread: float

    @classmethod
    def over(cls, figures: list[float]) -> Found:
        """Of one figure for each run."""
        spread = stdev(figures) / sqrt(len(figures)) if len(figures) > 1 else 0.0
        return cls(mean(figures), spread / mean(figures))

    def to_json(self) -> Json:
        """As columns of a row."""
        return {"simulated": short(self.mse), "spread": short(self.spread)}


def exact(make: Make, periods: int) -> float:
    """The mean of the variances of all outputs."""
    return float(make().variances(np.arange(1, periods + 1, dtype=np.int64)).mean())


def stepped(make: Callable[[], Steppable], periods: int) -> float:
    """The same, one period after another."""
    counter, total = make(), 0.0
    for _ in range(periods):
        counter.advance(1)
        total += counter.variance()
    return total / periods


@lru_cache
def counter_mse(horizon: int) -> float:
    """The exact mean squared error of `Counter` at epsilon 1."""
    return exact(lambda: Counter(epsilon=1, horizon=horizon), horizon)


def simulated(make: Run, stream: Stream, trials: int) -> Found:
    """The mean squared error over fresh runs on fresh streams."""
    return Found.over([run(make(), stream(np.random.default_rng())) for _ in range(trials)])


def run(counter: Runnable, counts: Ints) -> float:
    """The mean squared error of one run."""
    return float(((counter.update_many(counts) - np.cumsum(counts)) ** 2).mean())


def simulated_peer(peer: Peer, horizon: int, trials: int) -> Found:
    """The same for a published counter, whose error does not depend on the stream."""
    rng = np.random.default_rng()
    paths = (peer.errors(horizon, lambda size: rng.laplace(size=size)) for _ in range(trials))
    return Found.over([float((path**2).mean()) for path in paths])


def nothing(periods: int) -> Stream:
    """A stream in which nothing happens: most counters make the same errors on any other."""
    return lambda rng: np.zeros(periods, dtype=np.int64)
