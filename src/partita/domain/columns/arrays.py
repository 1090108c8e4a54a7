"""NumPy arrays and lists of Python values, as columns.

Python values are grouped by type, and each group is read at once. Reading never raises:
a value whose own methods fail, as those of a hostile subclass may, is invalid.
"""

from __future__ import annotations

import datetime
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from partita.domain.columns.arrow import texts
from partita.domain.columns.columns import (
    Blank,
    Column,
    Content,
    Exacts,
    Flags,
    Floats,
    Moments,
    Number,
    Scaled,
    exact_column,
)
from partita.domain.columns.moments import Moment, day_and_nanosecond, moment_of
from partita.domain.columns.text import number

Array: TypeAlias = npt.NDArray[Any]
_Value = TypeVar("_Value")

_MISSING: Final = {"NoneType", "NAType", "NaTType", "MaskedConstant"}
"""The types of None, pandas.NA, pandas.NaT and numpy.ma.masked, by name as pandas need not be there."""


def read_array(array: Array) -> Column:
    """A one-dimensional NumPy array as a column; masked values and NaT are missing."""
    if isinstance(array, np.ma.MaskedArray) and array.dtype.kind != "V":
        present = ~np.ma.getmaskarray(array)
        return Column.split(present, read_array(np.asarray(array)[present]), Blank.MISSING)
    if array.dtype.kind == "M":
        return _datetimes(array)
    return Column.of(_content(array), len(array))


def read_objects(values: list[Any]) -> Column:
    """Python values of any types as a column; None, pandas.NA and pandas.NaT are missing.

    Types are told apart by identity, since even the hash of a type may be made to fail.
    """
    if len(set(map(id, map(type, values)))) == 1:
        return Column.of(_total(values), len(values))
    return _grouped(values, lambda value: id(type(value)), _total)


def moments_column(moments: Sequence[Moment | None]) -> Column:
    """A column of moments that is invalid where there is None."""
    return _grouped(moments, lambda moment: moment and moment[2:], _moments)


def _grouped(
    values: Sequence[_Value], key: Callable[[_Value], Hashable], read: Callable[[list[_Value]], Content]
) -> Column:
    """A column with a part, read at once, for the values of each key."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for row, value in enumerate(values):
        groups[key(value)].append(row)
    return Column(
        len(values), [(np.array(rows), read([values[row] for row in rows])) for rows in groups.values()]
    )


def _content(array: Array) -> Content:
    match array.dtype.kind:
        case "b":
            return Flags(array)
        case "i" | "u" as kind:
            return Scaled(array.astype(np.int64 if kind == "i" else np.uint64, copy=False))
        case "f" if array.dtype.itemsize <= 8:
            return Floats.widened(array)
        case "f":
            return Exacts([_wide(value) for value in array])
        case "S":
            return _bytes(array.tolist())
        case "U":
            return _characters(array)
        case "T":
            missing = getattr(array.dtype, "na_object", None)
            return read_objects([None if value is missing else value for value in array.tolist()])
        case "O":
            return read_objects(array.tolist())
        case _:
            return Blank.INVALID


def _datetimes(array: Array) -> Column:
    unit, multiple = np.datetime_data(array.dtype)
    counts = array.astype(array.dtype.newbyteorder("=")).view(np.int64)
    present = ~np.isnat(array)
    if unit == "generic":
        return Column.split(present, Blank.INVALID, Blank.MISSING)
    day, nanosecond = day_and_nanosecond(counts[present], unit, multiple)
    dated = unit in ("Y", "M", "W", "D")
    return Column.split(present, Moments(day, nanosecond, aware=False, dated=dated), Blank.MISSING)


def _total(values: list[Any]) -> Content:
    """Read values of one type at once; if that fails, one by one; what still fails is invalid."""
    try:
        return _group(values)
    except Exception:
        if len(values) == 1:
            return Blank.INVALID
        parts = [(slice(row, row + 1), _total([value])) for row, value in enumerate(values)]
        return Column(len(values), parts)


def _group(values: list[Any]) -> Content:
    kind = type(values[0])
    if kind.__name__ in _MISSING:
        return Blank.MISSING
    if issubclass(kind, str):
        return _strings(values)
    if issubclass(kind, (bytes, bytearray, memoryview)):
        return _bytes([bytes(value) for value in values])
    if issubclass(kind, np.generic):
        return _grouped(values, lambda value: value.dtype, lambda same: read_array(np.array(same)))
    if issubclass(kind, datetime.date):
        return moments_column([moment_of(value) for value in values])
    return _numbers(values, kind)


def _numbers(values: list[Any], kind: type) -> Content:
    if issubclass(kind, bool):
        return Flags(np.array(values))
    if issubclass(kind, int):
        return _integers(values if kind is int else [int.__index__(value) for value in values])
    if issubclass(kind, float):
        return Floats(np.array(values, np.float64))
    if issubclass(kind, Decimal):
        return exact_column([number(str(value).encode()) for value in values])
    if issubclass(kind, Fraction):
        return Exacts([Fraction(int(value.numerator), int(value.denominator)) for value in values])
    return Blank.INVALID


def _integers(values: list[int]) -> Content:
    try:
        return Scaled(np.array(values, np.int64))
    except OverflowError:
        return Exacts(values)


def _wide(value: np.longdouble) -> Number:
    return Fraction(*value.as_integer_ratio()) if np.isfinite(value) else float(value)


def _strings(values: list[str]) -> Content:
    """Text; half of a surrogate pair becomes bytes that are not UTF-8, and so match nothing."""
    import pyarrow as pa

    try:
        return texts(pa.array(values, pa.large_string()))
    except UnicodeEncodeError:
        return _bytes([value.encode("utf-8", "surrogatepass") for value in values])


def _bytes(values: list[bytes]) -> Content:
    import pyarrow as pa

    return texts(pa.array(values, pa.large_binary()))


def _characters(array: Array) -> Content:
    """Text in four bytes per character; a row with bytes that are no character is invalid."""
    try:
        return _strings(array.tolist())
    except ValueError:
        points = array.astype(array.dtype.newbyteorder("=")).view(np.uint32).reshape(len(array), -1)
        readable = np.asarray((points <= sys.maxunicode).all(axis=1))
        return Column.split(readable, _strings(array[readable].tolist()), Blank.INVALID)


def _moments(moments: list[Moment | None]) -> Content:
    known = [moment for moment in moments if moment is not None]
    if not known:
        return Blank.INVALID
    day, nanosecond = np.array([moment[:2] for moment in known], np.int64).T
    return Moments(day, nanosecond, known[0].aware, known[0].dated)
