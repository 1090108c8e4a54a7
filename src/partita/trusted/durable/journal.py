"""A counter in SQLite: events, noise and outputs in one transaction, each event once.

The file is held by one writer, with one sync for each transaction. All its tables are secret but `outputs`:

    counter     one row: settings, epoch of the writer, what the open period has so far, the state
    outputs     the record of every closed period, as it stands in the public file
    runs        which sequence numbers of a feeder were counted, as runs without gaps
    deliveries  which texts of a feeder were counted, by digest
    people      which events of a person were counted, by digest
    calls       one row: how many calls of several portions were counted
    staged      what portions of a call have added to the three above, until it is counted

An older file may lack `deliveries`, `calls` and `staged`: they are made when it is opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from partita.errors import InvalidState, StreamBusy, StreamError
from partita.public.streams import LARGEST, OutputsFile, Settings, at_once
from partita.storage import DURABLE, Connection, SqliteFormat, SqliteWriter
from partita.trusted.durable.events import (
    AT_ONCE,
    AnyCounter,
    CheckedEvent,
    Counts,
    record_after,
    restore_counter,
    split_events,
    step,
)
from partita.trusted.noise.system import Noise
from partita.trusted.streams.family import FAMILY_LARGEST

SECRET: Final = ".db"

_ADDITIONS: Final = (
    "CREATE TABLE IF NOT EXISTS deliveries (digest BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS calls (counted INTEGER NOT NULL)",
    "INSERT INTO calls SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM calls)",
    "CREATE TABLE IF NOT EXISTS staged (call INTEGER NOT NULL, feeder TEXT, known BLOB NOT NULL)",
)
"""What files of earlier versions have not."""

SCHEMA: Final = f"""
{";".join(_ADDITIONS)};

CREATE TABLE counter (
    settings TEXT NOT NULL,
    epoch    INTEGER NOT NULL DEFAULT 0,
    pending  INTEGER NOT NULL DEFAULT 0,
    state    BLOB
);

CREATE TABLE outputs (
    period INTEGER PRIMARY KEY,
    record BLOB NOT NULL
);

CREATE TABLE runs (
    feeder TEXT NOT NULL,
    first  INTEGER NOT NULL,
    last   INTEGER NOT NULL,
    PRIMARY KEY (feeder, first)
) WITHOUT ROWID;

CREATE TABLE people (
    person BLOB NOT NULL,
    event  BLOB NOT NULL,
    PRIMARY KEY (person, event)
) WITHOUT ROWID;

CREATE TRIGGER outputs_stay BEFORE DELETE ON outputs
BEGIN SELECT RAISE (ABORT, 'outputs are never removed'); END;

CREATE TRIGGER outputs_keep BEFORE UPDATE ON outputs
BEGIN SELECT RAISE (ABORT, 'outputs are never rewritten'); END;
"""

_COUNTERS, _FAMILIES = _VERSIONS = (1, 2)
"""A family has a row of numbers where a counter has one."""

_PAGES: Final = 1000
"""How many pages of the log are moved to their places at once: 4 MB, for which a tick may have to wait."""

_PRAGMAS: Final = (
    "PRAGMA locking_mode = EXCLUSIVE",
    *DURABLE,
    "PRAGMA cache_size = -32768",
    f"PRAGMA wal_autocheckpoint = {_PAGES}",
)
_FORMAT: Final = SqliteFormat(
    name="counter file",
    mark=b"PCnt",
    versions=_VERSIONS,
    schema=SCHEMA,
    additions=_ADDITIONS,
    pragmas=_PRAGMAS,
    build_pragmas=("PRAGMA journal_mode = WAL", *_PRAGMAS),
    journal_mode="wal",
    error=StreamError,
    busy_error=StreamBusy,
    busy=(
        "is open in another process or object",
        "a counter has one writer, so feed it there, or end that one first",
    ),
    foreign=("is not a Partita counter", "check the path"),
    damaged=("is damaged", "restore the latest copy; an older one is refused"),
)

_WORDS: Final = np.dtype(">i8")
_DIGEST: Final = 32
_TEXT: Final = 16


@final
class _Totals:
    """What the open period holds so far: one number, or one for each key, as large as a counter takes.

    Each is cut off at the limit after each event: so one event moves it no more than before.
    """

    def __init__(self, settings: Settings, stored: object = 0) -> None:
        self._family = bool(settings.keys)
        self._most = (FAMILY_LARGEST if self._family else LARGEST) - 1
        self._columns = settings.columns
        self.numbers = self._parse(stored)

    def add(self, counts: Counts) -> None:
        """Count at some places."""
        for place, count in counts:
            self.numbers[place] = max(-self._most, min(self.numbers[place] + count, self._most))

    def clear(self) -> None:
        """Begin the next period."""
        self.numbers = [0] * self._columns

    @property
    def stored(self) -> int | bytes:
        """A number as it is; those of a family as bytes, always as many."""
        return np.array(self.numbers, dtype=_WORDS).tobytes() if self._family else self.numbers[0]

    def _parse(self, stored: object) -> list[int]:
        if stored == 0 and type(stored) is int:
            return [0] * self._columns
        if self._family and isinstance(stored, bytes) and len(stored) == _WORDS.itemsize * self._columns:
            numbers: list[int] = np.frombuffer(stored, dtype=_WORDS).tolist()
            return numbers
        if not self._family and type(stored) is int:
            return [stored]
        raise InvalidState("counter", "must agree with its outputs", fix="restore the latest copy")


# ---- what was counted before: each event once, and at user level no more than a person may have ----

_ADMIT: Final = """
INSERT OR IGNORE INTO people
SELECT ?1, ?2 WHERE (SELECT COUNT(*) FROM people WHERE person = ?1) < ?3
"""
_FIND_RUN: Final = "SELECT first, last FROM runs WHERE feeder = ? AND first <= ? ORDER BY first DESC LIMIT 1"
_ANY_RUN: Final = "SELECT EXISTS (SELECT 1 FROM runs WHERE feeder = ? AND first <= ? AND last >= ?)"
_NEXT_RUN: Final = "SELECT last FROM runs WHERE feeder = ? AND first = ?"


def remember(connection: Connection, event: CheckedEvent, settings: Settings) -> bool:
    """Remember an event, and say whether it counts: not if it is known, or one too many.

    It is known by its source and number, whatever its count says.
    """
    if settings.unit == "user":
        known_by = (event.source, event.number, settings.contributions)
        return connection.execute(_ADMIT, known_by).rowcount == 1
    if isinstance(event.number, bytes):
        new_text = connection.execute("INSERT OR IGNORE INTO deliveries VALUES (?)", (event.number,))
        return new_text.rowcount == 1
    return _is_new(connection, event.source, event.number)


def counted_by(event: CheckedEvent, settings: Settings) -> Counts:
    """What an event adds to the open period if it counts."""
    if settings.unit != "user":
        return event.counts
    change = settings.change
    return tuple([(place, max(-change, min(count, change))) for place, count in event.counts])


def forget(connection: Connection, event: CheckedEvent, settings: Settings) -> None:
    """Undo `remember` for an event that counted, and is not to count after all."""
    if settings.unit == "user":
        connection.execute("DELETE FROM people WHERE person = ? AND event = ?", (event.source, event.number))
    elif isinstance(event.number, bytes):
        connection.execute("DELETE FROM deliveries WHERE digest = ?", (event.number,))
    else:
        _forget_number(connection, event.source, event.number)


def _is_new(connection: Connection, feeder: Any, sequence: Any) -> bool:
    """Whether a sequence number is seen for the first time; it joins the runs that it touches."""
    before = connection.execute(_FIND_RUN, (feeder, sequence)).fetchone()
    if before and sequence <= before[1]:
        return False
    after = connection.execute(_NEXT_RUN, (feeder, sequence + 1)).fetchone()
    first = before[0] if before and before[1] == sequence - 1 else sequence
    connection.execute("DELETE FROM runs WHERE feeder = ? AND first = ?", (feeder, sequence + 1))
    connection.execute(
        "INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", (feeder, first, after[0] if after else sequence)
    )
    return True


def _forget_number(connection: Connection, feeder: Any, sequence: Any) -> None:
    """Take a sequence number out of its run; what is left of the run is none, one or two."""
    first, last = connection.execute(_FIND_RUN, (feeder, sequence)).fetchone()
    connection.execute("DELETE FROM runs WHERE feeder = ? AND first = ?", (feeder, first))
    left = [(first, sequence - 1), (sequence + 1, last)]
    rows = [(feeder, *run) for run in left if run[0] <= run[1]]
    connection.executemany("INSERT INTO runs VALUES (?, ?, ?)", rows)


# ---- a call of many events: stored in portions, and counted in one step when all of it is stored ----
#
# What its events are known by is remembered with each portion, and beside it, in the same transaction, what
# a portion has added to that memory. The transaction of the last portion adds the total of the call to the
# open period and raises the number of counted calls: a step whose size does not depend on the call. From then
# on the notes of earlier portions mean nothing, and are removed. If the call ends before that, for whatever
# reason, the notes say what to forget, and it is as if it had never been made.

_NOTE: Final = "INSERT INTO staged (call, feeder, known) SELECT counted + 1, ?, ? FROM calls"
_UNFINISHED: Final = """
SELECT rowid, feeder, known FROM staged WHERE call > (SELECT counted FROM calls) ORDER BY rowid DESC LIMIT 1
"""
_SWEEP: Final = """
DELETE FROM staged WHERE rowid IN (
    SELECT rowid FROM staged WHERE call <= (SELECT counted FROM calls) ORDER BY rowid LIMIT 16
)
"""


def _note(connection: Connection, events: Iterable[CheckedEvent]) -> None:
    """Note events that were remembered for a call that is not counted yet."""
    numbers: dict[str, list[int]] = {}
    digests = []
    for source, number, _ in events:
        if isinstance(source, str) and isinstance(number, int):
            numbers.setdefault(source, []).append(number)
        else:
            digests += [part for part in (source, number) if isinstance(part, bytes)]
    rows: list[tuple[str | None, bytes]] = [
        (feeder, np.array(some, dtype=_WORDS).tobytes()) for feeder, some in numbers.items()
    ]
    if digests:
        rows.append((None, b"".join(digests)))
    connection.executemany(_NOTE, rows)


def drop_portion(connection: Connection, settings: Settings) -> bool:
    """Forget the events of one note of a call that was not counted; False if there is none."""
    found = connection.execute(_UNFINISHED).fetchone()
    if found is None:
        return False
    place, feeder, known = found
    for event in _read_note(feeder, known, settings):
        forget(connection, event, settings)
    connection.execute("DELETE FROM staged WHERE rowid = ?", (place,))
    return True


def _read_note(feeder: Any, known: bytes, settings: Settings) -> Iterator[CheckedEvent]:
    """The events of a note, without what they count."""
    if feeder is not None:
        for number in np.frombuffer(known, dtype=_WORDS).tolist():
            yield CheckedEvent(feeder, number, ())
    elif settings.unit == "user":
        for place in range(0, len(known), 2 * _DIGEST):
            middle, end = place + _DIGEST, place + 2 * _DIGEST
            yield CheckedEvent(known[place:middle], known[middle:end], ())
    else:
        for place in range(0, len(known), _TEXT):
            yield CheckedEvent(None, known[place : place + _TEXT], ())


@final
class Journal:
    """The secret file of a counter that is not pan-private.

    A transaction holds the events, the noise that was drawn and is not used up (in the state), and the
    records of the periods that it closes. If it fails, the counter in memory is dropped, and the one on disk
    goes on. A call of more events than one transaction takes is stored in several, in any of which the clock
    may come first, and counts with the last of them; its total is in memory until then.
    """

    def __init__(self, path: Path, *, noise: Noise | None) -> None:
        self._file = SqliteWriter(_FORMAT, path)
        self._noise = noise
        self._owner = os.getpid()
        self._counter: AnyCounter | None = None
        self._header = b""
        self._new: list[bytes] = []
        self._partial = self._unsettled = False
        try:
            self._settings, self._epoch = self._take_over()
            self._call = _Totals(self._settings)
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
        version, insert = (
            _FAMILIES if settings.keys else _COUNTERS,
            "INSERT INTO counter (settings) VALUES (?)",
        )
        _FORMAT.create(path, insert, (settings.to_text(),), version=version)

    @property
    def at_once(self) -> int:
        """How many periods one transaction may close: fewer, the longer their records are."""
        return at_once(self._settings.columns)

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def counter(self) -> AnyCounter | None:
        if self._counter is None:
            self._load()
        return self._counter

    def follow(self, outputs: OutputsFile) -> None:
        self._header = outputs.header

    def begin(self, counter: AnyCounter) -> AnyCounter:
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
                with suppress(StreamError):
                    self._pragma(f"wal_autocheckpoint = {_PAGES}")
            self._new = []

    def portions(self, call: list[CheckedEvent]) -> list[list[CheckedEvent]]:
        """The events of one call as the transactions that store them: of a thousand counts each."""
        return list(split_events(call, most=AT_ONCE))

    def add(self, events: Iterable[CheckedEvent], *, complete: bool = True) -> None:
        """Store events that were checked, each once; if the call is complete, all of it counts now."""
        settings = self._settings
        new = [event for event in events if remember(self._connection, event, settings)]
        totals = self._totals if complete else self._call
        for event in new:
            totals.add(counted_by(event, settings))
        if not complete:
            self._unsettled = self._partial = True
            _note(self._connection, new)
        elif self._partial:
            self._totals.add(tuple(enumerate(self._call.numbers)))
            # The call counts: nothing of it is dropped from now on.
            self._connection.execute("UPDATE calls SET counted = counted + 1")

    def settle_calls(self) -> bool:
        self._partial = False
        self._call.clear()
        if self._unsettled:
            with self._transaction() as connection:
                dropped = drop_portion(connection, self._settings)
                self._unsettled = dropped or connection.execute(_SWEEP).rowcount > 0
        return self._unsettled

    def has_counted(self, feeder: str, first: int, last: int) -> bool:
        with self._file.access() as connection:
            (known,) = connection.execute(_ANY_RUN, (feeder, last, first)).fetchone()
        return bool(known)

    def close_period(self) -> None:
        step(self._present, self._totals.numbers)
        self._totals.clear()
        before = self._new[-1] if self._new else self.record(self._present.periods - 1) or self._header
        self._new.append(record_after(before, self._present))

    def record(self, period: int) -> bytes | None:
        """The record of a period, if it is closed."""
        with self._file.access() as connection:
            row = connection.execute("SELECT record FROM outputs WHERE period = ?", (period,)).fetchone()
        return None if row is None else bytes(row[0])

    def records(self, *, since: int) -> Iterator[bytes]:
        while some := self._some_records(since):
            yield from some
            since += len(some)

    def settle(self) -> None:
        with suppress(StreamError):
            self._pragma("wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        self._file.close()

    @property
    def _present(self) -> AnyCounter:
        counter = self.counter
        if counter is None:
            raise self._file.damaged()
        return counter

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A transaction of the one writer: who opened the file last."""
        if os.getpid() != self._owner:
            raise StreamBusy("this counter belongs to the process that opened it; open it again there")
        with self._file.transaction() as connection:
            if _row(connection, "epoch") != self._epoch:
                raise StreamBusy("this counter was opened again elsewhere; feed it there")
            yield connection

    def _take_over(self) -> tuple[Settings, int]:
        """The settings, and the epoch that begins now; a call that was not completed is dropped."""
        with self._file.transaction() as connection:
            for addition in _FORMAT.additions:
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
            # A checkpoint takes as long as there were events: outputs are published before the next one.
            self._pragma("wal_autocheckpoint = 0")
            self._connection.execute("UPDATE counter SET state = ?", (self._present.state(),))
            first = self._present.periods - len(self._new) + 1
            self._connection.executemany("INSERT INTO outputs VALUES (?, ?)", enumerate(self._new, first))

    def _pragma(self, pragma: str) -> None:
        with self._file.access() as connection:
            connection.execute(f"PRAGMA {pragma}").fetchall()

    def _load(self) -> None:
        with self._file.access() as connection:
            state, pending = _row(connection, "state"), _row(connection, "pending")
            (closed,) = connection.execute("SELECT COALESCE(MAX(period), 0) FROM outputs").fetchone()
        if state is None:
            return
        counter = restore_counter(self._settings, state, self._noise)
        self._totals = _Totals(self._settings, pending)
        if counter.periods != closed:
            raise InvalidState("counter", "must agree with its outputs", fix="restore the latest copy")
        self._counter = counter

    def _some_records(self, since: int) -> list[bytes]:
        with self._file.access() as connection:
            rows = connection.execute(
                "SELECT record FROM outputs WHERE period > ? ORDER BY period LIMIT ?", (since, self.at_once)
            )
            return [record for (record,) in rows.fetchall()]


def _row(connection: Connection, column: str) -> Any:
    (value,) = connection.execute(f"SELECT {column} FROM counter").fetchone()
    return value
