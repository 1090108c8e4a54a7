"""Row `update`: how many events a sketch takes in a second, beside a plain table that protects nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.accuracy.score import Json, short
from partita.pan import Density, Distinct, RampRegisters, Registers

SKETCHES: dict[str, Callable[[int], Any]] = {
    "Density": lambda size: Density(universe=size, epsilon=1),
    "Registers": lambda size: Registers(universe=size, epsilon=1),
    "RampRegisters": lambda size: RampRegisters(universe=size, epsilon=1, tops=[3]),
    "Distinct": lambda size: Distinct(epsilon=1),
}


def update(*, trials: int, quick: bool) -> Iterator[Json]:
    """Events a second of `update_many` in one call: spread evenly, and all of one user."""
    size = 10**4 if quick else 10**6
    spread = np.random.default_rng(0).integers(0, size, size)
    alike = np.full(size, 7)
    plain = _rate(lambda: np.add.at(np.zeros(size, dtype=np.int64), spread, 1), size, trials)
    for name, make in SKETCHES.items():
        sketch = make(size)
        rates = [_rate(partial(sketch.update_many, ids), size, trials) for ids in (spread, alike)]
        yield {
            "row": "update",
            "sketch": name,
            "universe": size,
            "events/s": short(rates[0]),
            "of one user": short(rates[1]),
            "plain table": short(plain),
            "made in s": short(_seconds(partial(make, size))),
            "state, bytes": len(sketch.state()),
        }


def _rate(call: Callable[[], object], items: int, trials: int) -> float:
    """The median, after one untimed call."""
    call()
    return items / float(np.median([_seconds(call) for _ in range(min(trials, 7))]))


def _seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start
