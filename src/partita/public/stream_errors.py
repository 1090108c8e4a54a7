"""How far the outputs of a counter may be from the true count: sums of discrete Laplace noises, exactly.

All of it follows from public numbers: the guarantee, the shape of the tree, and how many periods are closed.
So readers of outputs compute bounds here without a counter, and counters use the same objects for `answer`.
There is one object for each mechanism: `noise` is the noise in the output after some periods, `everywhere` a
bound for all periods at once. `error_band` makes bounds from the settings in a public file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol, final

import numpy as np

from partita.answer import Answer
from partita.arrays import Floats, Ints
from partita.errors import InvalidParameter, check
from partita.numbers import check_choice, integer
from partita.public.bounds import laplace_variances, log_moments, repeated_reach
from partita.public.stream_trees import (
    ROUNDS,
    SHARES,
    TAPERS,
    TREE_WEIGHTS,
    WEIGHTS,
    BlockShape,
    BookBlockShape,
    CounterTree,
    PeriodTree,
    TreeBlockShape,
    TreePlan,
    Variant,
    block_length,
    first_epoch,
    next_epoch,
    plan,
    shape_for,
)
from partita.public.streams import FAMILY, AnyOutput, Settings, check_horizon


class StreamErrors(Protocol):
    """The errors of the outputs of one mechanism."""

    def noise(self, periods: int) -> NoiseSum:
        """The noise in the output after so many periods."""

    def everywhere(self, periods: int, beta: float) -> float:
        """How far any output may be off, all at once; `Running.everywhere` says which outputs these are."""


def error_band(outputs: Sequence[AnyOutput], settings: Settings, beta: float) -> Floats | None:
    """How far each output may be from the true count of its period, but for probability beta.

    For a family it is that of each key alone, the same for all. For a sparse counter it depends on when
    segments were sealed, and this is None.
    """
    errors = errors_of(settings)
    if errors is None:
        return None
    # Nine digits: the last bits of a sum are not the same on all machines.
    halves = [float(f"{errors.noise(output.period).reach(beta):.9g}") for output in outputs]
    return np.array(halves, dtype=np.float64)


def bound_outputs(settings: Settings, beta: float) -> float | None:
    """With probability 1 - beta no output for any key is off by more, before any data; None if unknown.

    It is unknown without a horizon. For a sparse counter it depends on how many events come, which is not in
    the public file.
    """
    errors = errors_of(settings)
    if errors is None or settings.horizon is None:
        return None
    return errors.everywhere(settings.horizon, beta / settings.columns)


def errors_of(settings: Settings) -> StreamErrors | None:
    """The errors of a counter with these settings; None if they do not follow from public numbers."""
    mechanism = FAMILY if settings.keys else check_choice(settings.mechanism, "mechanism", tuple(_ERRORS))
    rate = settings.terms.rate
    rule, fix = "must give noise that can be drawn", "check the file"
    check(_LOWEST_RATE <= rate <= 1 / _LOWEST_RATE, "epsilon", rule, given=settings.epsilon, fix=fix)
    try:
        return _ERRORS[mechanism](rate, settings.horizon, **settings.options)
    except TypeError:
        rule = f"must be those of {mechanism!r}"
        raise InvalidParameter("options", rule, given=settings.options, fix="check the file") from None


class Running(NamedTuple):
    """The last output of a counter, and how far it may be from the true count.

    `low` to `high` holds the true count of this period, but for probability beta. `everywhere` is how far
    any of many outputs may be off, all at once, but for probability beta: of those in the horizon, or up to
    the end of the present tree or block where there is none. For a sparse counter it is all outputs so far,
    for a sliding one any `window` outputs on end. Both hold for any stream, or as `answer` says.
    """

    value: float
    error: float
    low: float
    high: float
    everywhere: float

    def _repr_html_(self) -> str:
        from partita.public.stream_plot import running_card

        return running_card(self)


# Points at which moments are tried, as parts of the largest one: more make bounds tighter and slower.
_GRID: Final = np.concatenate([np.geomspace(1e-4, 0.5, 48), 1.0 - np.geomspace(0.5, 1e-3, 16)[1:]])
_ROUNDING: Final = 1e-9  # more than what floats lose in a sum of moments


class NoiseSum(NamedTuple):
    """times[i] independent noises of scale 1 / rates[i], each multiplied by sizes[i]; and roundings."""

    sizes: Floats
    rates: Floats
    times: Floats
    slack: float

    @property
    def variance(self) -> float:
        """The variance of the sum, without roundings."""
        return float(self.times @ (self.sizes**2 * laplace_variances(self.rates)))

    @property
    def kurtosis(self) -> float:
        """The excess kurtosis of the sum: fourth cumulants of discrete Laplace noise add up."""
        ratios = np.exp(-self.rates)
        fourth = 2 * ratios * (1 + 4 * ratios + ratios**2) / (1 - ratios) ** 4
        return float(self.times @ (self.sizes**4 * fourth)) / self.variance**2 if self.sizes.size else 0.0

    def reach(self, beta: float) -> float:
        """t with P[|sum| > t] <= beta."""
        if not self.sizes.size:
            return self.slack
        return self.slack + repeated_reach(self.sizes, self.rates, self.times, beta / 2)

    def around(self, value: float, beta: float, *, everywhere: float) -> Running:
        """An output with this sum as its error."""
        reach = self.reach(beta)
        return Running(value, self.variance**0.5, value - reach, value + reach, everywhere)

    def answer(self, value: float) -> Answer:
        """A count that may be negative, with this sum as its error.

        Its interval is that of the model and half a unit more on both sides, since noise is in whole numbers.
        """
        modelled = Answer(
            value,
            lambda: self.variance**0.5,
            lambda beta: (value - self.reach(beta), value + self.reach(beta)),
            -math.inf,
            kurtosis=self.kurtosis,
        )

        def likely(beta: float) -> tuple[float, float]:
            below, above = modelled.sides(1 - beta)
            return value - below - 0.5, value + above + 0.5

        return replace(modelled, likely=likely)

    def log_moment(self, points: Floats) -> Floats:
        """ln E[exp(x sum)] at each point; infinite where there is none."""
        x = points[:, np.newaxis] * self.sizes
        safe = (x < self.rates).all(axis=1)
        moments = np.full(points.size, np.inf)
        moments[safe] = log_moments(x[safe], self.rates) @ self.times
        return moments

    def __add__(self, other: NoiseSum) -> NoiseSum:  # type: ignore[override]
        sizes, rates, times = (np.concatenate(pair) for pair in zip(self[:3], other[:3], strict=True))
        return NoiseSum(sizes, rates, times, self.slack + other.slack)


def noise_sum(terms: Iterable[tuple[float, float, float]], *, slack: float = 0.0) -> NoiseSum:
    """A sum from (size, rate, times); terms of size or number zero are left out."""
    kept = [(abs(size), rate, times) for size, rate, times in terms if size and times]
    sizes, rates, times = np.array(kept, dtype=np.float64).reshape(-1, 3).T
    return NoiseSum(sizes, rates, times, slack)


def largest_of(levels: Iterable[Iterable[NoiseSum]], number: int, beta: float) -> float:
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


# ---- the noise of a centred tree ----


class _CentredCoefficients:
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


def centred_noise(plan: TreePlan, rate: Fraction, periods: int) -> NoiseSum:
    """The noise in the output of a centred tree after so many periods."""
    law = _CentredCoefficients(plan, rate)
    place, left = divmod(periods, plan.block)
    blocks, terms = law.top(place, left / plan.block)
    for number, (size, taper) in enumerate(zip(blocks, plan.tapers, strict=True)):
        terms += law.block(size, taper, open_=number == place and left > 0)
    if left:
        terms += _inside(law, plan.levels - 1, plan.tapers[place], left, blocks[place])
    return noise_sum(terms, slack=_slack(plan))


def _inside(
    law: _CentredCoefficients, level: int, taper: int, left: int, size: float
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


def centred_variances(plan: TreePlan, rate: Fraction, periods: Ints) -> Floats:
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


def _bridge(left: Ints, k: int, width: int) -> Floats:
    """d + a^2 - (d + a)^2 / k with d whole children and the fraction a of the next."""
    within = left % (k * width)
    whole, rest = np.divmod(within, width)
    return np.asarray(whole + (rest / width) ** 2 - (within / width) ** 2 / k)


def centred_everywhere(plan: TreePlan, rate: Fraction, carried: NoiseSum, beta: float) -> float:
    """How far any output of a centred tree may be off, all at once, on top of noise that it starts with."""
    law = _CentredCoefficients(plan, rate)
    tops = [law.top(place, 0.0) for place in range(plan.blocks + 1)]
    levels = [[carried], [noise_sum(_whole(law, *top)) for top in tops]]
    largest = max(abs(size) for blocks, _ in tops for size in blocks)
    for level in range(plan.levels - 2, -1, -1):
        levels.append(list(_bridges(law, level, largest)))
        largest = 1.0
    return _slack(plan) + largest_of(levels, plan.horizon, beta)


def _whole(
    law: _CentredCoefficients, blocks: list[float], terms: list[tuple[float, float, float]]
) -> list[tuple[float, float, float]]:
    return terms + [
        term for size, taper in zip(blocks, law.plan.tapers, strict=True) for term in law.block(size, taper)
    ]


def _bridges(law: _CentredCoefficients, level: int, largest: float) -> Iterable[NoiseSum]:
    """Siblings of which some are whole: the moment of a fraction lies below that of one more or one less."""
    k, taper = law.plan.branching, max(law.plan.taper)
    pull = (1 - law.weights[level + 1]) * largest
    for whole in range(k + 1):
        part = whole / k
        yield noise_sum(law.siblings(level, taper, [(1 - part, whole), (part, k - whole)], pull))


def _slack(plan: TreePlan) -> float:
    """Each level rounds a part of the sum down by less than one unit."""
    return plan.levels * 2.0**-16


# ---- the errors of each mechanism ----


@final
class CounterErrors:
    """The errors of `Counter`: centred trees one after another, of which the last one is open.

    A period lies in one tree only, and the last error of a tree stays in all later outputs. `plans` are the
    trees so far; further ones are planned as they are needed, unless the first `ends` the count.
    """

    def __init__(self, rate: Fraction, plans: Sequence[TreePlan], *, ends: bool) -> None:
        self._rate, self._plans, self._ends = rate, plans, ends

    @classmethod
    def of(cls, rate: Fraction, horizon: int | None) -> CounterErrors:
        """The errors of a counter over so many periods, or without a known end."""
        first = first_epoch() if horizon is None else plan(check_horizon(horizon))
        return cls(rate, [first], ends=horizon is not None)

    def noise(self, periods: int) -> NoiseSum:
        """That of the open tree, and what whole trees left behind."""
        *whole, tree = self._until(periods)
        position = periods - sum(each.horizon for each in whole)
        return _carried(tuple(whole), self._rate) + centred_noise(tree, self._rate, position)

    def everywhere(self, periods: int, beta: float) -> float:
        """How far any output up to the end of the open tree may be off, all at once."""
        return _centred_trees_everywhere(tuple(self._until(periods)), self._rate, beta, ends=self._ends)

    def variances(self, periods: Ints) -> Floats:
        """The variance of the output after each of these numbers of periods: of its tree and those before."""
        variances, start, carried = np.zeros(periods.shape), 0, 0.0
        for tree in self._until(int(periods.max(initial=0))):
            here = (start < periods) & (periods <= start + tree.horizon)
            variances[here] = carried + centred_variances(tree, self._rate, periods[here] - start)
            start, carried = start + tree.horizon, carried + _carried((tree,), self._rate).variance
        return variances

    def _until(self, periods: int) -> Iterator[TreePlan]:
        """The plans of the trees that so many periods need, one at least."""
        tree, end = self._plans[0], self._plans[0].horizon
        yield tree
        for number in range(1, 64):
            if end >= periods:
                return
            tree = self._plans[number] if number < len(self._plans) else next_epoch(tree)
            end += tree.horizon
            yield tree


@lru_cache(maxsize=256)
def _centred_trees_everywhere(
    plans: tuple[TreePlan, ...], rate: Fraction, beta: float, *, ends: bool
) -> float:
    """How far any output may be off, all at once.

    Each tree has its share of beta: all if there is one, else a half, a quarter and so on.
    """
    shares = [beta] if ends else [beta / 2 ** (i + 1) for i in range(len(plans))]
    return max(
        centred_everywhere(plan, rate, _carried(plans[:i], rate), share)
        for i, (plan, share) in enumerate(zip(plans, shares, strict=True))
    )


@lru_cache(maxsize=256)
def _carried(plans: tuple[TreePlan, ...], rate: Fraction) -> NoiseSum:
    """The noise that whole trees leave behind."""
    return sum((centred_noise(plan, rate, plan.horizon) for plan in plans), noise_sum([]))


@final
@dataclass(frozen=True)
class TreeCounterErrors:
    """The errors of `TreeCounter`: the noise of the fewest nodes that make up the first periods."""

    tree: CounterTree
    rate: Fraction

    def noise(self, periods: int) -> NoiseSum:
        """That of the nodes in the sum."""
        return self._noise_of(self.tree.digits(periods))

    def between(self, start: int, stop: int) -> NoiseSum:
        """That of the fewest nodes that make up the periods from `start` up to `stop`."""
        numbers = [0] * self.tree.levels
        for level, _ in self.tree.cover(start, stop):
            numbers[level] += 1
        return self._noise_of(numbers)

    def everywhere(self, periods: int, beta: float) -> float:
        """No sum has more nodes of a level than siblings but one, and all of the highest."""
        tree = self.tree
        most = [tree.branching - 1] * (tree.levels - 1) + [tree.digits(tree.horizon)[-1]]
        return self._noise_of(most).reach(beta / tree.horizon)

    def variances(self, periods: Ints) -> Floats:
        """The variance of the output after each of these numbers of periods: of each node in the sum."""
        tree, left = self.tree, periods
        total = np.zeros(left.shape)
        for level in range(tree.levels):
            node = self._noise_of([0] * level + [1]).variance
            digit = left % tree.branching if level < tree.levels - 1 else left
            total, left = total + node * digit, left // tree.branching
        return total

    def _noise_of(self, digits: list[int]) -> NoiseSum:
        """The noise in a sum of so many nodes of each level."""
        tree = self.tree
        shares = [weight / TREE_WEIGHTS for weight in tree.weights]
        terms, rounded = [], 0.0
        for level, number in enumerate(digits):
            size, times, slack = 1.0, float(number), 0.0
            for below in range(level, -1, -1):
                terms.append((size * shares[below], float(self.rate) / tree.levels, times))
                slack += size * times if below and tree.refine else 0.0
                size, times = size * (1 - shares[below]), times * tree.branching
            rounded += slack
        return noise_sum(terms, slack=rounded / TREE_WEIGHTS)


@final
@dataclass(frozen=True)
class FamilyErrors:
    """The errors of one key of `CounterFamily`."""

    tree: PeriodTree
    rate: Fraction

    def noise(self, periods: int, start: int = 0) -> NoiseSum:
        """The noise in the sum of the errors of the periods from `start` up to `periods`."""
        sizes = dict(self.tree.coefficients(periods))
        for node, size in self.tree.coefficients(start):
            sizes[node] = sizes.get(node, 0.0) - size
        return noise_sum((size, self._rate_of(level), 1.0) for (level, _), size in sizes.items())

    def everywhere(self, periods: int, beta: float) -> float:
        """How far any output for a key may be off, all at once."""
        return _tree_everywhere(self, beta, ends=1)

    def _rate_of(self, level: int) -> float:
        """One over the scale of the noise of a node."""
        return float(1 / self.tree.scale(level, self.rate))

    def _bridges(self, level: int) -> Iterator[NoiseSum]:
        """Siblings of which some are whole: the moment of a fraction lies below one more or one less."""
        siblings, each = self.tree.siblings(level), self._rate_of(level)
        for whole in range(siblings + 1):
            share = whole / siblings
            yield noise_sum([(1 - share, each, float(whole)), (share, each, float(siblings - whole))])


@lru_cache(maxsize=256)
def _tree_everywhere(errors: FamilyErrors, beta: float, *, ends: int) -> float:
    """How far sums over any periods from a beginning may be off, all at once.

    With more `ends`, so many open rows of siblings of each level are in a sum, and the top row once.
    """
    tree = errors.tree
    rows = [[noise_sum([(1.0, errors._rate_of(tree.levels - 1), float(tree.blocks))])]]
    for level in range(tree.levels - 1):
        rows += [list(errors._bridges(level))] * ends
    return largest_of(rows, tree.horizon, beta)


@final
@dataclass(frozen=True)
class SlidingErrors:
    """The errors of `SlidingCounter`: of a part of the open tree, and of the end of the one before."""

    tree: PeriodTree
    rate: Fraction
    window: int

    @classmethod
    def of(cls, rate: Fraction, window: object, shape: PeriodTree | None = None) -> SlidingErrors:
        """The errors over a window; each tree is as long as the window, or less than twice as long."""
        length = integer(window, "window", low=1, high=_LONGEST_WINDOW)
        tree = (shape or shape_for(length)).whole
        rule, fix = f"must have {length} periods, and less than twice as many", "leave it out"
        check(length <= tree.horizon < 2 * length, "shape", rule, given=shape, fix=fix)
        return cls(tree, rate, length)

    def noise(self, periods: int) -> NoiseSum:
        """That of the part of the open tree, and of the part of the one before if there is one."""
        errors, block = FamilyErrors(self.tree, self.rate), self.tree.horizon
        place = self.place(periods)
        new = errors.noise(place, max(0, place - self.window))
        if place >= self.window or periods <= block:
            return new
        return new + errors.noise(block, (place - self.window) % block)

    def everywhere(self, periods: int, beta: float) -> float:
        """How far any `window` outputs on end may be off, all at once."""
        return _tree_everywhere(FamilyErrors(self.tree, self.rate), beta, ends=2)

    def place(self, periods: int) -> int:
        """How many periods of the open tree are closed: all of them until the next one begins."""
        return (periods - 1) % self.tree.horizon + 1 if periods else 0


@final
@dataclass(frozen=True)
class PanErrors:
    """The errors of `PanPrivateCounter`, in the block that begins after `start` periods and in later ones.

    `carried` is how many noises of blocks with so many levels are in the output that the block begins with.
    """

    block: BlockShape
    start: int
    carried: Ints
    horizon: int | None

    @classmethod
    def of(cls, rate: Fraction, horizon: int | None, *, variant: Variant = "default") -> PanErrors:
        """The errors of a live counter that was never looked at."""
        shape = BLOCK_SHAPES[check_choice(variant, "variant", tuple(BLOCK_SHAPES))]
        known = None if horizon is None else check_horizon(horizon)
        first = shape(length=block_length(0, known), rate=rate, live=True)
        return cls(first, 0, np.zeros(PAN_CELLS, dtype=np.int64), known)

    def noise(self, periods: int) -> NoiseSum:
        """The sum of the noises of all blocks."""
        return self._noise_of(self.noises(periods))

    def everywhere(self, periods: int, beta: float) -> float:
        """All periods are those up to the horizon, or up to the end of the open block if there is none."""
        now = self._at(periods)
        most = now.carried.copy()
        for levels in {now.block.levels, *np.flatnonzero(now.carried).tolist()}:
            most[levels] += now._of_levels(levels).most
        return now._noise_of(most).reach(beta / (now.horizon or now.start + now.block.length))

    def noises(self, periods: int) -> Ints:
        """How many noises of blocks with so many levels are in the output after so many periods."""
        now = self._at(periods)
        noises = now.carried.copy()
        if periods > now.start:
            noises[now.block.levels] += now.block.noises(periods - now.start - 1)
        return noises

    def _at(self, periods: int) -> PanErrors:
        """The same, in the block in which so many periods are closed."""
        now = self
        while (end := now.start + now.block.length) < periods:
            block = replace(now.block, length=block_length(end, now.horizon))
            now = PanErrors(block, end, now.noises(end), now.horizon)
        return now

    def _noise_of(self, noises: Ints) -> NoiseSum:
        """The sum of so many noises of blocks with so many levels."""
        return noise_sum(
            (1.0, float(1 / self._of_levels(levels).scale), float(noises[levels]))
            for levels in np.flatnonzero(noises).tolist()
        )

    def _of_levels(self, levels: int) -> BlockShape:
        return replace(self.block, length=1 << levels)


_LOWEST_RATE: Final = Fraction(1, 2**62)

PAN_CELLS: Final = 64
"""The cells of a pan-private counter: enough for a block of 2^62 periods."""

BLOCK_SHAPES: Final[dict[Variant, type[BlockShape]]] = {"default": TreeBlockShape, "book": BookBlockShape}

_LONGEST_WINDOW: Final = 2**20  # periods: what is kept in memory for each window


def _tree_errors(rate: Fraction, horizon: int | None, **options: Any) -> StreamErrors:
    return TreeCounterErrors(CounterTree(horizon=horizon, **options), rate)


def _sliding_errors(rate: Fraction, horizon: int | None, *, window: object) -> StreamErrors:
    return SlidingErrors.of(rate, window)


def _family_errors(rate: Fraction, horizon: int | None) -> StreamErrors:
    return FamilyErrors(shape_for(check_horizon(horizon)), rate)


def _no_errors(rate: Fraction, horizon: int | None, **options: Any) -> None:
    """Those of a sparse counter depend on where segments ended, which is not in the public file."""


_ERRORS: Final[dict[str, Callable[..., StreamErrors | None]]] = {
    "counter": CounterErrors.of,
    "tree": _tree_errors,
    "sparse": _no_errors,
    "sliding": _sliding_errors,
    "pan-private": PanErrors.of,
    FAMILY: _family_errors,
}
