"""Conditions on a column as cells: ranges of its axis, and special cells beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.conditions import OneOf, Range
from partita.domain import Category, Domain, Encoded, Position, Special
from partita.errors import InvalidParameter
from partita.releases.figures import shortened
from partita.releases.ranges import Term
from partita.releases.spans import spans

__all__ = [
    "ABOVE",
    "BELOW",
    "INVALID",
    "NULL",
    "OTHER",
    "CellSet",
    "beyond",
    "end",
    "find_cells",
]

BELOW: Final = Special.BELOW
ABOVE: Final = Special.ABOVE
INVALID: Final = Special.INVALID
NULL: Final = Special.NULL
OTHER: Final = Special.OTHER

_LONGEST_DOMAIN: Final = 100
_FORMS: Final = "pass (low, high) with None for an open end, one value, a set of values, or a special cell"


@final
@dataclass(frozen=True)
class CellSet:
    """Cells of one column: ranges of its axis that do not overlap, and special cells beside it."""

    terms: tuple[Term, ...] = ()
    specials: tuple[str, ...] = ()


def find_cells(domain: Domain, condition: object, *, name: str) -> CellSet:
    """The cells of the column `name` that meet a condition.

    >>> from partita.domain import Integer
    >>> find_cells(Integer(0, 120), Range(18, None), name="age")
    CellSet(terms=(Term(low=18, high=120, sign=1),), specials=('above',))
    """
    if isinstance(condition, Range):
        return _range(domain, condition, name)
    if isinstance(condition, OneOf):
        return _members(domain, condition.values, name)
    if isinstance(condition, list) and isinstance(domain, Category):
        return _members(domain, condition, name)
    if isinstance(condition, tuple):
        raise InvalidParameter(
            name, "must have a low and a high end", given=f"a tuple of {len(condition)}", fix=_FORMS
        )
    if condition is None or isinstance(condition, list):
        raise InvalidParameter(name, "must say which values", given=condition, fix=_FORMS)
    return _members(domain, [condition], name)


def end(domain: Domain, value: object, *, name: str) -> Encoded:
    """One end of a range, called `name`, as a column of one row; NULL for an open end."""
    if isinstance(value, Special):
        fix = "pass None for an open end, or ask for it alone"
        raise InvalidParameter(name, "must not be a special cell", given=str(value), fix=fix)
    where = Position(0, Special.NULL) if value is None else domain.locate(value, name=name)
    return Encoded(np.array([where.cell], np.uint64), np.array([where.special], np.uint8))


def _range(domain: Domain, asked: Range, name: str) -> CellSet:
    low, high = end(domain, asked.low, name=f"low of {name}"), end(domain, asked.high, name=f"high of {name}")
    given = f"{asked.low} to {asked.high}"
    found = spans(low, high, size=domain.size, closed=asked.closed, name=name, given=given)
    terms = () if found.empty[0] else (Term(int(found.lows[0]), int(found.highs[0])),)
    opened = (("below", found.below[0]), ("above", found.above[0]))
    return CellSet(terms, tuple(cell for cell, is_open in opened if is_open and cell in domain.specials))


def _members(domain: Domain, values: Iterable[object], name: str) -> CellSet:
    """Any of these values, all of them within the declared bounds."""
    members = list(values)
    specials = dict.fromkeys(_special(domain, each, name) for each in members if isinstance(each, Special))
    cells = {_cell(domain, each, name) for each in members if not isinstance(each, Special)}
    return CellSet(tuple(_runs(cells)), tuple(specials))


def _cell(domain: Domain, value: object, name: str) -> int:
    """The cell of one value; beyond the declared bounds nothing tells values apart."""
    place = domain.locate(value, name=name)
    if place.special != Special.ORDINARY:
        raise beyond(domain, value, name=name)
    return place.cell


def beyond(domain: Domain, given: object, *, name: str) -> InvalidParameter:
    """The error for single values beyond the declared bounds."""
    rule = f"must lie within the declared bounds, as the column is {shortened(repr(domain), _LONGEST_DOMAIN)}"
    fix = "ask for the special cell below or above, or for a range with an open end"
    return InvalidParameter(name, rule, given=given, fix=fix)


def _runs(cells: set[int]) -> Iterator[Term]:
    """Ranges without gaps that hold these cells and no others."""
    firsts = sorted(cell for cell in cells if cell - 1 not in cells)
    lasts = sorted(cell for cell in cells if cell + 1 not in cells)
    return map(Term, firsts, lasts)


def _special(domain: Domain, special: Special, name: str) -> str:
    if str(special) not in domain.specials:
        rule = f"must ask for a special cell that {type(domain).__name__} columns have"
        fix = f"choose among {', '.join(domain.specials)}"
        raise InvalidParameter(name, rule, given=str(special), fix=fix)
    return str(special)
