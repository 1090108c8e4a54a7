"""Rows `known` and `unknown`: counters whose error does not depend on the stream."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.accuracy.score import Json, short
from benchmarks.streams.measure import Effort, Make, counter_mse, exact, nothing, simulated, simulated_peer
from benchmarks.streams.peers import best_subtraction, published
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.tree_counter import (
    DirectCounter,
    PerStepCounter,
    RandomizedResponseCounter,
    TreeCounter,
)

TARGET = 0.74
"""What `Counter` may have of the mean squared error of the best published scheme."""
BELOW = 1.0
"""The same for a counter that does not know its horizon, over 2^20 periods, against one that does."""


def known(effort: Effort) -> Iterator[Json]:
    """Mean squared errors at epsilon 1, published counters and ours, each beside the best published one."""
    for horizon in effort.periods(10, 16, 20):
        for name, peer in published(horizon).items():
            mse = float(peer.variances(horizon).mean())
            found = simulated_peer(peer, horizon, effort.trials)
            yield _row("known", name, horizon, mse) | found.to_json() | _verdict(effort, None, mse, horizon)
        for name, make in ours(horizon).items():
            yield _ours(effort, "known", name, make, horizon, TARGET if name == "Counter" else None)


def unknown(effort: Effort) -> Iterator[Json]:
    """`Counter` without a horizon, against the best published one with it, and against `Counter` with it."""
    for horizon, target in zip(effort.periods(10, 16, 20), (None, None, BELOW), strict=True):
        row = _ours(effort, "unknown", "Counter", partial(Counter, epsilon=1), horizon, target)
        yield row | {"of_known": short(row["mse"] / counter_mse(horizon))}


def ours(horizon: int) -> dict[str, Make]:
    """The counters of the library that see every period alike, with a known horizon."""
    kinds = (RandomizedResponseCounter, DirectCounter, PerStepCounter, TreeCounter)
    return {
        **{kind.__name__: partial(kind, epsilon=1, horizon=horizon) for kind in kinds},
        "TreeCounter, refined": partial(TreeCounter, epsilon=1, horizon=horizon, refine=True),
        "Counter": partial(Counter, epsilon=1, horizon=horizon),
    }


def _ours(effort: Effort, row: str, name: str, make: Make, horizon: int, target: float | None) -> Json:
    mse, found = exact(make, horizon), simulated(make, nothing(horizon), effort.trials)
    return _row(row, name, horizon, mse) | found.to_json() | _verdict(effort, target, mse, horizon)


def _row(row: str, name: str, horizon: int, mse: float) -> Json:
    return {"row": row, "counter": name, "periods": horizon, "mse": short(mse)}


def _verdict(effort: Effort, target: float | None, mse: float, horizon: int) -> Json:
    """The share of the best published mean squared error, and whether that is as promised."""
    ratio = mse / float(best_subtraction(horizon).variances(horizon).mean())
    return {"ratio": short(ratio), "target": target, "met": effort.verdict(ratio, target)}
