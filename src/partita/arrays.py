"""Arrays of exact integers: nothing is rounded on the way in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.errors import InvalidData

__all__ = ["integer_array"]


def integer_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """`values` as an array of a NumPy integer type, or of Python ints where those do not fit.

    >>> integer_array([0, 2**64 - 1], "cells").tolist()
    [0, 18446744073709551615]
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidData(name, "must not be masked", fix="drop or encode what is missing")
    array = _array(values, name)
    if array.dtype.kind in "iu" or array.size == 0:
        return array if array.dtype.kind in "iuO" else array.astype(np.int64)
    if array.dtype.kind == "f" and not isinstance(values, np.ndarray):
        array = np.array(values, dtype=object)  # NumPy makes floats of integers on both sides of 2^63
    if array.dtype == object and all(_is_integer(value) for value in array.flat):
        return np.array([int(value) for value in array.flat], dtype=object).reshape(array.shape)
    raise InvalidData(name, "must hold integers only", fix="quantise, count or encode them first")


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _array(values: ArrayLike, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise InvalidData(name, "must be an array of integers", fix="pass a NumPy integer array") from None
