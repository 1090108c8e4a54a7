"""Conditions on columns.

Keywords of the library, text and JSON all become these conditions:

    Range(30, 39)                 from 30 to 39, both included; None is an open end
    Range(30, 40, "left")         the same without 40
    OneOf(("Rome", "Bari"))       any of these values, or of these conditions
    AllOf((Range(3, 9), Not(5)))  all of these conditions
    Not("Rome")                   any other value
    Special.NULL                  a special cell
    42                            anything else is one value, or for many counts an array of values

Conditions on several columns hold together. `Either` has several of those, one of which must hold.

A value may be text: the column that it belongs to reads it exactly. `public.axis.base.find_cells` gives the
cells of a condition. This module loads no NumPy: a bad question on the command line is refused at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final, get_args

from partita.errors import check, check_arguments
from partita.numbers import check_choice

Where: TypeAlias = Mapping[str, object]
"""A condition for each of some columns; or an `Either`."""

MOST_PARTS: Final = 32
"""Of an `Either`: each part is taken from all that follow, and so they multiply."""

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
    """Any of several values, special cells or other conditions."""

    values: tuple[Any, ...]


@final
@dataclass(frozen=True)
class AllOf:
    """Several conditions on one column at once."""

    conditions: tuple[Any, ...]


@final
@check_arguments
@dataclass(frozen=True)
class Not:
    """Any value that does not meet a condition: one value, a range, a set of values or a special cell.

    As in SQL, a row that has no value does not meet it: `Not("Rome")` counts neither null nor invalid cells,
    but those below and above, and other labels. `Not(pt.NULL)` counts all rows that are not null.

        release.count(town=pt.Not("Rome"), age=pt.Not((30, 39)))
    """

    condition: Any


@final
@dataclass(frozen=True)
class Either(Mapping[str, object]):
    """Conditions on several columns, at least one part of which must hold.

    As a mapping it has the columns of all parts, each with what any part asks of it.
    """

    parts: tuple[Mapping[str, object], ...]

    def __getitem__(self, column: str) -> object:
        found = [part[column] for part in self.parts if column in part]
        if not found:
            raise KeyError(column)
        return OneOf(tuple(found)) if len(found) == len(self.parts) else Range()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(column for part in self.parts for column in part))

    def __len__(self) -> int:
        return len(list(iter(self)))


def parts_of(where: Where) -> tuple[Where, ...]:
    """Conditions that hold together, one of which is enough."""
    return where.parts if isinstance(where, Either) else (where,)


def join_both(first: Where, second: Where) -> Where:
    """What meets both.

    >>> join_both({"age": Range("30")}, {"age": Range(None, "39"), "town": "Rome"})
    {'age': Range(low='30', high='39', closed='both'), 'town': 'Rome'}
    """
    return join_either(_both(one, other) for one in parts_of(first) for other in parts_of(second))


def join_either(parts: Iterable[Where]) -> Where:
    """What meets any of these. Parts that differ in one column are one part.

    >>> join_either([{"age": "3"}, {"age": "4"}])
    {'age': OneOf(values=('3', '4'))}
    """
    found: list[dict[str, object]] = []
    rule, fix = f"must make up at most {MOST_PARTS} parts with `or`", "ask several questions"
    for part in (part for each in parts for part in parts_of(each)):
        if not part:
            return {}
        _add_part(found, dict(part))
        check(len(found) <= MOST_PARTS, "where", rule, given="more", fix=fix)
    return found[0] if len(found) == 1 else Either(tuple(found))


def negate(where: Where) -> Where:
    """What does not meet these: a row without a value meets neither a condition on it nor its opposite."""
    found: Where | None = None
    for part in parts_of(where):
        other = join_either({column: _negate(condition)} for column, condition in part.items())
        found = other if found is None else join_both(found, other)
    return {} if found is None else found


def _negate(condition: object) -> object:
    return condition.condition if isinstance(condition, Not) else Not(condition)


def _add_part(found: list[dict[str, object]], part: dict[str, object]) -> None:
    """One more part; joined to one that has the same columns and differs in one of them at most."""
    for place, other in enumerate(found):
        if other.keys() == part.keys():
            # Not `!=`: a special cell equals no number, but as an int it differs from all but one.
            differing = [column for column in part if not part[column] == other[column]]  # noqa: SIM201
            if not differing:
                return
            if len(differing) == 1:
                del found[place]
                (column,) = differing
                members = OneOf((*_members(other[column]), *_members(part[column])))
                _add_part(found, {**other, column: members})
                return
    found.append(part)


def _members(condition: object) -> tuple[Any, ...]:
    return condition.values if isinstance(condition, OneOf) else (condition,)


def _both(first: Where, second: Where) -> dict[str, object]:
    joined = dict(first)
    for column, condition in second.items():
        joined[column] = _both_of(joined[column], condition) if column in joined else condition
    return joined


def _both_of(first: object, second: object) -> object:
    """Two conditions on one column; a lower and an upper end are one range."""
    if isinstance(first, Range) and isinstance(second, Range):
        if first.high is None and second.low is None:
            return _range(first.low, second.high, first.low_closed, second.high_closed)
        if first.low is None and second.high is None:
            return _both_of(second, first)
    if first == second:
        return first
    return AllOf((*_conditions(first), *_conditions(second)))


def _conditions(condition: object) -> tuple[Any, ...]:
    return condition.conditions if isinstance(condition, AllOf) else (condition,)


def _range(low: object, high: object, low_closed: bool, high_closed: bool) -> Range:
    if low_closed:
        return Range(low, high, "both" if high_closed else "left")
    return Range(low, high, "right" if high_closed else "neither")


def is_compound(condition: object) -> bool:
    """Whether it may be about several ranges of a column, as a range or a single value is not."""
    return isinstance(condition, OneOf | AllOf | Not)


def parse_conditions(
    where: Where | str | None, keywords: Where, closed: Ends = "both", *, beside: object = None
) -> Where:
    """The conditions that the library's keywords give, by `where` and column by column.

    `closed` may also name columns of the conditions `beside` these. Text is read by the grammar.

    >>> parse_conditions({"region": "north"}, {"age": (30, 40)}, "left")
    {'region': 'north', 'age': Range(low=30, high=40, closed='left')}
    """
    fix = 'pass {"age": (30, 39)}, or text such as "age >= 30 or town = Rome"'
    if isinstance(where, str):
        from partita.public.grammar import parse_where

        return join_both(parse_where(where), parse_conditions(None, keywords, closed, beside=beside))
    check(isinstance(where, Mapping | None), "where", "must be a mapping of columns", given=where, fix=fix)
    if isinstance(where, Either):
        return join_both(where, parse_conditions(None, keywords, closed, beside=where))
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
    if isinstance(value, Not):
        inner = value.condition
        return Not(OneOf(tuple(inner)) if isinstance(inner, list) else _parse(inner, closed))
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
