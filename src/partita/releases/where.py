"""What people ask of a column, as cells: ranges, single values, sets of values, special cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np

from partita.checks import check
from partita.domain import Category, Domain, Encoded, Position, Special
from partita.errors import InvalidParameter
from partita.releases.figures import shortened
from partita.releases.ranges import Term
from partita.releases.spans import Closed, Ends, ends_of, spans

__all__ = [
    "ABOVE",
    "BELOW",
    "INVALID",
    "NULL",
    "OTHER",
    "RESERVED",
    "Question",
    "Where",
    "beyond",
    "end",
    "gathered",
    "question",
]

BELOW: Final = Special.BELOW
ABOVE: Final = Special.ABOVE
INVALID: Final = Special.INVALID
NULL: Final = Special.NULL
OTHER: Final = Special.OTHER

Where: TypeAlias = Mapping[str, object]

RESERVED: Final = ("bins", "closed", "where")
"""Words that are parameters of questions: columns of these names go through `where=`."""

_LONGEST_DOMAIN: Final = 100
_FORMS: Final = "pass (low, high) with None for an open end, one value, a set of values, or a special cell"


@final
@dataclass(frozen=True)
class Question:
    """Cells of one column: ranges of its axis that do not overlap, and special cells beside it."""

    terms: tuple[Term, ...] = ()
    specials: tuple[str, ...] = ()


def gathered(where: Where | None, keywords: Where) -> dict[str, object]:
    """The columns asked for, by `where` and as keywords together.

    >>> gathered({"region": "north"}, {"age": (30, 39)})
    {'region': 'north', 'age': (30, 39)}
    """
    fix = 'pass {"age": (30, 39)}'
    check(isinstance(where, Mapping | None), "where", "must be a mapping of columns", given=where, fix=fix)
    named = dict(where or {})
    for column in keywords:
        if column in RESERVED:
            raise InvalidParameter(
                "column",
                "must not be a keyword that questions have for themselves",
                given=column,
                fix=f"pass where={{{column!r}: ...}}",
            )
        rule = "must be asked for once, by where or as a keyword"
        check(column not in named, "column", rule, given=column, fix="leave one of them out")
    return named | dict(keywords)


def question(domain: Domain, value: object, *, name: str, closed: Ends = "both") -> Question:
    """The cells that `value` asks for in a column of the name `name`.

    >>> from partita.domain import Integer
    >>> question(Integer(0, 120), (18, None), name="age")
    Question(terms=(Term(low=18, high=120, sign=1),), specials=('above',))
    """
    chosen = ends_of(name, closed)
    if isinstance(value, set | frozenset) or (isinstance(value, list) and isinstance(domain, Category)):
        return _members(domain, value, name)
    if isinstance(value, tuple):
        return _range(domain, value, name, chosen)
    rule = "must say which values"
    check(value is not None and not isinstance(value, list), name, rule, given=value, fix=_FORMS)
    return _members(domain, [value], name)


def end(domain: Domain, value: object, *, name: str) -> Encoded:
    """One end of a range, called `name`, as a column of one row; NULL for an open end."""
    if isinstance(value, Special):
        fix = "pass None for an open end, or ask for it alone"
        raise InvalidParameter(name, "must not be a special cell", given=str(value), fix=fix)
    where = Position(0, Special.NULL) if value is None else domain.locate(value, name=name)
    return Encoded(np.array([where.cell], np.uint64), np.array([where.special], np.uint8))


def _range(domain: Domain, ends: tuple[object, ...], name: str, closed: Closed) -> Question:
    check(len(ends) == 2, name, "must have a low and a high end", given=f"a tuple of {len(ends)}", fix=_FORMS)
    low, high = end(domain, ends[0], name=f"low of {name}"), end(domain, ends[1], name=f"high of {name}")
    found = spans(low, high, size=domain.size, closed=closed, name=name, given=f"{ends[0]} to {ends[1]}")
    terms = () if found.empty[0] else (Term(int(found.lows[0]), int(found.highs[0])),)
    opened = (("below", found.below[0]), ("above", found.above[0]))
    return Question(terms, tuple(cell for cell, asked in opened if asked and cell in domain.specials))


def _members(domain: Domain, values: Iterable[object], name: str) -> Question:
    """Any of these values, all of them within the declared bounds."""
    members = list(values)
    specials = dict.fromkeys(_special(domain, each, name) for each in members if isinstance(each, Special))
    cells = {_cell(domain, each, name) for each in members if not isinstance(each, Special)}
    return Question(tuple(_runs(cells)), tuple(specials))


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
