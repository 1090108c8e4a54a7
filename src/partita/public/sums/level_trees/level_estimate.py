"""Sums, means and variances from released level trees: linear questions with the noise of exactly these."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, Bounds
from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats
from partita.public.bounds.tails import laplace_mix_reach, laplace_sum_reach, laplace_variance
from partita.public.sums.base.answers import Joint, Ratio, SumAnswer, ratio_bounds
from partita.public.sums.knots.buckets import Past
from partita.public.sums.knots.pooling import Pooled, Pooling
from partita.public.sums.level_trees.controls import Controls, Reach, There
from partita.public.sums.parts.cut import Laid
from partita.public.sums.parts.part_tree import PartTree

_WAYS_PAST: Final = 8
"""Rows past the knots of both sides or of one: a quarter of beta / 2 for each is enough."""


@final
@dataclass(frozen=True, eq=False)
class Trees:
    """One noisy tree over the parts for each of the controls' rows, all with noise of one scale.

    `noisy` has a row for each control and a column for each node, in whole units of mass. `past` counts the
    rows past all knots, above and below, with noise of scale `past_scale` for each bucket.
    """

    controls: Controls
    tree: PartTree
    noisy: NDArray[Any]
    scale: Fraction
    past: tuple[Past, Past]
    past_scale: Fraction

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
    def invalid(self) -> Answer:
        """How many rows hold something that is no number."""
        return self._rows(self._controls.invalid)

    @property
    def null(self) -> Answer:
        """How many rows hold nothing."""
        return self._rows(self._controls.null)

    @property
    def sum(self) -> SumAnswer:
        """The sum of the values, as far as they stand out from the noise."""
        controls, line = self._controls, self._controls.line
        reach = self._reach(controls.values)
        weights = controls.weighed(reach, controls.values * float(line.step))
        weights += controls.weighed(reach, controls.ones) * float(line.origin * line.step)

        def bounds(beta: float) -> tuple[float, float]:
            low, high = self.bounds(weights, beta / 2)
            slack = self._most_rows(beta / 2) * controls.rounding * float(line.step)
            return low - slack, high + slack

        answer = Answer(
            float(weights @ self.pooled.found), lambda: self.pooled_error(weights), bounds, _least(weights)
        )
        return SumAnswer(answer, controls.covers(reach), self._beyond(reach))

    @property
    def mean(self) -> Ratio:
        """The mean of the values that the sum covers."""
        controls, line = self._controls, self._controls.line
        reach = self._reach(controls.values)
        inside, values = (controls.weighed(reach, each) for each in (controls.ones, controls.values))

        def bounds(beta: float) -> tuple[float, float]:
            low, high = self.bounds(values, beta / 2)
            slack = self._most_rows(beta / 2) * controls.rounding
            return ratio_bounds((low - slack, high + slack), self.bounds(inside, beta / 2))

        joint, ends = self._joint(values, inside), (float(values.min()), float(values.max()))
        least, most = ends if joint.sure else (-float(line.down), float(line.up))
        return Ratio(joint, controls.covers(reach), least, most, bounds, shown=line.number)

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
        reach = self._reach(controls.squares)
        inside, values, squares = (
            controls.weighed(reach, each) for each in (controls.ones, controls.values, controls.squares)
        )
        found = self.pooled.found
        rows = float(inside @ found)
        mean = float(values @ found) / rows if rows > 0.0 else 0.0
        centred = squares - 2.0 * mean * values + mean**2 * inside
        joint, width = self._joint(centred, inside), float(values.max()) - float(values.min())
        most = (width if joint.sure else float(controls.line.size - 1)) ** 2 / 4.0
        bounds = self._variance_bounds(values, squares, inside)
        return Ratio(joint, controls.covers(reach), 0.0, most, bounds, shown)

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
        return math.sqrt(self.pooled_covariance(weights, weights))

    def pooled_covariance(self, one: Floats, other: Floats) -> float:
        """Of two weighted sums, pooled: by noise, by how many rows the question holds, by cut parts.

        How far guesses lead away from plain least squares is counted, too: here they may be biased.
        """
        pooled, led = self.pooled, self.pooled.found - self.found
        own = float((one * other) @ pooled.deviations**2)
        leaning = float(one @ pooled.leaning) * float(other @ pooled.leaning)
        biased = float(one @ led) * float(other @ led)
        return own + biased + leaning * self.error(self._controls.ones) ** 2 + self._cut(one, other)

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
        return float(one @ other) * self.deviation**2 + self._cut(one, other)

    def _cut(self, one: Floats, other: Floats) -> float:
        shares = self.laid.mean[self.laid.cuts]
        return float((shares * (1.0 - shares)) @ ((self._held @ one) * (self._held @ other)))

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

    def _beyond(self, reach: Reach) -> Answer:
        """About how many rows lie past what is covered in full.

        Rows past all knots are known for all keys together only; they are taken to be as frequent here.
        """
        rows, at_top = self._rows(self._controls.beyond(reach)), self._controls.at_top(reach)
        past = [each for each, top in zip(self.trees.past, at_top, strict=True) if top and each.buckets]
        if not past:
            return rows
        number, buckets = sum(each.rows for each in past), sum(each.buckets for each in past)
        share, scale = self._share, self.trees.past_scale
        deviation = share * math.sqrt(buckets * laplace_variance(scale))

        def bounds(beta: float) -> tuple[float, float]:
            low, high = rows.worst(beta / 2)
            return low, high + max(0.0, number + laplace_sum_reach(scale, buckets, beta / _WAYS_PAST))

        value = rows.value + share * max(0, number)
        return Answer(value, lambda: math.hypot(rows.error, deviation), bounds, rows.least)

    @property
    def _share(self) -> float:
        """About which share of all rows with numbers the question holds."""
        ones = self._controls.ones
        return min(1.0, max(0.0, float(ones @ self.found)) / max(1.0, float(ones @ self.trees.pooling.whole)))

    def _most_rows(self, beta: float) -> float:
        """No more rows hold a number, for certain."""
        return max(0.0, self.bounds(self._controls.numbers.astype(np.float64), beta)[1])

    def _reach(self, weights: Floats) -> Reach:
        """How far values are covered, where a row adds its weight."""
        pooled = self.pooled
        there = There(self.trees.pooling.whole, self.trees.pooling.clear)
        return self._controls.chosen(pooled.found, pooled.deviations, weights, there)

    def _joint(self, top: Floats, bottom: Floats) -> Joint:
        pairs = (top, top), (bottom, bottom), (top, bottom)
        return Joint(
            float(top @ self.pooled.found),
            float(bottom @ self.pooled.found),
            *(self.pooled_covariance(one, other) for one, other in pairs),
        )


def _least(weights: Floats) -> float:
    """What a weighted sum of counts cannot undercut."""
    return 0.0 if bool((weights >= 0.0).all()) else -math.inf
