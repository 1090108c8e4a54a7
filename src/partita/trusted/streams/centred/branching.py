"""The shape of a centred tree: branching, levels and shares of epsilon, chosen by the variance.

Nothing here sees data or noise: a plan is a function of public numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partita.errors.checks import check

SHARES: Final = 1 << 10
"""Shares of epsilon are multiples of 1 / SHARES."""
TAPERS: Final = 1 << 7
"""The share that a block gives to the tapered sum is a multiple of 1 / TAPERS."""
WEIGHTS: Final = 1 << 8
"""The weights between a node and its children are multiples of 1 / WEIGHTS."""
ROUNDS: Final = 1 << 16
"""The correction by the tapered sum is a multiple of 1 / ROUNDS."""

_PROFILE: Final = np.array([1, 13 / 16, 1 / 2, 1 / 10])
_EVENNESS: Final = np.linspace(0.5, 1, 6)
_MOST_BRANCHES: Final = 64
_MOST_BLOCKS: Final = 1 << 10
_MOST_LEVELS: Final = 64
_FEW_BRANCHES: Final = 8
_MOST_TAPER: Final = 72
_LAST_COUNTS: Final = 1.5

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
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
    def all_of(cls, numbers: Sequence[int]) -> list[Plan]:
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
def plan(horizon: int) -> Plan:
    """The plan of least mean variance over a known number of periods."""
    return _best(horizon, last_counts=0.0)


@lru_cache(maxsize=64)
def epoch_plan(horizon: int) -> Plan:
    """The plan of an epoch whose last error stays in all outputs after it."""
    return _best(horizon, last_counts=_LAST_COUNTS)


def _best(horizon: int, *, last_counts: float) -> Plan:
    shapes = _shapes(horizon)
    return min((_shared(horizon, *shape, last_counts) for shape in shapes), key=lambda found: found[0])[1]


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


def _shared(horizon: int, branching: int, levels: int, last_counts: float) -> tuple[float, Plan]:
    """The best shares for a shape: a grid of all three numbers that make them."""
    equal = SHARES // levels
    lows = np.unique(np.linspace(equal, min(equal * 1.25, (SHARES - 1) / max(levels - 1, 1)), 12).astype(int))
    lows = lows if levels > 1 else np.ones(1, dtype=int)
    empty = Plan(horizon, branching, levels, int(lows[0]), (0,) * _PROFILE.size)
    tapers = _tapers(_EVENNESS if last_counts else np.zeros(1))
    quarters = np.arange(empty.blocks) * _PROFILE.size // empty.blocks
    found = [_objective(empty, int(low), tapers[:, quarters] / TAPERS, last_counts) for low in lows]
    row, column = divmod(int(np.argmin(found)), len(tapers))
    chosen = Plan(horizon, branching, levels, int(lows[row]), tuple(tapers[column].tolist()))
    return float(found[row][column]), chosen


def _tapers(evenness: _Floats) -> NDArray[np.int64]:
    """Tapers that fall from a first value towards some part of it, quarter by quarter."""
    parts = evenness[:, np.newaxis] + np.outer(1 - evenness, _PROFILE)
    tapers = np.rint(np.multiply.outer(np.arange(_MOST_TAPER + 1), parts)).reshape(-1, _PROFILE.size)
    return np.unique(tapers.astype(np.int64), axis=0)


def _objective(shape: Plan, low: int, thetas: _Floats, last_counts: float) -> _Floats:
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
    total: _Floats = mean + last_counts * last
    return total


def _below(shape: Plan, low: int) -> tuple[float, float]:
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
