"""From a request to the disk: what is fed is read, checked and stored, and then acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

from partita.service.steward.commits import Commits
from partita.service.steward.feeding import FeedRequest, feed_request
from partita.service.steward.keeping import AnyStream, Streams
from partita.streams.durable.events import checked_events

__all__ = ["Intake"]

_AT_ONCE: Final = 4
_SMALL: Final = 4096


@final
class Intake:
    """All ways into the streams.

    A request counts as a whole, at one moment. Small ones that arrive together are stored together, and those
    that are one count each share a transaction. Large ones are let in a few at a time, before
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
            stream.add_many(feed_request(body, stream.settings, feeder=feeder, key=key).events)
        elif len(body) <= _SMALL:
            request = _checked(body, stream, feeder, key)
            if name not in self._commits:
                self._commits[name] = Commits(stream)
            await self._commits[name].add(request)
        else:
            await asyncio.to_thread(_store, body, stream, feeder, key)


def _checked(body: bytes, stream: AnyStream, feeder: str, key: str | None) -> FeedRequest:
    """A request, none of whose events can spoil the transaction of others."""
    request = feed_request(body, stream.settings, feeder=feeder, key=key)
    checked_events(request.events, stream.settings)
    return request


def _store(body: bytes, stream: AnyStream, feeder: str, key: str | None) -> None:
    stream.add_many(feed_request(body, stream.settings, feeder=feeder, key=key).events)
