"""The data of the page: bins of one column or two with error bars, a distribution, quantiles, a selection.

Conditions on other columns filter the rows. Conditions on the columns that are shown are the selection: it is
counted, and beside a picture of two columns each is shown for what is selected of the other.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, final
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from partita.answer import Answers
from partita.domain.base import Domain, Special
from partita.errors import check
from partita.lazy import cached_property
from partita.public.conditions import Either, OneOf, Range, Where
from partita.public.questions import COUNT, write_conditions
from partita.public.records import Record, to_plain
from partita.public.release import Release
from partita.public.results import cdf, even_bins, find_bin_cells
from partita.service.reading.catalogue import (
    CSV,
    ERRORS,
    SUFFIX,
    Catalogue,
    Entry,
    Name,
    Replies,
    attachment,
    csv_bytes,
    file_route,
)
from partita.service.reading.questions import (
    Answerer,
    Bars,
    Basis,
    Column,
    NumberAnswer,
    StrictModel,
    deviations,
    parse_any_conditions,
)
from partita.service.reading.work import WorkEstimate, check_work, zero_if_refused

# ---- snippets to copy ----


def snippets(name: str, where: Where, *, origin: str) -> Record:
    """How to ask for the count of the selection elsewhere: Python, curl, and the text of a question.

    >>> from partita.public.grammar import parse_where
    >>> shown = snippets("people", parse_where("age < 30"), origin="http://localhost:8000")
    >>> print(shown["python"])
    import partita as pt
    <BLANKLINE>
    release = pt.load('people.release.parquet')
    print(release.count({'age': (None, '30')}, closed={'age': 'left'}))
    >>> shown["curl"]
    "curl -G http://localhost:8000/releases/people/count --data-urlencode 'where=age < 30'"
    """
    text = write_conditions(where)
    condition = f" --data-urlencode {shlex.quote(f'where={text}')}" if text else ""
    return {
        "python": _python(name, where),
        "curl": f"curl -G {shlex.quote(f'{origin}/releases/{name}/count')}{condition}",
        "text": str(COUNT(where=where)),
    }


def _python(name: str, where: Where) -> str:
    head = f"import partita as pt\n\nrelease = pt.load({name + SUFFIX!r})\n"
    if isinstance(where, Either) or not all(map(_is_plain, where.values())):
        return f"{head}print(release.count({write_conditions(where)!r}))"
    asked = ", ".join(f"{column!r}: {_cell(cell)}" for column, cell in where.items())
    ranges = {column: each for column, each in where.items() if isinstance(each, Range)}
    ends = {column: each.closed for column, each in ranges.items() if each.closed != "both"}
    arguments = [f"{{{asked}}}"] if where else []
    arguments += [f"closed={ends!r}"] if ends else []
    call = f"release.count({', '.join(arguments)})"
    return f"{head}print({call})"


def _is_plain(cell: object) -> bool:
    """Whether Python has a short form for it."""
    if isinstance(cell, OneOf):
        return all(isinstance(each, str) for each in cell.values)
    return isinstance(cell, Range | Special | str)


def _cell(cell: object) -> str:
    if isinstance(cell, Special):
        return f"pt.{cell.name}"
    if isinstance(cell, OneOf):
        return f"{{{', '.join(map(repr, sorted(set(cell.values))))}}}"
    if isinstance(cell, Range):
        return repr((cell.low, cell.high))
    return repr(cell)


# ---- the view ----

_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_MOST_POINTS: Final = 200  # points of a curve: size of the response against detail


@final
@dataclass(frozen=True, eq=False)
class ChartAxis:
    """Bins of a column within a window of its cells; their ends depend on the domain alone."""

    column: str
    domain: Domain
    first: int
    size: int
    bins: int

    @staticmethod
    def of(release: Release, column: str, window: tuple[str | None, str | None], bins: int) -> ChartAxis:
        """The bins between two values, or of the whole column."""
        domain = release.slice(column).domain
        low, high = (
            _window_cell(domain, end, name) for end, name in zip(window, ("from", "to"), strict=True)
        )
        first, last = low or 0, domain.size - 1 if high is None else high
        check(first <= last, "from", "must not lie behind to", given=window[0], fix="swap the two ends")
        size = last - first + 1
        return ChartAxis(column, domain, first, size, even_bins(size, bins))

    @cached_property
    def ends(self) -> tuple[list[Any], list[Any]]:
        """The first and the last value of each bin."""
        lows, highs = find_bin_cells(self.size, self.bins)
        start = np.uint64(self.first)
        return list(self.domain.decode(lows + start)), list(self.domain.decode(highs + start))

    def __len__(self) -> int:
        return len(self.ends[0])

    def record(self) -> Record:
        """The bins in text, as questions read them."""
        lows, highs = (list(map(_text, ends)) for ends in self.ends)
        return {
            "column": self.column,
            "kind": self.domain.to_spec()["kind"],
            "lows": lows,
            "highs": highs,
            "low": lows[0],
            "high": highs[-1],
            "size": str(self.size),
        }


@final
@dataclass(frozen=True, eq=False)
class ChartView:
    """The bins, the selection and the confidence of a chart of one release."""

    release: Release
    axes: Sequence[ChartAxis]
    where: Where
    bars: Bars
    answerer: Answerer

    def __post_init__(self) -> None:
        rule, given = "must be another column than x", self.axes[0].column
        check(len(self._columns) == len(self.axes), "y", rule, given=given, fix="leave it out")

    def work(self, predicted: WorkEstimate) -> int:
        """The predicted work; 0 if the release cannot answer, which raises later."""
        return zero_if_refused(lambda: self._work(predicted))

    def _work(self, predicted: WorkEstimate) -> int:
        columns, bins = [axis.column for axis in self.axes], [axis.bins for axis in self.axes]
        where, shown = self.where, self.filter
        work = predicted.rows(columns, shown, math.prod(bins))
        work += predicted.count(where) + predicted.count(shown)
        if len(columns) == 1:
            specials = len(self.axes[0].domain.specials) * predicted.count(shown, more=(columns[0],))
            line = predicted.cdf(columns[0], shown, min(bins[0], _MOST_POINTS))
            return work + line + predicted.quantile(columns[0], shown) + specials
        beside = ({column: each for column, each in where.items() if column != shown} for shown in columns)
        return work + sum(
            predicted.rows((column,), given, number)
            for column, number, given in zip(columns, bins, beside, strict=True)
        )

    def record(self) -> Record:
        """The data of the chart as one record."""
        counts = self._counts(self.axes, self.filter)
        return {
            "axes": [axis.record() for axis in self.axes],
            **self._with_bars(counts),
            "selection": {
                "ranges": self._ranges(),
                "values": self._selected_values(),
                "count": self._count(self.where),
            },
            "total": self._count(self.filter),
            **(self._one_column() if len(self.axes) == 1 else self._two_columns()),
        }

    def rows(self) -> tuple[list[str], list[tuple[object, ...]]]:
        """The data as a table: the ends of each bin, its count, its error and its bar."""
        counts, z = self._counts(self.axes, self.filter), deviations(self.bars.confidence)
        places = np.indices([len(axis) for axis in self.axes]).reshape(len(self.axes), -1)
        ends = [
            [axis.ends[side][i] for i in place]
            for axis, place in zip(self.axes, places, strict=True)
            for side in (0, 1)
        ]
        numbers = (each.ravel().tolist() for each in (counts.values, counts.error, z * counts.error))
        heads = [f"{axis.column} {side}" for axis in self.axes for side in ("from", "to")]
        return [*heads, "count", "error", "half"], list(zip(*ends, *numbers, strict=True))

    @cached_property
    def filter(self) -> Where:
        """Conditions on columns that are not shown."""
        return {column: condition for column, condition in self.where.items() if column not in self._columns}

    @property
    def _columns(self) -> set[str]:
        return {axis.column for axis in self.axes}

    def _counts(self, axes: Sequence[ChartAxis], where: Where) -> Answers:
        """How many rows each bin holds, or each pair of bins."""
        shape = [len(axis) for axis in axes]
        places = np.indices(shape).reshape(len(axes), -1)
        bins = {
            axis.column: tuple([ends[i] for i in place] for ends in axis.ends)
            for axis, place in zip(axes, places, strict=True)
        }
        found = self.release.counts({**where, **bins})
        return Answers(found.values.reshape(shape), lambda: found.error.reshape(shape), found.basis)

    def _with_bars(self, counts: Answers) -> Record:
        half = deviations(self.bars.confidence) * counts.error
        small = ~(half < np.abs(counts.values))
        return {
            "values": counts.values.tolist(),
            "error": counts.error.tolist(),
            "half": half.tolist(),
            "small": small.tolist(),
            "basis": counts.basis or None,
        }

    def _count(self, where: Where) -> Record:
        return self.answerer.answer(self.release, COUNT(where=where), self.bars)

    def _ranges(self) -> Record:
        """The ranges of the selection, which are conditions on columns that are shown."""
        ranges = {column: each for column, each in self.where.items() if isinstance(each, Range)}
        shown = {column: each for column, each in ranges.items() if column in self._columns}
        return {column: {"low": each.low, "high": each.high} for column, each in shown.items()}

    def _selected_values(self) -> Record:
        """The single values of the selection."""
        chosen = {column: self.where[column] for column in self._columns & self.where.keys()}
        values = {
            column: each.values if isinstance(each, OneOf) else (each,)
            for column, each in chosen.items()
            if not isinstance(each, Range | Special)
        }
        return {column: list(map(_text, each)) for column, each in values.items()}

    def _one_column(self) -> Record:
        [axis] = self.axes
        found = {"cdf": self._cdf(axis), "quantiles": self._quantiles(axis)}
        return {**found, "specials": self._specials(axis), "conditional": None}

    def _two_columns(self) -> Record:
        """Each column by itself, given what is selected of the other."""
        beside = {}
        for name, axis, other in zip("xy", self.axes, reversed(self.axes), strict=True):
            given = {column: each for column, each in self.where.items() if column != axis.column}
            beside[name] = {
                "of": axis.column,
                "given": other.column,
                **self._with_bars(self._counts([axis], given)),
            }
        return {"cdf": None, "quantiles": None, "specials": None, "conditional": beside}

    def _cdf(self, axis: ChartAxis) -> Record:
        """Shares with a band, at the last values of the bins, or of some of them."""
        highs = axis.ends[1]
        step = -(-len(highs) // _MOST_POINTS)
        at = highs[::-step][::-1]
        line = self.release.slice(axis.column, self.filter)
        found, total = cdf(line, at), line.axis.curve.total
        half = deviations(self.bars.confidence) * found.counts.error / total if total > 0 else np.inf
        return {
            "at": list(map(_text, at)),
            "share": found.fractions.tolist(),
            "low": np.clip(found.fractions - half, 0, 1).tolist(),
            "high": np.clip(found.fractions + half, 0, 1).tolist(),
        }

    def _quantiles(self, axis: ChartAxis) -> list[Record]:
        found = self.release.quantile(axis.column, list(_QUANTILES), self.filter)
        rows = ((float(each.q), each.value, *each.interval(self.bars.confidence)) for each in found)
        return [
            {"q": q, "value": _text(value), "low": _text(low), "high": _text(high)}
            for q, value, low, high in rows
        ]

    def _specials(self, axis: ChartAxis) -> list[Record]:
        """The counts of special cells under the filter."""
        z = deviations(self.bars.confidence)
        counts = {
            name: self.release.count({**self.filter, axis.column: Special.named(name)})
            for name in self.release.slice(axis.column).special_cells
        }
        return [
            {"name": name, "value": answer.value, "error": answer.error, "half": z * answer.error}
            for name, answer in counts.items()
        ]


def _window_cell(domain: Domain, end: str | None, name: str) -> int | None:
    """The cell of one end of a window; None if it is open or outside the declared bounds."""
    if end is None:
        return None
    place = domain.locate(end, name=name)
    return place.cell if place.special == Special.ORDINARY else None


def _text(value: object) -> str:
    return str(to_plain(value))


# ---- models and routes ----

_LINE, _SIDE = 60, 32  # default bins: detail against bars that can be told apart


class ChartRequest(Bars):
    """A chart: one column or two, conditions, windows, and the number of bins."""

    x: Column
    y: Column | None = None
    where: str = Field(default="", description="conditions; those on x and y are the selection")
    bins: int | None = Field(
        default=None, ge=1, description="at most so many on each side; 60 of one, 32 of two"
    )
    low: str | None = Field(
        default=None, alias="from", max_length=1000, description="the window of x begins here"
    )
    high: str | None = Field(
        default=None, alias="to", max_length=1000, description="the window of x ends here"
    )
    y_low: str | None = Field(
        default=None, alias="y_from", max_length=1000, description="that of y begins here"
    )
    y_high: str | None = Field(default=None, alias="y_to", max_length=1000, description="that of y ends here")

    def view(self, release: Release, answerer: Answerer) -> ChartView:
        """The chart of a release."""
        answerer.check_text(self.where, "where")
        bins = self.bins or (_LINE if self.y is None else _SIDE)
        answerer.check_points(bins if self.y is None else bins**2)
        axes = [ChartAxis.of(release, self.x, (self.low, self.high), bins)]
        if self.y is not None:
            axes.append(ChartAxis.of(release, self.y, (self.y_low, self.y_high), bins))
        where, fix = parse_any_conditions(self.where), "draw one of the parts"
        joined, rule = isinstance(where, Either), "must not join conditions on several columns with `or` here"
        check(not joined, "where", rule, given=self.where, fix=fix)
        return ChartView(release, axes, where, self, answerer)


class AxisAnswer(StrictModel):
    """The bins of a column, in text as questions read it."""

    column: str
    kind: str
    lows: list[str]
    highs: list[str]
    low: str
    high: str
    size: str = Field(description="how many cells the window has")


class CurveAnswer(StrictModel):
    """Shares of the rows up to some values, with a band."""

    at: list[str]
    share: list[float]
    low: list[float]
    high: list[float]


class QuantileMark(StrictModel):
    """A quantile and its interval."""

    q: float
    value: str
    low: str
    high: str


class SpecialCount(StrictModel):
    """The count of a special cell."""

    name: str
    value: float
    error: float
    half: float


class SelectedRange(StrictModel):
    """A range; null is an open end."""

    low: str | None
    high: str | None


class SelectionAnswer(StrictModel):
    """The selection and its count."""

    ranges: dict[str, SelectedRange]
    values: dict[str, list[str]] = Field(description="of columns where single values are selected")
    count: NumberAnswer


class Conditional(StrictModel):
    """One column, given what is selected of the other."""

    of: str
    given: str
    values: list[float]
    error: list[float]
    half: list[float]
    small: list[bool]
    basis: Basis


class Conditionals(StrictModel):
    """Both columns, each given the other."""

    x: Conditional
    y: Conditional


class Snippets(StrictModel):
    """The selection, to be copied."""

    python: str
    curl: str
    text: str


class ChartAnswer(StrictModel):
    """The data of a chart; with two columns, there is a row of numbers for each bin of x."""

    release: str
    x: str
    y: str | None
    where: str
    filter: str = Field(description="the conditions that are not the selection")
    confidence: float
    axes: list[AxisAnswer]
    values: list[float] | list[list[float]]
    error: list[float] | list[list[float]]
    half: list[float] | list[list[float]]
    small: list[bool] | list[list[bool]]
    basis: Basis
    selection: SelectionAnswer
    total: NumberAnswer
    cdf: CurveAnswer | None
    quantiles: list[QuantileMark] | None
    specials: list[SpecialCount] | None
    conditional: Conditionals | None
    snippets: Snippets
    links: dict[str, str]


class DependenceAnswer(StrictModel):
    """How far each pair of columns is from independence, by the model of a table release."""

    columns: list[str] = Field(examples=[["age", "work"]])
    matrix: list[list[float]] = Field(
        examples=[[[0.0, 0.48], [0.48, 0.0]]],
        description="the share of rows that would have to change for two columns to be independent; "
        "0 on the diagonal",
    )
    basis: list[list[Basis]] = Field(
        examples=[[["measured", "inferred"], ["inferred", "measured"]]],
        description="what answers about just these two columns rest on",
    )


def view_routes(catalogue: Catalogue, replies: Replies, answerer: Answerer) -> APIRouter:
    """The charts of a release; the page has the same address without `.json`."""
    router = APIRouter(prefix="/releases/{name}", tags=["views"], responses=ERRORS)

    @router.get("/view.json", operation_id="view", summary="What is seen", response_model=ChartAnswer)
    async def view(request: Request, name: Name, asking: Annotated[ChartRequest, Query()]) -> Response:
        entry = await catalogue.ready(name)
        origin = str(request.base_url).rstrip("/")

        def make() -> Record:
            return _view_record(_check_work(entry, asking, answerer), asking, name=name, origin=origin)

        return await replies.json(request, entry, make, small=lambda: _is_small(entry, asking, answerer))

    @router.get("/view.csv", **file_route("view_csv", "What is seen, as a table", CSV))
    async def view_csv(request: Request, name: Name, asking: Annotated[ChartRequest, Query()]) -> Response:
        entry = await catalogue.ready(name)

        def make() -> bytes:
            heads, rows = _check_work(entry, asking, answerer).rows()
            return csv_bytes(heads, iter(rows))

        return await replies.data(
            request,
            entry,
            make,
            media_type=CSV,
            small=lambda: _is_small(entry, asking, answerer),
            headers=attachment(f"{name}.view.csv"),
        )

    @router.get(
        "/dependence",
        operation_id="dependence",
        summary="How far columns depend on each other",
        response_model=DependenceAnswer,
    )
    async def dependence(request: Request, name: Name) -> Response:
        entry = await catalogue.ready(name)
        work, limits = WorkEstimate(entry.facts).dependence(), answerer.limits

        def make() -> Record:
            check_work(work, limits)
            return dependence_record(entry.opened)

        return await replies.json(request, entry, make, small=lambda: work <= limits.small_work, fixed=True)

    return router


def dependence_record(release: Release) -> Record:
    """The matrix of dependence, and what answers about each pair rest on."""
    found = release.dependence()
    return {"columns": found.columns, "matrix": found.values.tolist(), "basis": found.bases}


def _check_work(entry: Entry, asking: ChartRequest, answerer: Answerer) -> ChartView:
    """The chart, unless it would be too much work."""
    view = asking.view(entry.opened, answerer)
    check_work(view.work(WorkEstimate(entry.facts)), answerer.limits)
    return view


def _is_small(entry: Entry, asking: ChartRequest, answerer: Answerer) -> bool:
    """Whether an upper bound of the work fits the lane of small work."""
    view = asking.view(entry.opened, answerer)
    return view.work(WorkEstimate(entry.facts, at_most=True)) <= answerer.limits.small_work


def _view_record(view: ChartView, asking: ChartRequest, *, name: str, origin: str) -> Record:
    query = urlencode(asking.model_dump(by_alias=True, exclude_defaults=True))
    return {
        "release": name,
        "x": asking.x,
        "y": asking.y,
        "where": write_conditions(view.where),
        "filter": write_conditions(view.filter),
        "confidence": asking.confidence,
        **view.record(),
        "snippets": snippets(name, view.where, origin=origin),
        "links": {
            end or "page": f"/releases/{name}/view{end and f'.{end}'}?{query}" for end in ("", "json", "csv")
        },
    }
