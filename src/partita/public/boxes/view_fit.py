"""Views of single columns joined with boxes: exact answers about one column, least squares for the rest."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Final, NamedTuple, final

import numpy as np

from partita.answer import Answer, least_sum
from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.lazy import cached_property
from partita.numbers import check_probability
from partita.public.axis.curve import Curve, fit_curve
from partita.public.axis.tree_solver import Families
from partita.public.bounds import Run, laplace_variance, laplace_variances, overlay_runs, repeated_reach
from partita.public.boxes.base import BoxTerm, EngineQuestions, Region, check_boxes, check_terms
from partita.public.boxes.cover import variances_of_sums
from partita.public.boxes.density import (
    BoxDensity,
    Measure,
    Stretches,
    accumulate_along,
    distribution,
    share_out,
    to_measure,
)
from partita.public.boxes.engine import BoxEngine
from partita.public.boxes.grid import GridRelease
from partita.public.boxes.plain_view import PlainView
from partita.public.boxes.plan import Corners, sum_upwards, volumes
from partita.public.boxes.rank_boxes import RankBoxesRelease, RankSides
from partita.public.boxes.view_audits import Factors

_STEPS: Final = 200
_TOLERANCE: Final = 1e-10  # of the squared residual: conjugate gradients stop there, or after so many steps
_DOUBT: Final = 0.5  # of what a leaf may hold otherwise than its spread says; chosen by errors of boxes
# An axis of at most so many positions is spread inside of leaves as all leaves together are. Hours per week,
# most of them 40, then had errors of cells .6 to .7 of those with even leaves; 2,000 minutes of delay, with
# long tails, had errors of ranges 1.2 times as large.
_MOST_MEASURED: Final = 1024
# Standard errors beside views: those of the leaves by this factor, 1.3 without views; of cut leaves this part
# of what all rows on one side would make; and this part of the rows in doubt where leaves err alike. Chosen
# on four pairs of columns (docs/mechanisms/viewed_boxes.md). With 1.3, 1 and 0 95% intervals covered 94% to
# 100%, 2.9 to 10 times as wide as the mean error; without the last one 77% to 84% of labels in ranges.
_WIDENING, _ONE_SIDED, _ALIKE = 1.15, 0.25, 1.0
_ONE_ROW: Final = 0.27  # the least variance of a count: 1.96 standard errors reach from none to a single row
# The same for rank boxes. Leaves one behind another along a column that is not asked for have their rows on
# the same side of a cut: so much of the variance that this makes counts, but no more than this part of the
# squared value; and so much of what the views say of the sides. Before, 95% intervals of a label in a range
# of days covered 87% at epsilon 1, three columns of made-up trips; with these 91%.
_RANKS_WIDENING, _RANKS_FACTORS = 0.9, Factors(leaf=0.15, alike=1.0)
_ALIGNED, _MOST_ALIGNED, _OF_SIDES = 0.15, 0.16, 0.5


class NoisyTotal(NamedTuple):
    """A noisy number of all rows, with noise of `scale`."""

    value: int
    scale: Fraction


@final
@dataclass(frozen=True, eq=False)
class ViewedColumn:
    """Sums of the positions of a viewed column: the best linear combination of its counts and the total.

    With K counts of variance v and a total of variance t, every count gets the same part of what all of them
    lack of the total, g = v / (K v + t). That is least squares: a sum of m positions has the variance
    m v (1 - m g). It is less than m v, and less than that of the total and the other positions. Without a
    total g is zero.
    """

    view: PlainView
    total: NoisyTotal | None

    @cached_property
    def part(self) -> float:
        """The part g of what the counts lack that each of them gets."""
        if self.total is None:
            return 0.0
        return self._variance / (self.view.axis.width * self._variance + laplace_variance(self.total.scale))

    @cached_property
    def lacking(self) -> float:
        """What the counts lack of the total."""
        return 0.0 if self.total is None else float(self.total.value - int(self.view.row.running[-1]))

    def answer(self, runs: Sequence[Run]) -> Answer:
        """The signed sum of runs of positions."""
        overlaid = list(overlay_runs(runs))
        sizes = np.array([float(stop - first) for first, stop, _ in overlaid])
        factors = np.array([float(factor) for _, _, factor in overlaid])
        firsts, stops = (np.array([run[end] for run in overlaid], np.int64) for end in (0, 1))
        noises = self._noises(sizes, factors)
        value = float(
            factors @ self.view.row.sums(firsts, stops) + self.part * (sizes @ factors) * self.lacking
        )

        def bounds(beta: float) -> tuple[float, float]:
            reach = noises.reach(beta)
            return value - reach, value + reach

        least = least_sum(1 if factor > 0 else -1 for factor in factors.tolist())
        return Answer(
            value, partial(self._deviation, sizes, factors), bounds, least, "measured", noises.kurtosis
        )

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The sum of each run of positions low, ..., high."""
        firsts, stops = lows.astype(np.int64), highs.astype(np.int64) + 1
        return np.asarray(self.view.row.sums(firsts, stops) + self.part * (stops - firsts) * self.lacking)

    def errors(self, sizes: Floats) -> Floats:
        """The standard error of the sum of so many positions."""
        return np.sqrt(self._variance * sizes * np.maximum(0.0, 1.0 - self.part * sizes))

    def error(self, beta: float) -> float:
        """With probability 1 - beta no run at all misses the truth by more.

        A run misses by its own noise, and by its part of the noise of everything.
        """
        width = self.view.axis.width
        own = self.view.row.reach(width, beta / (width * (width + 1)))
        if self.total is None:
            return own
        return own + _Noises(np.ones(2), self._rates, np.array([float(width), 1.0])).reach(beta / 2)

    @cached_property
    def curve(self) -> Curve:
        """Cumulative counts over the positions: the monotone curve nearest to the sums."""
        places = np.arange(self.view.axis.width, dtype=np.uint64)
        return fit_curve(places, self.counts(np.zeros_like(places), places))

    def _deviation(self, sizes: Floats, factors: Floats) -> float:
        """The standard error of a sum of positions, so many of them with each factor."""
        if bool((factors == 1.0).all()):
            return float(self.errors(np.array(sizes.sum())))
        square, whole = float(sizes @ factors**2), float(sizes @ factors)
        return math.sqrt(self._variance * max(0.0, square - self.part * whole**2))

    def _noises(self, sizes: Floats, factors: Floats) -> _Noises:
        """All noises in a sum of positions, so many of them with each factor."""
        part = self.part * float(sizes @ factors)
        others = self.view.axis.width - float(sizes.sum())
        view, total = self._rates.tolist()
        return _Noises(
            np.concatenate([factors - part, [-part, part]]),
            np.concatenate([np.full(factors.size + 1, view), [total]]),
            np.concatenate([sizes, [others, 1.0]]),
        )

    @cached_property
    def _variance(self) -> float:
        return laplace_variance(self.view.scale)

    @cached_property
    def _rates(self) -> Floats:
        total = self.view.scale if self.total is None else self.total.scale
        return np.array([float(1 / self.view.scale), float(1 / total)])


class _Noises(NamedTuple):
    """Independent noises by their factor and their rate, and how many there are of each."""

    factors: Floats
    rates: Floats
    numbers: Floats

    @property
    def kurtosis(self) -> float:
        """The excess kurtosis of their sum: three for one Laplace noise, and less for a sum of several."""
        variances = self.numbers * self.factors**2 * laplace_variances(self.rates)
        squares = 3.0 * float((variances * self.factors**2 * laplace_variances(self.rates)).sum())
        return squares / max(float(variances.sum()) ** 2, sys.float_info.min)

    def reach(self, beta: float) -> float:
        """Their sum leaves [-t, t] with probability at most beta."""
        used = (self.factors != 0.0) & (self.numbers > 0.0)
        if not bool(used.any()):
            return 0.0
        return repeated_reach(np.abs(self.factors[used]), self.rates[used], self.numbers[used], beta / 2)


@final
@dataclass(frozen=True, eq=False)
class _Spread:
    """How the count of each leaf is spread over the positions of a viewed axis: in proportion to a mass.

    A leaf from position `first` to the one before `stop` has the share mass[i] / (mass of all of these) at i.
    Neither products with the matrix of shares nor with its squares need it: sums up to each position do.
    """

    mass: Floats
    first: Ints
    stop: Ints

    @cached_property
    def within(self) -> Floats:
        """The mass between the ends of each leaf."""
        upto = np.concatenate([[0.0], np.cumsum(self.mass)])
        return np.asarray(upto[self.stop] - upto[self.first])

    def project(self, counts: Floats, power: int = 1) -> Floats:
        """For each position the sum over leaves of count times share, or share to a power."""
        each, size = counts / self.within**power, self.mass.size + 1
        steps = np.bincount(self.first, each, minlength=size) - np.bincount(self.stop, each, minlength=size)
        return np.asarray(self.mass**power * np.cumsum(steps)[:-1])

    def gather(self, numbers: Floats) -> Floats:
        """For each leaf the mean of a number of each position, by share."""
        upto = np.concatenate([[0.0], np.cumsum(self.mass * numbers)])
        return np.asarray((upto[self.stop] - upto[self.first]) / self.within)


@final
@dataclass(frozen=True, eq=False)
class TreeCovariance:
    """How the errors of the leaves of a solved tree go together.

    The error of a node is shared out among its children by their variances d from below, and to each of them
    an error of its own is added that cancels in their sum: d_i in place i, less d d' / sum d. That is the
    posterior of `BoxSolution`, so many leaves together err by no more than the looks above them allow.
    """

    families: list[Families]
    variances: Floats
    """Of every node, from what is known of it and of everything below it."""
    leaves: Bools

    @cached_property
    def shares(self) -> Floats:
        """The share of each node in the error of its parent; nothing where a whole family is known."""
        shares = np.ones_like(self.variances)
        for family in self.families:
            own = self.variances[family.nodes]
            every = family.spread(family.sum(own))
            shares[family.nodes] = np.divide(own, every, out=np.zeros_like(own), where=every > 0.0)
        return shares

    def apply(self, weights: Floats) -> Floats:
        """The covariance matrix of the leaves times a weight for each leaf."""
        sums = np.zeros_like(self.variances)
        sums[self.leaves] = weights
        for family in reversed(self.families):
            sums[family.parents] = family.sum(self.shares[family.nodes] * sums[family.nodes])
        found = np.zeros_like(sums)
        found[0] = self.variances[0] * sums[0]
        for family in self.families:
            own, above = self.variances[family.nodes], family.spread(found[family.parents])
            apart = sums[family.nodes] - family.spread(sums[family.parents])
            found[family.nodes] = self.shares[family.nodes] * above + own * apart
        return np.asarray(found[self.leaves])


def fit_leaves(
    engine: BoxEngine, covariance: TreeCovariance, columns: Mapping[int, ViewedColumn]
) -> BoxEngine:
    """The same tree, its leaves drawn towards the views, and spread by these inside.

    Least squares: the leaves x minimise (x - x0)' C^-1 (x - x0) + sum (y - F x)^2 / (v + q) over all
    positions of all views, where C is the covariance of the leaves, F spreads each leaf by the view, and q is
    what F cannot know about the rows inside of leaves. Then counts are made >= 0, from the root down.
    """
    if not columns:
        return engine
    leaves = engine.nodes.leaves
    lows, highs = (corners.astype(np.int64) for corners in engine.nodes.corners(leaves))
    views = [
        _Evidence(
            _Spread(column.view.shares.counts, lows[:, axis], highs[:, axis] + 1),
            column.view.noisy.astype(np.float64),
            laplace_variance(column.view.scale),
        )
        for axis, column in columns.items()
    ]
    wanted = _solve(engine.values[leaves], covariance, views)
    values = project_down(covariance.families, leaves, wanted)
    viewed = [
        to_measure(columns[axis].view.shares) if axis in columns else measure
        for axis, measure in enumerate(engine.measures)
    ]
    density = BoxDensity.of(engine.nodes, viewed, values, engine.variances)
    measures = [measure or _find_measure(density, axis) for axis, measure in enumerate(viewed)]
    return replace(engine, measures=measures, values=values, widening=_WIDENING, one_sided=_ONE_SIDED)


def _find_measure(density: BoxDensity, axis: int) -> Measure:
    """How rows lie along an axis without a view, by the leaves themselves; None if it has many positions.

    Small leaves of large labels show where rows gather, and larger leaves of the other labels follow them.
    """
    if int(density.nodes.highs[0, axis]) >= _MOST_MEASURED:
        return None
    counts = density.held.values[density.nodes.leaves]
    return to_measure(distribution(accumulate_along(density, axis, counts)))


class _Evidence(NamedTuple):
    """Noisy counts of the positions of an axis, of one variance, and how leaves are spread over them."""

    spread: _Spread
    noisy: Floats
    variance: float

    def weigh(self, leaves: Floats) -> Floats:
        """The variance of each position if the leaves were known: noise, and how they may be spread."""
        doubt = self.spread.project(leaves**2) - self.spread.project(leaves**2, power=2)
        return np.asarray(self.variance + _DOUBT**2 * np.maximum(doubt, 0.0))


def _solve(start: Floats, covariance: TreeCovariance, views: Sequence[_Evidence]) -> Floats:
    """Leaves between their own estimates and the views, by least squares in the dual."""
    ends = np.cumsum([view.noisy.size for view in views])[:-1]
    noisy = np.concatenate([view.noisy for view in views])
    noise = np.concatenate([view.weigh(start) for view in views])

    def project(leaves: Floats) -> Floats:
        return np.concatenate([view.spread.project(leaves) for view in views])

    def gather(numbers: Floats) -> Floats:
        parts = zip(views, np.split(numbers, ends), strict=True)
        return np.asarray(sum(view.spread.gather(part) for view, part in parts))

    def normal(numbers: Floats) -> Floats:
        return project(covariance.apply(gather(numbers))) + noise * numbers

    own = covariance.variances[covariance.leaves]
    diagonal = noise + np.concatenate([view.spread.project(own, power=2) for view in views])
    return start + covariance.apply(gather(_conjugate(normal, noisy - project(start), diagonal)))


def project_down(families: list[Families], leaves: Bools, wanted: Floats) -> Floats:
    """Counts >= 0 of all nodes near those wanted of the leaves, each the sum of its children.

    From the root down siblings are projected on counts >= 0 with the sum of their parent: what is added to
    a leaf below zero is taken from its siblings, so that larger boxes stay as they are.
    """
    values = np.zeros(leaves.size)
    values[leaves] = wanted
    values = sum_upwards(families, values)
    values[0] = max(0.0, values[0])
    for family in families:
        values[family.nodes] = share_out(family, values[family.nodes], values)
    return values


def _conjugate(apply: Callable[[Floats], Floats], right: Floats, diagonal: Floats) -> Floats:
    """x with apply(x) = right, by conjugate gradients with the diagonal as preconditioner."""
    found, residual = np.zeros_like(right), right.copy()
    scaled = residual / diagonal
    direction, left = scaled.copy(), float(residual @ scaled)
    enough = _TOLERANCE * left
    for _ in range(_STEPS):
        if left <= enough:
            break
        image = apply(direction)
        step = left / float(direction @ image)
        found += step * direction
        residual -= step * image
        scaled = residual / diagonal
        left, before = float(residual @ scaled), left
        direction = scaled + left / before * direction
    return found


@final
@dataclass(frozen=True, eq=False)
class FittedBoxes(EngineQuestions):
    """Questions to a tree whose leaves were drawn towards views.

    Standard errors of counts below one are smaller than those of the tree, which adds one to every variance:
    a count is a whole number. Where less than one row is expected, it is mostly zero, and its variance is
    about what is expected; but a single row stays in a 95% interval. They are larger where many leaves in a
    row are cut in the same way, as those of one label in a range are: then leaves err alike, and the view
    that tells labels of a leaf apart has noise of its own.
    """

    axes: tuple[Axis, ...]
    tree: BoxEngine
    columns: Mapping[int, ViewedColumn]
    alike: float = _ALIKE

    @property
    def engine(self) -> BoxEngine:
        """The tree."""
        return self.tree

    def with_factors(self, factors: Factors) -> FittedBoxes:
        """The same answers with other factors of their errors."""
        return replace(self, tree=replace(self.tree, one_sided=factors.leaf), alike=factors.alike)

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms as one linear question."""
        answer, boxes = super().answer(*terms), check_terms(terms, self.axes)
        lows, highs = _corners(boxes)
        if _is_plain_sum(answer, lows, highs):
            return replace(answer, spread=lambda: float(self.errors(lows, highs, parts=len(boxes))[0]))
        return replace(answer, spread=lambda: math.hypot(answer.error, *self._align(lows, highs, 1)))

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sums of some."""
        tree = super().errors(lows, highs, parts=parts)
        values = self.counts(lows, highs).reshape(-1, parts).sum(axis=1)
        surplus = self.tree.widening**2 * (1.0 - np.clip(values, _ONE_ROW, 1.0))
        alike = self._align(lows, highs, parts)
        return np.asarray(np.sqrt(np.maximum(tree**2 - surplus, 0.0) + alike**2))

    def _align(self, lows: Corners, highs: Corners, parts: int) -> Floats:
        """By how much leaves that are cut in the same way may err together.

        With f the share of a leaf that is inside, the rows in doubt are the sum of f (1-f) rows of each
        leaf. Where they are all of the value, one label is told from others by its view alone; where
        they are few, they lie around a large box and err in different ways. So they count by the root of
        their share: counted by the share itself, boxes of made-up trips were covered .91 instead of .935.
        """
        bounded = np.asarray((lows > 0) | (highs < self._last)).reshape(-1, parts, len(self.axes))
        some = np.flatnonzero(bounded.any(axis=1).sum(axis=1) > 1)
        rows = (some[:, np.newaxis] * parts + np.arange(parts)).ravel()
        found, boxes = np.zeros(len(bounded)), Stretches.along(self.tree.measures, lows[rows], highs[rows])
        if some.size:
            values = self.counts(lows[rows], highs[rows]).reshape(-1, parts).sum(axis=1)
            doubted = np.minimum(variances_of_sums(self._doubts, boxes, parts), values)
            alike = self.alike * doubted * np.sqrt(doubted / np.maximum(values, sys.float_info.min))
            found[some] = np.hypot(alike, self._carry(lows[rows], highs[rows], doubted, parts))
        return found

    def _carry(self, lows: Corners, highs: Corners, doubted: Floats, parts: int) -> Floats:
        """The noise of the views in rows that only they tell apart: these have a share of a side's rows."""
        found = np.zeros(doubted.size)
        for axis, column in self.columns.items():
            low, high = lows[:, axis], highs[:, axis]
            if bool(((low == 0) & (high == self._last[axis])).all()):
                continue
            sizes = ((high - low).astype(np.float64) + 1.0).reshape(-1, parts).sum(axis=1)
            rows = column.counts(low, high).reshape(-1, parts).sum(axis=1)
            found += (doubted / np.maximum(rows, np.maximum(doubted, 1.0)) * column.errors(sizes)) ** 2
        return np.sqrt(found)

    @cached_property
    def _doubts(self) -> BoxDensity:
        """The tree with the rows of leaves in place of their squares, and without noise."""
        held = self.tree.density.held
        nothing = np.zeros_like(held.values)
        return replace(self.tree.density, held=held._replace(variances=nothing, squares=held.values))

    @cached_property
    def _last(self) -> Corners:
        return np.array([axis.width - 1 for axis in self.axes], np.uint64)


def _corners(boxes: Sequence[BoxTerm]) -> tuple[Corners, Corners]:
    """The corners of some boxes, of which there may be none."""
    lows, highs = (np.array([box[end] for box in boxes], np.uint64) for end in (0, 1))
    return lows.reshape(len(boxes), -1), highs.reshape(len(boxes), -1)


def _is_plain_sum(answer: Answer, lows: Corners, highs: Corners) -> bool:
    """Whether an answer is that of some boxes added up, of which no two have a cell in common."""
    meet = (lows[:, None] <= highs) & (lows <= highs[:, None])
    return len(lows) > 0 and answer.least >= 0.0 and int(meet.all(axis=2).sum()) == len(lows)


@final
@dataclass(frozen=True, eq=False)
class FittedRanks(EngineQuestions):
    """Questions to rank boxes with plain views: their answers, with standard errors of their own.

    Inside of a leaf columns are taken to be independent. Where they are not, leaves that differ only along
    ordered columns that are not asked for err alike: their errors add up, and not their variances. Leaves of
    different labels err each in its own way.
    """

    axes: tuple[Axis, ...]
    boxes: RankBoxesRelease
    factors: Factors = _RANKS_FACTORS
    _densities: dict[tuple[int, ...], tuple[BoxDensity, BoxDensity]] = field(
        default_factory=dict, init=False, repr=False
    )

    @property
    def engine(self) -> BoxEngine:
        """The raked tree."""
        return self.boxes.engine

    def with_factors(self, factors: Factors) -> FittedRanks:
        """The same answers with other factors of their errors."""
        return FittedRanks(self.axes, self.boxes, factors)

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms; differences and sums of boxes that overlap have the tree's error."""
        answer, boxes = self.boxes.answer(*terms), check_terms(terms, self.axes)
        lows, highs = _corners(boxes)
        if not _is_plain_sum(answer, lows, highs):
            return answer
        return replace(answer, spread=lambda: float(self.errors(lows, highs, parts=len(boxes))[0]))

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sums of some."""
        lows, highs = check_boxes(lows, highs, self.axes)
        last = np.array([axis.width - 1 for axis in self.axes], np.uint64)
        each = np.asarray((lows > 0) | (highs < last)).reshape(-1, parts, len(self.axes))
        bounded = np.asarray(each.any(axis=1))
        found = np.zeros(len(bounded))
        for kind in np.unique(bounded, axis=0):
            some = np.flatnonzero((bounded == kind).all(axis=1))
            rows = (some[:, np.newaxis] * parts + np.arange(parts)).ravel()
            found[some] = self._ask(kind)(lows[rows], highs[rows], parts=parts)
        return found

    def _ask(self, kind: Bools) -> Callable[..., Floats]:
        """What knows the errors of boxes that bound these axes; if all, no leaves lie one behind another."""
        if kind.sum() < 2:
            return self.boxes.errors
        return self._cut_deviations if kind.all() else partial(self._deviations, kind)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more."""
        return self.boxes.error(beta)

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """How many lie in a public region and in the box."""
        return self.boxes.region(region, box)

    def _cut_deviations(self, lows: Corners, highs: Corners, *, parts: int) -> Floats:
        """The standard errors of boxes that bound all axes."""
        tree = self._cut.errors(lows, highs, parts=parts) ** 2
        sides = RankSides(self.boxes.views, lows, highs)
        return np.sqrt(sides.variances(self.boxes.counts(lows, highs), tree, parts))

    @cached_property
    def _cut(self) -> BoxEngine:
        """The raked tree with what the audit says of rows that lie apart in a leaf."""
        return replace(self.engine, one_sided=self.factors.whole)

    def _deviations(self, kind: Bools, lows: Corners, highs: Corners, *, parts: int) -> Floats:
        """The standard errors of boxes that bound these axes, two or more but not all."""
        axes = np.flatnonzero(kind).tolist()
        leaves, aligned = self._onto(tuple(axes))
        boxes = Stretches.along(leaves.measures, lows[:, axes], highs[:, axes])
        each = self.boxes.counts(lows, highs)
        sides = RankSides(self.boxes.views, lows, highs).carry(each)
        values, carried = (part.reshape(-1, parts).sum(axis=1) for part in (each, sides))
        alike = np.minimum(variances_of_sums(aligned, boxes, parts), _MOST_ALIGNED * values**2)
        own = variances_of_sums(leaves, boxes, parts) + self.factors.alike**2 * alike + _OF_SIDES * carried
        return np.asarray(np.sqrt(own + np.clip(values, _ONE_ROW, 1.0)))

    def _alike(self, axes: tuple[int, ...]) -> float:
        """How much counts that leaves behind one another err alike: not if all others are of labels."""
        others = (view for axis, view in enumerate(self.boxes.views.trees) if axis not in axes)
        return 0.0 if all(isinstance(view, PlainView) for view in others) else _ALIGNED

    def _onto(self, axes: tuple[int, ...]) -> tuple[BoxDensity, BoxDensity]:
        """The tree along some axes, for the variances of its leaves, and for those that err alike."""
        if axes not in self._densities:
            density = self.engine.density
            tree = density.onto(axes)
            held, nothing = tree.held, np.zeros_like(tree.held.values)
            leaves = held._replace(
                variances=_RANKS_WIDENING**2 * held.variances, squares=self.factors.leaf * held.squares
            )
            aligned = held._replace(variances=nothing, squares=self._alike(axes) * held.values**2)
            self._densities[axes] = replace(tree, held=leaves), replace(tree, held=aligned)
        return self._densities[axes]


@final
@dataclass(frozen=True, eq=False)
class FittedGrid:
    """Questions to a grid whose cells were drawn towards views of some axes: least squares.

    All cells have one variance, so the correction of a cell is a sum of one number for each viewed axis, that
    of its position there. The standard errors are those of the grid, which least squares only makes smaller.
    """

    grid: GridRelease
    columns: Mapping[int, ViewedColumn]

    @cached_property
    def corrections(self) -> Mapping[int, Floats]:
        """For each viewed axis the sum of its numbers up to each position, and of none at first."""
        shape, variance = self.grid.shape, laplace_variance(self.grid.scale)
        cells = float(math.prod(shape))
        sums = {axis: self._marginal(axis) for axis in self.columns}
        right = np.concatenate([self.columns[a].view.noisy.astype(np.float64) - sums[a] for a in sums])
        noise = np.concatenate(
            [np.full(shape[a], laplace_variance(self.columns[a].view.scale)) for a in sums]
        )
        ends = np.cumsum([shape[a] for a in sums])[:-1]

        def normal(numbers: Floats) -> Floats:
            """F F' times numbers: cells that a position shares with those of all axes, times the variance."""
            parts = dict(zip(sums, np.split(numbers, ends), strict=True))
            total = sum(float(part.sum()) * cells / shape[a] for a, part in parts.items())
            rows = []
            for axis, part in parts.items():
                others = (total - float(part.sum()) * cells / shape[axis]) / shape[axis]
                rows.append(variance * (part * cells / shape[axis] + others) + 0.0)
            return np.concatenate(rows) + noise * numbers

        diagonal = noise + np.concatenate([np.full(shape[a], variance * cells / shape[a]) for a in sums])
        solved = np.split(variance * _conjugate(normal, right, diagonal), ends)
        return {a: np.concatenate([[0.0], np.cumsum(part)]) for a, part in zip(sums, solved, strict=True)}

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms, corrected."""
        answer, boxes = self.grid.answer(*terms), check_terms(terms, self.grid.axes)
        if not boxes:
            return answer
        lows, highs = (np.array(ends, np.uint64) for ends in list(zip(*boxes, strict=True))[:2])
        signs = np.array([float(box.sign) for box in boxes])
        return replace(answer, value=answer.value + float(signs @ self._correct(lows, highs)))

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """Sums of cells, corrected."""
        return np.asarray(
            self.grid.counts(lows, highs) + self._correct(*check_boxes(lows, highs, self.grid.axes))
        )

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard errors of sums of cells before they are corrected."""
        return self.grid.errors(lows, highs, parts=parts)

    def error(self, beta: float) -> float:
        """That of the grid, and the largest correction of any box, which is released."""
        moved = 0.0
        for axis, upto in self.corrections.items():
            others = math.prod(self.grid.shape) / self.grid.shape[axis]
            moved += others * float(upto.max() - upto.min())
        return self.grid.error(float(check_probability(beta))) + moved

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """The monotone curve closest to the running sums along the axis."""
        ((low, high, _),) = check_terms([box], self.grid.axes)
        places = np.arange(self.grid.shape[axis], dtype=np.uint64)
        lows, highs = (np.tile(np.array(ends, np.uint64), (places.size, 1)) for ends in (low, high))
        lows[:, axis] = highs[:, axis] = places
        return fit_curve(places, np.cumsum(self.counts(lows, highs)))

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """How many lie in a public region and in the box, by the grid alone."""
        return self.grid.region(region, box)

    def points(self, rows: int) -> Corners:
        """Cells of synthetic rows, by the grid alone."""
        return self.grid.points(rows)

    def _marginal(self, axis: int) -> Floats:
        """The sum of the cells at each position of an axis."""
        values = self.grid.sums.values.astype(np.float64)
        return np.asarray(values.sum(axis=tuple(other for other in range(values.ndim) if other != axis)))

    def _correct(self, lows: Corners, highs: Corners) -> Floats:
        """What is added to each box."""
        found, volume = np.zeros(len(lows)), volumes(lows, highs)
        for axis, upto in self.corrections.items():
            first, stop = lows[:, axis].astype(np.int64), highs[:, axis].astype(np.int64) + 1
            found += volume / (stop - first) * (upto[stop] - upto[first])
        return found
