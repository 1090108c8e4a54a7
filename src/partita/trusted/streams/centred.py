"""The errors of a centred tree, period after period: the consistent estimator, run online.

Every node of a tree has noise of its own. A node's error is its noise, refined by that of its children;
then siblings are moved by equal amounts, so that they add up to the error of their parent. Nothing here
sees data: a counter adds these errors to what it counts. See docs/proofs/counter.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import accumulate, pairwise, takewhile
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.errors import check
from partita.public.streams import misfit
from partita.trusted.noise.system import IntegerArray, Noise
from partita.trusted.streams.base import NARROW_NOISE, Row, integers, is_wide, row

# The shape of a centred tree: branching, levels and shares of epsilon, chosen by the variance.
#
# Nothing here sees data or noise: a plan is a function of public numbers.


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


def _best(horizon: int, *, last_counts: float) -> TreePlan:
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


def _shared(horizon: int, branching: int, levels: int, last_counts: float) -> tuple[float, TreePlan]:
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


def _tapers(evenness: _Floats) -> NDArray[np.int64]:
    """Tapers that fall from a first value towards some part of it, quarter by quarter."""
    parts = evenness[:, np.newaxis] + np.outer(1 - evenness, _PROFILE)
    tapers = np.rint(np.multiply.outer(np.arange(_MOST_TAPER + 1), parts)).reshape(-1, _PROFILE.size)
    return np.unique(tapers.astype(np.int64), axis=0)


def _objective(shape: TreePlan, low: int, thetas: _Floats, last_counts: float) -> _Floats:
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


BITS: Final = 16
"""Errors are integers in units of 2^-BITS."""

_FINE: Final = 1 << BITS
_AHEAD: Final = 1 << 10
_AT_ONCE: Final = 1 << 16


class _Row(NamedTuple):
    """Nodes next to each other: the error of each, and the noise of its children."""

    errors: IntegerArray
    below: IntegerArray

    def part(self, nodes: slice) -> _Row:
        return _Row(self.errors[nodes], self.below[nodes])


class CentredPath:
    """The errors of one tree, from its first period to its last.

    A row of siblings is kept for each level from 2 on. The errors of the periods under some open nodes of
    level 2 are worked out at once and ahead, or those of all periods in a tree with fewer levels.
    """

    def __init__(self, plan: TreePlan, rate: Fraction, noise: Noise) -> None:
        self.plan = plan
        self.rate = rate
        self.position = 0
        self._noise = noise
        self._rows: dict[int, _Row] = {}
        self._nothing: IntegerArray = np.zeros((0, 0), dtype=np.int64)
        self._small = plan.levels <= 2
        self._wide = is_wide(max(self._scale(min(plan.low, plan.top), max(plan.taper)), TAPERS / rate))
        self._leaves: list[int] = []
        self._start = self._stop = 0

    @property
    def left(self) -> int:
        """How many periods are left."""
        return self.plan.horizon - self.position

    def step(self) -> int:
        """The error of the next period."""
        position = self.position
        if position >= self._stop:
            self._open(0)
        self.position = position + 1
        return self._leaves[position - self._start]

    def many(self, periods: int) -> IntegerArray:
        """The error of each of the next periods."""
        goal, pieces = self.position + periods, [self._array([])]
        while self.position < goal:
            level, nodes = self._run(goal, most=_AT_ONCE)
            nodes = self._alike(level, nodes)
            pieces.append(self._errors(level, nodes))
            self._move(level, nodes)
        return np.asarray(np.concatenate(pieces))

    def skip(self, periods: int) -> int:
        """The error of the next periods together: of whole siblings, as far as they reach."""
        goal, total = self.position + periods, 0
        while self.position < goal:
            level, nodes = self._run(goal, most=goal)
            errors: Any = self._rows[level].errors if level else self._leaves
            total += sum(map(int, errors[nodes]))
            self._move(level, nodes)
        return total

    def fields(self) -> dict[str, Row]:
        """What is drawn, as rows of a state whose lengths follow from the plan."""
        leaves = self._leaves + [0] * (self._ahead - len(self._leaves))
        arrays = {"open": self._array([self._start, self._stop]), "leaves": self._array(leaves)}
        for level in range(2, self.plan.levels):
            errors, below = self._rows.get(level) or self._blank(level)
            arrays |= {f"errors {level}": errors, f"below {level}": below}
        return {name: row(array) for name, array in arrays.items()}

    def restore(self, fields: Mapping[str, list[int]], periods: int) -> None:
        """Go on with what was drawn before."""
        start, stop = fields["open"]
        begins = periods % (self._ahead if self._small else self.plan.branching**2) == 0
        if not (
            0 <= periods <= self.plan.horizon
            and len(fields["leaves"]) == self._ahead
            and 0 <= start <= min(periods, stop)
            and stop <= start + self._ahead
            and (periods < stop or begins or periods == self.plan.horizon)
        ):
            raise misfit("fit its plan")
        self.position = periods
        self._start, self._stop = start, stop
        self._leaves = fields["leaves"][: stop - start]
        for level in range(2, self.plan.levels):
            shape = self._blank(level).below.shape
            below = self._array(fields[f"below {level}"]).reshape(shape)
            self._rows[level] = _Row(self._array(fields[f"errors {level}"]).reshape(shape[:1]), below)

    def _blank(self, level: int) -> _Row:
        size = self._size(level)
        return _Row(self._array([0] * size), self._array([0] * size * self.plan.branching).reshape(size, -1))

    @property
    def _ahead(self) -> int:
        """The errors of how many periods are kept at most."""
        if self._small:
            return self.plan.blocks * self.plan.block
        return max(1, _AHEAD // self.plan.branching**2) * self.plan.branching**2

    def _run(self, goal: int, *, most: int) -> tuple[int, slice]:
        """The longest run of whole siblings that begins here: their level and places. Their row is open."""
        level = self._level(min(goal - self.position, most))
        self._open(level)
        if not level:
            return 0, slice(self.position - self._start, min(goal, self._stop) - self._start)
        width = self.plan.branching**level
        count = min((goal - self.position) // width, max(1, most // width))
        return level, self._nodes(level, count)

    def _level(self, periods: int) -> int:
        """The highest level of which a node begins here and ends within so many periods."""
        level = 0
        for higher in range(2, self.plan.levels if self.position >= self._stop else 0):
            if self.position % self.plan.branching**higher or self.plan.branching**higher > periods:
                break
            level = higher
        return level

    def _size(self, level: int) -> int:
        """How many nodes a row of siblings has."""
        return self.plan.blocks if level == self.plan.levels - 1 else self.plan.branching

    def _nodes(self, level: int, count: int) -> slice:
        """The places of the next nodes of an open row, at most so many."""
        first = self.position // self.plan.branching**level % self._size(level)
        return slice(first, min(first + count, self._size(level)))

    def _alike(self, level: int, nodes: slice) -> slice:
        """The first of these nodes that have noise of one scale below them: blocks may differ."""
        if level < self.plan.levels - 1:
            return nodes
        tapers = self.plan.tapers[nodes]
        return slice(nodes.start, nodes.start + len(list(takewhile(tapers[0].__eq__, tapers))))

    def _move(self, level: int, nodes: slice) -> None:
        self.position += (nodes.stop - nodes.start) * self.plan.branching**level

    def _open(self, level: int) -> None:
        """Draw the rows that begin here, from the top down to a level; leaves are level 0."""
        if self.position < self._stop:
            return
        top = self.plan.levels - 1
        if not self.position and not self._small:
            self._rows[top] = self._top()
        for above in range(top, max(level, 2), -1):
            if not self.position % self.plan.branching**above:
                node = self._rows[above].part(self._nodes(above, 1))
                self._rows[above - 1] = self._children(above, node)
        if not level:
            self._open_leaves()

    def _open_leaves(self) -> None:
        """Work out the errors of the next periods: of some nodes of level 2, or of the whole tree."""
        if self._small:
            level, row = self.plan.levels - 1, self._top()
        else:
            nodes = self._alike(2, self._nodes(2, self._ahead // self.plan.branching**2))
            level, row = 2, self._rows[2].part(nodes)
        self._leaves = self._expanded(level, row).tolist()
        self._start, self._stop = self.position, self.position + len(self._leaves)

    def _errors(self, level: int, nodes: slice) -> IntegerArray:
        """The errors of all periods under nodes of an open row, which lie in one block."""
        if not level:
            return self._array(self._leaves[nodes])
        return self._expanded(level, self._rows[level].part(nodes))

    def _expanded(self, level: int, row: _Row) -> IntegerArray:
        """The errors of all periods under these nodes of a level."""
        for above in range(level, 0, -1):
            row = self._children(above, row)
        return row.errors

    def _children(self, level: int, row: _Row) -> _Row:
        """The children of these nodes of a level, in one long row."""
        below = self._drawn((row.below.size, self.plan.branching)) if level > 1 else self._nothing
        own = self._refined(level - 1, row.below.ravel(), below)
        return _Row(_moved(row.errors, own.reshape(row.below.shape)), below)

    def _top(self) -> _Row:
        """The blocks: their noise, refined, and corrected by the tapered sum over all of them."""
        plan = self.plan
        shares = [plan.top, *[plan.low] * (plan.branching if plan.levels > 1 else 0)]
        parts = np.outer(TAPERS - np.array(plan.tapers, dtype=np.int64), shares)
        total = [SHARES] if any(plan.taper) else []
        drawn = self._kept(self._draw_parts(np.concatenate([total, parts.ravel()]).astype(np.int64)))
        blocks = drawn[len(total) :].reshape(parts.shape)
        own = self._refined(plan.levels - 1, blocks[:, 0], blocks[:, 1:])
        errors = self._corrected(own.tolist(), sum(map(int, drawn[: len(total)])))
        return _Row(self._array(errors), blocks[:, 1:])

    def _corrected(self, own: list[int], total: int) -> list[int]:
        """The blocks with what is due to them of the tapered sum's surplus."""
        surplus = (total << BITS) - sum(
            taper * error for taper, error in zip(self.plan.tapers, own, strict=True)
        )
        due = [share * surplus // (ROUNDS * TAPERS) for share in self.plan.corrections]
        return [error + after - before for error, (before, after) in zip(own, pairwise(due), strict=True)]

    def _refined(self, level: int, own: IntegerArray, below: IntegerArray) -> IntegerArray:
        """The noise of each node, averaged with that of its children; in units of 2^-BITS."""
        if not below.shape[1]:
            return own << BITS
        children = below.sum(axis=1)
        apart: Any = (own - children) * (_FINE // WEIGHTS)
        refined: IntegerArray = (children << BITS) + self.plan.weight(level) * apart
        return refined

    def _scale(self, share: int, taper: int) -> Fraction:
        return widest_scale(self.rate) / (share * (TAPERS - taper))

    def _drawn(self, shape: tuple[int, int]) -> IntegerArray:
        """Noise for nodes below the top row, under the open block."""
        taper = self.plan.tapers[self.position // self.plan.block]
        zeros = np.zeros(shape, dtype=np.int64)
        return self._kept(self._noise.add(zeros, self._scale(self.plan.low, taper)))

    def _draw_parts(self, parts: IntegerArray) -> IntegerArray:
        zeros = np.zeros(parts.shape, dtype=np.int64)
        drawn: IntegerArray = self._noise.add(zeros, widest_scale(self.rate), parts=parts)
        return drawn

    def _kept(self, noise: IntegerArray) -> IntegerArray:
        return integers(noise, wide=self._wide, below=NARROW_NOISE)

    def _array(self, errors: Sequence[int]) -> IntegerArray:
        return integers(errors, wide=self._wide)


def widest_scale(rate: Fraction) -> Fraction:
    """The scale of which the scales of all nodes are parts."""
    return SHARES * TAPERS / rate


def _moved(errors: IntegerArray, own: Any) -> IntegerArray:
    """Each row of siblings moved by equal amounts to add up to its error; units left over spread evenly."""
    k = own.shape[1]
    missing: Any = errors - own.sum(axis=1)
    moved = own + (missing // k)[:, np.newaxis]
    moved += _spread(k)[(missing % k).astype(np.int64)]
    flat: IntegerArray = moved.ravel()
    return flat


@cache
def _spread(k: int) -> NDArray[np.int64]:
    """In row r, r ones at even distances among k places: floor((i+1) r / k) - floor(i r / k)."""
    return np.diff(np.outer(np.arange(k), np.arange(k + 1)) // k, axis=1)
