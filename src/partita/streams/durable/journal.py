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
from partita.streams.durable.calls import count_call, drop_portion, note, sweep
from partita.streams.durable.database import Database
from partita.streams.durable.events import AT_ONCE, Fed, portions
from partita.streams.durable.keeper import record_after
from partita.streams.durable.mechanisms import AnyCounter, restored, step
from partita.streams.durable.memory import added, is_known, remember
from partita.streams.durable.outputs import OutputsFile, at_once
from partita.streams.durable.schema import ADDITIONS, version_of
from partita.streams.durable.settings import Settings
from partita.streams.durable.totals import Totals

__all__ = ["SECRET", "Journal"]

SECRET: Final = ".db"


@final
class Journal:
    """The secret file of a counter that is not pan-private.

    A transaction holds the events, the noise that was drawn and is not used up (in the state), and the
    records of the periods that it closes. If it fails, the counter in memory is dropped, and the one on disk
    goes on. A call of more events than one transaction takes is stored in several, in any of which the clock
    may come first, and counts with the last of them; its total is in memory until then.
    """

    def __init__(self, path: Path, *, noise: Noise | None) -> None:
        self._database = Database(path)
        self._noise = noise
        self._owner = os.getpid()
        self._counter: AnyCounter | None = None
        self._header = b""
        self._new: list[bytes] = []
        self._partial = self._unsettled = False
        try:
            self._settings, self._epoch = self._taken_over()
            self._call = Totals(self._settings)
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
        Database.create(path, settings.to_text(), version_of(settings))

    @property
    def at_once(self) -> int:
        """How many periods one transaction may close: fewer, the longer their records are."""
        return at_once(self._settings.columns)

    @property
    def settings(self) -> Settings:
        """What the counter was opened with."""
        return self._settings

    @property
    def counter(self) -> AnyCounter | None:
        """The counter as it is on disk; None if it was not begun."""
        if self._counter is None:
            self._load()
        return self._counter

    def follow(self, outputs: OutputsFile) -> None:
        """Say where records are published, each after the one before it."""
        self._header = outputs.header

    def begin(self, counter: AnyCounter) -> AnyCounter:
        """Store a new counter; the one to go on with."""
        with self._transaction() as connection:
            connection.execute("UPDATE counter SET state = ?", (counter.state(),))
        return self._present

    @contextmanager
    def batch(self) -> Iterator[None]:
        """The events and periods of one transaction: one sync, and all of it or nothing."""
        try:
            with self._transaction() as self._connection:
                yield
                self._save()
        except BaseException:
            self._counter = None
            raise
        finally:
            if self._new:
                self._database.take_time()
            self._new = []

    def portions(self, call: list[Fed]) -> list[list[Fed]]:
        """The events of one call as the transactions that store them: of a thousand counts each."""
        return list(portions(call, most=AT_ONCE))

    def add(self, events: Iterable[Fed], *, complete: bool = True) -> None:
        """Store events that were checked, each once; if the call is complete, all of it counts now."""
        settings = self._settings
        new = [event for event in events if remember(self._connection, event, settings)]
        totals = self._totals if complete else self._call
        for event in new:
            totals.add(added(event, settings))
        if not complete:
            self._unsettled = self._partial = True
            note(self._connection, new)
        elif self._partial:
            self._totals.add(tuple(enumerate(self._call.numbers)))
            count_call(self._connection)

    def settle_calls(self) -> bool:
        """Undo a portion of a call that was not completed, or sweep up after others; False if all is done."""
        self._partial = False
        self._call.clear()
        if self._unsettled:
            with self._transaction() as connection:
                self._unsettled = drop_portion(connection, self._settings) or sweep(connection)
        return self._unsettled

    def has_counted(self, feeder: str, first: int, last: int) -> bool:
        """Whether a feeder has counted under any number from the first to the last."""
        with self._database.translated() as connection:
            return is_known(connection, feeder, first, last)

    def close_period(self) -> None:
        """Close the open period and open the next one."""
        step(self._present, self._totals.numbers)
        self._totals.clear()
        before = self._new[-1] if self._new else self.record(self._present.periods - 1) or self._header
        self._new.append(record_after(before, self._present))

    def record(self, period: int) -> bytes | None:
        """The record of a period, if it is closed."""
        with self._database.translated() as connection:
            row = connection.execute("SELECT record FROM outputs WHERE period = ?", (period,)).fetchone()
        return None if row is None else bytes(row[0])

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
    def _present(self) -> AnyCounter:
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
        """The settings, and the epoch that begins now; a call that was not completed is dropped."""
        with self._database.transaction() as connection:
            for addition in ADDITIONS:
                connection.execute(addition)
            connection.execute("UPDATE counter SET epoch = epoch + 1")
            settings = Settings.from_text(_row(connection, "settings"))
            while drop_portion(connection, settings):
                pass
            connection.execute("DELETE FROM staged")
            return settings, _row(connection, "epoch")

    def _save(self) -> None:
        self._connection.execute("UPDATE counter SET pending = ?", (self._totals.stored,))
        if self._new:
            self._database.hurry()
            self._connection.execute("UPDATE counter SET state = ?", (self._present.state(),))
            first = self._present.periods - len(self._new) + 1
            self._connection.executemany("INSERT INTO outputs VALUES (?, ?)", enumerate(self._new, first))

    def _load(self) -> None:
        with self._database.translated() as connection:
            state, pending = _row(connection, "state"), _row(connection, "pending")
            (closed,) = connection.execute("SELECT COALESCE(MAX(period), 0) FROM outputs").fetchone()
        if state is None:
            return
        counter, self._totals = restored(self._settings, state, self._noise), Totals(self._settings, pending)
        if counter.periods != closed:
            raise InvalidState("counter", "must agree with its outputs", fix="restore the latest copy")
        self._counter = counter

    def _some_records(self, since: int) -> list[bytes]:
        with self._database.translated() as connection:
            rows = connection.execute(
                "SELECT record FROM outputs WHERE period > ? ORDER BY period LIMIT ?", (since, self.at_once)
            )
            return [record for (record,) in rows.fetchall()]


def _row(connection: sqlite3.Connection, column: str) -> Any:
    (value,) = connection.execute(f"SELECT {column} FROM counter").fetchone()
    return value
