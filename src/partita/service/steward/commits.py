"""Requests that arrive together are stored together: one sync for all, and none is answered before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import final

from partita.service.steward.keeping import AnyStream
from partita.streams.durable import Event

__all__ = ["Commits"]


@final
class Commits:
    """The way into one stream that is not pan-private: while some requests are stored, others gather.

    `add` returns when the events are on disk. If they cannot be stored, all who waited are told: what is
    sent again counts once, whether or not it was stored.
    """

    def __init__(self, stream: AnyStream) -> None:
        self._stream = stream
        self._gathered: list[tuple[Sequence[Event], asyncio.Future[None]]] = []
        self._storing: asyncio.Task[None] | None = None

    async def add(self, events: Sequence[Event]) -> None:
        """Count events that were checked; whoever stops waiting does not stop the others."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gathered.append((events, stored))
        if self._storing is None:
            self._storing = asyncio.create_task(self._store())
        await asyncio.shield(stored)

    async def _store(self) -> None:
        while self._gathered:
            some, self._gathered = self._gathered, []
            error = await asyncio.to_thread(self._tried, [event for events, _ in some for event in events])
            for _, stored in some:
                _settle(stored, error)
        self._storing = None

    def _tried(self, events: list[Event]) -> Exception | None:
        try:
            self._stream.add_many(events)
        except Exception as error:
            return error
        return None


def _settle(stored: asyncio.Future[None], error: Exception | None) -> None:
    if stored.done():
        return
    if error is None:
        stored.set_result(None)
    else:
        stored.set_exception(error)
