"""One column of integers, condensed: each value once a block, with the number of its rows.

To sort a block of integers costs less than to hash its rows one by one, and leaves the engine
little to group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from partita.sources.protocol import Batches
from partita.sources.regroup import firsts

__all__ = ["condensable", "condensed"]

_BLOCK: Final = 2**21


def condensable(schema: Any) -> bool:
    """Whether rows are nothing but one integer, or null."""
    return len(schema) == 1 and bool(types.is_integer(schema.field(0).type))


def condensed(rows: Batches) -> Batches:
    """The distinct values of each block of rows, and how many rows have each."""
    schema = rows.schema.append(pa.field("rows", pa.int64()))
    return Batches(schema, (_counted(block, schema) for block in _blocks(rows.batches)))


def _blocks(batches: Iterator[Any]) -> Iterator[list[Any]]:
    """The columns of several batches at a time, about two million rows."""
    block: list[Any] = []
    for batch in batches:
        block.append(batch.column(0))
        if sum(map(len, block)) >= _BLOCK:
            yield block
            block = []
    if block:
        yield block


def _counted(block: list[Any], schema: Any) -> Any:
    values = np.concatenate([column.drop_null().to_numpy() for column in block])
    values.sort()
    first = firsts([values])
    keys, counts = pa.array(values[first]), pa.array(np.diff(first, append=values.size))
    nulls = sum(column.null_count for column in block)
    if nulls:
        keys = pa.concat_arrays([keys, pa.nulls(1, keys.type)])
        counts = pa.concat_arrays([counts, pa.array([nulls], pa.int64())])
    return pa.record_batch([keys, counts], schema=schema)
