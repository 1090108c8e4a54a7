"""The file of an online session: terms, what was measured, and how many runs were begun. All of it is public.

One writer holds it. Every act is on disk before it counts, and a run is counted before it answers anything:
a crash may lose a run, and never answers twice from one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from partita.errors import InvalidState, StreamBusy, StreamError
from partita.ledger.file import HELD, REFUSALS, primary_name, put_in_place
from partita.noise.kernel import token
from partita.streams.durable.lock import Lock

__all__ = ["Begun", "OnlineStore", "Update"]

_MARK: Final = int.from_bytes(b"PWgt")
_VERSION: Final = 1
_SCHEMA: Final = f"""
BEGIN;
PRAGMA application_id = {_MARK};
PRAGMA user_version = {_VERSION};
CREATE TABLE session (
    name TEXT NOT NULL, terms TEXT NOT NULL, acts INTEGER NOT NULL DEFAULT 0, begun TEXT,
    by_ledger INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE updates (run INTEGER PRIMARY KEY, query TEXT NOT NULL, noisy TEXT NOT NULL);
CREATE TRIGGER acts_rise BEFORE UPDATE OF acts ON session WHEN NEW.acts < OLD.acts
BEGIN SELECT RAISE (ABORT, 'acts never become fewer'); END;
CREATE TRIGGER ledger_stays BEFORE UPDATE OF by_ledger ON session WHEN NEW.by_ledger < OLD.by_ledger
BEGIN SELECT RAISE (ABORT, 'what a ledger pays is not opened without it'); END;
CREATE TRIGGER updates_stay BEFORE DELETE ON updates
BEGIN SELECT RAISE (ABORT, 'updates are never removed'); END;
CREATE TRIGGER updates_keep BEFORE UPDATE ON updates
BEGIN SELECT RAISE (ABORT, 'updates are never rewritten'); END;
COMMIT;
"""
_SETTINGS: Final = ("PRAGMA synchronous = FULL", "PRAGMA fullfsync = ON")
_FOREIGN: Final = ("is not a weights session", "check the path")
_DAMAGED: Final = ("is damaged", "restore the latest copy; an older one would answer twice")


class Begun(NamedTuple):
    """The first guess: the noisy total, and noisy sums in bins along axes."""

    total: int
    axes: list[int]
    bins: list[int]
    marginals: list[int]


class Update(NamedTuple):
    """A query that was off, as text, and its noisy answer in units."""

    query: str
    noisy: int


@final
class OnlineStore:
    """The file at a path, held from the beginning; a second holder is a `StreamBusy`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._said():
            self._lock = Lock(path)
        try:
            self._connection = self._connected()
        except BaseException:
            self._lock.close()
            raise

    @staticmethod
    def create(path: Path, terms: str) -> None:
        """Put a new session at the path, unless there is one."""
        try:
            put_in_place(path, ".weights.", lambda name: _build(name, terms))
        except (OSError, sqlite3.Error):
            raise _failed(path, "cannot be created", "check the folder and the disk") from None

    @property
    def name(self) -> str:
        """The name that the session has for itself, at random."""
        return str(self._session()[0])

    @property
    def terms(self) -> str:
        """The terms that it was opened with."""
        return str(self._session()[1])

    @property
    def acts(self) -> int:
        """How many acts were paid for: the first guess, and every run that was begun."""
        return int(self._session()[2])

    @property
    def begun(self) -> Begun | None:
        """The first guess, if it was stored."""
        return _begun(self._session()[3])

    @property
    def by_ledger(self) -> bool:
        """Whether a ledger pays for the session, and counts its acts."""
        return bool(self._session()[4])

    def updates(self) -> list[Update]:
        """All measurements, in order."""
        rows = self._ask("SELECT query, noisy FROM updates ORDER BY run")
        return [Update(str(query), _integer(noisy)) for query, noisy in rows]

    def act(self) -> int:
        """Count one more act, on disk; its number."""
        self._write("UPDATE session SET acts = acts + 1")
        return self.acts

    def pay_by_ledger(self) -> None:
        """Store that a ledger pays, for good: before it does."""
        self._write("UPDATE session SET by_ledger = 1")

    def begin(self, first: Begun) -> None:
        """Store the first guess."""
        self._write("UPDATE session SET begun = ? WHERE begun IS NULL", json.dumps(first._asdict()))

    def record(self, run: int, update: Update) -> None:
        """Store the measurement that ends a run."""
        self._write("INSERT INTO updates VALUES (?, ?, ?)", run, update.query, str(update.noisy))

    def close(self) -> None:
        """Let others open it."""
        self._connection.close()
        self._lock.close()

    def _session(self) -> tuple[Any, ...]:
        rows = self._ask("SELECT name, terms, acts, begun, by_ledger FROM session")
        if len(rows) != 1:
            raise _failed(self.path, *_DAMAGED)
        return rows[0]

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        with self._said():
            return self._connection.execute(query).fetchall()

    def _write(self, statement: str, *values: object) -> None:
        """One statement is one transaction: it is on disk when this returns."""
        with self._said():
            self._connection.execute(statement, values)

    def _connected(self) -> sqlite3.Connection:
        with self._said():
            address = f"{self.path.as_uri()}?mode=rw"
            connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            try:
                self._check(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        for setting in _SETTINGS:
            connection.execute(setting)
        stamps = [
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        ]
        if stamps != [_MARK, _VERSION]:
            raise _failed(self.path, *_FOREIGN)
        if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise _failed(self.path, *_DAMAGED)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """What SQLite and the lock say, about this kind of file."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            name = primary_name(error)
            if name in HELD:
                raise _busy(self.path) from None
            refusals = {**REFUSALS, "SQLITE_NOTADB": _FOREIGN}
            raise _failed(self.path, *refusals.get(name, _DAMAGED)) from None
        except StreamBusy:
            raise _busy(self.path) from None


def _build(name: str, terms: str) -> None:
    with closing(sqlite3.connect(name, isolation_level=None)) as connection:
        for setting in _SETTINGS:
            connection.execute(setting)
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO session (name, terms) VALUES (?, ?)", (token(), terms))


def _begun(text: object) -> Begun | None:
    """The first guess from where it was stored; anything else is an `InvalidState`."""
    if text is None:
        return None
    try:
        stored = Begun(**json.loads(str(text)))
        numbers = [stored.total, *stored.axes, *stored.bins, *stored.marginals]
    except (TypeError, ValueError, RecursionError):
        raise _invalid("begun") from None
    if any(type(number) is not int for number in numbers):
        raise _invalid("begun")
    return stored


def _integer(text: object) -> int:
    try:
        return int(str(text))
    except ValueError:
        raise _invalid("updates") from None


def _invalid(name: str) -> InvalidState:
    return InvalidState(name, "must be of a weights session", fix="check the path")


def _busy(path: Path) -> StreamBusy:
    return StreamBusy(
        f"weights session {str(path)!r} is open elsewhere; a session has one writer, so ask there"
    )


def _failed(path: Path, rule: str, fix: str) -> StreamError:
    return StreamError(f"weights session {str(path)!r} {rule}; {fix}")
