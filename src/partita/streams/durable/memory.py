"""What was counted before: each event once, and at user level no more than a person may have."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from partita.streams.durable.events import Counts, Fed
from partita.streams.durable.settings import Settings

__all__ = ["added", "forget", "is_known", "log", "remember"]

_ADMIT: Final = """
INSERT OR IGNORE INTO people
SELECT ?1, ?2 WHERE (SELECT COUNT(*) FROM people WHERE person = ?1) < ?3
"""
_FIND_RUN: Final = "SELECT first, last FROM runs WHERE feeder = ? AND first <= ? ORDER BY first DESC LIMIT 1"
_ANY_RUN: Final = "SELECT EXISTS (SELECT 1 FROM runs WHERE feeder = ? AND first <= ? AND last >= ?)"
_NEXT_RUN: Final = "SELECT last FROM runs WHERE feeder = ? AND first = ?"
_NOTHING: Final[Counts] = ()


def log(connection: sqlite3.Connection, event: Fed, settings: Settings) -> Counts:
    """Remember an event: what it adds to the open period; nothing if it is known, or one too many.

    It is known by its source and number, whatever its count says.
    """
    return added(event, settings) if remember(connection, event, settings) else _NOTHING


def remember(connection: sqlite3.Connection, event: Fed, settings: Settings) -> bool:
    """Remember an event, and say whether it counts: not if it is known, or one too many."""
    if settings.unit == "user":
        return _is_admitted(connection, event, settings)
    is_new = _is_new_text if isinstance(event.number, bytes) else _is_new
    return is_new(connection, event.source, event.number)


def added(event: Fed, settings: Settings) -> Counts:
    """What an event adds to the open period if it counts."""
    return _cut(event.counts, settings.change) if settings.unit == "user" else event.counts


def forget(connection: sqlite3.Connection, event: Fed, settings: Settings) -> None:
    """Undo `remember` for an event that counted, and is not to count after all."""
    if settings.unit == "user":
        connection.execute("DELETE FROM people WHERE person = ? AND event = ?", (event.source, event.number))
    elif isinstance(event.number, bytes):
        connection.execute("DELETE FROM deliveries WHERE digest = ?", (event.number,))
    else:
        _forget_number(connection, event.source, event.number)


def is_known(connection: sqlite3.Connection, feeder: str, first: int, last: int) -> bool:
    """Whether a feeder has used any sequence number from the first to the last."""
    (known,) = connection.execute(_ANY_RUN, (feeder, last, first)).fetchone()
    return bool(known)


def _is_new(connection: sqlite3.Connection, feeder: Any, sequence: Any) -> bool:
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


def _forget_number(connection: sqlite3.Connection, feeder: Any, sequence: Any) -> None:
    """Take a sequence number out of its run; what is left of the run is none, one or two."""
    first, last = connection.execute(_FIND_RUN, (feeder, sequence)).fetchone()
    connection.execute("DELETE FROM runs WHERE feeder = ? AND first = ?", (feeder, first))
    left = [(first, sequence - 1), (sequence + 1, last)]
    rows = [(feeder, *run) for run in left if run[0] <= run[1]]
    connection.executemany("INSERT INTO runs VALUES (?, ?, ?)", rows)


def _is_new_text(connection: sqlite3.Connection, feeder: Any, digest: Any) -> bool:
    """Whether a text is seen for the first time; its digest is of the feeder too."""
    return connection.execute("INSERT OR IGNORE INTO deliveries VALUES (?)", (digest,)).rowcount == 1


def _is_admitted(connection: sqlite3.Connection, event: Fed, settings: Settings) -> bool:
    """Whether an event is among the first of its person, and seen for the first time."""
    known_by = (event.source, event.number, settings.contributions)
    return connection.execute(_ADMIT, known_by).rowcount == 1


def _cut(counts: Counts, change: int) -> Counts:
    return tuple([(place, max(-change, min(count, change))) for place, count in counts])
