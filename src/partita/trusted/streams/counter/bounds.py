"""How far outputs may be from the count: sums of weighted discrete Laplace noises, exactly."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.public.bounds.tails import laplace_variances, log_moments, repeated_reach
from partita.trusted.streams.base.base import Floats, Running
from partita.trusted.streams.centred.branching import ROUNDS, SHARES, TAPERS, WEIGHTS, Plan

_GRID: Final = np.concatenate([np.geomspace(1e-4, 0.5, 48), 1.0 - np.geomspace(0.5, 1e-3, 16)[1:]])
_ROUNDING: Final = 1e-9


class Mix(NamedTuple):
    """times[i] independent noises of scale 1 / rates[i], each multiplied by sizes[i]; and roundings."""

    sizes: Floats
    rates: Floats
    times: Floats
    slack: float

    @property
    def variance(self) -> float:
        """The variance of the sum, without roundings."""
        return float(self.times @ (self.sizes**2 * laplace_variances(self.rates)))

    def reach(self, beta: float) -> float:
        """t with P[|sum| > t] <= beta."""
        if not self.sizes.size:
            return self.slack
        return self.slack + repeated_reach(self.sizes, self.rates, self.times, beta / 2)

    def around(self, value: float, beta: float, *, everywhere: float) -> Running:
        """An output with this sum as its error."""
        reach = self.reach(beta)
        return Running(value, self.variance**0.5, value - reach, value + reach, everywhere)

    def log_moment(self, points: Floats) -> Floats:
        """ln E[exp(x sum)] at each point; infinite where there is none."""
        x = points[:, np.newaxis] * self.sizes
        safe = (x < self.rates).all(axis=1)
        moments = np.full(points.size, np.inf)
        moments[safe] = log_moments(x[safe], self.rates) @ self.times
        return moments

    def __add__(self, other: Mix) -> Mix:  # type: ignore[override]
        sizes, rates, times = (np.concatenate(pair) for pair in zip(self[:3], other[:3], strict=True))
        return Mix(sizes, rates, times, self.slack + other.slack)


def mix(terms: Iterable[tuple[float, float, float]], *, slack: float = 0.0) -> Mix:
    """A mix from (size, rate, times); what has no size or no times is left out."""
    kept = [(abs(size), rate, times) for size, rate, times in terms if size and times]
    sizes, rates, times = np.array(kept, dtype=np.float64).reshape(-1, 3).T
    return Mix(sizes, rates, times, slack)


def largest_of(levels: Iterable[Iterable[Mix]], number: int, beta: float) -> float:
    """How far any of so many sums may lie from zero, all at once, but for probability beta.

    Each sum is made of independent parts, one of each level, and which one is not known: the greatest
    moment of each level stands for it. Every x gives a valid bound; the best of a grid is taken.
    """
    known = [list(parts) for parts in levels]
    limit = min(
        (float((part.rates / part.sizes).min()) for parts in known for part in parts if part.sizes.size),
        default=1.0,
    )
    points = limit * _GRID
    moments = np.zeros(points.size)
    for parts in known:
        moments += np.max([part.log_moment(points) for part in parts], axis=0)
    slack = sum(max(part.slack for part in parts) for parts in known)
    reaches = (moments + math.log(2 * number / beta)) / points * (1 + _ROUNDING)
    return slack + float(reaches.min())


class _Centred:
    """The coefficients of the noises of a centred tree in the error of one output."""

    def __init__(self, plan: Plan, rate: Fraction) -> None:
        self.plan, self.rate = plan, float(rate)
        self.weights = [1.0, *(plan.weight(level) / WEIGHTS for level in range(1, plan.levels))]
        self.children = plan.branching if plan.levels > 1 else 0

    def rate_of(self, share: int, taper: int) -> float:
        """One over the scale of the noise of a node."""
        return self.rate * share / SHARES * (TAPERS - taper) / TAPERS

    def top(self, place: int, inside: float) -> tuple[list[float], list[tuple[float, float, float]]]:
        """With so many whole blocks and a fraction of the next: the coefficient of each; and the sum's."""
        plan = self.plan
        before, after = (plan.corrections[min(i, plan.blocks)] / ROUNDS for i in (place, place + 1))
        due = before + inside * (after - before)
        whole = [1.0] * place + [inside] * (place < plan.blocks) + [0.0] * (plan.blocks - place - 1)
        blocks = [part - due * taper / TAPERS for part, taper in zip(whole, plan.tapers, strict=True)]
        return blocks, [(due / TAPERS, self.rate / TAPERS, 1.0)]

    def block(self, size: float, taper: int, *, open_: bool = False) -> list[tuple[float, float, float]]:
        """The noise of a block and, unless it is open, that of its children."""
        weight, plan = self.weights[-1], self.plan
        own = (weight * size, self.rate_of(plan.top, taper), 1.0)
        below = ((1 - weight) * size, self.rate_of(plan.low, taper), 0.0 if open_ else float(self.children))
        return [own, below]

    def siblings(
        self, level: int, taper: int, sizes: Iterable[tuple[float, float]], pull: float
    ) -> list[tuple[float, float, float]]:
        """The noise of siblings, (coefficient, number) each, and that of their children."""
        weight, rate = self.weights[level], self.rate_of(self.plan.low, taper)
        terms = []
        for size, number in sizes:
            terms.append((weight * size + pull, rate, number))
            terms.append(((1 - weight) * size, rate, number * self.children))
        return terms


def centred_mix(plan: Plan, rate: Fraction, periods: int) -> Mix:
    """The noise in the output of a centred tree after so many periods."""
    law = _Centred(plan, rate)
    place, left = divmod(periods, plan.block)
    blocks, terms = law.top(place, left / plan.block)
    for number, (size, taper) in enumerate(zip(blocks, plan.tapers, strict=True)):
        terms += law.block(size, taper, open_=number == place and left > 0)
    if left:
        terms += _inside(law, plan.levels - 1, plan.tapers[place], left, blocks[place])
    return mix(terms, slack=_slack(plan))


def _inside(
    law: _Centred, level: int, taper: int, left: int, size: float
) -> list[tuple[float, float, float]]:
    """The noise below a node of a level with this coefficient, `left` of whose periods are closed."""
    k, width = law.plan.branching, law.plan.branching ** (level - 1)
    whole, rest = divmod(left, width)
    part, pull = left / (width * k), (1 - law.weights[level]) * size
    others = [(1 - part, float(whole)), (-part, float(k - whole - (rest > 0)))]
    terms = law.siblings(level - 1, taper, others, pull)
    if rest:
        next_ = rest / width - part
        weight, rate = law.weights[level - 1], law.rate_of(law.plan.low, taper)
        terms.append((weight * next_ + pull, rate, 1.0))
        terms += _inside(law, level - 1, taper, rest, next_)
    return terms


def centred_variances(plan: Plan, rate: Fraction, periods: NDArray[np.int64]) -> Floats:
    """The variances of many outputs of a centred tree, each after so many periods.

    The blocks and the bridges within them are uncorrelated: see docs/proofs/counter.md.
    """
    tapers = np.array(plan.tapers, dtype=np.float64) / TAPERS
    place, left = np.divmod(periods, plan.block)
    inside, now = left / plan.block, np.minimum(place, plan.blocks - 1)
    blocks = _node_variances(plan, rate, plan.levels - 1, tapers)
    spread, pulled = np.cumsum(blocks) - blocks, np.cumsum(tapers * blocks) - tapers * blocks
    totals = float(blocks.sum()), float((tapers * blocks).sum())
    whole = place == plan.blocks
    own = np.where(whole, totals[0], spread[now] + inside**2 * blocks[now])
    shared = np.where(whole, totals[1], pulled[now] + inside * (tapers * blocks)[now])
    steps = np.array(plan.corrections, dtype=np.float64) / ROUNDS
    due = steps[place] + inside * (np.append(steps, steps[-1])[place + 1] - steps[place])
    surplus = (
        float((tapers**2 * blocks).sum())
        + float(laplace_variances(np.array(float(rate) / TAPERS))) / TAPERS**2
    )
    variances: Floats = own - 2 * due * shared + due**2 * surplus
    for level in range(plan.levels - 1):
        node = _node_variances(plan, rate, level, tapers)[now]
        variances += node * _bridge(left, plan.branching, plan.branching**level)
    return variances


def _node_variances(plan: Plan, rate: Fraction, level: int, tapers: Floats) -> Floats:
    """The variance of a node of a level, refined, in each of the blocks."""
    rates = float(rate) / SHARES * (1 - tapers)
    own = laplace_variances(rates * plan.share(level))
    if not level:
        return own
    weight = plan.weight(level) / WEIGHTS
    return weight**2 * own + (1 - weight) ** 2 * plan.branching * laplace_variances(rates * plan.low)


def _bridge(left: NDArray[np.int64], k: int, width: int) -> Floats:
    """d + a^2 - (d + a)^2 / k with d whole children and the fraction a of the next."""
    within = left % (k * width)
    whole, rest = np.divmod(within, width)
    return np.asarray(whole + (rest / width) ** 2 - (within / width) ** 2 / k)


def centred_everywhere(plan: Plan, rate: Fraction, carried: Mix, beta: float) -> float:
    """How far any output of a centred tree may be off, all at once, on top of noise that it starts with."""
    law = _Centred(plan, rate)
    tops = [law.top(place, 0.0) for place in range(plan.blocks + 1)]
    levels = [[carried], [mix(_whole(law, *top)) for top in tops]]
    largest = max(abs(size) for blocks, _ in tops for size in blocks)
    for level in range(plan.levels - 2, -1, -1):
        levels.append(list(_bridges(law, level, largest)))
        largest = 1.0
    return _slack(plan) + largest_of(levels, plan.horizon, beta)


def _whole(
    law: _Centred, blocks: list[float], terms: list[tuple[float, float, float]]
) -> list[tuple[float, float, float]]:
    return terms + [
        term for size, taper in zip(blocks, law.plan.tapers, strict=True) for term in law.block(size, taper)
    ]


def _bridges(law: _Centred, level: int, largest: float) -> Iterable[Mix]:
    """Siblings of which some are whole: the moment of a fraction lies below that of one more or one less."""
    k, taper = law.plan.branching, max(law.plan.taper)
    pull = (1 - law.weights[level + 1]) * largest
    for whole in range(k + 1):
        part = whole / k
        yield mix(law.siblings(level, taper, [(1 - part, whole), (part, k - whole)], pull))


def _slack(plan: Plan) -> float:
    """Each level rounds a part of the sum down by less than one unit."""
    return plan.levels * 2.0**-16
