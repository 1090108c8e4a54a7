"""Server-sent events: each output once, to all who listen at the same public moment.

Nothing is sent between two looks, and pings come at whole multiples of 15 seconds, whatever is fed. What
connections get is the same bytes, made once for each look.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, final

from starlette.responses import StreamingResponse
from starlette.types import Send

from partita.service.reading.stream_records import PAGE, Bounds, Record
from partita.service.reading.watching import Shown, Watch
from partita.service.web.errors import Refusal
from partita.streams.durable.clock import SECOND

__all__ = ["EventStream", "Live"]

_PING: Final = 15 * SECOND
_PATIENCE: Final = 10.0
_BETA: Final = 0.05
_AGAIN: Final = b"retry: 2000\n\n"
_END: Final = b"event: end\ndata: {}\n\n"


@final
class Live:
    """All who listen to streams, at most a public number of them."""

    def __init__(self, watch: Watch, bounds: Bounds, *, most: int) -> None:
        self._watch, self._bounds, self._most = watch, bounds, most
        self._pages: dict[tuple[str, int, int], asyncio.Task[tuple[bytes, int]]] = {}
        self._moment = 0
        self.listeners = 0

    def listen(self, name: str, since: int | None) -> EventStream:
        """What comes after a period, or after all that is shown now; refused if too many listen."""
        if self.listeners >= self._most:
            raise Refusal(
                503,
                "TooManyListeners",
                f"at most {self._most} may listen at once; try again later, or ask for outputs.json",
                headers={"Retry-After": "10"},
            )
        shown = self._watch[name]
        return EventStream(self, self._events(name, shown.periods if since is None else since))

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
        if shown.periods - since > PAGE:
            return await asyncio.to_thread(self._written, shown, since)
        if self._moment != self._watch.moment:
            self._moment, self._pages = self._watch.moment, {}
        key = (shown.name, since, shown.periods)
        if key not in self._pages:
            self._pages[key] = asyncio.create_task(asyncio.to_thread(self._written, shown, since))
        return await asyncio.shield(self._pages[key])

    def _written(self, shown: Shown, since: int) -> tuple[bytes, int]:
        outputs = shown.outputs(since=since, limit=PAGE)
        records = self._bounds.records(outputs, shown.file.settings, _BETA)
        return "".join(map(_event, records)).encode(), outputs[-1].period if outputs else shown.periods


@final
class EventStream(StreamingResponse):
    """A response without end. Whoever takes too long to read what was sent is dropped."""

    media_type = "text/event-stream"

    def __init__(self, live: Live, events: AsyncIterator[bytes]) -> None:
        super().__init__(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._live = live

    async def stream_response(self, send: Send) -> None:
        """Send what comes, each piece within a time."""
        self._live.listeners += 1
        try:
            with suppress(TimeoutError):
                await super().stream_response(_timely(send))
        finally:
            self._live.listeners -= 1


def _timely(send: Send) -> Send:
    async def timely(message: object) -> None:
        async with asyncio.timeout(_PATIENCE):
            await send(message)  # type: ignore[arg-type]

    return timely


def _event(record: Record) -> str:
    return f"id: {record.period}\nevent: output\ndata: {record.model_dump_json(exclude_none=True)}\n\n"
