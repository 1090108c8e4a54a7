"""The file under a ledger: SQLite, one transaction per act, on disk before the act returns."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, final

from partita.errors import LedgerError
from partita.ledger.schema import COUNTERS, MARK, SCHEMA, VERSION
from partita.ledger.store import DAMAGED, LOCKED, Damaged

__all__ = ["HELD", "REFUSALS", "LedgerFile", "primary_name", "put_in_place", "sync_folder"]

Result = TypeVar("Result")

_ATTEMPTS: Final = 3
_SETTINGS: Final = (
    "PRAGMA journal_mode = TRUNCATE",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA foreign_keys = ON",
)
_STAMPS: Final = ("application_id", "user_version")
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
_FOREIGN: Final = ("is not a Partita ledger", "check the path")

HELD: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
"""What SQLite says of a file that another has locked."""

REFUSALS: Final = {
    "SQLITE_CANTOPEN": ("cannot be opened", "check that it exists, and the permissions of its folder"),
    "SQLITE_PERM": ("cannot be opened", "check its permissions"),
    "SQLITE_READONLY": ("cannot be written", "check the permissions of the file and its folder"),
    "SQLITE_FULL": ("cannot grow: the disk is full", "free some space"),
    "SQLITE_IOERR": (
        "could not be read or written: the disk reports an error",
        "check the disk and its space",
    ),
}
"""What is wrong with any file that SQLite refuses, by what SQLite says, and what to do."""

_SAID: Final = {**dict.fromkeys(HELD, LOCKED), **REFUSALS, "SQLITE_NOTADB": _FOREIGN}


@final
@dataclass(frozen=True)
class LedgerFile:
    """The `Store` in a file: a path, and how many seconds to wait for others.

    Only SQLite ever opens the file: closing any other descriptor would drop SQLite's locks.
    """

    path: Path
    patience: int

    @property
    def address(self) -> str:
        """The path, as text."""
        return str(self.path)

    @property
    def additions(self) -> tuple[str, ...]:
        """The table of counters, which the first ledgers lack."""
        return COUNTERS

    def exists(self) -> bool:
        """Whether a file can be seen there; `Path.exists` would raise where a folder is closed."""
        return os.path.exists(self.path)

    def check(self) -> None:
        """Refuse a file that is no ledger, or in which table and index tell different stories."""
        verdict = self.read(lambda connection: connection.execute("PRAGMA integrity_check(1)").fetchone())
        if verdict != ("ok",):
            raise self.error(*DAMAGED)

    def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """What `work` finds in one consistent state of the file."""
        return self._transact("BEGIN", work)

    def write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """What `work` returns, once all it wrote is on disk; if it raises, nothing is written."""
        return self._transact("BEGIN IMMEDIATE", work)

    def create(self) -> None:
        """Put an empty ledger at the path, unless there is one: an empty file is never mistaken for it."""
        try:
            put_in_place(self.path, ".ledger.", _build)
        except (OSError, sqlite3.Error) as error:
            raise self.error(f"cannot be created ({_reason(error)})", "check the folder") from None

    def error(self, rule: str, fix: str) -> LedgerError:
        return LedgerError(f"ledger {self.address!r} {rule}; {fix}")

    def _transact(self, begin: str, work: Callable[[sqlite3.Connection], Result]) -> Result:
        name = ""
        for _ in range(_ATTEMPTS):
            try:
                return self._attempt(begin, work)
            except (sqlite3.Error, UnicodeDecodeError, Damaged) as error:
                name = primary_name(error)
            if name not in _BUSY:
                break
        raise self._translated(name)

    def _attempt(self, begin: str, work: Callable[[sqlite3.Connection], Result]) -> Result:
        with closing(self._connect()) as connection:
            try:
                for setting in _SETTINGS:
                    connection.execute(setting)
                connection.execute(begin)
                self._check_version(connection)
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise
            return result

    def _connect(self) -> sqlite3.Connection:
        address = f"{self.path.as_uri()}?mode=rw"
        return sqlite3.connect(address, uri=True, timeout=self.patience / _ATTEMPTS, isolation_level=None)

    def _check_version(self, connection: sqlite3.Connection) -> None:
        mark, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _STAMPS)
        if mark != MARK:
            raise self.error(*_FOREIGN)
        if version != VERSION:
            raise self.error(f"has schema version {version}, not {VERSION}", "use the Partita that wrote it")

    def _translated(self, name: str) -> LedgerError:
        if name == "SQLITE_CANTOPEN" and not self.exists():
            return self.error("does not exist", "open a dataset first, or check the path")
        return self.error(*_SAID.get(name, DAMAGED))


def primary_name(error: Exception) -> str:
    """The primary name of an SQLite error, SQLITE_IOERR for SQLITE_IOERR_WRITE, or nothing."""
    full = getattr(error, "sqlite_errorname", "")
    return "_".join(full.split("_")[:2])


def put_in_place(path: Path, prefix: str, build: Callable[[str], None]) -> None:
    """Build a file, whole and for its owner only; keep one that is there.

    It is built under another name and linked into place: nobody ever sees half of it.
    """
    handle, name = tempfile.mkstemp(prefix=prefix, dir=path.parent)
    os.close(handle)
    try:
        build(name)
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
    sync_folder(path.parent)


def _build(name: str) -> None:
    with closing(sqlite3.connect(name, isolation_level=None)) as connection:
        for setting in _SETTINGS[1:]:
            connection.execute(setting)
        connection.executescript(SCHEMA)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _reason(error: OSError | sqlite3.Error) -> str:
    return error.strerror or "unknown" if isinstance(error, OSError) else primary_name(error)
