"""A counter in SQLite: events, noise and outputs in one transaction, each event once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

from partita.errors import InvalidState, StreamBusy
from partita.noise.protocol import Noise
from partita.streams.base import ContinualCounter
from partita.streams.durable.database import Database
from partita.streams.durable.events import Event, clamped, is_known, log
from partita.streams.durable.keeper import record_after
from partita.streams.durable.mechanisms import restored
from partita.streams.durable.outputs import OutputsFile
from partita.streams.durable.settings import Settings

__all__ = ["SECRET", "Journal"]

SECRET: Final = ".db"

_SOME: Final = 4096


@final
class Journal:
    """The secret file of a counter that is not pan-private.

    A transaction holds the events, the noise that was drawn and is not used up (in the state), and the
    records of the periods that it closes. If it fails, the counter in memory is dropped, and the one on disk
    goes on.
    """

    at_once = _SOME

    def __init__(self, path: Path, *, noise: Noise | None) -> None:
        self._database = Database(path)
        self._noise = noise
        self._owner = os.getpid()
        self._counter: ContinualCounter | None = None
        self._header = b""
        self._new: list[bytes] = []
        self._pending = 0
        try:
            self._settings, self._epoch = self._taken_over()
            self._load()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def exists(path: Path) -> bool:
        """Whether there is a counter; files appear whole."""
        return os.path.lexists(path)

    @staticmethod
    def create(path: Path, settings: Settings) -> None:
        """Put a new counter there, unless there is one."""
        Database.create(path, settings.to_text())

    @property
    def settings(self) -> Settings:
        """What the counter was opened with."""
        return self._settings

    @property
    def counter(self) -> ContinualCounter | None:
        """The counter as it is on disk; None if it was not begun."""
        if self._counter is None:
            self._load()
        return self._counter

    def follow(self, outputs: OutputsFile) -> None:
        """Say where records are published, each after the one before it."""
        self._header = outputs.header

    def begin(self, counter: ContinualCounter) -> ContinualCounter:
        """Store a new counter; the one to go on with."""
        with self._transaction() as connection:
            connection.execute("UPDATE counter SET state = ?", (counter.state(),))
        return self._present

    @contextmanager
    def batch(self) -> Iterator[None]:
        """The events and periods of one transaction: one sync, and all of it or nothing."""
        self._last = self.record(self._present.periods) or self._header
        try:
            with self._transaction() as self._connection:
                yield
                self._save()
        except BaseException:
            self._counter = None
            raise
        finally:
            self._new = []

    def add(self, events: Iterable[Event]) -> None:
        """Count events that were checked, each once, in the open period."""
        for event in events:
            self._pending = clamped(self._pending + log(self._connection, event, self._settings))

    def has_counted(self, feeder: str, first: int, last: int) -> bool:
        """Whether a feeder has counted under any number from the first to the last."""
        with self._database.translated() as connection:
            return is_known(connection, feeder, first, last)

    def close_period(self) -> None:
        """Close the open period and open the next one."""
        self._present.update(self._pending)
        self._pending = 0
        self._last = record_after(self._last, self._present)
        self._new.append(self._last)

    def record(self, period: int) -> bytes | None:
        """The record of a period, if it is closed."""
        return next(self.records(since=period - 1), None) if period else None

    def records(self, *, since: int) -> Iterator[bytes]:
        """The records of all periods after one."""
        while some := self._some_records(since):
            yield from some
            since += len(some)

    def settle(self) -> None:
        """Do what can wait until outputs are published."""
        self._database.tidy()

    def close(self) -> None:
        """Let others open it."""
        self._database.close()

    @property
    def _present(self) -> ContinualCounter:
        counter = self.counter
        if counter is None:
            raise self._database.damaged()
        return counter

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction of the one writer: who opened the file last."""
        if os.getpid() != self._owner:
            raise StreamBusy("this counter belongs to the process that opened it; open it again there")
        with self._database.transaction() as connection:
            if _row(connection, "epoch") != self._epoch:
                raise StreamBusy("this counter was opened again elsewhere; feed it there")
            yield connection

    def _taken_over(self) -> tuple[Settings, int]:
        """The settings, and the epoch that begins now."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE counter SET epoch = epoch + 1")
            return Settings.from_text(_row(connection, "settings")), _row(connection, "epoch")

    def _save(self) -> None:
        self._connection.execute("UPDATE counter SET pending = ?", (self._pending,))
        if self._new:
            self._database.hurry()
            self._connection.execute("UPDATE counter SET state = ?", (self._present.state(),))
            first = self._present.periods - len(self._new) + 1
            self._connection.executemany("INSERT INTO outputs VALUES (?, ?)", enumerate(self._new, first))

    def _load(self) -> None:
        with self._database.translated() as connection:
            state, self._pending = _row(connection, "state"), _row(connection, "pending")
            (closed,) = connection.execute("SELECT COALESCE(MAX(period), 0) FROM outputs").fetchone()
        if state is None:
            return
        counter = restored(self._settings, state, self._noise)
        if counter.periods != closed or type(self._pending) is not int:
            raise InvalidState("counter", "must agree with its outputs", fix="restore the latest copy")
        self._counter = counter

    def _some_records(self, since: int) -> list[bytes]:
        with self._database.translated() as connection:
            rows = connection.execute(
                "SELECT record FROM outputs WHERE period > ? ORDER BY period LIMIT ?", (since, _SOME)
            )
            return [record for (record,) in rows.fetchall()]


def _row(connection: sqlite3.Connection, column: str) -> Any:
    (value,) = connection.execute(f"SELECT {column} FROM counter").fetchone()
    return value
