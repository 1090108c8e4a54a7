"""The default counter: a centred tree, or one after another where no end is known."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import Floats, integer_array
from partita.errors import InvalidParameter, check
from partita.numbers import failure, integer
from partita.public.bounds import laplace_variances, log_moments, repeated_reach
from partita.public.streams import LARGEST, CounterTerms, horizon_of, misfit
from partita.trusted.mechanisms.base import check_scale
from partita.trusted.noise.system import SYSTEM, IntegerArray, Noise
from partita.trusted.streams.base import ContinualCounter, Fields, Row, Running, Stepping, counted, counts_of
from partita.trusted.streams.centred import (
    BITS,
    ROUNDS,
    SHARES,
    TAPERS,
    WEIGHTS,
    CentredPath,
    TreePlan,
    epoch_plan,
    plan,
    widest_scale,
)

# How far outputs may be from the count: sums of weighted discrete Laplace noises, exactly.


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

    def __init__(self, plan: TreePlan, rate: Fraction) -> None:
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


def centred_mix(plan: TreePlan, rate: Fraction, periods: int) -> Mix:
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


def centred_variances(plan: TreePlan, rate: Fraction, periods: NDArray[np.int64]) -> Floats:
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


def _node_variances(plan: TreePlan, rate: Fraction, level: int, tapers: Floats) -> Floats:
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


def centred_everywhere(plan: TreePlan, rate: Fraction, carried: Mix, beta: float) -> float:
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


def _slack(plan: TreePlan) -> float:
    """Each level rounds a part of the sum down by less than one unit."""
    return plan.levels * 2.0**-16


# Centred trees one after another, for streams without a known end.


_FIRST: Final = 16**2
_GROWTH: Final = 16


class Epochs:
    """The errors of one tree after another, each sixteen times as long and with all of epsilon.

    A period lies in one tree only, and the last error of a tree stays in all later outputs.
    """

    def __init__(self, first: TreePlan, rate: Fraction, noise: Noise) -> None:
        self.plans = [first]
        self.tree = CentredPath(first, rate, noise)
        self._rate, self._noise = rate, noise

    def step(self) -> int:
        """The error of the next period."""
        if self.tree.position == self.plans[-1].horizon:
            self._begin()
        return self.tree.step()

    def many(self, periods: int) -> IntegerArray:
        """The error of each of the next periods."""
        pieces = [self.tree.many(count) for count in self._counts(periods)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *pieces])

    def skip(self, periods: int) -> int:
        """The error of the next periods together."""
        return sum(self.tree.skip(count) for count in self._counts(periods))

    def until(self, periods: int) -> Iterator[TreePlan]:
        """The plans of all trees that so many periods need."""
        plan, end = self.plans[0], 0
        while end < periods:
            yield plan
            end += plan.horizon
            plan = _after(plan) if end < periods else plan

    def fields(self) -> dict[str, Row]:
        """The plans so far and what is drawn of the open tree."""
        return {"plans": [number for plan in self.plans for number in plan.numbers], **self.tree.fields()}

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        """Go on with what was drawn before."""
        plans = TreePlan.all_of(fields["plans"])
        grown = [_GROWTH * plan.horizon for plan in plans[:-1]]
        if plans[:1] != self.plans or [plan.horizon for plan in plans[1:]] != grown:
            raise misfit("fit its trees")
        self.plans = plans
        self.tree = CentredPath(self.plans[-1], self._rate, self._noise)
        self.tree.restore(fields, periods - sum(plan.horizon for plan in self.plans[:-1]))

    def _counts(self, periods: int) -> Iterator[int]:
        """How many of the next periods lie in the open tree, then in the next, and so on."""
        while periods:
            if not self.tree.left:
                self._begin()
            count = min(periods, self.tree.left)
            yield count
            periods -= count

    def _begin(self) -> None:
        self.plans.append(_after(self.plans[-1]))
        self.tree = CentredPath(self.plans[-1], self._rate, self._noise)


def _after(plan: TreePlan) -> TreePlan:
    return epoch_plan(_GROWTH * plan.horizon)


def first_epoch() -> TreePlan:
    """The first of the trees without a known end."""
    return epoch_plan(_FIRST)


# A count plus errors that never see it.


_LOWEST: Final = -LARGEST
_SAFE: Final = 2**61
_PERIODS_AT_ONCE: Final = 2**18


class ErrorPath(Protocol):
    """By how much the error of the outputs grows, period after period, in units of the granularity."""

    def step(self) -> int:
        """In the next period."""

    def many(self, periods: int) -> IntegerArray:
        """In each of the next periods."""

    def skip(self, periods: int) -> int:
        """In the next periods together."""

    def fields(self) -> dict[str, Row]:
        """What is drawn, as rows of a state whose lengths are public."""

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        """Go on after so many periods with what was drawn before; `InvalidState` if it does not fit."""


class NoisyCount(Stepping, ContinualCounter):
    """A counter whose outputs are the count so far and the errors of a path so far.

    Noise for what comes is in memory: it is not pan-private.
    """

    def __init__(
        self,
        *,
        terms: CounterTerms,
        horizon: int | None,
        bits: int,
        path: ErrorPath,
        secure: bool,
    ) -> None:
        super().__init__(terms=terms, horizon=horizon, secure=secure)
        self.granularity = Fraction(1, 1 << bits)
        self._bits, self._fine, self._path = bits, 1 << bits, path
        self._units = 0

    @property
    def exact(self) -> Fraction:
        """The last output; 0 before the first."""
        return Fraction(self._units, 1 << self._bits)

    def update(self, x: int = 0) -> float:
        """Close one period in which x was counted: its output."""
        if type(x) is not int or not _LOWEST < x < LARGEST:
            x = counted(x)
        if self._broken or self._periods == self._end:
            self._make_room(1)
        self._broken = True
        self._units = units = self._units + (x << self._bits) + self._path.step()
        self._periods += 1
        self._broken = False
        return units / self._fine

    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each number: all outputs. The same law as one by one."""
        counts = counts_of(xs)
        self._make_room(counts.size)
        outputs = np.empty(counts.size)
        with self._step():
            for first in range(0, counts.size, _PERIODS_AT_ONCE):
                some = slice(first, first + _PERIODS_AT_ONCE)
                outputs[some] = self._closed(counts[some])
        return outputs

    def _closed(self, counts: IntegerArray) -> Floats:
        """The outputs of some periods, few enough to stay in the processor's memory."""
        units = _running(self._units, counts, self._path.many(counts.size), self._bits)
        self._units = int(units[-1])
        self._periods += counts.size
        return np.asarray(units / (1 << self._bits), dtype=np.float64)

    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; only the last of their outputs is published."""
        periods = integer(periods, "periods", low=0, high=LARGEST)
        self._make_room(periods)
        with self._step():
            self._units += self._path.skip(periods)
            self._periods += periods

    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for all periods at once."""
        chance = float(failure(beta))
        return self._law().around(self.value, chance, everywhere=self._everywhere(chance))

    def variance(self) -> float:
        """The variance of the last output."""
        return self._law().variance

    @abstractmethod
    def variances(self, periods: ArrayLike) -> Floats:
        """The variance of the output after each of these numbers of periods, whenever it is published."""

    def _fields(self) -> Fields:
        return {"shape": self._shape(), "units": [self._units], **self._path.fields()}

    def _restore(self, fields: dict[str, list[int]]) -> None:
        (self._units,) = fields["units"]
        self._path.restore(fields, self._periods)

    @abstractmethod
    def _shape(self) -> Sequence[int]:
        """The public numbers that this counter was made with, besides its terms."""

    @abstractmethod
    def _law(self) -> Mix:
        """The noise in the last output."""

    @abstractmethod
    def _everywhere(self, beta: float) -> float:
        """How far any output may be off, all at once."""

    def _within(self, periods: ArrayLike) -> NDArray[np.int64]:
        """Numbers of periods that this counter has, as an array."""
        after = integer_array(periods, "periods")
        if after.size and not 0 <= int(after.min()) <= int(after.max()) <= self._end:
            fix = "ask within the horizon"
            raise InvalidParameter("periods", f"must lie between 0 and {self._end}", given=periods, fix=fix)
        return after.astype(np.int64)


def _running(units: int, counts: IntegerArray, errors: IntegerArray, bits: int) -> Any:
    """All outputs, as int64 if nothing can overflow, else as Python ints."""
    largest = [max(-int(array.min(initial=0)), int(array.max(initial=0))) for array in (counts, errors)]
    room = abs(units) + counts.size * ((largest[0] << bits) + largest[1])
    dtype = np.int64 if room < _SAFE else object
    outputs: Any = counts.astype(dtype) << bits
    outputs += errors.astype(dtype, copy=False)
    np.cumsum(outputs, out=outputs)
    outputs += units
    return outputs


@final
class Counter(NoisyCount):
    """Count under continual observation: one output for every period, all of them together private.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events; for any
               stream, also one that is chosen while outputs are seen. Not pan-private.
    Error:     mean squared error 113 / epsilon^2 over 2^10 periods, 390 over 2^16, 724 over 2^20:
               O(log^3 horizon / epsilon^2); `answer` says how far off an output may be.
    Proof:     docs/proofs/counter.md (noise on a tree, made consistent online)

    An event changes a period by at most `change`. Without a horizon it goes on as long as it is asked to, in
    trees that grow; what `answer` says of all periods is then of those up to the end of the present tree.
    `plan` is the shape of the tree, chosen for the horizon if it is left out.

    >>> counter = Counter(epsilon=1, horizon=1000)
    >>> outputs = [counter.update(x) for x in (0, 1, 5)]
    >>> counter.periods, counter.guarantee
    (3, Guarantee(epsilon=1, neighbors=add-remove, unit=event))
    """

    name: ClassVar[str] = "counter"

    def __init__(
        self,
        *,
        epsilon: object,
        horizon: int | None = None,
        change: int = 1,
        contributions: int = 1,
        plan: TreePlan | None = None,
        noise: Noise = SYSTEM,
    ) -> None:
        terms = CounterTerms.of(epsilon, change=change, contributions=contributions)
        first = _first_plan(horizon, plan)
        check_scale(widest_scale(terms.rate), terms.epsilon)
        session = noise.session()
        self._epochs = Epochs(first, terms.rate, session)
        known = None if horizon is None else first.horizon
        super().__init__(terms=terms, horizon=known, bits=BITS, path=self._epochs, secure=session.secure)

    def variances(self, periods: ArrayLike) -> Floats:
        """The variance of the output after each of these numbers of periods: of its tree and those before."""
        after = self._within(periods)
        variances, start, carried = np.zeros(after.shape), 0, 0.0
        for tree in self._epochs.until(int(after.max(initial=0))):
            here = (start < after) & (after <= start + tree.horizon)
            variances[here] = carried + centred_variances(tree, self.terms.rate, after[here] - start)
            start, carried = start + tree.horizon, carried + self._carried([tree]).variance
        return variances

    def _shape(self) -> Sequence[int]:
        return [] if self.horizon is None else self._epochs.plans[0].numbers

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        if not fields["shape"]:
            return cls(noise=noise, **terms.keywords)
        (known,) = TreePlan.all_of(fields["shape"])
        return cls(horizon=known.horizon, plan=known, noise=noise, **terms.keywords)

    def _law(self) -> Mix:
        return self._carried(self._epochs.plans[:-1]) + centred_mix(
            self._epochs.plans[-1], self.terms.rate, self._epochs.tree.position
        )

    def _everywhere(self, beta: float) -> float:
        return _everywhere(tuple(self._epochs.plans), self.terms.rate, beta, ends=self.horizon is not None)

    def _carried(self, plans: Sequence[TreePlan]) -> Mix:
        return _carried(plans, self.terms.rate)


@lru_cache(maxsize=256)
def _everywhere(plans: tuple[TreePlan, ...], rate: Fraction, beta: float, *, ends: bool) -> float:
    """How far any output may be off, all at once.

    Each tree has its share of beta: all if there is one, else a half, a quarter and so on.
    """
    shares = [beta] if ends else [beta / 2 ** (i + 1) for i in range(len(plans))]
    return max(
        centred_everywhere(plan, rate, _carried(plans[:i], rate), share)
        for i, (plan, share) in enumerate(zip(plans, shares, strict=True))
    )


def _carried(plans: Sequence[TreePlan], rate: Fraction) -> Mix:
    """The noise that whole trees leave behind."""
    return sum((centred_mix(plan, rate, plan.horizon) for plan in plans), mix([]))


def _first_plan(horizon: int | None, given: TreePlan | None) -> TreePlan:
    if horizon is None:
        check(given is None, "plan", "needs a horizon", given=given, fix="pass plan.horizon")
        return first_epoch()
    if given is None:
        return plan(horizon_of(horizon))
    rule = "must be for the same horizon"
    check(given.horizon == horizon_of(horizon), "plan", rule, given=given.horizon, fix="make one for it")
    return given
