"""Rows of a partition as a worker meets them: some batches at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from partita.trusted.sources.spark.session.workers import Batch

_BLOCK: Final = 2**20


def blocks(batches: Iterator[Batch]) -> Iterator[Any]:
    """Tables of about a million rows."""
    held: list[Batch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= _BLOCK:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def whole(batches: Iterator[Batch]) -> Any:
    """All rows of a partition, as one table; None if it has none."""
    held = list(batches)
    return pa.Table.from_batches(held) if held else None


def whole_groups(tables: Iterator[Any], key: Callable[[Any], Any]) -> Iterator[Any]:
    """The same rows, cut only where the key changes; rows with the same key come one after another."""
    rest: Any = None
    for table in tables:
        joined = table if rest is None else pa.concat_tables([rest, table])
        last = _last_group(key(joined))
        if last > 0:
            yield joined.slice(0, last)
        rest = joined.slice(last)
    if rest is not None and rest.num_rows:
        yield rest


def _last_group(column: Any) -> int:
    """Where the rows with the last key start."""
    codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
    others = np.flatnonzero(codes != codes[-1]) if len(codes) else codes
    return int(others[-1]) + 1 if len(others) else 0
