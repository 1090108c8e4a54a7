"""The shapes of the trees that counters put over their periods: functions of public numbers only.

TreePlan       the centred tree of `Counter`: branching, levels and shares of epsilon, chosen by the variance
PeriodTree     the centred tree of `CounterFamily` and `SlidingCounter`, with siblings in powers of two
CounterTree    the tree of the papers, for `TreeCounter`
BlockShape     the periods of `PanPrivateCounter` between two fresh starts
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Final, Literal, TypeAlias

import numpy as np

from partita.arrays import Floats, Ints
from partita.errors import check
from partita.numbers import integer
from partita.public.streams import LARGEST, check_horizon

# ---- the centred tree of one counter ----

SHARES: Final = 1 << 10
"""Shares of epsilon are multiples of 1 / SHARES."""
TAPERS: Final = 1 << 7
"""The share that a block gives to the tapered sum is a multiple of 1 / TAPERS."""
WEIGHTS: Final = 1 << 8
"""The weights between a node and its children are multiples of 1 / WEIGHTS."""
ROUNDS: Final = 1 << 16
"""The correction by the tapered sum is a multiple of 1 / ROUNDS."""

EPOCH_GROWTH: Final = 16
"""Each tree without a known end is so many times as long as the one before."""
_FIRST_EPOCH: Final = 16**2

# The grid of shapes that are tried for a horizon: finer takes longer to plan.
_PROFILE: Final = np.array([1, 13 / 16, 1 / 2, 1 / 10])  # how tapers fall from quarter to quarter
_EVENNESS: Final = np.linspace(0.5, 1, 6)  # how much of a taper does not fall, for epochs
_MOST_BRANCHES: Final = 64
_MOST_BLOCKS: Final = 1 << 10
_MOST_LEVELS: Final = 64
_FEW_BRANCHES: Final = 8  # narrower trees than this are not tried
_MOST_TAPER: Final = 72
_LAST_COUNTS: Final = 1.5  # weight of an epoch's last error, which all later outputs keep, against its mean


@dataclass(frozen=True)
class TreePlan:
    """A tree of `levels` rows of nodes: blocks on top, each with branching^(levels-1) periods.

    Every row below the top has the share low / SHARES of what its block has; the top row has the rest.
    A block of quarter q gives taper[q] / TAPERS of epsilon to one sum over all blocks, weighted alike.

    >>> plan(2**20).branching, plan(2**20).levels, plan(2**20).blocks
    (16, 5, 16)
    """

    horizon: int
    branching: int
    levels: int
    low: int
    taper: tuple[int, ...]

    def __post_init__(self) -> None:
        sound = (
            2 <= self.branching <= _MOST_BRANCHES
            and 1 <= self.levels <= _MOST_LEVELS
            and self.horizon >= 1
            and self.blocks <= _MOST_BLOCKS
            and self.low >= 1
            and self.top >= 1
            and len(self.taper) == _PROFILE.size
            and all(0 <= taper < TAPERS for taper in self.taper)
        )
        check(sound, "plan", "must be a tree with shares for every row", given=self, fix="use plan(horizon)")

    @property
    def numbers(self) -> tuple[int, ...]:
        """The plan as a row of a state."""
        return self.horizon, self.branching, self.levels, self.low, *self.taper

    @classmethod
    def all_of(cls, numbers: Sequence[int]) -> list[TreePlan]:
        """The plans in a row of a state."""
        size = 4 + _PROFILE.size
        rows = [numbers[i : i + size] for i in range(0, len(numbers), size)]
        return [cls(h, k, levels, low, tuple(taper)) for h, k, levels, low, *taper in rows]

    @property
    def block(self) -> int:
        """The number of periods in a block."""
        return int(self.branching ** (self.levels - 1))

    @property
    def blocks(self) -> int:
        """The number of blocks; the last one may reach beyond the horizon."""
        return -(-self.horizon // self.block)

    @property
    def top(self) -> int:
        """The share of the top row, in parts of SHARES."""
        return SHARES - (self.levels - 1) * self.low

    @cached_property
    def tapers(self) -> tuple[int, ...]:
        """What each block gives to the tapered sum, in parts of TAPERS."""
        return tuple(self.taper[len(self.taper) * j // self.blocks] for j in range(self.blocks))

    def share(self, level: int) -> int:
        """The share of a row of nodes, leaves first, in parts of SHARES."""
        return self.top if level == self.levels - 1 else self.low

    def weight(self, level: int) -> int:
        """How much a node of the row counts against the sum of its children, in parts of WEIGHTS.

        Inverse variances: the squared share against that of a child divided by their number.
        """
        own, below = self.share(level) ** 2 * self.branching, self.low**2
        return (WEIGHTS * own + (own + below) // 2) // (own + below)

    @cached_property
    def corrections(self) -> tuple[int, ...]:
        """How much of the tapered sum's surplus is due before each block, in parts of ROUNDS.

        The least squares: the covariance with the blocks so far, over the variance of the surplus, for
        noise of variance 1 / share^2.
        """
        given = [Fraction(taper, TAPERS) for taper in self.tapers]
        pulls = [theta * self._block_variance / (1 - theta) ** 2 for theta in given]
        surplus = 1 + sum(theta * pull for theta, pull in zip(given, pulls, strict=True))
        return tuple(int(ROUNDS * so_far / surplus) for so_far in accumulate(pulls, initial=Fraction(0)))

    @property
    def _block_variance(self) -> Fraction:
        own = Fraction(SHARES, self.top) ** 2
        if self.levels == 1:
            return own
        weight = Fraction(self.weight(self.levels - 1), WEIGHTS)
        below = self.branching * Fraction(SHARES, self.low) ** 2
        return weight**2 * own + (1 - weight) ** 2 * below


@lru_cache(maxsize=256)
def plan(horizon: int) -> TreePlan:
    """The plan of least mean variance over a known number of periods."""
    return _best(horizon, last_counts=0.0)


@lru_cache(maxsize=64)
def epoch_plan(horizon: int) -> TreePlan:
    """The plan of an epoch whose last error stays in all outputs after it."""
    return _best(horizon, last_counts=_LAST_COUNTS)


def first_epoch() -> TreePlan:
    """The first of the trees without a known end."""
    return epoch_plan(_FIRST_EPOCH)


def next_epoch(plan: TreePlan) -> TreePlan:
    """The tree after this one: EPOCH_GROWTH times as long."""
    return epoch_plan(EPOCH_GROWTH * plan.horizon)


def _best(horizon: int, *, last_counts: float) -> TreePlan:
    shapes = _shapes(horizon)
    return min(
        (_choose_shares(horizon, *shape, last_counts) for shape in shapes), key=lambda found: found[0]
    )[1]


def _shapes(horizon: int) -> list[tuple[int, int]]:
    """(branching, levels) for all numbers of levels that need no more branches than are sensible."""
    shapes = []
    for levels in range(1, max(2, horizon.bit_length() + 1)):
        branching = _root(horizon, levels)
        if branching <= _MOST_BRANCHES:
            shapes.append((branching, levels))
        if branching <= _FEW_BRANCHES:
            break
    return shapes


def _root(number: int, degree: int) -> int:
    """The least integer whose power is at least the number."""
    root: int = max(1, round(float(number) ** (1 / degree)) - 2)
    while root**degree < number:
        root += 1
    return max(2, root)


def _choose_shares(horizon: int, branching: int, levels: int, last_counts: float) -> tuple[float, TreePlan]:
    """The best shares for a shape: a grid of all three numbers that make them."""
    equal = SHARES // levels
    lows = np.unique(np.linspace(equal, min(equal * 1.25, (SHARES - 1) / max(levels - 1, 1)), 12).astype(int))
    lows = lows if levels > 1 else np.ones(1, dtype=int)
    empty = TreePlan(horizon, branching, levels, int(lows[0]), (0,) * _PROFILE.size)
    tapers = _tapers(_EVENNESS if last_counts else np.zeros(1))
    quarters = np.arange(empty.blocks) * _PROFILE.size // empty.blocks
    found = [_objective(empty, int(low), tapers[:, quarters] / TAPERS, last_counts) for low in lows]
    row, column = divmod(int(np.argmin(found)), len(tapers))
    chosen = TreePlan(horizon, branching, levels, int(lows[row]), tuple(tapers[column].tolist()))
    return float(found[row][column]), chosen


def _tapers(evenness: Floats) -> Ints:
    """Tapers that fall from a first value towards some part of it, quarter by quarter."""
    parts = evenness[:, np.newaxis] + np.outer(1 - evenness, _PROFILE)
    tapers = np.rint(np.multiply.outer(np.arange(_MOST_TAPER + 1), parts)).reshape(-1, _PROFILE.size)
    return np.unique(tapers.astype(np.int64), axis=0)


def _objective(shape: TreePlan, low: int, thetas: Floats, last_counts: float) -> Floats:
    """For each taper: the mean variance over all periods of whole blocks, and the last one counted in.

    In units of the variance that noise has with all of epsilon; see docs/proofs/counter.md.
    """
    within, block = _below(shape, low)
    s = float(shape.block)
    half, third = (s + 1) / (2 * s), (s + 1) * (2 * s + 1) / (6 * s * s)
    v = block / (1 - thetas) ** 2
    pull = thetas * v
    surplus = 1 + (thetas * pull).sum(axis=-1, keepdims=True)
    before, pulled = v.cumsum(axis=-1) - v, pull.cumsum(axis=-1) - pull
    gained = (pulled**2 + 2 * half * pulled * pull + third * pull**2) / surplus
    mean = (before + third * v - gained + within / (1 - thetas) ** 2).mean(axis=-1)
    last = v.sum(axis=-1) - pull.sum(axis=-1) ** 2 / surplus[:, 0]
    total: Floats = mean + last_counts * last
    return total


def _below(shape: TreePlan, low: int) -> tuple[float, float]:
    """The mean variance within a block, and the variance of a block's own refined noise."""
    top = SHARES - (shape.levels - 1) * low
    own = (SHARES / top) ** 2
    if shape.levels == 1:
        return 0.0, own
    k, leaf = shape.branching, (SHARES / low) ** 2
    within, s = 0.0, 1.0
    for level in range(shape.levels - 1):
        mean = (k - 1) / 2 + (s - 1) * (2 * s - 1) / (6 * s * s) + 1 / s
        mean -= (k * s + 1) * (2 * k * s + 1) / (6 * s * s * k)
        within += mean * (leaf if level == 0 else leaf * k / (k + 1))
        s *= k
    return within, own * k * leaf / (own + k * leaf)


# ---- the centred trees of many counters ----

_MOST_BITS: Final = 6
_MOST_TOP_NODES: Final = 64


@dataclass(frozen=True)
class PeriodTree:
    """A tree over some periods: rows of siblings, leaves first, and the share of epsilon of each level.

    Below the top, siblings are 2^bits[level]. The top row has as many nodes as the periods need.
    """

    horizon: int
    bits: tuple[int, ...]
    shares: tuple[int, ...]

    def __post_init__(self) -> None:
        integer(self.horizon, "horizon", low=1, high=LARGEST)
        for bits in self.bits:
            integer(bits, "bits", low=1, high=_MOST_BITS)
        for share in self.shares:
            integer(share, "shares", low=1, high=SHARES)
        integer(sum(self.shares), "shares", low=SHARES, high=SHARES)
        integer(self.levels - len(self.bits), "levels", low=1, high=1)
        integer(self.blocks, "blocks", low=1, high=_MOST_TOP_NODES)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The shape as a row of a state."""
        return self.horizon, *self.bits, *self.shares

    @classmethod
    def of(cls, numbers: Sequence[int]) -> PeriodTree:
        """The shape in a row of a state."""
        horizon, *rest = numbers
        half = len(rest) // 2
        return cls(horizon, tuple(rest[:half]), tuple(rest[half:]))

    @property
    def levels(self) -> int:
        """In how many nodes a period lies."""
        return len(self.shares)

    @property
    def fraction_bits(self) -> int:
        """Errors are integers in units of 2^-fraction_bits: a level below the top divides by its siblings."""
        return sum(self.bits)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many periods a node of each level has."""
        return tuple(1 << sum(self.bits[:level]) for level in range(self.levels))

    @property
    def blocks(self) -> int:
        """The number of nodes in the top row; the last one may reach beyond the horizon."""
        return -(-self.horizon // self.widths[-1])

    @property
    def whole(self) -> PeriodTree:
        """The same tree up to the end of its last block."""
        return replace(self, horizon=self.blocks * self.widths[-1])

    def siblings(self, level: int) -> int:
        """How many nodes a row of siblings has."""
        return self.blocks if level == self.levels - 1 else 1 << self.bits[level]

    def scale(self, level: int, rate: Fraction) -> Fraction:
        """The scale of the noise of a node."""
        return SHARES / (rate * self.shares[level])

    def opens(self, level: int, position: int) -> bool:
        """Whether a row of siblings begins with this period."""
        return position == 0 if level == self.levels - 1 else position % self.widths[level + 1] == 0

    def coefficients(self, stop: int) -> Iterator[tuple[tuple[int, int], float]]:
        """The nodes whose noise is in the error of the first periods, with their coefficients."""
        for level in range(self.levels):
            first = 0 if level == self.levels - 1 else stop // self.widths[level + 1] * self.siblings(level)
            inside = stop / self.widths[level] - first
            share = 0.0 if level == self.levels - 1 else inside / self.siblings(level)
            for place in range(self.siblings(level) if inside else 0):
                yield (level, first + place), min(1.0, max(0.0, inside - place)) - share


@lru_cache(maxsize=256)
def shape_for(horizon: int) -> PeriodTree:
    """The shape of the least mean variance over the horizon.

    With weights C of the levels the variance is the sum of C / share^2, the least for shares in
    proportion to the cube roots of C: then it is the cube of the sum of those.

    >>> shape_for(1024).bits
    (4, 4)
    """
    candidates = [(_roots(horizon, bits), bits) for bits in _all_bits(horizon)]
    roots, bits = min(candidates, key=lambda candidate: sum(candidate[0]))
    shares = [max(1, int(SHARES * root / sum(roots))) for root in roots[:-1]]
    return PeriodTree(horizon, bits, (*shares, SHARES - sum(shares)))


def _all_bits(horizon: int, below: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Siblings of each level below the top, for which the top row has few nodes; never fewer lower down."""
    blocks = -(-horizon // (1 << sum(below)))
    if blocks <= _MOST_TOP_NODES:
        yield below
    for bits in range(2, min(below[-1] if below else _MOST_BITS, _MOST_BITS) + 1):
        if blocks > 1 << bits:
            yield from _all_bits(horizon, (*below, bits))


def _roots(horizon: int, bits: tuple[int, ...]) -> list[float]:
    """The cube root of what the noise of each level weighs in the mean variance; leaves first."""
    weights, width = [], 1.0
    for k in (1 << each for each in bits):
        inside = (k - 1) / 2 + (width - 1) * (2 * width - 1) / (6 * width**2) + 1 / width
        weights.append(inside - (k * width + 1) * (2 * k * width + 1) / (6 * width**2 * k))
        width *= k
    blocks = math.ceil(horizon / width)
    weights.append((blocks - 1) / 2 + (width + 1) * (2 * width + 1) / (6 * width**2))
    return [math.cbrt(max(weight, 1e-9)) for weight in weights]


# ---- the tree of the papers ----

TREE_WEIGHTS: Final = 1 << 16
"""The weights of refined nodes are multiples of 1 / TREE_WEIGHTS."""

_LONGEST_WITH_INTERVALS: Final = 1 << 20  # periods: a state has 40 bytes for each node


class CounterTree:
    """The nodes of a b-ary tree over a horizon, without its root: a period lies in one of each level.

    With `intervals` the counts of all nodes are published and kept, without it only those in a running sum.
    """

    def __init__(
        self, *, horizon: object, branching: object = 2, refine: object = False, intervals: object = False
    ) -> None:
        self.horizon = check_horizon(horizon)
        self.branching = integer(branching, "branching", low=2, high=LARGEST)
        self.refine, self.intervals = bool(refine), bool(intervals)
        self.levels = 1
        while self.branching**self.levels < self.horizon:
            self.levels += 1
        rule = f"must be at most {_LONGEST_WITH_INTERVALS} with intervals"
        fits = not self.intervals or self.horizon <= _LONGEST_WITH_INTERVALS
        check(fits, "horizon", rule, given=horizon, fix="use longer periods, or leave intervals out")

    @property
    def every_node(self) -> bool:
        """Whether every node has noise: also one that ends with its parent, which no running sum needs."""
        return self.refine or self.intervals

    @property
    def nodes(self) -> int:
        """How many nodes need noise: one for each period, or every node that ends within the horizon."""
        if not self.every_node:
            return self.horizon
        return sum(self.ended(level, self.horizon) for level in range(self.levels))

    def ended(self, level: int, periods: int) -> int:
        """How many nodes of a level have ended after so many periods."""
        number: int = periods // self.branching**level
        return number

    @property
    def weights(self) -> list[int]:
        """How much a node of each level counts against its children's sum, in parts of 2^16.

        The inverse variances, if all noise has variance one.
        """
        weights, variance = [TREE_WEIGHTS], Fraction(1)
        for _ in range(self.levels - 1):
            below = self.branching * variance
            weights.append(round(TREE_WEIGHTS * below / (1 + below)) if self.refine else TREE_WEIGHTS)
            weight = Fraction(weights[-1], TREE_WEIGHTS)
            variance = weight**2 + (1 - weight) ** 2 * below
        return weights

    def digits(self, periods: int) -> list[int]:
        """The fewest nodes that make up the first periods: how many of each level."""
        digits = []
        for _ in range(self.levels - 1):
            periods, digit = divmod(periods, self.branching)
            digits.append(digit)
        return [*digits, periods]

    def cover(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The fewest nodes that make up the periods from `start` up to `stop`: the level and place of each.

        >>> list(CounterTree(horizon=8).cover(1, 7))
        [(0, 1), (1, 1), (1, 2), (0, 6)]
        """
        while start < stop:
            level, width = 0, 1
            while level + 1 < self.levels and start % (width * self.branching) == 0:
                if start + width * self.branching > stop:
                    break
                level, width = level + 1, width * self.branching
            yield level, start // width
            start += width


# ---- the blocks of a pan-private counter ----

Variant: TypeAlias = Literal["default", "book"]

# Blocks without a known end: of 2^8 periods at first, then of 2^12, 2^16, ...
_FIRST_BITS: Final = 8
_MORE_BITS: Final = 4
_MOST_BITS_OF_BLOCK: Final = 60


@dataclass(frozen=True, kw_only=True)
class BlockShape(ABC):
    """`length` periods that are counted together.

    Intervals are those of a binary tree over the periods, without its root: at level j the periods that
    agree in all but their last j bits. In a `live` block there may be a look between any two additions, else
    between any two periods only.
    """

    length: int
    rate: Fraction
    live: bool

    @property
    def levels(self) -> int:
        """How many intervals hold a period."""
        return max(1, (self.length - 1).bit_length())

    @property
    @abstractmethod
    def scale(self) -> Fraction:
        """The scale of every noise."""

    @property
    @abstractmethod
    def most(self) -> int:
        """No output has more noises than this."""

    @abstractmethod
    def noises(self, position: int) -> int:
        """How many noises are in the output of a period, on top of the output that the block began with."""


class TreeBlockShape(BlockShape):
    """Figure 12.1 with fresh noise on every output [DR14]: a noise before an interval and one after it.

    An interval of one period, which no look can fall into, needs the fresh noise only.
    """

    @property
    def scale(self) -> Fraction:
        """An event lies in at most `levels` intervals, and one noise of each hides it."""
        return self.levels / self.rate

    @property
    def most(self) -> int:
        full = 1 << self.levels
        return max(self.noises(full - 2), self.noises(full - 1))

    def noises(self, position: int) -> int:
        closed = position + 1
        if closed >> self.levels:
            return 2 * self._noises_of(self._top)
        return sum(self._noises_of(level) for level in range(self.levels) if closed >> level & 1)

    @property
    def _top(self) -> int:
        return self.levels - 1

    @property
    def _first_noisy(self) -> int:
        return 0 if self.live else 1

    def _noises_of(self, level: int) -> int:
        return 1 if level < self._first_noisy else 2


class BookBlockShape(BlockShape):
    """Figure 12.2 [DR14]: a noise for the count, and one for each open interval."""

    @property
    def scale(self) -> Fraction:
        """An event is hidden by a shift of the count and of at most `levels` noises."""
        return (1 + self.levels) / self.rate

    @property
    def most(self) -> int:
        return 1 + self.levels

    def noises(self, position: int) -> int:
        return 1 + self.levels


def block_length(start: int, horizon: int | None) -> int:
    """The length of the block that starts here: up to the horizon, or more periods than there were before."""
    if horizon is not None:
        return max(1, horizon - start)
    bits = _FIRST_BITS
    while start >> bits and bits < _MOST_BITS_OF_BLOCK:
        bits += _MORE_BITS
    return max(1, min(1 << bits, LARGEST - start))
