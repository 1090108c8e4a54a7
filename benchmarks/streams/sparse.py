"""Row `sparse`: streams in which little happens, against a counter that does not care."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isqrt

import numpy as np

from benchmarks.accuracy.score import Json, short
from benchmarks.streams.measure import Effort, Generator, Run, Stream, counter_mse, simulated
from benchmarks.streams.peers import Ints
from partita.trusted.streams.sparse import SparseCounter

TARGETS = {100: 0.15, 10_000: 0.5}
"""With a public hint and uniform arrivals: shares of the mean squared error of `Counter`, by weight."""
AIMS = {100: 0.25, 10_000: 0.7}
"""Without a hint, or on bursts."""

_BURST = 2**10


def sparse(effort: Effort) -> Iterator[Json]:
    """`SparseCounter` on fresh streams, uniform and in bursts: hinted, not hinted, and as in the paper."""
    for horizon in effort.periods(20):
        for weight in TARGETS:
            most = min(weight, horizon // 4)
            for arrivals, stream in streams(horizon, most).items():
                for hint, make in counters(horizon, most).items():
                    target = _target(weight, arrivals, hint)
                    yield _row(effort, horizon, most, arrivals, hint, make, stream, target)


def counters(horizon: int, weight: int) -> dict[str, Run]:
    """The counters, by what they are told."""
    sparse = partial(SparseCounter, epsilon=1, horizon=horizon)
    return {
        "expected weight": partial(sparse, expected=weight),
        "none": sparse,
        "paper": partial(sparse, constants="paper", weight=weight),
    }


def streams(horizon: int, weight: int) -> dict[str, Stream]:
    """Streams of this weight."""
    return {
        "uniform": partial(uniform, horizon=horizon, weight=weight),
        "bursts": partial(bursts, horizon=horizon, weight=weight),
    }


def uniform(rng: Generator, *, horizon: int, weight: int) -> Ints:
    """So many periods with one event each, anywhere."""
    counts = np.zeros(horizon, dtype=np.int64)
    counts[rng.choice(horizon, weight, replace=False)] = 1
    return counts


def bursts(rng: Generator, *, horizon: int, weight: int) -> Ints:
    """As many bursts as each has events, each within 2^10 periods that begin anywhere."""
    number = isqrt(weight)
    starts = rng.integers(0, max(1, horizon - _BURST), number)
    places = np.repeat(starts, -(-weight // number))[:weight] + rng.integers(0, min(_BURST, horizon), weight)
    return np.bincount(np.minimum(places, horizon - 1), minlength=horizon)


def _target(weight: int, arrivals: str, hint: str) -> float | None:
    if hint == "paper":
        return None
    return (TARGETS if (arrivals, hint) == ("uniform", "expected weight") else AIMS)[weight]


def _row(
    effort: Effort,
    horizon: int,
    weight: int,
    arrivals: str,
    hint: str,
    make: Run,
    stream: Stream,
    target: float | None,
) -> Json:
    found = simulated(make, stream, effort.trials)
    ratio = found.mse / counter_mse(horizon)
    return {
        "row": "sparse",
        "periods": horizon,
        "weight": weight,
        "arrivals": arrivals,
        "told": hint,
        **found.to_json(),
        "ratio": short(ratio),
        "target": target,
        "met": effort.verdict(ratio, target),
    }
