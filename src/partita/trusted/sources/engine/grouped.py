"""The default source: any rows, grouped by the engine of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa

from partita.errors.checks import check
from partita.trusted.sources.arrow.keys import check_sum, from_engine, sort, to_engine, wide, wide_type
from partita.trusted.sources.base.names import checked
from partita.trusted.sources.base.protocol import Batches, Rows, Table
from partita.trusted.sources.engine.condensed import condensable, condensed
from partita.trusted.sources.engine.engine import group


@final
@dataclass(frozen=True, repr=False)
class Grouped:
    """A `Source` over rows that are read again for each count."""

    rows: Rows
    threads: int | None = None
    memory: int | None = None

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """Exact counts of distinct raw values; see `Source.counts`."""
        keys, sums = checked(keys, "keys"), checked(sums, "sums")
        check(keys, "keys", "must name a column", given=keys, fix='pass for example ["age"]')
        rows = self.rows.read(list(dict.fromkeys([*keys, *sums])))
        kinds = [wide_type(field.type, field.name) for field in rows.schema]
        places = [*range(len(keys)), *(rows.schema.names.index(name) for name in sums)]
        for place, name in zip(places[len(keys) :], sums, strict=True):
            check_sum(kinds[place], name)
        table = self._grouped(_prepared(rows, kinds, places), len(keys))
        return finished(table, kinds[: len(keys)], keys, sums)

    def _grouped(self, rows: Batches, keys: int) -> Table:
        counted = condensable(rows.schema)
        return group(
            condensed(rows, threads=self.threads) if counted else rows,
            keys=keys,
            counted=counted,
            threads=self.threads,
            memory=self.memory,
        )

    def __repr__(self) -> str:
        return f"Source({type(self.rows).__name__}, secret)"


def _prepared(rows: Batches, kinds: Sequence[Any], places: Sequence[int]) -> Batches:
    """The columns as the engine sees them, known by number."""
    empty = [to_engine(pa.array([], kinds[place])).type for place in places]
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(empty)])

    def batches() -> Iterator[Any]:
        for batch in rows.batches:
            columns = [to_engine(wide(batch.column(i), n)) for i, n in enumerate(rows.schema.names)]
            yield pa.record_batch([columns[place] for place in places], schema=schema)

    return Batches(schema, batches())


def finished(table: Table, kinds: Sequence[Any], keys: Sequence[str], sums: Sequence[str]) -> Table:
    """What an engine has grouped, in the order and the types that `Source.counts` promises."""
    ordered = sort(table, len(keys)).columns
    columns = [from_engine(column, kind) for column, kind in zip(ordered, kinds, strict=False)]
    totals = [column.cast(pa.decimal128(38, 0)) for column in ordered[len(keys) + 1 :]]
    names = [*keys, "count", *(f"sum of {name}" for name in sums)]
    return pa.table([*columns, ordered[len(keys)], *totals], names=names)
