"""From a request to the disk: what is fed is read, checked and stored, and then acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

from partita.service.steward.commits import Commits
from partita.service.steward.feeding import events_of
from partita.service.steward.keeping import AnyStream, Streams
from partita.streams.durable import Event
from partita.streams.durable.events import checked_events

__all__ = ["Intake"]

_AT_ONCE: Final = 4
_SMALL: Final = 4096


@final
class Intake:
    """All ways into the streams.

    Small requests that arrive together share a transaction. Large ones are let in a few at a time, before
    anything of them is read, and are stored by threads, so that they hold up nobody else. What is for a
    pan-private stream is counted on the spot: once read it waits in no queue, and is in no thread but the one
    that received it.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._commits: dict[str, Commits] = {}
        self._large = asyncio.Semaphore(_AT_ONCE)

    @asynccontextmanager
    async def room(self, length: int | None) -> AsyncIterator[None]:
        """Room for a body of some length; for a large one, or one that does not say, there is little."""
        if length is not None and length <= _SMALL:
            yield
        else:
            async with self._large:
                yield

    async def add(self, name: str, body: bytes, *, feeder: str, key: str | None) -> None:
        """Count what a request has; on disk when this returns, but for a pan-private stream."""
        stream = self._streams.running(name)
        if stream.settings.pan_private:
            stream.add_many(events_of(body, stream.settings, feeder=feeder, key=key))
        elif len(body) <= _SMALL:
            events = _checked(body, stream, feeder, key)
            if name not in self._commits:
                self._commits[name] = Commits(stream)
            await self._commits[name].add(events)
        else:
            await asyncio.to_thread(_store, body, stream, feeder, key)


def _checked(body: bytes, stream: AnyStream, feeder: str, key: str | None) -> list[Event]:
    """The events of a request, none of which can spoil the transaction of others."""
    events = events_of(body, stream.settings, feeder=feeder, key=key)
    checked_events(events, stream.settings)
    return events


def _store(body: bytes, stream: AnyStream, feeder: str, key: str | None) -> None:
    stream.add_many(events_of(body, stream.settings, feeder=feeder, key=key))
