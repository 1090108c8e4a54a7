"""The file of an online session: terms, what was measured, and how many runs were begun. All of it is public.

One writer holds it. Every act is on disk before it counts, and a run is counted before it answers anything:
a crash may lose a run, and never answers twice from one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from partita.errors.errors import InvalidState, StreamBusy, StreamError
from partita.storage.storage import SqliteFormat, SqliteWriter
from partita.trusted.noise.kernel import token

_SCHEMA: Final = """
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
"""
_FORMAT: Final = SqliteFormat(
    name="weights session",
    mark=b"PWgt",
    versions=(1,),
    schema=_SCHEMA,
    error=StreamError,
    busy_error=StreamBusy,
    busy=("is open elsewhere", "a session has one writer, so ask there"),
    foreign=("is not a weights session", "check the path"),
    damaged=("is damaged", "restore the latest copy; an older one would answer twice"),
)
_WAIT: Final = 5
"""For how many seconds to wait for somebody who looks at the file, such as a backup: SQLite's own default."""


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
        self._file = SqliteWriter(_FORMAT, path, timeout=_WAIT)

    @staticmethod
    def create(path: Path, terms: str) -> None:
        """Put a new session at the path, unless there is one."""
        _FORMAT.create(path, "INSERT INTO session (name, terms) VALUES (?, ?)", (token(), terms))

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
        self._file.close()

    def _session(self) -> tuple[Any, ...]:
        rows = self._ask("SELECT name, terms, acts, begun, by_ledger FROM session")
        if len(rows) != 1:
            raise self._file.damaged()
        return rows[0]

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        with self._file.access() as connection:
            return connection.execute(query).fetchall()

    def _write(self, statement: str, *values: object) -> None:
        """One statement is one transaction: it is on disk when this returns."""
        with self._file.access() as connection:
            connection.execute(statement, values)


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
