"""The clock thread of a counter: it closes periods when they end, whatever was counted, and goes first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

from partita.errors.errors import HorizonReached, LedgerError, StreamError, StreamForked
from partita.public.streams.settings import SECOND, Schedule


@final
class ClockPriorityLock:
    """A lock in which the clock thread goes first: it waits for one other thread at most.

    The clock thread may take it again, but not `for_others` within `for_clock`: it would wait for itself.
    """

    def __init__(self) -> None:
        self._clocks = threading.RLock()
        self._free = threading.Condition()
        self._due = False

    @contextmanager
    def for_clock(self) -> Iterator[None]:
        """Hold the lock as the clock: the next to have it, however many are waiting."""
        with self._clocks:
            self._due = True
            try:
                with self._free:
                    yield
            finally:
                with self._free:
                    self._due = False
                    self._free.notify_all()

    @contextmanager
    def for_others(self) -> Iterator[None]:
        """Hold the lock as anybody else, when no clock waits for it."""
        with self._free:
            self._free.wait_for(lambda: not self._due)
            yield


_LONGEST_SLEEP: Final = 3600 * SECOND


@final
class Ticker:
    """Calls `tick` now and at the end of each period, until it is stopped, all is counted, or it dies.

    A file that cannot be read or written is tried again when the next period ends; a fork is for good, and so
    is everything else: then `dead` says why. It never sleeps for long, so a clock that is set right is
    followed soon.
    """

    def __init__(self, schedule: Schedule, tick: Callable[[], object], now: Callable[[], int]) -> None:
        self._schedule, self._tick, self._now = schedule, tick, now
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="partita-clock", daemon=True)
        self._failed: BaseException | None = None
        self.dead: BaseException | None = None

    def start(self) -> None:
        """Begin to tick."""
        self._thread.start()

    def stop(self) -> None:
        """End it; a tick that has begun is finished first. Raises what ended it, or its last tick."""
        self._stopped.set()
        self._thread.join()
        error = self.dead or self._failed
        if error is not None:
            raise error

    def _run(self) -> None:
        try:
            self._try()
            while not self._stopped.wait(self._until_next()):
                self._try()
        except HorizonReached:
            return
        except BaseException as error:
            self.dead = error

    def _try(self) -> None:
        try:
            self._tick()
            self._failed = None
        except StreamForked:
            raise
        except (StreamError, LedgerError) as error:
            self._failed = error

    def _until_next(self) -> float:
        """Seconds until the open period ends, as the clock says now."""
        now = self._now()
        left = self._schedule.end(self._schedule.ended(now) + 1) - now
        return max(0, min(left, _LONGEST_SLEEP)) / SECOND
