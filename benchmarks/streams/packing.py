"""`python -m benchmarks.streams.packing`: what no private counter can do, beside what ours do.

Theorem 12.6 of [DR14], with the constants that its proof gives. Let a counter of T periods be
epsilon-DP for one event, and let all its errors be below k/2 with probability p, on any stream. Cut the
periods into m = floor(T/k) phases of k. Stream i has one event in each period of phase i, and none
elsewhere. Say that a run *finds* phase i if that is the first one at whose end the output is at least k/2.

- Whenever all errors are below k/2, stream i makes the run find phase i, and the empty stream none.
- Stream i and the empty stream differ in k events. So on the empty stream the run finds phase i with
  probability at least p exp(-k epsilon), for every i at once; and nothing with probability at least p.

A run finds one phase or none, so p + m p exp(-k epsilon) <= 1. Any k that breaks this is too good to be
true, and k/2 is a bound from below for the largest error: about (ln T) / (2 epsilon).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from math import exp, floor

import numpy as np

from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.table import table
from benchmarks.streams.measure import Effort, Run
from benchmarks.streams.peers import Floats, Ints
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.tree_counter import TreeCounter

SURE = 2 / 3
"""How often all errors are to stay below the bound."""


def packing(effort: Effort) -> Iterator[Json]:
    """The bound from below, and the error that ours keep within as often; then bursts of both sizes."""
    for horizon in effort.periods(8, 12, 16):
        for kind in (Counter, TreeCounter):
            make = partial(kind, epsilon=1, horizon=horizon)
            bound, measured = least_error(horizon), largest_error(make, horizon, effort.trials)
            yield {
                "row": "packing",
                "counter": kind.__name__,
                "periods": horizon,
                "nobody_below": bound,
                "largest_error": short(measured),
                "times": short(measured / bound),
                **_search(make, horizon, int(2 * bound), effort.trials, "at_bound"),
                **_search(make, horizon, _long(measured, horizon), effort.trials, "beyond_error"),
            }


def least_error(horizon: int, epsilon: float = 1.0, sure: float = SURE) -> float:
    """An error below which no epsilon-DP counter stays, at all periods at once, with this probability."""
    k = 0
    while sure * (1 + horizon // (k + 1) * exp(-(k + 1) * epsilon)) > 1:
        k += 1
    return k / 2


def largest_error(make: Run, horizon: int, trials: int) -> float:
    """What the largest error of a run stays within as often as is asked for."""
    empty = np.zeros(horizon, dtype=np.int64)
    largest = [float(np.abs(make().update_many(empty)).max()) for _ in range(trials)]
    return float(np.quantile(largest, SURE))


def found(outputs: Floats, k: int) -> int | None:
    """The first phase at whose end the output is at least k/2."""
    ends = np.flatnonzero(outputs[k - 1 :: k] >= k / 2)
    return int(ends[0]) if ends.size else None


def burst(horizon: int, k: int, phase: int) -> Ints:
    """The stream with one event in each period of a phase."""
    counts = np.zeros(horizon, dtype=np.int64)
    counts[phase * k : (phase + 1) * k] = 1
    return counts


def _long(error: float, horizon: int) -> int:
    """A burst that a run of this error finds: an eighth of all periods if the horizon is too short for it."""
    return min(floor(2 * error) + 1, max(1, horizon // 8))


def _search(make: Run, horizon: int, k: int, trials: int, name: str) -> Json:
    """How often runs find a burst of k, in a phase of their own each; and nothing, where nothing is."""
    phases = np.random.default_rng().integers(0, horizon // k, trials)
    hits = [found(make().update_many(burst(horizon, k, phase)), k) == phase for phase in phases]
    calm = [found(make().update_many(burst(horizon, k, horizon)), k) is None for _ in phases]
    return {
        f"burst_{name}": k,
        f"found_{name}": short(float(np.mean(hits))),
        f"quiet_{name}": short(float(np.mean(calm))),
    }


if __name__ == "__main__":
    print(table(list(packing(Effort(trials=100, quick="--quick" in sys.argv)))))
