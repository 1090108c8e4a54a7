"""Which columns are published together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final, TypeAlias

from partita.domain.axis import LARGEST_AXIS, MOST_AXES
from partita.domain.base.base import Domain
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter

Views: TypeAlias = Sequence[str | Sequence[str]]
"""The columns of each view; text stands for a view of one column."""

_SUGGESTED: Final = 3


def checked_views(
    schema: Mapping[str, Domain], by: object, views: object, *, beside: bool = False
) -> list[tuple[str, ...]]:
    """The columns of each view, in order; none for an empty `by`, if something is published `beside`."""
    fix = "leave one of the two out"
    check(by is None or views is None, "by", "must not come with views", given="both", fix=fix)
    if views is not None:
        return _different([_view(view, schema, "views") for view in _listed(views)])
    if beside and isinstance(by, list | tuple) and not by:
        return []
    return [_view(list(schema), schema, "views") if by is None else _view(by, schema, "by")]


def _listed(views: object) -> Sequence[object]:
    if isinstance(views, Sequence) and not isinstance(views, (str, bytes)) and views:
        return views
    fix = 'pass [("age",), ("age", "salary")]'
    raise InvalidParameter("views", "must be a list of views", given=views, fix=fix)


def _view(view: object, schema: Mapping[str, Domain], name: str) -> tuple[str, ...]:
    """The columns of one view, if they are columns of the schema that can be published together."""
    columns = [view] if isinstance(view, str) else view
    if not isinstance(columns, (list, tuple)) or not all(isinstance(each, str) for each in columns):
        raise InvalidParameter(name, "must name columns", given=view, fix='pass for example [("age",)]')
    fix = "name one, or leave the view out"
    check(columns, name, "must have a column in each view", given="none", fix=fix)
    check_columns(columns, schema, name)
    if len(columns) > 1:
        _check_together(columns, schema, name)
    return tuple(columns)


def check_columns(columns: Sequence[str], schema: Mapping[str, Domain], name: str) -> None:
    """Refuse a column that is not in the schema, or that is named twice."""
    for column in columns:
        if column not in schema:
            near = get_close_matches(column, schema, n=1, cutoff=0.5)
            fix = f"did you mean {near[0]!r}?" if near else "declare its domain in the schema"
            raise InvalidParameter(name, "must name columns of the schema", given=column, fix=fix)
        rule = "must name each column once"
        check(columns.count(column) <= 1, name, rule, given=column, fix="leave one out")


def _check_together(columns: Sequence[str], schema: Mapping[str, Domain], name: str) -> None:
    """Refuse more columns, or larger ones, than boxes can have."""
    if len(columns) > MOST_AXES:
        rule = f"must have at most {MOST_AXES} columns in a view"
        fix = f"publish several views under one debit, for example views={_suggested(columns)}"
        raise InvalidParameter(name, rule, given=len(columns), fix=fix)
    for column in columns:
        if schema[column].size > LARGEST_AXIS:
            rule = "must have columns of at most 2^63 cells in a view of several"
            fix = f"make its domain coarser, or give it a view of its own with views=[({column!r},), ...]"
            raise InvalidParameter(name, rule, given=column, fix=fix)


def _suggested(columns: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(columns[start : start + _SUGGESTED]) for start in range(0, len(columns), _SUGGESTED)]


def _different(views: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    seen: set[frozenset[str]] = set()
    for view in views:
        if frozenset(view) in seen:
            fix = "leave one of the two out"
            raise InvalidParameter("views", "must be of different columns", given=", ".join(view), fix=fix)
        seen.add(frozenset(view))
    return views
