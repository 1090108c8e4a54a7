"""Server-sent events: each output once, to all who listen at the same public moment.

Nothing is sent between two looks, and pings come at whole multiples of 15 seconds, whatever is fed. What
connections get is the same bytes, made once for each look.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, final

from starlette.responses import StreamingResponse
from starlette.types import Send

from partita.service.reading.stream_records import Bounds, Record, page_of
from partita.service.reading.threads import Threads
from partita.service.reading.watching import Shown, Watch
from partita.service.web.errors import Refusal
from partita.streams.durable.settings import SECOND

__all__ = ["EventStream", "Live"]

_PING: Final = 15 * SECOND
_PATIENCE: Final = 10.0
_BETA: Final = 0.05
_SHARE: Final = 10
"""One caller may be a tenth of all who listen."""

_AGAIN: Final = b"retry: 2000\n\n"
_END: Final = b"event: end\ndata: {}\n\n"


@final
class Live:
    """All who listen to streams, at most a public number of them, and of each caller a share of that."""

    def __init__(self, watch: Watch, bounds: Bounds, threads: Threads, *, most: int) -> None:
        self._watch, self._bounds, self._threads = watch, bounds, threads
        self._most, self._most_of_one = most, -(-most // _SHARE)
        self._pages: dict[tuple[str, int, int], asyncio.Task[tuple[bytes, int]]] = {}
        self._moment = 0
        self.listeners: Counter[str] = Counter()

    def listen(self, name: str, since: int | None, *, by: str) -> EventStream:
        """What comes after a period, or after all that is shown now; refused if too many listen."""
        if self.listeners.total() >= self._most:
            raise _too_many(503, f"at most {self._most} may listen at once")
        if self.listeners[by] >= self._most_of_one:
            raise _too_many(429, f"at most {self._most_of_one} of one caller may listen at once")
        shown = self._watch[name]
        return EventStream(self, by, self._events(name, shown.periods if since is None else since))

    async def _events(self, name: str, since: int) -> AsyncIterator[bytes]:
        moment = self._watch.moment
        yield _AGAIN
        while (shown := self._watch.streams().get(name)) is not None:
            while since < shown.periods:
                page, since = await self._page(shown, since)
                yield page
            if not await self._watch.next_look():
                break
            moment, before = self._watch.moment, moment
            if moment // _PING > before // _PING:
                yield b": ping\n\n"
        yield _END

    async def _page(self, shown: Shown, since: int) -> tuple[bytes, int]:
        """The next events and the last period of them; made once for all who are up to date."""
        if shown.periods - since > page_of(shown.file.settings):
            return await self._made(shown, since)
        if self._moment != self._watch.moment:
            self._moment, self._pages = self._watch.moment, {}
        key = (shown.name, since, shown.periods)
        if key not in self._pages:
            self._pages[key] = asyncio.create_task(self._made(shown, since))
        return await asyncio.shield(self._pages[key])

    async def _made(self, shown: Shown, since: int) -> tuple[bytes, int]:
        return await self._threads.run(lambda: self._written(shown, since))

    def _written(self, shown: Shown, since: int) -> tuple[bytes, int]:
        settings = shown.file.settings
        outputs = shown.outputs(since=since, limit=page_of(settings))
        records = self._bounds.records(outputs, settings, _BETA)
        return "".join(map(_event, records)).encode(), outputs[-1].period if outputs else shown.periods


@final
class EventStream(StreamingResponse):
    """A response without end. Whoever takes too long to read what was sent is dropped."""

    media_type = "text/event-stream"

    def __init__(self, live: Live, by: str, events: AsyncIterator[bytes]) -> None:
        super().__init__(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._listeners, self._by = live.listeners, by

    async def stream_response(self, send: Send) -> None:
        """Send what comes, each piece within a time."""
        self._listeners[self._by] += 1
        try:
            with suppress(TimeoutError):
                await super().stream_response(_timely(send))
        finally:
            self._listeners[self._by] -= 1
            self._listeners += Counter()


def _too_many(status: int, rule: str) -> Refusal:
    message = f"{rule}; try again later, or ask for outputs.json"
    return Refusal(status, "TooManyListeners", message, headers={"Retry-After": "10"})


def _timely(send: Send) -> Send:
    async def timely(message: object) -> None:
        async with asyncio.timeout(_PATIENCE):
            await send(message)  # type: ignore[arg-type]

    return timely


def _event(record: Record) -> str:
    return f"id: {record.period}\nevent: output\ndata: {record.model_dump_json(exclude_none=True)}\n\n"
