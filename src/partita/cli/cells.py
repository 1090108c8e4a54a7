"""Conditions of a question as a release takes them; values stay text and are read exactly there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partita.cli.questions import Condition, Equal, HalfSpace, Is, OneOf, Range, Where
from partita.errors import InvalidParameter

if TYPE_CHECKING:
    from partita.releases.regions import HalfSpace as Region
    from partita.releases.spans import Closed

__all__ = ["asked", "cells", "closed", "region"]


def asked(where: Where) -> dict[str, Any]:
    """The parameters `where` and `closed` of a question."""
    return {"where": cells(where), "closed": closed(where)}


def cells(where: Where) -> dict[str, object]:
    """What is asked of each column."""
    return {column: _cell(condition) for column, condition in where.items()}


def closed(*wheres: Where) -> dict[str, Closed]:
    """Which ends of its ranges belong to each column that is asked for by ranges."""
    ends: dict[str, Closed] = {}
    for column, condition in (item for where in wheres for item in where.items()):
        if isinstance(condition, Range):
            own = _ends(condition)
            if ends.setdefault(column, own) != own:
                raise InvalidParameter(
                    "question",
                    f"must have the same kinds of ends in all ranges of {column!r}",
                    given="< beside <=, or > beside >=; between is <= and >=",
                    fix="write all of them with <= and >=",
                )
    return ends


def region(half_space: HalfSpace) -> Region:
    """A half-space as a public region."""
    from partita.releases.regions import HalfSpace as Region

    sign = 1 if half_space.sign == "<=" else -1
    weights = {column: sign * weight for column, weight in half_space.weights.items()}
    return Region(weights, at_most=sign * half_space.bound)


def _cell(condition: Condition) -> object:
    from partita.domain import Special

    match condition:
        case Range(low=low, high=high):
            return low, high
        case Equal(value):
            return value
        case OneOf(values):
            return frozenset(values)
        case Is(cell):
            return Special.named(cell)


def _ends(condition: Range) -> Closed:
    """An open end may count as either."""
    low, high = condition.low is None or condition.low_closed, condition.high is None or condition.high_closed
    if low:
        return "both" if high else "left"
    return "right" if high else "neither"
