"""Work that takes long is done in a few threads, so that the event loop stays free for those who read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar, final

import anyio
import anyio.to_thread

from partita.service.web.errors import Refusal

__all__ = ["Room", "Threads"]

Made = TypeVar("Made")

_MOST: Final = 4
_MOST_WAITING: Final = 512
_LATER: Final = {"Retry-After": "1"}


@final
class Room:
    """Room for a few at a time: others wait in turn, and beyond a bounded queue they are refused at once."""

    def __init__(self, *, most: int, waiting: int) -> None:
        self._places = anyio.Semaphore(most, fast_acquire=True)
        self._left = most + waiting

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place for as long as it is needed."""
        if self._left == 0:
            raise Refusal(503, "Busy", "the service has too much to do; ask again later", headers=_LATER)
        self._left -= 1
        try:
            async with self._places:
                yield
        finally:
            self._left += 1


@final
class Threads:
    """At most a few pieces of work at a time, which wait for no work in other threads than these."""

    def __init__(self, *, most: int = _MOST, waiting: int = _MOST_WAITING) -> None:
        self._room = Room(most=most, waiting=waiting)
        self._limiter = anyio.CapacityLimiter(most)

    async def run(self, work: Callable[[], Made]) -> Made:
        """What the work makes."""
        async with self._room.place():
            return await anyio.to_thread.run_sync(work, limiter=self._limiter)
