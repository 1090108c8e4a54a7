"""The columns of a mapping: NumPy arrays by their declared type, lists value by value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from partita.domain.columns.moments import SECOND, day_and_nanosecond
from partita.errors.errors import SourceError
from partita.trusted.sources.arrow.python import python_array
from partita.trusted.sources.base.quiet import attempt

_DAYS: Final = ("Y", "M", "W", "D")
_COARSE: Final = ("h", "m", "s")
_FINE: Final = ("ms", "us", "ns")


def column_of(values: Any, name: str) -> Any:
    """A column of a mapping as a pyarrow ChunkedArray or Array."""
    refused = SourceError(
        f"column {name!r}", "must be one column of values", fix="pass a NumPy array, a list or an Arrow array"
    )
    if isinstance(values, np.ndarray):
        return attempt(lambda: _from_numpy(values), refused)
    if hasattr(values, "__arrow_c_stream__"):
        return attempt(lambda: pa.chunked_array(values), refused)
    if hasattr(values, "__arrow_c_array__"):
        return attempt(lambda: pa.array(values), refused)
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray, memoryview)):
        return python_array(list(values))
    raise refused


def _from_numpy(array: np.ndarray[Any, Any]) -> Any:
    if array.ndim != 1:
        raise ValueError
    if isinstance(array, np.ma.MaskedArray):
        present = pa.array(np.arange(len(array)), mask=np.ma.getmaskarray(array))
        return _from_numpy(np.asarray(array)).take(present)
    match array.dtype.kind:
        case "O" | "T":
            return python_array(array.tolist())
        case "U":
            texts = [text.encode("utf-8", "surrogatepass") for text in array.tolist()]
            return pa.array(texts, pa.large_binary())
        case "M":
            return _moments(array)
        case _:
            return pa.array(array.astype(array.dtype.newbyteorder("=")))


def _moments(array: np.ndarray[Any, Any]) -> Any:
    """Days as dates; hours, minutes and seconds as seconds, brought nearer if beyond all domains."""
    unit, multiple = np.datetime_data(array.dtype)
    counts, missing = array.astype(array.dtype.newbyteorder("=")).view(np.int64), np.isnat(array)
    if unit in _FINE and multiple == 1:
        return pa.array(counts, pa.timestamp(unit), mask=missing)
    if unit not in (*_DAYS, *_COARSE):
        raise ValueError
    day, nanosecond = day_and_nanosecond(np.where(missing, 0, counts), unit, multiple)
    if unit in _DAYS:
        return pa.array(day.astype(np.int32), pa.int32(), mask=missing).cast(pa.date32())
    return pa.array(day * 86_400 + nanosecond // SECOND, pa.timestamp("s"), mask=missing)
