"""The one entrance for columns: whatever holds them, they leave as typed content."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from partita.domain.columns.arrays import read_array, read_objects
from partita.domain.columns.arrow import read_arrow
from partita.domain.columns.columns import Blank, Column
from partita.errors.errors import InvalidData

_OBJECTS: Final = {"object", "category"}
"""The pandas types whose values may be any Python objects."""


def read(values: object) -> Column:
    """A NumPy array, an Arrow array, a sequence or an object with an Arrow interface, as a column."""
    if isinstance(values, np.ndarray):
        return _read_converted(values)
    if _is_arrow(values):
        return read_arrow(values)
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        return _read_foreign(values)
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray, memoryview)):
        rows = _or_none(list, values)
        if rows is not None:
            return read_objects(rows)
    raise _no_column("must be one column of values")


def _is_arrow(values: object) -> bool:
    pa = sys.modules.get("pyarrow")
    return pa is not None and isinstance(values, (pa.Array, pa.ChunkedArray))


def _read_foreign(values: object) -> Column:
    """A column of another library; one that Arrow cannot carry is read through NumPy.

    So is one of Python objects: Arrow would infer a type from all rows, or fail on one, and
    then the cell of a row would depend on other people's rows.
    """
    import pyarrow as pa

    if str(getattr(values, "dtype", None)) in _OBJECTS:
        return _read_converted(values)
    array = _or_none(pa.chunked_array if hasattr(values, "__arrow_c_stream__") else pa.array, values)
    if array is None:
        return _read_converted(values)
    if pa.types.is_struct(array.type):
        raise _no_column("must be one column, not a table")
    return read_arrow(array)


def _read_converted(values: Any) -> Column:
    """A column as a NumPy array; what pandas calls missing, NaN too, is missing."""
    array = values if isinstance(values, np.ndarray) else _or_none(np.asarray, values)
    if array is None or array.ndim != 1:
        raise _no_column("must have one dimension")
    if not hasattr(values, "isna"):
        return read_array(array)
    present = ~np.asarray(values.isna(), np.bool_)
    return Column.split(present, read_array(array[present]), Blank.MISSING)


def _or_none(convert: Callable[[Any], Any], values: object) -> Any:
    """The converted values, or None: what a failed conversion says may hold values of the data."""
    try:
        return convert(values)
    except Exception:
        return None


def _no_column(rule: str) -> InvalidData:
    return InvalidData("values", rule, fix="pass a one-dimensional NumPy array, an Arrow array or a list")
