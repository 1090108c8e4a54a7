"""Releases of all nodes of a hierarchy: counties, tracts and blocks, each level with noise of its own.

Estimates are the least-squares solution of all noisy counts, made non-negative from the top down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, least_sum
from partita.arrays import Floats, Ints, UInts
from partita.domain.nodes import MOST_LEVELS, count_covers, nest_ranges
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_probability, freeze
from partita.public.axis.base import AxisRelease, Json, Parts, PartsReader, Term
from partita.public.axis.curve import Curve
from partita.public.axis.shrinkage import spread_over, sum_spans
from partita.public.axis.tree_solver import Families, TreeLevel, TreeShape, TreeSolver
from partita.public.base import checkpoint, damaged
from partita.public.bounds import RangePosition, chernoff, laplace_variances, log_moments, overlay_runs

LARGEST_SIZE: Final = 2**24
"""The counts of all nodes are in memory."""

_MOST_KINDS: Final = MOST_LEVELS * (MOST_LEVELS + 1) // 2
_POINTS: Final = np.linspace(0.0, 1.0, 130)[1:-1]
"""Where Chernoff bounds are tried, as shares of the largest point; each gives a valid bound."""
_BLOCK: Final = 2**16  # ranges whose variances are found together


class LevelSpan(NamedTuple):
    """The levels that a node stands for: from its own to the one above the nodes below it."""

    first: int
    last: int


@final
@dataclass(frozen=True, eq=False)
class Levels:
    """The nodes that are counted, below a root that is not, and for each the levels that it stands for.

    A node with a single node below it is counted once, for both. A label above the lowest level stands
    for itself on all levels below its own. So every cell has exactly one node for each level.
    """

    shape: TreeShape
    kinds: Ints
    """For each node but the root, which of the spans it has."""

    spans: tuple[LevelSpan, ...]

    @staticmethod
    def of(size: int, ranges: Sequence[tuple[int, int]]) -> Levels:
        """The nodes above the cells 0, ..., size-1 as ranges of cells, each before those inside of it."""
        depths, nodes = nest_ranges(ranges, size), np.array(ranges, np.int64).reshape(-1, 2)
        wide = nodes[:, 1] > nodes[:, 0]
        lowest = int(depths.max(initial=-1)) + 1
        top = count_covers(nodes, size) - count_covers(nodes[~wide], size)
        cells = np.column_stack([np.arange(size), np.arange(size), top, np.full(size, lowest)])
        outer = _join_chains(nodes[wide], depths[wide])
        rows = np.concatenate([outer[:, :4], cells])
        level = np.concatenate([outer[:, 4], count_covers(outer[:, :2], size)])
        order = np.lexsort([rows[:, 0], level])
        rows, level = rows[order], level[order]
        spans, kinds = np.unique(rows[:, 2:], axis=0, return_inverse=True)
        ends = np.array([0, size - 1], np.uint64)
        found = [TreeLevel(ends[:1], ends[1:], np.ones(1, np.bool_))]
        for each in range(int(level[-1]) + 1):
            first, last = rows[level == each, :2].T
            found.append(TreeLevel(first.astype(np.uint64), last.astype(np.uint64), last > first))
        return Levels(
            TreeShape.join(found), kinds.ravel(), tuple(LevelSpan(*span) for span in spans.tolist())
        )

    @property
    def number(self) -> int:
        """How many levels there are."""
        return max(span.last for span in self.spans) + 1

    def of_level(self, level: int) -> Ints:
        """The nodes of a level; they make up all cells."""
        there = np.array([span.first <= level <= span.last for span in self.spans])
        return np.flatnonzero(there[self.kinds]) + 1

    @property
    def common(self) -> LevelSpan | None:
        """The levels of the one node that holds all cells, if there is one."""
        return self.spans[self.kinds[0]] if self.shape.levels[1] == 1 else None

    def weights(self, shares: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The share of each kind of node: the sum of those of its levels."""
        return tuple(sum(shares[span.first : span.last + 1], Fraction(0)) for span in self.spans)

    def solver(self, variances: Floats) -> TreeSolver:
        """What puts counts together that have a variance for each kind."""
        precision = np.concatenate([np.zeros(1), (1.0 / variances)[self.kinds]])
        return TreeSolver(self.shape, precision, np.zeros(precision.size))

    def deviations(self, variances: Floats) -> list[float]:
        """The root of the mean variance of the estimates of each level's nodes."""
        found = self.solver(variances).variances
        return [math.sqrt(found[self.of_level(level)].mean()) for level in range(self.number)]


def _join_chains(nodes: Ints, depths: Ints) -> Ints:
    """Nodes of one range after another as one: its first and last cell, its first and last level, and how
    many such nodes are around it.
    """
    new = np.ones(len(nodes), np.bool_)
    new[1:] = (nodes[1:] != nodes[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(nodes)) - 1
    joined = nodes[starts]
    if not len(joined):
        return np.zeros((0, 5), np.int64)
    around = count_covers(joined, int(joined[:, 1].max()) + 1)[joined[:, 0]]
    _, first, number = np.unique(joined[:, 0], return_index=True, return_counts=True)
    inside = np.repeat(first + number, number) - np.arange(len(joined))
    return np.column_stack([joined, depths[starts], depths[ends], around - inside])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class HierarchyRelease(AxisRelease):
    """Noisy counts of all nodes of a hierarchy over the cells but its root; a kind of node has one scale.

    Ranges are sums of estimates of cells, which are never negative and add up to those of the nodes above
    them. Errors and intervals are those of the unbiased estimates before negative ones were raised.
    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    kind: ClassVar[str] = "hierarchy"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"hierarchy": ("HRMS10",)}
    max_series: ClassVar[int] = 5

    size: int = field(init=False)
    shape: TreeShape
    scale_numbers: Ints
    noisy: NDArray[Any]
    scales: tuple[Fraction, ...]
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        freeze(self, size=int(self.shape.last[0]) + 1)

    @cached_property
    def rates(self) -> Floats:
        """The inverse of the scale of each kind."""
        return np.array([float(1 / scale) for scale in self.scales])

    @cached_property
    def solver(self) -> TreeSolver:
        """What puts all noisy counts together."""
        precision = np.concatenate([np.zeros(1), (1.0 / laplace_variances(self.rates))[self.scale_numbers]])
        return TreeSolver(self.shape, precision, np.zeros(precision.size))

    @cached_property
    def unbiased(self) -> Floats:
        """The least-squares estimate of each cell, negative ones too."""
        counts, inner = np.append(0.0, self.noisy.astype(np.float64)), self.shape.expanded
        leaves = counts[self.shape.leaves]
        low, behind = (ends[inner] for ends in self.shape.spans)
        lacking = self.solver.precision[inner] * (counts[inner] - sum_spans(low, behind, leaves))
        return leaves + self.solver(spread_over(low, behind, lacking, leaves.size))

    @cached_property
    def cells(self) -> Floats:
        """The estimate of each cell: from the total down, siblings that would be negative are raised to zero.

        The others give what that takes, each in proportion to its variance, so that no node above changes.
        """
        sums = sum_spans(*self.shape.spans, self.unbiased)
        sums[0] = max(0.0, sums[0])
        for family in self.shape.families:
            checkpoint()
            own, doubt = sums[family.nodes], self.solver.conditional[family.nodes]
            lacking = (sums[family.parents] - family.sum(own)) / family.sum(doubt)
            sums[family.nodes] = _raise_negative(family, own + doubt * family.spread(lacking), doubt, sums)
        return np.asarray(sums[self.shape.leaves])

    @cached_property
    def curve(self) -> Curve:
        """Cumulative counts of the cells."""
        return Curve(self.shape.last[self.shape.leaves], self.cells)

    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the terms, from the estimates of cells.

        The interval is about the unbiased estimate, and reaches as far as the value.
        """
        ranges = self._check_terms(terms)
        runs = list(overlay_runs((low, high + 1, sign) for low, high, sign in ranges))
        least = least_sum(each.sign for each in ranges)
        value, centre = (
            float(sum(factor * (upto[stop] - upto[first]) for first, stop, factor in runs))
            for upto in (self.curve.before, self._unbiased_before)
        )
        factors = [factor for _, _, factor in runs]
        largest = max([0, *factors]) - min([0, *factors])
        spread = Deviation(self, runs, float(largest))

        def bounds(beta: float) -> tuple[float, float]:
            return centre - spread.reach(beta), centre + spread.reach(beta)

        plain = Answer(centre, lambda: spread.error, bounds, -math.inf)

        def likely(beta: float) -> tuple[float, float]:
            below, above = Answer(centre, plain.spread, bounds, kurtosis=spread.kurtosis).sides(1 - beta)
            return min(centre - below, value), max(centre + above, value)

        return Answer(value, plain.spread, bounds, least, likely=likely)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        low, high = self._check_ranges(lows, highs)
        return np.asarray(self.curve.before[high + np.uint64(1)] - self.curve.before[low])

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors of the unbiased estimates, exactly."""
        low, high = (ends.astype(np.intp) for ends in self._check_ranges(lows, highs))
        found = np.zeros(low.shape)
        for start in range(0, low.size, _BLOCK):
            checkpoint()
            some = slice(start, start + _BLOCK)
            found[some] = np.sqrt(self.variances(low[some], high[some]))
        return found

    def variances(self, lows: NDArray[np.intp], highs: NDArray[np.intp]) -> Floats:
        """The variances of the unbiased estimates of ranges."""
        none, whole = np.zeros(lows.shape), np.ones(lows.shape)
        return self.solver.range_variances(RangePosition(lows, none), RangePosition(highs, whole))

    def error(self, beta: float) -> float:
        """A range is a difference of two prefixes, each within its bound at its share of beta.

        On top of it comes by how much raising negative estimates has moved any range.
        """
        chance = float(check_probability(beta)) / self.size
        cells = np.arange(self.size, dtype=np.uint64)
        largest = float(self.errors(np.zeros_like(cells), cells).max()) ** 2
        moved = self.curve.before - self._unbiased_before
        return 2 * self.reach(largest, 1.0, chance) + float(moved.max() - moved.min())

    def reach(self, variance: float, largest: float, beta: float) -> float:
        """t such that a question of this variance misses by more with probability at most beta.

        No noise has a larger weight in it than `largest` times the largest gain of its kind. ln M(w x) / w^2
        grows with w: of all sums of one variance those with the largest weights reach furthest.
        """
        caps = largest * self._gains
        points = float((self.rates / caps).min()) * _POINTS
        moments = [
            log_moments(points * cap, np.full(points.size, rate)) / (cap**2 * noise)
            for cap, rate, noise in zip(caps, self.rates, laplace_variances(self.rates), strict=True)
        ]
        return float(chernoff(points, variance * np.max(moments, axis=0), beta / 2).min())

    def kurtosis(self, variance: float, largest: float) -> float:
        """An upper bound on the excess kurtosis of a question of this variance."""
        noise, fading = laplace_variances(self.rates), np.exp(-self.rates)
        each = (1.0 + 4.0 * fading + fading**2) / (2.0 * fading)
        alone = float(each.max())
        return min(alone, float(((largest * self._gains) ** 2 * noise * each).max()) / variance)

    def parts(self) -> Parts:
        """The shape of the hierarchy, and the noisy count of each node."""
        scales: list[Json] = [str(scale) for scale in self.scales]
        shape = {"levels": self.shape.levels, "first": self.shape.first, "last": self.shape.last}
        return Parts({"scales": scales}, {**shape, "scale_numbers": self.scale_numbers, "noisy": self.noisy})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        reader = PartsReader(parts)
        reader.expect(facts=("scales",), series=("levels", "first", "last", "scale_numbers", "noisy"))
        first, last = reader.row("first", np.uint64), reader.row("last", np.uint64)
        numbers, scales = reader.row("scale_numbers", np.int64), reader.scales("scales", most=_MOST_KINDS)
        if first.size != last.size or numbers.size != first.size - 1 or int(last[0]) >= LARGEST_SIZE:
            raise damaged("nodes", f"must be as many of each kind, over at most {LARGEST_SIZE} cells")
        if bool((numbers < 0).any()) or int(numbers.max(initial=0)) >= len(scales):
            raise damaged("scale_numbers", "must be those of the scales")
        expanded = last > first
        expanded[0] = True
        return cls(
            shape=TreeShape(reader.row("levels", np.int64), first, last, expanded),
            scale_numbers=numbers,
            noisy=reader.noisy("noisy", count=numbers.size),
            scales=scales,
            guarantee=guarantee,
        )

    @cached_property
    def _unbiased_before(self) -> Floats:
        """The unbiased estimate of what lies before each cell, and of all at the end."""
        return np.concatenate([np.zeros(1), np.cumsum(self.unbiased)])

    @cached_property
    def _gains(self) -> Floats:
        """The largest weight that a noisy count of each kind has in its own node."""
        found = np.full(len(self.scales), 1e-9)
        np.maximum.at(found, self.scale_numbers, self.solver.gains[1:])
        return found


@final
@dataclass(frozen=True, eq=False)
class Deviation:
    """How far the unbiased estimate of one question lies from the truth: `runs` of cells with factors."""

    release: HierarchyRelease
    runs: list[tuple[int, int, int]]
    largest: float

    @cached_property
    def variance(self) -> float:
        """Of the estimate: by a climb for one range, by the solver for several."""
        if not self.runs:
            return 0.0
        if len(self.runs) == 1:
            ((first, stop, factor),) = self.runs
            (found,) = self.release.variances(np.array([first]), np.array([stop - 1]))
            return float(factor**2 * found)
        weights = np.zeros(self.release.size)
        for first, stop, factor in self.runs:
            weights[first:stop] = factor
        return float(weights @ self.release.solver(weights))

    @property
    def error(self) -> float:
        """The standard error."""
        return math.sqrt(self.variance)

    @property
    def kurtosis(self) -> float:
        """An upper bound on the excess kurtosis."""
        return self.release.kurtosis(self.variance, self.largest) if self.runs else 0.0

    def reach(self, beta: float) -> float:
        """t such that the estimate misses by more with probability at most beta."""
        return self.release.reach(self.variance, self.largest, beta) if self.runs else 0.0


def _raise_negative(family: Families, wanted: Floats, doubt: Floats, sums: Floats) -> Floats:
    """Counts >= 0 that add up to their parents and are nearest to what is wanted, weighed by 1 / doubt.

    Each is lowered by an amount in proportion to its doubt, and cut off at zero: by the largest amount that
    some number of the greatest, in units of their doubt, would need if no other were left.
    """
    short = np.minimum.reduceat(wanted, family.starts) < 0.0
    if not short.any():
        return wanted
    chosen, sizes = np.repeat(short, family.sizes), family.sizes[short]
    own, weight = wanted[chosen], doubt[chosen]
    group = np.repeat(np.arange(sizes.size), sizes)
    starts = np.cumsum(sizes) - sizes
    order = np.lexsort([-own / weight, group])
    needed = _running(own[order], starts, sizes) - np.repeat(sums[family.parents][short], sizes)
    amount = np.maximum.reduceat(needed / _running(weight[order], starts, sizes), starts)
    found = wanted.copy()
    found[chosen] = np.maximum(own - np.repeat(amount, sizes) * weight, 0.0)
    return found


def _running(values: Floats, starts: Ints, sizes: Ints) -> Floats:
    """Running sums, which begin anew in each group."""
    upto = np.cumsum(values)
    return np.asarray(upto - np.repeat(upto[starts] - values[starts], sizes))
