"""Requests that arrive together are stored together: one sync for all, and none is answered before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias, final

from partita.errors import StreamError
from partita.service.steward.feeding import FeedRequest
from partita.service.steward.keeping import AnyStream

__all__ = ["Commits"]

Waiting: TypeAlias = tuple[FeedRequest, asyncio.Future[None]]

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

    async def add(self, request: FeedRequest) -> None:
        """Count a request that was checked; whoever stops waiting does not stop the others."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gathered.append((request, stored))
        if self._storing is None:
            self._storing = asyncio.create_task(self._store())
        await asyncio.shield(stored)

    async def _store(self) -> None:
        """Store what has gathered, until nothing is left. However this ends, nobody waits for ever."""
        some: list[Waiting] = []
        try:
            while self._gathered:
                some, self._gathered = self._gathered, []
                _settle(some, await self._attempt([request for request, _ in some]))
        finally:
            self._storing = None
            left, self._gathered = [*some, *self._gathered], []
            _settle(left, StreamError(_CUT_OFF))

    async def _attempt(self, requests: list[FeedRequest]) -> Exception | None:
        """Store requests, each of which counts as a whole, whatever the others have."""
        calls = [request.events if request.listed else request.events[0] for request in requests]
        try:
            await asyncio.to_thread(self._stream.add_calls, calls)
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
