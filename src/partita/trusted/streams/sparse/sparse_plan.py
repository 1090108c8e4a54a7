"""How a sparse counter spends epsilon: by a formula for its mean squared error, from public numbers.

Events are taken to arrive one by one, in each period with the same chance. Then the time that a segment
spends with each content is known, and with it how long segments are and how far the content of the open
one lies from its mean; see docs/proofs/sparse_counter.md. On other streams the choice is not the best
one, and the guarantee is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple, get_args

import numpy as np

from partita.errors.errors import InvalidParameter
from partita.numbers import integer, one_of
from partita.trusted.noise.hazard import tails
from partita.trusted.noise.hazard.hazard import Law

PARTS: Final = 64
"""Seals have a multiple of 1 / PARTS of epsilon."""
FINE: Final = 1 << 16
"""The spread is a multiple of 1 / FINE."""

_LARGEST: Final = 2**62
_SHARES: Final = range(4, 34, 2)
_THRESHOLDS: Final = 28
_HIGHEST: Final = 1.35
_FINEST_RATE: Final = 0.125
_QUANTILES: Final = (np.arange(24) + 0.5) / 24


@dataclass(frozen=True, kw_only=True)
class SparsePlan:
    """The public numbers that a sparse counter runs on.

    `seals` is the share of epsilon for where segments end, in parts of PARTS. A segment is sealed when
    its noisy content exceeds a noisy `threshold`. The open one is taken to hold `offset`, give or take
    `spread`. The first inner counter has room for `capacity` segments, or for any number if it is None.
    """

    seals: int
    threshold: int
    offset: int
    spread: float
    capacity: int | None
    law: Law = "geometric"

    def __post_init__(self) -> None:
        integer(self.seals, "seals", low=1, high=PARTS - 1)
        integer(self.threshold, "threshold", low=0, high=_LARGEST)
        integer(self.offset, "offset", low=0, high=_LARGEST)
        integer(1 if self.capacity is None else self.capacity, "capacity", low=1, high=_LARGEST)
        one_of(self.law, "law", get_args(Law))


class _Segments(NamedTuple):
    """What segments are like: their mean length, and the mean and variance of what the open one holds."""

    length: float
    mean: float
    variance: float


def plan_for(
    *, horizon: int, rate: Fraction, expected: int | None, weight: int | None, beta: Fraction, paper: bool
) -> SparsePlan:
    """The plan for the one public hint that the constants take: `weight` for the paper's, else `expected`."""
    name, hint, other = ("weight", weight, expected) if paper else ("expected", expected, weight)
    if other is not None or (paper and hint is None):
        fix = "pass weight with the paper's constants, or expected with tuned ones"
        raise InvalidParameter(name, "is the hint that these constants take", given=hint, fix=fix)
    hint = None if hint is None else integer(hint, name, low=1, high=_LARGEST)
    if paper and hint is not None:
        return paper_plan(horizon=horizon, rate=rate, weight=hint, beta=beta)
    return tuned_plan(horizon=horizon, rate=rate, expected=hint)


@lru_cache(maxsize=256)
def tuned_plan(*, horizon: int, rate: Fraction, expected: int | None) -> SparsePlan:
    """The plan of the least mean squared error, if about `expected` events come in all.

    Without a hint: a plan for the square root of the horizon, and an inner counter without an end.

    >>> tuned_plan(horizon=2**20, rate=Fraction(1), expected=100).threshold
    51
    """
    guess = math.isqrt(horizon) if expected is None else expected
    unit = max(1, int(_FINEST_RATE / rate))
    arrivals = min(1.0, max(guess, 1) / unit / horizon)
    plans = [
        _candidate(horizon, float(rate) * unit, arrivals, share, part)
        for share in _SHARES
        for part in np.linspace(0, _HIGHEST, _THRESHOLDS)
    ]
    _, best = min(plans, key=lambda candidate: candidate[0])
    return SparsePlan(
        seals=best.seals,
        threshold=unit * best.threshold,
        offset=unit * best.offset,
        spread=round(unit * best.spread * FINE) / FINE,
        capacity=None if expected is None else best.capacity,
    )


def paper_plan(*, horizon: int, rate: Fraction, weight: int, beta: Fraction) -> SparsePlan:
    """The constants of the paper: half of epsilon each, T = 3 (ln D + ln 2/beta) / (epsilon/2), room for n.

    [DNRR15, Figure 1 and Theorem 3.1], with Laplace noise on contents and thresholds.
    """
    threshold = tails.floor_log(2 * horizon / beta, 6 / rate)
    return SparsePlan(
        seals=PARTS // 2,
        threshold=threshold,
        offset=0,
        spread=float(threshold),
        capacity=weight,
        law="laplace",
    )


def _candidate(
    horizon: int, rate: float, arrivals: float, share: int, part: float
) -> tuple[float, SparsePlan]:
    """A plan and the error that the formula gives it."""
    sealing = rate * share / PARTS
    threshold = round(part * math.log(horizon + 1) / sealing)
    segments = _segments(sealing, threshold, arrivals)
    number = max(1.0, horizon / segments.length)
    capacity = math.ceil(number + 2 * math.sqrt(number)) + 1
    error = segments.variance + _inner_error(capacity) / (rate - sealing) ** 2
    plan = SparsePlan(
        seals=share,
        threshold=threshold,
        offset=round(segments.mean),
        spread=math.sqrt(segments.variance),
        capacity=capacity,
    )
    return error, plan


def _inner_error(capacity: int) -> float:
    """About the mean squared error of `Counter` at epsilon 1."""
    return max(min(0.92 * (capacity + 1), 8.3), (0.72 + 0.412 * math.log2(capacity)) ** 3)


def _segments(rate: float, threshold: int, arrivals: float) -> _Segments:
    """Segments under steady arrivals, averaged over quantiles of the noise on the threshold.

    From a content c on, a period adds an event with chance r, and seals with the chance h of fresh noise
    above what is missing. So V(0) = 1 / d(0) and V(c) = V(c-1) r (1 - h(c)) / d(c) periods are spent
    with each content, d = h + r - r h.
    """
    noise = np.floor(-np.log1p(-_QUANTILES) / rate)
    content = np.arange(threshold + int(noise.max()) + 1)
    missing = threshold + noise[:, np.newaxis] - content
    seal = np.where(missing >= 0, np.exp(-rate * (np.maximum(missing, 0) + 1)), 1.0)
    leave = seal + arrivals - seal * arrivals
    factors = arrivals * (1 - seal) / leave
    factors[:, 0] = 1 / leave[:, 0]
    spent = factors.cumprod(axis=1).mean(axis=0)
    length = float(spent.sum())
    mean = float(spent @ content) / length
    return _Segments(length, mean, float(spent @ (content - mean) ** 2) / length)
