"""Conditions on columns.

Keywords of the library, text and JSON all become these conditions:

    Range(30, 39)                 from 30 to 39, both included; None is an open end
    Range(30, 40, "left")         the same without 40
    OneOf(("Rome", "Bari"))       any of these values
    Special.NULL                  a special cell
    42                            anything else is one value, or for many counts an array of values

A value may be text: the column that it belongs to reads it exactly. `public.axis.base.find_cells` gives the
cells of a condition. This module loads no NumPy: a bad question on the command line is refused at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final, get_args

from partita.errors import check
from partita.numbers import check_choice

Where: TypeAlias = Mapping[str, object]
"""A condition for each of some columns."""

Closed: TypeAlias = Literal["both", "left", "right", "neither"]
Ends: TypeAlias = Closed | Mapping[str, Closed]
"""Which ends of ranges belong to them: in all columns, or column by column."""

_RESERVED: Final = ("bins", "closed", "where")
"""Words that are parameters of questions: columns of these names go through `where=`."""


@final
@dataclass(frozen=True)
class Range:
    """From one value to another; None is an open end. `closed` says which ends belong to it."""

    low: Any = None
    high: Any = None
    closed: Closed = "both"

    @property
    def low_closed(self) -> bool:
        """Whether the low end belongs to the range."""
        return self.closed in ("both", "left")

    @property
    def high_closed(self) -> bool:
        """Whether the high end belongs to the range."""
        return self.closed in ("both", "right")


@final
@dataclass(frozen=True)
class OneOf:
    """Any of several values, special cells among them."""

    values: tuple[Any, ...]


def parse_conditions(
    where: Where | None, keywords: Where, closed: Ends = "both", *, beside: object = None
) -> dict[str, object]:
    """The conditions that the library's keywords give, by `where` and column by column.

    `closed` may also name columns of the conditions `beside` these.

    >>> parse_conditions({"region": "north"}, {"age": (30, 40)}, "left")
    {'region': 'north', 'age': Range(low=30, high=40, closed='left')}
    """
    fix = 'pass {"age": (30, 39)}'
    check(isinstance(where, Mapping | None), "where", "must be a mapping of columns", given=where, fix=fix)
    conditions = dict(where or {})
    for column in keywords:
        rule = "must not be a keyword that questions have for themselves"
        fix = f"pass where={{{column!r}: ...}}"
        check(column not in _RESERVED, "column", rule, given=column, fix=fix)
        rule, fix = "must be asked for once, by where or as a keyword", "leave one of them out"
        check(column not in conditions, "column", rule, given=column, fix=fix)
    conditions |= keywords
    _check_no_shape(conditions.get("region"))
    _check_ends(closed, {*conditions, *(beside if isinstance(beside, Mapping) else ())})
    return {column: _parse(value, _ends_of(column, closed)) for column, value in conditions.items()}


def _check_ends(closed: Ends, columns: Collection[str]) -> None:
    """Raise InvalidParameter if `closed` is unknown, or names a column without a condition."""
    for column in closed if isinstance(closed, Mapping) else ("",):
        _ends_of(column, closed)
        known = not column or column in columns
        check(known, "closed", "must name columns that are asked for", given=column, fix="leave it out")


def _parse(value: object, closed: Closed) -> object:
    if isinstance(value, tuple) and len(value) == 2:
        return Range(*value, closed=closed)
    return OneOf(tuple(value)) if isinstance(value, set | frozenset) else value


def _ends_of(column: str, closed: Ends) -> Closed:
    """Which ends belong to the ranges of a column: both, where a mapping does not name it."""
    chosen = closed.get(column, "both") if isinstance(closed, Mapping) else closed
    return check_choice(chosen, "closed", get_args(Closed))


def _check_no_shape(region: object) -> None:
    """A shape is a parameter of `count` only; a column that is called region has values."""
    if region is None:
        return
    from partita.public.boxes.regions import HalfSpace, Polygon

    is_shape, fix = isinstance(region, HalfSpace | Polygon), "ask for the count of a shape"
    check(not is_shape, "region", "must not be a shape here", given=region, fix=fix)
