"""Correlation and regression line of two columns, from their counts together: free, like any question.

The counts of a grid of bins give the moments. Bins are cut at released quantiles, and a bin stands for its
mean by the released counts of its column. The noise of all bins, with its covariances, gives the error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from partita.answer import CLEAR_DEVIATIONS, Answer, add_basis
from partita.arrays import Floats, UInts
from partita.domain.base import Domain
from partita.domain.numeric import Integer, Real
from partita.errors import check
from partita.frames import Tabular
from partita.html import card, with_interval
from partita.lazy import cached_property
from partita.public.axis.base import Term
from partita.public.axis.curve import Curve
from partita.public.base import checkpoint
from partita.public.boxes.base import BoxRelease, BoxTerm
from partita.public.conditions import Where
from partita.public.results import find_least_cells
from partita.public.views import Along, BoxView, ManyBoxes, ScaledView, find_boxes

_FINE: Final = 64  # bins of a column for moments: more hide less, and take more time
_GROUPS: Final = 6  # groups of bins of a column whose noise is looked up pair by pair: 666 questions in all
_MODEL_GROUPS: Final = 4  # the same of a model, which takes thousandths of a second for each of 136 questions
# The least and the largest number of equal parts of the rows inside of which nothing is taken to be known of
# both columns. With 16 and 8 (of models) intervals of slopes and intercepts held 85% to 90% of 20 releases of
# 5,000 rows at epsilon 1, with 8 and 6 all of 16.
_PARTS: Final = 4, 8
_MODEL_PARTS: Final = 4, 6
_MOST_HIDDEN: Final = 0.5  # where they hide more of the covariance, nothing is known

_CLEAR_ENDS: Final = 2.0  # standard errors: cells at an end of a column that hold fewer rows are left out

Corner: TypeAlias = tuple[int, ...]


@final
@dataclass(frozen=True, eq=False, repr=False)
class RegressionLine(Tabular):
    """The line that fits a column best by another, in the sense of least squares: slope and intercept."""

    column: str
    by: str
    slope: Answer
    intercept: Answer

    @property
    def basis(self) -> str:
        """What both rest on, as it does for `Answer`."""
        return self.slope.basis

    @property
    def note(self) -> str:
        """Over which rows it is, or why there is no line."""
        return self.slope.note or self.slope.about

    @property
    def terms(self) -> dict[str, Answer]:
        """Slope and intercept by their names."""
        return {"slope": self.slope, "intercept": self.intercept}

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """A row for the slope and one for the intercept."""
        lows, highs = zip(*(each.interval() for each in self.terms.values()), strict=True)
        values = [each.value for each in self.terms.values()]
        return {
            "term": list(self.terms),
            "value": values,
            "low": lows,
            "high": highs,
            "basis": [self.basis] * 2,
        }

    def __repr__(self) -> str:
        return f"RegressionLine({self._text}{add_basis(self.basis)})"

    def __str__(self) -> str:
        return f"{self._text}\n{self.note}"

    def _repr_html_(self) -> str:
        facts = [(name, with_interval(each.value, each.interval())) for name, each in self.terms.items()]
        return card(f"{self.column} by {self.by}", [*facts, ("note", self.note)])

    @property
    def _text(self) -> str:
        shown = (f"{name} {with_interval(a.value, a.interval())}" for name, a in self.terms.items())
        return f"{self.column} by {self.by}: {', '.join(shown)}"


class _Bins(NamedTuple):
    """Bins of a column: the first and the last cell of each, and the mean and the variance of its values.

    `beyond` is the share of the rows before the first and behind the last.
    """

    lows: UInts
    highs: UInts
    means: Floats
    variances: Floats
    beyond: float


class _Moments(NamedTuple):
    """Of both columns: rows, means, and variances: of all, of the bins' means, and of those of a few parts.

    `covariance` is that of the bins' means.
    """

    rows: float
    means: Floats
    variances: Floats
    between: Floats
    apart: Floats
    covariance: float

    @property
    def factor(self) -> float:
        """By how much the covariance is more than that of the bins' means, if lines are straight in bins."""
        return float((self.variances / self.between).prod())

    @property
    def hidden(self) -> float:
        """The share of the covariance that lies inside of those parts, then."""
        return 1.0 - float((self.apart / self.variances).prod())


@final
@dataclass(frozen=True, eq=False)
class JointMoments:
    """What the rows with a number in both columns tell about them together.

    In a bin the columns are taken to go together as bins do. A release knows less of small cells than of
    large ones, so intervals hold that the columns go together not at all inside of a few equal parts of the
    rows, or twice as much. These parts are eighths (of a model sixths), or twice what noise hides at the
    ends. Where a model told the counts, its misses may all go one way: then errors are added up.
    """

    view: ScaledView
    columns: tuple[str, str]
    where: Where

    def correlation(self) -> Answer:
        """Pearson's, from -1 to 1."""
        found, deviations = self._moments, np.sqrt(self._moments.variances)
        if not self._clear:
            return self._unknown(-1.0, 1.0)
        x, y, squares = self._scores
        value = found.factor * found.covariance / float(deviations.prod())
        weights = found.factor * x * y / deviations.prod() - value / 2 * squares
        return self._answer(min(1.0, max(-1.0, value)), weights / found.rows, 1.0, (-1.0, 1.0))

    def line(self) -> RegressionLine:
        """The second column by the first."""
        found, (by, column) = self._moments, self.columns
        free = -math.inf, math.inf
        if not self._clear:
            return RegressionLine(column, by, self._unknown(*free), self._unknown(*free))
        x, y, _ = self._scores
        slope = found.factor * found.covariance / float(found.variances[0])
        within = self._bins[0].variances[:, None]
        of_slope = (found.factor * x * y - slope * (x**2 + within)) / (found.rows * found.variances[0])
        of_intercept = (y - slope * x) / found.rows - found.means[0] * of_slope
        intercept = float(found.means[1] - slope * found.means[0])
        return RegressionLine(
            column,
            by,
            self._answer(slope, of_slope, 1.0, free),
            self._answer(intercept, of_intercept, abs(slope * found.means[0] / intercept), free),
        )

    def _answer(self, value: float, weights: Floats, share: float, limits: tuple[float, float]) -> Answer:
        """A function of the counts, by its derivatives; `share` of it rests on how columns go in bins."""
        hidden = abs(value) * share * self._moments.hidden
        deviation = self._deviation(weights)

        def likely(beta: float) -> tuple[float, float]:
            half = NormalDist().inv_cdf(1 - beta / 2) * deviation + hidden
            return max(limits[0], value - half), min(limits[1], value + half)

        return Answer(
            value,
            lambda: deviation,
            lambda beta: limits,
            limits[0],
            self._basis,
            likely=likely,
            note=f"{self._about}; the interval holds what parts of 1/{self._parts} of them hide, "
            "and is no guarantee",
        )

    def _unknown(self, low: float, high: float) -> Answer:
        return Answer(
            math.nan,
            lambda: math.inf,
            lambda beta: (low, high),
            low,
            self._basis,
            likely=lambda beta: (low, high),
            about="not determinable: noise hides how the rows are spread",
        )

    @property
    def _about(self) -> str:
        ends = (
            f"{column} {line.decode(bins.lows[:1])[0]} to {line.decode(bins.highs[-1:])[0]}"
            for column, bins, line in zip(self.columns, self._bins, self._domains, strict=True)
        )
        whole = all(
            bins.lows[0] == 0 and bins.highs[-1] == domain.size - 1
            for bins, domain in zip(self._bins, self._domains, strict=True)
        )
        others = "" if whole else " alone: noise hides the others, which may change it"
        return f"over about {self._moments.rows:,.0f} rows with {' and '.join(ends)}{others}"

    @cached_property
    def _bins(self) -> tuple[_Bins, _Bins]:
        first, second = (self._cut(column) for column in self.columns)
        return first, second

    def _cut(self, column: str) -> _Bins:
        """Bins of equal shares of the rows by the counts of the column; of few cells, a bin for each."""
        line = self.view.slice(column, self.where)
        (first, last), curve = self._find_covered(line.axis), line.axis.curve
        if last - first < _FINE:
            highs = np.arange(first, last + 1, dtype=np.uint64)
        else:
            targets = curve.total * np.arange(1, _FINE) / _FINE
            cuts = find_least_cells(curve.upto, targets, last=line.axis.size - 1)
            highs = np.append(np.unique(cuts[(cuts >= first) & (cuts < last)]), np.uint64(last))
        lows = np.concatenate([np.array([first], np.uint64), highs[:-1] + np.uint64(1)])
        means, variances = _spread_in(curve, lows, highs)
        start, step = _to_line(line.domain)
        ends = np.array([last, max(first, 1) - 1], np.uint64)
        upto, before = (curve.upto(ends) / max(curve.total, 1e-9)).tolist()
        beyond = 1.0 - upto + (before if first else 0.0)
        return _Bins(lows, highs, start + step * means, step**2 * variances, beyond)

    @property
    def _parts(self) -> int:
        """Into how many parts rows are divided for what is hidden inside of them."""
        least, most = _MODEL_PARTS if self._boxes.has_model else _PARTS
        return max(least, min(most, int(0.5 / max(1e-9, sum(side.beyond for side in self._bins)))))

    def _find_covered(self, axis: Along) -> tuple[int, int]:
        """The cells without both ends in which noise hides whether there are rows at all."""
        size = axis.size
        low, high = 0, size - 1
        while low < high:  # the first cell up to which there clearly are rows
            middle = (low + high) // 2
            low, high = (low, middle) if _is_clear(axis, 0, middle) else (middle + 1, high)
        first, high = low, size - 1
        while low < high:  # the last cell from which on there are
            middle = (low + high + 1) // 2
            low, high = (middle, high) if _is_clear(axis, middle, size - 1) else (low, middle - 1)
        return first, low

    @cached_property
    def _counts(self) -> Floats:
        """How many rows each pair of bins holds."""
        x, y = self._bins
        places = np.divmod(np.arange(x.means.size * y.means.size), y.means.size)
        along = {}
        for number, side, place in zip(self._numbers, (x, y), places, strict=True):
            shift = np.uint64(self._boxes.axes[number].before)
            along[number] = side.lows[place] + shift, side.highs[place] + shift
        many = ManyBoxes(self._terms, along, np.ones(places[0].size, bool))
        return many.counts(self._boxes).reshape(x.means.size, y.means.size)

    @cached_property
    def _moments(self) -> _Moments:
        counts, (x, y) = np.maximum(self._counts, 0.0), self._bins
        rows = max(float(counts.sum()), 1e-9)
        shares = counts / rows
        sides = [(x, shares.sum(axis=1)), (y, shares.sum(axis=0))]
        means = np.array([share @ side.means for side, share in sides])
        between = np.array(
            [share @ (side.means - mean) ** 2 for (side, share), mean in zip(sides, means, strict=True)]
        )
        within = np.array([share @ side.variances for side, share in sides])
        apart = [_spread_of(side.means, share, self._parts) for side, share in sides]
        covariance = float((x.means - means[0]) @ shares @ (y.means - means[1]))
        return _Moments(rows, means, between + within, between, np.array(apart), covariance)

    @property
    def _scores(self) -> tuple[Floats, Floats, Floats]:
        """How far bins lie from the means, and what they add to both variances, in units of these."""
        found, (x, y) = self._moments, self._bins
        across, up = (x.means - found.means[0])[:, None], (y.means - found.means[1])[None, :]
        squares = (across**2 + x.variances[:, None]) / found.variances[0]
        return across, up, squares + (up**2 + y.variances[None, :]) / found.variances[1]

    @cached_property
    def _clear(self) -> bool:
        """Whether there clearly are rows, spread over more than one bin, in both columns."""
        found = self._moments
        if not (found.between > 0).all() or found.hidden > _MOST_HIDDEN:
            return False
        x, y, _ = self._scores
        own = np.broadcast_arrays(x**2, y**2, np.ones_like(x * y))
        numbers = (*(found.rows * found.between), found.rows)
        return all(
            number > CLEAR_DEVIATIONS * self._deviation(weights)
            for number, weights in zip(numbers, own, strict=True)
        )

    def _deviation(self, weights: Floats) -> float:
        """The standard deviation of the noise in a weighted sum of all counts."""
        mass = np.maximum(self._counts, 0.0) + 1e-9
        coarse = self._group(weights * mass) / self._group(mass)
        if self._basis in ("", "measured"):
            return math.sqrt(max(0.0, float(coarse @ self._covariances @ coarse)))
        return float(np.abs(coarse) @ np.sqrt(np.diag(self._covariances)))

    def _group(self, cells: Floats) -> Floats:
        """Sums over groups of bins, in a row."""
        starts = [[each[0] for each in groups] for groups in self._groups]
        return np.add.reduceat(np.add.reduceat(cells, starts[0], axis=0), starts[1], axis=1).ravel()

    @cached_property
    def _groups(self) -> tuple[list[Any], list[Any]]:
        """Neighbouring bins together: a few groups for each column."""
        most = _MODEL_GROUPS if self._boxes.has_model else _GROUPS
        x, y = (np.array_split(np.arange(n), min(n, most)) for n in self._counts.shape)
        return x, y

    @cached_property
    def _covariances(self) -> Floats:
        """Of the noise in groups of bins: that of two follows from the errors of both and of their sum."""
        boxes = [
            [
                self._corner(term, (one[0], other[0]), 0) + self._corner(term, (one[-1], other[-1]), 1)
                for term in self._terms
            ]
            for one in self._groups[0]
            for other in self._groups[1]
        ]
        alone = self._errors([[number] for number in range(len(boxes))], boxes) ** 2
        found = np.diag(alone)
        if self._basis not in ("", "measured"):
            return found
        pairs = list(combinations(range(len(boxes)), 2))
        both = self._errors(pairs, boxes) ** 2
        for (i, j), variance in zip(pairs, both.tolist(), strict=True):
            most = math.sqrt(alone[i] * alone[j])
            found[i, j] = found[j, i] = min(most, max(-most, (variance - alone[i] - alone[j]) / 2))
        return found

    def _errors(self, questions: Sequence[Sequence[int]], boxes: Sequence[Sequence[Corner]]) -> Floats:
        """The standard error of each sum of some boxes."""
        checkpoint()
        axes = len(self._boxes.axes)
        ends = np.array([boxes[number] for each in questions for number in each], np.uint64)
        flat = ends.reshape(-1, 2 * axes)
        parts = len(questions[0]) * len(self._terms)
        return np.asarray(self._boxes.errors(flat[:, :axes], flat[:, axes:], parts=parts))

    def _corner(self, term: BoxTerm, places: tuple[int, int], end: int) -> Corner:
        """The lowest (0) or the highest (1) corner of a box, cut along both columns at these bins."""
        corner = list((term.low, term.high)[end])
        for number, side, place in zip(self._numbers, self._bins, places, strict=True):
            cell = (side.lows, side.highs)[end][place]
            corner[number] = int(cell) + self._boxes.axes[number].before
        return tuple(corner)

    @cached_property
    def _basis(self) -> str:
        ends = np.zeros(1, np.uint64), np.zeros(1, np.uint64)
        many = ManyBoxes(self._terms, dict.fromkeys(self._numbers, ends), np.ones(1, bool))
        return many.basis(self._boxes)

    @property
    def _domains(self) -> list[Domain]:
        return [self._together.domains[number] for number in self._numbers]

    @property
    def _together(self) -> BoxView:
        return self.view.together

    @property
    def _boxes(self) -> BoxRelease:
        return self._together.boxes

    @property
    def _numbers(self) -> tuple[int, int]:
        one, other = map(self._together.columns.index, self.columns)
        return one, other

    @cached_property
    def _terms(self) -> tuple[BoxTerm, ...]:
        return find_boxes(self._together.declared, self.where)


def _spread_of(means: Floats, shares: Floats, parts: int) -> float:
    """The variance of the means of groups of neighbouring bins."""
    starts = [each[0] for each in np.array_split(np.arange(means.size), min(means.size, parts))]
    whole = np.maximum(np.add.reduceat(shares, starts), 1e-300)
    grouped = np.add.reduceat(shares * means, starts) / whole
    return float(whole @ (grouped - shares @ means) ** 2)


def _is_clear(axis: Along, low: int, high: int) -> bool:
    """Whether there clearly are rows between two cells."""
    checkpoint()
    found = axis.answer(Term(low, high))
    return found.value > _CLEAR_ENDS * found.error


def _spread_in(curve: Curve, lows: UInts, highs: UInts) -> tuple[Floats, Floats]:
    """The mean and the variance of the cells in each bin, by a curve whose pieces are even.

    >>> curve = Curve(np.array([0, 1, 9], np.uint64), np.array([3.0, 1.0, 0.0]))
    >>> means, variances = _spread_in(curve, np.array([0, 2], np.uint64), np.array([1, 9], np.uint64))
    >>> means.tolist(), variances.tolist()
    ([0.25, 5.5], [0.1875, 5.25])
    """
    inner = (curve.ends >= lows[0]) & (curve.ends < highs[-1])
    ends = np.unique(np.concatenate([curve.ends[inner], highs]))
    starts = np.concatenate([lows[:1], ends[:-1] + np.uint64(1)])
    piece, bin_ = np.searchsorted(curve.ends, ends), np.searchsorted(highs, ends)
    widths = (ends - starts).astype(np.float64) + 1.0
    first = lows[bin_]
    middles = (starts - first).astype(np.float64) + (widths - 1.0) / 2
    mass = np.maximum(curve.counts[piece], 0.0) * widths / curve.widths[piece]
    number = highs.size
    empty = np.bincount(bin_, mass, number)[bin_] <= 0.0
    mass = np.where(empty, widths, mass)
    whole = np.bincount(bin_, mass, number)
    means = np.bincount(bin_, mass * middles, number) / whole
    square = np.bincount(bin_, mass * ((middles - means[bin_]) ** 2 + (widths**2 - 1.0) / 12), number)
    return lows.astype(np.float64) + means, square / whole


def _to_line(domain: Domain) -> tuple[float, float]:
    """The number that the first cell stands for, and the step to the next."""
    if isinstance(domain, Integer):
        return float(domain.low), 1.0
    assert isinstance(domain, Real)  # checked before
    return float(domain.decode([0])[0]), float(domain.step)


def check_numbers(view: BoxView, columns: Sequence[str]) -> None:
    """Refuse columns that are no numbers."""
    for column in columns:
        domain = view.declared[column]
        rule = f"must be a column of numbers: a {type(domain).__name__} has no mean"
        fix = "take an Integer or a Real"
        check(isinstance(domain, Integer | Real), "column", rule, given=column, fix=fix)
