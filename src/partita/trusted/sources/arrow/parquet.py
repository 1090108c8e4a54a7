"""Parquet files, a batch of rows at a time. Never mapped: a file cut short would end the process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from partita.errors.errors import SourceError
from partita.trusted.sources.arrow.keys import wide_type
from partita.trusted.sources.base.files import File
from partita.trusted.sources.base.names import positions
from partita.trusted.sources.base.protocol import Batches
from partita.trusted.sources.base.quiet import attempt, quietly


@dataclass(frozen=True)
class Parquet:
    """Parquet files that have the same types in the columns asked for."""

    files: Sequence[File]

    def read(self, columns: Sequence[str]) -> Batches:
        """The columns asked for; files may differ in the width of their numbers only."""
        schemas = [_schema(file, columns) for file in self.files]
        for file, schema in zip(self.files, schemas, strict=True):
            _check_same(file, schema, schemas[0])
        return Batches(schemas[0], self._batches(schemas[0].names))

    def _batches(self, names: list[str]) -> Iterator[Any]:
        for file in self.files:
            with file.reading() as stream:
                for batch in quietly(_decoded(stream, names), _no_parquet(file)):
                    yield batch.select(names)


def _decoded(stream: BinaryIO, names: Sequence[str]) -> Iterator[Any]:
    yield from pq.ParquetFile(stream).iter_batches(columns=names, use_threads=False)


def _schema(file: File, columns: Sequence[str]) -> Any:
    with file.reading() as stream:
        present = attempt(lambda: pq.read_schema(stream), _no_parquet(file))
    fields = [present.field(place) for place in positions(columns, present.names)]
    return pa.schema([(field.name, wide_type(field.type, field.name)) for field in fields])


def _check_same(file: File, schema: Any, first: Any) -> None:
    for mine, other in zip(schema, first, strict=True):
        if mine.type != other.type:
            rule = f"must have one type in column {mine.name!r}, not {mine.type} and {other.type}"
            raise SourceError(file.shown, rule, fix="write the files again with one type")


def _no_parquet(file: File) -> SourceError:
    fix = "check that it is, and is not encrypted"
    return SourceError(file.shown, "must be a whole Parquet file", fix=fix)
