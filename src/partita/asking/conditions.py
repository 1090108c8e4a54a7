"""Conditions of a question as a release takes them; values stay text and are read exactly there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from partita.asking.questions import Condition, Equal, HalfSpace, Is, OneOf, Range, Where
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
    ranges: dict[str, list[Range]] = {}
    for column, condition in (item for where in wheres for item in where.items()):
        if isinstance(condition, Range):
            ranges.setdefault(column, []).append(condition)
    return {column: _ends(column, asked) for column, asked in ranges.items()}


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


def _ends(column: str, ranges: Sequence[Range]) -> Closed:
    """Which ends belong to all ranges of a column; an end that is open agrees with any other."""
    lows = {each.low_closed for each in ranges if each.low is not None}
    highs = {each.high_closed for each in ranges if each.high is not None}
    if len(lows) > 1 or len(highs) > 1:
        raise InvalidParameter(
            "question",
            f"must have the same kinds of ends in all ranges of {column!r}",
            given=" beside ".join(each.said(column) for each in ranges),
            fix="write <= and >= in all of them",
        )
    if False not in lows:
        return "left" if False in highs else "both"
    return "neither" if False in highs else "right"
