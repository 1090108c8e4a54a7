"""`plan`: what a release would cost, how well it would answer, how large it would be. Touches no data.

`simulate` tries a plan out on PUBLIC data and measures the errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from textwrap import fill
from typing import Any, Final, final

import numpy as np

import partita
from partita.arrays import Floats
from partita.domain.base import Domain
from partita.domain.columns import number_text
from partita.domain.numeric import Real
from partita.errors import InvalidParameter, check, check_type, warn_once
from partita.guarantee import Guarantee, Neighbors, short
from partita.html import card, grid
from partita.ledger.entries import checked_day
from partita.numbers import check_probability, integer, rational
from partita.public.base import Provenance, figure, table
from partita.public.contributions import AutoContributions
from partita.public.file_entries import view_name
from partita.public.queries.queries import Queries
from partita.public.tables.graph import TableGraphRelease
from partita.public.tables.plan import TableErrors
from partita.public.views import BoxView, View
from partita.public.wants import BOUNDS, Want
from partita.publish.publish import Counted, RankedCounts, count, draw, tallying
from partita.publish.request import Request, Shares
from partita.publish.trials import (
    BoxTrial,
    ColumnTrial,
    QuestionTrial,
    SimulatedChoice,
    SimulationTrial,
    TableTrial,
)
from partita.publish.views import (
    ColumnRequest,
    CountRequest,
    Together,
    ViewRequest,
    Views,
    check_columns,
    view_request,
)
from partita.publish.wants import Wants
from partita.trusted.mechanisms.catalogue import AUTO, ROWS, Choice, MechanismOrName, is_own
from partita.trusted.secret import Histogram, Points
from partita.trusted.sources.base import Source
from partita.trusted.sources.open import open_source
from partita.trusted.sources.wide import CompactPoints

_COARSER: Final = (10, 100)  # steps to compare a real column with, in multiples of its own
_BYTES: Final = 8
_WIDTH: Final = 100
_MOST_ROWS: Final = 2**62
_NAMED_COLUMNS: Final = 6  # of a view whose columns are all named where people read


@final
@dataclass(frozen=True)
class Prediction:
    """What to expect if there are `rows` rows; None where the mechanism predicts nothing.

    `error` is the root-mean-square error of a random range, of a random box over several columns, of a sum by
    a random range of keys in multiples of the largest value that it covers, or of an answer to a query, and
    `numbers` how many integers the release holds. A file packs them, so `bytes`, eight for each, is
    more than it takes. `says` are sentences about what the mechanism would choose. Of a table release `table`
    has the errors of its columns and pairs, and `warnings` are questions that it would hardly answer.
    `bound` is what nothing that the view's `bound_of` names exceeds but for probability beta, by a theorem.
    """

    rows: int
    error: float | None
    numbers: int | None
    bound: float | None = None
    says: tuple[str, ...] = ()
    table: TableErrors | None = None
    warnings: tuple[str, ...] = ()

    @property
    def bytes(self) -> int | None:
        """Eight for each number: more than a file takes."""
        return None if self.numbers is None else _BYTES * self.numbers


@final
@dataclass(frozen=True, kw_only=True)
class Outlook:
    """One view with its domains: how it would be published, and what to expect of it.

    `planned` says whether these are the domains of the schema, or another step to compare them with.
    """

    view: ViewRequest[Any]
    epsilon: Fraction
    predictions: tuple[Prediction, ...]
    planned: bool
    rho: Fraction | None = None
    """Its part of rho, where rho is spent; epsilon is then what its own guarantee states."""

    @property
    def choice(self) -> Choice[Any]:
        """The mechanism, and why."""
        return self.view.choice

    @property
    def cells(self) -> int:
        """How many cells the columns have together, special cells left out."""
        return math.prod(domain.size for domain in self.view.domains)

    @property
    def rounding(self) -> Fraction | None:
        """Half the step of a column of real numbers by itself: how far a value may lie from its cell."""
        domain = _alone(self.view)
        return domain.step / 2 if isinstance(domain, Real) else None

    def lines(self) -> list[dict[str, Any]]:
        """One mapping of plain values for each number of rows."""
        shared = {
            "view": self.view.name,
            **({"wants": list(self.view.wants)} if self.view.wants else {}),
            "columns": list(self.view.columns),
            "cells": self.cells,
            "step": None if self.rounding is None else number_text(2 * self.rounding),
            "rounding": None if self.rounding is None else number_text(self.rounding),
            "planned": self.planned,
            **({} if self.rho is None else {"rho": str(self.rho)}),
            "epsilon": str(self.epsilon),
            "mechanism": self.choice.name,
            "bound_of": self.view.bound_of,
        }
        return [
            {**shared, "rows": each.rows, "error": each.error, "bound": each.bound}
            | {"numbers": each.numbers, "bytes": each.bytes}
            | ({"says": list(each.says)} if each.says else {})
            | ({} if each.table is None else self._table_entries(each.table, each.warnings))
            for each in self.predictions
        ]

    def _table_entries(self, errors: TableErrors, warnings: Sequence[str]) -> dict[str, Any]:
        """The errors of single columns and of pairs, for JSON."""
        named = zip(self.view.columns, errors.columns, strict=True)
        by_column = [{"column": column, **asdict(each)} for column, each in named]
        return {"by_column": by_column, "pair_cell": errors.cell, "warnings": list(warnings)}

    def column_lines(self) -> Iterator[list[str]]:
        """What to expect of each column of a table, a line for each number of rows."""
        tables = [each.table for each in self.predictions if each.table is not None]
        for place, column in enumerate(self.view.columns if tables else ()):
            for errors in tables:
                found = errors.columns[place]
                figures = (found.single, found.half_width, errors.mean(place), found.range)
                about = "" if found.counted else "~"
                yield [column, about, f"{found.cells:,}", f"{errors.rows:,}", *map(figure, figures)]

    def sentences(self) -> list[str]:
        """What the mechanism would choose, for each number of rows."""
        return [
            f"{_short(self.view)}, for {each.rows:,} rows: {' '.join(each.says)}"
            for each in self.predictions
            if each.says
        ]


@final
@dataclass(frozen=True, kw_only=True)
class Plan:
    """A release that has not been made: its request, and what to expect of each view.

    Every number follows from public facts. Print it to read it. Where the bound on rows per person is to be
    chosen, errors are expected for the smallest candidate, and `noise_by_bound` has those by noise for all of
    them.
    """

    request: Request
    outlooks: tuple[Outlook, ...]
    beta: Fraction = Fraction(1, 20)
    """How often the bounds may fail, each by itself."""

    @property
    def guarantee(self) -> Guarantee:
        """What the release would promise."""
        return self.request.guarantee

    def rows(self) -> list[dict[str, Any]]:
        """One mapping of plain values for each view, step and number of rows."""
        return [line for outlook in self.outlooks for line in outlook.lines()]

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON can write it: exact numbers as text, predictions as floats."""
        reasons = {view.name: view.why for view in self.request.published}
        request = {**self.request.to_json(), "views": [_entries(view) for view in self.request.published]}
        bounds = self.noise_by_bound
        noise = {"noise": [{"contributions": k, "error": error} for k, error in bounds.items()]}
        expected = {"beta": str(self.beta), "expected": self.rows(), **(noise if bounds else {})}
        return {"request": request, "why": reasons, **expected}

    @property
    def noise_by_bound(self) -> dict[int, float]:
        """The typical error by noise for each bound on rows per person that may be chosen; or empty."""
        choice = self.request.choice
        if choice is None:
            return {}
        return dict(zip(choice.candidates, map(float, choice.noise), strict=True))

    @property
    def warnings(self) -> list[str]:
        """Questions that the release would hardly answer, with the number of rows that was guessed."""
        predicted = [each for outlook in self.outlooks for each in outlook.predictions]
        return [f"for {each.rows:,} rows, {warning}" for each in predicted for warning in each.warnings]

    def __str__(self) -> str:
        heads, lines = self._expected()
        above = [f"To publish with {self.guarantee}:", "", table([heads, *lines], left=2), "", *self._reasons]
        columns = self._columns
        tables = ["", table([_COLUMN_HEADS, *columns], left=2)] if columns else []
        beware = ["", *(f"Beware: {warning}." for warning in self.warnings)] if self.warnings else []
        bounds = [[f"{k:,}", figure(error)] for k, error in self.noise_by_bound.items()]
        choice = ["", self._choice, "", table([_BOUND_HEADS, *bounds])] if bounds else []
        return "\n".join([*above, *tables, *choice, *beware, "", fill(self._legend(heads), _WIDTH)])

    @property
    def _choice(self) -> str:
        """How the bound on rows per person would be chosen, in words."""
        auto = self.request.auto
        if auto is None:
            return ""
        return fill(
            f"The bound on rows per person is chosen privately, with {auto.share} of epsilon, by the rows "
            "that a total loses and by this noise; the release states it. Above is what to expect if it is "
            f"{auto.among[0]}.",
            _WIDTH,
        )

    def _repr_html_(self) -> str:
        heads, lines = self._expected()
        facts = [("promise", self.guarantee), *(("why", reason) for reason in self._reasons)]
        facts += [("beware", warning) for warning in self.warnings]
        facts += [("rows per person", self._choice)] if self._choice else []
        columns = [grid(_COLUMN_HEADS, self._columns, left=2)] if self._columns else []
        bounds = [[f"{k:,}", figure(error)] for k, error in self.noise_by_bound.items()]
        columns += [grid(_BOUND_HEADS, bounds)] if bounds else []
        return card("Plan", facts, below=[grid(heads, lines, left=2, note=self._legend(heads)), *columns])

    @property
    def _columns(self) -> list[list[str]]:
        return [line for outlook in self.outlooks for line in outlook.column_lines()]

    def _expected(self) -> tuple[list[str], list[list[str]]]:
        """What to expect as a table: its heads, those left out that no line has, and its lines."""
        lines = self.rows()
        heads = [head for head in _HEADS if any(_format_entry(line, head) for line in lines)]
        return heads, [[_format_entry(line, head) for head in heads] for line in lines]

    @property
    def _reasons(self) -> list[str]:
        """Why each view would be published as it would, and what its mechanism would choose."""
        request = (self.request.bounded or (self.request,))[0]
        published = sorted(request.published, key=request.place_of_wants)
        reasons = [f"{_short(view)}: {view.choice.name}. {view.why}" for view in published]
        return [*reasons, *(sentence for outlook in self.outlooks for sentence in outlook.sentences())]

    def _legend(self, heads: Sequence[str]) -> str:
        """What the heads mean that need to be explained."""
        meanings = {**_MEANINGS, "error": f"error is the typical error of {self._error_of}."}
        meanings["bound"] = self._describe_bounds
        told = [meanings[head] for head in heads if head in meanings]
        return " ".join([*told, _COLUMN_LEGEND] if self._columns else told)

    @property
    def _describe_bounds(self) -> str:
        """What the bounds are about, for each kind of view, and which views have none."""
        bounded = dict.fromkeys(view.bound_of for view in self.request.published if view.bound_of)
        none = [_short(view) for view in self.request.published if view.bound_of is None]
        about = f"bound is proved before any data, and fails with probability {float(self.beta):g} at most"
        told = f"{about}: of {'; of '.join(bounded)}." if bounded else ""
        without = (
            f"No theorem bounds {', '.join(none)} before there are data; a release states its own bound."
        )
        return " ".join([told] * bool(told) + [without] * bool(none))

    @property
    def _error_of(self) -> str:
        """What the errors are those of, for each kind of view that there is."""
        return "; of ".join(dict.fromkeys(view.error_of for view in self.request.published))


_HEADS: Final = (
    "view",
    "mechanism",
    "step",
    "rho",
    "epsilon",
    "rows",
    "error",
    "bound",
    "numbers",
    "bytes",
    "rounding",
)
_BOUND_HEADS: Final = ("at most", "error by noise")
_COLUMN_HEADS: Final = ("column", "", "cells", "rows", "single", "95%", "mean", "range")
_COLUMN_LEGEND: Final = (
    "single is the standard error of one label or value of a column, 95% the half width of its interval, "
    "mean the rows that it has on average, range the standard error of a random range; with ~ these are "
    "guesses, since wider ranges are counted."
)
_MEANINGS: Final[Mapping[str, str]] = {
    "step": "A step in parentheses is not in the schema but shown beside it.",
    "rows": "rows is a guess.",
    "numbers": "numbers is how many integers the release holds.",
    "bytes": "bytes is eight for each of them, before packing.",
    "rounding": "rounding is how far a value may be moved, in units of its column.",
}


@warn_once()
def plan(
    schema: Mapping[str, Domain],
    *,
    epsilon: object = None,
    rho: object = None,
    rows: int | Sequence[int] | None = None,
    by: str | Sequence[str] | None = None,
    views: Views | None = None,
    shares: Shares | None = None,
    sums: Sequence[str] = (),
    moments: Sequence[str] = (),
    queries: Queries | str | Sequence[Queries | str] | None = None,
    wants: Wants | str | None = None,
    delta: object = None,
    person: str | None = None,
    contributions: int | str | AutoContributions = 1,
    neighbors: Neighbors = "add-remove",
    mechanism: MechanismOrName = AUTO,
    quantiles: int | str | Sequence[object] | None = None,
    together: Together = (),
    options: Mapping[str, object] | None = None,
    steps: Sequence[object] | None = None,
    beta: object = "0.05",
) -> Plan:
    """What `publish` would do with the same parameters, without any data.

    The parameters mean what they mean to `publish`. `rows` is a public guess of how many rows there are;
    without one, few, usual and many are shown. Columns of real numbers that have a view of their own are
    shown with coarser steps too, or with those in `steps`: rounding beside noise. Where no view is of one
    such column alone, `steps` is refused. Where a theorem bounds the errors before any data, the bound that
    fails with probability `beta` at most is shown.

    >>> from partita.domain import Integer
    >>> [view.name for view in plan({"age": Integer(0, 120)}, epsilon=1).request.views]
    ['age']
    """
    request = Request.checked(
        schema,
        epsilon=epsilon,
        rho=rho,
        by=by,
        views=views,
        shares=shares,
        sums=sums,
        moments=moments,
        queries=queries,
        wants=wants,
        delta=delta,
        person=person,
        contributions=contributions,
        neighbors=neighbors,
        mechanism=mechanism,
        quantiles=quantiles,
        together=together,
        options=options,
    )
    chance = check_probability(beta)
    guesses, finer = _guesses(rows), None if steps is None else _steps(steps, request.views)
    outlooks, least = [], (request.bounded or (request,))[0]
    for view in sorted(least.published, key=least.place_of_wants):
        outlooks.append(_outlook(view, least, guesses, chance, planned=True))
        for domain in () if is_own(mechanism) else _other_steps(_alone(view), finer):
            schema_of_one = {view.name: domain}
            other = view_request(schema_of_one, view.share, least.shared, mechanism, options=request.options)
            outlooks.append(_outlook(other, least, guesses, chance, planned=False))
    return Plan(request=request, outlooks=tuple(outlooks), beta=chance)


def _outlook(
    view: ViewRequest[Any], request: Request, guesses: Sequence[int], beta: Fraction, *, planned: bool
) -> Outlook:
    predict = view.choice.mechanism.predicted_numbers
    return Outlook(
        view=view,
        epsilon=view.guarantee.epsilon if request.promised else view.share * request.guarantee.epsilon,
        rho=view.share * request.promised.rho if request.promised else None,
        predictions=tuple(
            Prediction(
                rows,
                view.predicted_error(rows),
                predict(rows),
                view.bound(beta, rows),
                view.plan_lines(rows),
                view.predict_table(rows),
                view.plan_warnings(rows, request.shared),
            )
            for rows in guesses
        ),
        planned=planned,
    )


def _entries(view: ViewRequest[Any]) -> dict[str, Any]:
    """A view in words that JSON can write, the same words for one column and for several."""
    return {
        "view": view.name,
        "columns": list(view.columns),
        "domains": [domain.to_spec() for domain in view.domains],
        "share": str(view.share),
        "mechanism": view.choice.name,
    }


def _alone(view: ViewRequest[Any]) -> Domain | None:
    """The domain of a column that has a view of counts of its own."""
    return view.domain if isinstance(view, ColumnRequest) else None


def _other_steps(domain: Domain | None, steps: Sequence[Fraction] | None) -> list[Real]:
    """The same column of real numbers with other steps, its bounds moved outwards to multiples of them."""
    if not isinstance(domain, Real):
        return []
    wanted = [domain.step * factor for factor in _COARSER] if steps is None else steps
    return [
        Real(math.floor(domain.low / step) * step, math.ceil(domain.high / step) * step, step=step)
        for step in wanted
        if step != domain.step
    ]


def _guesses(rows: object) -> tuple[int, ...]:
    if rows is None:
        return ROWS
    listed = rows if isinstance(rows, (list, tuple)) and rows else [rows]
    return tuple(integer(each, "rows", low=0, high=_MOST_ROWS) for each in listed)


def _steps(steps: object, views: Sequence[ViewRequest[Any]]) -> list[Fraction]:
    fix = 'pass ["0.01", "1"]'
    listed: Sequence[object] = check_type(steps, (list, tuple), "steps", "must be a list of steps", fix=fix)
    exact = [rational(step, "steps") for step in listed]
    least, fix = min(exact, default=Fraction(1)), 'pass for example "0.01"'
    check(least > 0, "steps", "must be positive", given=least, fix=fix)
    rule = "needs a column of real numbers that has a view of its own"
    fix, names = (
        "publish such a column by itself, or leave the steps out",
        ", ".join(view.name for view in views),
    )
    check(any(isinstance(_alone(view), Real) for view in views), "steps", rule, given=names, fix=fix)
    return exact


def short_name(columns: Sequence[str]) -> str:
    """The name of a view, with how many columns it has in place of most of them.

    >>> short_name(["a", "b"]), short_name(list("abcdefg"))
    ('a x b', 'a x ... x g, 7 columns')
    """
    if len(columns) <= _NAMED_COLUMNS:
        return view_name(columns)
    return f"{columns[0]} x ... x {columns[-1]}, {len(columns)} columns"


def _short(view: ViewRequest[Any]) -> str:
    if view.wants:
        return ", ".join(view.wants)
    return short_name(view.columns) if isinstance(view, CountRequest) else view.name


def _format_entry(line: Mapping[str, Any], head: str) -> str:
    """One entry of a line as text; nothing where a column has no step."""
    value = line.get(head, "")
    if head in ("rho", "epsilon") and "rho" in line:
        return short(Fraction(value))
    if head == "view" and "wants" in line:
        return ", ".join(line["wants"])
    if head == "view" and "by_column" in line:
        return short_name(line["columns"])
    if value is None:
        return {"step": "", "rounding": "", "bound": "none"}.get(head, "unknown")
    if head == "step" and not line["planned"]:
        return f"({value})"
    if isinstance(value, float):
        return figure(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


# `simulate`: publish public data with fresh noise, and measure the errors that it makes.
_MOST_RANGES: Final = 10**6
_MOST_TIMES: Final = 10**4
_SIMULATION_HEADS: Final = ("view", "mechanism", "ranges", "mean", "typical", "largest")


@final
@dataclass(frozen=True, kw_only=True)
class SimulatedErrors:
    """How far the answers to some ranges, or boxes over several columns, lie from the exact counts.

    `ranges` says where they end: anywhere in the domain ("anywhere"), or at values of the file ("values").
    Of a table it is "labels" or "ranges" of one column, "cells" or "boxes" of two, of all pairs together
    first. `typical` is the root of the mean square.
    """

    columns: tuple[str, ...]
    mechanism: str
    ranges: str
    mean: float
    typical: float
    largest: float

    def cells(self) -> list[str]:
        """One line of a table."""
        errors = (self.mean, self.typical, self.largest)
        return [short_name(self.columns), self.mechanism, self.ranges, *map(figure, errors)]


@final
@dataclass(frozen=True, kw_only=True)
class SimulatedAnswers:
    """How the answers to one question, or to one for each group of a want, compare with the exact ones.

    `times` releases were made. Of all answers with a value, `typical` is the root of the mean square of the
    errors, and `largest` the largest. `exact` is the exact answer, or the mean of those of all groups. `held`
    is the part of the intervals, at `confidence`, that hold the exact answer, and `determinable` the part of
    the answers that have a value.
    """

    question: str
    groups: int
    times: int
    exact: float
    typical: float
    largest: float
    held: float
    determinable: float
    confidence: float

    @staticmethod
    def of(text: str, exact: Floats, asked: Floats, confidence: float) -> SimulatedAnswers:
        """From the exact answers, and value and interval of each question in each release."""
        known = np.isfinite(exact)
        exact, asked = exact[known], asked[:, known]
        valued = np.isfinite(asked[..., 0])
        misses = np.abs(asked[..., 0] - exact)[valued]
        inside = (asked[..., 1] <= exact) & (exact <= asked[..., 2])
        return SimulatedAnswers(
            question=text,
            groups=len(known),
            times=len(asked),
            exact=_mean(exact),
            typical=math.sqrt(_mean(misses**2)) if misses.size else math.nan,
            largest=float(misses.max()) if misses.size else math.nan,
            held=_mean(inside),
            determinable=_mean(valued),
            confidence=confidence,
        )

    def cells(self) -> list[str]:
        """One line of a table."""
        numbers = (_format_number(each) for each in (self.exact, self.typical, self.largest))
        parts = (_format_part(self.held), _format_part(self.determinable))
        return [self.question, f"{self.groups:,}", *numbers, *parts]


def _mean(numbers: Any) -> float:
    return float(np.mean(numbers)) if numbers.size else math.nan


def _format_number(number: float) -> str:
    return "" if math.isnan(number) else f"{number:,.5g}" if abs(number) < 1e5 else f"{number:,.0f}"


def _format_part(part: float) -> str:
    return "" if math.isnan(part) else f"{part:.0%}"


@final
@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Errors measured against the exact counts of a PUBLIC file.

    The errors tell about the exact counts: of data that must stay private they must not be shown, and
    no ledger pays for them.
    """

    measured: tuple[SimulatedErrors, ...]
    asked: tuple[SimulatedAnswers, ...] = ()
    choice: SimulatedChoice | None = None

    def rows(self) -> list[dict[str, Any]]:
        """One mapping of plain values for each view and kind of ranges."""
        return [asdict(each) for each in self.measured]

    def to_json(self) -> dict[str, Any]:
        """The errors, and what they may be used for."""
        asked = [asdict(each) for each in self.asked]
        chosen = {} if self.choice is None else {"contributions": asdict(self.choice)}
        return {"simulation": _WARNING, "measured": self.rows(), "asked": asked, **chosen}

    def __str__(self) -> str:
        parts = [_WARNING]
        if self.choice is not None:
            bounds = table([_CHOICE_HEADS, *(each.cells() for each in self.choice.bounds)])
            parts += [fill(str(self.choice), _WIDTH), bounds, _CHOICE_LEGEND]
        if self.asked:
            parts += [table([_ASKED_HEADS, *(each.cells() for each in self.asked)]), self._asked_legend]
        if self.measured or not self.asked:
            measured = table([_SIMULATION_HEADS, *(each.cells() for each in self._shown)], left=3)
            parts += [measured, self._legend]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        below = []
        if self.choice is not None:
            bounds = [each.cells() for each in self.choice.bounds]
            below.append(grid(_CHOICE_HEADS, bounds, note=f"{self.choice} {_CHOICE_LEGEND}"))
        if self.asked:
            below.append(grid(_ASKED_HEADS, [each.cells() for each in self.asked], note=self._asked_legend))
        if self.measured or not self.asked:
            lines = [each.cells() for each in self._shown]
            below.append(grid(_SIMULATION_HEADS, lines, left=3, note=self._legend))
        return card("Simulation", [("beware", _WARNING)], below=below)

    @property
    def _asked_legend(self) -> str:
        confidence = self.asked[0].confidence
        return _ASKED_LEGEND.format(times=self.asked[0].times, confidence=f"{confidence:.6g}")

    @property
    def _pairs(self) -> list[SimulatedErrors]:
        """What was measured of single pairs of a table, the worst first."""
        found = [each for each in self.measured if each.ranges in _OF_PAIRS and len(each.columns) == 2]
        return sorted(found, key=lambda each: -each.typical)

    @property
    def _shown(self) -> list[SimulatedErrors]:
        """All but the pairs that are not among the worst."""
        hidden = {id(each) for each in self._pairs[_WORST_PAIRS:]}
        return [each for each in self.measured if id(each) not in hidden]

    @property
    def _legend(self) -> str:
        left = len(self._pairs) - _WORST_PAIRS
        more = (
            f"\n{left} lines of pairs with smaller errors are left out; `rows()` has all." if left > 0 else ""
        )
        return (f"{_LEGEND}\n{_TABLE_LEGEND}" if self._pairs else _LEGEND) + more


_WARNING: Final = (
    "Simulation: errors of ranges and boxes against the exact counts of a file, for PUBLIC data only. "
    "Nothing was released and no ledger was debited."
)

_CHOICE_HEADS: Final = ("at most", "left out", "noise", "error", "chance")
_CHOICE_LEGEND: Final = (
    "Of each bound the rows that a total loses, the typical error by noise if the bound is given, both\n"
    "together, and how likely it is chosen. The intervals of a release tell of the noise only."
)
_ASKED_HEADS: Final = ("question", "answers", "exact", "typical", "largest", "held", "determinable")
_ASKED_LEGEND: Final = (
    "Of {times} releases, beside the exact answers of all rows: typical is the root of the mean square of\n"
    "the errors, held the part of the intervals at {confidence} that hold the exact answer. Of several\n"
    "answers, one for each group, label or range, exact is the mean."
)
_OF_PAIRS: Final = ("cells", "boxes")
_WORST_PAIRS: Final = 6  # lines about single pairs that are shown

_TABLE_LEGEND: Final = (
    "Of a table: labels or values of a column, its random ranges, cells and random boxes of two columns."
)
_LEGEND: Final = (
    "Errors are in rows; typical is the root of the mean square. Ranges and boxes end anywhere in the\n"
    "domain, or at values of the file. Other statistics are measured for the questions that are passed."
)


@warn_once()
def simulate(
    plan: Plan,
    source: object,
    *,
    ranges: int = 1000,
    questions: Sequence[object] | str | None = None,
    times: int = 20,
    confidence: object = 0.95,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
) -> Simulation:
    """Publish a PUBLIC table as planned, with fresh noise, and compare with the exact answers.

    The counts of many ranges, boxes or cells are compared in one release. The `questions` that matter, as
    text or as wants, are asked of so many `times` releases, each with its interval: what is wanted, if a plan
    has wants and no questions are passed. A want by a column asks for each group, and `ranges of dest` for
    each label. Exact answers are those of all rows, also of persons of whom few rows count. Where the bound
    on rows per person is to be chosen, what that gains is shown, and one bound is chosen for ranges, one for
    each release.

    The table stands in for one that may not be looked at. Never pass the private table: what this returns has
    no guarantee.
    """
    check(isinstance(plan, Plan), "plan", "must be a Plan", given=plan, fix="pass what `plan` returned")
    number = integer(ranges, "ranges", low=1, high=_MOST_RANGES)
    releases = integer(times, "times", low=1, high=_MOST_TIMES)
    sure = float(check_probability(confidence, "confidence"))
    request, listed = plan.request, [questions] if isinstance(questions, str | Want) else questions
    fix = 'pass for example ["count where age between 30 and 39"]'
    given: Sequence[object] = plan.request.wants if listed is None else listed
    check_type(given, (list, tuple), "questions", "must be a list of questions", fix=fix)
    trials = [QuestionTrial.read(each, request.declared) for each in given if _is_compared(each, listed)]
    opened = open_source(source, delimiter=delimiter, header=header)
    counted, choice, bounded, secrets = count(opened, request, None), None, request, list[Any]()
    if isinstance(counted, RankedCounts):
        assert request.choice is not None
        assert request.auto is not None
        choice = SimulatedChoice.of(
            request.choice, counted.within, _count_rows(opened, request), request.auto.share
        )
        place = request.choice.draw(counted.within).place
        bounded, secrets = request.bounded[place], counted.at(place)
    else:
        secrets = list(counted)
    pairs = zip(bounded.views, secrets, strict=False)
    measured = tuple(each for view, secret in pairs for each in _measure(view, secret, number))
    asked = _ask(trials, request, opened, counted, releases, sure)
    return Simulation(measured=measured, asked=asked, choice=choice)


def _count_rows(source: Source, request: Request) -> int:
    """All rows of a public table, whoever has them."""
    name = request.columns[0]
    alone = tallying(source)({name: request.declared[name]}).column(name)
    rows: int = alone.histogram.total + sum(alone.specials.values())
    return rows


def _is_compared(want: object, listed: object) -> bool:
    """Whether a want of a plan can be compared; what is passed is refused if it cannot."""
    return listed is not None or (isinstance(want, Want) and want.kind is not BOUNDS)


def _ask(
    trials: Sequence[QuestionTrial],
    request: Request,
    source: Source,
    counted: Counted,
    times: int,
    confidence: float,
) -> tuple[SimulatedAnswers, ...]:
    """The same questions asked of fresh releases, beside the exact answers."""
    if not trials:
        return ()
    exact, asked = list[Floats](), [list[Floats]() for _ in trials]
    for trial in trials:
        check_columns(trial.columns, request.declared, "questions")
        names = trial.columns or request.columns[:1]
        rows = tallying(source)({name: request.declared[name] for name in names}).points(names)
        points = rows.gathered() if isinstance(rows, CompactPoints) else rows
        exact.append(trial.exact(points, {name: request.declared[name] for name in names}))
    origin = Provenance(version=partita.__version__, day=checked_day(None), options=request.stated_options)
    for _ in range(times):
        release = draw(request, counted, origin)
        for trial, found in zip(trials, asked, strict=True):
            found.append(trial.asked(release, request.declared, confidence))
    together = zip(trials, exact, asked, strict=True)
    return tuple(SimulatedAnswers.of(t.text, e, np.array(a), confidence) for t, e, a in together)


def _measure(view: CountRequest[Any], secret: Any, ranges: int) -> list[SimulatedErrors]:
    trial = _trial(view, secret)
    if isinstance(trial, TableTrial):
        return _measure_table(view, trial, ranges)
    found = trial.ends(ranges).items()
    return [_summary(view, view.columns, kind, trial.misses(ends)) for kind, ends in found]


def _measure_table(view: CountRequest[Any], trial: TableTrial, ranges: int) -> list[SimulatedErrors]:
    """The errors of each column and of each pair, and those of all pairs together."""
    found, pairs = list[SimulatedErrors](), dict[str, list[Floats]]()
    for places, kind, misses in trial.misses(ranges):
        found.append(_summary(view, tuple(view.columns[place] for place in places), kind, misses))
        if len(places) > 1:
            pairs.setdefault(kind, []).append(misses)
    every = [_summary(view, view.columns, kind, np.concatenate(each)) for kind, each in pairs.items()]
    return [*every, *found]


def _trial(view: CountRequest[Any], secret: Any) -> SimulationTrial | TableTrial:
    released = view.release(secret)
    points = secret.gathered() if isinstance(secret, CompactPoints) else secret
    if isinstance(released, BoxView) and isinstance(points, Points):
        if isinstance(released.boxes, TableGraphRelease):
            return TableTrial(released.boxes, points)
        return BoxTrial(released.boxes, points)
    if isinstance(released, View) and isinstance(secret.histogram, Histogram):
        return ColumnTrial(released.axis, secret.histogram)
    rule, fix = "must be a table that is counted on this machine", "simulate with a sample of it in a file"
    raise InvalidParameter("source", rule, given=type(secret).__name__, fix=fix)


def _summary(view: CountRequest[Any], columns: tuple[str, ...], kind: str, misses: Floats) -> SimulatedErrors:
    return SimulatedErrors(
        columns=columns,
        mechanism=view.choice.name,
        ranges=kind,
        mean=float(misses.mean()),
        typical=float(np.sqrt(np.mean(misses**2))),
        largest=float(misses.max()),
    )
