"""The file: private, durable, shared, and never an exception of SQLite's."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from partita.errors import BudgetExceeded, InvalidParameter, LedgerError, PartitaError, TermsDiffer
from partita.guarantee import Guarantee
from partita.ledger import ledger as sqlite
from partita.ledger.entries import Amount, Balance, Debit
from partita.ledger.ledger import Ledger

RELEASE = Guarantee(epsilon="1/10")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with three epsilon for the rows of `people`, in a file."""
    made = Ledger(tmp_path / "budget.db")
    made.open("people", epsilon=3)
    return made


def sql(path: Path, *statements: str) -> None:
    """Do to the file what a ledger never does."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def use(path: Path) -> Balance:
    """Everything a ledger can be asked, and what it had before."""
    ledger = Ledger(path, patience=0)
    ledger.datasets()
    before = ledger.balance("people")
    ledger.forecast("people", RELEASE)
    ledger.mark_done(ledger.debit("people", RELEASE, what="ages"))
    ledger.entries("people")
    return before


class Older(sqlite3.Connection):
    """SQLite before 3.35, which knows no RETURNING."""

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if "RETURNING" in statement.upper():
            raise sqlite3.OperationalError('near "RETURNING": syntax error')
        return super().execute(statement, *values)


def test_an_older_sqlite_will_do(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python is content with releases of SQLite that lack much, and debits are numbered on them too."""
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Older))

    assert [ledger.debit("people", RELEASE, what="ages").number for _ in range(3)] == [1, 2, 3]


@pytest.fixture
def open_umask() -> Any:
    """A process that lets everybody read what it makes."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_only_the_owner_may_read_a_ledger(tmp_path: Path) -> None:
    """The file and the journal beside it have mode 0600, whatever the umask."""
    Ledger(tmp_path / "budget.db").open("people", epsilon=1)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"budget.db": 0o600, "budget.db-journal": 0o600}


@pytest.mark.parametrize("name", ["a?mode=ro#b.db", "ä %41 b.db", "-x.db", ":memory:", "100%.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    """A name is a name, not a part of an address."""
    Ledger(tmp_path / name).open("people", epsilon=1)

    use(tmp_path / name)
    assert (tmp_path / name).is_file()


@pytest.mark.parametrize("path", ["", None, 7, b"budget.db", "a\0b"])
def test_a_path_is_text_or_a_path(path: Any) -> None:
    """Anything else is refused by name."""
    with pytest.raises(InvalidParameter, match="path must be the path of a file"):
        Ledger(path)


def test_reading_makes_no_file(tmp_path: Path) -> None:
    """A mistyped path is an error, not a new and empty ledger."""
    with pytest.raises(LedgerError, match=r"typo\.db' does not exist; open a dataset first"):
        Ledger(tmp_path / "typo.db").balance("people")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The ledger makes files, not folders."""
    with pytest.raises(LedgerError, match=r"budget\.db' cannot be created \(No such file or directory\)"):
        Ledger(tmp_path / "nowhere" / "budget.db").open("people", epsilon=1)


def test_everything_survives_reopening(ledger: Ledger) -> None:
    """Another object on the same path sees the same terms and entries."""
    ledger.mark_done(ledger.debit("people", RELEASE, what="ages", part=("region", "north"), key="k"))
    again = Ledger(ledger.path)

    assert (again.datasets(), again.entries("people")) == (ledger.datasets(), ledger.entries("people"))


def not_sqlite(path: Path) -> None:
    path.write_text("date,what,epsilon\n" * 500)


def empty(path: Path) -> None:
    path.touch()


def folder(path: Path) -> None:
    path.mkdir()


def other_database(path: Path) -> None:
    sql(path, "CREATE TABLE entries (epsilon TEXT)")


@pytest.mark.parametrize("make", [not_sqlite, empty, folder, other_database])
def test_what_is_no_ledger_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """At once, by path, and without touching it; an emptied ledger is not taken for a new one."""
    path = tmp_path / "budget.db"
    make(path)
    before = touched(path)

    with pytest.raises(
        LedgerError, match=r"budget\.db' (is not a Partita ledger|cannot be opened)"
    ) as refusal:
        Ledger(path)
    assert touched(path) == before
    assert silent(refusal.value)


def touched(path: Path) -> tuple[int, int, int]:
    """What writing to a file changes; reading it may change the time of the last access."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def silent(error: BaseException) -> bool:
    """Whether a traceback would show this error alone."""
    return error.__cause__ is None and (error.__suppress_context__ or error.__context__ is None)


def test_a_ledger_from_the_future_is_refused(ledger: Ledger) -> None:
    """Its version is named, and nothing in it is changed."""
    sql(ledger.path, "PRAGMA user_version = 3")
    before = ledger.path.read_bytes()

    for ask in (lambda: Ledger(ledger.path), lambda: ledger.debit("people", RELEASE, what="ages")):
        with pytest.raises(
            LedgerError, match="has schema version 3, not 1 or 2; use the Partita that wrote it"
        ):
            ask()
    assert ledger.path.read_bytes() == before


def test_a_locked_ledger_says_so(ledger: Ledger) -> None:
    """After its patience, with nothing written; once the lock is gone it works."""
    hasty = Ledger(ledger.path, patience=0)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match="is locked by another process; try again") as refusal:
            hasty.debit("people", RELEASE, what="ages")
        assert silent(refusal.value)

    assert hasty.debit("people", RELEASE, what="ages").number == 1


def test_a_full_disk_loses_nothing_and_grants_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The debit that no longer fits is refused, those before it stay."""
    pragmas = (*sqlite._FORMAT.pragmas, "PRAGMA max_page_count = 12")
    monkeypatch.setattr(sqlite, "_FORMAT", replace(sqlite._FORMAT, pragmas=pragmas))
    granted: list[Debit] = []

    with pytest.raises(LedgerError, match="cannot grow: the disk is full; free some space") as refusal:
        fill(ledger, granted)
    assert silent(refusal.value)
    assert ledger.entries("people") == tuple(granted)
    assert ledger.balance("people").spent.epsilon == Fraction(len(granted), 1000)


def fill(ledger: Ledger, granted: list[Debit]) -> None:
    while True:
        granted.append(ledger.debit("people", Guarantee(epsilon="1/1000"), what="long " * 39 + "text"))


def test_half_a_ledger_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If making it fails, nothing is left, and the next opening starts afresh."""
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "_FORMAT", replace(sqlite._FORMAT, schema="CREATE TABLE half (a); nonsense;"))
        with pytest.raises(LedgerError, match="cannot be created"):
            Ledger(tmp_path / "budget.db").open("people", epsilon=1)
    assert list(tmp_path.iterdir()) == []

    Ledger(tmp_path / "budget.db").open("people", epsilon=1)


@pytest.mark.parametrize("pages", range(8))
def test_a_shortened_file_is_refused(ledger: Ledger, pages: int) -> None:
    """Pages that are missing give a typed error, never one of SQLite's."""
    for turn in range(5):
        ledger.debit("people", RELEASE, what=f"turn {turn}", key=f"key {turn}")
    os.truncate(ledger.path, pages * 4096 + 100)

    with pytest.raises(LedgerError) as refusal:
        use(ledger.path)
    assert silent(refusal.value)


@pytest.mark.faults
def test_a_damaged_byte_never_changes_a_balance(ledger: Ledger) -> None:
    """Wherever a byte is damaged, the ledger knows what was spent or raises an error of ours."""
    for turn in range(5):
        ledger.debit("people", RELEASE, what=f"turn {turn}", key=f"key {turn}", part=("region", "north"))
    whole, balance = ledger.path.read_bytes(), ledger.balance("people")
    victim = ledger.path.with_name("victim.db")
    written = [place for place, byte in enumerate(whole) if byte][::7]

    for place in written:
        victim.write_bytes(whole[:place] + bytes([whole[place] ^ 0x05]) + whole[place + 1 :])
        assert outcome(victim) in (balance, None)


def outcome(path: Path) -> Balance | None:
    """The balance, or None for a typed refusal that hides nothing behind it."""
    try:
        return use(path)
    except PartitaError as error:
        return None if silent(error) else Balance(Amount(), Amount())


@pytest.mark.parametrize("value", ["", "x", "-1", "1/0", "nan", "\udcff"])
def test_an_amount_that_is_none_is_damage(ledger: Ledger, value: str) -> None:
    """A stored number is read as strictly as it was written, above all if it would add budget."""
    ledger.debit("people", RELEASE, what="ages")
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("DROP TRIGGER entries_keep")
        stored = value.encode("utf-8", "surrogateescape")
        connection.execute("UPDATE entries SET epsilon = CAST(? AS TEXT)", (stored,))
        connection.commit()

    for ask in (ledger.balance, ledger.entries):
        with pytest.raises(LedgerError, match="is damaged; restore a copy that knows every debit") as refusal:
            ask("people")
        assert silent(refusal.value)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries",
        "UPDATE entries SET epsilon = '0'",
        "UPDATE entries SET state = 'debited'",
        "UPDATE entries SET state = 'lost'",
        "DELETE FROM datasets",
        "UPDATE datasets SET epsilon = '100'",
    ],
)
def test_the_file_itself_refuses_to_forget(ledger: Ledger, statement: str) -> None:
    """Entries and terms are written once, also for those who come with SQL."""
    ledger.mark_done(ledger.debit("people", RELEASE, what="ages"))

    with pytest.raises(sqlite3.IntegrityError):
        sql(ledger.path, statement)


def test_two_openers_with_the_same_terms_agree(tmp_path: Path) -> None:
    """Whoever comes first makes the file; the others find it whole."""
    path = tmp_path / "budget.db"
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: Ledger(path).open("people", epsilon=1), range(8)))

    assert set(opened) == {Ledger(path).datasets()["people"]}
    assert {file.name for file in tmp_path.iterdir()} == {"budget.db", "budget.db-journal"}


def test_of_two_openers_with_other_terms_one_wins(tmp_path: Path) -> None:
    """All but one are told that the terms differ."""
    path = tmp_path / "budget.db"

    def attempt(epsilon: int) -> int | None:
        try:
            return int(Ledger(path).open("people", epsilon=Fraction(epsilon, 8)).epsilon * 8)
        except TermsDiffer:
            return None

    with ThreadPoolExecutor(8) as pool:
        winners = [won for won in pool.map(attempt, range(1, 9)) if won is not None]

    assert [Fraction(won, 8) for won in winners] == [Ledger(path).datasets()["people"].epsilon]


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


def test_two_threads_with_one_key_charge_once(ledger: Ledger) -> None:
    """One is debited; the others are told that its release is not there yet."""

    def attempt(_: int) -> bool:
        try:
            ledger.debit("people", RELEASE, what="ages", key="k", request={})
        except LedgerError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(attempt, range(4))) == 1
    assert len(ledger.entries("people")) == 1


def test_a_ledger_loads_no_noise_and_no_data() -> None:
    """Keeping books takes neither randomness nor tables."""
    code = "import sys, partita.ledger; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    away = {
        "partita.trusted.noise",
        "partita.trusted.secret",
        "partita.domain",
        "partita.public",
        "pyarrow",
        "duckdb",
    }
    assert away.isdisjoint(done.stdout.split())


def test_printing_shows_the_path(ledger: Ledger) -> None:
    """And nothing that is in the file."""
    assert repr(ledger) == f"Ledger({str(ledger.path)!r})"
