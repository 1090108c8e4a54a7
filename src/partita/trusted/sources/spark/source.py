"""A Spark DataFrame as a source: raw values are grouped, encoded and counted on the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from pyarrow import types

from partita.domain.base import Domain, Special
from partita.domain.numeric import Integer
from partita.domain.text import Text
from partita.errors import SourceError, check
from partita.local.aggregate import Aggregator
from partita.local.question import Question
from partita.numbers import integer
from partita.trusted.sources.arrow import UNREADABLE, check_sum, to_engine, widen
from partita.trusted.sources.base import Table, check_column_names, locate_columns
from partita.trusted.sources.engine import finish
from partita.trusted.sources.spark.counts import (
    PERSON,
    SHIFT,
    SparkTally,
    blocks,
    cell,
    columns,
    special,
    to_longs,
    whole_groups,
)
from partita.trusted.sources.spark.session import Batch, Cluster, Frame, number_columns, sf
from partita.trusted.sources.spark.wide import PackedRows, RowEncoder, SparkWideTally
from partita.trusted.sources.tally import Limits, Tally, number_persons, tally
from partita.trusted.sources.wide import is_wide

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_STATE_COLUMNS: Final = "state binary"


@final
@dataclass(frozen=True, repr=False)
class SparkSource:
    """Rows of a DataFrame, which stay on their cluster.

    A universe of more than 2^20 cells is cut in public shards: at most `shards` equal parts, and the first of
    them split again at powers of four. The default is twice `spark.default.parallelism` if the session was
    started with one, else 16; it never depends on how many machines there are now, which may follow the rows.
    Each shard adds at most one segment to a partition.
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
        contributions: Limits = 1,
        salt: str = "",
        where: tuple[str, str] | None = None,
    ) -> SparkTally | SparkWideTally:
        """Count cells as `sources.tally` does, on the cluster, where the counts stay.

        The rows of many columns are not grouped. A wrong request is refused before anything runs on the
        cluster.
        """
        rule = "must be a number of rows where these are on a Spark cluster"
        fix = "pass for example 8, or publish from a file or a database"
        check(not isinstance(contributions, tuple), "contributions", rule, given="a choice", fix=fix)
        cluster, empty = Cluster.of(self.frame), _EmptySource(self.frame)
        cluster.require_no_races()
        facts: dict[str, Any] = {
            "person": person,
            "contributions": contributions,
            "salt": salt,
            "where": where,
        }
        request = tally(empty, schema, by, **facts)
        text = next((name for name, domain in request.schema.items() if isinstance(domain, Text)), None)
        rule, fix = "must have no columns of text to be counted on Spark", "read them from a file or a frame"
        check(text is None, "schema", rule, given=text, fix=fix)
        parts = self.shards or cluster.parts
        if is_wide(schema, by):
            return _store_rows(cluster, empty.raw, request, parts=parts, **facts)
        cells = cluster.run(lambda: _encode(cluster, empty.raw, request.schema, parts=parts, **facts))
        return SparkTally.of(request.schema, request.contributions, parts, cluster, cells)

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """Exact counts of distinct raw values, brought here; see `Source.counts`. `publish` never asks."""
        return _count(self.frame, keys, sums)

    def __repr__(self) -> str:
        return "Source(Spark, secret)"


@final
@dataclass(frozen=True, eq=False)
class Raw:
    """Some columns of a DataFrame, named k0, k1 and so on: no name of theirs can be taken for SQL.

    Text is grouped by its bytes, whatever its collation. Spark itself has one zero and one NaN.
    """

    frame: Frame
    names: tuple[str, ...]
    kinds: tuple[Any, ...]

    @staticmethod
    def of(frame: Frame, names: Sequence[str]) -> Raw:
        """These columns; one that is missing, or has an unsuitable type, is a SourceError."""
        fields = [frame.schema.fields[place] for place in locate_columns(names, frame.columns)]
        kinds = tuple(_wide_type(field.dataType, field.name) for field in fields)
        columns = number_columns(frame, names)
        plain = [
            columns[f"k{place}"].cast("binary") if types.is_large_binary(kind) else columns[f"k{place}"]
            for place, kind in enumerate(kinds)
        ]
        named = [column.alias(f"k{place}") for place, column in enumerate(plain)]
        return Raw(columns.select(named), tuple(names), kinds)

    @property
    def keys(self) -> list[str]:
        """The names of the columns on the cluster."""
        return [f"k{number}" for number in range(len(self.names))]

    def group(self) -> Frame:
        """Each combination of values once, and how many rows have it."""
        return self.frame.groupBy(self.keys).agg(sf.count(sf.lit(1)).alias("rows"))

    def as_bytes(self) -> Frame:
        """The same rows, each value as the bytes of its text."""
        columns = [
            column if types.is_large_binary(kind) else column.cast("string").cast("binary")
            for column, kind in zip((self.frame[key] for key in self.keys), self.kinds, strict=True)
        ]
        return self.frame.select([column.alias(key) for column, key in zip(columns, self.keys, strict=True)])

    def require_ids(self, name: str) -> None:
        """Raise SourceError if the column cannot tell persons apart."""
        number_persons(pa.chunked_array([[]], self.kinds[self.names.index(name)]), name)

    def group_by_person(self, person: str, *, parts: int) -> Frame:
        """The same, with all rows of a person in one partition, one after another.

        The person is null where the value is not an id: rows without an id are those of one person.
        """
        return self._bring_together(self.group(), person, parts=parts)

    def rows_by_person(self, person: str, *, parts: int) -> Frame:
        """All rows, those of a person as `group_by_person` has them."""
        return self._bring_together(self.frame, person, parts=parts)

    def _bring_together(self, rows: Frame, person: str, *, parts: int) -> Frame:
        self.require_ids(person)
        place = self.names.index(person)
        key, kind = sf.col(f"k{place}"), self.kinds[place]
        if types.is_large_binary(kind):
            key = sf.when(~key.isin(sf.lit(b""), sf.lit(UNREADABLE)), key)
        elif types.is_floating(kind):
            key = sf.when(~sf.isnan(key), key + sf.lit(0.0))  # -0.0 becomes 0.0
        return rows.withColumn(PERSON, key).repartition(parts, PERSON).sortWithinPartitions(PERSON)


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


def _count(frame: Frame, keys: Sequence[str], sums: Sequence[str]) -> Table:
    """The table that `Source.counts` promises: grouped on the cluster, and collected here."""
    keys, sums = check_column_names(keys, "keys"), check_column_names(sums, "sums")
    check(keys, "keys", "must name a column", given=keys, fix='pass for example ["age"]')
    raw = Raw.of(frame, list(dict.fromkeys([*keys, *sums])))
    places = {name: place for place, name in enumerate(raw.names)}
    for name in sums:
        check_sum(raw.kinds[places[name]], name)
    added = [sf.sum(sf.col(raw.keys[places[name]]).cast("decimal(20,0)")) for name in sums]
    named = [sf.coalesce(total, sf.lit(0)).alias(f"s{number}") for number, total in enumerate(added)]
    rows = sf.count(sf.lit(1)).alias("count")
    grouped = raw.frame.groupBy(raw.keys[: len(keys)]).agg(rows, *named)
    table = Cluster.of(frame).run(grouped.toArrow)
    raw_keys = [_to_engine(table.column(place), name) for place, name in enumerate(keys)]
    table = pa.table([*raw_keys, *table.columns[len(keys) :]], names=table.column_names)
    return finish(table, raw.kinds[: len(keys)], keys, sums)


def _to_engine(column: Any, name: str) -> Any:
    chunks = [pa.array([], column.type), *column.chunks]
    return pa.chunked_array([to_engine(widen(chunk, name)) for chunk in chunks])


@final
@dataclass(frozen=True, kw_only=True)
class EncodingWorker:
    """A worker that turns grouped raw values of the columns `keys` into grouped cells, by `tally`."""

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
            counted = tally(
                _BlockSource(self.keys, table),
                self.schema,
                person=self.person,
                contributions=self.contributions,
                salt=self.salt,
                where=self.where,
            )
            yield self._batch(counted)

    def _batch(self, counted: Tally) -> Batch:
        arrays: list[Any] = []
        for encoded in counted.cells.values():
            arrays += [pa.array(encoded.special.view(np.int8)), pa.array(to_longs(encoded.cells))]
        names = [name(column) for column in range(len(counted.cells)) for name in (special, cell)]
        return pa.record_batch([*arrays, pa.array(counted.counts)], names=[*names, "rows"])


@final
@dataclass(frozen=True)
class _BlockSource:
    """A `Source` of one block of rows that Spark has grouped."""

    names: tuple[str, ...]
    table: Any

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Any:
        """The raw values in this block, and how many rows have each."""
        places = {name: f"k{place}" for place, name in enumerate(self.names)}
        columns = [
            pa.chunked_array([widen(chunk, name) for chunk in self.table.column(places[name]).chunks])
            for name in keys
        ]
        return pa.table([*columns, self.table.column("rows")], names=[*keys, "count"])


# Integers become cells by an expression of Spark, since no Python is needed to subtract. The cells are those
# of `Integer.encode`: a number is compared with both bounds, and inside its cell is the distance from the
# lower bound. On the cluster cells are shifted by 2^63, so the difference fits 64 bits at each step.
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
    selected: list[Any] = []
    for number, (name, domain) in enumerate(schema.items()):
        assert isinstance(domain, Integer)
        value = sf.col(raw.keys[raw.names.index(name)]).cast("bigint")
        kind = _kind(value, domain)
        shifted = _shift_cell(value, kind, domain)
        selected += [kind.cast("tinyint").alias(special(number)), shifted.alias(cell(number))]
    return raw.group().select(*selected, "rows")


def _kind(value: Any, domain: Integer) -> Any:
    above = value > min(domain.high, _HIGHEST)
    found = sf.when(value.isNull(), int(Special.NULL)).when(value < domain.low, int(Special.BELOW))
    return found.when(above, int(Special.ABOVE)).otherwise(int(Special.ORDINARY))


def _shift_cell(value: Any, kind: Any, domain: Integer) -> Any:
    """The distance from the lower bound, less 2^63, in steps that stay within 64 bits for values inside."""
    first = domain.low if domain.low >= 0 else domain.low + SHIFT
    below = sf.try_subtract(value, sf.lit(first))
    shifted = sf.try_add(below, sf.lit(-SHIFT)) if domain.low >= 0 else below
    return sf.when(kind == int(Special.ORDINARY), shifted).otherwise(sf.lit(-SHIFT))


def _encode(
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
    grouped = raw.group() if person is None else raw.group_by_person(person, parts=parts)
    worker = EncodingWorker(schema=schema, keys=raw.names, person=person, **facts)
    return cluster.mapped(grouped, worker, columns(len(schema)))


def _store_rows(
    cluster: Cluster, raw: Raw, request: Tally, *, parts: int, person: str | None, **facts: Any
) -> SparkWideTally:
    """The positions of all rows that count; those of one person are encoded, and bounded, together."""
    encoder = RowEncoder(schema=request.schema, keys=raw.names, person=person, **facts)
    rows = raw.frame if person is None else raw.rows_by_person(person, parts=parts)
    packed = PackedRows.of(cluster, rows, encoder)
    return SparkWideTally(request.schema, request.contributions, parts, packed)


@final
@dataclass(eq=False)
class _EmptySource:
    """A source without rows: a tally of it checks the request, and shows which columns it reads."""

    frame: Frame
    found: list[Raw] = field(default_factory=list)

    @property
    def raw(self) -> Raw:
        """The columns that the tally reads."""
        return self.found[-1]

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """No rows, in columns of the right types."""
        self.found.append(Raw.of(self.frame, keys))
        empty = [pa.chunked_array([], kind) for kind in self.raw.kinds]
        return pa.table([*empty, pa.chunked_array([], pa.int64())], names=[*keys, "count"])


# Reports of the local model are counted on the cluster: aggregators add up in any order.
def aggregate(frame: Frame, column: str, question: Question) -> Aggregator[Any]:
    """The aggregator of all reports in a column: integers, or bytes for unary encoding, as devices make them.

    Every row counts. Where a report may have come twice, leave one: `frame.dropDuplicates(["report_id"])`.
    """
    fix = "pass for example Frequency(8, epsilon=1)"
    check(isinstance(question, Question), "question", "must be a question", given=question, fix=fix)
    cluster = Cluster.of(frame)
    reports = number_columns(frame, [column])

    def run() -> list[bytes]:
        parts = cluster.mapped(reports, _ReportCounter(question), _STATE_COLUMNS)
        merged = cluster.mapped(parts.repartition(1), _StateMerger(question), _STATE_COLUMNS)
        return [bytes(row["state"]) for row in merged.collect()]

    rule = "must hold a report to this question in each row"
    fix = "drop what is no report, and check that each executor has partita"
    states = cluster.run(run, failure=SourceError(f"column {column!r}", rule, fix=fix))
    return _merge(question, states)


@final
@dataclass(frozen=True)
class _ReportCounter:
    """A worker that counts the reports of its partition."""

    question: Question

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        aggregator = self.question.aggregator()
        for table in blocks(batches):
            aggregator.add_many(_reports(table.column(0).combine_chunks()))
        yield _state(aggregator)


@final
@dataclass(frozen=True)
class _StateMerger:
    """A worker that merges all aggregators, so that only one comes to the driver."""

    question: Question

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        states = [state for batch in batches for state in batch.column(0).to_pylist()]
        yield _state(_merge(self.question, states))


def _merge(question: Question, states: list[bytes]) -> Aggregator[Any]:
    """One aggregator of all reports; an empty one if there are none."""
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
