"""A DataFrame of Spark as a source that counts where its rows are. Spark is imported when it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from pyarrow import types
from pyspark.sql import functions as sf

from partita.domain.base import Domain, Special
from partita.domain.numeric import Integer
from partita.errors import SourceError, check
from partita.local.aggregate import Aggregator
from partita.local.question import Question
from partita.numbers import integer
from partita.trusted.sources.arrow import UNREADABLE, check_sum, from_engine, sort, to_engine, wide
from partita.trusted.sources.base import Table, checked, positions
from partita.trusted.sources.spark.counts import (
    SHIFT,
    SparkTally,
    blocks,
    cell,
    columns,
    special,
    to_longs,
    whole_groups,
)
from partita.trusted.sources.spark.session import Batch, Cluster, Frame, numbered
from partita.trusted.sources.tally import Tally, people, tally

# Columns of a DataFrame as every engine groups them, known by place and not by name.


PERSON: Final = "person"
"""The column that tells persons apart: null where there is no id."""


@final
@dataclass(frozen=True, eq=False)
class Raw:
    """Some columns of a DataFrame, as k0, k1 and so on.

    Text is grouped by its bytes, whatever its collation. Spark itself makes one of all zeros, and of all NaN.
    """

    frame: Frame
    names: tuple[str, ...]
    kinds: tuple[Any, ...]

    @staticmethod
    def of(frame: Frame, names: Sequence[str]) -> Raw:
        """The columns asked for; one that is not there, or of no use, is a SourceError."""
        fields = [frame.schema.fields[place] for place in positions(names, frame.columns)]
        kinds = tuple(_wide_type(field.dataType, field.name) for field in fields)
        columns = numbered(frame, names)
        plain = [_plain(columns[f"k{place}"], kind).alias(f"k{place}") for place, kind in enumerate(kinds)]
        return Raw(columns.select(plain), tuple(names), kinds)

    @property
    def keys(self) -> list[str]:
        """What the columns are called on the cluster."""
        return [f"k{number}" for number in range(len(self.names))]

    def grouped(self) -> Frame:
        """Each combination of values once, and how many rows have it."""
        return self.frame.groupBy(self.keys).agg(sf.count(sf.lit(1)).alias("rows"))

    def as_bytes(self) -> Frame:
        """The same rows, each value as the bytes of its text."""
        plain = [self.frame[key] for key in self.keys]
        texts = [
            column if types.is_large_binary(kind) else column.cast("string").cast("binary")
            for column, kind in zip(plain, self.kinds, strict=True)
        ]
        return self.frame.select([text.alias(key) for text, key in zip(texts, self.keys, strict=True)])

    def require_ids(self, name: str) -> None:
        """Refuse a column that cannot tell persons apart."""
        people(pa.chunked_array([[]], self.kinds[self.names.index(name)]), name)

    def by_person(self, person: str, *, parts: int) -> Frame:
        """The same, with all rows of a person in one partition, one after another."""
        self.require_ids(person)
        place = self.names.index(person)
        key = _identity(self.grouped()[f"k{place}"], self.kinds[place])
        apart = self.grouped().withColumn(PERSON, key)
        return apart.repartition(parts, PERSON).sortWithinPartitions(PERSON)


_WIDE: Final = {
    "boolean": pa.bool_(),
    **dict.fromkeys(("byte", "short", "integer", "long"), pa.int64()),
    **dict.fromkeys(("float", "double"), pa.float64()),
    **dict.fromkeys(("string", "varchar", "char", "binary", "void"), pa.large_binary()),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""The type that a column of each type of Spark has in a grouped count."""


def _wide_type(kind: Any, name: str) -> Any:
    found = pa.decimal128(38, kind.scale) if kind.typeName() == "decimal" else _WIDE.get(kind.typeName())
    if found is None:
        fix = "choose another column"
        raise SourceError(f"column {name!r}", "must hold numbers, text, dates or times", fix=fix)
    return found


def _plain(column: Any, kind: Any) -> Any:
    return column.cast("binary") if types.is_large_binary(kind) else column


def _identity(column: Any, kind: Any) -> Any:
    """Null for all that is no id, as `bounding` has it: rows without an id are those of one person."""
    if types.is_large_binary(kind):
        return sf.when(~column.isin(sf.lit(b""), sf.lit(UNREADABLE)), column)
    return sf.when(~sf.isnan(column), column) if types.is_floating(kind) else column


# The grouped raw values of a DataFrame, brought here: for tables that are small once they are grouped.


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


# Raw values into cells, on the executors, by the same code that encodes them everywhere else.


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


# Whole numbers into cells as an expression of Spark: no Python is needed to subtract.
#
# The cells are those of `Integer.encode`: a number is compared with both bounds, and inside it is so far
# from
# the lower one. On the cluster cells are shifted by 2^63, so the difference fits 64 bits at each step.


_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1


def are_integers(schema: Mapping[str, Domain], raw: Raw) -> bool:
    """Whether each column holds integers of up to 64 bits, and its domain starts at one."""
    return all(
        isinstance(domain, Integer)
        and types.is_int64(raw.kinds[raw.names.index(name)])
        and _LOWEST <= domain.low <= _HIGHEST
        for name, domain in schema.items()
    )


def integer_cells(schema: Mapping[str, Domain], raw: Raw) -> Frame:
    """The cells of grouped raw values, for columns that `are_integers`."""
    made: list[Any] = []
    for number, (name, domain) in enumerate(schema.items()):
        assert isinstance(domain, Integer)
        value = sf.col(raw.keys[raw.names.index(name)]).cast("bigint")
        kind = _kind(value, domain)
        made += [kind.cast("tinyint").alias(special(number)), _cell(value, kind, domain).alias(cell(number))]
    return raw.grouped().select(*made, "rows")


def _kind(value: Any, domain: Integer) -> Any:
    above = value > min(domain.high, _HIGHEST)
    found = sf.when(value.isNull(), int(Special.NULL)).when(value < domain.low, int(Special.BELOW))
    return found.when(above, int(Special.ABOVE)).otherwise(int(Special.ORDINARY))


def _cell(value: Any, kind: Any, domain: Integer) -> Any:
    """The distance from the lower bound, less 2^63, in steps that stay within 64 bits for values inside."""
    first = domain.low if domain.low >= 0 else domain.low + SHIFT
    below = sf.try_subtract(value, sf.lit(first))
    shifted = sf.try_add(below, sf.lit(-SHIFT)) if domain.low >= 0 else below
    return sf.when(kind == int(Special.ORDINARY), shifted).otherwise(sf.lit(-SHIFT))


# From a DataFrame to a tally on its cluster: group raw values, encode what is distinct, and group cells.


def tallied(
    frame: Frame, schema: Mapping[str, Domain], by: Sequence[str] | None, *, parts: int | None, **facts: Any
) -> SparkTally:
    """The tally of a DataFrame; what is wrong with the question is said before anything runs."""
    cluster, asked = Cluster.of(frame), _Asked(frame)
    cluster.require_no_races()
    checked = tally(asked, schema, by, **facts)
    parts = parts or cluster.parts
    cells = cluster.run(lambda: _encoded(cluster, asked.raw, checked.schema, parts=parts, **facts))
    return SparkTally.of(checked.schema, checked.contributions, parts, cluster, cells)


def _encoded(
    cluster: Cluster,
    raw: Raw,
    schema: Mapping[str, Domain],
    *,
    parts: int,
    person: str | None,
    **facts: Any,
) -> Frame:
    """The cells of grouped raw values; those of one person are encoded, and bounded, together."""
    if person is None and facts["where"] is None and are_integers(schema, raw):
        return integer_cells(schema, raw)
    grouped = raw.grouped() if person is None else raw.by_person(person, parts=parts)
    encoding = Encoding(schema=schema, keys=raw.names, person=person, **facts)
    return cluster.mapped(grouped, encoding, columns(len(schema)))


@final
@dataclass(eq=False)
class _Asked:
    """A source without rows: it tells which columns a tally is made of, and lets it check them."""

    frame: Frame
    found: list[Raw] = field(default_factory=list)

    @property
    def raw(self) -> Raw:
        """The columns that were asked for."""
        return self.found[-1]

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """No rows, in columns of the right types."""
        self.found.append(Raw.of(self.frame, keys))
        empty = [pa.chunked_array([], kind) for kind in self.raw.kinds]
        return pa.table([*empty, pa.chunked_array([], pa.int64())], names=[*keys, "count"])


# Reports of the local model, counted where they are: aggregators add up in any order.


_MADE_REPORTS: Final = "state binary"


def aggregate(frame: Frame, column: str, question: Question) -> Aggregator[Any]:
    """The aggregator of all reports in a column: integers, or bytes for unary encoding, as devices make them.

    Every row counts. Where a report may have come twice, leave one: `frame.dropDuplicates(["report_id"])`.
    """
    fix = "pass for example Frequency(8, epsilon=1)"
    check(isinstance(question, Question), "question", "must be a question", given=question, fix=fix)
    cluster = Cluster.of(frame)
    reports = numbered(frame, [column])

    def run() -> list[bytes]:
        parts = cluster.mapped(reports, _Counting(question), _MADE_REPORTS)
        merged = cluster.mapped(parts.repartition(1), _Merging(question), _MADE_REPORTS)
        return [bytes(row["state"]) for row in merged.collect()]

    states = cluster.run(run, failure=_refused(column))
    return _merged(question, states)


@final
@dataclass(frozen=True)
class _Counting:
    """A worker that counts the reports of its partition."""

    question: Question

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        aggregator = self.question.aggregator()
        for table in blocks(batches):
            aggregator.add_many(_reports(table.column(0).combine_chunks()))
        yield _state(aggregator)


@final
@dataclass(frozen=True)
class _Merging:
    """A worker that makes one aggregator of all, so that one comes to the driver."""

    question: Question

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        states = [state for batch in batches for state in batch.column(0).to_pylist()]
        yield _state(_merged(self.question, states))


def _merged(question: Question, states: list[bytes]) -> Aggregator[Any]:
    """One aggregator of all; that of no report if there are none."""
    empty = question.aggregator()
    read = (type(empty).from_bytes(question, state) for state in states)
    return reduce(lambda one, other: one.merge(other), read, empty)


def _state(aggregator: Aggregator[Any]) -> Batch:
    return pa.record_batch([pa.array([aggregator.to_bytes()], pa.binary())], names=["state"])


def _reports(column: Any) -> Any:
    """A column of Spark as `Aggregator.add_many` takes it; null is no report."""
    if column.null_count:
        raise ValueError("a row without a report")
    if not types.is_binary(column.type) and not types.is_large_binary(column.type):
        return column.to_numpy()
    rows = column.to_pylist()
    if len({len(row) for row in rows}) > 1:
        raise ValueError("reports of several lengths")
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), len(rows[0]) if rows else 0)


def _refused(column: str) -> SourceError:
    fix = "drop what is no report, and check that each executor has partita"
    return SourceError(f"column {column!r}", "must hold a report to this question in each row", fix=fix)


@final
@dataclass(frozen=True, repr=False)
class SparkSource:
    """Rows of a DataFrame, which stay on their cluster.

    A universe of more than 2^20 cells is cut in public shards: at most `shards` equal parts, and the first of
    them split again at powers of four. By default it is twice `spark.default.parallelism` if the session was
    started with one, else 16; never by how many machines there are now, which may follow the rows. Each shard
    adds at most one segment to a partition.
    """

    frame: Frame
    shards: int | None = None

    def __post_init__(self) -> None:
        Cluster.of(self.frame)
        if self.shards is not None:
            integer(self.shards, "shards", low=1, high=2**12)

    def tally(
        self,
        schema: Mapping[str, Domain],
        by: Sequence[str] | None = None,
        *,
        person: str | None = None,
        contributions: int = 1,
        salt: str = "",
        where: tuple[str, str] | None = None,
    ) -> SparkTally:
        """Count cells as `sources.tally` does, on the cluster, where the counts stay."""
        return tallied(
            self.frame,
            schema,
            by,
            parts=self.shards,
            person=person,
            contributions=contributions,
            salt=salt,
            where=where,
        )

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """Exact counts of distinct raw values, brought here; see `Source.counts`. `publish` never asks."""
        return collected(self.frame, keys, sums)

    def __repr__(self) -> str:
        return "Source(Spark, secret)"
