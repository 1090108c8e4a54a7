"""One column of integers, condensed: each value once a block, with the number of its rows.

To sort a block of integers costs less than to hash its rows one by one, and leaves the engine
little to group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from partita.trusted.sources.base.protocol import Batches
from partita.trusted.sources.tally.regroup import firsts

_BLOCK: Final = 2**21


def condensable(schema: Any) -> bool:
    """Whether rows are nothing but one integer, or null."""
    return len(schema) == 1 and bool(types.is_integer(schema.field(0).type))


def condensed(rows: Batches, *, threads: int | None) -> Batches:
    """The distinct values of each block of rows, and how many rows have each.

    Unless there is one thread only, a block is sorted while the next one is read.
    """
    schema = rows.schema.append(pa.field("rows", pa.int64()))
    count, blocks = partial(_counted, schema), _blocks(rows.batches)
    return Batches(schema, map(count, blocks) if threads == 1 else _overlapped(count, blocks))


def _overlapped(work: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
    """The work on each item, done while the next one comes."""
    with ThreadPoolExecutor(1) as worker:
        under_way: list[Future[Any]] = []
        for item in items:
            under_way.append(worker.submit(work, item))
            if len(under_way) > 1:
                yield under_way.pop(0).result()
        for last in under_way:
            yield last.result()


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


def _counted(schema: Any, block: list[Any]) -> Any:
    values = np.concatenate([column.drop_null().to_numpy() for column in block])
    values.sort()
    first = firsts([values])
    keys, counts = pa.array(values[first]), pa.array(np.diff(first, append=values.size))
    nulls = sum(column.null_count for column in block)
    if nulls:
        keys = pa.concat_arrays([keys, pa.nulls(1, keys.type)])
        counts = pa.concat_arrays([counts, pa.array([nulls], pa.int64())])
    return pa.record_batch([keys, counts], schema=schema)
