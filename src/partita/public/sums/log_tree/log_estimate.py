"""Sums, means and variances of values in a range of the values themselves, from one noisy tree of counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.bounds.tails import laplace_mix_reach, laplace_variance
from partita.public.sums.base.answers import Joint, Ratio, SumAnswer, ratio_bounds
from partita.public.sums.base.covers import Covers, End
from partita.public.sums.knots.buckets import FALSE_CAP
from partita.public.sums.log_tree.log_cells import LogCells, LogLaid
from partita.public.sums.parts.part_tree import PartTree

_SAFE: Final = 3.0


@final
@dataclass(frozen=True, eq=False)
class LogTrees:
    """A noisy tree of counts over the cells, all nodes with noise of one scale."""

    cells: LogCells
    tree: PartTree
    noisy: NDArray[Any]
    scale: Fraction

    @cached_property
    def measured(self) -> Floats:
        """The noisy counts."""
        return np.asarray(self.noisy, np.float64)

    @cached_property
    def variance(self) -> float:
        """The variance of one of them."""
        return laplace_variance(self.scale)

    @cached_property
    def clear(self) -> tuple[int, int]:
        """The last octaves above and below the origin that stand out from the noise, 0 for none.

        Noise alone makes an empty octave of a side stand out with probability at most 1/1000.
        """
        return self._last_clear(self.octaves(1)), self._last_clear(self.octaves(-1))

    def octaves(self, side: int) -> Ints:
        """The octave of each cell of one side; 0 for all others."""
        return np.asarray(self.cells.octaves * (self.cells.sides == side))

    def _last_clear(self, octaves: Ints) -> int:
        highest = int(octaves.max())
        cells = octaves == np.arange(1, highest + 1)[:, np.newaxis]
        asked = self.tree.plain(cells.astype(np.float64)).nodes
        rates, beta = np.full(self.measured.size, float(1 / self.scale)), float(FALSE_CAP) / max(1, highest)
        clear = [nodes @ self.measured > laplace_mix_reach(nodes, rates, beta) for nodes in asked]
        return int(np.flatnonzero(clear).max(initial=-1)) + 1


class _Reach(NamedTuple):
    """How many octaves are covered on each side, and which cells these are."""

    up: int
    down: int
    inside: Bools


@final
@dataclass(frozen=True, eq=False)
class LogEstimate:
    """What the tree says about a set of values, laid over the cells."""

    trees: LogTrees
    laid: LogLaid

    @property
    def count(self) -> Answer:
        """How many rows hold a number."""
        return self._rows(self.trees.cells.numbers)

    @property
    def nulls(self) -> Answer:
        """How many rows hold none."""
        return self._rows(1.0 - self.trees.cells.numbers)

    @property
    def rows(self) -> Answer:
        """How many rows there are, with a number or without."""
        return self._rows(np.ones(self.trees.cells.size))

    @property
    def sum(self) -> SumAnswer:
        """The sum of the values, as far as they stand out from the noise."""
        line, reach = self.trees.cells.line, self._chosen(np.abs(self.laid.middle))
        counted = self.trees.cells.numbers * reach.inside
        step, origin = float(line.step), float(line.origin)
        values = (self.laid.middle + origin) * step

        def bounds(beta: float) -> tuple[float, float]:
            ends = [(each + origin) * step for each in (self.laid.low, self.laid.high)]
            return self._bounds(np.minimum(*ends) * counted, np.maximum(*ends) * counted, beta)

        weights = self.laid.share * values * counted
        within = self.laid.spread * counted * step**2
        least = 0.0 if bool((weights >= 0.0).all()) else -math.inf
        answer = Answer(
            self._value(weights), lambda: math.sqrt(self._covariance(weights, weights, within)), bounds, least
        )
        beyond = self._rows(self.trees.cells.numbers * ~reach.inside)
        return SumAnswer(answer, self._covers(reach), beyond)

    @property
    def mean(self) -> Ratio:
        """The mean of the values that the sum covers."""
        reach = self._chosen(np.abs(self.laid.middle))
        counted = self.trees.cells.numbers * reach.inside

        def bounds(beta: float) -> tuple[float, float]:
            sums = self._bounds(self.laid.low * counted, self.laid.high * counted, beta / 2)
            return ratio_bounds(sums, self._bounds(counted, counted, beta / 2))

        joint = self._joint(self.laid.middle * counted, counted, self.laid.spread)
        least, most = self._extremes(counted, joint)
        return Ratio(joint, self._covers(reach), least, most, bounds, shown=self.trees.cells.line.number)

    @property
    def variance(self) -> Ratio:
        """The variance of the values, as far as their squares stand out from the noise."""
        square = float(self.trees.cells.line.step) ** 2
        return self._variance(lambda ratio: ratio * square)

    @property
    def std(self) -> Ratio:
        """The standard deviation of the values, as far as their squares stand out from the noise."""
        step = float(self.trees.cells.line.step)
        return self._variance(lambda ratio: math.sqrt(ratio) * step)

    def _variance(self, shown: Callable[[float], float]) -> Ratio:
        reach = self._chosen(self.laid.square)
        counted = self.trees.cells.numbers * reach.inside
        values, rows = self.laid.middle * counted, self._value(self.laid.share * counted)
        mean = self._value(self.laid.share * values) / rows if rows > 0.0 else 0.0
        centred = (self.laid.square - 2.0 * mean * self.laid.middle + mean**2) * counted
        joint = self._joint(centred, counted, np.zeros_like(centred))
        low, high = self._extremes(counted, joint)

        def bounds(beta: float) -> tuple[float, float]:
            ends = np.sort(np.square([self.laid.low, self.laid.high]), axis=0) * counted
            sums = self._bounds(self.laid.low * counted, self.laid.high * counted, beta / 3)
            count = self._bounds(counted, counted, beta / 3)
            first, last = ratio_bounds(sums, count)
            least = 0.0 if first < 0.0 < last else min(first**2, last**2)
            lowest, highest = ratio_bounds(self._bounds(ends[0], ends[1], beta / 3), count)
            return lowest - max(first**2, last**2), highest - least

        return Ratio(joint, self._covers(reach), 0.0, (high - low) ** 2 / 4.0, bounds, shown)

    def _chosen(self, sizes: Floats) -> _Reach:
        """On each side the octaves for which the sum, less three deviations of its noise, is largest.

        None is covered above the last that stands out from the noise over the whole line.
        """
        cells = self.trees.cells
        up, down = (
            self._octaves(self.trees.octaves(side), last, sizes)
            for side, last in zip((1, -1), self.trees.clear, strict=True)
        )
        inside = cells.octaves <= np.where(cells.sides > 0, up, np.where(cells.sides < 0, down, 64))
        return _Reach(up, down, np.asarray(inside))

    def _octaves(self, octaves: Ints, last: int, sizes: Floats) -> int:
        weights = self.laid.share * sizes
        upto = (octaves <= np.arange(last + 1)[:, np.newaxis]) & (octaves > 0)
        asked = self.trees.tree.plain(upto * weights)
        sums = asked.nodes @ self.trees.measured
        variances = np.square(asked.nodes).sum(axis=1) * self.trees.variance
        return int(np.argmax(sums - _SAFE * np.sqrt(variances)))

    def _covers(self, reach: _Reach) -> Covers:
        """All values of the octaves that are covered, and none beyond."""
        line = self.trees.cells.line
        return Covers(self._end(reach, reach.down, -1, line.down), self._end(reach, reach.up, 1, line.up))

    def _end(self, reach: _Reach, octaves: int, side: int, length: int) -> End:
        lost = (self.laid.most > 0.0) & ~reach.inside & (self.trees.cells.sides == side)
        at, whole = self.trees.cells.line.number(side * min(length, (1 << octaves) - 1)), not bool(lost.any())
        return End(at, None if whole else at, whole)

    def _extremes(self, counted: Floats, joint: Joint) -> tuple[float, float]:
        """Between which offsets all rows lie that count; where there may be none, all that are asked for."""
        some = (counted if joint.sure else self.trees.cells.numbers) * self.laid.most > 0.0
        if not bool(some.any()):
            return -float(self.trees.cells.line.down), float(self.trees.cells.line.up)
        return float(self.laid.low[some].min()), float(self.laid.high[some].max())

    def _rows(self, counted: Floats) -> Answer:
        weights = self.laid.share * counted
        return Answer(
            self._value(weights),
            lambda: math.sqrt(self._covariance(weights, weights, np.zeros_like(weights))),
            lambda beta: self._bounds(counted, counted, beta),
            0.0 if bool((self.laid.least >= 0.0).all()) else -math.inf,
        )

    def _value(self, weights: Floats) -> float:
        return float(self._nodes(weights) @ self.trees.measured)

    def _covariance(self, one: Floats, other: Floats, within: Floats) -> float:
        """Of two weighted sums: by noise, by where rows lie in their cells, and which of them are counted."""
        noise = float(self._nodes(one) @ self._nodes(other)) * self.trees.variance
        cut = np.flatnonzero(self.laid.least < self.laid.most)
        whole = np.maximum(self._held(cut), 0.0)
        inside = np.where(self.laid.share > 0.0, self.laid.share, 1.0)
        uncounted = (1.0 - self.laid.share[cut]) * self.laid.share[cut] * whole**2
        lost = float(((one / inside)[cut] * (other / inside)[cut]) @ uncounted)
        spread = max(0.0, self._value(self.laid.share * within))
        return noise + lost + spread

    def _held(self, cells: Ints) -> Floats:
        """The estimated counts of some cells."""
        units = np.zeros((cells.size, self.trees.cells.size))
        units[np.arange(cells.size), cells] = 1.0
        return np.asarray(self.trees.tree.plain(units).nodes @ self.trees.measured)

    def _joint(self, top: Floats, bottom: Floats, within: Floats) -> Joint:
        share, none = self.laid.share, np.zeros_like(within)
        return Joint(
            self._value(share * top),
            self._value(share * bottom),
            self._covariance(share * top, share * top, within * bottom),
            self._covariance(share * bottom, share * bottom, none),
            self._covariance(share * top, share * bottom, none),
        )

    def _bounds(self, low: Floats, high: Floats, beta: float) -> tuple[float, float]:
        """Bounds on a sum of rows that add between low and high each, whatever octaves are covered."""
        first = np.where(low >= 0.0, self.laid.least, self.laid.most) * low
        last = np.where(high >= 0.0, self.laid.most, self.laid.least) * high
        octaves = self.trees.cells.octaves.max() + 1
        share = beta / (2.0 * float(octaves) ** 2)
        return self._value(first) - self._reach(first, share), self._value(last) + self._reach(last, share)

    def _reach(self, weights: Floats, beta: float) -> float:
        nodes = self._nodes(weights)
        return laplace_mix_reach(nodes, np.full(nodes.size, float(1 / self.trees.scale)), beta)

    def _nodes(self, weights: Floats) -> Floats:
        return self.trees.tree.plain(weights).nodes
