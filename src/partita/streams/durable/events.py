"""Events as they are fed: counted once each, and at user level no more than a person may have.

An event is known by its feeder and sequence number, or by a person and an id, never by an id alone: an id
that two people share would move the counts of both.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from partita.errors import InvalidData, InvalidParameter
from partita.exact import integer
from partita.streams.base import LARGEST, counted
from partita.streams.durable.settings import Settings

__all__ = ["Event", "Name", "checked_events", "clamped", "is_known", "log", "require_period"]

Name: TypeAlias = str | int | bytes | None

_LONGEST: Final = 1000
_FIND_PERSON: Final = "SELECT COUNT(*), TOTAL(event = ?) FROM people WHERE person = ?"
_FIND_RUN: Final = "SELECT first, last FROM runs WHERE feeder = ? AND first <= ? ORDER BY first DESC LIMIT 1"
_ANY_RUN: Final = "SELECT EXISTS (SELECT 1 FROM runs WHERE feeder = ? AND first <= ? AND last >= ?)"
_NEXT_RUN: Final = "SELECT last FROM runs WHERE feeder = ? AND first = ?"


@final
@dataclass(frozen=True, slots=True)
class Event:
    """Something to count: from a feeder with its sequence number, or of a person with an id.

    A count of n from a feeder is n events, not one. A pan-private counter remembers nothing that an event
    could be known by: it takes no source, and as a number that of the open period, or none.
    """

    source: Name
    number: Name
    count: int = 1


def checked_events(events: Iterable[Event], settings: Settings) -> list[Event]:
    """The events, well-formed: what is wrong is said before any of them is counted."""
    return [_checked(event, settings) for event in events]


def require_period(events: Iterable[Event], period: int, settings: Settings) -> None:
    """Refuse what is meant for another period than the open one, where a number is that of a period."""
    if settings.pan_private and not {event.number for event in events} <= {None, period}:
        raise InvalidData(
            "sequence",
            "must be the number of the open period for a pan-private counter",
            fix="leave it out: nothing is kept that numbers events",
        )


def log(connection: sqlite3.Connection, event: Event, settings: Settings) -> int:
    """Remember an event: what it adds to the open period, 0 if it was counted before or is one too many."""
    if settings.unit == "event":
        return event.count if _is_new(connection, event.source, event.number) else 0
    admitted = _is_admitted(connection, event, settings)
    return max(-settings.change, min(event.count, settings.change)) if admitted else 0


def is_known(connection: sqlite3.Connection, feeder: str, first: int, last: int) -> bool:
    """Whether a feeder has used any sequence number from the first to the last."""
    (known,) = connection.execute(_ANY_RUN, (feeder, last, first)).fetchone()
    return bool(known)


def clamped(total: int) -> int:
    """A total that a counter takes: the nearest one, so one event moves it no more than before."""
    return max(1 - LARGEST, min(total, LARGEST - 1))


def _checked(event: Event, settings: Settings) -> Event:
    if not isinstance(event, Event):
        raise InvalidData("events", "must be Events", fix='pass for example Event("gate-1", 17)')
    count = counted(event.count)
    if settings.unit == "user":
        return Event(_digest(event.source), _digest(event.number), count)
    if settings.pan_private:
        _require_nobody(event.source)
        return Event(None, None if event.number is None else _sequence(event.number), count)
    return Event(_feeder(event.source), _sequence(event.number), count)


def _is_new(connection: sqlite3.Connection, feeder: Name, sequence: Any) -> bool:
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


def _is_admitted(connection: sqlite3.Connection, event: Event, settings: Settings) -> bool:
    """Whether an event is among the first of its person, and seen for the first time."""
    number, seen = connection.execute(_FIND_PERSON, (event.number, event.source)).fetchone()
    if seen or number >= settings.contributions:
        return False
    connection.execute("INSERT INTO people VALUES (?, ?)", (event.source, event.number))
    return True


def _feeder(feeder: object) -> str:
    if isinstance(feeder, str) and 0 < len(feeder) <= _LONGEST:
        return feeder
    raise InvalidData("feeder", "must be a short name", fix='pass for example feeder="gate-1"')


def _require_nobody(source: object) -> None:
    if source is not None:
        raise InvalidData(
            "feeder", "must be None for a pan-private counter", fix="leave it out: nothing is kept of events"
        )


def _sequence(sequence: object) -> int:
    try:
        return integer(sequence, "sequence", low=0, high=LARGEST)
    except InvalidParameter:
        raise InvalidData("sequence", "must be a number from 0 on", fix="number events from 1") from None


def _digest(name: object) -> bytes:
    """A fixed number of bytes for a name: 7 and "7" are two names."""
    if isinstance(name, bool) or not isinstance(name, (str, int, bytes)):
        raise InvalidData("person and id", "must be text, an integer or bytes", fix="pass names")
    written = f"{name:x}" if isinstance(name, int) else name
    text = written.encode(errors="surrogatepass") if isinstance(written, str) else written
    return hashlib.sha256(type(name).__name__.encode() + b" " + text).digest()
