"""The ledger in PostgreSQL: serialisable, durable, shared, and never an exception of the driver's."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from partita.cli import main
from partita.domain import Integer
from partita.errors import BudgetExceeded, LedgerError, StreamForked, TermsDiffer
from partita.guarantee import Guarantee
from partita.ledger.entries import Connection
from partita.ledger.ledger import Ledger
from partita.publish.publish import publish
from partita.trusted.durable.open import open_counter
from partita.trusted.durable.stream import Writer
from tests.engines.postgres_server import PASSWORD, PostgresServer

pytestmark = pytest.mark.engines

RELEASE = Guarantee(epsilon="1/10")


@pytest.fixture
def server(postgres_server: PostgresServer) -> PostgresServer:
    return postgres_server


@pytest.fixture
def place(server: PostgresServer) -> str:
    """An address at which there is no ledger yet."""
    return server.emptied("budget")


@pytest.fixture
def ledger(place: str) -> Ledger:
    """A ledger with three epsilon for the rows of `people`."""
    made = Ledger(place)
    made.open("people", epsilon=3)
    return made


def do(server: PostgresServer, *statements: str) -> None:
    """Do to the tables what a ledger never does."""
    server.run("SET search_path = partita", *statements, database="budget")


def silent(error: BaseException) -> bool:
    """Whether a traceback would show this error alone, and no password; nor does anything hang on to it."""
    text = "".join(traceback.format_exception(error))
    return PASSWORD not in text and "psycopg." not in text and error.__context__ is None


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries",
        "TRUNCATE entries",
        "UPDATE entries SET epsilon = '0'",
        "UPDATE entries SET key = 'other'",
        "UPDATE entries SET state = 'debited'",
        "UPDATE entries SET state = 'lost'",
        "DELETE FROM datasets",
        "TRUNCATE datasets CASCADE",
        "UPDATE datasets SET epsilon = '100'",
        "UPDATE counters SET periods = 1",
        "DELETE FROM counters",
        "TRUNCATE counters",
        "UPDATE stamp SET version = 2",
        "DELETE FROM stamp",
        "INSERT INTO stamp VALUES (1)",
        "TRUNCATE stamp",
    ],
)
def test_the_tables_themselves_refuse_to_forget(
    ledger: Ledger, server: PostgresServer, statement: str
) -> None:
    """Entries, terms and periods are written once, also for those who come with SQL."""
    import psycopg

    ledger.mark_done(ledger.debit("people", RELEASE, what="ages"))
    Writer(ledger.store, "c", 2).claim(lambda _: b"")

    with pytest.raises(psycopg.errors.RaiseException):
        do(server, statement)


@pytest.mark.parametrize(
    "tampering",
    [
        "ALTER TABLE entries DISABLE TRIGGER entries_keep",
        "DROP TRIGGER terms_rest ON datasets",
        "ALTER TABLE counters DISABLE TRIGGER ALL",
    ],
)
def test_a_ledger_without_its_rules_is_refused(
    ledger: Ledger, place: str, server: PostgresServer, tampering: str
) -> None:
    """Whoever took a rule away may have rewritten an entry."""
    do(server, tampering)

    with pytest.raises(LedgerError, match="is damaged; restore a copy that knows every debit"):
        Ledger(place)


@pytest.mark.parametrize("value", ["", "x", "-1", "1/0", "nan"])
def test_an_amount_that_is_none_is_damage(ledger: Ledger, server: PostgresServer, value: str) -> None:
    """A stored number is read as strictly as it was written, above all if it would add budget."""
    ledger.debit("people", RELEASE, what="ages")
    do(
        server,
        "ALTER TABLE entries DISABLE TRIGGER entries_keep",
        f"UPDATE entries SET epsilon = '{value}'",
    )

    for ask in (ledger.balance, ledger.entries):
        with pytest.raises(LedgerError, match="is damaged; restore a copy that knows every debit") as refusal:
            ask("people")
        assert silent(refusal.value)


def test_a_ledger_from_the_future_is_refused(ledger: Ledger, place: str, server: PostgresServer) -> None:
    """Its version is named."""
    do(server, "ALTER TABLE stamp DISABLE TRIGGER ALL", "UPDATE stamp SET version = 3")

    for ask in (lambda: Ledger(place), lambda: ledger.debit("people", RELEASE, what="ages")):
        with pytest.raises(
            LedgerError, match="has schema version 3, not 1 or 2; use the Partita that wrote it"
        ):
            ask()


def test_reading_makes_no_ledger(place: str) -> None:
    """A mistyped database is an error, not a new and empty ledger."""
    ledger = Ledger(place)

    with pytest.raises(LedgerError, match="does not exist; open a dataset first, or check the address"):
        ledger.balance("people")
    assert not ledger.exists()


def test_half_a_ledger_is_never_seen(place: str, server: PostgresServer) -> None:
    """Where other tables are in the way nothing is made, and the error says so."""
    server.run("CREATE SCHEMA partita", "CREATE TABLE partita.entries (x int)", database="budget")

    with pytest.raises(LedgerError, match="is not a Partita ledger") as refusal:
        Ledger(place).open("people", epsilon=1)
    assert silent(refusal.value)
    assert not Ledger(place).exists()


def test_two_openers_with_the_same_terms_agree(place: str) -> None:
    """Whoever comes first makes the tables; the others find them whole."""
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: Ledger(place).open("people", epsilon=1), range(8)))

    assert set(opened) == {Ledger(place).datasets()["people"]}


def test_of_two_openers_with_other_terms_one_wins(place: str) -> None:
    """All but one are told that the terms differ."""

    def attempt(epsilon: int) -> int | None:
        try:
            return int(Ledger(place).open("people", epsilon=Fraction(epsilon, 8)).epsilon * 8)
        except TermsDiffer:
            return None

    with ThreadPoolExecutor(8) as pool:
        winners = [won for won in pool.map(attempt, range(1, 9)) if won is not None]

    assert [Fraction(won, 8) for won in winners] == [Ledger(place).datasets()["people"].epsilon]


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    """One object used from many threads grants exactly what fits."""

    def attempt(_: int) -> bool:
        try:
            ledger.debit("people", RELEASE, what="threaded")
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        granted = list(pool.map(attempt, range(40)))

    assert (sum(granted), len(ledger.entries("people"))) == (30, 30)


def test_a_locked_ledger_says_so(ledger: Ledger, place: str, server: PostgresServer) -> None:
    """After its patience, with nothing written; reading goes on, and writing does once the lock is gone."""
    hasty = Ledger(place, patience=0)
    with closing(server.connect("budget")) as other:
        other.execute("BEGIN; LOCK TABLE partita.stamp IN EXCLUSIVE MODE")
        with pytest.raises(LedgerError, match="is locked by another process; try again") as refusal:
            hasty.debit("people", RELEASE, what="ages")
        assert silent(refusal.value)
        assert hasty.entries("people") == ()

    assert hasty.debit("people", RELEASE, what="ages").number == 1


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("57014", "is locked by another process; try again"),
        ("25P03", "was cut off in the middle of an act; look at its entries"),
        ("53100", "has no room: .*; nothing was written"),
        ("53200", "has no room: .*; nothing was written"),
        ("0A000", "the server only reads; use the address of the primary"),
        ("25006", "the server only reads; use the address of the primary"),
        ("22012", "could not be used: the server reports an error; look into its log"),
        ("23505", "could not be used: the server reports an error; look into its log"),
        ("XX001", "is damaged; restore a copy"),
        ("XX002", "is damaged; restore a copy"),
    ],
)
def test_only_what_is_damaged_is_called_so(ledger: Ledger, state: str, said: str) -> None:
    """Whoever restores a copy for nothing forgets what was spent since."""
    raising = f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}'; END $$"

    with pytest.raises(LedgerError, match=said) as refusal:
        ledger.store.write(lambda connection: connection.execute(raising))
    assert silent(refusal.value)


def test_a_timeout_of_the_server_is_no_damage(ledger: Ledger, server: PostgresServer, place: str) -> None:
    """One that ends a statement which waits for its turn, and one that ends a transaction which is idle."""
    server.run("ALTER DATABASE budget SET statement_timeout = '200ms'")
    with closing(server.connect("budget")) as other:
        other.execute("BEGIN; LOCK TABLE partita.stamp IN EXCLUSIVE MODE")
        with pytest.raises(LedgerError, match="is locked by another process; try again"):
            ledger.debit("people", RELEASE, what="ages")
    server.run(
        "ALTER DATABASE budget RESET statement_timeout",
        "ALTER DATABASE budget SET idle_in_transaction_session_timeout = '50ms'",
    )
    try:
        with pytest.raises(LedgerError, match="was cut off in the middle of an act"):
            ledger.store.write(dawdling)
    finally:
        server.run("ALTER DATABASE budget RESET idle_in_transaction_session_timeout")


def dawdling(connection: Connection) -> None:
    """Say something again and again, until nobody is there any more."""
    for _ in range(100):
        time.sleep(0.1)
        connection.execute("SELECT 1")


def test_a_database_of_another_encoding_holds_what_it_can(server: PostgresServer) -> None:
    """What it cannot hold is refused with an error of ours, and what it holds is found again."""
    ledger = Ledger(server.database("latin", encoding="LATIN1"))
    ledger.open("Orléans", epsilon=1)

    with pytest.raises(LedgerError, match="cannot hold this text: the encoding of the database") as refusal:
        ledger.open("東京", epsilon=1)
    assert silent(refusal.value)
    assert list(ledger.datasets()) == ["Orléans"]


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_what_cannot_be_serialised_starts_again(ledger: Ledger, state: str) -> None:
    """The whole act is repeated in a new transaction, a bounded number of times."""
    turns: list[int] = []

    def work(connection: Connection) -> int:
        turns.append(len(turns))
        if len(turns) < 3:
            connection.execute(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}'; END $$")
        return len(turns)

    def doomed(connection: Connection) -> None:
        turns.append(0)
        connection.execute(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}'; END $$")

    assert ledger.store.write(work) == 3
    with pytest.raises(LedgerError, match="is locked by another process"):
        ledger.store.write(doomed)
    assert len(turns) == 3 + 10


def test_a_transaction_is_serialisable_and_waits_for_the_disk(ledger: Ledger) -> None:
    """Whatever the server has as its default."""
    asked = "SELECT current_setting('transaction_isolation'), current_setting('synchronous_commit')"

    for act in (ledger.store.read, ledger.store.write):
        assert act(lambda connection: connection.execute(asked).fetchone()) == ("serializable", "on")


@pytest.fixture
def careless(server: PostgresServer) -> Iterator[None]:
    """The server does not wait for its disk."""
    server.run("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    wait_for(server, "off")
    yield
    server.run("ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")
    wait_for(server, "on")


def wait_for(server: PostgresServer, value: str) -> None:
    """A server reads its settings again when it comes to it."""
    for _ in range(200):
        with closing(server.connect()) as connection:
            if connection.execute("SHOW fsync").fetchone() == (value,):
                return
        time.sleep(0.02)
    raise AssertionError(value)


@pytest.mark.usefixtures("ledger", "careless")
def test_a_server_that_forgets_is_refused(server: PostgresServer, place: str) -> None:
    """What it confirms may be gone after a power cut, for an old ledger and for a new one."""
    for address in (place, server.emptied("another")):
        with pytest.raises(LedgerError, match="with fsync off, which forgets what it has confirmed"):
            Ledger(address).open("people", epsilon=3)


@pytest.mark.parametrize(
    "address",
    [
        lambda server: server.address("budget", password="wrong-" + PASSWORD),
        lambda server: server.address("budget", user="nobody"),
        lambda server: server.address("no such database".replace(" ", "_")),
        lambda server: server.address("budget").replace("/budget", "/budget?sslmode=require"),
        lambda server: server.address("budget").replace("/budget", "/budget?nonsense=1"),
    ],
)
def test_whoever_cannot_enter_is_told_what_to_check(
    server: PostgresServer, address: Any, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    """By host and database, without the password, in no log and in no chained error."""
    caplog.set_level(logging.DEBUG)

    with pytest.raises(LedgerError, match="cannot be reached; check host, database, user and password") as no:
        Ledger(address(server))
    assert silent(no.value)
    assert PASSWORD not in caplog.text


def test_a_connection_that_breaks_is_no_refusal(ledger: Ledger) -> None:
    """The act may have been done, and the error says so."""
    end = "SELECT pg_terminate_backend(pg_backend_pid())"

    with pytest.raises(LedgerError, match="was cut off in the middle of an act; look at its entries") as cut:
        ledger.store.write(lambda connection: connection.execute(end))
    assert silent(cut.value)


def test_printing_shows_host_and_database(ledger: Ledger, server: PostgresServer) -> None:
    """And no password; a path it has none."""
    assert repr(ledger) == f"Ledger('postgresql://127.0.0.1:{server.port}/budget')"
    with pytest.raises(LedgerError, match="is no file; use its address"):
        _ = ledger.path


def test_the_order_of_names_is_that_of_their_bytes(ledger: Ledger) -> None:
    """On every store, whatever the collation of the database."""
    for name in ("b", "a", "B", "ä"):
        ledger.open(name, epsilon=1)

    assert list(ledger.datasets()) == ["B", "a", "b", "people", "ä"]


def test_numbers_of_a_thousand_digits_are_kept(ledger: Ledger) -> None:
    """The widest ones that a ledger takes."""
    epsilon = Fraction(2**4096 - 3, 2**4096 - 1)
    ledger.debit("people", Guarantee(epsilon=epsilon), what="wide")

    assert ledger.balance("people").spent.epsilon == epsilon


# --- who uses it ------------------------------------------------------------------------------


def test_publishing_pays_from_it(ledger: Ledger, place: str, tmp_path: Path) -> None:
    """By its address, once for a key, and the release knows nothing of the address."""
    asked: dict[str, Any] = {
        "schema": {"age": Integer(0, 9)},
        "epsilon": 1,
        "ledger": place,
        "dataset": "people",
        "key": "autumn",
        "path": tmp_path / "ages.release.parquet",
    }
    first = publish({"age": [1, 2, 2]}, **asked)
    again = publish({"age": [1, 2, 2]}, **asked)

    assert first.count(age=(0, 9)).value == again.count(age=(0, 9)).value
    assert [(entry.state, str(entry.charged)) for entry in ledger.entries("people")] == [
        ("done", "epsilon 1")
    ]
    assert PASSWORD.encode() not in (tmp_path / "ages.release.parquet").read_bytes()


def test_a_durable_counter_is_claimed_in_it(ledger: Ledger, tmp_path: Path) -> None:
    """The ledger pays once, and knows how many periods were published."""
    asked: dict[str, Any] = {"epsilon": 1, "period": "1h", "horizon": 24, "start": "2026-01-01"}
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "visits"}
    ledger.open("visits", epsilon=1, unit="event")
    with open_counter(tmp_path / "visits", **asked, **paid, now="2026-01-01T00:00:01") as counter:
        counter.add(3, feeder="door", sequence=1)
        counter.close_until(2)
    assert str(ledger.balance("visits").spent) == "epsilon 1"

    periods = ledger.store.read(
        lambda connection: connection.execute("SELECT periods FROM counters").fetchall()
    )
    assert periods == [(2,)]


def test_only_the_last_writer_of_a_counter_reaches_a_period(ledger: Ledger) -> None:
    """An answer that was not heard may be asked for again; another writer may not go on."""
    first, second = Writer(ledger.store, "c", 0), Writer(ledger.store, "c", 1)
    first.claim(lambda _: b"")
    first.reach(1, b"one")
    Writer.reach(first, 1, b"one")
    second.claim(lambda _: b"one")

    with pytest.raises(StreamForked, match="was opened again elsewhere"):
        first.reach(2, b"two")
    second.reach(2, b"two")


def test_the_command_line_takes_an_address(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Budgets are opened and looked at by address, of which host and database are printed."""
    before = main(["ledger", "balance", "people", "--ledger", place])
    opened = main(["ledger", "open", "people", "--epsilon", "3", "--ledger", place])
    looked = main(["ledger", "balance", "people", "--ledger", place])

    said = capsys.readouterr()
    assert (before, opened, looked) == (1, 0, 0)
    assert "/budget' does not exist; check the path, or open it" in said.err
    assert "left" in said.out
    assert PASSWORD not in said.out + said.err


def test_only_the_owner_adds_columns_for_rho(place: str, server: PostgresServer) -> None:
    """Who may only debit is told so; once the owner has opened a dataset in rho, debits in rho are theirs."""
    ledger = Ledger(place)
    ledger.open("people", epsilon=4, delta="1e-6")
    do(
        server,
        "CREATE ROLE rho_publisher LOGIN PASSWORD 'secret-of-rho'",
        "GRANT USAGE ON SCHEMA partita TO rho_publisher",
        "GRANT SELECT ON ALL TABLES IN SCHEMA partita TO rho_publisher",
        "GRANT INSERT ON partita.entries TO rho_publisher",
        "GRANT UPDATE (state) ON partita.entries TO rho_publisher",
        "GRANT UPDATE ON partita.stamp TO rho_publisher",
    )
    publisher = Ledger(server.address("budget", user="rho_publisher", password="secret-of-rho"))
    release = Guarantee.concentrated(rho="1/16")

    with pytest.raises(LedgerError, match="cannot be used by this user; grant the rights"):
        publisher.debit("people", release, what="ages")
    ledger.open("others", rho=1)
    publisher.mark_done(publisher.debit("people", release, what="ages"))
    publisher.debit("others", release, what="ages")

    assert str(ledger.balance("others").left) == "rho 15/16"
