"""`plan`: what a release would cost, how well it would answer and how large it would be. Touches no data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from textwrap import fill
from typing import Any, Final, final

from partita.domain.base.base import Domain
from partita.domain.columns.text import number_text
from partita.domain.numeric.real import Real
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import Guarantee, Neighbors
from partita.html import card, grid
from partita.numbers import integer, rational
from partita.public.base.figures import figure, table
from partita.public.queries.queries.queries import Queries
from partita.publish.request.drafts import view_request
from partita.publish.request.request import Request
from partita.publish.request.shares import Shares
from partita.publish.views.view_request import ColumnRequest, ViewRequest
from partita.publish.views.views import Views
from partita.trusted.mechanisms.catalogue import AUTO, ROWS, Choice

_COARSER: Final = (10, 100)
_BYTES: Final = 8
_WIDTH: Final = 100
_MOST_ROWS: Final = 2**62


@final
@dataclass(frozen=True)
class Prediction:
    """What to expect if there are `rows` rows; None where the mechanism predicts nothing.

    `error` is the root-mean-square error of a random range, of a random box over several columns, of a sum by
    a random range of keys in multiples of the largest value that it covers, or of an answer to a query, and
    `numbers` how many integers the release holds. A file packs them, so `bytes`, eight for each, is
    more than it takes. `says` are sentences about what the mechanism would choose.
    """

    rows: int
    error: float | None
    numbers: int | None
    says: tuple[str, ...] = ()

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
            "columns": list(self.view.columns),
            "cells": self.cells,
            "step": None if self.rounding is None else number_text(2 * self.rounding),
            "rounding": None if self.rounding is None else number_text(self.rounding),
            "planned": self.planned,
            "epsilon": str(self.epsilon),
            "mechanism": self.choice.name,
        }
        return [
            {**shared, "rows": each.rows, "error": each.error, "numbers": each.numbers, "bytes": each.bytes}
            | ({"says": list(each.says)} if each.says else {})
            for each in self.predictions
        ]

    def sentences(self) -> list[str]:
        """What the mechanism would choose, for each number of rows."""
        return [
            f"{self.view.name}, for {each.rows:,} rows: {' '.join(each.says)}"
            for each in self.predictions
            if each.says
        ]


@final
@dataclass(frozen=True, kw_only=True)
class Plan:
    """A release that has not been made: its request, and what to expect of each view.

    Every number follows from public facts. Print it to read it.
    """

    request: Request
    outlooks: tuple[Outlook, ...]

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
        return {"request": request, "why": reasons, "expected": self.rows()}

    def __str__(self) -> str:
        heads, lines = self._expected()
        above = [f"To publish with {self.guarantee}:", "", table([heads, *lines], left=2), "", *self._reasons]
        return "\n".join([*above, "", fill(self._legend(heads), _WIDTH)])

    def _repr_html_(self) -> str:
        heads, lines = self._expected()
        facts = [("promise", self.guarantee), *(("why", reason) for reason in self._reasons)]
        return card("Plan", facts, below=[grid(heads, lines, left=2, note=self._legend(heads))])

    def _expected(self) -> tuple[list[str], list[list[str]]]:
        """What to expect as a table: its heads, those left out that no line has, and its lines."""
        lines = self.rows()
        heads = [head for head in _HEADS if any(_shown(line, head) for line in lines)]
        return heads, [[_shown(line, head) for head in heads] for line in lines]

    @property
    def _reasons(self) -> list[str]:
        """Why each view would be published as it would, and what its mechanism would choose."""
        reasons = [f"{view.name}: {view.choice.name}. {view.why}" for view in self.request.published]
        return [*reasons, *(sentence for outlook in self.outlooks for sentence in outlook.sentences())]

    def _legend(self, heads: Sequence[str]) -> str:
        """What the heads mean that need to be explained."""
        meanings = {**_MEANINGS, "error": f"error is the typical error of {self._error_of}."}
        return " ".join(meanings[head] for head in heads if head in meanings)

    @property
    def _error_of(self) -> str:
        """What the errors are those of, for each kind of view that there is."""
        return "; of ".join(dict.fromkeys(view.error_of for view in self.request.published))


_HEADS: Final = ("view", "mechanism", "step", "epsilon", "rows", "error", "numbers", "bytes", "rounding")
_MEANINGS: Final[Mapping[str, str]] = {
    "step": "A step in parentheses is not in the schema but shown beside it.",
    "rows": "rows is a guess.",
    "numbers": "numbers is how many integers the release holds.",
    "bytes": "bytes is eight for each of them, before packing.",
    "rounding": "rounding is how far a value may be moved, in units of its column.",
}


def plan(
    schema: Mapping[str, Domain],
    *,
    epsilon: object,
    rows: int | Sequence[int] | None = None,
    by: str | Sequence[str] | None = None,
    views: Views | None = None,
    shares: Shares | None = None,
    sums: Sequence[str] = (),
    moments: Sequence[str] = (),
    queries: Queries | str | Sequence[Queries | str] | None = None,
    delta: object = 0,
    person: str | None = None,
    contributions: int = 1,
    neighbors: Neighbors = "add-remove",
    mechanism: str = AUTO,
    steps: Sequence[object] | None = None,
) -> Plan:
    """What `publish` would do with the same parameters, without any data.

    The parameters mean what they mean to `publish`. `rows` is a public guess of how many rows there are;
    without one, few, usual and many are shown. Columns of real numbers that have a view of their own are
    shown with coarser steps too, or with those in `steps`: rounding beside noise. Where no view is of one
    such column alone, `steps` is refused.

    >>> from partita.domain import Integer
    >>> [view.name for view in plan({"age": Integer(0, 120)}, epsilon=1).request.views]
    ['age']
    """
    request = Request.checked(
        schema,
        epsilon=epsilon,
        by=by,
        views=views,
        shares=shares,
        sums=sums,
        moments=moments,
        queries=queries,
        delta=delta,
        person=person,
        contributions=contributions,
        neighbors=neighbors,
        mechanism=mechanism,
    )
    guesses, finer = _guesses(rows), None if steps is None else _steps(steps, request.views)
    outlooks = []
    for view in request.published:
        outlooks.append(_outlook(view, request, guesses, planned=True))
        for domain in _other_steps(_alone(view), finer):
            other = view_request({view.name: domain}, view.share, request.guarantee, mechanism)
            outlooks.append(_outlook(other, request, guesses, planned=False))
    return Plan(request=request, outlooks=tuple(outlooks))


def _outlook(view: ViewRequest[Any], request: Request, guesses: Sequence[int], *, planned: bool) -> Outlook:
    return Outlook(
        view=view,
        epsilon=view.share * request.guarantee.epsilon,
        predictions=tuple(_prediction(view, rows) for rows in guesses),
        planned=planned,
    )


def _prediction(view: ViewRequest[Any], rows: int) -> Prediction:
    numbers = view.choice.mechanism.predicted_numbers(rows)
    return Prediction(rows, view.predicted_error(rows), numbers, view.plan_lines(rows))


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
    return [_with_step(domain, step) for step in wanted if step != domain.step]


def _with_step(domain: Real, step: Fraction) -> Real:
    low, high = math.floor(domain.low / step), math.ceil(domain.high / step)
    return Real(low * step, high * step, step=step)


def _guesses(rows: object) -> tuple[int, ...]:
    if rows is None:
        return ROWS
    listed = rows if isinstance(rows, (list, tuple)) and rows else [rows]
    return tuple(integer(each, "rows", low=0, high=_MOST_ROWS) for each in listed)


def _steps(steps: object, views: Sequence[ViewRequest[Any]]) -> list[Fraction]:
    if not isinstance(steps, (list, tuple)):
        raise InvalidParameter("steps", "must be a list of steps", given=steps, fix='pass ["0.01", "1"]')
    exact = [rational(step, "steps") for step in steps]
    if any(step <= 0 for step in exact):
        raise InvalidParameter("steps", "must be positive", given=min(exact), fix='pass for example "0.01"')
    if not any(isinstance(_alone(view), Real) for view in views):
        rule = "needs a column of real numbers that has a view of its own"
        fix = "publish such a column by itself, or leave the steps out"
        raise InvalidParameter("steps", rule, given=", ".join(view.name for view in views), fix=fix)
    return exact


def _shown(line: Mapping[str, Any], head: str) -> str:
    """One entry of a line as text; nothing where a column has no step."""
    value = line[head]
    if value is None:
        return "" if head in ("step", "rounding") else "unknown"
    if head == "step" and not line["planned"]:
        return f"({value})"
    if isinstance(value, float):
        return figure(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
