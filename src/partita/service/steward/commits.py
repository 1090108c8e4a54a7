"""Requests that arrive together are stored together: one sync for all, and none is answered before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias, final

from partita.errors import StreamError
from partita.service.steward.keeping import AnyStream
from partita.streams.durable import Event

__all__ = ["Commits"]

Waiting: TypeAlias = tuple[Sequence[Event], asyncio.Future[None]]

_CUT_OFF: Final = "storing was cut off; send the same request again"


@final
class Commits:
    """The way into one stream that is not pan-private: while some requests are stored, others gather.

    `add` returns when the events are on disk. If they cannot be stored, all who waited are told: what is
    sent again counts once, whether or not it was stored.
    """

    def __init__(self, stream: AnyStream) -> None:
        self._stream = stream
        self._gathered: list[Waiting] = []
        self._storing: asyncio.Task[None] | None = None

    async def add(self, events: Sequence[Event]) -> None:
        """Count events that were checked; whoever stops waiting does not stop the others."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gathered.append((events, stored))
        if self._storing is None:
            self._storing = asyncio.create_task(self._store())
        await asyncio.shield(stored)

    async def _store(self) -> None:
        """Store what has gathered, until nothing is left. However this ends, nobody waits for ever."""
        some: list[Waiting] = []
        try:
            while self._gathered:
                some, self._gathered = self._gathered, []
                _settle(some, await self._attempt([event for events, _ in some for event in events]))
        finally:
            self._storing = None
            left, self._gathered = [*some, *self._gathered], []
            _settle(left, StreamError(_CUT_OFF))

    async def _attempt(self, events: list[Event]) -> Exception | None:
        try:
            await asyncio.to_thread(self._stream.add_many, events)
        except Exception as error:
            return error
        return None


def _settle(some: Sequence[Waiting], error: Exception | None) -> None:
    """Tell all who still wait."""
    for stored in (stored for _, stored in some if not stored.done()):
        if error is None:
            stored.set_result(None)
        else:
            stored.set_exception(error)
