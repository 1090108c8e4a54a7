"""Conditions on columns, and the cells that they mean.

Keywords of the library, text and JSON all become these conditions:

    Range(30, 39)                 from 30 to 39, both included; None is an open end
    Range(30, 40, "left")         the same without 40
    OneOf(("Rome", "Bari"))       any of these values
    Special.NULL                  a special cell
    42                            anything else is one value, or for many counts an array of values

A value may be text: the column that it belongs to reads it exactly. `find_cells` gives the cells of one
condition: ranges of the axis of a column, and special cells beside it. `find_ranges` gives those of many
ranges at once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Bools, UInts
from partita.domain.base import Domain, Encoded, Position, Special
from partita.domain.category import Category
from partita.domain.numeric import Real
from partita.errors import InvalidData, InvalidParameter, check
from partita.numbers import check_choice
from partita.public.axis.base import Term
from partita.public.base import shorten

BELOW: Final = Special.BELOW
ABOVE: Final = Special.ABOVE
INVALID: Final = Special.INVALID
NULL: Final = Special.NULL
OTHER: Final = Special.OTHER

Where: TypeAlias = Mapping[str, object]
"""A condition for each of some columns."""

Closed: TypeAlias = Literal["both", "left", "right", "neither"]
Ends: TypeAlias = Closed | Mapping[str, Closed]
"""Which ends of ranges belong to them: in all columns, or column by column."""

_RESERVED: Final = ("bins", "closed", "where")
"""Words that are parameters of questions: columns of these names go through `where=`."""

_FORMS: Final = "pass (low, high) with None for an open end, one value, a set of values, or a special cell"


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


# One condition as cells.


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
        return _find_range(domain, condition, name)
    if isinstance(condition, OneOf):
        return _find_members(domain, condition.values, name)
    if isinstance(condition, list) and isinstance(domain, Category):
        return _find_members(domain, condition, name)
    if isinstance(condition, tuple):
        given = f"a tuple of {len(condition)}"
        raise InvalidParameter(name, "must have a low and a high end", given=given, fix=_FORMS)
    if condition is None or isinstance(condition, list):
        raise InvalidParameter(name, "must say which values", given=condition, fix=_FORMS)
    return _find_members(domain, [condition], name)


def _find_range(domain: Domain, wanted: Range, name: str) -> CellSet:
    low = _locate_end(domain, wanted.low, f"low of {name}")
    high = _locate_end(domain, wanted.high, f"high of {name}")
    found = _span_cells(domain, low, high, wanted.closed, name, f"{wanted.low} to {wanted.high}")
    terms = () if found.empty[0] else (Term(int(found.lows[0]), int(found.highs[0])),)
    ends = (("below", found.below[0]), ("above", found.above[0]))
    return CellSet(terms, tuple(cell for cell, is_open in ends if is_open and cell in domain.specials))


def _locate_end(domain: Domain, value: object, name: str) -> Encoded:
    """One end of a range, called `name`, as a column of one row; NULL for an open end."""
    if isinstance(value, Special):
        fix = "pass None for an open end, or ask for it alone"
        raise InvalidParameter(name, "must not be a special cell", given=str(value), fix=fix)
    place = Position(0, Special.NULL) if value is None else domain.locate(value, name=name)
    return Encoded(np.array([place.cell], np.uint64), np.array([place.special], np.uint8))


def _find_members(domain: Domain, values: Iterable[object], name: str) -> CellSet:
    """Any of these values, all of them within the declared bounds."""
    members = list(values)
    specials = dict.fromkeys(str(each) for each in members if isinstance(each, Special))
    for special in specials:
        rule = f"must ask for a special cell that {type(domain).__name__} columns have"
        fix = f"choose among {', '.join(domain.specials)}"
        check(special in domain.specials, name, rule, given=special, fix=fix)
    cells = set()
    for each in members:
        if not isinstance(each, Special):
            place = domain.locate(each, name=name)
            _check_within(domain, place.special == Special.ORDINARY, name, each)
            cells.add(place.cell)
    # Runs of neighbouring cells become one range each.
    firsts = sorted(cell for cell in cells if cell - 1 not in cells)
    lasts = sorted(cell for cell in cells if cell + 1 not in cells)
    return CellSet(tuple(map(Term, firsts, lasts)), tuple(specials))


def _check_within(domain: Domain, holds: object, name: str, given: object) -> None:
    """Raise unless single values lie within the declared bounds: beyond them nothing tells values apart."""
    if not holds:
        rule = f"must lie within the declared bounds, as the column is {shorten(repr(domain), 100)}"
        fix = "ask for the special cell below or above, or for a range with an open end"
        raise InvalidParameter(name, rule, given=given, fix=fix)


# Many ranges at once, from arrays of bounds.


@final
@dataclass(frozen=True, eq=False)
class CellRanges:
    """The cells lows, ..., highs of an axis, unless `empty`; `below`, `above`: which ends are open.

    Where a span is empty, its cells are 0..0 and mean nothing.
    """

    lows: UInts
    highs: UInts
    empty: Bools
    below: Bools
    above: Bools

    def __len__(self) -> int:
        return len(self.lows)


def find_ranges(domain: Domain, condition: object, *, name: str) -> CellRanges:
    """The cells of many ranges of the column `name`: a range of arrays, or an array of single values.

    An end that is None, or missing in its array, is open; one end for all is repeated.

    >>> from partita.domain import Integer
    >>> find_ranges(Integer(0, 120), Range([0, 18], [17, None]), name="age").highs.tolist()
    [17, 120]
    """
    if isinstance(condition, tuple):
        given, fix = f"a tuple of {len(condition)}", "pass (lows, highs), None for an open end"
        raise InvalidParameter(name, "must be arrays of lows and of highs", given=given, fix=fix)
    if not isinstance(condition, Range):
        cells = encode_values(domain, condition, name=name)
        _check_within(domain, (cells.special == Special.ORDINARY).all(), name, condition)
        return _span_cells(domain, cells, cells, "both", name, condition)
    low = _encode_ends(domain, condition.low, f"low of {name}")
    high = _encode_ends(domain, condition.high, f"high of {name}")
    length = len(low) if len(high) == 1 else len(high)
    low, high = _repeat(low, length, name), _repeat(high, length, name)
    return _span_cells(domain, low, high, condition.closed, name, "a low above its high")


def encode_values(domain: Domain, values: object, *, name: str) -> Encoded:
    """Where each of many public values lies; none may be missing."""
    encoded = _encode_ends(domain, values, name)
    complete = bool((encoded.special != Special.NULL).all())
    check(complete, name, "must not miss a value", given=values, fix="drop what is missing")
    return encoded


def is_single(value: object) -> bool:
    """Whether this is one value and no column of values."""
    return isinstance(value, str | bytes) or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0


def _encode_ends(domain: Domain, values: object, name: str) -> Encoded:
    if is_single(values):
        return _locate_end(domain, values, name)
    try:
        encoded = domain.encode(values)
    except InvalidData:
        fix = "pass a flat array or a list"
        raise InvalidParameter(name, "must be one column of values", given=values, fix=fix) from None
    if isinstance(domain, Real):
        encoded = _round_as_decimals(domain, values, encoded)
    unreadable = (encoded.special == Special.INVALID) | (encoded.special == Special.OTHER)
    if bool(unreadable.any()) or _has_no_bounds(values):
        rule = f"must hold values that a column {shorten(repr(domain), 60)} can have"
        fix = "pass values as the column has them, None for an open end"
        raise InvalidParameter(name, rule, given=values, fix=fix)
    return encoded


def _has_no_bounds(values: object) -> bool:
    """Whether there are infinite floats or special cells among the values: neither is a bound."""
    if isinstance(values, list | tuple):
        return any(
            isinstance(each, Special) or (isinstance(each, float) and math.isinf(each)) for each in values
        )
    array = np.asarray(values)
    return array.dtype.kind == "f" and bool(np.isinf(array).any())


def _repeat(encoded: Encoded, length: int, name: str) -> Encoded:
    if len(encoded) == length:
        return encoded
    given, fix = f"{len(encoded)} and {length}", "pass arrays of one length"
    check(len(encoded) == 1, name, "must have as many lows as highs", given=given, fix=fix)
    return encoded.take(np.zeros(length, np.int64))


_ROUNDINGS: Final = 8
"""Floats within so many roundings of the middle between two cells are located one by one."""


def _round_as_decimals(domain: Real, values: Any, encoded: Encoded) -> Encoded:
    """The cells of bounds of a Real column, whose floats were encoded as the numbers that their bits say.

    People write 0.35 for 35/100, in an array too. The two readings differ by half a unit in the last place
    at most, so they can lie in different cells only near the middle between two.
    """
    column = np.array(values, object) if isinstance(values, list | tuple) else np.asarray(values)
    if column.dtype == object:
        floats = np.array([value if isinstance(value, float) else 0.0 for value in column])
    else:
        floats = column if column.dtype.kind == "f" else np.zeros(len(column))
    floats = np.where(np.isfinite(floats), floats, 0.0)
    quotients: NDArray[Any] = np.abs(floats) / float(domain.step)
    from_middle = 0.5 - np.abs(quotients - np.rint(quotients))
    near = from_middle <= _ROUNDINGS * np.finfo(floats.dtype).eps * (1 + quotients)
    cells, special = encoded.cells.copy(), encoded.special.copy()
    for row in np.flatnonzero(near & (special <= Special.ABOVE)).tolist():
        place = domain.locate(column[row])
        cells[row], special[row] = place.cell, place.special
    return Encoded(cells, special)


_LOW_SIDES: Final = np.array([0, -1, 1, 0, -2, 0], np.int8)
_HIGH_SIDES: Final = np.array([0, -1, 1, 0, 2, 0], np.int8)
"""Where an end lies by the code of its `Special`: on the axis 0, below -1, above 1, open 2 beyond all."""
_UP: Final = np.uint64(1)
_DOWN: Final = np.uint64(2**64 - 1)
"""One cell on, and one cell back: cells are added modulo 2^64."""


def _span_cells(
    domain: Domain, low: Encoded, high: Encoded, closed: Closed, name: str, given: object
) -> CellRanges:
    """The cells from each low end to each high end of the column `name`; an end that is NULL is open.

    >>> from partita.domain import Integer
    >>> ages = Integer(0, 120)
    >>> low, high = ages.encode([-5, 30, None]), ages.encode([9, 39, 17])
    >>> found = _span_cells(ages, low, high, "left", "age", "ages")
    >>> found.lows.tolist(), found.highs.tolist(), found.below.tolist()
    ([0, 30, 0], [8, 38, 16], [False, False, True])
    """
    first, last = _LOW_SIDES[low.special], _HIGH_SIDES[high.special]
    lows, highs = low.cells, np.where(last == 0, high.cells, np.uint64(domain.size - 1))
    backwards = bool(((first > last) | ((first == 0) & (lows > highs))).any())
    check(not backwards, name, "must go from low to high", given=given, fix="swap the two ends")
    empty = (first == 1) | (last == -1)
    if closed in ("right", "neither"):
        lows, empty = _move_inwards(lows, _UP, first == 0, empty, outermost=domain.size - 1)
    if closed in ("left", "neither"):
        highs, empty = _move_inwards(highs, _DOWN, last == 0, empty, outermost=0)
    empty = empty | (lows > highs)
    lows, highs = (np.where(empty, np.uint64(0), ends) for ends in (lows, highs))
    return CellRanges(lows, highs, empty, first == -2, last == 2)


def _move_inwards(
    cells: UInts, step: np.uint64, on_axis: Bools, empty: Bools, *, outermost: int
) -> tuple[UInts, Bools]:
    """Ends that lie on the axis moved inwards by a cell; a span that had no other cell is empty."""
    stuck = on_axis & (cells == outermost)
    return np.where(on_axis & ~stuck, cells + step, cells), empty | stuck
