"""The views of a release as entries of a specification, and back: a form for each kind of view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast, final

from partita.domain import domain_from_spec
from partita.domain.axis import MOST_AXES, Axis
from partita.domain.base.base import Domain
from partita.public.axis.base.ranges import Json, Parts, Ranges
from partita.public.boxes.base.boxes import Boxes
from partita.public.file_entries.file_entries import (
    entries,
    guarantee_entries,
    guarantee_from,
    listed,
    refused,
    specials_entries,
    specials_from,
    text,
)
from partita.public.file_entries.published import Published
from partita.public.queries.language.parsing import queries_from
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.results.totals import AnyView
from partita.public.sums.base.sums import SumRelease
from partita.public.sums.view.key_counts import KeyCounts
from partita.public.sums.view.sum_view import Sums, SumView, sum_name
from partita.public.views.box_view import BoxView
from partita.public.views.view import View
from partita.public.workload.release.query_view import QueryView
from partita.public.workload.release.workload import WorkloadRelease

VERSION: Final = 1
"""The version of a file in which every view has one column."""
SEVERAL: Final = 2
"""The version of a file in which some view has several columns."""
NUMBERS: Final = 3
"""The version of a file in which some view has sums, or answers to queries."""

EVERY_VIEW: Final = ("facts", "guarantee", "kind", "mechanism", "series", "why")
"""The entries that all views have."""

QUERIES: Final = "queries"
"""The name of the view of queries: a release has one at most."""

Entry: TypeAlias = Mapping[str, Json]


@final
@dataclass(frozen=True)
class Form:
    """How views of one kind are written and read.

    `mark` is the entry that no form before this one in `FORMS` has. `about` are the entries that say what
    the view is about, `released` is what was released, `name` is how series begin in the file, and `read`
    makes the view from its entries, its parts, and the views of counts that stand before it.
    """

    version: int
    mark: str
    names: tuple[str, ...]
    about: Callable[[Any], dict[str, Json]]
    released: Callable[[Any], Any]
    name: Callable[[Entry], str]
    read: Callable[[Entry, Parts, Sequence[AnyView]], Published]

    def written(self, view: Published, parts: Parts) -> dict[str, Json]:
        """The entries of a view but for its series."""
        released = self.released(view)
        return {
            **self.about(view),
            "mechanism": view.mechanism,
            "why": view.why,
            "kind": released.kind,
            "facts": dict(parts.facts),
            "guarantee": guarantee_entries(released.guarantee),
        }


def form_of(view: Entry | Published) -> Form:
    """The form of a view, or of the entries of one."""
    if isinstance(view, Mapping):
        return next((form for form in FORMS.values() if form.mark in view), FORMS[View])
    return FORMS[type(view)]


def about(view: Published) -> dict[str, Json]:
    """The entries that say what a view is about."""
    return {name: entry for name, entry in form_of(view).about(view).items() if name != "specials"}


def view_name(columns: Sequence[str]) -> str:
    """The columns of a view in one name, with which its series in a file begin.

    >>> view_name(["age"]), view_name(["age", "salary"])
    ('age', 'age x salary')
    """
    return " x ".join(columns)


def described(columns: Sequence[str], domains: Sequence[Domain]) -> dict[str, Json]:
    """The entries that say what a view is about: one column and its domain, or several."""
    if len(columns) == 1:
        return {"column": columns[0], "domain": _plain(domains[0])}
    return _together(columns, domains)


def sums_described(keys: Sequence[str], column: str, declared: Mapping[str, Domain]) -> dict[str, Json]:
    """The entries that say what a view of sums is about."""
    summed: dict[str, Json] = {"column": column, "domain": _plain(declared[column])}
    return {"sum": summed, **_together(keys, [declared[key] for key in keys])}


def queries_described(queries: Queries, columns: Sequence[str], domains: Sequence[Domain]) -> dict[str, Json]:
    """The entries that say what a view of queries is about."""
    return {"queries": queries.to_json(), **_together(columns, domains)}


def _together(columns: Sequence[str], domains: Sequence[Domain]) -> dict[str, Json]:
    return {"columns": list[Json](columns), "domains": list[Json](map(_plain, domains))}


def _plain(domain: Domain) -> dict[str, Json]:
    spec = domain.to_spec()
    return {key: list[Json](value) if isinstance(value, list) else value for key, value in spec.items()}


def _domain(spec: Json) -> Domain:
    return domain_from_spec(entries(spec))


def _columns(view: Entry, *, least: int) -> tuple[str, ...]:
    """The columns of a view that lists them."""
    columns = tuple(text(column) for column in listed(view["columns"]))
    if not least <= len(columns) <= MOST_AXES or len(set(columns)) < len(columns):
        raise refused(f"must have {least} to {MOST_AXES} different columns in a view of this kind")
    return columns


def _domains(view: Entry) -> tuple[Domain, ...]:
    return tuple(map(_domain, listed(view["domains"])))


def _declared(view: Entry, *, least: int) -> dict[str, Domain]:
    """The columns of a view that lists them, each with its domain."""
    columns, domains = _columns(view, least=least), _domains(view)
    if len(columns) != len(domains):
        raise refused("must have a domain for each column")
    return dict(zip(columns, domains, strict=True))


def _said(view: Entry) -> dict[str, str]:
    return {"mechanism": text(view["mechanism"]), "why": text(view["why"])}


def _column_view(view: Entry, parts: Parts, before: Sequence[AnyView]) -> View:
    domain = _domain(view["domain"])
    axis = Ranges.of_kind(text(view["kind"])).from_parts(parts, guarantee_from(view["guarantee"]))
    if axis.size != domain.size:
        raise refused("must have a domain of as many cells as were released")
    specials = specials_from(view["specials"], domain.specials)
    return View(column=text(view["column"]), domain=domain, axis=axis, specials=specials, **_said(view))


def _box_view(view: Entry, parts: Parts, before: Sequence[AnyView]) -> BoxView:
    boxes = Boxes.of_kind(text(view["kind"])).from_parts(parts, guarantee_from(view["guarantee"]))
    return BoxView(columns=_columns(view, least=2), domains=_domains(view), boxes=boxes, **_said(view))


def _sum_view(view: Entry, parts: Parts, before: Sequence[AnyView]) -> SumView:
    keys, summed = _declared(view, least=0), _summed(view)
    column, domain = text(summed["column"]), _domain(summed["domain"])
    return SumView(
        keys=tuple(keys),
        column=column,
        declared={**keys, column: domain},
        sums=_sums(view, parts, keys, domain),
        beside=KeyCounts.of_sums(before, tuple(keys), column),
        **_said(view),
    )


def _sums(view: Entry, parts: Parts, keys: Mapping[str, Domain], domain: Domain) -> Sums:
    kind, guarantee = SumRelease.of_kind(text(view["kind"])), guarantee_from(view["guarantee"])
    axes = tuple(map(Axis.of, keys.values()))
    return cast(Sums, kind.from_parts(parts, guarantee, keys=axes, value=domain))


def _summed(view: Entry) -> dict[str, Json]:
    return entries(view["sum"], ("column", "domain"))


def _sum_name(view: Entry) -> str:
    return sum_name(text(_summed(view)["column"]), _columns(view, least=0))


def _query_view(view: Entry, parts: Parts, before: Sequence[AnyView]) -> QueryView:
    declared = _declared(view, least=1)
    columns, domains = tuple(declared), tuple(declared.values())
    queries, universe = queries_from(view["queries"]), Universe(columns, domains)
    answers = WorkloadRelease.of_kind(text(view["kind"])).from_parts(
        parts, guarantee_from(view["guarantee"]), queries, universe
    )
    return QueryView(columns=columns, domains=domains, queries=queries, answers=answers, **_said(view))


FORMS: Final[Mapping[type, Form]] = {
    QueryView: Form(
        NUMBERS,
        "queries",
        ("queries", "columns", "domains"),
        lambda view: queries_described(view.queries, view.columns, view.domains),
        lambda view: view.answers,
        lambda view: QUERIES,
        _query_view,
    ),
    SumView: Form(
        NUMBERS,
        "sum",
        ("sum", "columns", "domains"),
        lambda view: sums_described(view.keys, view.column, view.declared),
        lambda view: view.sums,
        _sum_name,
        _sum_view,
    ),
    BoxView: Form(
        SEVERAL,
        "columns",
        ("columns", "domains"),
        lambda view: described(view.columns, view.domains),
        lambda view: view.boxes,
        lambda view: view_name(_columns(view, least=2)),
        _box_view,
    ),
    View: Form(
        VERSION,
        "column",
        ("column", "domain", "specials"),
        lambda view: {**described([view.column], [view.domain]), "specials": specials_entries(view.specials)},
        lambda view: view.axis,
        lambda view: text(view["column"]),
        _column_view,
    ),
}
"""Every kind of view, the most special first."""
