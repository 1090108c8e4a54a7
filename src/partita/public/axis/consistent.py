"""Counts of a hierarchy made consistent: exact least squares over all noisy nodes [HRMS10].

The proof of each formula is in docs/proofs/tree.md, "Consistency".
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, Ints
from partita.lazy import cached_property
from partita.public.axis.base import Hierarchy
from partita.public.bounds import (
    SignedRange,
    chernoff,
    find_changes,
    laplace_variance,
    log_moments,
    repeated_reach,
)

_POINTS: Final = np.linspace(0.0, 1.0, 130)[1:-1]
"""Where Chernoff bounds are tried, as shares of the largest point; each gives a valid bound."""


class _Level(NamedTuple):
    """A number for each node of a level: all nodes but the last are alike, the last may have fewer cells."""

    others: float
    last: float
    number: int

    def at(self, nodes: Ints) -> Floats:
        """The number of each of these nodes."""
        return np.where(nodes == self.number - 1, self.last, self.others)

    def one(self, node: int) -> float:
        """The number of one node."""
        return self.last if node == self.number - 1 else self.others

    def times(self, values: Floats) -> Floats:
        """A value for each node of the level, times its number."""
        product = values * self.others
        product[-1] = values[-1] * self.last
        return product


class _Gap(NamedTuple):
    """So many nodes side by side, all of their cells with one coefficient in a question."""

    coefficient: float
    number: int


class _Family(NamedTuple):
    """Nodes side by side: some by themselves, as places in the row of their level, and the rest in gaps."""

    places: range
    gaps: list[_Gap]


class _Single(NamedTuple):
    """A node in which a coefficient changes, or the last of its level, and the coefficient of its sum."""

    node: int
    mean: float
    family: _Family


@final
@dataclass(frozen=True, eq=False)
class _Question:
    """A coefficient for every cell: it changes at `starts`; `values` begins with that of the cells before."""

    starts: Ints
    values: Floats

    def at(self, cell: int) -> float:
        """The coefficient of a cell."""
        return float(self.values[np.searchsorted(self.starts, cell, side="right")])

    def singles(self, width: int, number: int) -> Ints:
        """The nodes of that many cells that are looked at by themselves."""
        return np.unique(np.append(self.starts // width, number - 1))


@final
@dataclass(frozen=True, eq=False)
class LinearNoise:
    """A weighted sum of independent noises: `times[i]` of them have weight `sizes[i]` and rate `rates[i]`."""

    sizes: Floats
    rates: Floats
    times: Floats
    variance: float

    def reach(self, beta: float) -> float:
        """The sum exceeds this with probability at most beta/2, and so undercuts the negative of it."""
        if not self.sizes.size:
            return 0.0
        return repeated_reach(self.sizes, self.rates, self.times, beta / 2)


@final
@dataclass(frozen=True, eq=False)
class LevelSolver:
    """The best linear unbiased estimates of all counts, from a noisy count of every node of a hierarchy.

    Level l has noise of `scales[l]`. From the leaves up, each node is the mean of its own noisy count and
    the sum of its children, weighed by the inverse of their variances: `own` is the variance of that mean,
    and `below` that of the sum. From the top down, children take what their sum lacks in proportion to
    their variances.
    """

    shape: Hierarchy
    scales: tuple[Fraction, ...]

    @cached_property
    def noise(self) -> tuple[float, ...]:
        """The variance of the noise of each level."""
        return tuple(laplace_variance(scale) for scale in self.scales)

    @cached_property
    def own(self) -> list[_Level]:
        """The variance of each node's estimate from the noisy counts at and below it."""
        found = [_Level(self.noise[0], self.noise[0], self.shape.nodes[0])]
        for level in range(1, self.shape.levels):
            sums = self._sums(found[-1], level)
            others, last = (1.0 / (1.0 / each + 1.0 / self.noise[level]) for each in sums[:2])
            found.append(_Level(others, last, sums.number))
        return found

    @cached_property
    def below(self) -> list[_Level]:
        """The variance of the sum of the children of each node; leaves have none."""
        leaves = _Level(math.inf, math.inf, self.shape.nodes[0])
        return [leaves, *(self._sums(self.own[level - 1], level) for level in range(1, self.shape.levels))]

    def solve(self, levels: Sequence[NDArray[Any]]) -> Floats:
        """The estimate of every cell. Counts that agree already stay as they are, to the last bit."""
        means, sums = [levels[0].astype(np.float64)], [np.zeros(0)]
        for level in range(1, self.shape.levels):
            firsts = np.arange(0, self.shape.nodes[level - 1], self.shape.branching)
            below = np.add.reduceat(means[-1], firsts)
            means.append(below + self._gains[level].times(levels[level].astype(np.float64) - below))
            sums.append(below)
        solved = means.pop()
        for level in range(self.shape.levels - 1, 0, -1):
            inverse = _Level(1.0 / self.below[level].others, 1.0 / self.below[level].last, solved.size)
            lacking = inverse.times(solved - sums[level]).repeat(self.shape.branching)
            children = means.pop()
            solved = children + self.own[level - 1].times(lacking[: children.size])
        return solved

    def variances(self, lows: Ints, highs: Ints) -> Floats:
        """The exact variance of the estimate of each range.

        Given the estimate X of a node, its children vary by diag(c) - c c' / V, c their own variances and V
        the sum of these. A part of a node is w X and something independent of X, of variance `rest`. Both
        ends of a range climb from their leaves until they meet, and then go on as one part.
        """
        low, high, width = lows, highs, self.shape.branching
        weight, other, rest = np.ones(low.shape), np.ones(low.shape), np.zeros(low.shape)
        joined = low == high
        for level in range(self.shape.levels - 1):
            own, up = self.own[level], (low // width, high // width)
            first, last, whole = own.at(low), own.at(high), self.below[level + 1].at(up[0])
            beyond = self.below[level + 1].at(up[1])
            elder, before = (
                (each - width * above) * own.others for each, above in zip((low, high), up, strict=True)
            )
            younger, behind = np.maximum(whole - first - elder, 0.0), np.maximum(beyond - last - before, 0.0)
            middle, outside = (high - low - 1) * own.others, elder + behind
            meets = ~joined & (up[0] == up[1])
            apart = (
                outside * (weight**2 * first + middle + other**2 * last)
                + first * last * (weight - other) ** 2
            )
            apart += middle * (first * (1.0 - weight) ** 2 + last * (1.0 - other) ** 2)
            alone = weight**2 * first * np.maximum(whole - first, 0.0) / whole
            left = first * younger * (1.0 - weight) ** 2 + elder * (weight**2 * first + younger)
            right = last * before * (1.0 - other) ** 2 + behind * (other**2 * last + before)
            rest = rest + np.where(
                joined, alone, np.where(meets, apart / whole, left / whole + right / beyond)
            )
            inside = np.where(joined, 0.0, np.where(meets, middle + other * last, younger))
            weight, other = (weight * first + inside) / whole, (other * last + before) / beyond
            joined, low, high = joined | meets, *up
        top = self.own[-1]
        apart = np.maximum(high - low - 1, 0) * top.others + other**2 * top.at(high)
        return np.asarray(rest + weight**2 * top.at(low) + np.where(joined, 0.0, apart))

    def noise_of(self, terms: Sequence[SignedRange]) -> LinearNoise:
        """The weights that a signed sum of ranges gives to all noises, those alike counted together."""
        cells, after = find_changes(terms, self.shape.size - 1)
        question = _Question(cells.astype(np.int64), np.concatenate([np.zeros(1), after]))
        found = list(self._weights(question))
        levels = np.array([level for level, _, _ in found], np.int64)
        sizes, times = (np.array([each[part] for each in found], np.float64) for part in (1, 2))
        rates, noise = (np.array(each)[levels] for each in ([float(1 / s) for s in self.scales], self.noise))
        sizes = np.abs(sizes)
        used = sizes > 0.0
        variance = float((times * sizes**2 * noise).sum())
        return LinearNoise(sizes[used], rates[used], times[used], variance)

    @cached_property
    def largest_variance(self) -> float:
        """No range has an estimate of a larger variance: the smaller of two bounds.

        One is that of the fewest nodes that cover a range. The other adds up what a climb can add: the
        children of a node have coefficients between 0 and 1, so given their sum the variance is at most a
        quarter of V, on two paths below the node in which a range has both of its ends.
        """
        covers = sum(most * noise for most, noise in zip(self.shape.most, self.noise, strict=True))
        below = [level.others if level.number > 1 else level.last for level in self.below[1:]]
        top = self.own[-1]
        if top.number > 1:
            return min(covers, sum(below) / 2 + top.number * top.others)
        return min(covers, sum(below) / 2 - sum(below[-1:]) / 4 + top.last)

    def largest_reach(self, beta: float) -> float:
        """t such that the estimate of any one range misses by more with probability at most beta.

        No weight of a noise exceeds the gain of its level, and ln M(w x) is convex in w^2: of all sums of
        one variance those with the largest weights reach furthest.
        """
        gains = [max(gain.others, gain.last) for gain in self._gains]
        rates = [float(1 / scale) for scale in self.scales]
        points = min(rate / gain for rate, gain in zip(rates, gains, strict=True)) * _POINTS
        moments = [
            log_moments(points * gain, np.full(points.size, rate)) / (gain**2 * noise)
            for gain, rate, noise in zip(gains, rates, self.noise, strict=True)
        ]
        return float(chernoff(points, self.largest_variance * np.max(moments, axis=0), beta / 2).min())

    @cached_property
    def _gains(self) -> list[_Level]:
        """The weight of a node's own noisy count against the sum of its children; 1 for a leaf."""
        return [
            _Level(own.others / noise, own.last / noise, own.number)
            for own, noise in zip(self.own, self.noise, strict=True)
        ]

    @cached_property
    def _fading(self) -> list[Floats]:
        """For a node of each level that is not the last: the weights of the nodes on each level below.

        They are those of a node whose own estimate has the weight one.
        """
        found = [np.ones(1)]
        for own, below in zip(self.own[1:], self.below[1:], strict=True):
            found.append(np.append(found[-1] * (own.others / below.others), 1.0))
        gains = np.array([gain.others for gain in self._gains])
        return [each * gains[: each.size] for each in found]

    def _sums(self, own: _Level, level: int) -> _Level:
        """The variances of sums of children of the nodes of a level, which have these variances."""
        count, width = self.shape.nodes[level], self.shape.branching
        youngest = own.number - width * (count - 1)
        return _Level(width * own.others, (youngest - 1) * own.others + own.last, count)

    def _weights(self, question: _Question) -> Iterator[tuple[int, float, float]]:
        """(level, weight, how many nodes of it have that weight).

        Below a node whose cells have one coefficient, weights depend on the level only, unless it is the
        last of its level.
        """
        rows, top = self._climb(question), self.shape.levels - 1
        tops = self._family(question, top, 0, [each.node for each in rows[top]])
        yield from self._spread(top, tops.gaps, 0.0)
        owed = [each.mean for each in rows[top]]
        for level in range(top, -1, -1):
            below: list[float] = []
            for single, weight in zip(rows[level], owed, strict=True):
                yield level, weight * self._gains[level].one(single.node), 1.0
                share = self.own[level].one(single.node) / self.below[level].one(single.node)
                passed = weight * share - single.mean
                yield from self._spread(level - 1, single.family.gaps, passed)
                below += [rows[level - 1][place].mean + passed for place in single.family.places]
            owed = below

    def _climb(self, question: _Question) -> list[list[_Single]]:
        """The single nodes of each level: the coefficient of a sum is the mean over its children."""
        rows: list[list[_Single]] = []
        for level, (width, number) in enumerate(zip(self.shape.widths, self.shape.nodes, strict=True)):
            row = []
            for node in question.singles(width, number).tolist():
                family, mean = _Family(range(0), []), question.at(node)
                if level:
                    family = self._family(question, level - 1, node, [each.node for each in rows[-1]])
                    mean = self._sum(level - 1, family, rows[-1]) / self.below[level].one(node)
                row.append(_Single(node, mean, family))
            rows.append(row)
        return rows

    def _family(self, question: _Question, level: int, parent: int, singles: Sequence[int]) -> _Family:
        """The children, on a level, of a node; on the top level all nodes."""
        first, stop, number = 0, self.shape.nodes[level], self.shape.nodes[level]
        if level < self.shape.levels - 1:
            first = self.shape.branching * parent
            stop = min(first + self.shape.branching, number)
        places = range(bisect_left(singles, first), bisect_left(singles, stop))
        gaps = []
        for left, right in pairwise([first - 1, *singles[places.start : places.stop], stop]):
            if right - left > 1:
                gaps.append(_Gap(question.at((left + 1) * self.shape.widths[level]), right - left - 1))
        return _Family(places, gaps)

    def _sum(self, level: int, family: _Family, row: Sequence[_Single]) -> float:
        """The coefficients of the nodes of a family, each times the node's variance."""
        own = self.own[level]
        alone = sum(row[place].mean * own.one(row[place].node) for place in family.places)
        return alone + sum(gap.coefficient * gap.number * own.others for gap in family.gaps)

    def _spread(self, level: int, gaps: Iterable[_Gap], passed: float) -> Iterator[tuple[int, float, float]]:
        """The weights of nodes in gaps and of all nodes below them."""
        for gap in gaps:
            for lower, fading in enumerate(self._fading[level].tolist()):
                number = gap.number * self.shape.branching ** (level - lower)
                yield lower, (gap.coefficient + passed) * fading, float(number)
