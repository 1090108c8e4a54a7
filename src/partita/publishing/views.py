"""Which columns are published together, and which part of epsilon each view gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Final, TypeAlias

from partita.domain import Domain
from partita.errors import InvalidParameter
from partita.exact import rational
from partita.inference.boxes.axis import LARGEST_AXIS, MOST_AXES

__all__ = ["Shares", "Views", "checked_shares", "checked_views"]

Views: TypeAlias = Sequence[str | Sequence[str]]
"""The columns of each view; text stands for a view of one column."""

Shares: TypeAlias = Mapping[Any, object] | Sequence[object]
"""A weight for each view: by its column or its tuple of columns, or in the order of the views."""

_SUGGESTED: Final = 3


def checked_views(schema: Mapping[str, Domain], by: object, views: object) -> list[tuple[str, ...]]:
    """The columns of each view, in order."""
    if by is not None and views is not None:
        raise InvalidParameter("by", "must not come with views", given="both", fix="leave one of the two out")
    if views is not None:
        return _different([_view(view, schema, "views") for view in _listed(views)])
    return [_view(list(schema), schema, "views") if by is None else _view(by, schema, "by")]


def _listed(views: object) -> Sequence[object]:
    if isinstance(views, Sequence) and not isinstance(views, (str, bytes)) and views:
        return views
    raise InvalidParameter(
        "views", "must be a list of views", given=views, fix='pass [("age",), ("age", "salary")]'
    )


def _view(view: object, schema: Mapping[str, Domain], name: str) -> tuple[str, ...]:
    """The columns of one view, if they are columns of the schema that can be published together."""
    columns = [view] if isinstance(view, str) else view
    if not isinstance(columns, (list, tuple)) or not all(isinstance(each, str) for each in columns):
        raise InvalidParameter(name, "must name columns", given=view, fix='pass for example [("age",)]')
    if not columns:
        raise InvalidParameter(
            name, "must have a column in each view", given="none", fix="name one, or leave the view out"
        )
    _check_columns(columns, schema, name)
    if len(columns) > 1:
        _check_together(columns, schema, name)
    return tuple(columns)


def _check_columns(columns: Sequence[str], schema: Mapping[str, Domain], name: str) -> None:
    for column in columns:
        if column not in schema:
            near = get_close_matches(column, schema, n=1, cutoff=0.5)
            fix = f"did you mean {near[0]!r}?" if near else "declare its domain in the schema"
            raise InvalidParameter(name, "must name columns of the schema", given=column, fix=fix)
        if columns.count(column) > 1:
            raise InvalidParameter(name, "must name each column once", given=column, fix="leave one out")


def _check_together(columns: Sequence[str], schema: Mapping[str, Domain], name: str) -> None:
    """Refuse more columns, or larger ones, than boxes can have."""
    if len(columns) > MOST_AXES:
        raise InvalidParameter(
            name,
            f"must have at most {MOST_AXES} columns in a view",
            given=len(columns),
            fix=f"publish several views under one debit, for example views={_suggested(columns)}",
        )
    for column in columns:
        if schema[column].size > LARGEST_AXIS:
            raise InvalidParameter(
                name,
                "must have columns of at most 2^63 cells in a view of several",
                given=column,
                fix=f"make its domain coarser, or give it a view of its own with views=[({column!r},), ...]",
            )


def _suggested(columns: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(columns[start : start + _SUGGESTED]) for start in range(0, len(columns), _SUGGESTED)]


def _different(views: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    seen: set[frozenset[str]] = set()
    for view in views:
        if frozenset(view) in seen:
            raise InvalidParameter(
                "views", "must be of different columns", given=", ".join(view), fix="leave one of the two out"
            )
        seen.add(frozenset(view))
    return views


def checked_shares(shares: object, views: Sequence[tuple[str, ...]]) -> list[Fraction]:
    """The part of epsilon that each view gets; they add up to one exactly."""
    weights = [_weight(share) for share in _weights(shares, views)]
    return [weight / sum(weights) for weight in weights]


def _weights(shares: object, views: Sequence[tuple[str, ...]]) -> list[object]:
    if shares is None:
        return [1] * len(views)
    if isinstance(shares, Mapping) and len(shares) == len(views):
        weights = {(view,) if isinstance(view, str) else view: share for view, share in shares.items()}
        if set(weights) == set(views):
            return [weights[view] for view in views]
    if isinstance(shares, (list, tuple)) and len(shares) == len(views):
        return list(shares)
    raise InvalidParameter(
        "shares", "must have one weight for each view", given=_said(shares), fix=_suggested_shares(views)
    )


def _said(shares: object) -> object:
    """What there is a weight for, or how many weights there are."""
    if isinstance(shares, Mapping):
        return ", ".join(map(str, shares))
    return f"{len(shares)} of them" if isinstance(shares, (list, tuple)) else shares


def _suggested_shares(views: Sequence[tuple[str, ...]]) -> str:
    if len(views) == 1:
        return "leave it out, as one view gets all of epsilon, or pass views= too"
    weights = {view if len(view) > 1 else view[0]: 1 for view in views}
    return f"pass for example {weights}"


def _weight(share: object) -> Fraction:
    exact = rational(share, "shares")
    if exact <= 0:
        raise InvalidParameter("shares", "must be positive", given=share, fix="leave a view out instead")
    return exact
