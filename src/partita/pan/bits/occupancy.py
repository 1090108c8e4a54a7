"""Linear counting over geometric levels, through biased bits and noise: post-processing of released sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.pan.sketch.coin import Coin
from partita.pan.sketch.estimate import laplace_reach, sum_reach
from partita.public.bounds.tails import laplace_variance

Floats = NDArray[np.float64]

_COARSE: Final = 400
_FINE: Final = 1e-9


@final
@dataclass(frozen=True, kw_only=True)
class Occupancy:
    """What the noisy numbers of ones in each level say about the number n of different ids.

    An id falls into level l with probability w_l = 1/2, 1/4, ..., the last one twice, and there into one
    of `buckets`. So a bucket stays empty with probability (1 - w_l / buckets)^n.
    """

    buckets: int
    levels: int
    most: int
    coin: Coin
    output: Fraction

    def answer(self, noisy: Floats) -> Answer:
        """The n that explains all levels best, and bounds for any ids that the hash spreads evenly."""
        value = self._best(noisy)
        return Answer(value, lambda: self.error(value), lambda beta: self._bounds(noisy, beta))

    def error(self, n: float) -> float:
        """The standard error at n: levels are weighted by what they tell, to first order."""
        step = max(1.0, n * 1e-3)
        slope = (self._expected(np.array([n + step])) - self._expected(np.array([n])))[0] / step
        information = float((slope**2 / self._variance(np.array([n]))[0]).sum())
        return 1 / math.sqrt(information) if information > 0 else math.inf

    def _best(self, noisy: Floats) -> float:
        """The least misfit, on a grid of n that is made finer around its best place."""
        low, high = 0.0, math.log1p(2.0 * self.most)
        while True:
            grid = np.linspace(low, high, _COARSE)
            best = int(self._misfit(noisy, np.expm1(grid)).argmin())
            if high - low < _FINE:
                return float(np.expm1(grid[best]))
            low, high = float(grid[max(0, best - 1)]), float(grid[min(_COARSE - 1, best + 1)])

    def _misfit(self, noisy: Floats, n: Floats) -> Floats:
        """Minus twice the logarithm of the normal likelihood of all levels, for each n."""
        variance = self._variance(n)
        misfit = (noisy - self._expected(n)) ** 2 / variance + np.log(variance)
        return np.asarray(misfit.sum(axis=1))

    def _bounds(self, noisy: Floats, beta: float) -> tuple[float, float]:
        """All levels together: each says that its expected number of ones lies within its reach.

        Empty buckets are negatively associated, so Hoeffding's bound holds for their number as it does for
        bits that are independent.
        """
        each = beta / (3 * self.levels)
        reach = laplace_reach(1 / self.output, each) + sum_reach(self.buckets, each)
        reach += float(self.coin.gap) * sum_reach(self.buckets, each)
        grid = np.expm1(np.linspace(0.0, math.log1p(2.0 * self.most), _COARSE * 10))
        fitting = (np.abs(self._expected(grid) - noisy) <= reach).all(axis=1)
        if not bool(fitting.any()):
            return 0.0, math.inf
        first, last = np.flatnonzero(fitting)[[0, -1]].tolist()
        high = float(grid[last + 1]) if last + 1 < grid.size else math.inf
        return float(grid[max(0, first - 1)]), high

    @property
    def _weights(self) -> Floats:
        weights = np.exp2(-np.arange(1.0, self.levels + 1))
        weights[-1:] *= 2
        return np.asarray(weights)

    def _empty(self, n: Floats) -> Floats:
        """The probability that a bucket is empty: rows are n, columns levels."""
        return np.asarray(np.exp(n[:, np.newaxis] * np.log1p(-self._weights / self.buckets)))

    def _expected(self, n: Floats) -> Floats:
        """The expected number of ones."""
        q0, q1 = float(self.coin.q0), float(self.coin.q1)
        return self.buckets * (q1 - (q1 - q0) * self._empty(n))

    def _variance(self, n: Floats) -> Floats:
        """Of the bits, of the number of empty buckets (at most), and of the noise."""
        empty = self._empty(n)
        q0, q1 = float(self.coin.q0), float(self.coin.q1)
        bits = empty * q0 * (1 - q0) + (1 - empty) * q1 * (1 - q1)
        buckets = (q1 - q0) ** 2 * empty * (1 - empty)
        return self.buckets * (bits + buckets) + laplace_variance(1 / self.output)
