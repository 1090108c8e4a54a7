"""Which view answers a question: the one with the fewest columns that has all that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Protocol, TypeVar

from partita.errors.errors import InvalidParameter


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
