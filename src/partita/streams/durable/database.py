"""The secret file of a counter: SQLite, held by one writer, one sync for each transaction."""

from __future__ import annotations

import ctypes
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, final
from weakref import WeakSet

from partita.errors import StreamError
from partita.ledger.file import HELD, REFUSALS, primary_name, put_in_place
from partita.streams.durable.files import disk, failed
from partita.streams.durable.lock import Lock, busy
from partita.streams.durable.schema import MARK, SCHEMA, VERSIONS

__all__ = ["Database"]

_PAGES: Final = 1000
"""How many pages of the log are moved to their places at once: 4 MB, for which a tick may have to wait."""

_SETTINGS: Final = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA cache_size = -32768",
    f"PRAGMA wal_autocheckpoint = {_PAGES}",
)
_STAMPS: Final = ("application_id", "user_version", "journal_mode")
_SAID: Final = {**REFUSALS, "SQLITE_NOTADB": ("is not a Partita counter", "check the path")}
_DAMAGED: Final = ("is damaged", "restore the latest copy; an older one is refused")


@final
class Database:
    """One connection to the file at a path, and the lock beside it: nobody else reads or writes.

    The system gives the lock back when the process ends, however it ends. A child that is forked from it
    leaves the connection alone: to close it there would remove the log that the parent writes to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock(path)
        try:
            self._connection = self._connected()
        except BaseException:
            self._lock.close()
            raise
        _OPEN.add(self)

    @staticmethod
    def create(path: Path, settings: str, version: int) -> None:
        """Put a new counter at the path, unless there is one."""
        with disk(path):
            put_in_place(path, ".counter.", lambda name: _build(path, name, settings, version))

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
        with self._translating():
            yield self._connection

    def hurry(self) -> None:
        """Do not tidy up with a commit from now on: that takes as long as there were events."""
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")

    def take_time(self) -> None:
        """Tidy up again, with the next commit after which there is much to do."""
        with suppress(sqlite3.Error):
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES}")

    def tidy(self) -> None:
        """Move what is in the log to its place; if that fails now, nothing is lost and it is done later."""
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Give the lock back; in a forked child nothing is closed."""
        if self in _OPEN:
            with self.translated():
                self._connection.close()
            _OPEN.discard(self)
            self._lock.close()

    def leave_to_parent(self) -> None:
        """In a child: never close the connection, not even when the process ends."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        self._lock.close()

    def damaged(self) -> StreamError:
        """What is said of a file that contradicts itself."""
        return failed(self.path, *_DAMAGED)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._said(primary_name(error)) from None

    def _connected(self) -> sqlite3.Connection:
        with self._translating():
            connection = _connected(self.path)
            try:
                self._take(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _take(self, connection: sqlite3.Connection) -> None:
        """Hold SQLite's lock too, and look at what the file is; one that is none is not changed."""
        for setting in _SETTINGS:
            connection.execute(setting).fetchall()
        mark, version, journal = (_ask(connection, name) for name in _STAMPS)
        if mark != MARK or journal != "wal":
            raise failed(self.path, *_SAID["SQLITE_NOTADB"])
        if version not in VERSIONS:
            known = " or ".join(map(str, VERSIONS))
            raise failed(self.path, f"has version {version}, not {known}", "use the Partita that wrote it")
        if _ask(connection, "integrity_check(1)") != "ok":
            raise self.damaged()

    def _said(self, name: str) -> StreamError:
        if name in HELD:
            return busy(self.path)
        return failed(self.path, *_SAID.get(name, _DAMAGED))


_OPEN: Final[WeakSet[Database]] = WeakSet()
"""Those that this process has opened, and not a parent of it."""


def _leave_all_to_parent() -> None:
    for database in list(_OPEN):
        database.leave_to_parent()
    _OPEN.clear()


os.register_at_fork(after_in_child=_leave_all_to_parent)


def _ask(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _connected(path: Path) -> sqlite3.Connection:
    address = f"{path.as_uri()}?mode=rw"
    return sqlite3.connect(address, uri=True, timeout=0, isolation_level=None, check_same_thread=False)


def _build(path: Path, name: str, settings: str, version: int) -> None:
    try:
        with closing(sqlite3.connect(name, isolation_level=None)) as connection:
            for setting in ("PRAGMA journal_mode = WAL", *_SETTINGS):
                connection.execute(setting)
            connection.executescript(SCHEMA)
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("INSERT INTO counter (settings) VALUES (?)", (settings,))
    except sqlite3.Error as error:
        raise failed(path, *_SAID.get(primary_name(error), _DAMAGED)) from None
