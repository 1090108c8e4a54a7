"""Many boxes at once: some boxes, cut along some axes by arrays of ranges."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import Final, Protocol, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, Answers
from partita.arrays import Bools, Floats, UInts
from partita.domain.axis import LARGEST_AXIS, Axis
from partita.domain.base import Domain, Special
from partita.errors import InvalidParameter, check, check_release
from partita.guarantee import Guarantee, rows_changed
from partita.lazy import cached_property
from partita.public.axis.base import AxisRelease, Specials, Term
from partita.public.axis.curve import Curve
from partita.public.base import checkpoint, chunk_size, view_card
from partita.public.boxes.base import BoxRelease, BoxTerm
from partita.public.boxes.plan import Corners
from partita.public.boxes.regions import PublicRegion
from partita.public.conditions import OneOf, Range, Where
from partita.public.where import CellRanges, CellSet, find_cells, ranges

CHUNK: Final = 2048
"""Rows that are counted between two checkpoints, for one box: hundredths of a second in most releases."""

_MOST_TOGETHER: Final = 2**17
"""Boxes whose errors are found together: more take more memory and no less time."""


@final
@dataclass(frozen=True, eq=False)
class ManyBoxes:
    """The boxes `terms`, which do not overlap, together, cut by each row of the arrays in `along`.

    `along` has the lowest and the highest positions on some axes, by the number of the axis. A row that
    is not `there` asks for nothing, and its positions mean nothing.
    """

    terms: tuple[BoxTerm, ...]
    along: Mapping[int, tuple[UInts, UInts]]
    there: Bools

    def answers(self, boxes: BoxRelease) -> Answers:
        """How many lie in each row of boxes."""
        return Answers(self.counts(boxes), lambda: self.errors(boxes))

    def counts(self, boxes: BoxRelease) -> Floats:
        """The value of each row."""
        sums = np.zeros(self.there.size)
        for term in self.terms:
            for some in self._chunks(chunk_size(self.there.size, CHUNK)):
                lows, highs = self._corners(term, 0, some), self._corners(term, 1, some)
                sums[some] += boxes.counts(lows, highs)
        return sums

    def errors(self, boxes: BoxRelease) -> Floats:
        """The standard error of each row: its boxes are one question."""
        errors, parts = np.zeros(self.there.size), len(self.terms)
        together = min(chunk_size(self.there.size * parts, CHUNK), _MOST_TOGETHER)
        for some in self._chunks(max(1, together // parts)) if parts else ():
            lows, highs = (
                np.stack([self._corners(term, side, some) for term in self.terms], axis=1) for side in (0, 1)
            )
            shape = some.size * parts, len(boxes.axes)
            errors[some] = boxes.errors(lows.reshape(shape), highs.reshape(shape), parts=parts)
        return errors

    def _chunks(self, chunk: int) -> Iterator[NDArray[np.intp]]:
        """The rows that are there, some at a time."""
        rows = np.flatnonzero(self.there)
        for start in range(0, rows.size, chunk):
            checkpoint()
            yield rows[start : start + chunk]

    def _corners(self, box: BoxTerm, side: int, rows: NDArray[np.intp]) -> Corners:
        """The lowest (side 0) or the highest corners of a box, cut by some rows."""
        corners = np.tile(np.array((box.low, box.high)[side], np.uint64), (rows.size, 1))
        for axis, pair in self.along.items():
            corners[:, axis] = pair[side][rows]
        return corners


# What people ask of several columns together, as boxes of positions.


MOST_BOXES: Final = 4096
"""No question is about more boxes: sets of values in several columns multiply."""

Declared: TypeAlias = Mapping[str, Domain]
Run: TypeAlias = tuple[int, int]


def box_terms(declared: Declared, asked: Where) -> tuple[BoxTerm, ...]:
    """The boxes, which do not overlap, that `asked` asks for among the columns declared.

    A column that is not asked for is not constrained: its special cells are in the boxes, too.

    >>> from partita.domain import Category, Integer
    >>> declared = {"age": Integer(0, 120), "town": Category(["Rome", "Bari", "Turin"])}
    >>> box_terms(declared, {"age": Range(65, None), "town": ["Rome", "Turin"]})
    (BoxTerm(low=(66, 0), high=(122, 0), sign=1), BoxTerm(low=(66, 2), high=(122, 2), sign=1))
    """
    runs = [_runs(name, domain, asked) for name, domain in declared.items()]
    number = math.prod(map(len, runs))
    fix = "ask for ranges, or for fewer values at a time"
    check(number <= MOST_BOXES, "where", f"must make up at most {MOST_BOXES:,} boxes", given=number, fix=fix)
    return tuple(
        BoxTerm(tuple(low for low, _ in box), tuple(high for _, high in box)) for box in product(*runs)
    )


def number_of_boxes(declared: Declared, asked: Where) -> int:
    """How many boxes `box_terms` would make, without making them: sets of values multiply.

    >>> from partita.domain import Integer
    >>> declared = {"age": Integer(0, 120), "rooms": Integer(0, 9)}
    >>> number_of_boxes(declared, {"age": OneOf((1, 2, 5)), "rooms": OneOf((1, 3))})
    4
    """
    return math.prod(len(_runs(name, domain, asked)) for name, domain in declared.items())


def many_boxes(declared: Declared, asked: Where) -> ManyBoxes:
    """Boxes given by arrays of bounds, one box for each row of the arrays.

    One range, or one value, goes with all rows, and so does a set of values or a special cell.
    """
    fixed = {name: value for name, value in asked.items() if isinstance(value, OneOf | Special)}
    found = {
        name: ranges(declared[name], value, name=name) for name, value in asked.items() if name not in fixed
    }
    rows = _rows(found)
    cut = {name: _positions(declared[name], spans, rows) for name, spans in found.items()}
    there = np.logical_and.reduce([np.ones(rows, np.bool_), *(low <= high for low, high in cut.values())])
    numbers = {name: number for number, name in enumerate(declared)}
    along = {numbers[name]: pair for name, pair in cut.items()}
    return ManyBoxes(box_terms(declared, fixed), along, there)


def described(asked: Where) -> str:
    """Conditions for people to read.

    >>> described({"age": Range(30, 39), "town": OneOf(("Rome",)), "salary": Range(50_000)})
    'age 30 to 39, town Rome, salary from 50000'
    """
    return ", ".join(f"{name} {_said(value)}" for name, value in asked.items())


def _runs(name: str, domain: Domain, asked: Where) -> list[Run]:
    """The runs of positions that are asked for along one axis; all of them if nothing is."""
    if name not in asked:
        return [(0, Axis.of(domain).width - 1)]
    cells, places = find_cells(domain, asked[name], name=name), Axis.specials(domain)
    shift = Axis.of(domain).before
    ordinary = [(low + shift, high + shift) for low, high, _ in cells.terms]
    return _joined([*ordinary, *((places[special], places[special]) for special in cells.specials)])


def _joined(runs: Iterable[Run]) -> list[Run]:
    """The same positions, where runs that touch are one."""
    joined: list[Run] = []
    for low, high in sorted(runs):
        if joined and low == joined[-1][1] + 1:
            joined[-1] = joined[-1][0], high
        else:
            joined.append((low, high))
    return joined


def _rows(found: Mapping[str, CellRanges]) -> int:
    """How many boxes the columns ask for: as many as the longest of them, which all others must fit."""
    lengths = {name: len(spans) for name, spans in found.items() if len(spans) != 1}
    for name, length in lengths.items():
        first = next(iter(lengths.values()))
        rule = "must have as many ranges as the other columns, or one for all"
        check(length == first, name, rule, given=f"{length} and {first}", fix="pass arrays of one length")
    return next(iter(lengths.values()), 1)


def _positions(domain: Domain, spans: CellRanges, rows: int) -> tuple[UInts, UInts]:
    """The lowest and the highest position of each span, the lowest above the highest where it is empty."""
    axis, beside = Axis.of(domain), Axis.specials(domain)
    below, above = spans.below & ("below" in beside), spans.above & ("above" in beside)
    first, behind = np.uint64(axis.before), np.uint64(axis.before + axis.size)
    lows = np.where(below, np.uint64(0), np.where(spans.empty, behind, spans.lows + first))
    highs = np.where(above, behind, np.where(spans.empty, np.uint64(0), spans.highs + first))
    return np.broadcast_to(lows, rows), np.broadcast_to(highs, rows)


def _said(value: object) -> str:
    match value:
        case Range(None, None):
            return "with any value"
        case Range(low, None):
            return f"from {low}"
        case Range(None, high):
            return f"up to {high}"
        case Range(low, high):
            return f"{low} to {high}"
        case OneOf(values) | list(values):
            return " or ".join(sorted(map(str, values)))
    return str(value)


# One column of a release, of all rows or of some: what distributions, tables and pictures are made of.


class Along(Protocol):
    """Counts over the cells 0, ..., size-1 of one column; `Ranges` says what each of them means."""

    @property
    def size(self) -> int: ...

    @property
    def guarantee(self) -> Guarantee | None: ...

    @property
    def curve(self) -> Curve: ...

    def answer(self, *terms: Term) -> Answer: ...

    def counts(self, lows: UInts, highs: UInts) -> Floats: ...

    def errors(self, lows: UInts, highs: UInts) -> Floats: ...

    def error(self, beta: float) -> float: ...


class OrderedColumn(Protocol):
    """A column with the counts along its cells: a view of one column, or a slice of another."""

    @property
    def column(self) -> str: ...

    @property
    def domain(self) -> Domain: ...

    @property
    def axis(self) -> Along: ...


@final
@dataclass(frozen=True, eq=False, repr=False)
class Slice:
    """A column, its public domain, and its counts; `within` says in words which rows are counted.

    `one_by_one` says that guaranteed bounds of single ranges are much closer than the bound on all errors,
    as they are where the axis is one of several.
    """

    column: str
    domain: Domain
    axis: Along
    within: str = ""
    one_by_one: bool = False

    def __repr__(self) -> str:
        return f"Slice({self.column}, {self.within or 'all rows'})"


@final
@dataclass(frozen=True, eq=False)
class BoxSlice:
    """The ordered cells of one axis, and what lies in some boxes, which do not overlap, on the others.

    `number` is that of the axis; the ends of the boxes on it do not matter.
    """

    boxes: BoxRelease
    number: int
    terms: tuple[BoxTerm, ...]

    @property
    def size(self) -> int:
        """The number of ordered cells; special cells are on no line."""
        return self._axis.size

    @property
    def guarantee(self) -> Guarantee | None:
        """What the whole release promises."""
        return self.boxes.guarantee

    @cached_property
    def curve(self) -> Curve:
        """Cumulative counts: monotone, never negative."""
        first, stop = self._axis.before, self._axis.before + self._axis.size
        curves = []
        for term in self.terms:
            checkpoint()
            curves.append(_trimmed(self.boxes.along(self.number, term), first, stop - 1))
        return _added(curves) if curves else Curve.empty(np.array([self.size - 1], np.uint64))

    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the terms as one linear question."""
        asked = [self._cut(box, term) for term in terms for box in self.terms]
        return self.boxes.answer(*asked) if asked else Answer.exact(0.0)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The values that `answer` gives for many ranges."""
        return self._many(lows, highs).counts(self.boxes)

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors that `answer` gives for many ranges."""
        return self._many(lows, highs).errors(self.boxes)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range misses the truth by more: every box has its error."""
        return len(self.terms) * self.boxes.error(beta)

    @property
    def _axis(self) -> Axis:
        return self.boxes.axes[self.number]

    def _many(self, lows: UInts, highs: UInts) -> ManyBoxes:
        shift = np.uint64(self._axis.before)
        return ManyBoxes(self.terms, {self.number: (lows + shift, highs + shift)}, np.ones(lows.size, bool))

    def _cut(self, box: BoxTerm, term: Term) -> BoxTerm:
        low, high = self._axis.position(term.low), self._axis.position(term.high)
        return BoxTerm(self._with(box.low, low), self._with(box.high, high), term.sign * box.sign)

    def _with(self, ends: tuple[int, ...], end: int) -> tuple[int, ...]:
        return (*ends[: self.number], end, *ends[self.number + 1 :])


def _trimmed(curve: Curve, first: int, last: int) -> Curve:
    """The cells first, ..., last of a curve, numbered from 0 on.

    >>> curve = Curve(np.array([3, 9], np.uint64), np.array([8.0, 6.0]))
    >>> trimmed = _trimmed(curve, 2, 6)
    >>> trimmed.ends.tolist(), trimmed.counts.tolist()
    ([1, 4], [4.0, 3.0])
    """
    lows, highs = np.maximum(curve.starts, np.uint64(first)), np.minimum(curve.ends, np.uint64(last))
    kept = lows <= highs
    widths = (highs[kept] - lows[kept]).astype(np.float64) + 1.0
    return Curve(highs[kept] - np.uint64(first), curve.counts[kept] * widths / curve.widths[kept])


def _added(curves: Sequence[Curve]) -> Curve:
    """The sum of curves over the same cells: a piece ends where one of theirs does."""
    if len(curves) == 1:
        return curves[0]
    sums = Curve.empty(np.unique(np.concatenate([curve.ends for curve in curves])))
    counts = np.zeros(sums.ends.size)
    for curve in curves:
        checkpoint()
        piece = np.searchsorted(curve.ends, sums.ends)
        counts += curve.counts[piece] * sums.widths / curve.widths[piece]
    return Curve(sums.ends, counts)


# Several columns of a release together: a box of cells, special cells included.


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BoxView:
    """Columns, their public domains, and what was released about them together.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how
    it was chosen, a function of public facts. What is asked of a view names some of its columns; a column
    that is not asked for is not constrained, and its special cells count too.
    """

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]
    boxes: BoxRelease
    mechanism: str
    why: str = ""

    def __post_init__(self) -> None:
        rule, fix = "must be different", "release each column once"
        check_release(self.columns and len(set(self.columns)) == len(self.columns), "columns", rule, fix=fix)
        rule, fix = "must have the cells of their domains", "get the file again"
        check_release(len(self.domains) == len(self.columns) and self._fits, "boxes", rule, fix=fix)

    def __repr__(self) -> str:
        return f"BoxView({', '.join(self.columns)}; {self.mechanism})"

    def _repr_html_(self) -> str:
        return view_card(self, self.declared)

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.boxes.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the boxes have the noise that the guarantee asks for."""
        promise = self.guarantee
        return promise is None or promise.epsilon >= self.boxes.spent * rows_changed(
            promise.neighbors, promise.contributions
        )

    @property
    def declared(self) -> Mapping[str, Domain]:
        """The domain of each column."""
        return dict(zip(self.columns, self.domains, strict=True))

    @property
    def total(self) -> Answer:
        """How many rows there are: those in special cells, too."""
        return self.boxes.answer(self.boxes.everything)

    def count(self, asked: Where) -> Answer:
        """How many rows are in the cells asked for."""
        return self._answer(box_terms(self.declared, asked))

    def difference(self, added: Where, taken: Where) -> Answer:
        """How many more rows one question counts than another, as one linear question."""
        plus, minus = (box_terms(self.declared, asked) for asked in (added, taken))
        return self._answer((*plus, *(box._replace(sign=-1) for box in minus)))

    def counts(self, asked: Where) -> Answers:
        """How many rows are in each of many boxes."""
        return many_boxes(self.declared, asked).answers(self.boxes)

    def slice(self, column: str, asked: Where) -> Slice:
        """One column, of the rows that are in the cells asked for of the others."""
        terms = box_terms(self.declared, asked)
        number = self.columns.index(column)
        axis = BoxSlice(self.boxes, number, terms)
        return Slice(column, self.domains[number], axis, described(asked), one_by_one=True)

    def within(self, shape: PublicRegion, asked: Where) -> Answer:
        """How many rows are in a public shape, which has no special cells, and in the cells asked for.

        Where values of several ranges are asked for, the errors of the parts are taken to be independent.
        """
        region = shape.bound(self.columns, self.domains)
        terms = self._ordinary(shape.columns, box_terms(self.declared, asked))
        found = []
        for box in terms:
            checkpoint()
            found.append(self.boxes.region(region, box))
        return Answer.together(found) if found else Answer.exact(0.0)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box misses the truth by more."""
        return self.boxes.error(beta)

    def _answer(self, terms: tuple[BoxTerm, ...]) -> Answer:
        return self.boxes.answer(*terms) if terms else Answer.exact(0.0)

    def _ordinary(self, columns: Sequence[str], terms: Iterable[BoxTerm]) -> Iterator[BoxTerm]:
        """The boxes without the special cells of some columns; nothing of one that has no others."""
        named = list(zip(self.columns, self.boxes.axes, strict=True))
        first = [axis.before if name in columns else 0 for name, axis in named]
        last = [axis.position(axis.size) - 1 if name in columns else axis.width - 1 for name, axis in named]
        for box in terms:
            low, high = tuple(map(max, box.low, first)), tuple(map(min, box.high, last))
            if all(a <= b for a, b in zip(low, high, strict=True)):
                yield BoxTerm(low, high)

    @property
    def _fits(self) -> bool:
        return all(domain.size <= LARGEST_AXIS for domain in self.domains) and (
            self.boxes.axes == tuple(map(Axis.of, self.domains))
        )


# Which view answers a question: the one with the fewest columns that has all that are asked for.


class _OfColumns(Protocol):
    @property
    def columns(self) -> tuple[str, ...]: ...


AView = TypeVar("AView", bound=_OfColumns)


def columns_of(views: Iterable[_OfColumns]) -> tuple[str, ...]:
    """Every column of the views, once, in their order."""
    return tuple(dict.fromkeys(column for view in views for column in view.columns))


def having(views: Sequence[AView], asked: Iterable[str]) -> AView:
    """The view of fewest columns that has all columns asked for; of several such, the first.

    A view of fewer columns has spent nothing on how they go with others.
    """
    wanted = [_known(column, columns_of(views)) for column in asked]
    fitting = [view for view in views if set(wanted) <= set(view.columns)]
    if wanted and fitting:
        return min(fitting, key=lambda view: len(view.columns))
    raise _apart(views, tuple(dict.fromkeys(wanted))) if wanted else _nothing(views)


def _known(column: object, columns: Sequence[str]) -> str:
    if isinstance(column, str) and column in columns:
        return column
    fix = _nearest(column, columns) if isinstance(column, str) else "pass names one by one, as text"
    raise InvalidParameter("column", f"must be one of {_listed(columns)}", given=column, fix=fix)


def _nearest(column: str, columns: Sequence[str]) -> str:
    near = get_close_matches(column, columns, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else "ask for one of them"


def _apart(views: Sequence[_OfColumns], wanted: tuple[str, ...]) -> InvalidParameter:
    there = " and ".join(f"({_listed(view.columns)})" for view in views)
    rule = f"must name columns that were released together, and those are {there}"
    fix = f"ask for one column at a time, or publish them together: views=[({_listed(wanted)}), ...]"
    return InvalidParameter("where", rule, given=", ".join(wanted), fix=fix)


def _nothing(views: Sequence[_OfColumns]) -> InvalidParameter:
    rule = f"must name a column out of {_listed(columns_of(views))}"
    return InvalidParameter("where", rule, given="no column", fix="say which values of which column")


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(map(repr, columns))


# One column of a release: its axis of cells and the special cells beside it.


_NOTHING = CellSet()


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class View:
    """A column, its public domain, and what was released about it.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how
    it was chosen, a function of public facts. What is asked of a view names its column and no other.
    """

    column: str
    domain: Domain
    axis: AxisRelease
    specials: Specials
    mechanism: str
    why: str = ""

    def __post_init__(self) -> None:
        rule = "must have the cells of its domain"
        check_release(self.axis.size == self.domain.size, "axis", rule, fix="get the file again")
        rule, fix = "must be those of the domain", "release every special cell once"
        check_release(set(self.specials.counts) == set(self.domain.specials), "special cells", rule, fix=fix)

    def __repr__(self) -> str:
        return f"View({self.column}; {self.mechanism})"

    def _repr_html_(self) -> str:
        return view_card(self, {self.column: self.domain})

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Its domain."""
        return (self.domain,)

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.axis.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the special cells have the noise that the guarantee asks for."""
        promise = self.guarantee
        return promise is None or self.specials.scale == (
            rows_changed(promise.neighbors, promise.contributions) / promise.epsilon
        )

    @property
    def total(self) -> Answer:
        """How many rows there are: on the axis and in every special cell."""
        return self.answer(CellSet((Term(0, self.axis.size - 1),), self.domain.specials))

    def count(self, asked: Where) -> Answer:
        """How many rows are in the cells asked for."""
        return self.answer(self._cells(asked))

    def difference(self, added: Where, taken: Where) -> Answer:
        """How many more rows one question counts than another, as one linear question."""
        return self.answer(self._cells(added), self._cells(taken))

    def counts(self, asked: Where) -> Answers:
        """How many rows are in each of many ranges."""
        spans = ranges(self.domain, asked[self.column], name=self.column)
        values = np.where(spans.empty, 0.0, self.axis.counts(spans.lows, spans.highs))
        values += self.specials.value("below") * spans.below + self.specials.value("above") * spans.above
        return Answers(values, lambda: self._errors(spans))

    def slice(self, column: str, asked: Where) -> Slice:
        """The axis: a view of one column has no other that could be asked for."""
        return Slice(self.column, self.domain, self.axis)

    def answer(self, added: CellSet, taken: CellSet = _NOTHING) -> Answer:
        """How many rows are in the cells of one question, less those of another, as one linear question."""
        terms = (*added.terms, *(Term(low, high, -1) for low, high, _ in taken.terms))
        signs = Counter(added.specials)
        signs.subtract(taken.specials)
        beside = self.specials.sum(signs) if any(signs.values()) else None
        if not terms:
            return beside or Answer.exact(0.0)
        return self.axis.answer(*terms) + beside if beside else self.axis.answer(*terms)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range, with open ends or without, misses the truth by more."""
        return self.axis.error(beta / 2) + self.specials.error(beta / 2)

    def _cells(self, asked: Where) -> CellSet:
        return find_cells(self.domain, asked[self.column], name=self.column)

    def _errors(self, spans: CellRanges) -> Floats:
        errors = np.where(spans.empty, 0.0, self.axis.errors(spans.lows, spans.highs))
        opened = ("below" in self.specials.counts) * (spans.below.astype(np.int64) + spans.above)
        for cells in (1, 2):
            beside = math.sqrt(cells) * self.specials.deviation
            errors[opened == cells] = [math.hypot(axis, beside) for axis in errors[opened == cells].tolist()]
        return np.asarray(errors)
