"""The secret file of a counter: SQLite, held by one writer, one sync for each transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, final

from partita.errors import StreamBusy, StreamError
from partita.ledger.file import HELD, REFUSALS, primary_name, put_in_place
from partita.streams.durable.files import disk, failed
from partita.streams.durable.schema import MARK, SCHEMA, VERSION

__all__ = ["Database"]

_SETTINGS: Final = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
)
_STAMPS: Final = ("application_id", "user_version", "journal_mode")
_PAGES: Final = 1000
_SAID: Final = {**REFUSALS, "SQLITE_NOTADB": ("is not a Partita counter", "check the path")}
_DAMAGED: Final = ("is damaged", "restore the latest copy; an older one is refused")


@final
class Database:
    """One connection to the file at a path, and with it the lock: nobody else reads or writes.

    The system gives the lock back when the process ends, however it ends.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._connection = _connected(path)
        except sqlite3.Error as error:
            raise self._said(primary_name(error)) from None
        try:
            with self.translated():
                self._take()
        except BaseException:
            self._connection.close()
            raise

    @staticmethod
    def create(path: Path, settings: str) -> None:
        """Put a new counter at the path, unless there is one."""
        with disk(path):
            put_in_place(path, ".counter.", lambda name: _build(path, name, settings))

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is said to the connection is on disk afterwards; if anything fails, nothing is."""
        with self.translated():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.rollback()
                raise

    @contextmanager
    def translated(self) -> Iterator[sqlite3.Connection]:
        """The connection, with what SQLite says as a `StreamError`."""
        try:
            yield self._connection
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._said(primary_name(error)) from None

    def hurry(self) -> None:
        """Do not tidy up with the next commit: how long that takes depends on what was written before."""
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")

    def tidy(self) -> None:
        """Move what is in the log to its place; if that fails now, nothing is lost and it is done later."""
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES}")

    def close(self) -> None:
        """Give the lock back."""
        with self.translated():
            self._connection.close()

    def damaged(self) -> StreamError:
        """What is said of a file that contradicts itself."""
        return failed(self.path, *_DAMAGED)

    def _take(self) -> None:
        """Hold the lock from now on, and look at what the file is; one that is none is not changed."""
        for setting in _SETTINGS:
            self._connection.execute(setting).fetchall()
        mark, version, journal = (self._ask(f"PRAGMA {name}") for name in _STAMPS)
        if mark != MARK or journal != "wal":
            raise failed(self.path, *_SAID["SQLITE_NOTADB"])
        if version != VERSION:
            raise failed(self.path, f"has version {version}, not {VERSION}", "use the Partita that wrote it")
        if self._ask("PRAGMA integrity_check(1)") != "ok":
            raise self.damaged()

    def _ask(self, question: str) -> object:
        return self._connection.execute(question).fetchone()[0]

    def _said(self, name: str) -> StreamError:
        if name in HELD:
            return StreamBusy(
                f"counter file {str(self.path)!r} is open in another process or object; a counter has one "
                "writer, so feed it there, or end that one first"
            )
        return failed(self.path, *_SAID.get(name, _DAMAGED))


def _connected(path: Path) -> sqlite3.Connection:
    address = f"{path.as_uri()}?mode=rw"
    return sqlite3.connect(address, uri=True, timeout=0, isolation_level=None, check_same_thread=False)


def _build(path: Path, name: str, settings: str) -> None:
    try:
        with closing(sqlite3.connect(name, isolation_level=None)) as connection:
            for setting in ("PRAGMA journal_mode = WAL", *_SETTINGS):
                connection.execute(setting)
            connection.executescript(SCHEMA)
            connection.execute("INSERT INTO counter (settings) VALUES (?)", (settings,))
    except sqlite3.Error as error:
        raise failed(path, *_SAID.get(primary_name(error), _DAMAGED)) from None
