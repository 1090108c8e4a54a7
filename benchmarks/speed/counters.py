"""Continual counters: an output for every period, exact noise included, against plain Python."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.speed.clock import Work, rates
from benchmarks.speed.row import Row, Target
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.tree_counter import TreeCounter

BITS = 24
LONG = 40
"""Horizons are 2^24 periods, and 2^40 where all but the last output are skipped."""


def counter_update(quick: bool) -> Row:
    """Period after period, by `Counter.update`."""
    counts = bits(quick, 300_000).tolist()
    ours = Work("Counter.update", partial(one_by_one, counts), len(counts))
    return rates(
        quick, ours, baseline(quick), target=Target("ratio", ">=", 2), horizon=f"2^{BITS}", epsilon=1
    )


def counter_update_many(quick: bool) -> Row:
    """All periods in one call of `Counter.update_many`, all outputs returned."""
    counts = bits(quick, 10**7)
    ours = Work("Counter.update_many", lambda: counter(Counter).update_many(counts), counts.size)
    return rates(
        quick, ours, baseline(quick), target=Target("ratio", ">=", 30), horizon=f"2^{BITS}", epsilon=1
    )


def tree_counter_update(quick: bool) -> Row:
    """The same mechanism as the baseline, with exact noise: `TreeCounter.update`."""
    counts = bits(quick, 300_000).tolist()
    ours = Work("TreeCounter.update", partial(one_by_one, counts, TreeCounter), len(counts))
    return rates(quick, ours, baseline(quick), horizon=f"2^{BITS}", epsilon=1)


def counter_advance(quick: bool) -> Row:
    """How often noise is drawn to skip 2^40 - 1 empty periods, against once for each."""
    meter = Meter(SYSTEM.session())
    counter = Counter(epsilon=1, horizon=2**LONG, noise=meter)
    counter.advance(2**LONG - 1)
    return Row(
        ours="Counter.advance",
        parameters={"horizon": f"2^{LONG}", "epsilon": 1, "numbers": meter.numbers},
        unit="draws",
        figure=meter.draws,
        baseline="one for each period",
        baseline_figure=2**LONG - 1,
        statistic="counted",
        target=Target("figure", "<=", 50),
        quick=quick,
    )


def bits(quick: bool, n: int) -> Any:
    """A period in three or so has an event."""
    return (np.random.default_rng(n).random(n // 100 if quick else n) < 0.3).astype(np.int64)


def counter(kind: type[Counter] | type[TreeCounter]) -> Counter | TreeCounter:
    return kind(epsilon=1, horizon=2**BITS)


def one_by_one(counts: Sequence[int], kind: type[Counter] | type[TreeCounter] = Counter) -> None:
    """A new counter, fed period after period; every output is looked at."""
    made = counter(kind)
    for x in counts:
        made.update(x)


def baseline(quick: bool) -> Work:
    """The binary mechanism in plain Python, on 300,000 periods."""
    counts = bits(quick, 300_000).tolist()
    return Work("binary mechanism, Python", partial(binary, counts, BITS), len(counts))


def binary(counts: Sequence[int], levels: int) -> float:
    """The binary mechanism as it is usually written, period after period, with float noise [CSS11].

    a: sums of the open nodes, by level; noisy: the same with noise of scale `levels`.
    """
    a, noisy, output = [0] * (levels + 1), [0.0] * (levels + 1), 0.0
    for t in range(1, len(counts) + 1):
        level, total = (t & -t).bit_length() - 1, counts[t - 1]
        for below in range(level):
            total += a[below]
            a[below] = 0
            noisy[below] = 0.0
        a[level] = total
        noisy[level] = total + laplace(levels)
        output = 0.0
        for node in range(levels + 1):
            if (t >> node) & 1:
                output += noisy[node]
    return output


def laplace(scale: float) -> float:
    """Float noise by the inverse of its distribution."""
    u = random.random() - 0.5
    return -scale * math.copysign(1, u) * math.log(1 - 2 * abs(u))


class Meter:
    """Noise that counts how often it is drawn, and how many numbers."""

    def __init__(self, noise: Noise) -> None:
        self._noise, self.draws, self.numbers = noise, 0, 0

    def session(self) -> Meter:
        return self

    def add(self, x: Any, scale: Any, *, parts: Any = None) -> Any:
        self.draws += 1
        self.numbers += np.size(x)
        return self._noise.add(x, scale, parts=parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._noise, name)
