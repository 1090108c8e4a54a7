"""Trials of a plan on PUBLIC data: many questions asked of a release, and how far each answer is off.

Ranges of one column and boxes of several; of a table labels, and cells and boxes of two columns. Questions
and wants that matter are asked of whole releases. A private choice of the bound on rows per person is
compared with fixed bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any, Final, NamedTuple, Protocol, final

import numpy as np

from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain, Encoded, Special
from partita.domain.category import Category
from partita.domain.numeric import Integer, Real
from partita.domain.text import Text
from partita.errors import InvalidParameter, check
from partita.public.axis.base import AxisRelease, find_cells
from partita.public.base import figure
from partita.public.boxes.base import BoxRelease
from partita.public.conditions import Either, Range, Where
from partita.public.grammar import parse_question
from partita.public.groups import GroupPlan
from partita.public.questions import KINDS, Question, Type
from partita.public.records import GroupedResult
from partita.public.release import Release
from partita.public.wants import MEAN, RANGES, SHARE, TOTAL, VARIANCE, Want, parse_want
from partita.trusted.mechanisms.contributions import BoundSelection
from partita.trusted.secret import Histogram, Points
from partita.trusted.sources.tally import encode_positions

_BITS: Final = 64
_WORD: Final = 2**_BITS
_FEWEST_OF_A_PAIR: Final = 4  # questions of each pair of a table of many columns


class RangeEnds(NamedTuple):
    """The lowest and the highest cells of many ranges, or corners of many boxes."""

    lows: UInts
    highs: UInts

    @classmethod
    def between(cls, one: UInts, other: UInts) -> RangeEnds:
        """From the lower of two cells to the higher, along each axis."""
        return cls(np.minimum(one, other), np.maximum(one, other))


class SimulationTrial(Protocol):
    """A release of public data beside its exact counts."""

    def ends(self, count: int) -> Mapping[str, RangeEnds]:
        """So many ranges that end anywhere, and so many that end at values, if there are any."""

    def misses(self, ends: RangeEnds) -> Floats:
        """How far each answer lies from the exact count."""


@final
@dataclass(frozen=True)
class ColumnTrial:
    """The ranges of one column."""

    axis: AxisRelease
    histogram: Histogram

    def ends(self, count: int) -> Mapping[str, RangeEnds]:
        """Ranges of cells, and ranges from a value to a value."""
        cells = self.histogram.cells
        found = {"anywhere": RangeEnds.between(*_spread(count, self.axis.size, self.axis.size))}
        if cells.size:
            one, other = _spread(count, cells.size, cells.size)
            found["values"] = RangeEnds.between(cells[one], cells[other])
        return found

    def misses(self, ends: RangeEnds) -> Floats:
        """Against the running sums of the exact counts."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.histogram.counts)])
        upto = before[np.searchsorted(self.histogram.cells, ends.highs, side="right")]
        exact = upto - before[np.searchsorted(self.histogram.cells, ends.lows)]
        return np.asarray(np.abs(self.axis.counts(*ends) - exact))


@final
@dataclass(frozen=True)
class BoxTrial:
    """The boxes of several columns."""

    boxes: BoxRelease
    points: Points

    def ends(self, count: int) -> Mapping[str, RangeEnds]:
        """Boxes of ordinary cells, and boxes spanned by two of the points that lie in such cells."""
        axes = self.boxes.axes
        corners = _spread(count, *(axis.size for axis in axes), *(axis.size for axis in axes))
        starts = np.array([axis.before for axis in axes], np.uint64)
        halves = np.stack(corners[: len(axes)], axis=1), np.stack(corners[len(axes) :], axis=1)
        found = {"anywhere": RangeEnds.between(halves[0] + starts, halves[1] + starts)}
        ordinary = self.points.places[_ordinary(self.points.places, axes)]
        if len(ordinary):
            one, other = _spread(count, len(ordinary), len(ordinary))
            found["values"] = RangeEnds.between(ordinary[one], ordinary[other])
        return found

    def misses(self, ends: RangeEnds) -> Floats:
        """Against the points inside each box."""
        exact = np.array([self._inside(low, high) for low, high in zip(*ends, strict=True)])
        return np.asarray(np.abs(self.boxes.counts(*ends) - exact))

    def _inside(self, low: UInts, high: UInts) -> int:
        """How many rows are in a box; points are in order along the first axis."""
        first = self.points.places[:, 0]
        near = slice(np.searchsorted(first, low[0]), np.searchsorted(first, high[0], side="right"))
        places = self.points.places[near]
        inside = ((places >= low) & (places <= high)).all(axis=1)
        return int(self.points.counts[near][inside].sum())


@final
@dataclass(frozen=True)
class TableTrial:
    """The labels, cells of two columns and boxes of two columns of a table."""

    boxes: BoxRelease
    points: Points

    def misses(self, count: int) -> Iterator[tuple[tuple[int, ...], str, Floats]]:
        """About `count` questions of each kind: the columns, the kind, and how far each answer lies off."""
        number, axes = len(self.boxes.axes), self.boxes.axes
        for column in range(number):
            yield (column,), "labels", self._miss((column,), self._cells((column,), count))
            ends = RangeEnds.between(*_spread(count, *(2 * [axes[column].size])))
            yield (column,), "ranges", self._miss((column,), RangeEnds(*(each[:, None] for each in ends)))
        pairs = list(combinations(range(number), 2))
        each = max(_FEWEST_OF_A_PAIR, count // len(pairs))
        for pair in pairs:
            yield pair, "cells", self._miss(pair, self._cells(pair, each))
            sizes = [axes[column].size for column in pair]
            one, two, three, four = _spread(each, *sizes, *sizes)
            corners = np.stack([one, two], axis=1), np.stack([three, four], axis=1)
            yield pair, "boxes", self._miss(pair, RangeEnds.between(*corners))

    def _cells(self, columns: tuple[int, ...], count: int) -> RangeEnds:
        """Ordinary cells of some columns: all of them, or evenly spread ones."""
        sizes = [self.boxes.axes[column].size for column in columns]
        if len(sizes) == 1 and sizes[0] <= count:
            cells = np.arange(sizes[0], dtype=np.uint64)[:, None]
        else:
            cells = np.stack(_spread(count, *sizes), axis=1)
        return RangeEnds(cells, cells)

    def _miss(self, columns: tuple[int, ...], ends: RangeEnds) -> Floats:
        """How far each answer lies off, if only these columns are constrained."""
        lows = np.zeros((len(ends.lows), len(self.boxes.axes)), np.uint64)
        highs = np.array([[axis.width - 1 for axis in self.boxes.axes]] * len(lows), np.uint64)
        for place, column in enumerate(columns):
            before = np.uint64(self.boxes.axes[column].before)
            lows[:, column], highs[:, column] = ends.lows[:, place] + before, ends.highs[:, place] + before
        places, counts = self._projected(columns)
        asked = zip(lows[:, columns], highs[:, columns], strict=True)
        exact = [int(counts[((places >= low) & (places <= high)).all(axis=1)].sum()) for low, high in asked]
        return np.asarray(np.abs(self.boxes.counts(lows, highs) - np.array(exact)))

    def _projected(self, columns: tuple[int, ...]) -> tuple[UInts, Ints]:
        """The points on these columns only, those that are alike put together."""
        places, which = np.unique(self.points.places[:, columns], axis=0, return_inverse=True)
        counts = np.zeros(len(places), np.int64)
        np.add.at(counts, which.ravel(), self.points.counts)
        return places, counts


def _ordinary(places: UInts, axes: tuple[Axis, ...]) -> Bools:
    """Which points lie in no special cell."""
    lows = np.array([axis.before for axis in axes], np.uint64)
    highs = np.array([axis.before + axis.size - 1 for axis in axes], np.uint64)
    return np.asarray(((places >= lows) & (places <= highs)).all(axis=1))


def _spread(count: int, *sizes: int) -> list[UInts]:
    """For each size a row of numbers below it; together they spread evenly over all combinations."""
    return [
        np.array([(turn * stride % _WORD) * size // _WORD for turn in range(1, count + 1)], dtype=np.uint64)
        for stride, size in zip(_strides(len(sizes)), sizes, strict=True)
    ]


@cache
def _strides(dimensions: int) -> tuple[int, ...]:
    """2^64 / g, 2^64 / g^2, ... with g^(d+1) = g + 1: multiples of these spread evenly in d dimensions."""
    low, high = _WORD, 2 * _WORD
    while high - low > 1:
        middle = (low + high) // 2
        below = middle ** (dimensions + 1) < (middle + _WORD) * _WORD**dimensions
        low, high = (middle, high) if below else (low, middle)
    return tuple(_WORD ** (power + 1) // low**power for power in range(1, dimensions + 1))


# Questions and wants that matter, asked of whole releases beside the exact answers.
MOST_ASKED: Final = 10**4  # groups of a want that are asked for one by one

_COMPARED: Final = ("count", "sum", "mean", "variance", "std", "quantile", "difference", "share")
"""Kinds of questions whose exact answers are computed here."""

_BY_KIND: Final = {TOTAL: "sum", MEAN: "mean", VARIANCE: "variance", SHARE: "share"}
_RANGES_ASKED: Final = 32  # of a column whose ranges are wanted
_ASKED_FIX: Final = 'pass for example "count where age between 30 and 39", or pt.mean("delay", by="dest")'


@final
@dataclass(frozen=True)
class QuestionTrial:
    """One question, or those that a want or a question by groups stands for: one for each group or range.

    `whole` is the question by groups, which a release answers at once.
    """

    text: str
    questions: tuple[Question, ...]
    whole: Question | None = None

    @staticmethod
    def read(given: object, schema: Mapping[str, Domain]) -> QuestionTrial:
        """The trial of a want or a question, or of its text."""
        want = _want_of(given)
        if want is not None:
            found = tuple(_questions_of(want, schema))
            return QuestionTrial(str(want), found)
        question = parse_question(str(given))
        if isinstance(question.kind.result, GroupedResult):
            whole = question.kind(**{**question.arguments, "order": None, "limit": None})
            return QuestionTrial(str(whole), tuple(_questions_by(whole, schema)), whole)
        compared = question.kind.name in _COMPARED and question.arguments.get("half_space") is None
        rule = f"must be of the kinds {', '.join(_COMPARED)}, or these by groups, to be compared"
        check(compared, "questions", rule, given=str(given), fix="leave it out")
        return QuestionTrial(str(given), (question,))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return tuple(dict.fromkeys(name for each in self.questions for name in _columns_of(each)))

    def exact(self, points: Points, schema: Mapping[str, Domain]) -> Floats:
        """The exact answers, NaN where there is none, from the rows by the columns of the schema."""
        rows = ExactRows.of(points, schema)
        return np.array([rows.answer(each) for each in self.questions])

    def asked(self, release: Release, schema: Mapping[str, Domain], confidence: float) -> Floats:
        """Of each question the value and the ends of its interval, as a release answers it."""
        single = self.questions
        if self.whole is None:
            found = [each.kind.ask(release, **each.arguments) for each in single]
        else:
            found = list(self.whole.kind.ask(release, **self.whole.arguments))
        both = zip(single, found, strict=True)
        return np.array([_numbers(each, answer, schema, confidence) for each, answer in both])


def _want_of(given: object) -> Want | None:
    """The want that is given, or that a text says; None for another text."""
    if isinstance(given, Want):
        return given
    if not isinstance(given, str):
        rule = "must be questions or wants, or their texts"
        raise InvalidParameter("questions", rule, given=given, fix=_ASKED_FIX)
    try:
        return parse_want(given)
    except InvalidParameter:
        return None


def _questions_of(want: Want, schema: Mapping[str, Domain]) -> Iterator[Question]:
    """The questions that a want stands for."""
    for column in want.columns:
        rule, fix = "must be about columns of the schema", "check the spelling"
        check(column in schema, "questions", rule, given=column, fix=fix)
    if want.shares:
        yield from (KINDS["quantile"](column=want.column, q=share) for share in want.shares)
        return
    if want.kind is RANGES:
        yield from _range_questions(want.column, schema[want.column])
        return
    rule = "must be of totals, means, variances, quantiles, shares or ranges to be compared"
    check(want.kind in _BY_KIND, "questions", rule, given=str(want), fix="leave it out")
    kind, groups = KINDS[_BY_KIND[want.kind]], [] if want.by is None else _values(want.by, schema[want.by])
    grouped: list[dict[str, object]] = [{str(want.by): value} for value in groups] if want.by else [{}]
    for group in grouped:
        if want.kind is SHARE:
            yield kind(where=want.where, among=group)
        else:
            yield kind(column=want.column, where=group)


def _questions_by(whole: Question, schema: Mapping[str, Domain]) -> Iterator[Question]:
    """A question about each group, in the order in which a release answers them."""
    for key in whole["by"]:
        rule, fix = "must be about columns of the schema", "check the spelling"
        check(key.column in schema, "questions", rule, given=key.column, fix=fix)
    kind = KINDS[whole.kind.name.removesuffix("_by")]
    arguments = {each.name: whole[each.name] for each in kind.parameters if each.type is not Type.HALF_SPACE}
    rows = "among" if "among" in arguments else "where"
    groups = GroupPlan.of(schema.__getitem__, whole["by"], arguments[rows], most=MOST_ASKED)
    for row in range(len(groups.rows)):
        yield kind(**{**arguments, rows: groups.where(row)})


def _range_questions(column: str, domain: Domain) -> Iterator[Question]:
    """Counts of each label, or of ranges that spread evenly."""
    if isinstance(domain, Category):
        yield from (KINDS["count"](where={column: label}) for label in _values(column, domain))
        return
    rule, fix = "must not be about text, whose names nobody knows", "simulate the other columns"
    check(not isinstance(domain, Text), "questions", rule, given=column, fix=fix)
    ends = RangeEnds.between(*_spread(_RANGES_ASKED, domain.size, domain.size))
    for low, high in zip(domain.decode(ends.lows), domain.decode(ends.highs), strict=True):
        yield KINDS["count"](where={column: Range(low, high)})


def _values(column: str, domain: Domain) -> Sequence[object]:
    """The groups of a column: its labels, or the values of all its cells."""
    rule, fix = f"must be by a column of at most {MOST_ASKED:,} values", "make its domain coarser"
    check(domain.size <= MOST_ASKED, "questions", rule, given=column, fix=fix)
    return domain.decode(np.arange(domain.size, dtype=np.uint64))


def _columns_of(question: Question) -> tuple[str, ...]:
    conditions = question.having(Type.CONDITIONS)
    return (*question.having(Type.COLUMN), *(name for where in conditions for name in where))


def _numbers(
    question: Question, found: Any, schema: Mapping[str, Domain], confidence: float
) -> tuple[float, float, float]:
    """The answer to a question, and the ends of its interval."""
    ends = found.interval(confidence)
    if question.kind.name == "quantile":
        domain = schema[question["column"]]
        low, high = (_place(domain, end) for end in ends)
        return _place(domain, found.value), low, high
    return float(found.value), float(ends[0]), float(ends[1])


def _place(domain: Domain, value: Any) -> float:
    """A value of a column as a number: of days and times, which day or slot it is."""
    return float(value) if isinstance(domain, Integer | Real) else float(domain.locate(value).cell)


@final
@dataclass(frozen=True, eq=False)
class ExactRows:
    """Rows by the cells of some columns, each with how many there are; what is asked of them is exact."""

    schema: Mapping[str, Domain]
    cells: Mapping[str, Encoded]
    counts: Ints

    @staticmethod
    def of(points: Points, schema: Mapping[str, Domain]) -> ExactRows:
        """Those at points, whose axes are the columns of the schema in their order."""
        along = zip(schema.items(), points.places.T, strict=True)
        cells = {name: encode_positions(domain, places.copy()) for (name, domain), places in along}
        return ExactRows(schema, cells, points.counts)

    def answer(self, question: Question) -> float:
        """The exact answer; NaN if there is none, as of the mean of no rows."""
        match question.kind.name:
            case "difference":
                return self._count(question["first"]) - self._count(question["second"])
            case "share":
                every = self._count(question["among"])
                met = self._rows(question["among"]) & self._rows(question["where"])
                return self.counts[met].sum() / every if every else math.nan
            case "count":
                return self._count(question["where"])
            case name:
                return self._statistic(name, question)

    def _count(self, where: Where) -> float:
        return float(self.counts[self._rows(where)].sum())

    def _rows(self, where: Where) -> Bools:
        """Which rows meet conditions."""
        if isinstance(where, Either):
            return np.asarray(np.logical_or.reduce([self._rows(part) for part in where.parts]))
        met = np.ones(len(self.counts), np.bool_)
        for name, condition in where.items():
            found, here = find_cells(self.schema[name], condition, name=name), self.cells[name]
            each = np.isin(here.special, [int(Special.named(special)) for special in found.specials])
            for term in found.terms:
                inside = (here.cells >= np.uint64(term.low)) & (here.cells <= np.uint64(term.high))
                each |= inside & (here.special == Special.ORDINARY)
            met &= each
        return met

    def _statistic(self, name: str, question: Question) -> float:
        """Of the values within the declared bounds."""
        column = question["column"]
        there = self._rows(question["where"]) & (self.cells[column].special == Special.ORDINARY)
        domain, counts = self.schema[column], self.counts[there]
        cells, which = np.unique(self.cells[column].cells[there], return_inverse=True)
        weights = np.bincount(which, counts, minlength=len(cells))
        if not len(cells):
            return 0.0 if name == "sum" else math.nan
        values = np.array([_place(domain, value) for value in domain.decode(cells)])
        if name == "quantile":
            rank = max(1, math.ceil(question["q"] * int(weights.sum())))
            return float(values[np.searchsorted(np.cumsum(weights), rank)])
        total, rows = float(values @ weights), float(weights.sum())
        if name in ("sum", "mean"):
            return total if name == "sum" else total / rows
        variance = float(weights @ (values - total / rows) ** 2) / rows
        return variance if name == "variance" else math.sqrt(variance)


# What a private choice of the bound on rows per person gains.
@final
@dataclass(frozen=True, kw_only=True)
class SimulatedBound:
    """What one bound on rows per person would cost on a PUBLIC file, in rows.

    `left_out` is how many rows a total loses, `noise` the typical error by noise if all of epsilon were left
    for it, `error` both together (the root of the sum of the squares), and `chance` how likely this bound is
    chosen.
    """

    contributions: int
    left_out: int
    noise: float
    error: float
    chance: float

    def cells(self) -> list[str]:
        """One line of a table."""
        numbers = (self.left_out, self.noise, self.error)
        return [f"{self.contributions:,}", *(figure(float(each)) for each in numbers), f"{self.chance:.1%}"]


@final
@dataclass(frozen=True, kw_only=True)
class SimulatedChoice:
    """What a private choice of the bound on rows per person gains on a PUBLIC file, in rows.

    `auto` is the mean error of a total over all bounds that may be chosen, with the noise of what the choice
    leaves of epsilon. Beside it stand the error of the best bound, which only who has seen the file can name,
    and those of the smallest and the largest candidate.
    """

    bounds: tuple[SimulatedBound, ...]
    auto: float

    @staticmethod
    def of(choice: BoundSelection, within: Sequence[int], rows: int, share: Fraction) -> SimulatedChoice:
        """From the rows within each candidate and all rows; exact chances, and predicted noise."""
        chances, left = choice.chances(within), 1 - float(share)
        bounds = [
            SimulatedBound(
                contributions=bound,
                left_out=rows - inside,
                noise=noise * left,
                error=math.hypot(rows - inside, noise * left),
                chance=chance,
            )
            for bound, inside, noise, chance in zip(
                choice.candidates, within, map(float, choice.noise), chances, strict=True
            )
        ]
        expected = sum(each.chance * math.hypot(each.left_out, each.noise / left) for each in bounds)
        return SimulatedChoice(bounds=tuple(bounds), auto=expected)

    @property
    def best(self) -> SimulatedBound:
        """The bound with the smallest error."""
        return min(self.bounds, key=lambda each: each.error)

    def __str__(self) -> str:
        """The errors of the choice and of fixed bounds in words."""
        first, last, best = self.bounds[0], self.bounds[-1], self.best
        return (
            f"A total errs by about {figure(self.auto)} rows with the bound on rows per person chosen "
            f"privately, by {figure(best.error)} with the best fixed bound, {best.contributions:,}, by "
            f"{figure(first.error)} with {first.contributions:,} and by {figure(last.error)} with "
            f"{last.contributions:,}."
        )
