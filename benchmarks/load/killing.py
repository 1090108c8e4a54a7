"""The steward is killed while it is fed: nothing acknowledged is lost, nothing published changes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from benchmarks.load.client import Connection
from benchmarks.load.rows import create, fed
from benchmarks.load.serving import Place, Processes, served

Row = dict[str, Any]

FEEDERS = 4
SHORT, LONG = "seconds", "days"
PERIODS = {SHORT: "1s", LONG: "1d"}


@dataclass
class Fed:
    """What was sent, and what of it was acknowledged. Request n counts n % 7 + 1, in both streams."""

    numbers: Iterator[int] = field(default_factory=count)
    open: set[tuple[str, int]] = field(default_factory=set)
    acknowledged: set[tuple[str, int]] = field(default_factory=set)

    def total(self, stream: str) -> int:
        """What a stream must have counted."""
        return sum(_size(number) for name, number in self.acknowledged if name == stream)


def killed(place: Place, *, times: int, seconds: float) -> Row:
    """Kill so many times, each after some seconds of feeding; then compare all that is known.

    What was not acknowledged is sent again after each start, under the same keys. The stream of days has
    closed no period, so what its secret file holds is the exact total; that of seconds has published, and
    each file that was seen must be the beginning of all later ones.
    """
    known, before, changed = Fed(), b"", False
    for number in range(times + 1):
        with served(place) as service:
            for name, period in PERIODS.items():
                asyncio.run(create(service.admin, name, period=period))
            asyncio.run(_send_again(service, known))
            if number < times:
                asyncio.run(_feed_until_killed(service, known, seconds))
        after = (place.folder / "public" / f"{SHORT}.outputs").read_bytes()
        changed, before = changed or not after.startswith(before), after
    return {
        "row": f"kill -9 under load, {times} times",
        "acknowledged": len(known.acknowledged),
        "lost_or_twice": known.total(LONG) - _stored(place),
        "published_changed": changed,
        "reached": known.total(LONG) == _stored(place) and not changed and not known.open,
    }


async def _feed_until_killed(service: Processes, known: Fed, seconds: float) -> None:
    feeders = [asyncio.create_task(_feeder(service, known)) for _ in range(FEEDERS)]
    await asyncio.sleep(seconds)
    await asyncio.to_thread(service.kill_steward)
    await asyncio.gather(*feeders)


async def _feeder(service: Processes, known: Fed) -> None:
    """Feed both streams in turn until the connection breaks."""
    connection = await Connection.to(service.steward)
    with suppress(OSError, asyncio.IncompleteReadError):
        for number in known.numbers:
            for stream in PERIODS:
                await _send(connection, service, known, (stream, number))
    await connection.close()


async def _send_again(service: Processes, known: Fed) -> None:
    connection = await Connection.to(service.steward)
    for sent in sorted(known.open):
        await _send(connection, service, known, sent)
    await connection.close()


async def _send(connection: Connection, service: Processes, known: Fed, sent: tuple[str, int]) -> None:
    stream, number = sent
    known.open.add(sent)
    status, answer = await connection.ask(fed(service.steward, stream, {"count": _size(number)}, number))
    if status != 204:
        raise RuntimeError(f"the service answered {status}: {answer!r}")
    known.open.discard(sent)
    known.acknowledged.add(sent)


def _size(number: int) -> int:
    return number % 7 + 1


def _stored(place: Place) -> int:
    """The exact count of the stream of days, from its secret file."""
    with closing(sqlite3.connect(place.folder / "secret" / f"{LONG}.db")) as connection:
        (pending,) = connection.execute("SELECT pending FROM counter").fetchone()
    return int(pending)
