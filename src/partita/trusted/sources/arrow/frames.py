"""Tables in memory and streams of batches, of any library that speaks the Arrow interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from partita.errors.checks import check_source
from partita.errors.errors import SourceError
from partita.trusted.sources.arrow.values import column_of
from partita.trusted.sources.base.names import positions
from partita.trusted.sources.base.protocol import Batches
from partita.trusted.sources.base.quiet import attempt, quietly


@dataclass(frozen=True, repr=False)
class Frame:
    """An object with `__arrow_c_stream__`; a reader, which forgets what it has given, is read once."""

    data: Any
    _read: list[bool] = field(default_factory=list)

    def read(self, columns: Sequence[str]) -> Batches:
        """The columns asked for, in batches as they come."""
        rule, fix = "can be read once only", "make a new reader, or pass a table"
        check_source(not self._read or not isinstance(self.data, pa.RecordBatchReader), "data", rule, fix=fix)
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
    """A mapping of column names to NumPy arrays, lists or Arrow columns, all of the same length."""

    data: Mapping[str, Any]

    def read(self, columns: Sequence[str]) -> Batches:
        """The columns asked for."""
        names = list(self.data)
        positions(columns, names)
        arrays = {name: column_of(self.data[name], name) for name in columns}
        _check_lengths({**self.data, **arrays})
        table = pa.table(arrays)
        return Batches(table.schema, iter(table.to_batches()))


def _check_lengths(columns: Mapping[str, Any]) -> None:
    """Refuse columns that cannot be those of the same rows, be they read now or not."""
    lengths = {name: length for name, column in columns.items() if (length := _length(column)) is not None}
    first = next(iter(lengths))
    for name, length in lengths.items():
        if length != lengths[first]:
            fix = "check how they were made"
            raise SourceError(f"columns {first!r} and {name!r}", "must have the same length", fix=fix)


def _length(column: Any) -> int | None:
    """How many values there are; None for what cannot say so, which is refused once it is read."""
    try:
        return len(column)
    except Exception:
        return None


def _no_table() -> SourceError:
    fix = "give each column one type, for example by writing mixed values as text"
    return SourceError("data", "must be a table that the Arrow interface can carry", fix=fix)
