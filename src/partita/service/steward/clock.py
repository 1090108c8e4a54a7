"""The clock of a service: one thread that closes the periods of all streams when they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

from partita.service.steward.keeping import Streams
from partita.streams.durable.settings import SECOND

__all__ = ["Clock"]

_LONGEST_SLEEP: Final = SECOND

_PAUSE: Final = SECOND // 100
"""Between two slices of a stream that is catching up: feeders have their turn."""


@final
class Clock:
    """Ticks at the end of each period of any stream, whatever was fed.

    It never sleeps for longer than a second, so a clock that is set right is followed soon, a stream that was
    just made is noticed, and what a disk refused is tried again.
    """

    def __init__(self, streams: Streams, *, now: Callable[[], int] = time.time_ns) -> None:
        self._streams, self._now = streams, now
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """The clock runs while the block does; a tick that has begun is finished."""
        thread = threading.Thread(target=self._run, name="partita-clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._until_next() / SECOND):
            self._streams.tick()

    def _until_next(self) -> int:
        """Nanoseconds until a period ends, as the clock says now; a moment, if some have ended long ago."""
        if self._streams.behind:
            return _PAUSE
        end = self._streams.next_end()
        return _LONGEST_SLEEP if end is None else max(0, min(end - self._now(), _LONGEST_SLEEP))
