"""Distances of counters, from two bounds that hold for every counter.

*Unbiased counters.* Let a mechanism be epsilon-DP for one event, and let each of its q outputs be unbiased.
An event in period i of T moves the true answers by w_i, column i of a matrix W. Then the variances of the
outputs have a mean of at least |W|^2 / (q T c), |W| the sum of the singular values of W and c = 4
sinh(epsilon / 2)^2.

*Proof.* Let C be the covariance of the outputs on some stream, and r the ratio of the probabilities of what
is seen with one event more in period i. For any weights u the mean of u * outputs differs by u * w_i, so (u
* w_i)^2 <= (u C u) E[(r - 1)^2] [CR51]. r lies in [e^-epsilon, e^epsilon] and has mean 1, so by convexity
E[(r - 1)^2] <= (e^epsilon - 1)(1 - e^-epsilon) = c. Hence w_i C^-1 w_i <= c. Sum over i: the squared
entries of C^(-1/2) W add up to at most T c, and those of C^(1/2) to the sum of all variances. |W| is at
most the product of the roots of the two. (If C is singular, add a small multiple of the identity.) All
outputs are looked at together, so the bound holds for mechanisms that run online and adapt to what they
see. QED

*Packing* [DR14, Theorem 12.6], which holds for biased counters too: `benchmarks.streams.packing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, pi, sinh, sqrt
from typing import Any

import numpy as np

from benchmarks.distance.row import Distance, Measured, noises
from benchmarks.streams.measure import exact, run, stepped
from benchmarks.streams.packing import SURE, least_error
from benchmarks.streams.sparse import uniform
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.family import CounterFamily
from partita.trusted.streams.pan_private import PanPrivateCounter
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse import SparseCounter
from partita.trusted.streams.tree_counter import (
    DirectCounter,
    PerStepCounter,
    RandomizedResponseCounter,
    TreeCounter,
)

UNBIASED = "every unbiased epsilon-DP mechanism: Chapman and Robbins [CR51], sum of singular values"

Make = Callable[..., Any]

_EPSILON = 1
_LONG, _SHORT = 2**16, 2**10
_FEW_TRIALS = 60
"""For what takes a step in every period."""
_RMSE = "root mean square error over all outputs"


def counter(trials: int) -> Distance:
    """`Counter` over a known horizon."""
    return _running("counter", _made(Counter, _LONG), _LONG, trials)


def tree_counter(trials: int) -> Distance:
    """The counter of the papers."""
    make = _made(TreeCounter, _LONG)
    note = f"refined {sqrt(exact(partial(make, refine=True), _LONG)):.3g} by its variance"
    return _running("tree_counter", make, _LONG, min(trials, _FEW_TRIALS), note)


def naive_counters(trials: int) -> Distance:
    """The best of the three naive counters; the others are in the note."""
    others = [_rmse(_made(kind, _SHORT), _SHORT, trials).value for kind in (PerStepCounter, DirectCounter)]
    note = "randomized response; noise in every period {:.3g}, fresh noise on every output {:.4g}"
    return _running(
        "naive_counters", _made(RandomizedResponseCounter, _SHORT), _SHORT, trials, note.format(*others)
    )


def pan_private_counter(trials: int) -> Distance:
    """The default variant; no larger bound is known that uses the look."""
    make = _made(PanPrivateCounter, _SHORT)
    book = sqrt(stepped(partial(make, variant="book"), _SHORT))
    note = f"Figure 12.2: {book:.3g} by its variance; the bound is that of counters without a look"
    return _running("pan_private_counter", make, _SHORT, min(trials, _FEW_TRIALS), note)


def counter_family(trials: int) -> Distance:
    """A key for each trial: the bound is for one key, and other keys are of no help to it."""
    [noise] = noises(1)
    family = CounterFamily(keys=trials, epsilon=_EPSILON, horizon=_SHORT, noise=noise)
    outputs = family.update_many(np.zeros((_SHORT, trials), dtype=np.int64))
    measured = Measured.root((outputs**2).mean(axis=0))
    return _against_prefixes("counter_family", measured, _SHORT, "each of many keys")


def sliding_counter(trials: int) -> Distance:
    """Windows of a long stream, after the first one."""
    blocks, nothing = 4, np.zeros(4 * _SHORT, dtype=np.int64)
    tapes = noises(min(trials, _FEW_TRIALS))
    made = (SlidingCounter(window=_SHORT, epsilon=_EPSILON, noise=noise) for noise in tapes)
    squares = [(each.update_many(nothing)[-(blocks - 1) * _SHORT :] ** 2).mean() for each in made]
    return Distance(
        mechanism="sliding_counter",
        setting=f"a window of {_SHORT:,} periods, epsilon 1",
        what=_RMSE,
        measured=Measured.root(squares),
        bound=window_norm(_SHORT) / information(_EPSILON) ** 0.5,
        source=UNBIASED,
    )


def sparse_counter(trials: int) -> Distance:
    """The largest error of a run, within which two of three runs stay."""
    weight, rng = 100, np.random.default_rng(1)
    largest = []
    for noise in noises(trials):
        counts = uniform(rng, horizon=_LONG, weight=weight)
        made = SparseCounter(epsilon=_EPSILON, horizon=_LONG, expected=weight, noise=noise)
        largest.append(float(np.abs(made.update_many(counts) - np.cumsum(counts)).max()))
    return Distance(
        mechanism="sparse_counter",
        setting=f"{weight} events in 2^16 periods, anywhere; epsilon 1",
        what="largest error over all outputs, two of three runs stay below",
        measured=_quantile(largest, SURE),
        bound=least_error(_LONG),
        source="every epsilon-DP counter: packing [DR14, Theorem 12.6]",
        note="the bound is for the worst stream of few events",
    )


def information(epsilon: float) -> float:
    """4 sinh(epsilon/2)^2: what is seen tells at most so much about one event, as 1 / variance."""
    return 4 * sinh(epsilon / 2) ** 2


def prefix_norm(periods: int) -> float:
    """The sum of the singular values of the matrix of all prefixes, over their number."""
    angles = (2 * np.arange(1, periods + 1) - 1) * pi / (4 * periods + 2)
    return float((0.5 / np.sin(angles)).sum()) / periods


def window_norm(window: int) -> float:
    """The same for windows of a stream without end: the mean of |sin(w x/2) / sin(x/2)| over all x."""
    angles = (np.arange(64 * window) + 0.5) * pi / (64 * window)
    return float(np.abs(np.sin(window * angles / 2) / np.sin(angles / 2)).mean())


def _made(kind: Make, horizon: int) -> Make:
    return partial(kind, epsilon=_EPSILON, horizon=horizon)


def _running(name: str, make: Make, horizon: int, trials: int, note: str = "") -> Distance:
    return _against_prefixes(name, _rmse(make, horizon, trials), horizon, note)


def _against_prefixes(name: str, measured: Measured, horizon: int, note: str) -> Distance:
    return Distance(
        mechanism=name,
        setting=f"{horizon:,} periods, epsilon 1",
        what=_RMSE,
        measured=measured,
        bound=prefix_norm(horizon) / information(_EPSILON) ** 0.5,
        source=UNBIASED,
        note=note,
    )


def _rmse(make: Make, horizon: int, trials: int) -> Measured:
    """Most counters make the same errors on any stream: on one in which nothing comes."""
    nothing = np.zeros(horizon, dtype=np.int64)
    return Measured.root([run(make(noise=noise), nothing) for noise in noises(trials)])


def _quantile(figures: Sequence[float], share: float) -> Measured:
    """A quantile, and half the distance of the figures one standard error of its rank below and above."""
    ordered, number = sorted(figures), len(figures)
    rank, spread = share * number, ceil(sqrt(number * share * (1 - share)))
    low, middle, high = (min(max(int(rank + step), 0), number - 1) for step in (-spread, 0, spread))
    return Measured(value=ordered[middle], error=(ordered[high] - ordered[low]) / 2)
