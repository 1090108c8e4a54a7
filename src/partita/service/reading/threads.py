"""Work that takes long is done in a few threads, so that the event loop stays free for those who read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, final

import anyio
import anyio.to_thread

from partita.service.web.errors import Refusal

__all__ = ["Threads"]

Made = TypeVar("Made")

_MOST: Final = 4
_MOST_WAITING: Final = 512


@final
class Threads:
    """At most a few pieces of work at a time; beyond a bounded queue a request is refused at once."""

    def __init__(self, *, most: int = _MOST, waiting: int = _MOST_WAITING) -> None:
        self._limiter = anyio.CapacityLimiter(most)
        self._room = most + waiting

    async def run(self, work: Callable[[], Made]) -> Made:
        """What the work makes."""
        if self._room == 0:
            raise Refusal(503, "Busy", "the service has too much to do; ask again later", headers=_LATER)
        self._room -= 1
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._room += 1


_LATER: Final = {"Retry-After": "1"}
