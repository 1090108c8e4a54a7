"""The layer under ledgers, sessions and durable streams: one writer, and errors that hold nothing."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from partita.errors import StreamBusy, StreamError
from partita.storage import Damaged, FileLock, SqliteFormat, SqliteWriter, transact

FORMAT: Final = SqliteFormat(
    name="box",
    mark=b"PBox",
    versions=(1, 2),
    schema="CREATE TABLE things (name TEXT NOT NULL);",
    error=StreamError,
    busy_error=StreamBusy,
    busy=("is open", "close it"),
    foreign=("is no box", "check the path"),
    damaged=("is damaged", "restore it"),
    missing=("does not exist", "make one"),
)
INSERT: Final = "INSERT INTO things VALUES (?)"


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A file of two things, made in two ways."""
    path = tmp_path / "box.db"
    FORMAT.create(path, INSERT, ("first",))
    transact(FORMAT, path, lambda connection: connection.execute(INSERT, ("second",)), write=True, patience=1)
    return path


def things(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM things")]


def test_a_file_appears_whole_for_its_owner_and_is_kept(box: Path) -> None:
    """Making it again changes nothing, and nothing else is left in the folder."""
    FORMAT.create(box, INSERT, ("other",))

    assert things(box) == ["first", "second"]
    assert box.stat().st_mode & 0o777 == 0o600
    assert os.listdir(box.parent) == ["box.db"]


def test_a_transaction_is_all_or_nothing(box: Path) -> None:
    """What was written before a failure is gone, in both ways of writing."""

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute(INSERT, ("third",))
        raise Damaged

    with pytest.raises(StreamError, match="is damaged; restore it"):
        transact(FORMAT, box, fail, write=True, patience=1)
    writer = SqliteWriter(FORMAT, box)
    with pytest.raises(StreamError, match="is damaged"), writer.transaction() as connection:
        fail(connection)
    writer.close()

    assert things(box) == ["first", "second"]


def test_a_second_writer_is_refused_until_the_first_closes(box: Path) -> None:
    """Also within one process, and after the database was opened and closed by others."""
    writer = SqliteWriter(FORMAT, box)
    things(box)
    with pytest.raises(StreamBusy, match=r"box .* is open; close it"):
        SqliteWriter(FORMAT, box)
    writer.close()
    writer.close()

    SqliteWriter(FORMAT, box).close()


def test_a_forked_child_leaves_file_and_lock_to_its_parent(box: Path) -> None:
    """It closes nothing, and the parent is still the one writer."""
    with closing(SqliteWriter(FORMAT, box)) as writer:
        child = os.fork()
        if not child:
            writer.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(StreamBusy):
            SqliteWriter(FORMAT, box)
        with writer.transaction() as connection:
            connection.execute(INSERT, ("third",))

    assert things(box) == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(FORMAT, mark=b"PBag"), "is no box"),
        (replace(FORMAT, versions=(3, 4)), "has schema version 1, not 3 or 4; use the Partita that wrote it"),
        (replace(FORMAT, journal_mode="wal"), "is no box"),
    ],
)
def test_a_file_of_another_kind_or_version_is_refused(box: Path, other: SqliteFormat, message: str) -> None:
    """It is not changed, and its lock is given back."""
    before = box.read_bytes()

    with pytest.raises(StreamError, match=message):
        SqliteWriter(other, box)
    with pytest.raises(StreamError, match=message):
        transact(other, box, lambda connection: None, patience=1)
    assert box.read_bytes() == before
    SqliteWriter(FORMAT, box).close()


def test_errors_name_the_file_and_hold_nothing_of_it(box: Path, tmp_path: Path) -> None:
    """A missing file, a folder that is none, and a table that is broken."""

    def select(connection: sqlite3.Connection) -> object:
        return connection.execute("SELECT nothing FROM secrets")

    with pytest.raises(StreamError, match="does not exist; make one"):
        transact(FORMAT, tmp_path / "none.db", select, patience=1)
    with pytest.raises(
        StreamError, match=r"cannot be created \(No such file or directory\); check the folder"
    ):
        FORMAT.create(tmp_path / "nowhere" / "box.db")
    with pytest.raises(StreamError) as refusal:
        transact(FORMAT, box, select, patience=1)
    assert str(refusal.value) == f"box {str(box)!r} is damaged; restore it"
    assert refusal.value.__cause__ is refusal.value.__context__ is None


def test_a_lock_is_waited_for_or_refused(tmp_path: Path) -> None:
    """It belongs to a file beside the path that stays, and only its owner may read it."""
    path = tmp_path / "tokens.json"
    with closing(FileLock(path, wait=True)), pytest.raises(BlockingIOError):
        FileLock(path)

    FileLock(path, wait=True).close()
    assert (tmp_path / "tokens.json.lock").stat().st_mode & 0o777 == 0o600
