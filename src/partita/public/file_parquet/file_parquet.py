"""Columns of integers and texts about them, as the bytes of one Parquet file, and back."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partita.errors.errors import InvalidRelease
from partita.public.file_entries.file_columns import Column

if TYPE_CHECKING:
    import pyarrow as pa


def to_parquet(
    columns: Sequence[Column], values: Sequence[NDArray[Any]], metadata: Mapping[str, bytes]
) -> bytes:
    """One row with one list for each column; a function of what is given, and of nothing else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(columns)
    lists = [_list(each, field.type) for each, field in zip(values, schema, strict=True)]
    buffer = io.BytesIO()
    with pq.ParquetWriter(
        buffer,
        schema,
        compression="zstd",
        use_dictionary=False,
        column_encoding="DELTA_BINARY_PACKED",
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(pa.Table.from_arrays(lists, schema=schema))
        for key, text in metadata.items():
            writer.add_key_value_metadata({key: text})
    return buffer.getvalue()


def from_parquet(data: bytes, columns: Sequence[Column]) -> list[NDArray[Any]]:
    """The values of each column of a file whose layout was checked.

    What the decoder says about a bad page is not repeated, because it quotes the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
        if not file.schema_arrow.remove_metadata().equals(_schema(columns)):
            raise _undecodable()
        table = file.read(use_threads=False)
        table.validate(full=True)
        return [_values(table.column(index), column) for index, column in enumerate(columns)]
    except (pa.ArrowException, OSError, ValueError, MemoryError):
        raise _undecodable() from None


def _schema(columns: Sequence[Column]) -> pa.Schema:
    import pyarrow as pa

    def integers(dtype: str) -> pa.DataType:
        return pa.list_(pa.field("element", pa.from_numpy_dtype(np.dtype(dtype)), nullable=False))

    return pa.schema([pa.field(each.name, integers(each.dtype), nullable=False) for each in columns])


def _list(values: NDArray[Any], kind: pa.DataType) -> pa.ListArray:
    import pyarrow as pa

    offsets = pa.array([0, values.size], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(values, kind.value_type), type=kind)


def _values(chunks: pa.ChunkedArray, column: Column) -> NDArray[Any]:
    """The numbers of the one list of a column."""
    (chunk,) = chunks.chunks
    values: NDArray[Any] = chunk.flatten().to_numpy()
    if len(chunk) != 1 or values.size != column.length:
        raise _undecodable()
    return values


def _undecodable() -> InvalidRelease:
    fix = "get a fresh copy of the release"
    return InvalidRelease("file", "holds other columns than its specification says", fix=fix)
