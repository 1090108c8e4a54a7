"""Tents: overlapping triangular sums of units, level upon level, instead of a tree; and estimates from them.

Level 0 is the units themselves. A tent of level l is a bump over the nodes of the level below: each of those
gives its count to its two neighbouring tents, in parts that add up to one. So every level counts everybody
once, and one person changes a level by exactly one in L1 norm. The parts are multiples of 2^-8, so level l is
a vector of integers in units of 2^-8l.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, Ints, UInts
from partita.lazy import cached_property
from partita.numbers import freeze
from partita.public.axis.curve import Curve
from partita.public.axis.shrinkage import project_nonnegative, shrink
from partita.public.base import damaged, noise_rate, noisy_integers
from partita.public.bounds import (
    Combination,
    Doubts,
    LinearMeasurements,
    Posterior,
    RangePosition,
    chernoff,
    laplace_variance,
    log_moments,
)

GRAIN_BITS: Final = 8
GRAIN: Final = 1 << GRAIN_BITS
SHARE_UNITS: Final = 2**20
MOST_LEVELS: Final = 5

_LIMB_BITS: Final = 24  # of the lower half of an integer, so that sums of either half fit in 64 bits
_MOST_NODES: Final = 2**22
_FEWEST_NODES: Final = 3

_PLANS: Final = (
    (20, (), (1.0,)),
    (400, ((0.7, 1 / 2),), (0.5, 0.5)),
    (12_000, ((0.78, 2 / 3), (0.65, 1 / 3)), (0.37, 0.32, 0.31)),
    (300_000, ((0.65, 3 / 4), (0.55, 1 / 2), (0.45, 1 / 4)), (0.27, 0.25, 0.24, 0.24)),
    (None, ((0.65, 4 / 5), (0.6, 3 / 5), (0.55, 2 / 5), (0.5, 1 / 5)), (0.2, 0.21, 0.2, 0.2, 0.19)),
)
"""Up to how many units k, (c, p) for c k^p tents on each level, and the levels' shares of epsilon.

More levels make long ranges better and leave less of epsilon for short ones.
"""


@final
@dataclass(frozen=True, eq=False)
class TentLevel:
    """Tents over the nodes of the level below.

    Node i below gives right[i] / 2^8 of its count to the tent left[i] + 1 and the rest to the tent
    left[i]. `left` does not decrease, and every tent but the last is a left one.
    """

    tents: int
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    @staticmethod
    def over(below: int, tents: int) -> TentLevel:
        """`tents` >= 2 tents over `below` >= tents nodes, by integer arithmetic alone.

        Node i has its centre at i + 1/2; tent j has its top at (j + 1/4) s, s = below / (tents - 1/2),
        and the first and the last are flat outside of their tops.
        """
        centre = 2 * np.arange(below, dtype=np.int64) + 1
        place = (GRAIN * (centre * (2 * tents - 1) - below) + 2 * below) // (4 * below)
        place = np.clip(place, 0, GRAIN * (tents - 1))
        left = np.minimum(place >> GRAIN_BITS, tents - 2)
        return TentLevel(tents, left, place - (left << GRAIN_BITS))

    def exact(self, values: NDArray[Any]) -> NDArray[np.object_]:
        """The tents of integers, as integers in units 2^-8 times theirs.

        Sums of 64-bit integers are taken in two halves that cannot overflow: at most 2^30 values, of
        less than 2^62 together.
        """
        high, low = values >> _LIMB_BITS, values & ((1 << _LIMB_BITS) - 1)
        return np.asarray((self._sums(high).astype(object) << _LIMB_BITS) + self._sums(low).astype(object))

    def down(self, values: Floats) -> Floats:
        """The tents of values along the last axis."""
        whole, right = self.by_left(values), self.by_left(values * self.weights)
        tents = np.zeros((*values.shape[:-1], self.tents))
        tents[..., :-1] = whole - right
        tents[..., 1:] += right
        return tents

    def up(self, tents: Floats) -> Floats:
        """The transpose of `down`."""
        steps = tents[..., 1:] - tents[..., :-1]
        return np.asarray(tents[..., self.left] + self.weights * steps[..., self.left])

    def by_left(self, values: Floats) -> Floats:
        """Sums along the last axis of the values of nodes with the same left tent."""
        return np.asarray(np.add.reduceat(values, self.firsts, axis=-1))

    def _sums(self, values: NDArray[Any]) -> NDArray[Any]:
        sums = np.zeros(self.tents, dtype=values.dtype)
        np.add.at(sums, self.left, values * (GRAIN - self.right))
        np.add.at(sums, self.left + 1, values * self.right)
        return sums

    @cached_property
    def weights(self) -> Floats:
        """The part that each node below gives to its right tent."""
        return self.right / float(GRAIN)

    @cached_property
    def firsts(self) -> NDArray[np.intp]:
        """The first node below of each left tent."""
        return np.searchsorted(self.left, np.arange(self.tents - 1))


@final
@dataclass(frozen=True, eq=False)
class TentStrategy:
    """The levels of tents over `units` units and each level's share of epsilon; shares add up to one."""

    units: int
    levels: tuple[TentLevel, ...]
    shares: tuple[Fraction, ...]

    @staticmethod
    def over(sizes: tuple[int, ...], shares: tuple[Fraction, ...]) -> TentStrategy:
        """The strategy with that many nodes on each level, units first."""
        levels = tuple(TentLevel.over(below, tents) for below, tents in pairwise(sizes))
        return TentStrategy(sizes[0], levels, shares)

    def exact(self, units: NDArray[np.int64]) -> list[NDArray[Any]]:
        """The integers to measure on each level; level l in units of 2^-8l."""
        measured: list[NDArray[Any]] = [units]
        for level in self.levels:
            measured.append(level.exact(measured[-1]))
        return measured

    def down(self, units: Floats) -> Floats:
        """All tents of the units, level after level in one vector."""
        rows, values = [], units
        for level in self.levels:
            values = level.down(values)
            rows.append(values)
        return np.concatenate(rows, axis=-1)

    def up(self, rows: Floats) -> Floats:
        """The transpose of `down`."""
        stops = np.cumsum([level.tents for level in self.levels])
        carried: Floats | float = 0.0
        for level, stop in zip(reversed(self.levels), reversed(stops.tolist()), strict=True):
            carried = level.up(rows[..., stop - level.tents : stop] + carried)
        return np.asarray(carried)


def plan_levels(units: int) -> tuple[tuple[int, ...], tuple[Fraction, ...]]:
    """How many nodes each level gets, units first, and its share: a public function of the number of units.

    >>> plan_levels(256)
    ((256, 11), (Fraction(1, 2), Fraction(1, 2)))
    """
    powers, shares = next((p, s) for most, p, s in _PLANS if most is None or units <= most)
    tents = (min(_MOST_NODES, max(_FEWEST_NODES, round(c * units**power))) for c, power in powers)
    # Shares in whole units that add up to one: level 0 takes what rounding leaves.
    above = [round(share * SHARE_UNITS) for share in shares[1:]]
    exact = tuple(Fraction(part, SHARE_UNITS) for part in (SHARE_UNITS - sum(above), *above))
    return (units, *tents), exact


_SOLVER_STEPS: Final = 200
_TOLERANCE: Final = 1e-16  # of the squared residual: conjugate gradients stop there, or after so many steps
_BATCH: Final = 2**21  # numbers solved together: more take more memory and no less time
_MOST_TENTS: Final = 2**12
"""So many tents of the first level, over about 115,000 units, have a table of covariances: 130 MB at most."""
_ROWS: Final = 2**8
"""For more tents so many rows of the table are made at a time, each time anew."""


class _Ends(NamedTuple):
    """Positions among units as A D^-1 w: whole in the tents before `tent`, and a part of it and the next."""

    tent: Ints
    own: Floats
    after: Floats


@final
@dataclass(frozen=True, eq=False)
class TentSolver:
    """Solves (D + A' M A) x = right: D the units' precisions, A the first level, M = P1 + B' P2 B + ...

    The tents z = A x of the first level are far fewer than the units, and (1 + T M) z = A D^-1 right
    with T = A D^-1 A', which has three diagonals. That is solved by conjugate gradients in the inner
    product of M, where 1 + T M is symmetric; then x = D^-1 (right - A' M z).
    """

    precision: Floats
    strategy: TentStrategy
    rows: Floats

    def __call__(self, right: Floats) -> Floats:
        """The solution for each right side along the last axis, several at a time."""
        flat = right.reshape(-1, right.shape[-1])
        together = max(1, _BATCH // flat.shape[1])
        solved = [self._solve_rows(flat[i : i + together]) for i in range(0, len(flat), together)]
        return np.concatenate(solved).reshape(right.shape)

    def range_variances(self, first: RangePosition, last: RangePosition) -> Floats:
        """The variance of the sum between two positions among the units, for each pair of positions.

        That is w' D^-1 w - y' N y with y = A D^-1 w and N = (M^-1 + T)^-1.
        """
        own = self._own_variances(first, last)
        return own - self._sum_squares(self._locate_ends(first), self._locate_ends(last))

    @property
    def places(self) -> int:
        """How many rows and columns the table of covariances has."""
        return int(self._whole.size) + 1

    def error_tables(self) -> dict[str, NDArray[Any]]:
        """All that `range_variances` reads: numbers of units and of tents, and the table of covariances."""
        level, (total, right, left) = self.strategy.levels[0], self._cumulative
        units = {"left": level.left, "weights": level.weights, "variances": 1.0 / self.precision}
        upto = {"upto": total, "right_upto": right, "left_upto": left}
        return {**units, **upto, "firsts": level.firsts, "whole": self._whole, "table": self._table.ravel()}

    def total_covariances(self) -> Floats:
        """The covariance of each unit with the sum of all: S^-1 1, mended where the iteration left some."""
        first, ones = self.strategy.levels[0], np.ones(self.precision.size)
        solved = self(ones)
        left = ones - self.precision * solved - first.up(self._weigh(first.down(solved)))
        return np.asarray(solved + self(left))

    def _own_variances(self, first: RangePosition, last: RangePosition) -> Floats:
        """w' D^-1 w."""
        units, total = 1.0 / self.precision, self._cumulative[0]
        both = (1.0 - first.share) ** 2 * units[first.piece] + last.share**2 * units[last.piece]
        both += total[last.piece] - total[np.minimum(first.piece + 1, last.piece)]
        alone = (last.share - first.share) ** 2 * units[first.piece]
        return np.where(first.piece == last.piece, alone, both)

    def _locate_ends(self, at: RangePosition) -> _Ends:
        level, (_, right, left) = self.strategy.levels[0], self._cumulative
        tent = level.left[at.piece]
        begin, before = level.firsts[tent], level.firsts[np.maximum(tent - 1, 0)]
        unit = at.share / self.precision[at.piece]
        after = right[at.piece] - right[begin] + unit * level.weights[at.piece]
        own = left[at.piece] - left[begin] + unit * (1.0 - level.weights[at.piece])
        return _Ends(tent, own + right[begin] - right[before], after)

    def _sum_squares(self, low: _Ends, high: _Ends) -> Floats:
        """y' N y of each range: both ends are means of whole tents up to three places next to each other."""
        found = np.zeros(low.tent.shape)
        places = np.unique(np.concatenate([ends.tent + step for ends in (low, high) for step in range(3)]))
        few = self._whole.size <= _MOST_TENTS
        for begin in range(0, places.size, places.size if few else _ROWS):
            some = places[begin : begin + (places.size if few else _ROWS)]
            rows = self._table[some] if few else self._covariances(some)
            for one, other, factor in ((low, low, 1.0), (low, high, -2.0), (high, high, 1.0)):
                for step, weight in enumerate(self._steps(one)):
                    here = np.flatnonzero((one.tent + step >= some[0]) & (one.tent + step <= some[-1]))
                    row, column = np.searchsorted(some, one.tent[here] + step), other.tent[here]
                    for beside, times in enumerate(self._steps(other)):
                        found[here] += factor * weight[here] * times[here] * rows[row, column + beside]
        return found

    def _steps(self, ends: _Ends) -> tuple[Floats, Floats, Floats]:
        own = _divide(ends.own, self._whole[ends.tent])
        after = _divide(ends.after, self._whole[ends.tent + 1])
        return 1.0 - own, own - after, after

    @cached_property
    def _cumulative(self) -> tuple[Floats, Floats, Floats]:
        """The variances of the units before each one, and what their right and left tents have of these."""
        units, weights = 1.0 / self.precision, self.strategy.levels[0].weights
        parts = units, units * weights, units * (1.0 - weights)
        total, right, left = (np.concatenate([np.zeros(1), np.cumsum(part)]) for part in parts)
        return total, right, left

    @cached_property
    def _whole(self) -> Floats:
        """A D^-1 1."""
        return self.strategy.levels[0].down(1.0 / self.precision)

    @cached_property
    def _table(self) -> Floats:
        """y' N y for all pairs of places."""
        return self._covariances(np.arange(self._whole.size + 1))

    def _covariances(self, places: Ints) -> Floats:
        """y' N y for these places and all places: y is of whole tents before each place.

        N = E^-1 + C (R^-1 + B (P^-1 - P^-1 E^-1 P^-1) B')^-1 C' with C = E^-1 P^-1 B', where E = P^-1 + T has
        three diagonals, P is of the first level, and R and B are of all levels above, which have few tents.
        """
        tents, higher, own = self._whole.size, self._higher, self._own
        solved = self._eliminate(np.where(np.arange(tents) < places[:, np.newaxis], self._whole, 0.0))
        if higher.levels:
            solved += self._eliminate(own * higher.up(higher.down(own * solved) @ self._joint))
        rows = np.zeros((places.size, tents + 1))
        np.cumsum(solved * self._whole, axis=1, out=rows[:, 1:])
        return rows

    @cached_property
    def _joint(self) -> Floats:
        """(R^-1 + B (P^-1 - P^-1 E^-1 P^-1) B')^-1, some rows at a time."""
        joint = np.diag(1.0 / self.rows[self._own.size :])
        for begin in range(0, len(joint), _ROWS):
            above = np.eye(len(joint))[begin : begin + _ROWS]
            first = self._own * self._higher.up(above)
            joint[begin : begin + _ROWS] += self._higher.down(first - self._own * self._eliminate(first))
        return np.asarray(np.linalg.inv(joint), np.float64)

    @cached_property
    def _higher(self) -> TentStrategy:
        """The levels above the first, as tents over those of the first."""
        levels, shares = self.strategy.levels[1:], self.strategy.shares[1:]
        return TentStrategy(self._own.size, levels, shares)

    @cached_property
    def _own(self) -> Floats:
        """P^-1: the variances of the tents of the first level."""
        return np.asarray(1.0 / self.rows[: self.strategy.levels[0].tents])

    def _eliminate(self, right: Floats) -> Floats:
        """E^-1 times each row: once down the three diagonals, once up."""
        pivots, factors = self._pivots
        left = right.T.copy()
        for i in range(1, len(left)):
            left[i] -= factors[i - 1] * left[i - 1]
        left /= pivots[:, np.newaxis]
        for i in range(len(left) - 2, -1, -1):
            left[i] -= factors[i] * left[i + 1]
        return left.T

    @cached_property
    def _pivots(self) -> tuple[Floats, Floats]:
        """The pivots of E, and how much of each row is taken off the next."""
        diagonal, beside = self._three_diagonals
        pivots = diagonal + self._own
        for i in range(1, pivots.size):
            pivots[i] -= beside[i - 1] ** 2 / pivots[i - 1]
        return pivots, beside / pivots[:-1]

    def _solve_rows(self, right: Floats) -> Floats:
        first = self.strategy.levels[0]
        tents = self._tents(first.down(right / self.precision))
        return np.asarray((right - first.up(self._weigh(tents))) / self.precision)

    def _tents(self, goal: Floats) -> Floats:
        """z with (1 + T M) z = goal."""
        z, residual = np.zeros_like(goal), goal.copy()
        direction, image = residual.copy(), self._weigh(residual)
        weighed, left = image.copy(), _inner_products(residual, image)
        enough = _TOLERANCE * left
        for _ in range(_SOLVER_STEPS):
            if bool((left <= enough).all()):
                break
            moved = direction + self._spread(image)
            step = _divide(left, _inner_products(image, moved))
            z += step * direction
            residual -= step * moved
            weighed = self._weigh(residual)
            left, previous = _inner_products(residual, weighed), left
            direction = residual + _divide(left, previous) * direction
            image = weighed + _divide(left, previous) * image
        return z

    def _weigh(self, tents: Floats) -> Floats:
        """M times tents of the first level."""
        weighed = self.rows[: self._own.size] * tents
        if self._higher.levels:
            weighed += self._higher.up(self.rows[self._own.size :] * self._higher.down(tents))
        return weighed

    def _spread(self, tents: Floats) -> Floats:
        """T times tents of the first level."""
        diagonal, beside = self._three_diagonals
        moved = diagonal * tents
        moved[..., :-1] += beside * tents[..., 1:]
        moved[..., 1:] += beside * tents[..., :-1]
        return moved

    @cached_property
    def _three_diagonals(self) -> tuple[Floats, Floats]:
        """The diagonal of T and the one beside it."""
        first = self.strategy.levels[0]
        right, left = first.weights, 1.0 - first.weights
        diagonal = np.zeros(first.tents)
        diagonal[:-1] += first.by_left(left**2 / self.precision)
        diagonal[1:] += first.by_left(right**2 / self.precision)
        return diagonal, first.by_left(left * right / self.precision)


def _inner_products(one: Floats, other: Floats) -> Floats:
    """The inner products along the last axis, which is kept."""
    return np.asarray(np.einsum("...i,...i->...", one, other))[..., np.newaxis]


def _divide(part: Floats, whole: Floats) -> Floats:
    """part / whole, and zero where a right side is solved to the last digit."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TentCounts:
    """Noisy integers of each level, the units first, and what they say about the units put together linearly.

    Level l is in units of 2^-8l.
    `rate` is epsilon over the number of rows by which neighbours may differ: level l has discrete
    Laplace noise of scale 2^8l / (shares[l] rate).
    """

    levels: tuple[NDArray[Any], ...]
    shares: tuple[Fraction, ...]
    rate: Fraction

    def __post_init__(self) -> None:
        if not 1 <= len(self.levels) == len(self.shares) <= MOST_LEVELS:
            raise damaged("shares", f"must be one for each of at most {MOST_LEVELS} levels")
        if min(self.shares) <= 0 or sum(self.shares) != 1:
            raise damaged("shares", "must be positive and add up to one")
        levels = tuple(noisy_integers(values, f"level{i}") for i, values in enumerate(self.levels))
        sizes = [values.size for values in levels]
        if sizes[0] < 1 or any(not 2 <= above < below for below, above in pairwise(sizes)):
            raise damaged("levels", "must get shorter from level to level, from two tents on")
        noise_rate(self.rate * min(self.shares), "rate")
        freeze(self, levels=levels)

    @property
    def units(self) -> int:
        """How many units were counted."""
        return int(self.levels[0].size)

    @cached_property
    def strategy(self) -> TentStrategy:
        """Which sums the levels are."""
        return TentStrategy.over(tuple(values.size for values in self.levels), self.shares)

    @property
    def rates(self) -> list[Fraction]:
        """1 / scale of the noise of each level's integers."""
        return [share * self.rate / 2 ** (GRAIN_BITS * level) for level, share in enumerate(self.shares)]

    @cached_property
    def by_level(self) -> list[Floats]:
        """The noisy counts of each level, in persons."""
        grains = (0.5 ** (GRAIN_BITS * level) for level in range(len(self.levels)))
        return [values.astype(np.float64) * grain for values, grain in zip(self.levels, grains, strict=True)]

    @property
    def own(self) -> Floats:
        """The noisy counts of the units."""
        return self.by_level[0]

    @cached_property
    def own_variance(self) -> float:
        """The variance of each of them."""
        return laplace_variance(1 / self.rates[0])

    @cached_property
    def rows(self) -> list[Floats]:
        """The tents of all levels in one vector; nothing if there are none."""
        return [np.concatenate(self.by_level[1:])] if self._tents else []

    @cached_property
    def posterior(self) -> Posterior:
        """Least squares over the units."""
        return self.posterior_with(np.full(self.units, 1.0 / self.own_variance))

    @cached_property
    def total_covariances(self) -> Floats:
        """The covariance of each unit's estimate with the sum of all of them."""
        solver = self.posterior.solver
        if isinstance(solver, TentSolver):
            return solver.total_covariances()
        return np.full(self.units, self.own_variance)

    def range_variances(self, first: RangePosition, last: RangePosition) -> Floats:
        """The variances of the estimates of sums of units between two positions."""
        solver = self.posterior.solver
        if isinstance(solver, TentSolver):
            return solver.range_variances(first, last)
        between = np.where(
            first.piece == last.piece,
            (last.share - first.share) ** 2,
            (1.0 - first.share) ** 2 + last.share**2 + (last.piece - first.piece - 1.0),
        )
        return np.asarray(self.own_variance * between)

    def posterior_with(self, precision: Floats) -> Posterior:
        """Least squares where the units' own estimates have other precisions."""
        if not self._tents:
            return Posterior(precision)
        rows = LinearMeasurements(self.strategy.down, self.strategy.up, self._row_precision)
        return Posterior(precision, [rows], TentSolver(precision, self.strategy, self._row_precision))

    @property
    def _tents(self) -> list[int]:
        return [values.size for values in self.levels[1:]]

    @cached_property
    def _row_precision(self) -> Floats:
        """1 / variance of each tent's count."""
        variances = [laplace_variance(1 / rate) for rate in self.rates[1:]]
        return 1.0 / (np.repeat(variances, self._tents) * self._grain**2)

    @cached_property
    def _grain(self) -> Floats:
        """The size of one unit of each tent's integer, in persons."""
        return np.repeat([0.5 ** (GRAIN_BITS * level) for level in range(1, len(self.levels))], self._tents)

    def combined(self, weights: Floats) -> Combination:
        """The least squares estimate of a weighted sum of the units."""
        own, rows = self.posterior.estimator(weights)
        value = own @ self.own + sum(f @ y for f, y in zip(rows, self.rows, strict=True))
        factors = np.concatenate([own, *(row * self._grain for row in rows)])
        rates = np.repeat([float(rate) for rate in self.rates], [self.units, *self._tents])
        return Combination(float(value), factors, rates)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TentEvidence:
    """Tents over units of an axis: `ends` holds the last cell of each.

    `roughness` says how much of the units' difference from an even spread was taken for more than noise;
    the rest of it has no part in the variance.
    """

    counts: TentCounts
    ends: UInts
    roughness: float = 1.0

    def combined(self, weights: Floats) -> Combination:
        """The least squares estimate of a weighted sum of the units."""
        return self.counts.combined(weights)

    def variance(self, weights: Floats) -> float:
        """The variance of the estimate, as it was shrunk."""
        average = float(weights @ self._even)
        return self.counts.posterior.variance(average + self._kept * (weights - average))

    @property
    def places(self) -> int:
        """How many rows and columns the table of covariances has; 0 where there is none."""
        solver = self.counts.posterior.solver
        return solver.places if isinstance(solver, TentSolver) else 0

    def error_tables(self) -> dict[str, Any]:
        """All that `range_variances` reads."""
        solver = self.counts.posterior.solver
        tables: dict[str, Any] = solver.error_tables() if isinstance(solver, TentSolver) else {}
        shrunk = {"even": self._even, "covariances": self.counts.total_covariances}
        own = {"kept": self._kept, "own_variance": self.counts.own_variance}
        return {**tables, **own, **(shrunk if self._kept < 1.0 else {})}

    def range_variances(self, first: RangePosition, last: RangePosition) -> Floats:
        """The variances of the shrunk estimates of sums of units between two positions."""
        kept, covariances = self._kept, self.counts.total_covariances
        average = (1.0 - kept) * _between(self._even, first, last)
        shared = 2.0 * kept * _between(covariances, first, last) + average * covariances.sum()
        return np.asarray(kept**2 * self.counts.range_variances(first, last) + average * shared)

    @property
    def _kept(self) -> float:
        return math.sqrt(self.roughness)

    @cached_property
    def _even(self) -> Floats:
        """The share of each unit if all were spread evenly."""
        widths = Curve.empty(self.ends).widths
        return np.asarray(widths / widths.sum())


def _between(units: Floats, first: RangePosition, last: RangePosition) -> Floats:
    """The sums of units between two positions."""
    before = np.concatenate([np.zeros(1), np.cumsum(units)])
    upto = before[last.piece] + last.share * units[last.piece]
    return np.asarray(upto - before[first.piece] - first.share * units[first.piece])


# Bounds on all prefixes of units at once, from noisy tents.

_POINTS: Final = 24  # at which moments are taken: more give closer bounds and take more time


def prefix_bounds(counts: TentCounts, beta: float) -> tuple[Floats, Floats]:
    """Bounds on the count of the first 0, 1, ..., k units; with probability 1 - beta all of them hold.

    A prefix of a level is a prefix of the tents above it, which ends in a slope, plus the difference
    between the slope and the step: a few nodes under the slope, near the end of the prefix. So every
    prefix of units is a sum of noisy numbers with known weights, about as good as least squares and free
    of solves. Their noise is bounded by `chernoff`, one side of one prefix at beta / 2k.
    """
    limit = float(min(counts.shares) * counts.rate)
    points = limit * (1.0 - np.geomspace(1.0, 1e-3, _POINTS)[1:])
    reach = np.full(counts.units + 1, np.inf)
    for x in points:
        np.minimum(reach, chernoff(x, _log_moments(counts, x), beta / (2 * counts.units)), out=reach)
    reach[0] = 0.0
    values = _values(counts)
    return values - reach, values + reach


class _Parts(NamedTuple):
    """What each node of a level adds to a sum over a prefix: if it lies before the end, and if behind."""

    before: Floats
    behind: Floats


def _values(counts: TentCounts) -> Floats:
    """The estimate of every prefix."""
    *lower, top = counts.by_level
    parts = [
        _Parts(level.weights * values, (level.weights - 1.0) * values)
        for level, values in zip(counts.strategy.levels, lower, strict=True)
    ]
    return _prefix_sums(counts.strategy, parts, top)


def _log_moments(counts: TentCounts, x: float) -> Floats:
    """ln E[exp(x error)] of the estimate of every prefix."""
    weights = np.arange(GRAIN + 1) / GRAIN
    tables = [
        log_moments(x * 0.5 ** (GRAIN_BITS * level) * weights, np.full(GRAIN + 1, float(rate)))
        for level, rate in enumerate(counts.rates)
    ]
    parts = [
        _Parts(table[level.right], table[GRAIN - level.right])
        for level, table in zip(counts.strategy.levels, tables, strict=False)
    ]
    return _prefix_sums(counts.strategy, parts, np.full(counts.levels[-1].size, tables[-1][GRAIN]))


def _prefix_sums(strategy: TentStrategy, parts: Sequence[_Parts], top: Floats) -> Floats:
    """The sums over all prefixes of units, from those over the prefixes of the top level downwards.

    The prefix that ends with node i takes the tents up to i's left one; the nodes with the same left
    tent make the step of its slope.
    """
    sums = np.concatenate([[0.0], np.cumsum(top)])
    for level, nodes in zip(reversed(strategy.levels), reversed(parts), strict=True):
        before, behind = (np.concatenate([[0.0], np.cumsum(values)]) for values in nodes)
        count = level.left.size
        first, after = level.firsts[level.left], np.append(level.firsts[1:], count)[level.left]
        ends = np.arange(1, count + 1)
        own = sums[level.left + 1] + before[ends] - before[first] + behind[after] - behind[ends]
        sums = np.concatenate([[0.0], own[:-1], sums[-1:]])
    return sums


# The best counts from noisy tents: least squares, then what is known of all counts.

_FEW_UNITS: Final = 20  # more units are taken as they are
_FEWEST_ATOMS: Final = 16  # fewer cells do not tell how many of them are heavy
_LEAST_VARIANCE: Final = 1e-6  # in units of the noise, to keep precisions finite


class UnitCounts(NamedTuple):
    """Estimated counts of units, and how rough they are: 0 as even as noise, 1 taken as they are."""

    counts: Floats
    roughness: float


def unit_counts(counts: TentCounts, widths: Floats) -> UnitCounts:
    """Least squares, counts >= 0, and for few units a step towards an even spread."""
    found = project_nonnegative(counts.posterior.mean(counts.own, counts.rows))
    return _shrink_to_even(found, widths, counts.own_variance)


def unit_counts_with_atoms(
    counts: TentCounts, widths: Floats, atoms: NDArray[np.bool_], total: int
) -> UnitCounts:
    """The same where some units are single cells cut off because they may be heavy; most are not.

    What their own noisy counts say about each other shrinks them first.
    """
    if np.count_nonzero(atoms) < _FEWEST_ATOMS:
        return unit_counts(counts, widths)
    scales = np.full(counts.units, float(1 / counts.rates[0]))
    expected = np.full(counts.units, max(total, 0) / counts.units)
    own, variance = counts.own.copy(), np.full(counts.units, counts.own_variance)
    own[atoms], shrunk = shrink(own[atoms], scales[atoms], expected[atoms])
    variance[atoms] = np.maximum(shrunk, _LEAST_VARIANCE * scales[atoms] ** 2)
    return UnitCounts(project_nonnegative(counts.posterior_with(1.0 / variance).mean(own, counts.rows)), 1.0)


def _shrink_to_even(counts: Floats, widths: Floats, variance: float) -> UnitCounts:
    """James-Stein: the less the counts differ from an even spread, the more of that is taken for noise."""
    if counts.size > _FEW_UNITS:
        return UnitCounts(counts, 1.0)
    even = counts.sum() * widths / widths.sum()
    apart = float(((counts - even) ** 2).sum())
    noise = (counts.size - 1) * variance
    roughness = 1.0 - noise / apart if apart > noise else 0.0
    return UnitCounts(even + roughness * (counts - even), roughness)


# Units of several cells with a second look: their last cell, and the rest.

_REACH: Final = 2.5  # noise scales by which a last cell must differ to be told from the others
_TAKEN_OFF: Final = 1.5  # noise scales that the rest beside a heavy last cell loses


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Pairs:
    """Noisy counts of the last cell and of the rest of each unit of several cells, in order.

    A row lies in one of the two. `rate` is 1 / scale of their noise.
    """

    last: NDArray[Any]
    rest: NDArray[Any]
    rate: Fraction

    def __post_init__(self) -> None:
        freeze(self, last=noisy_integers(self.last, "last"), rest=noisy_integers(self.rest, "rest"))
        noise_rate(self.rate, "pair_rate")
        if self.last.size != self.rest.size:
            raise damaged("rest", "must be as long as last")

    @cached_property
    def difference(self) -> Floats:
        """Last cell minus rest."""
        return self.last.astype(np.float64) - self.rest.astype(np.float64)

    @property
    def variance(self) -> float:
        """The variance of each look."""
        return laplace_variance(1 / self.rate)

    def last_cells(self, totals: Floats) -> Floats:
        """The part of each total that lies in the last cell."""
        return np.clip((self.difference + totals) / 2, 0.0, totals)

    def settled(self, totals: Floats) -> Floats:
        """The same, where the last cell is known to be heavy: then the rest is most likely next to nothing.

        So 1.5 noise scales are taken off the rest. Against a heavy cell alone nothing speaks but the
        noise of the looks, which is large.
        """
        last, scale = self.last_cells(totals), float(1 / self.rate)
        rest = np.maximum(totals - last - _TAKEN_OFF * scale, 0.0)
        return np.where(last > _REACH * scale, totals - rest, last)

    def telling(self, units: Curve) -> NDArray[np.bool_]:
        """Which units have a last cell that is clearly not one like the others."""
        wide = units.widths > 1.0
        totals, even = units.counts[wide], units.counts[wide] / units.widths[wide]
        telling = np.zeros(units.ends.size, bool)
        telling[wide] = np.abs(self.last_cells(totals) - even) > _REACH / float(self.rate)
        return telling

    def doubts(self, units: Curve) -> Doubts:
        """The last cells that do not tell, and how far they may be from their even share."""
        wide, untold = units.widths > 1.0, ~self.telling(units)
        totals, even = units.counts[wide], units.counts[wide] / units.widths[wide]
        variance = self.variance / 2 + (self.last_cells(totals) - even) ** 2
        return Doubts(units.ends[wide & untold], np.minimum(variance, totals**2)[untold[wide]])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PairEvidence:
    """Tents over units, and pairs within some of them: looks at pieces.

    The units that are `split` have a pair each. Half the sum and half the difference of a pair are its two
    pieces; the sum is the unit's count by tents, the difference is that of the two looks.
    """

    units: TentEvidence
    split: NDArray[np.bool_]
    pairs: Pairs

    @staticmethod
    def telling(units: TentEvidence, counts: Curve, pairs: Pairs) -> PairEvidence:
        """Only the pairs that tell their last cell from the others."""
        split = pairs.telling(counts)
        some = split[counts.widths > 1.0]
        telling = Pairs(last=pairs.last[some], rest=pairs.rest[some], rate=pairs.rate)
        return PairEvidence(units=units, split=split, pairs=telling)

    @cached_property
    def ends(self) -> UInts:
        """The last cell of each piece."""
        return _split_last_cells(self.units.ends, self.split)

    def counts(self, units: Floats) -> Floats:
        """The counts of the pieces, from those of the units."""
        pieces = np.zeros(self.ends.size)
        pieces[self._last] = units
        totals = units[self.split]
        pieces[self._split_last] = self.pairs.settled(totals)
        pieces[self._split_last - 1] = totals - pieces[self._split_last]
        return pieces

    def combined(self, weights: Floats) -> Combination:
        """The estimate of a weighted sum of pieces."""
        sums, differences = self._in_units(weights)
        tents = self.units.combined(sums)
        rates = np.full(2 * differences.size, float(self.pairs.rate))
        return Combination(
            tents.value + float(differences @ self.pairs.difference),
            np.concatenate([tents.factors, differences, -differences]),
            np.concatenate([tents.rates, rates]),
        )

    def variance(self, weights: Floats) -> float:
        """The variance of that estimate."""
        sums, differences = self._in_units(weights)
        return self.units.variance(sums) + 2 * self.pairs.variance * float(differences @ differences)

    def range_variances(self, first: RangePosition, last: RangePosition) -> Floats:
        """The variances of the estimates of sums of pieces between two positions."""
        (low, below), (high, above) = self._at_units(first), self._at_units(last)
        together = low.piece == high.piece
        differences = np.where(together, (above - below) ** 2, above**2 + below**2)
        return self.units.range_variances(low, high) + 2 * self.pairs.variance * differences

    @property
    def places(self) -> int:
        """How many rows and columns the table of covariances has; 0 where there is none."""
        return self.units.places

    def error_tables(self) -> dict[str, Any]:
        """All that `range_variances` reads."""
        pairs = {"last": self._last, "split": self.split, "pair_variance": self.pairs.variance}
        return {**self.units.error_tables(), **pairs}

    def _at_units(self, at: RangePosition) -> tuple[RangePosition, Floats]:
        """Positions among the units, and the factors of the pairs' differences there."""
        unit = np.searchsorted(self._last, at.piece)
        rest, split = at.piece < self._last[unit], self.split[unit]
        share = np.where(split, (np.where(rest, 0.0, 1.0) + at.share) / 2, at.share)
        return RangePosition(unit, share), np.where(split, np.where(rest, -at.share, at.share - 1.0) / 2, 0.0)

    def _in_units(self, weights: Floats) -> tuple[Floats, Floats]:
        """The factors of the units' counts and of the pairs' differences."""
        sums = weights[self._last].copy()
        last, rest = weights[self._split_last], weights[self._split_last - 1]
        sums[self.split] = (last + rest) / 2
        return sums, (last - rest) / 2

    @cached_property
    def _last(self) -> NDArray[np.intp]:
        """The piece that ends with each unit."""
        return np.asarray(np.cumsum(1 + self.split) - 1)

    @cached_property
    def _split_last(self) -> NDArray[np.intp]:
        """The last cells of the units that are split."""
        return self._last[self.split]


def split_last_cells(ends: UInts) -> UInts:
    """The ends of the pieces when the last cell of every segment is cut off.

    A heavy cell seals the segment it lies in, so it is a last cell.

    >>> split_last_cells(np.array([0, 4, 5], np.uint64)).tolist()
    [0, 3, 4, 5]
    """
    wide = np.concatenate([ends[:1] > 0, np.diff(ends) > 1])
    return _split_last_cells(ends, wide)


def _split_last_cells(ends: UInts, which: NDArray[np.bool_]) -> UInts:
    """The same for some segments only, of several cells each."""
    pieces = np.repeat(ends, 1 + which)
    pieces[np.cumsum(1 + which)[which] - 2] -= np.uint64(1)
    return pieces
