"""Sums, means and variances from released level trees: linear questions with the noise of exactly these."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, Bounds
from partita.inference.curve import Bools, Floats
from partita.inference.sums.answers import Joint, Ratio, SumAnswer, ratio_bounds
from partita.inference.sums.controls import Controls
from partita.inference.sums.cut import Laid
from partita.inference.sums.part_tree import PartTree
from partita.inference.sums.pooling import Pooled, Pooling
from partita.inference.tails import laplace_mix_reach, laplace_variance

__all__ = ["LevelEstimate", "Trees"]


@final
@dataclass(frozen=True, eq=False)
class Trees:
    """One noisy tree over the parts for each of the controls' rows, all with noise of one scale.

    `noisy` has a row for each control and a column for each node, in whole units of mass.
    """

    controls: Controls
    tree: PartTree
    noisy: NDArray[Any]
    scale: Fraction

    @cached_property
    def measured(self) -> Floats:
        """The noisy numbers of rows."""
        return np.asarray(self.noisy.astype(np.float64) / self.controls.unit)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of one of them."""
        return math.sqrt(laplace_variance(self.scale)) / self.controls.unit

    @cached_property
    def pooling(self) -> Pooling:
        """What all parts say about one."""
        return Pooling(self.tree, self.measured, self.deviation, self.controls.numbers)

    def asked(self, laid: Laid) -> LevelEstimate:
        """A question about some of the keys."""
        return LevelEstimate(self, laid)


@final
@dataclass(frozen=True, eq=False)
class LevelEstimate:
    """What the trees say about a set of keys, laid over the parts."""

    trees: Trees
    laid: Laid

    @property
    def count(self) -> Answer:
        """How many rows hold a number."""
        return self._rows(self._controls.numbers)

    @property
    def nulls(self) -> Answer:
        """How many rows hold none."""
        return self._rows(self._controls.nulls)

    @property
    def sum(self) -> SumAnswer:
        """The sum of the values, as far as they stand out from the noise."""
        controls, line = self._controls, self._controls.line
        pooled = self.pooled
        reach = controls.chosen(pooled.found, pooled.deviations, controls.values, self.trees.pooling.clear)
        weights = controls.weighed(reach, controls.values * float(line.step))
        weights += controls.weighed(reach, controls.ones) * float(line.origin * line.step)

        def bounds(beta: float) -> tuple[float, float]:
            low, high = self.bounds(weights, beta / 2)
            slack = self._most_rows(beta / 2) * controls.rounding * float(line.step)
            return low - slack, high + slack

        answer = Answer(
            float(weights @ pooled.found), lambda: self.pooled_error(weights), bounds, _least(weights)
        )
        beyond = self._rows(controls.numbers & (weights == 0.0))
        return SumAnswer(answer, controls.covers(reach), beyond)

    @property
    def mean(self) -> Ratio:
        """The mean of the values that the sum covers."""
        controls, line = self._controls, self._controls.line
        reach = controls.chosen(
            self.found, np.full(self.found.size, self.deviation), controls.values, self.trees.pooling.clear
        )
        inside, values = (controls.weighed(reach, each) for each in (controls.ones, controls.values))

        def bounds(beta: float) -> tuple[float, float]:
            low, high = self.bounds(values, beta / 2)
            slack = self._most_rows(beta / 2) * controls.rounding
            return ratio_bounds((low - slack, high + slack), self.bounds(inside, beta / 2))

        least, most = float(values.min()), float(values.max())
        return Ratio(
            self._joint(values, inside), controls.covers(reach), least, most, bounds, shown=line.number
        )

    @property
    def variance(self) -> Ratio:
        """The variance of the values, as far as their squares stand out from the noise."""
        square = float(self._controls.line.step) ** 2
        return self._variance(lambda ratio: ratio * square)

    @property
    def std(self) -> Ratio:
        """The standard deviation of the values, as far as their squares stand out from the noise."""
        step = float(self._controls.line.step)
        return self._variance(lambda ratio: math.sqrt(ratio) * step)

    def _variance(self, shown: Callable[[float], float]) -> Ratio:
        """The mean squared distance from the estimated mean: to first order that is exact in the mean."""
        controls = self._controls
        reach = controls.chosen(
            self.found, np.full(self.found.size, self.deviation), controls.squares, self.trees.pooling.clear
        )
        inside, values, squares = (
            controls.weighed(reach, each) for each in (controls.ones, controls.values, controls.squares)
        )
        rows = float(inside @ self.found)
        mean = float(values @ self.found) / rows if rows > 0.0 else 0.0
        centred = squares - 2.0 * mean * values + mean**2 * inside
        most = (float(values.max()) - float(values.min())) ** 2 / 4.0
        bounds = self._variance_bounds(values, squares, inside)
        return Ratio(self._joint(centred, inside), controls.covers(reach), 0.0, most, bounds, shown)

    def _variance_bounds(self, values: Floats, squares: Floats, inside: Floats) -> Bounds:
        controls = self._controls

        def bounds(beta: float) -> tuple[float, float]:
            rows, sums, second = (self.bounds(each, beta / 4) for each in (inside, values, squares))
            many = self._most_rows(beta / 4)
            slack, slack_squares = many * controls.rounding, many * controls.rounding_squares
            low, high = ratio_bounds((sums[0] - slack, sums[1] + slack), rows)
            least = 0.0 if low < 0.0 < high else min(low**2, high**2)
            first, last = ratio_bounds((second[0] - slack_squares, second[1] + slack_squares), rows)
            return first - max(low**2, high**2), last - least

        return bounds

    @cached_property
    def pooled(self) -> Pooled:
        """The estimate of each row of the controls, with what all parts say about it."""
        return self.trees.pooling(self.laid.mean)

    def pooled_error(self, weights: Floats) -> float:
        """The standard error of a weighted sum of the rows, pooled."""
        pooled, rows = self.pooled, self._controls.ones
        leaning = float(weights @ pooled.leaning) * self.error(rows)
        shares = self.laid.mean[self.laid.cuts]
        cut = float((shares * (1.0 - shares)) @ np.square(self._held @ weights))
        return math.sqrt(float(weights**2 @ pooled.deviations**2) + leaning**2 + cut)

    @cached_property
    def found(self) -> Floats:
        """The estimate of each row of the controls."""
        return np.asarray(self.trees.measured @ self._mean)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of each."""
        return self.trees.deviation * math.sqrt(float(self._mean @ self._mean))

    def error(self, weights: Floats) -> float:
        """The standard error of a weighted sum of the rows."""
        return math.sqrt(max(0.0, self.covariance(weights, weights)))

    def covariance(self, one: Floats, other: Floats) -> float:
        """Of two weighted sums: by noise, and by where the rows of parts that are cut really lie."""
        shares = self.laid.mean[self.laid.cuts]
        cut = float((shares * (1.0 - shares)) @ ((self._held @ one) * (self._held @ other)))
        return float(one @ other) * self.deviation**2 + cut

    def bounds(self, weights: Floats, beta: float) -> tuple[float, float]:
        """Bounds on a weighted sum that hold whatever was covered, of all that can be covered.

        True masses are not negative, so the rows of a part that is cut count between least and most.
        """
        return self._least_sum(weights, beta / 2), -self._least_sum(-weights, beta / 2)

    def _least_sum(self, weights: Floats, beta: float) -> float:
        """The weighted sum with every part's rows at their least, less how far noise can reach."""
        least, most = (self._coefficients(each) for each in (self.laid.least, self.laid.most))
        factors = np.outer(np.maximum(weights, 0.0), least) + np.outer(np.minimum(weights, 0.0), most)
        rates = np.full(factors.size, float(1 / self.trees.scale))
        units = factors.ravel() / self._controls.unit
        reach = laplace_mix_reach(units, rates, beta / self._controls.choices)
        return float((factors * self.trees.measured).sum()) - reach

    @property
    def _controls(self) -> Controls:
        return self.trees.controls

    @cached_property
    def _mean(self) -> Floats:
        return self._coefficients(self.laid.mean)

    @cached_property
    def _held(self) -> Floats:
        """The estimates of the parts that are cut, a row of the controls' for each."""
        units = np.zeros((self.laid.cuts.size, self.laid.mean.size))
        units[np.arange(len(units)), self.laid.cuts] = 1.0
        return np.asarray(self.trees.tree.plain(units).nodes @ self.trees.measured.T)

    def _coefficients(self, asked: Floats) -> Floats:
        return self.trees.tree.plain(asked).nodes

    def _rows(self, chosen: Bools) -> Answer:
        weights = chosen.astype(np.float64)
        return Answer(
            float(weights @ self.found),
            lambda: self.error(weights),
            lambda beta: self.bounds(weights, beta),
            _least(self.laid.least),
        )

    def _most_rows(self, beta: float) -> float:
        """No more rows hold a number, for certain."""
        return max(0.0, self.bounds(self._controls.numbers.astype(np.float64), beta)[1])

    def _joint(self, top: Floats, bottom: Floats) -> Joint:
        return Joint(
            float(top @ self.found),
            float(bottom @ self.found),
            *(self.covariance(one, other) for one, other in ((top, top), (bottom, bottom), (top, bottom))),
        )


def _least(weights: Floats) -> float:
    """What a weighted sum of counts cannot undercut."""
    return 0.0 if bool((weights >= 0.0).all()) else -math.inf
