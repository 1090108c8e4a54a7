"""The grouped raw values of a DataFrame, brought here: for tables that are small once they are grouped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sf

from partita.errors.checks import check
from partita.trusted.sources.arrow.keys import check_sum, from_engine, sort, to_engine, wide
from partita.trusted.sources.base.names import checked
from partita.trusted.sources.base.protocol import Table
from partita.trusted.sources.spark.session.session import Cluster, Frame
from partita.trusted.sources.spark.source.raw import Raw


def collected(frame: Frame, keys: Sequence[str], sums: Sequence[str]) -> Table:
    """What `Source.counts` promises, counted on the cluster."""
    keys, sums = checked(keys, "keys"), checked(sums, "sums")
    check(keys, "keys", "must name a column", given=keys, fix='pass for example ["age"]')
    raw = Raw.of(frame, list(dict.fromkeys([*keys, *sums])))
    places = {name: place for place, name in enumerate(raw.names)}
    for name in sums:
        check_sum(raw.kinds[places[name]], name)
    added = [sf.sum(sf.col(raw.keys[places[name]]).cast("decimal(20,0)")) for name in sums]
    named = [sf.coalesce(total, sf.lit(0)).alias(f"s{number}") for number, total in enumerate(added)]
    rows = sf.count(sf.lit(1)).alias("count")
    grouped = raw.frame.groupBy(raw.keys[: len(keys)]).agg(rows, *named)
    return _finished(Cluster.of(frame).run(grouped.toArrow), raw.kinds[: len(keys)], keys, sums)


def _finished(table: Table, kinds: Sequence[Any], keys: Sequence[str], sums: Sequence[str]) -> Table:
    raw = [_for_sorting(table.column(place), name) for place, name in enumerate(keys)]
    ordered = sort(pa.table([*raw, *table.columns[len(keys) :]], names=table.column_names), len(keys)).columns
    columns = [from_engine(column, kind) for column, kind in zip(ordered, kinds, strict=False)]
    totals = [column.cast(pa.decimal128(38, 0)) for column in ordered[len(keys) + 1 :]]
    names = [*keys, "count", *(f"sum of {name}" for name in sums)]
    return pa.table([*columns, ordered[len(keys)], *totals], names=names)


def _for_sorting(column: Any, name: str) -> Any:
    chunks = [pa.array([], column.type), *column.chunks]
    return pa.chunked_array([to_engine(wide(chunk, name)) for chunk in chunks])
