"""Raw values into cells, on the executors, by the same code that encodes them everywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa

from partita.domain.base.base import Domain
from partita.trusted.sources.arrow.keys import wide
from partita.trusted.sources.spark.counts.blocks import blocks, whole_groups
from partita.trusted.sources.spark.counts.numbers import to_longs
from partita.trusted.sources.spark.counts.packed import cell, special
from partita.trusted.sources.spark.session.workers import Batch
from partita.trusted.sources.spark.source.raw import PERSON
from partita.trusted.sources.tally.tally import Tally, tally


@final
@dataclass(frozen=True, kw_only=True)
class Encoding:
    """A worker that turns grouped raw values, called `keys`, into grouped cells."""

    schema: Mapping[str, Domain]
    keys: tuple[str, ...]
    person: str | None
    contributions: int
    salt: str
    where: tuple[str, str] | None

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The cells of each block of rows; a block holds all rows of the persons in it."""
        tables = blocks(batches)
        if self.person is not None:
            tables = whole_groups(tables, lambda table: table.column(PERSON))
        for table in tables:
            yield self._batch(self._tally(table))

    def _tally(self, table: Any) -> Tally:
        return tally(
            _Here(self.keys, table),
            self.schema,
            person=self.person,
            contributions=self.contributions,
            salt=self.salt,
            where=self.where,
        )

    def _batch(self, counted: Tally) -> Batch:
        arrays: list[Any] = []
        for encoded in counted.cells.values():
            arrays += [pa.array(encoded.special.view(np.int8)), pa.array(to_longs(encoded.cells))]
        names = [name(column) for column in range(len(counted.cells)) for name in (special, cell)]
        return pa.record_batch([*arrays, pa.array(counted.counts)], names=[*names, "rows"])


@final
@dataclass(frozen=True)
class _Here:
    """A `Source` of rows that Spark has grouped: this block of them."""

    names: tuple[str, ...]
    table: Any

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Any:
        """The raw values in this block, and how many rows have each."""
        places = {name: f"k{place}" for place, name in enumerate(self.names)}
        columns = [self._wide(places[name], name) for name in keys]
        return pa.table([*columns, self.table.column("rows")], names=[*keys, "count"])

    def _wide(self, place: str, name: str) -> Any:
        chunks = [wide(chunk, name) for chunk in self.table.column(place).chunks]
        return pa.chunked_array(chunks)
