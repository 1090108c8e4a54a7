"""Rows in PostgreSQL, grouped there: what comes here is the distinct values and their counts.

The server counts in one read-only transaction that sees one state of the tables, and hands the groups over a
few thousand at a time. Columns are told apart by their declared types, never by what is in them:

    boolean, smallint, integer, bigint, real, double precision, bytea
                    as they are
    numeric         value by value: it may be NaN or infinite, and have any number of digits
    text, varchar, char, citext, enumerations, uuid
                    text, byte by byte, whatever the collation
    date, timestamp, timestamp with time zone
                    days or microseconds; infinite ones lie beyond all domains
    domain types    as what they are made of

Everything else is refused by its type, before a row is read.

Of a wide table the groups of all columns together would be its rows. There the server counts the values of
each column alone, and later the rows in each combination of bins; the bins travel to it. No row leaves it,
unless rows are bounded by person: which of them count is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from types import ModuleType
from typing import Any, Final, TypeAlias, cast, final
from weakref import finalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import InvalidParameter, SourceError, check, check_source
from partita.ledger.postgres import Address
from partita.numbers import Converted, freeze, frozen, integer, parameter
from partita.public.boxes.bins import AxisBins
from partita.trusted.secret import Histogram, PointCounts, Points, Work
from partita.trusted.sources.arrow import (
    PYTHON,
    check_sum,
    from_bytes,
    from_engine,
    python_array,
    to_engine,
    widen,
)
from partita.trusted.sources.base import Table, attempt, check_column_names, locate_columns
from partita.trusted.sources.engine import finish
from partita.trusted.sources.tally import (
    ColumnCounts,
    Limits,
    Tally,
    check_request,
    encode_column,
    find_starts,
    locate_cells,
    match_label,
    tally,
)
from partita.trusted.sources.wide import count_column, is_wide
from partita.trusted.tables import AxisSets, check_sets, split_tables

_TEXTUAL: Final = ("S", "E")
"""The categories of pg_type for text, citext among it, and for enumerations."""

_DAYS: Final = 10_957
_MICROSECONDS: Final = _DAYS * 86_400 * 10**6
"""From 1970, where we count from, to 2000, where PostgreSQL does."""


@final
@dataclass(frozen=True)
class TransferType:
    """How a column travels: grouped by `expression`, where `{}` is the column, and then of type `wide`.

    Days and times come as integers from the first day of 2000, which is their `zero`. In a wide table the
    column is grouped by the expression `plain`, whose values can be sent back in an `array` of this type.
    """

    wide: Any
    expression: str = "{}"
    zero: int = 0
    plain: str = "{}"
    array: str = "int8"

    @property
    def engine(self) -> Any:
        """The type in which the column is sorted."""
        return to_engine(pa.array([], self.wide)).type

    def column(self, values: Sequence[Any]) -> Any:
        """The values that the server has sent, in the `engine` type."""
        if self.wide == PYTHON:
            return to_engine(python_array(list(values)))
        if self.zero:
            return pc.add(pa.array(values, pa.int64()), self.zero)
        return widen(pa.array(values, self.wide), "")

    def decode(self, column: Any) -> Any:
        """A column in the `engine` type as a domain reads it."""
        return pa.table([from_engine(pa.chunked_array([column]), self.wide)], ["values"]).column(0)

    def send(self, column: Any) -> list[Any]:
        """Values of a column in the `engine` type as the server had sent them."""
        listed = column.to_pylist()
        if self.wide == PYTHON:
            return [from_bytes(value) for value in listed]
        return [value - self.zero for value in listed] if self.zero else listed


def register_loaders(psycopg: ModuleType, connection: Any) -> None:
    """Read text as bytes, and days and times as integers: those of Python end with the year 9999."""

    class Raw(psycopg.adapt.Loader):  # type: ignore[misc, name-defined]
        format = psycopg.pq.Format.BINARY

        def load(self, data: Any) -> bytes:
            return bytes(data)

    class Whole(psycopg.adapt.Loader):  # type: ignore[misc, name-defined]
        format = psycopg.pq.Format.BINARY

        def load(self, data: Any) -> int:
            return int.from_bytes(data, "big", signed=True)

    connection.adapters.register_loader("text", Raw)
    for name in ("date", "timestamp", "timestamptz"):
        connection.adapters.register_loader(name, Whole)


def _finite(kind: str, first: str, last: str) -> str:
    """A column in which infinite values, and those beyond Arrow's range, are moved to the edge."""
    return (
        f"CASE WHEN {{0}} > '{last}'::{kind} THEN '{last}'::{kind} "
        f"WHEN {{0}} < '{first}'::{kind} THEN '{first}'::{kind} ELSE {{0}} END"
    )


def _timed(kind: str, zone: str | None) -> TransferType:
    edges = _finite(kind, "4713-01-02 00:00:00 BC", "290000-01-01 00:00:00")
    since = f"(extract(epoch FROM {edges}) * 1000000)::int8 - {_MICROSECONDS}"
    return TransferType(pa.timestamp("us", zone), edges, _MICROSECONDS, since)


def _dated() -> TransferType:
    edges = _finite("date", "4713-01-02 BC", "5874897-12-31")
    return TransferType(pa.date32(), edges, _DAYS, f"(({edges}) - '2000-01-01'::date)::int8")


_TEXT: Final = TransferType(pa.large_binary(), '{}::text COLLATE "C"', 0, "textsend({}::text)", "bytea")
_WHOLE: Final = TransferType(pa.int64(), plain="{}::int8")
_REAL: Final = TransferType(pa.float64(), "{}::float8", 0, "{}::float8", "float8")

_TYPES: Final = {
    16: TransferType(pa.bool_(), array="bool"),
    17: TransferType(pa.large_binary(), array="bytea"),
    20: _WHOLE,
    21: _WHOLE,
    23: _WHOLE,
    700: _REAL,
    701: _REAL,
    1700: TransferType(PYTHON, "trim_scale({})", 0, "trim_scale({})", "numeric"),
    1082: _dated(),
    1114: _timed("timestamp", None),
    1184: _timed("timestamptz", "UTC"),
    2950: _TEXT,
}
"""By the object id of the type, which is the same in every PostgreSQL."""

Opening: TypeAlias = Callable[[], Any]

_BATCH: Final = 10_000  # groups fetched at a time: memory against round trips
_LONGEST_WAIT: Final = 30 * 86_400
_ENCODING: Final = "SET LOCAL client_encoding = 'UTF8'"
_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_PATIENCE: Final = "SET LOCAL idle_in_transaction_session_timeout = 0"
_MEMORY: Final = "SET LOCAL work_mem = '256MB'"  # the bins of 10^6 rows in 40 columns take about 200 MB
_COMPILE: Final = "SET LOCAL jit = off"  # a guard against compiling hundreds of short parts; not measured
_MOST_SETS: Final = 1000  # keys in one query, whose text must be parsed: 780 are all pairs of 40 columns
_CATEGORIES: Final = "SELECT oid, typcategory FROM pg_type WHERE oid = ANY(%s)"


@final
@frozen(repr=False)
class Postgres:
    """The rows of a table, or of a query, in PostgreSQL: a `Source`.

    `address` is one like "postgresql://user@host/database", or a function that opens a psycopg connection.
    A `table` may be named with its schema, as in "hospital.visits". `timeout` says for how many seconds the
    server may work on one count. Rows are counted anew for each view of a release, each time in one state
    of the tables.

    >>> Postgres("postgresql://reader:hunter2@db.example.org/hospital", table="visits")
    Postgres('postgresql://db.example.org/hospital', secret)
    """

    address: Converted[str | Opening, Address | Opening] = parameter()
    _: KW_ONLY
    table: str | None = None
    query: str | None = None
    timeout: int | None = None

    def __post_init__(self) -> None:
        _check_rows(self.table, self.query)
        if self.timeout is not None:
            integer(self.timeout, "timeout", low=1, high=_LONGEST_WAIT)
        if not callable(self.address):
            freeze(self, address=Address(cast(str, self.address)))

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """Exact counts of distinct raw values; see `Source.counts`."""
        keys, sums = check_column_names(keys, "keys"), check_column_names(sums, "sums")
        check(keys, "keys", "must name a column", given=keys, fix='pass for example ["age"]')
        with closing(self.snapshot()) as snapshot:
            return snapshot.counts(keys, sums)

    def tally(
        self,
        schema: Mapping[str, Domain],
        by: Sequence[str] | None = None,
        *,
        person: str | None = None,
        contributions: Limits = 1,
        salt: str = "",
        where: tuple[str, str] | None = None,
    ) -> Tally | PostgresTally:
        """Count cells as `sources.tally` does; the rows of a wide table stay on the server.

        With `person` the rows come here, since the rule that bounds them is applied here.
        """
        facts: dict[str, Any] = {"person": person, "contributions": contributions, "where": where}
        if person is not None or not is_wide(schema, by):
            return tally(self, schema, by, salt=salt, **facts)
        names, _, _ = check_request(schema, by, **facts)
        return PostgresTally.of(self.snapshot(), {name: schema[name] for name in names}, where)

    def snapshot(self) -> Snapshot:
        """One state of the tables, which nothing here can change."""
        psycopg = _library()
        return Snapshot(self, psycopg, attempt(lambda: self._connect(psycopg), _unreachable()))

    def __repr__(self) -> str:
        shown = repr(str(self.address)) if isinstance(self.address, Address) else "a function"
        return f"Postgres({shown}, secret)"

    def _connect(self, psycopg: ModuleType) -> Any:
        if isinstance(self.address, Address):
            connection = psycopg.connect(self.address.secret)
        else:
            connection = self.address()
        connection.autocommit = True
        connection.execute(_BEGIN)
        connection.execute(_ENCODING)
        connection.execute(_PATIENCE)
        if self.timeout is not None:
            connection.execute(f"SET LOCAL statement_timeout = '{self.timeout}s'")
        register_loaders(psycopg, connection)
        return connection

    def rows(self, psycopg: ModuleType) -> Any:
        """The table, or the query as one; a line of its own ends a comment at the end of the query."""
        sql = psycopg.sql
        if self.table is not None:
            return sql.SQL("{} AS source").format(sql.Identifier(*self.table.split(".")))
        return sql.SQL("({}\n) AS source").format(sql.SQL(str(self.query).rstrip("; \t\r\n")))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """A `Source` of one state of the tables, in one transaction; closed with the last reference to it."""

    source: Postgres
    psycopg: ModuleType
    connection: Any

    def __post_init__(self) -> None:
        finalize(self, self.connection.close)

    def close(self) -> None:
        """End the transaction."""
        self.connection.close()

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """Exact counts of distinct raw values; see `Source.counts`."""
        types = self.find_types([*keys, *sums])
        for kind, name in zip(types[len(keys) :], sums, strict=True):
            check_sum(kind.wide, name)
        wanted = types[: len(keys)]
        query = self._write_query(wanted, keys, sums)
        groups = attempt(lambda: _fetch_groups(self.connection, query, wanted, len(sums)), _uncountable())
        return finish(groups, [kind.wide for kind in wanted], keys, sums)

    def find_types(self, names: Sequence[str]) -> list[TransferType]:
        """How each column travels, by its declared type; a type without a single value is refused."""
        empty = self.psycopg.sql.SQL("SELECT * FROM {} LIMIT 0").format(self.source.rows(self.psycopg))
        columns = attempt(lambda: self.connection.execute(empty).description, _misunderstood())
        found = [columns[place] for place in locate_columns(names, [column.name for column in columns])]
        codes = [column.type_code for column in found]
        categories = attempt(
            lambda: dict(self.connection.execute(_CATEGORIES, (codes,)).fetchall()), _unreachable()
        )
        rule = "must hold numbers, text, dates or times, and not another type of PostgreSQL's"
        fix = "choose another column, or cast it in a query"
        for code, name in zip(codes, names, strict=True):
            known = code in _TYPES or categories.get(code) in _TEXTUAL
            check_source(known, f"column {name!r}", rule, fix=fix)
        return [_TYPES.get(code, _TEXT) for code in codes]

    def _write_query(self, kinds: Sequence[TransferType], keys: Sequence[str], sums: Sequence[str]) -> Any:
        """The one query that the server runs."""
        sql = self.psycopg.sql
        grouped = [
            sql.SQL(kind.expression).format(sql.Identifier(name))
            for kind, name in zip(kinds, keys, strict=True)
        ]
        totals = [sql.SQL("coalesce(sum({}), 0)::numeric").format(sql.Identifier(name)) for name in sums]
        return sql.SQL("SELECT {columns} FROM {rows} GROUP BY {places}").format(
            columns=sql.SQL(", ").join([*grouped, sql.SQL("count(*)"), *totals]),
            rows=self.source.rows(self.psycopg),
            places=sql.SQL(", ").join([sql.SQL(str(place + 1)) for place in range(len(keys))]),
        )

    def line(self, name: str, kind: TransferType, condition: Any) -> Table:
        """The distinct values of one column in the order of the server, null last, and their counts."""
        sql = self.psycopg.sql
        query = sql.SQL(
            "SELECT {value}, count(*) FROM {rows} WHERE {condition} GROUP BY 1 ORDER BY 1"
        ).format(value=self.plain(name, kind), rows=self.source.rows(self.psycopg), condition=condition)
        return attempt(lambda: _fetch_groups(self.connection, query, [kind], 0), _uncountable())

    def plain(self, name: str, kind: TransferType) -> Any:
        """A column as its values can be sent back."""
        sql = self.psycopg.sql
        return sql.SQL(kind.plain).format(sql.Identifier(name))

    def array(self, kind: TransferType, values: list[Any]) -> Any:
        """Values of such a column in a query."""
        sql = self.psycopg.sql
        return sql.SQL("{}::{}[]").format(sql.Literal(values), sql.SQL(kind.array))

    def key_counts(
        self, columns: Sequence[Any], keys: Sequence[Any], condition: Any
    ) -> list[tuple[int, int]]:
        """How many rows have each of several keys, which are expressions of b0, b1, ...: these columns.

        The server computes the columns once, holds them in its memory, and groups them by each key. Grouping
        sets would read them once, but take time as the square of their number.
        """
        sql = self.psycopg.sql
        named = [sql.SQL("{} AS {}").format(each, sql.Identifier(f"b{i}")) for i, each in enumerate(columns)]
        each = [sql.SQL("SELECT {}, count(*) FROM binned GROUP BY 1").format(key) for key in keys]
        query = sql.SQL(
            "WITH binned AS MATERIALIZED (SELECT {columns} FROM {rows} WHERE {condition}) {counts}"
        ).format(
            columns=sql.SQL(", ").join(named),
            rows=self.source.rows(self.psycopg),
            condition=condition,
            counts=sql.SQL(" UNION ALL ").join(each),
        )

        def run() -> list[tuple[int, int]]:
            self.connection.execute(_MEMORY)
            self.connection.execute(_COMPILE)
            return list(self.connection.execute(query, binary=True).fetchall())

        return attempt(run, _uncountable())


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Line:
    """One column of a wide table: runs of values in the order of the server that are at one position.

    `firsts` holds the first value of each run, in the `engine` type; `positions` and `counts` have one entry
    more, for null.
    """

    name: str
    domain: Domain
    kind: TransferType
    firsts: Any
    positions: UInts
    counts: Ints

    @staticmethod
    def of(snapshot: Snapshot, name: str, domain: Domain, kind: TransferType, condition: Any) -> _Line:
        """The values of a column, encoded here; the server says how many rows have each."""
        table = snapshot.line(name, kind, condition).combine_chunks()
        values, counts = table.column(0), table.column(1).to_numpy()
        null = values.is_null().to_numpy()
        there = values.drop_null().combine_chunks()
        positions = locate_cells(domain, encode_column(domain, kind.decode(there), alone=True))
        first = find_starts([positions])
        added = np.add.reduceat(counts[~null], first) if first.size else counts[:0]
        return _Line(
            name,
            domain,
            kind,
            there.take(pa.array(first)),
            np.append(positions[first], np.uint64(Axis.specials(domain)["null"])),
            np.append(added, counts[null].sum()),
        )

    @property
    def total(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    def alone(self) -> Points:
        """The rows along the axis."""
        axes = [Axis.of(self.domain)]
        return Points.from_rows(self.positions[:, None], axes=axes, counts=self.counts)

    def bins(self, snapshot: Snapshot, bins: AxisBins) -> Any:
        """The bin of each row, as the server finds it: the last run that starts at or before its value."""
        sql, found = snapshot.psycopg.sql, bins.of(self.positions)
        first = find_starts([found[:-1]])
        return sql.SQL("coalesce(({codes}::int4[])[width_bucket({value}, {firsts})], {null})").format(
            codes=sql.Literal(found[first].tolist()),
            value=snapshot.plain(self.name, self.kind),
            firsts=snapshot.array(self.kind, self.kind.send(self.firsts.take(pa.array(first)))),
            null=sql.Literal(int(found[-1])),
        )


@final
@dataclass(frozen=True, eq=False, repr=False)
class PostgresTally:
    """The counterpart of `Tally` for wide tables: each column alone is here, and the rows are there."""

    schema: Mapping[str, Domain]
    snapshot: Snapshot
    condition: Any
    lines: Mapping[str, _Line]
    where: tuple[str, str] | None
    contributions: int = 1

    @staticmethod
    def of(snapshot: Snapshot, schema: Mapping[str, Domain], where: tuple[str, str] | None) -> PostgresTally:
        """Count the values of every column in one state of the tables."""
        names = [*schema, *([] if where is None else [where[0]])]
        kinds = dict(zip(names, snapshot.find_types(names), strict=True))
        condition = snapshot.psycopg.sql.SQL("true")
        if where is not None:
            condition = _write_condition(snapshot, kinds[where[0]], *where)
        lines = {
            name: _Line.of(snapshot, name, domain, kinds[name], condition) for name, domain in schema.items()
        }
        return PostgresTally(schema, snapshot, condition, lines, where)

    def column(self, name: str) -> ColumnCounts:
        """The counts of one column by itself."""
        locate_columns([name], list(self.lines))
        return count_column(self.schema[name], self.lines[name].alone())

    def points(self, names: Sequence[str]) -> PostgresPoints:
        """Several columns together."""
        locate_columns(names, list(self.lines))
        axes = tuple(Axis.of(self.schema[name]) for name in names)
        return PostgresPoints(axes, self, tuple(self.lines[name] for name in names))

    def __repr__(self) -> str:
        return f"PostgresTally({list(self.lines)}, secret)"


def _write_condition(snapshot: Snapshot, kind: TransferType, name: str, label: str) -> Any:
    """Which rows are of a part: those with a value that a `Category` takes for its label."""
    sql = snapshot.psycopg.sql
    values = snapshot.line(name, kind, sql.SQL("true")).column(0).drop_null().combine_chunks()
    matching = values.filter(match_label(label, kind.decode(values)))
    return sql.SQL("{} = ANY({})").format(
        snapshot.plain(name, kind), snapshot.array(kind, kind.send(matching))
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class PostgresPoints(PointCounts):
    """Rows of a wide table, on the server."""

    axes: tuple[Axis, ...]
    tally: PostgresTally
    lines: tuple[_Line, ...]
    contributions: int = 1

    @property
    def total(self) -> int:
        """The number of rows."""
        return self.lines[0].total

    def alone(self, axis: int) -> Points:
        """Counted already."""
        return self.lines[axis].alone()

    def along(self, axis: int) -> Histogram:
        """Counted already."""
        return self.alone(axis).along(0)

    def tables(self, sets: AxisSets, bins: Sequence[AxisBins]) -> list[Ints]:
        """The exact number of rows in each combination of bins; see `PointCounts.tables`.

        The server counts the combinations of several axes.
        """
        check_sets(sets, bins, self.axes)
        several = sorted({tuple(sorted(chosen)) for chosen in sets if len(chosen) > 1})
        found = dict(zip(several, self._count(several, bins), strict=True))
        for axis, each in enumerate(bins):
            alone = self.lines[axis]
            table = np.zeros(each.number, np.int64)
            np.add.at(table, each.of(alone.positions), alone.counts)
            found[(axis,)] = table
        return [_order_axes(found[tuple(sorted(chosen))], chosen) for chosen in sets]

    def _count(self, sets: Sequence[tuple[int, ...]], bins: Sequence[AxisBins]) -> list[Ints]:
        """The tables of sets of ascending axes."""
        parts = (sets[start : start + _MOST_SETS] for start in range(0, len(sets), _MOST_SETS))
        tables = [table for part in parts for table in self._count_part(part, bins)]
        rule, fix = "must stay as they are while they are counted", "take out what is random in the query"
        same = all(int(table.sum()) == self.total for table in tables)
        check_source(same, "the rows", rule, fix=fix)
        return tables

    def _count_part(self, sets: Sequence[tuple[int, ...]], bins: Sequence[AxisBins]) -> list[Ints]:
        snapshot = self.tally.snapshot
        axes = sorted({axis for chosen in sets for axis in chosen})
        columns = [self.lines[axis].bins(snapshot, bins[axis]) for axis in axes]
        shapes = [tuple(bins[axis].number for axis in chosen) for chosen in sets]
        starts = np.cumsum([0, *map(math.prod, shapes)]).tolist()
        keys = []
        for chosen, start in zip(sets, starts, strict=False):
            text = "0"
            for axis in chosen:
                text = f"({text}) * {bins[axis].number} + b{axes.index(axis)}"
            keys.append(snapshot.psycopg.sql.SQL(f"{start} + {text}"))
        counted = np.zeros(starts[-1], np.int64)
        rows = np.array(snapshot.key_counts(columns, keys, self.tally.condition), np.int64).reshape(-1, 2)
        counted[rows[:, 0]] = rows[:, 1]
        return split_tables(counted, shapes)

    def folded(self, work: Work) -> NDArray[Any]:
        """All rows come here and are grouped: `tables`, `alone` and `along` do without."""
        return self.gathered().folded(work)

    def gathered(self) -> Points:
        """All rows, from the same state of the tables."""
        names = [line.name for line in self.lines]
        return tally(self.tally.snapshot, self.tally.schema, names, where=self.tally.where).points(names)

    def __repr__(self) -> str:
        return f"PostgresPoints({len(self.axes)} axes, secret)"


def _order_axes(table: Ints, chosen: tuple[int, ...]) -> Ints:
    """A table of ascending axes with its dimensions in the order of a set."""
    ascending = sorted(chosen)
    return table.transpose([ascending.index(axis) for axis in chosen])


def _fetch_groups(connection: Any, query: Any, kinds: Sequence[TransferType], sums: int) -> Table:
    """The groups, from a cursor on the server."""
    types = [*(kind.engine for kind in kinds), pa.int64(), *[pa.decimal128(38, 0)] * sums]
    schema = pa.schema([(str(place), kind) for place, kind in enumerate(types)])
    return pa.Table.from_batches(_fetch_batches(connection, query, kinds, schema), schema)


def _fetch_batches(connection: Any, query: Any, kinds: Sequence[TransferType], schema: Any) -> Iterator[Any]:
    with connection.cursor(name="partita") as cursor:
        cursor.execute(query, binary=True)
        while rows := cursor.fetchmany(_BATCH):
            columns = list(zip(*rows, strict=True))
            keys = [kind.column(values) for kind, values in zip(kinds, columns, strict=False)]
            numbers = zip(columns[len(kinds) :], schema.types[len(kinds) :], strict=True)
            yield pa.record_batch([*keys, *(pa.array(*each) for each in numbers)], schema=schema)


def _check_rows(table: object, query: object) -> None:
    given = table if query is None else query
    if (table is None) == (query is None) or not isinstance(given, str) or not given.strip(" ;.\n"):
        rule = "or query must say where the rows are, one of them"
        fix = 'pass table="visits" or query="SELECT age FROM visits"'
        raise InvalidParameter("table", rule, given=None if given is None else type(given).__name__, fix=fix)


def _library() -> Any:
    try:
        import psycopg
        import psycopg.sql
    except ImportError:
        fix = 'install it: pip install "partita[postgres]"'
        raise SourceError("a Postgres source", "needs psycopg", fix=fix) from None
    return psycopg


def _unreachable() -> SourceError:
    fix = "check host, database, user and password, and that the server is running"
    return SourceError("the database", "cannot be reached", fix=fix)


def _misunderstood() -> SourceError:
    rule = "is none that the server understands and lets this user read"
    return SourceError("the table or query", rule, fix="try it in psql, as the same user")


def _uncountable() -> SourceError:
    fix = "try the query in psql; it may fail on some row, take longer than its timeout, or need more room"
    return SourceError("the rows", "could not be counted by the server", fix=fix)
