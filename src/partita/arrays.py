"""Arrays of exact integers: nothing is rounded on the way in, and equal ones are found."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.errors import InvalidData, check_data, raise_without_cause

Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
UInts: TypeAlias = NDArray[np.uint64]


def integer_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """`values` as an array of a NumPy integer type, or of Python ints where those do not fit.

    >>> integer_array([0, 2**64 - 1], "cells").tolist()
    [0, 18446744073709551615]
    """
    fix = "drop or encode what is missing"
    check_data(not isinstance(values, np.ma.MaskedArray), name, "must not be masked", fix=fix)
    array = as_array(values, name)
    if array.dtype.kind in "iu" or array.size == 0:
        return array if array.dtype.kind in "iuO" else array.astype(np.int64)
    if array.dtype.kind == "f" and not isinstance(values, np.ndarray):
        array = np.array(values, dtype=object)  # NumPy makes floats of integers on both sides of 2^63
    if array.dtype == object and all(_is_integer(value) for value in array.flat):
        return np.array([int(value) for value in array.flat], dtype=object).reshape(array.shape)
    raise InvalidData(name, "must hold integers only", fix="quantise, count or encode them first")


def as_array(values: object, name: str, dtype: type | None = None) -> NDArray[Any]:
    """What NumPy makes of `values`; if it can make nothing of them, no error repeats what it says."""
    failure = InvalidData(name, "must be an array or a list", fix="pass a NumPy array of one dimension")
    return raise_without_cause(lambda: np.asarray(values, dtype=dtype), failure, Exception)


def as_rows(values: object, name: str) -> NDArray[Any]:
    """A row for each value, whatever it is: where NumPy finds no common type, they stay Python objects."""
    try:
        return np.asarray(values)
    except ValueError:
        pass
    return as_array(values, name, object)


def changes(first: NDArray[Any], *others: NDArray[Any]) -> NDArray[np.bool_]:
    """Where rows, given column by column, differ from the row before; the first row does.

    >>> changes(np.array([1, 1, 1, 2]), np.array([5, 5, 6, 6])).tolist()
    [True, False, True, True]
    """
    new = np.ones(len(first), np.bool_)
    np.not_equal(first[1:], first[:-1], out=new[1:])
    for column in others:
        new[1:] |= column[1:] != column[:-1]
    return new


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
