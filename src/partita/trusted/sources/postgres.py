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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass
from types import ModuleType
from typing import Any, Final, TypeAlias, cast, final

import pyarrow as pa
import pyarrow.compute as pc

from partita.errors import InvalidParameter, SourceError, check, check_source
from partita.ledger.postgres import Address
from partita.numbers import Converted, freeze, frozen, integer, parameter
from partita.trusted.sources.arrow import PYTHON, check_sum, python_array, to_engine, widen
from partita.trusted.sources.base import Table, attempt, check_column_names, locate_columns
from partita.trusted.sources.engine import finish

_TEXTUAL: Final = ("S", "E")
"""The categories of pg_type for text, citext among it, and for enumerations."""

_DAYS: Final = 10_957
_MICROSECONDS: Final = _DAYS * 86_400 * 10**6
"""From 1970, where we count from, to 2000, where PostgreSQL does."""


@final
@dataclass(frozen=True)
class TransferType:
    """How a column travels: grouped by `expression`, where `{}` is the column, and then of type `wide`.

    Days and times come as integers from the first day of 2000, which is their `zero`.
    """

    wide: Any
    expression: str = "{}"
    zero: int = 0

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
    return TransferType(pa.timestamp("us", zone), edges, _MICROSECONDS)


_TEXT: Final = TransferType(pa.large_binary(), '{}::text COLLATE "C"')

_TYPES: Final = {
    16: TransferType(pa.bool_()),
    17: TransferType(pa.large_binary()),
    20: TransferType(pa.int64()),
    21: TransferType(pa.int64()),
    23: TransferType(pa.int64()),
    700: TransferType(pa.float64(), "{}::float8"),
    701: TransferType(pa.float64()),
    1700: TransferType(PYTHON, "trim_scale({})"),
    1082: TransferType(pa.date32(), _finite("date", "4713-01-02 BC", "5874897-12-31"), _DAYS),
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
        psycopg = _library()
        with self._transaction(psycopg) as connection:
            types = self._find_types(psycopg, connection, [*keys, *sums])
            for kind, name in zip(types[len(keys) :], sums, strict=True):
                check_sum(kind.wide, name)
            wanted = types[: len(keys)]
            query = self._write_query(psycopg, wanted, keys, sums)
            groups = attempt(lambda: _fetch_groups(connection, query, wanted, len(sums)), _uncountable())
        return finish(groups, [kind.wide for kind in wanted], keys, sums)

    def __repr__(self) -> str:
        shown = repr(str(self.address)) if isinstance(self.address, Address) else "a function"
        return f"Postgres({shown}, secret)"

    @contextmanager
    def _transaction(self, psycopg: ModuleType) -> Iterator[Any]:
        """One state of the tables, which nothing here can change."""
        with closing(attempt(lambda: self._connect(psycopg), _unreachable())) as connection:
            yield connection

    def _connect(self, psycopg: ModuleType) -> Any:
        if isinstance(self.address, Address):
            connection = psycopg.connect(self.address.secret)
        else:
            connection = self.address()
        connection.autocommit = True
        connection.execute(_BEGIN)
        connection.execute(_ENCODING)
        if self.timeout is not None:
            connection.execute(f"SET LOCAL statement_timeout = '{self.timeout}s'")
        register_loaders(psycopg, connection)
        return connection

    def _find_types(self, psycopg: ModuleType, connection: Any, names: Sequence[str]) -> list[TransferType]:
        """How each column travels, by its declared type; a type without a single value is refused."""
        empty = psycopg.sql.SQL("SELECT * FROM {} LIMIT 0").format(self._rows(psycopg))
        columns = attempt(lambda: connection.execute(empty).description, _misunderstood())
        found = [columns[place] for place in locate_columns(names, [column.name for column in columns])]
        codes = [column.type_code for column in found]
        categories = attempt(
            lambda: dict(connection.execute(_CATEGORIES, (codes,)).fetchall()), _unreachable()
        )
        rule = "must hold numbers, text, dates or times, and not another type of PostgreSQL's"
        fix = "choose another column, or cast it in a query"
        for code, name in zip(codes, names, strict=True):
            known = code in _TYPES or categories.get(code) in _TEXTUAL
            check_source(known, f"column {name!r}", rule, fix=fix)
        return [_TYPES.get(code, _TEXT) for code in codes]

    def _write_query(
        self, psycopg: ModuleType, kinds: Sequence[TransferType], keys: Sequence[str], sums: Sequence[str]
    ) -> Any:
        """The one query that the server runs."""
        sql = psycopg.sql
        grouped = [
            sql.SQL(kind.expression).format(sql.Identifier(name))
            for kind, name in zip(kinds, keys, strict=True)
        ]
        totals = [sql.SQL("coalesce(sum({}), 0)::numeric").format(sql.Identifier(name)) for name in sums]
        return sql.SQL("SELECT {columns} FROM {rows} GROUP BY {places}").format(
            columns=sql.SQL(", ").join([*grouped, sql.SQL("count(*)"), *totals]),
            rows=self._rows(psycopg),
            places=sql.SQL(", ").join([sql.SQL(str(place + 1)) for place in range(len(keys))]),
        )

    def _rows(self, psycopg: ModuleType) -> Any:
        """The table, or the query as one; a line of its own ends a comment at the end of the query."""
        sql = psycopg.sql
        if self.table is not None:
            return sql.SQL("{} AS source").format(sql.Identifier(*self.table.split(".")))
        return sql.SQL("({}\n) AS source").format(sql.SQL(str(self.query).rstrip("; \t\r\n")))


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
