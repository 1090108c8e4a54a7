"""Views of a release: one column or several, the boxes of cells that questions mean, and slices.

`View` is about one column and `BoxView` about several together. `ScaledView` brings either to the total that
all views of a release share.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from typing import Final, Protocol, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, Answers
from partita.arrays import Bools, Floats, UInts
from partita.domain.axis import LARGEST_AXIS, Axis
from partita.domain.base import Domain, Special
from partita.domain.text import FoundNames
from partita.errors import InvalidParameter, check, check_release
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.public.axis.base import AxisRelease, CellRanges, CellSet, Specials, Term, find_cells, find_ranges
from partita.public.axis.curve import Curve
from partita.public.axis.names import ListedNames
from partita.public.base import checkpoint, chunk_size, view_card
from partita.public.boxes.base import BoxRelease, BoxTerm
from partita.public.boxes.plan import Corners
from partita.public.boxes.regions import PublicRegion
from partita.public.conditions import AllOf, Either, Not, OneOf, Range, Where, is_compound, parts_of
from partita.public.dependence import Dependence, find_dependence

CHUNK: Final = 2048
"""Rows that are counted between two checkpoints, for one box: hundredths of a second in most releases."""

MOST_BOXES: Final = 4096
"""No question is about more boxes: sets of values in several columns multiply."""

MOST_PIECES: Final = 2**18
"""Boxes that all groups of a question make up together."""

_MOST_TOGETHER: Final = 2**17
"""Boxes whose errors are found together: more take more memory and no less time."""

_MOST_SCALING: Final = 2.0
"""A view is not stretched further: where its own total is that far off, it is noise that would grow."""

Declared: TypeAlias = Mapping[str, Domain]
CellGroups: TypeAlias = Mapping[str, Sequence[CellSet]]
"""The groups of each of some columns; a row of numbers says which of them a group of all columns is."""
Run: TypeAlias = tuple[int, int]
Part: TypeAlias = list[list[Run]]
"""Runs of positions along every axis."""

_NO_CELLS: Final = CellSet()
_BEHIND: Final = 2**65
"""Behind the last position of every axis."""


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class View:
    """A column, its public domain, and what was released about it.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how
    it was chosen, a function of public facts. What is asked of a view names its column and no other. Where no
    special cell was counted, questions are about rows that have a value, and none is about a special cell.
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
        rule, fix = "must be those of the domain, or none", "release every special cell once"
        counted = set(self.specials.counts)
        check_release(not counted or counted == set(self.domain.specials), "special cells", rule, fix=fix)

    def __repr__(self) -> str:
        return f"View({self.column}; {self.mechanism})"

    def _repr_html_(self) -> str:
        return view_card(self, {self.column: self.domain}, imported=self.axis.imported)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Its domain."""
        return (self.domain,)

    @property
    def basis(self) -> str:
        """What answers rest on: nothing to tell, as all of them are measured."""
        return ""

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.axis.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the special cells have the noise that the guarantee asks for."""
        promise = self.guarantee
        return promise is None or self.specials.keep(promise)

    @property
    def total(self) -> Answer:
        """How many rows there are: on the axis and in every special cell."""
        return self.answer(self._cells({}))

    def count(self, where: Where) -> Answer:
        """How many rows are in the cells asked for; of a name that was not found what is known of it."""
        if isinstance(self.axis, ListedNames) and isinstance(self.domain, FoundNames) and where:
            cell = self.domain.find_unlisted(_only_value(where[self.column]))
            if cell is not None:
                return self.axis.unlisted_count(cell)
        return self.answer(self._cells(where))

    def difference(self, added: Where, taken: Where) -> Answer:
        """How many more rows one question counts than another, as one linear question."""
        return self.answer(self._cells(added), self._cells(taken))

    def counts(self, where: Where) -> Answers:
        """How many rows are in each of many ranges."""
        spans = find_ranges(self.domain, where[self.column], name=self.column)
        values = np.where(spans.empty, 0.0, self.axis.counts(spans.lows, spans.highs))
        values += self.specials.value("below") * spans.below + self.specials.value("above") * spans.above
        return Answers(values, lambda: self._errors(spans))

    def count_groups(self, groups: CellGroups, rows: NDArray[np.intp], where: Where) -> Answers:
        """How many rows are in each group of the column: those of one range each together."""
        cells = [self._counted(groups[self.column][number]) for number in rows[:, 0].tolist()]
        alone = [len(each.terms) == 1 and not each.specials for each in cells]
        ranges = np.flatnonzero(alone)
        lows, highs = (np.array([cells[row].terms[0][end] for row in ranges], np.uint64) for end in (0, 1))
        values = np.zeros(len(cells))
        values[ranges] = self.axis.counts(lows, highs)
        others = {row: self.answer(each) for row, each in enumerate(cells) if not alone[row]}
        values[list(others)] = [each.value for each in others.values()]

        def errors() -> Floats:
            found = np.zeros(len(cells))
            found[ranges] = self.axis.errors(lows, highs)
            found[list(others)] = [each.error for each in others.values()]
            return found

        return Answers(values, errors)

    def slice(self, column: str, where: Where) -> Slice:
        """The axis: a view of one column has no other that could be asked for."""
        return Slice(self.column, self.domain, self.axis, counted=self.special_cells)

    def answer(self, added: CellSet, taken: CellSet = _NO_CELLS) -> Answer:
        """How many rows are in the cells of one question, less those of another, as one linear question."""
        terms = (*added.terms, *(Term(low, high, -1) for low, high, _ in taken.terms))
        signs = Counter(added.specials)
        signs.subtract(taken.specials)
        beside = self.specials.sum(signs) if any(signs.values()) else None
        if not terms:
            return beside or Answer.exact(0.0)
        found = self.axis.answer(*terms)
        return Answer.together([found, beside]) if beside else found

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range, with open ends or without, misses the truth by more."""
        return self.axis.error(beta / 2) + self.specials.error(beta / 2)

    def _cells(self, where: Where) -> CellSet:
        """The cells asked for; all of them without a condition."""
        if not where:
            return CellSet((Term(0, self.axis.size - 1),), self.special_cells)
        return self._counted(find_cells(self.domain, where[self.column], name=self.column))

    def _counted(self, cells: CellSet) -> CellSet:
        """The same cells; without what lies beyond open ends where no special cell was counted."""
        if self.specials.counts or not cells.specials:
            return cells
        rule = "has no special cells in this release: rows that have a value were counted, and no others"
        ends = cells.terms and not {*cells.specials} & {"null", "invalid"}
        given, fix = ", ".join(cells.specials), "ask for a range or for values"
        check(ends, self.column, rule, given=given, fix=fix)
        return CellSet(cells.terms, ())

    @property
    def special_cells(self) -> tuple[str, ...]:
        """The special cells that were counted: all of the domain, or none."""
        return tuple(name for name in self.domain.specials if name in self.specials.counts)

    def _errors(self, spans: CellRanges) -> Floats:
        errors = np.where(spans.empty, 0.0, self.axis.errors(spans.lows, spans.highs))
        opened = ("below" in self.specials.counts) * (spans.below.astype(np.int64) + spans.above)
        for cells in (1, 2):
            beside = math.sqrt(cells) * self.specials.deviation
            errors[opened == cells] = [math.hypot(axis, beside) for axis in errors[opened == cells].tolist()]
        return np.asarray(errors)


def _only_value(condition: object) -> object:
    """The text that a condition asks for if it is a single one, else null."""
    if (
        isinstance(condition, OneOf | list)
        and len(condition.values if isinstance(condition, OneOf) else condition) == 1
    ):
        (condition,) = condition.values if isinstance(condition, OneOf) else condition
    return condition if isinstance(condition, str) else Special.NULL


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
        check_release(len(self.domains) == len(self.columns) and self._fits_domains, "boxes", rule, fix=fix)

    def __repr__(self) -> str:
        return f"BoxView({', '.join(self.columns)}; {self.mechanism})"

    def _repr_html_(self) -> str:
        found = self.dependence
        below = () if found is None else [found.picture()]
        return view_card(self, self.declared, below=below, imported=self.boxes.imported)

    @property
    def dependence(self) -> Dependence | None:
        """How far its columns depend on each other, if it has a model of them."""
        return find_dependence(self.columns, self.boxes)

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.boxes.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the boxes have the noise that the guarantee asks for."""
        promise = self.guarantee
        return promise is None or self.boxes.keep(promise)

    @property
    def declared(self) -> Mapping[str, Domain]:
        """The domain of each column."""
        return dict(zip(self.columns, self.domains, strict=True))

    @property
    def total(self) -> Answer:
        """How many rows there are: those in special cells, too."""
        return self.boxes.answer(self.boxes.everything)

    def count(self, where: Where) -> Answer:
        """How many rows are in the cells asked for."""
        return self._answer(find_boxes(self.declared, where))

    def difference(self, added: Where, taken: Where) -> Answer:
        """How many more rows one question counts than another, as one linear question."""
        plus, minus = (find_boxes(self.declared, where) for where in (added, taken))
        return self._answer((*plus, *(box._replace(sign=-1) for box in minus)))

    def counts(self, where: Where) -> Answers:
        """How many rows are in each of many boxes."""
        many = cut_boxes(self.declared, where)
        return Answers(many.counts(self.boxes), lambda: many.errors(self.boxes), many.basis(self.boxes))

    def count_groups(self, groups: CellGroups, rows: NDArray[np.intp], where: Where) -> Answers:
        """How many rows are in each group, given by its cells of some columns, and in the cells asked for.

        A group may be several boxes, as mondays are; those of equally many are counted together.
        """
        terms = find_boxes(self.declared, where)
        runs = [
            [_find_runs(column, self.declared[column], {column: each}) for each in cells]
            for column, cells in groups.items()
        ]
        numbers = np.array([[len(runs[c][g]) for c, g in enumerate(row)] for row in rows.tolist()]).reshape(
            rows.shape
        )
        pieces = int(numbers.prod(axis=1).sum()) * max(1, len(terms))
        rule, fix = f"must make up at most {MOST_PIECES:,} boxes", "group by fewer keys, or by coarser ones"
        check(pieces <= MOST_PIECES, "group", rule, given=f"{pieces:,}", fix=fix)
        axes = [self.columns.index(column) for column in groups]
        patterns, which = np.unique(numbers, axis=0, return_inverse=True)
        parts = [
            (some, _cut_groups(terms, axes, runs, rows[some], pattern.tolist()))
            for some, pattern in (
                (np.flatnonzero(which.ravel() == n), each) for n, each in enumerate(patterns)
            )
        ]
        values = np.zeros(len(rows))
        for some, many in parts:
            values[some] = many.counts(self.boxes)

        def errors() -> Floats:
            found = np.zeros(len(rows))
            for some, many in parts:
                found[some] = many.errors(self.boxes)
            return found

        return Answers(values, errors, parts[0][1].basis(self.boxes) if parts else "")

    def slice(self, column: str, where: Where) -> Slice:
        """One column, of the rows that are in the cells asked for of the others."""
        number = self.columns.index(column)
        axis = BoxSlice(self.boxes, number, find_boxes(self.declared, where))
        within = describe_conditions(where)
        return Slice(column, self.domains[number], axis, within, one_by_one=True, basis=axis.basis)

    def within(self, shape: PublicRegion, where: Where) -> Answer:
        """How many rows are in a public shape, which has no special cells, and in the cells asked for.

        Where values of several ranges are asked for, the errors of the parts are taken to be independent.
        """
        region, found = shape.bound(self.columns, self.domains), []
        for box in keep_ordinary(self.declared, shape.columns, find_boxes(self.declared, where)):
            checkpoint()
            found.append(self.boxes.region(region, box))
        return Answer.together(found) if found else Answer.exact(0.0)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box misses the truth by more."""
        return self.boxes.error(beta)

    def _answer(self, terms: tuple[BoxTerm, ...]) -> Answer:
        return self.boxes.answer(*terms) if terms else Answer.exact(0.0)

    @property
    def _fits_domains(self) -> bool:
        return all(domain.size <= LARGEST_AXIS for domain in self.domains) and (
            self.boxes.axes == tuple(map(Axis.of, self.domains))
        )


def keep_ordinary(
    declared: Mapping[str, Domain], columns: Sequence[str], terms: Iterable[BoxTerm]
) -> Iterator[BoxTerm]:
    """The boxes without the special cells of some columns; nothing of one that has no others."""
    named = [(name, Axis.of(domain)) for name, domain in declared.items()]
    first = [axis.before if name in columns else 0 for name, axis in named]
    last = [axis.position(axis.size) - 1 if name in columns else axis.width - 1 for name, axis in named]
    for box in terms:
        low, high = tuple(map(max, box.low, first)), tuple(map(min, box.high, last))
        if all(a <= b for a, b in zip(low, high, strict=True)):
            yield BoxTerm(low, high)


@final
@dataclass(frozen=True, eq=False)
class ScaledView:
    """A view whose values are multiplied by a factor.

    Errors and guaranteed bounds of answers stay those of what was released; a guaranteed bound is
    widened to hold the value. The bound on all errors grows by as much as any value may have moved.
    """

    view: View | BoxView
    factor: float = 1.0

    @staticmethod
    def to_total(view: View | BoxView, total: float) -> ScaledView:
        """The view with its values brought to a total; none is more than doubled."""
        own = view.total.value
        return ScaledView(view, min(_MOST_SCALING, total / own) if total > 0 and own > 0 else 1.0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the view."""
        return self.view.columns

    @property
    def together(self) -> BoxView:
        """The view, if it is one of several columns."""
        if isinstance(self.view, BoxView):
            return self.view
        rule = "must be of columns that one view has together"
        fix = f"ask for a range: {self.view.column}=(low, high)"
        raise InvalidParameter("region", rule, given=self.view.column, fix=fix)

    def count(self, where: Where) -> Answer:
        """How many rows are in the cells asked for."""
        return self.view.count(where).adjusted(self.factor)

    def difference(self, added: Where, taken: Where) -> Answer:
        """How many more rows one question counts than another, as one linear question."""
        return self.view.difference(added, taken).adjusted(self.factor)

    def counts(self, where: Where) -> Answers:
        """How many rows are in each of many ranges or boxes."""
        return self.view.counts(where).adjusted(self.factor)

    def count_groups(self, groups: CellGroups, rows: NDArray[np.intp], where: Where) -> Answers:
        """How many rows are in each group, and in the cells asked for of other columns."""
        return self.view.count_groups(groups, rows, where).adjusted(self.factor)

    def slice(self, column: str, where: Where) -> Slice:
        """One column, of the rows that are in the cells asked for of the others."""
        found = self.view.slice(column, where)
        return found if self.factor == 1.0 else replace(found, axis=_ScaledAxis(found.axis, self.factor))

    def within(self, shape: PublicRegion, where: Where) -> Answer:
        """How many rows are in a public shape and in the cells asked for."""
        return self.together.within(shape, where).adjusted(self.factor)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range, or no box, misses the truth by more."""
        return _scale_reach(self.view.error(beta), self.view.total.value, self.factor)


@final
@dataclass(frozen=True, eq=False)
class _ScaledAxis:
    """Counts along a column, multiplied by a factor."""

    axis: Along
    factor: float

    @property
    def size(self) -> int:
        return self.axis.size

    @property
    def guarantee(self) -> Guarantee | None:
        return self.axis.guarantee

    @cached_property
    def curve(self) -> Curve:
        return Curve(self.axis.curve.ends, self.axis.curve.counts * self.factor)

    def answer(self, *terms: Term) -> Answer:
        return self.axis.answer(*terms).adjusted(self.factor)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        return self.axis.counts(lows, highs) * self.factor

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        return self.axis.errors(lows, highs)

    def error(self, beta: float) -> float:
        ends = np.array([0], np.uint64), np.array([self.size - 1], np.uint64)
        return _scale_reach(self.axis.error(beta), float(self.axis.counts(*ends)[0]), self.factor)


def _scale_reach(reach: float, whole: float, factor: float) -> float:
    """A bound on the errors of all ranges, after their values were multiplied by a factor.

    If none misses the truth by more than the reach, there are truly at most `whole` + reach rows. So no
    value is above `whole` + 2 reach, or further below zero than the reach, and that is what the factor moves.
    """
    return reach if factor == 1.0 else reach + abs(factor - 1.0) * (max(0.0, whole) + 2 * reach)


# Which view answers a question.


class _HasColumns(Protocol):
    @property
    def columns(self) -> tuple[str, ...]: ...


AView = TypeVar("AView", bound=_HasColumns)


def list_columns(views: Iterable[_HasColumns]) -> tuple[str, ...]:
    """Every column of the views, once, in their order."""
    return tuple(dict.fromkeys(column for view in views for column in view.columns))


def find_view(views: Sequence[AView], columns: Iterable[str]) -> AView:
    """The view of fewest columns that has all of these columns; of several such, the first.

    A view of fewer columns has spent nothing on how they go with others.
    """
    known = list_columns(views)
    wanted = tuple(dict.fromkeys(_check_column(column, known) for column in columns))
    rule, fix = f"must name a column out of {_quote(known)}", "say which values of which column"
    check(wanted, "where", rule, given="no column", fix=fix)
    fitting = [view for view in views if set(wanted) <= set(view.columns)]
    released = " and ".join(f"({_quote(view.columns)})" for view in views)
    rule = f"must name columns that were released together, and those are {released}"
    fix = f"ask for one column at a time, or publish them together: views=[({_quote(wanted)}), ...]"
    check(fitting, "where", rule, given=", ".join(wanted), fix=fix)
    return min(fitting, key=lambda view: len(view.columns))


def _check_column(column: object, known: Sequence[str]) -> str:
    if isinstance(column, str) and column in known:
        return column
    fix = "pass names one by one, as text"
    if isinstance(column, str):
        near = get_close_matches(column, known, n=1, cutoff=0.5)
        fix = f"did you mean {near[0]!r}?" if near else "ask for one of them"
    raise InvalidParameter("column", f"must be one of {_quote(known)}", given=column, fix=fix)


def _quote(columns: Iterable[str]) -> str:
    return ", ".join(map(repr, columns))


# One column of a release, of all rows or of some: what distributions, tables and pictures are made of.


class Along(Protocol):
    """Counts over the cells 0, ..., size-1 of one column; `AxisRelease` says what each of them means."""

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


@final
@dataclass(frozen=True, eq=False, repr=False)
class Slice:
    """A column, its public domain, and its counts; `within` says in words which rows are counted.

    `one_by_one` says that guaranteed bounds of single ranges are much closer than the bound on all errors,
    as they are where the axis is one of several. `basis` says what counts of its cells rest on, as it does
    for `Answer`.
    """

    column: str
    domain: Domain
    axis: Along
    within: str = ""
    one_by_one: bool = False
    basis: str = ""
    counted: tuple[str, ...] | None = None
    """The special cells that were counted; None for all of the domain."""

    @property
    def special_cells(self) -> tuple[str, ...]:
        """The special cells that were counted."""
        return self.domain.specials if self.counted is None else self.counted

    def __repr__(self) -> str:
        return f"Slice({self.column}, {self.within or 'all rows'})"


OrderedColumn: TypeAlias = View | Slice
"""A column with the counts along its cells."""


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
            curves.append(_trim(self.boxes.along(self.number, term), first, stop - 1))
        return _add(curves) if curves else Curve.empty(np.array([self.size - 1], np.uint64))

    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the terms as one linear question."""
        boxes = [self._cut(box, term) for term in terms for box in self.terms]
        return self.boxes.answer(*boxes) if boxes else Answer.exact(0.0)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The values that `answer` gives for many ranges."""
        return self._many(lows, highs).counts(self.boxes)

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors that `answer` gives for many ranges."""
        return self._many(lows, highs).errors(self.boxes)

    @property
    def basis(self) -> str:
        """What the counts of ranges rest on."""
        return self._many(*(np.zeros((2, 1), np.uint64))).basis(self.boxes)

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
        low = self._replace_end(box.low, self._axis.position(term.low))
        high = self._replace_end(box.high, self._axis.position(term.high))
        return BoxTerm(low, high, term.sign * box.sign)

    def _replace_end(self, ends: tuple[int, ...], end: int) -> tuple[int, ...]:
        return (*ends[: self.number], end, *ends[self.number + 1 :])


def _trim(curve: Curve, first: int, last: int) -> Curve:
    """The cells first, ..., last of a curve, numbered from 0 on.

    >>> curve = Curve(np.array([3, 9], np.uint64), np.array([8.0, 6.0]))
    >>> trimmed = _trim(curve, 2, 6)
    >>> trimmed.ends.tolist(), trimmed.counts.tolist()
    ([1, 4], [4.0, 3.0])
    """
    lows, highs = np.maximum(curve.starts, np.uint64(first)), np.minimum(curve.ends, np.uint64(last))
    kept = lows <= highs
    widths = (highs[kept] - lows[kept]).astype(np.float64) + 1.0
    return Curve(highs[kept] - np.uint64(first), curve.counts[kept] * widths / curve.widths[kept])


def _add(curves: Sequence[Curve]) -> Curve:
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


# Boxes of cells.


@final
@dataclass(frozen=True, eq=False)
class ManyBoxes:
    """The boxes `terms`, which do not overlap, together, cut by each row of the arrays in `along`.

    `along` has the lowest and the highest positions on some axes, by the number of the axis. A row that
    is not `there` asks for nothing, and its positions mean nothing. Each `pieces` rows are one question.
    """

    terms: tuple[BoxTerm, ...]
    along: Mapping[int, tuple[UInts, UInts]]
    there: Bools
    pieces: int = 1

    def counts(self, boxes: BoxRelease) -> Floats:
        """The value of each row, or of each question."""
        sums = np.zeros(self.there.size)
        for term in self.terms:
            for some in self._chunks(chunk_size(self.there.size, CHUNK)):
                lows, highs = self._corners(term, 0, some), self._corners(term, 1, some)
                sums[some] += boxes.counts(lows, highs)
        return sums.reshape(-1, self.pieces).sum(axis=1) if self.pieces > 1 else sums

    def errors(self, boxes: BoxRelease) -> Floats:
        """The standard error of each row, or of each question: all its boxes together."""
        errors, parts = np.zeros(self.there.size // self.pieces), len(self.terms) * self.pieces
        together = min(chunk_size(self.there.size * max(1, len(self.terms)), CHUNK), _MOST_TOGETHER)
        for some in self._chunks(max(1, together // parts) * self.pieces) if parts else ():
            lows, highs = (
                np.stack([self._corners(term, side, some) for term in self.terms], axis=1) for side in (0, 1)
            )
            shape = some.size * len(self.terms), len(boxes.axes)
            found = boxes.errors(lows.reshape(shape), highs.reshape(shape), parts=parts)
            errors[some[:: self.pieces] // self.pieces] = found
        return errors

    def basis(self, boxes: BoxRelease) -> str:
        """What the values rest on, by the columns that are asked for; nothing if no box is there."""
        if not self.terms or not self.there.any():
            return ""
        ends = [
            {(term.low[number], term.high[number]) for term in self.terms}
            for number in range(len(boxes.axes))
        ]
        whole = [held == {(0, axis.width - 1)} for held, axis in zip(ends, boxes.axes, strict=True)]
        return boxes.basis(number for number, free in enumerate(whole) if number in self.along or not free)

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


def find_boxes(declared: Declared, where: Where) -> tuple[BoxTerm, ...]:
    """The boxes, which do not overlap, that `where` means among the columns declared.

    A column that is not asked for is not constrained: its special cells are in the boxes, too.

    >>> from partita.domain import Category, Integer
    >>> declared = {"age": Integer(0, 120), "town": Category(["Rome", "Bari", "Turin"])}
    >>> find_boxes(declared, {"age": Range(65, None), "town": ["Rome", "Turin"]})
    (BoxTerm(low=(66, 0), high=(122, 0), sign=1), BoxTerm(low=(66, 2), high=(122, 2), sign=1))
    """
    parts = [
        [_find_runs(name, domain, part) for name, domain in declared.items()] for part in parts_of(where)
    ]
    if len(parts) > 1:
        parts = _take_apart(parts)
    number = sum(math.prod(map(len, runs)) for runs in parts)
    fix = "ask for ranges, or for fewer values at a time"
    check(number <= MOST_BOXES, "where", f"must make up at most {MOST_BOXES:,} boxes", given=number, fix=fix)
    return tuple(
        BoxTerm(tuple(low for low, _ in box), tuple(high for _, high in box))
        for runs in parts
        for box in product(*runs)
    )


def _take_apart(parts: Sequence[Part]) -> list[Part]:
    """Products of runs that hold the same positions and do not overlap: each without those before it.

    A product less another is one product for each axis: the other's runs on the axes before, on that axis
    what the other lacks, and all runs on those behind.
    """
    found: list[Part] = []
    for part in parts:
        rest = [part]
        for other in found:
            checkpoint()
            rest = [piece for each in rest for piece in _subtract(each, other)]
            boxes = sum(math.prod(map(len, runs)) for runs in rest)
            rule, fix = f"must make up at most {MOST_BOXES:,} boxes", "ask several questions, without `or`"
            check(boxes <= MOST_BOXES, "where", rule, given=boxes, fix=fix)
        found += rest
    return found


def _subtract(part: Part, other: Part) -> Iterator[Part]:
    common = [_overlap(one, another) for one, another in zip(part, other, strict=True)]
    if not all(common):
        yield part
        return
    for axis, runs in enumerate(part):
        lacking = _overlap(runs, _gaps(other[axis]))
        if lacking:
            yield [*common[:axis], lacking, *part[axis + 1 :]]


def _overlap(one: Sequence[Run], other: Sequence[Run]) -> list[Run]:
    """The positions that are in runs of both."""
    found, at = list[Run](), 0
    for low, high in one:
        while at and (at == len(other) or other[at][0] > low):
            at -= 1
        for start, stop in other[at:]:
            if start > high:
                break
            at += 1
            if stop >= low:
                found.append((max(low, start), min(high, stop)))
    return found


def _gaps(runs: Sequence[Run]) -> list[Run]:
    """The positions between runs, before the first and behind the last."""
    found, start = list[Run](), 0
    for low, high in runs:
        if start < low:
            found.append((start, low - 1))
        start = high + 1
    return [*found, (start, _BEHIND)]


def count_boxes(declared: Declared, where: Where) -> int:
    """How many boxes `find_boxes` would make, without making them: sets of values multiply.

    >>> from partita.domain import Integer
    >>> declared = {"age": Integer(0, 120), "rooms": Integer(0, 9)}
    >>> count_boxes(declared, {"age": OneOf((1, 2, 5)), "rooms": OneOf((1, 3))})
    4
    """
    if isinstance(where, Either):
        return len(find_boxes(declared, where))
    return math.prod(len(_find_runs(name, domain, where)) for name, domain in declared.items())


def cut_boxes(declared: Declared, where: Where) -> ManyBoxes:
    """Boxes given by arrays of bounds, one box for each row of the arrays.

    One range, or one value, goes with all rows, and so does a set of values or a special cell.
    """
    if isinstance(where, Either):
        return ManyBoxes(find_boxes(declared, where), {}, np.ones(1, np.bool_))
    fixed = {name: value for name, value in where.items() if is_fixed(value)}
    others = {name: value for name, value in where.items() if name not in fixed}
    found = {name: find_ranges(declared[name], value, name=name) for name, value in others.items()}
    rows = _count_rows(found)
    cut = {name: _find_positions(declared[name], spans, rows) for name, spans in found.items()}
    there = np.logical_and.reduce([np.ones(rows, np.bool_), *(low <= high for low, high in cut.values())])
    numbers = {name: number for number, name in enumerate(declared)}
    along = {numbers[name]: pair for name, pair in cut.items()}
    return ManyBoxes(find_boxes(declared, fixed), along, there)


def _cut_groups(
    terms: tuple[BoxTerm, ...],
    axes: Sequence[int],
    runs: Sequence[Sequence[Sequence[Run]]],
    rows: NDArray[np.intp],
    pattern: Sequence[int],
) -> ManyBoxes:
    """The boxes of groups that have equally many runs on each axis, one group after the other."""
    pieces, places = math.prod(pattern), np.indices(pattern).reshape(len(pattern), -1)
    along = {}
    for c, (axis, number) in enumerate(zip(axes, pattern, strict=True)):
        ends = np.zeros((2, len(runs[c]), number), np.uint64)
        for g in np.unique(rows[:, c]).tolist():
            ends[:, g] = np.array(runs[c][g], np.uint64).T
        lows, highs = (side[rows[:, c, None], places[c]].ravel() for side in ends)
        along[axis] = lows, highs
    return ManyBoxes(terms, along, np.ones(len(rows) * pieces, np.bool_), pieces)


def describe_conditions(where: Where) -> str:
    """Conditions for people to read.

    >>> describe_conditions({"age": Range(30, 39), "town": OneOf(("Rome",)), "salary": Range(50_000)})
    'age 30 to 39, town Rome, salary from 50000'
    """
    parts = [
        ", ".join(f"{name} {_describe_value(value)}" for name, value in part.items())
        for part in parts_of(where)
    ]
    return ", or ".join(parts)


def is_fixed(condition: object) -> bool:
    """Whether it is one condition for all of many boxes, and not an array of them."""
    return is_compound(condition) or isinstance(condition, Special | CellSet)


def _find_runs(name: str, domain: Domain, where: Where) -> list[Run]:
    """The runs of positions that are asked for along one axis; all of them if nothing is."""
    if name not in where:
        return [(0, Axis.of(domain).width - 1)]
    cells, places = find_cells(domain, where[name], name=name), Axis.specials(domain)
    shift = Axis.of(domain).before
    ordinary = [(low + shift, high + shift) for low, high, _ in cells.terms]
    return _join([*ordinary, *((places[special], places[special]) for special in cells.specials)])


def _join(runs: Iterable[Run]) -> list[Run]:
    """The same positions, where runs that touch are one."""
    joined: list[Run] = []
    for low, high in sorted(runs):
        if joined and low == joined[-1][1] + 1:
            joined[-1] = joined[-1][0], high
        else:
            joined.append((low, high))
    return joined


def _count_rows(found: Mapping[str, CellRanges]) -> int:
    """How many boxes the columns ask for: as many as the longest of them, which all others must fit."""
    lengths = {name: len(spans) for name, spans in found.items() if len(spans) != 1}
    for name, length in lengths.items():
        first = next(iter(lengths.values()))
        rule = "must have as many ranges as the other columns, or one for all"
        check(length == first, name, rule, given=f"{length} and {first}", fix="pass arrays of one length")
    return next(iter(lengths.values()), 1)


def _find_positions(domain: Domain, spans: CellRanges, rows: int) -> tuple[UInts, UInts]:
    """The lowest and the highest position of each span, the lowest above the highest where it is empty."""
    axis, beside = Axis.of(domain), Axis.specials(domain)
    below, above = spans.below & ("below" in beside), spans.above & ("above" in beside)
    first, behind = np.uint64(axis.before), np.uint64(axis.before + axis.size)
    lows = np.where(below, np.uint64(0), np.where(spans.empty, behind, spans.lows + first))
    highs = np.where(above, behind, np.where(spans.empty, np.uint64(0), spans.highs + first))
    return np.broadcast_to(lows, rows), np.broadcast_to(highs, rows)


def _describe_value(value: object) -> str:
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
            return " or ".join(sorted(_describe_value(each) for each in values))
        case AllOf(conditions):
            return " and ".join(map(_describe_value, conditions))
        case Not(condition):
            return f"not {_describe_value(condition)}"
    return str(value)
