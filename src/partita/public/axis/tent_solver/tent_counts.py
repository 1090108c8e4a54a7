"""Noisy tents, and what they say about the units when they are put together linearly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.axis.tent_solver.tent_solver import TentSolver
from partita.public.axis.tent_solver.tent_strategy import GRAIN_BITS, MOST_LEVELS, TentStrategy
from partita.public.base.released import damaged, noise_rate, noisy_integers
from partita.public.bounds.linear_ranges import Combination, Position
from partita.public.bounds.posterior import Measured, Posterior
from partita.public.bounds.tails import laplace_variance


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TentCounts:
    """Noisy integers of each level, the units first; level l is in units of 2^-8l.

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
        object.__setattr__(self, "levels", levels)

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

    def range_variances(self, first: Position, last: Position) -> Floats:
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
        return Posterior(precision, self._measured, TentSolver(precision, self.strategy, self._row_precision))

    @property
    def _tents(self) -> list[int]:
        return [values.size for values in self.levels[1:]]

    @property
    def _measured(self) -> list[Measured]:
        return [Measured(self.strategy.down, self.strategy.up, self._row_precision)]

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
        return Combination(float(value), factors, self._noise_rates)

    @cached_property
    def _noise_rates(self) -> Floats:
        return np.repeat([float(rate) for rate in self.rates], [self.units, *self._tents])


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

    def range_variances(self, first: Position, last: Position) -> Floats:
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


def _between(units: Floats, first: Position, last: Position) -> Floats:
    """The sums of units between two positions."""
    before = np.concatenate([np.zeros(1), np.cumsum(units)])
    upto = before[last.piece] + last.share * units[last.piece]
    return np.asarray(upto - before[first.piece] - first.share * units[first.piece])
