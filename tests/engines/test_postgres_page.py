"""What docs/postgres.md says is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from partita.errors import LedgerError
from partita.guarantee import Guarantee
from partita.ledger.ledger import Ledger
from tests.engines.postgres_server import PASSWORD, PostgresServer

pytestmark = pytest.mark.engines

PAGE = Path(__file__).resolve().parents[2] / "docs" / "postgres.md"
SETTING = (
    "CREATE SCHEMA hospital",
    "CREATE TABLE hospital.visits (patient int, age int, ward text, born date, diagnosis text)",
    "INSERT INTO hospital.visits SELECT n / 4, n % 90, 'north', '1980-01-01', 'secret' "
    "FROM generate_series(1, 4000) AS n",
)
PEOPLE = ("reader", "publisher")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.fixture
def hospital(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[PostgresServer]:
    """A server with the table and the databases of the page, and a file with the passwords."""
    for name in ("hospital", "budget"):
        postgres_server.database(name)
    postgres_server.run(*SETTING, database="hospital")
    passwords = {"steward": PASSWORD, "reader": "choose one", "publisher": "choose another"}
    lines = [f"*:*:*:{user}:{password}" for user, password in passwords.items()]
    (tmp_path / "pgpass").write_text("\n".join(lines))
    (tmp_path / "pgpass").chmod(0o600)
    yield postgres_server
    for name in ("hospital", "budget"):
        postgres_server.run(f"DROP DATABASE {name} WITH (FORCE)")
    postgres_server.run(*(f"DROP ROLE IF EXISTS {name}" for name in PEOPLE))


def python(code: str, server: PostgresServer, folder: Path) -> str:
    """What a program prints that finds the server of the page, and the passwords in their file."""
    return subprocess.run(
        [sys.executable, "-c", code.replace("db.example.org", f"127.0.0.1:{server.port}")],
        cwd=folder,
        env={"PGPASSFILE": str(folder / "pgpass"), "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_the_page_can_be_typed_in(hospital: PostgresServer, tmp_path: Path) -> None:
    """Reader, release, ledger and publisher, one after the other; and each user can do no more than said."""
    reading, debiting = blocks("sql")
    publishing, opening, paying = blocks("python")

    hospital.run(reading, database="hospital")
    python(f"{publishing}\n{opening}", hospital, tmp_path)
    hospital.run(debiting, database="budget")
    (tmp_path / "visits.release.parquet").unlink()
    said = python(f"{publishing}\n{opening}\n{paying}", hospital, tmp_path)

    assert said.splitlines()[-1] == "epsilon 2"
    assert_reader_reads_no_more(hospital)
    assert_publisher_debits_and_no_more(hospital)


def assert_reader_reads_no_more(server: PostgresServer) -> None:
    """No diagnosis, and nothing to write."""
    for statement in ("SELECT diagnosis FROM hospital.visits", "CREATE TABLE t (x int)"):
        assert_refused(server, "hospital", "reader", "choose%20one", statement)


def assert_publisher_debits_and_no_more(server: PostgresServer) -> None:
    """A debit is made and marked; a budget is not opened, and an entry neither changed nor removed."""
    publisher = Ledger(server.address("budget", "publisher", "choose%20another"))
    debit = publisher.debit("visits", Guarantee(epsilon=1, unit="person"), what="more")

    assert publisher.mark_done(debit).state == "done"
    with pytest.raises(LedgerError, match="cannot be used by this user; grant the rights"):
        publisher.open("other", epsilon=3)
    for statement in (
        "UPDATE partita.entries SET epsilon = '0'",
        "DELETE FROM partita.entries",
        "TRUNCATE partita.entries",
        "UPDATE partita.stamp SET version = 2",
        "ALTER TABLE partita.entries DISABLE TRIGGER ALL",
        "DROP SCHEMA partita CASCADE",
    ):
        assert_refused(server, "budget", "publisher", "choose%20another", statement)


def assert_refused(server: PostgresServer, database: str, user: str, password: str, statement: str) -> None:
    import psycopg
    from psycopg import errors

    refusals = (errors.InsufficientPrivilege, errors.RaiseException, errors.ReadOnlySqlTransaction)
    address = server.address(database, user, password)
    with closing(psycopg.connect(address, autocommit=True)) as connection, pytest.raises(refusals):
        connection.execute(statement)
