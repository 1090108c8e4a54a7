"""A call of many events: stored in portions, and counted in one step when all of it is stored.

What its events are known by is remembered with each portion, and beside it, in the same transaction, what a
portion has added to that memory. The transaction of the last portion adds the total of the call to the open
period and raises the number of counted calls: a step whose size does not depend on the call. From then on the
notes of earlier portions mean nothing, and are removed. If the call ends before that, for whatever reason,
the notes say what to forget, and it is as if it had never been made.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from partita.streams.durable.events import Fed
from partita.streams.durable.memory import forget
from partita.streams.durable.settings import Settings

__all__ = ["count_call", "drop_portion", "note", "sweep"]

_NOTE: Final = "INSERT INTO staged (call, feeder, known) SELECT counted + 1, ?, ? FROM calls"
_UNFINISHED: Final = """
SELECT rowid, feeder, known FROM staged WHERE call > (SELECT counted FROM calls) ORDER BY rowid DESC LIMIT 1
"""
_SWEEP: Final = """
DELETE FROM staged WHERE rowid IN (
    SELECT rowid FROM staged WHERE call <= (SELECT counted FROM calls) ORDER BY rowid LIMIT 16
)
"""
_NUMBERS: Final = np.dtype(">i8")
_DIGEST: Final = 32
_TEXT: Final = 16


def note(connection: sqlite3.Connection, events: Iterable[Fed]) -> None:
    """Note events that were remembered for a call that is not counted yet."""
    numbers: dict[str, list[int]] = {}
    digests = []
    for source, number, _ in events:
        if isinstance(source, str) and isinstance(number, int):
            numbers.setdefault(source, []).append(number)
        else:
            digests += [part for part in (source, number) if isinstance(part, bytes)]
    rows: list[tuple[str | None, bytes]] = [
        (feeder, np.array(some, dtype=_NUMBERS).tobytes()) for feeder, some in numbers.items()
    ]
    if digests:
        rows.append((None, b"".join(digests)))
    connection.executemany(_NOTE, rows)


def count_call(connection: sqlite3.Connection) -> None:
    """Say that the call counts: nothing of it is dropped from now on."""
    connection.execute("UPDATE calls SET counted = counted + 1")


def drop_portion(connection: sqlite3.Connection, settings: Settings) -> bool:
    """Forget the events of one note of a call that was not counted; False if there is none."""
    found = connection.execute(_UNFINISHED).fetchone()
    if found is None:
        return False
    place, feeder, known = found
    for event in _noted(feeder, known, settings):
        forget(connection, event, settings)
    connection.execute("DELETE FROM staged WHERE rowid = ?", (place,))
    return True


def sweep(connection: sqlite3.Connection) -> bool:
    """Remove some notes of calls that are counted; False if there are none."""
    return connection.execute(_SWEEP).rowcount > 0


def _noted(feeder: Any, known: bytes, settings: Settings) -> Iterator[Fed]:
    """The events of a note, without what they count."""
    if feeder is not None:
        for number in np.frombuffer(known, dtype=_NUMBERS).tolist():
            yield Fed(feeder, number, ())
    elif settings.unit == "user":
        for place in range(0, len(known), 2 * _DIGEST):
            yield Fed(known[place : place + _DIGEST], known[place + _DIGEST : place + 2 * _DIGEST], ())
    else:
        for place in range(0, len(known), _TEXT):
            yield Fed(None, known[place : place + _TEXT], ())
