"""Work that takes long is done in a few threads, which callers share evenly.

There are two lanes. Work that is predicted to be small (see `work`) has threads of its own, so it never
waits for large work. In each lane a caller has at most a share of the threads and a short queue. Callers take
turns, not requests: a caller who sends more waits longer, and nobody else does.

A thread counts as taken until its work has really ended, also when nobody waits for the answer any more. Such
work is told to stop, and does so at its next checkpoint (`partita.checkpoint`).
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from typing import Final, TypeVar, final

from partita.checkpoint import Stop, Stopped, stoppable
from partita.service.access.callers import CALLER
from partita.service.web.errors import Refusal

__all__ = ["Lanes", "Room", "Threads"]

Made = TypeVar("Made")

_SMALL_THREADS: Final = 2
_LARGE_THREADS: Final = 2
"""Few, as Python runs one at a time: each more slows down whoever answers small questions."""

_SHARE: Final = 1
"""Threads of a lane that one caller may have: the other one is for others."""

_WAITING: Final = 8
"""Large pieces of work of one caller that may wait."""

_SMALL_WAITING: Final = 64
"""Small ones: a page asks for a dozen at once, and several people may share an address."""

_ALL_WAITING: Final = 512
"""All that may wait in a lane."""

_LATER: Final = {"Retry-After": "1"}


@final
class Room:
    """A few places, which callers share: each has at most `share` of them, and `waiting` in its queue.

    A free place goes to the caller in whose turn it is, in the order in which they began to wait. All of it
    happens in one event loop.
    """

    def __init__(self, *, places: int, share: int, waiting: int, all_waiting: int = _ALL_WAITING) -> None:
        self._free, self._share = places, share
        self._waiting, self._all_waiting = waiting, all_waiting
        self._taken: Counter[str] = Counter()
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def acquire(self, caller: str) -> None:
        """Take a place, in turn. Refused at once if the caller has too many waiting, or all together have."""
        if self._may_take(caller) and caller not in self._queues:
            self._take(caller)
            return
        self._check_queue(caller)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(caller)
            else:
                self._leave(caller, turn)
            raise

    def release(self, caller: str) -> None:
        """Give a place back; whoever is next takes it."""
        self._free += 1
        self._taken[caller] -= 1
        if not self._taken[caller]:
            del self._taken[caller]
        self._call_next()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place for the caller of this request, for as long as the block runs."""
        caller = CALLER.get()
        await self.acquire(caller)
        try:
            yield
        finally:
            self.release(caller)

    def _may_take(self, caller: str) -> bool:
        return self._free > 0 and self._taken[caller] < self._share

    def _take(self, caller: str) -> None:
        self._free -= 1
        self._taken[caller] += 1

    def _check_queue(self, caller: str) -> None:
        if len(self._queues.get(caller, ())) >= self._waiting:
            raise Refusal(
                429, "TooManyQuestions", "too many questions of yours wait; ask again later", headers=_LATER
            )
        if sum(map(len, self._queues.values())) >= self._all_waiting:
            raise Refusal(503, "Busy", "the service has too much to do; ask again later", headers=_LATER)

    def _leave(self, caller: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(caller, ())
        if turn in queue:  # if not, a place became free in between, and `_call_next` took the turn out
            self._queues[caller].remove(turn)
            if not self._queues[caller]:
                del self._queues[caller]

    def _call_next(self) -> None:
        """Give free places to those who wait; a caller who got one goes to the end of the line."""
        caller = next((each for each in self._queues if self._may_take(each)), None)
        while caller is not None:
            turn = self._queues[caller].popleft()
            self._queues.move_to_end(caller)
            if not self._queues[caller]:
                del self._queues[caller]
            if not turn.done():
                self._take(caller)
                turn.set_result(None)
            caller = next((each for each in self._queues if self._may_take(each)), None)


@final
class Threads:
    """A few threads with a room in front of them."""

    def __init__(self, *, most: int = 1, share: int | None = None, waiting: int = _ALL_WAITING) -> None:
        self._room = Room(places=most, share=share or most, waiting=waiting)
        self._executor = ThreadPoolExecutor(most, thread_name_prefix="reading")
        self._stops: set[Stop] = set()
        self._ended = False

    async def run(self, work: Callable[[], Made]) -> Made:
        """What the work makes, in a thread; if nobody waits any more, the work is told to stop."""
        caller, stop = CALLER.get(), Stop()
        await self._room.acquire(caller)
        if self._ended:
            self._room.release(caller)
            raise _ending()
        self._stops.add(stop)
        submitted = self._executor.submit(copy_context().run, stoppable, stop, work)
        loop = asyncio.get_running_loop()
        submitted.add_done_callback(lambda _: self._later(loop, caller, stop))
        return await _result(submitted, stop)

    def end(self) -> None:
        """Stop all work that goes on, and refuse what comes; called once, when the service is told to end."""
        self._ended = True
        for stop in self._stops:
            stop.set()

    def _later(self, loop: asyncio.AbstractEventLoop, caller: str, stop: Stop) -> None:
        """Called by the thread when the work has really ended: only then is there room for other work."""
        with suppress(RuntimeError):  # the loop is closed: nobody wants the place any more
            loop.call_soon_threadsafe(self._done, caller, stop)

    def _done(self, caller: str, stop: Stop) -> None:
        self._stops.discard(stop)
        self._room.release(caller)


async def _result(submitted: Future[Made], stop: Stop) -> Made:
    try:
        return await asyncio.wrap_future(submitted)
    except asyncio.CancelledError:
        stop.set()
        raise
    except Stopped:
        raise _ending() from None


def _ending() -> Refusal:
    return Refusal(503, "Ending", "the service is about to end; ask again later", headers=_LATER)


@final
class Lanes:
    """Threads for small work and for large work, which do not wait for each other.

    One thread opens release files, and one makes what all who listen to streams get: both are done once for
    all callers, so neither is anybody's share.
    """

    def __init__(self) -> None:
        self.small = Threads(most=_SMALL_THREADS, share=_SHARE, waiting=_SMALL_WAITING)
        self.large = Threads(most=_LARGE_THREADS, share=_SHARE, waiting=_WAITING)
        self.opening, self.live = Threads(), Threads()

    def lane(self, *, small: bool) -> Threads:
        """Where work belongs."""
        return self.small if small else self.large

    def end(self) -> None:
        """Stop large work, as the service is about to end; small questions are still answered."""
        self.large.end()
        self.opening.end()
