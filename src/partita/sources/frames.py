"""Tables in memory and streams of batches, of any library that speaks the Arrow interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from partita.errors import SourceError
from partita.sources.names import positions
from partita.sources.protocol import Batches
from partita.sources.quiet import attempt, quietly
from partita.sources.values import column_of

__all__ = ["Frame", "Mapped"]


@dataclass(frozen=True, repr=False)
class Frame:
    """An object with `__arrow_c_stream__`; a reader, which forgets what it has given, is read once."""

    data: Any
    _read: list[bool] = field(default_factory=list)

    def read(self, columns: Sequence[str]) -> Batches:
        """The columns asked for, in batches as they come."""
        if self._read and isinstance(self.data, pa.RecordBatchReader):
            raise SourceError("data", "can be read once only", fix="make a new reader, or pass a table")
        reader = attempt(lambda: pa.RecordBatchReader.from_stream(self.data), _no_table())
        places = positions(columns, reader.schema.names)
        self._read.append(True)
        schema = pa.schema([reader.schema.field(place) for place in places])
        return Batches(schema, self._batches(reader, places, schema))

    def _batches(self, reader: Any, places: Sequence[int], schema: Any) -> Iterator[Any]:
        for batch in quietly(iter(reader), _no_table()):
            yield pa.record_batch([batch.column(place) for place in places], schema=schema)


@dataclass(frozen=True, repr=False)
class Mapped:
    """A mapping of column names to NumPy arrays, lists or Arrow columns of the same length."""

    data: Mapping[str, Any]

    def read(self, columns: Sequence[str]) -> Batches:
        """The columns asked for."""
        names = list(self.data)
        positions(columns, names)
        arrays = [column_of(self.data[name], name) for name in columns]
        if len(set(map(len, arrays))) > 1:
            raise SourceError("data", "must have columns of the same length", fix="check how they were made")
        table = pa.table(arrays, names=list(columns))
        return Batches(table.schema, iter(table.to_batches()))


def _no_table() -> SourceError:
    return SourceError(
        "data",
        "must be a table that the Arrow interface can carry",
        fix="give each column one type, for example by writing mixed values as text",
    )
