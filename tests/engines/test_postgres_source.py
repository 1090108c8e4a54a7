"""Rows in PostgreSQL: counted by the server, by declared types, and nothing of them shown."""

from __future__ import annotations

import datetime
import logging
import sys
import traceback
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from partita.domain import Category, Date, Domain, Integer, Real, Timestamp
from partita.errors import InvalidParameter, SourceError
from partita.public.boxes.bins import AxisBins
from partita.publish.publish import publish
from partita.trusted.sources.arrow import PYTHON
from partita.trusted.sources.open import open_source
from partita.trusted.sources.postgres import Postgres, PostgresPoints, Snapshot
from partita.trusted.sources.tally import Tally, tally
from tests.engines.postgres_server import PASSWORD, PostgresServer

CANARY = "CANARY-93ab"
ADDRESS = f"postgresql://reader:{CANARY}@db.example.org/hospital"


# --- without a server -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows", [{}, {"table": "a", "query": "SELECT 1"}, {"table": ""}, {"query": " ; "}, {"table": 7}]
)
def test_a_source_is_a_table_or_a_query(rows: dict[str, Any]) -> None:
    """One of the two, as text."""
    with pytest.raises(InvalidParameter, match="table or query must say where the rows are"):
        Postgres(ADDRESS, **rows)


@pytest.mark.parametrize("address", [7, None, "visits.parquet", f"reader:{CANARY}@db.example.org/hospital"])
def test_a_source_is_at_an_address(address: Any) -> None:
    """What is none is refused unseen."""
    with pytest.raises(InvalidParameter, match="must be an address like postgresql://") as refusal:
        Postgres(address, table="visits")
    assert CANARY not in str(refusal.value)


@pytest.mark.parametrize("timeout", [0, -1, "1s", 10**9])
def test_a_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    """From one second to thirty days."""
    with pytest.raises(InvalidParameter, match="timeout"):
        Postgres(ADDRESS, table="visits", timeout=timeout)


def test_printing_a_source_shows_host_and_database() -> None:
    """No password, no query, and no row."""
    source = Postgres(ADDRESS, query=f"SELECT '{CANARY}'")

    assert repr(source) == "Postgres('postgresql://db.example.org/hospital', secret)"
    assert repr(Postgres(lambda: None, table="visits")) == "Postgres(a function, secret)"


def test_without_the_driver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver comes with an extra."""
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(SourceError, match=r'needs psycopg; install it: pip install "partita\[postgres\]"'):
        Postgres(ADDRESS, table="visits").counts(["age"])


# --- with a server ----------------------------------------------------------------------------


@pytest.fixture
def server(postgres_server: PostgresServer) -> PostgresServer:
    postgres_server.run("DROP SCHEMA IF EXISTS hospital CASCADE", "CREATE SCHEMA hospital")
    return postgres_server


def column(server: PostgresServer, kind: str, *values: str) -> Postgres:
    """A source of one column `x` of some type, with these values as SQL writes them."""
    rows = ", ".join(f"(({value})::{kind})" for value in values)
    server.run(f"CREATE TABLE hospital.visits (x {kind})", f"INSERT INTO hospital.visits VALUES {rows}")
    return Postgres(server.address(), table="hospital.visits")


INFINITY, NAN = float("inf"), float("nan")
UTC_NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
NOON = datetime.datetime(2024, 1, 1, 12)
UUID = "00000000-0000-0000-0000-00000000000a"
DAY = datetime.date(2024, 1, 1)


@pytest.mark.engines
@pytest.mark.parametrize(
    ("kind", "values", "arrow", "found"),
    [
        ("smallint", ["1", "null"], pa.int64(), [1, None]),
        ("bigint", ["-9223372036854775808"], pa.int64(), [-(2**63)]),
        ("boolean", ["true", "false", "true"], pa.bool_(), [False, True]),
        ("real", ["0.5", "'-0'", "0"], pa.float64(), [0.0, 0.5]),
        (
            "double precision",
            ["'NaN'", "'-0'", "0", "'-infinity'"],
            pa.float64(),
            [-INFINITY, 0.0, NAN],
        ),
        ("numeric", ["1.50", "1.5", "1e40"], PYTHON, [Decimal("1.5"), Decimal(10) ** 40]),
        ("numeric(6, 2)", ["1.5", "'NaN'", "2"], PYTHON, [Decimal("1.5"), Decimal(2), Decimal("NaN")]),
        ("text", ["'b'", "'a'", "''", "null"], pa.large_binary(), [b"", b"a", b"b", None]),
        ("varchar(9)", ["'é'"], pa.large_binary(), ["é".encode()]),
        ("char(4)", ["'a'", "'a  '"], pa.large_binary(), [b"a"]),
        ("bytea", [r"'\x00ff'"], pa.large_binary(), [b"\x00\xff"]),
        ("uuid", [f"'{UUID}'"], pa.large_binary(), [UUID.encode()]),
        ("date", ["'2024-01-01'", "null"], pa.date32(), [DAY, None]),
        ("timestamp", ["'2024-01-01 12:00'"], pa.timestamp("us"), [NOON]),
        ("timestamptz", ["'2024-01-01 14:00+02'"], pa.timestamp("us", "UTC"), [UTC_NOON]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_type_becomes_one_of_those_that_sources_promise(
    server: PostgresServer, kind: str, values: list[str], arrow: Any, found: list[Any]
) -> None:
    """By its declaration, whatever is in the column; equal values are one, and rows ascend."""
    counted = column(server, kind, *values).counts(["x"])

    assert counted.schema.names == ["x", "count"]
    assert counted.schema.field("x").type == arrow
    assert all(map(same, counted["x"].to_pylist(), found))
    assert (counted.num_rows, sum(counted["count"].to_pylist())) == (len(found), len(values))


def same(value: Any, other: Any) -> bool:
    """Whether two values are equal, or both NaN."""
    return bool(value == other or (value != value and other != other))


@pytest.mark.engines
@pytest.mark.parametrize(
    ("kind", "domain"),
    [
        ("date", Date("1900-01-01", "2100-01-01")),
        ("timestamp", Timestamp("1900-01-01", "2100-01-01", "1h")),
        ("timestamptz", Timestamp("1900-01-01", "2100-01-01", "1h")),
        ("numeric", Real(0, 1, step=1)),
        ("double precision", Real(0, 1, step=1)),
    ],
)
def test_what_is_infinite_lies_beyond_every_domain(server: PostgresServer, kind: str, domain: Domain) -> None:
    """As the far past and the far future do, which Python cannot hold."""
    counted = tally(open_source(column(server, kind, "'infinity'", "'-infinity'")), {"x": domain})

    assert {name: n for name, n in counted.column("x").specials.items() if n} == {"below": 1, "above": 1}


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_the_far_past_and_future_are_read(server: PostgresServer, kind: str) -> None:
    """From 4713 BC to years of six digits."""
    last = "'5874897-12-31'" if kind == "date" else "'294276-12-31 23:59:59.999999'"
    domain = {"x": Date("1900-01-01", "2100-01-01")}
    counted = tally(open_source(column(server, kind, "'4713-01-01 BC'", last)), domain)

    assert {name: n for name, n in counted.column("x").specials.items() if n} == {"below": 1, "above": 1}


@pytest.mark.engines
def test_types_that_a_database_declares_are_read(server: PostgresServer) -> None:
    """Enumerations are text, and a domain type is what it is made of."""
    server.run(
        "CREATE TYPE hospital.mood AS ENUM ('sad', 'fine')",
        "CREATE DOMAIN hospital.age AS integer CHECK (VALUE >= 0)",
        "CREATE TABLE hospital.visits (mood hospital.mood, age hospital.age)",
        "INSERT INTO hospital.visits VALUES ('fine', 30), ('fine', 30), ('sad', null)",
    )
    counted = Postgres(server.address(), table="hospital.visits").counts(["mood", "age"])

    assert counted.to_pydict() == {"mood": [b"fine", b"sad"], "age": [30, None], "count": [2, 1]}


@pytest.mark.engines
def test_a_collation_that_ignores_case_joins_no_rows(server: PostgresServer) -> None:
    """Text is compared byte by byte: otherwise the order of rows would say what is counted."""
    server.run(
        "CREATE COLLATION hospital.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE hospital.visits (x text COLLATE hospital.loose)",
        "INSERT INTO hospital.visits VALUES ('a'), ('A'), ('a')",
    )

    counted = Postgres(server.address(), table="hospital.visits").counts(["x"])
    assert counted.to_pydict() == {"x": [b"A", b"a"], "count": [1, 2]}


@pytest.mark.engines
def test_text_is_read_whatever_the_encoding_of_the_database(server: PostgresServer) -> None:
    """Nothing that Latin-1 writes in one byte is taken for other text, also if the connection is given."""
    import psycopg

    address = server.database("latin", encoding="LATIN1")
    query = "SELECT chr(255) AS x UNION ALL SELECT 'Orl' || chr(233) || 'ans'"
    for place in (address, lambda: psycopg.connect(address, client_encoding="latin1")):
        counted = Postgres(place, query=query).counts(["x"])
        assert counted["x"].to_pylist() == ["Orléans".encode(), "ÿ".encode()]


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["integer[]", "jsonb", "interval", "time", "point", "int4range", "money"])
def test_what_is_no_single_value_is_refused(server: PostgresServer, kind: str) -> None:
    """By the name of its column, before a row is read."""
    with pytest.raises(SourceError, match="column 'x' must hold numbers, text, dates or times"):
        column(server, kind, "null").counts(["x"])


@pytest.mark.engines
def test_a_query_is_taken_as_it_is_written(server: PostgresServer) -> None:
    """With joins, percent signs, a comment and a semicolon at its end, and columns of any name."""
    query = """
        SELECT n % 2 AS "odd ""%s"" one", 'x%' || n AS "Word" FROM generate_series(1, 4) AS n -- all of them;
    """
    counted = Postgres(server.address(), query=query).counts(['odd "%s" one'])

    assert counted.to_pydict() == {'odd "%s" one': [0, 1], "count": [2, 2]}


@pytest.mark.engines
def test_sums_are_exact_beyond_64_bits(server: PostgresServer) -> None:
    """Sums of integers do not wrap, nulls are left out, and floats are refused."""
    large = 2**63 - 1
    rows = f"(VALUES ({large}), ({large}), (null)) AS v (x)"
    query = f"SELECT 'k' AS k, x::bigint, 0.5::float8 AS y FROM {rows}"
    source = Postgres(server.address(), query=query)

    assert source.counts(["k"], ["x"]).to_pydict() == {
        "k": [b"k"],
        "count": [3],
        "sum of x": [Decimal(2**64 - 2)],
    }
    with pytest.raises(SourceError, match="must hold integers to be added up"):
        source.counts(["k"], ["y"])


@pytest.mark.engines
def test_many_groups_come_in_batches(server: PostgresServer) -> None:
    """More than one cursor fetch, all of them there, in order."""
    counted = Postgres(server.address(), query="SELECT n FROM generate_series(1, 25000) AS n").counts(["n"])

    assert counted["n"].to_pylist() == list(range(1, 25_001))


@pytest.mark.engines
def test_a_function_may_open_the_connection(server: PostgresServer) -> None:
    """For whoever has certificates, tokens or a pool; it is closed in the end."""
    import psycopg

    opened: list[Any] = []

    def opening() -> Any:
        opened.append(psycopg.connect(server.address()))
        return opened[-1]

    assert Postgres(opening, query="SELECT 1 AS x").counts(["x"]).num_rows == 1
    assert [connection.closed for connection in opened] == [True]


@pytest.mark.engines
def test_counting_changes_nothing(server: PostgresServer) -> None:
    """Whatever a query calls, the transaction only reads."""
    server.run(
        "CREATE TABLE hospital.log (x int)",
        "CREATE FUNCTION hospital.note() RETURNS int LANGUAGE sql AS "
        "'INSERT INTO hospital.log VALUES (1) RETURNING x'",
    )
    with pytest.raises(SourceError):
        Postgres(server.address(), query="SELECT hospital.note() AS x").counts(["x"])

    assert Postgres(server.address(), table="hospital.log").counts(["x"]).num_rows == 0


@pytest.mark.engines
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"table": "hospital.nowhere"}, "is none that the server understands"),
        ({"query": f"SELEC {CANARY}"}, "is none that the server understands"),
        (
            {"query": f"SELECT a::int AS x FROM (VALUES ('{CANARY}')) AS v (a)"},
            "(understands|could not be counted)",
        ),
        ({"query": "SELECT secret::int AS x FROM hospital.visits"}, "could not be counted by the server"),
        ({"query": "SELECT pg_sleep(9)::text AS x", "timeout": 1}, "could not be counted by the server"),
        ({"query": "SELECT 1 AS y"}, "column 'x' is not in the data; choose among 'y'"),
        ({"query": "SELECT 1 AS x, 2 AS x"}, "column 'x' is in the data more than once"),
    ],
)
def test_no_error_of_the_server_is_shown(
    server: PostgresServer, source: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its messages quote rows: they are in no error of ours, in no chain and in no log."""
    caplog.set_level(logging.DEBUG)
    server.run(
        "CREATE TABLE hospital.visits (secret text)", f"INSERT INTO hospital.visits VALUES ('{CANARY}')"
    )

    with pytest.raises(SourceError, match=said) as refusal:
        Postgres(server.address(), **source).counts(["x"])
    told = "".join(traceback.format_exception(refusal.value)) + caplog.text
    assert CANARY not in told
    assert PASSWORD not in told
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None


@pytest.mark.engines
def test_whoever_may_not_enter_is_told_what_to_check(server: PostgresServer) -> None:
    """Without the password."""
    wrong = server.address(password=CANARY)

    with pytest.raises(SourceError, match="the database cannot be reached; check host") as refusal:
        Postgres(wrong, table="visits").counts(["x"])
    assert CANARY not in "".join(traceback.format_exception(refusal.value))
    assert refusal.value.__context__ is None


@pytest.mark.engines
def test_publishing_from_a_database(server: PostgresServer, tmp_path: Path) -> None:
    """One call, at most two visits of each person, and nothing of the address in the file."""
    server.run(
        "CREATE TABLE hospital.visits (patient int, age int, ward text)",
        "INSERT INTO hospital.visits SELECT n / 3, 40, 'north' FROM generate_series(0, 2999) AS n",
    )
    release = publish(
        Postgres(server.address(), table="hospital.visits"),
        {"age": Integer(0, 120), "ward": Category(["north", "south"])},
        epsilon=5,
        person="patient",
        contributions=2,
        path=tmp_path / "visits.release.parquet",
    )

    assert abs(release.count(age=(40, 40)).value - 2000) < 300
    assert PASSWORD.encode() not in (tmp_path / "visits.release.parquet").read_bytes()


# --- wide tables ------------------------------------------------------------------------------

WIDE: dict[str, Domain] = {f"c{place}": Integer(0, 3) for place in range(8)}
WIDE_ROWS = "SELECT " + ", ".join(f"(x * {place + 1}) % 5 AS c{place}" for place in range(8))


@pytest.mark.engines
def test_a_wide_table_is_counted_in_one_state(server: PostgresServer) -> None:
    """Tables that are counted later see the rows that were there when the columns were counted."""
    server.run(f"CREATE TABLE hospital.wide AS {WIDE_ROWS} FROM generate_series(1, 50) AS x")
    points = Postgres(server.address(), table="hospital.wide").tally(WIDE).points(list(WIDE))
    assert isinstance(points, PostgresPoints)
    bins = [AxisBins.identity(axis.width) for axis in points.axes]
    before = points.tables([(0, 1)], bins)[0].tolist()

    server.run("DELETE FROM hospital.wide WHERE c0 > 1", "INSERT INTO hospital.wide VALUES (1, 1, 1)")

    assert points.tables([(0, 1)], bins)[0].tolist() == before
    assert points.gathered().tables([(0, 1)], bins)[0].tolist() == before
    assert points.total == 50


@pytest.mark.engines
def test_no_row_of_a_wide_table_leaves_the_server(server: PostgresServer) -> None:
    """The only statement about several columns asks for the number of rows in combinations of bins."""
    statements: list[str] = []

    def connect() -> Any:
        import psycopg

        connection = psycopg.connect(server.address())
        shipped = connection.execute

        def execute(query: Any, *args: Any, **kwargs: Any) -> Any:
            statements.append(query if isinstance(query, str) else query.as_string(connection))
            return shipped(query, *args, **kwargs)

        connection.execute = execute
        return connection

    query = f"{WIDE_ROWS} FROM generate_series(1, 50) AS x WHERE x::text NOT LIKE '%7%'"
    points = Postgres(connect, query=query).tally(WIDE).points(list(WIDE))
    tables = points.tables([(0, 1), (2, 1, 0)], [AxisBins.identity(axis.width) for axis in points.axes])

    assert [int(table.sum()) for table in tables] == [points.total] * 2 == [45] * 2
    asked = [statement for statement in statements if "count(*)" in statement]
    assert len(asked) == 1
    assert asked[0].count("count(*) FROM binned GROUP BY 1") == 2


@pytest.mark.engines
def test_tables_that_do_not_add_up_are_refused(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that calls random() may give other rows to each statement, and then there is no one state."""
    source = Postgres(server.address(), query=f"{WIDE_ROWS} FROM generate_series(1, 50) AS x")
    points = source.tally(WIDE).points(list(WIDE))
    bins = [AxisBins.identity(axis.width) for axis in points.axes]
    monkeypatch.setattr(Snapshot, "key_counts", lambda *_: [(0, 49)])

    with pytest.raises(SourceError, match="must stay as they are"):
        points.tables([(0, 1)], bins)


@pytest.mark.engines
def test_rows_of_persons_come_here(server: PostgresServer) -> None:
    """Which rows of a person count is decided here, so such a wide table is grouped as others are."""
    server.run(f"CREATE TABLE hospital.wide AS {WIDE_ROWS}, x % 9 AS id FROM generate_series(1, 50) AS x")
    source, names = Postgres(server.address(), table="hospital.wide"), list(WIDE)

    counted = source.tally(WIDE, person="id", contributions=2)

    assert isinstance(counted, Tally)
    told = tally(source, WIDE, person="id", contributions=2).points(names)
    assert counted.points(names).places.tolist() == told.places.tolist()
