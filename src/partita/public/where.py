"""Conditions on a column as cells: ranges of its axis, and special cells beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Bools, UInts
from partita.domain.base import Domain, Encoded, Position, Special
from partita.domain.category import Category
from partita.domain.numeric import Real
from partita.errors import InvalidData, InvalidParameter
from partita.public.axis.base import Term
from partita.public.base import shortened
from partita.public.conditions import Closed, OneOf, Range

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


# --- many ranges at once, from arrays of bounds -------------------------------------------------

_LONGEST_IN_ARRAYS: Final = 60


def ranges(domain: Domain, condition: object, *, name: str) -> CellRanges:
    """The cells of many ranges of the column `name`: a range of arrays, or an array of single values.

    An end that is None, or missing in its array, is open; one end for all is repeated.

    >>> from partita.domain import Integer
    >>> ranges(Integer(0, 120), Range([0, 18], [17, None]), name="age").highs.tolist()
    [17, 120]
    """
    if isinstance(condition, tuple):
        raise InvalidParameter(
            name,
            "must be arrays of lows and of highs",
            given=f"a tuple of {len(condition)}",
            fix="pass (lows, highs), None for an open end",
        )
    if not isinstance(condition, Range):
        cells = cells_of(domain, condition, name=name)
        if bool((cells.special != Special.ORDINARY).any()):
            raise beyond(domain, condition, name=name)
        return spans(cells, cells, size=domain.size, closed="both", name=name, given=condition)
    low, high = (
        _ends(domain, condition.low, f"low of {name}"),
        _ends(domain, condition.high, f"high of {name}"),
    )
    length = len(low) if len(high) == 1 else len(high)
    low, high = _repeated(low, length, name), _repeated(high, length, name)
    return spans(
        low, high, size=domain.size, closed=condition.closed, name=name, given="a low above its high"
    )


def cells_of(domain: Domain, values: object, *, name: str) -> Encoded:
    """Where each of many public values lies; none may be missing."""
    encoded = _ends(domain, values, name)
    if bool((encoded.special == Special.NULL).any()):
        raise InvalidParameter(name, "must not miss a value", given=values, fix="drop what is missing")
    return encoded


def _ends(domain: Domain, value: object, name: str) -> Encoded:
    if is_single(value):
        return end(domain, value, name=name)
    encoded = _encoded(domain, value, name)
    unreadable = (encoded.special == Special.INVALID) | (encoded.special == Special.OTHER)
    if bool(unreadable.any()) or _endless(value):
        raise InvalidParameter(
            name,
            f"must hold values that a column {shortened(repr(domain), _LONGEST_IN_ARRAYS)} can have",
            given=value,
            fix="pass values as the column has them, None for an open end",
        )
    return encoded


def is_single(value: object) -> bool:
    """Whether this is one value and no column of values."""
    return isinstance(value, str | bytes) or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0


def _encoded(domain: Domain, values: object, name: str) -> Encoded:
    try:
        encoded = domain.encode(values)
    except InvalidData:
        raise InvalidParameter(
            name, "must be one column of values", given=values, fix="pass a flat array or a list"
        ) from None
    return as_written(domain, values, encoded) if isinstance(domain, Real) else encoded


def _endless(values: object) -> bool:
    """Whether there are infinite floats or special cells among the values: numbers, but no bounds."""
    if isinstance(values, list | tuple):
        return any(
            isinstance(each, Special) or (isinstance(each, float) and math.isinf(each)) for each in values
        )
    array = np.asarray(values)
    return array.dtype.kind == "f" and bool(np.isinf(array).any())


def _repeated(encoded: Encoded, length: int, name: str) -> Encoded:
    if len(encoded) == length:
        return encoded
    if len(encoded) != 1:
        raise InvalidParameter(
            name,
            "must have as many lows as highs",
            given=f"{len(encoded)} and {length}",
            fix="pass arrays of one length",
        )
    return encoded.take(np.zeros(length, np.int64))


# Floats as bounds of a Real column are read as people write them: 0.35 is 35/100, in an array too.
_ROUNDINGS: Final = 8


def as_written(domain: Real, values: Any, encoded: Encoded) -> Encoded:
    """The cells of a column of bounds, whose floats were encoded as the numbers that their bits say.

    The two readings differ by half a unit in the last place at most, so they can lie in different cells
    only near the middle between two. Floats there are located one by one.
    """
    column, floats = _floats(values)
    quotients = np.abs(floats) / float(domain.step)
    from_middle = 0.5 - np.abs(quotients - np.rint(quotients))
    near = from_middle <= _ROUNDINGS * np.finfo(floats.dtype).eps * (1 + quotients)
    cells, special = encoded.cells.copy(), encoded.special.copy()
    for row in np.flatnonzero(near & (special <= Special.ABOVE)).tolist():
        place = domain.locate(column[row])
        cells[row], special[row] = place.cell, place.special
    return Encoded(cells, special)


def _floats(values: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values as an array, and the finite floats among them; 0 where there is something else."""
    column = np.array(values, object) if isinstance(values, list | tuple) else np.asarray(values)
    if column.dtype == object:
        floats = np.array([value if isinstance(value, float) else 0.0 for value in column])
    else:
        floats = column if column.dtype.kind == "f" else np.zeros(len(column))
    return column, np.where(np.isfinite(floats), floats, 0.0)


_LOW_SIDES: Final = np.array([0, -1, 1, 0, -2, 0], np.int8)
_HIGH_SIDES: Final = np.array([0, -1, 1, 0, 2, 0], np.int8)
"""Where an end lies by the code of its `Special`: on the axis 0, below -1, above 1, open 2 beyond all."""
_ZERO: Final = np.uint64(0)
_UP: Final = np.uint64(1)
_DOWN: Final = np.uint64(2**64 - 1)
"""One cell on, and one cell back: cells are added modulo 2^64."""


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


def spans(low: Encoded, high: Encoded, *, size: int, closed: Closed, name: str, given: object) -> CellRanges:
    """The cells from each low end to each high end of the column `name`; an end that is NULL is open.

    >>> from partita.domain import Integer
    >>> ages = Integer(0, 120)
    >>> low, high = ages.encode([-5, 30, None]), ages.encode([9, 39, 17])
    >>> found = spans(low, high, size=121, closed="left", name="age", given="ages")
    >>> found.lows.tolist(), found.highs.tolist(), found.below.tolist()
    ([0, 30, 0], [8, 38, 16], [False, False, True])
    """
    first, last = _LOW_SIDES[low.special], _HIGH_SIDES[high.special]
    lows, highs = low.cells, np.where(last == 0, high.cells, np.uint64(size - 1))
    _check_order((first > last) | ((first == 0) & (lows > highs)), name, given)
    empty = (first == 1) | (last == -1)
    if closed in ("right", "neither"):
        lows, empty = _moved(lows, _UP, first == 0, empty, outermost=size - 1)
    if closed in ("left", "neither"):
        highs, empty = _moved(highs, _DOWN, last == 0, empty, outermost=0)
    empty = empty | (lows > highs)
    return CellRanges(
        np.where(empty, _ZERO, lows), np.where(empty, _ZERO, highs), empty, first == -2, last == 2
    )


def _moved(
    cells: UInts, step: np.uint64, on_axis: Bools, empty: Bools, *, outermost: int
) -> tuple[UInts, Bools]:
    """Ends that lie on the axis moved inwards by a cell; a span that had no other cell is empty."""
    stuck = on_axis & (cells == outermost)
    return np.where(on_axis & ~stuck, cells + step, cells), empty | stuck


def _check_order(backwards: Bools, name: str, given: object) -> None:
    if bool(backwards.any()):
        raise InvalidParameter(name, "must go from low to high", given=given, fix="swap the two ends")
