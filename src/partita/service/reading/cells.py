"""Conditions in JSON.

    42, "Rome"                                  one value
    [30, 39]                                    from 30 to 39, both included; null is an open end
    {"low": 30, "high": 40, "closed": "left"}   a range that says which of its ends belong to it
    {"in": ["Rome", "Bari"]}                    any of these values
    {"is": "null"}                              a special cell

Numbers mean what they are written as, within the precision of JSON; a number as text is exact.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from partita.asking.grammar import parse_where
from partita.asking.questions import HalfSpace
from partita.conditions import Closed, OneOf, Range
from partita.domain import Special

__all__ = ["AnyWhere", "Between", "Cell", "Members", "Value", "conditions_of", "said"]

Value: TypeAlias = (
    StrictInt
    | Annotated[float, Field(strict=True, allow_inf_nan=False)]
    | Annotated[StrictStr, Field(max_length=1000)]
)
"""One value of a column: a number, or text as the column is written."""

_MOST_VALUES = 1000


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Between(_Strict):
    """A range that says which of its ends belong to it; an end that is null is open."""

    low: Value | None = None
    high: Value | None = None
    closed: Closed = "both"


class Members(_Strict):
    """Any of several values."""

    values: list[Value] = Field(
        alias="in", min_length=1, max_length=_MOST_VALUES, examples=[["Rome", "Bari"]]
    )


class Beside(_Strict):
    """What is beside the axis of a column: missing, unreadable, out of bounds, or no declared label."""

    cell: Literal["null", "invalid", "below", "above", "other"] = Field(alias="is")


Pair: TypeAlias = Annotated[
    list[Value | None],
    Field(
        min_length=2, max_length=2, description="from a value to another, both included; null is an open end"
    ),
]
Cell: TypeAlias = Value | Pair | Between | Members | Beside
JsonWhere: TypeAlias = dict[str, Cell]
AnyWhere: TypeAlias = str | JsonWhere


def conditions_of(where: AnyWhere, half_spaces: list[HalfSpace] | None = None) -> dict[str, object]:
    """Conditions from text or from JSON; a half-space, which only text may have, goes in the list, if any."""
    if isinstance(where, str):
        return parse_where(where, half_spaces) if where.strip() else {}
    return {column: _condition(cell) for column, cell in where.items()}


def _condition(cell: Cell) -> object:
    match cell:
        case [low, high]:
            return Range(_text(low), _text(high))
        case Between(low=low, high=high, closed=closed):
            return Range(_text(low), _text(high), closed)
        case Members(values=values):
            return OneOf(tuple(map(said, values)))
        case Beside(cell=special):
            return Special.named(special)
        case _:
            return said(cell)


def said(value: object) -> str:
    """A value as text, which a column reads exactly."""
    return value if isinstance(value, str) else repr(value)


def _text(end: object) -> str | None:
    return None if end is None else said(end)
