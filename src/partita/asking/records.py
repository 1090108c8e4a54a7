"""A release as records, its views, columns and special cells, and records as JSON can say them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from partita.answer import Answer
    from partita.inference.sums.answers import Ratio, SumAnswer
    from partita.releases.published import Published
    from partita.releases.release import Release

__all__ = [
    "Record",
    "column_records",
    "named",
    "plain",
    "query_record",
    "specials",
    "sum_records",
    "summary_record",
    "view_records",
]

Record: TypeAlias = Mapping[str, object]


def plain(value: object) -> object:
    """A value as JSON can say it: exact numbers and dates as text, what is not finite as null.

    >>> plain({"epsilon": Fraction(1, 3), "high": math.inf})
    {'epsilon': '1/3', 'high': None}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (Fraction, Decimal, date)):
        return value.isoformat() if isinstance(value, date) else str(value)
    return value


def view_records(release: Release) -> list[Record]:
    """Which columns were published together, by which mechanism, and why; sums by their keys, and queries."""
    return [
        {"view": named(view), "columns": view.columns, "mechanism": view.mechanism, "why": view.why}
        for view in release.published
    ]


def named(view: Published) -> str:
    """The name of a view."""
    from partita.releases.file_views import about, form_of

    return form_of(view).name(about(view))


def column_records(release: Release) -> list[Record]:
    """Every column, its domain, and its noisy special cells."""
    return [
        {
            "column": column,
            "domain": release.slice(column).domain.to_spec(),
            "specials": _cells(specials(release, column)),
        }
        for column in release.columns
    ]


def sum_records(release: Release) -> list[Record]:
    """Every summed column, by which keys it can be asked for, its noisy special cells, and its whole sum."""
    return [
        {
            "column": view.column,
            "keys": view.keys,
            "domain": view.domain.to_spec(),
            "moments": view.moments,
            "specials": _cells(view.specials),
            "sum": summary_record(view.sum({})),
        }
        for view in release.sums
    ]


def query_record(release: Release, beta: float) -> Record | None:
    """The queries that were published, and a bound on the errors of all answers."""
    view = release.queries
    if view is None:
        return None
    bound = {"beta": beta, "bound": view.error(beta)}
    return {"queries": str(view.queries), "columns": view.columns, "number": len(view), "error": bound}


def summary_record(answer: SumAnswer | Ratio) -> Record:
    """A sum or a ratio, and what values it covers."""
    covers = answer.covers
    covered = {
        "low": covers.low,
        "high": covers.high,
        "none_below": covers.lower.gone,
        "none_above": covers.upper.gone,
        "everything": covers.everything,
        "text": covers.text,
    }
    return {"value": answer.value, "error": answer.error, "covers": covered}


def specials(release: Release, column: str) -> dict[str, Answer]:
    """The counts of what is beside the axis of a column, by the name of the cell."""
    from partita.domain import Special

    cells = release.slice(column).domain.specials
    return {name: release.count({column: Special.named(name)}) for name in cells}


def _cells(counts: Mapping[str, Answer]) -> Record:
    return {name: {"value": answer.value, "error": answer.error} for name, answer in counts.items()}
