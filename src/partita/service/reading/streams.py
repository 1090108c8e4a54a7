"""Streams for readers: their guarantee, the last output with its bounds, the history, and live updates.

Readers see only what the last look at the public files found. A look falls on every whole multiple of the
delay of the service. A period is shown from the first look on that is at least the delay after its end. So a
reader, however often it asks, learns when periods end, and not when their outputs were written: that may
depend on what was being stored just then.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import islice
from math import floor
from pathlib import Path
from typing import Annotated, Any, Final, final

import anyio
import anyio.to_thread
from fastapi import APIRouter, FastAPI, Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.types import Send

from partita.numbers import check_probability
from partita.public.file_entries import guarantee_entries
from partita.public.stream_errors import error_band
from partita.public.streams import OUTPUTS, SECOND, AnyOutput, OutputsFile, Settings, to_datetime
from partita.service.access import CALLER
from partita.service.errors import Refusal, not_found
from partita.service.reading.catalogue import ERRORS, JSON, attachment, format_csv
from partita.service.reading.work import Lanes, WorkerPool
from partita.service.settings import NAME, Limits, ServiceSettings
from partita.service.web import Log

# ---- looks at the public files ----

_LONGEST_SLEEP: Final = 1.0  # seconds: how soon a clock that is set anew is followed


@final
@dataclass(frozen=True)
class VisibleStream:
    """A stream as of the last look: its public file, and how many of its periods are shown."""

    name: str
    file: OutputsFile
    periods: int

    def outputs(self, *, since: int, limit: int) -> list[AnyOutput]:
        """The outputs after a period that are shown."""
        wanted = max(0, min(limit, self.periods - since))
        return list(islice(self.file.outputs(since=since), wanted)) if wanted else []

    @property
    def last(self) -> AnyOutput | None:
        """The last output that is shown."""
        return next(iter(self.outputs(since=self.periods - 1, limit=1)), None) if self.periods else None


@final
class StreamWatcher:
    """The streams of the public folder as of the last look; `moment` is the time of that look.

    The value of a name is None if its file is damaged. Only public files are opened. Looks have a thread of
    their own, so that no request delays them.
    """

    def __init__(self, settings: ServiceSettings, *, now: Callable[[], int] = time.time_ns) -> None:
        self.folder, self.delay, self._now = settings.folder, settings.delay, now
        self._every = int(settings.delay * SECOND)
        self._log, self._limiter = Log("reading", now), anyio.CapacityLimiter(1)
        self._shown: dict[str, VisibleStream | None] = {}
        self._notified = asyncio.Event()
        self._ended = False
        self.moment = 0

    def streams(self) -> dict[str, VisibleStream | None]:
        """All streams by name, sorted; the first call makes the first look."""
        if not self.moment:
            self.look()
        return dict(sorted(self._shown.items()))

    def __getitem__(self, name: str) -> VisibleStream:
        """A stream by name, or a 404, also for invalid names."""
        found = self.streams().get(name)
        if found is None:
            raise not_found("stream")
        return found

    def look(self) -> None:
        """Update the streams. If the folder cannot be read, they stay as they were."""
        self.moment = max(self.moment, self._now() // self._every * self._every)
        with suppress(OSError):
            self._shown = {name: self._look_at(name, path) for name, path in _outputs_in(self.folder)}

    async def keep_looking(self) -> None:
        """Look at every whole multiple of the delay, and wake all listeners.

        A look that fails is followed by the next one.
        """
        while True:
            due = (self._now() // self._every + 1) * self._every
            while (left := due - self._now()) > 0:
                await asyncio.sleep(min(left / SECOND, _LONGEST_SLEEP))
            await self.look_in_thread()
            self.notify()

    async def look_in_thread(self) -> None:
        """Look in a thread; log the type of an exception."""
        try:
            await anyio.to_thread.run_sync(self.look, limiter=self._limiter)
        except Exception as error:
            self._log.error("look failed", kind=type(error).__name__)

    def notify(self) -> None:
        """Wake all listeners at once."""
        waiting, self._notified = self._notified, asyncio.Event()
        waiting.set()

    def end(self) -> None:
        """Wake all listeners for the last time."""
        self._ended = True
        self.notify()

    async def next_look(self) -> bool:
        """Wait for the next look; False if the service is about to stop."""
        if not self._ended:
            await self._notified.wait()
        return not self._ended

    def _look_at(self, name: str, path: Path) -> VisibleStream | None:
        """A stream as it is now; its file is opened only if another period may be shown.

        A file that raises any exception is damaged, and does not affect the others.
        """
        before = self._shown.get(name)
        if before is not None and before.periods >= self._due(before.file):
            return before
        try:
            file = OutputsFile.read(path)
            periods = min(self._due(file), file.closed)
        except Exception:
            return None
        known = before.periods if before is not None and before.file == file else 0
        return VisibleStream(name, file, max(known, periods))

    def _due(self, file: OutputsFile) -> int:
        """How many periods may be shown: those that had ended a delay before the look."""
        return file.settings.due(self.moment - self._every)


def _outputs_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """The public files of streams, by the name of the stream; plain files only."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name.removesuffix(OUTPUTS)
            if name != entry.name and NAME.fullmatch(name) and entry.is_file(follow_symlinks=False):
                yield name, Path(entry.path)


# ---- records and bounds ----

PAGE: Final = 1_000
"""Outputs of one page, at most: the size of a response against the number of requests."""

_VALUES: Final = 20_000
"""Values of one page, at most: an output of a family has one for each key."""

_MOST_BOUNDS: Final = 2**17  # cached bounds: memory against computing them again


class OutputRecord(BaseModel):
    """The output of one period: `value` of a counter, or `values` of a family by key."""

    period: int = Field(description="the number of the period, from 1")
    end: datetime = Field(description="when the period ended")
    value: float | None = None
    values: dict[str, float] | None = None
    off: float | None = Field(
        default=None,
        description="how far each value may be from the true count, at the confidence; null if unknown",
    )


class StreamEntry(BaseModel):
    """A stream in the catalogue."""

    name: str
    state: str = Field(description="`ready`, or `damaged` if the file is not one of a stream")
    guarantee: dict[str, Any] | None = None
    period_seconds: float | None = None
    last: OutputRecord | None = None


class StreamDetails(StreamEntry):
    """All public facts of a stream."""

    mechanism: str
    start: datetime = Field(description="when the first period began")
    horizon: int | None = Field(description="how many periods there will be, if that is known")
    window: int | None = Field(description="how many of the last periods are counted, if not all of them")
    keys: list[str] | None = Field(description="the public keys of a family; null for one count")
    change: int = Field(description="how much one event changes the count at most")
    delay: float = Field(description="seconds from the end of a period until its output is shown")
    closed: int = Field(description="how many periods are shown")
    confidence: float


class Outputs(BaseModel):
    """What was published, in the order of periods."""

    outputs: list[OutputRecord]
    next: int | None = Field(description="`since` of the next page; null if there is nothing more to show")


@final
class OutputBounds:
    """How far outputs may be off: computed once for each period, from public numbers only."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, float], float | None] = {}

    def records(self, outputs: Sequence[AnyOutput], settings: Settings, beta: float) -> list[OutputRecord]:
        """Outputs of one stream with their bounds, which fail with probability beta at most."""
        known = self._known
        missing = [output for output in outputs if (settings.counter, output.period, beta) not in known]
        if missing:
            self._compute(missing, settings, beta)
        return [_record(output, known.get((settings.counter, output.period, beta))) for output in outputs]

    def _compute(self, outputs: Sequence[AnyOutput], settings: Settings, beta: float) -> None:
        if len(self._known) > _MOST_BOUNDS:
            self._known.clear()
        halves = error_band(outputs, settings, beta)
        for place, output in enumerate(outputs):
            off = None if halves is None else float(halves[place])
            self._known[settings.counter, output.period, beta] = off


def page_size(settings: Settings) -> int:
    """The number of outputs of one page: fewer if each has many values."""
    return max(1, min(PAGE, _VALUES // settings.columns))


def stream_entry(name: str, shown: VisibleStream | None) -> StreamEntry:
    """A stream in the catalogue, with its last output and no bounds.

    A file that raises any exception is damaged, and does not affect the others.
    """
    with suppress(Exception):
        if shown is not None:
            last = _record(shown.last, None) if shown.last else None
            return StreamEntry(**_common(shown), last=last)
    return StreamEntry(name=name, state="damaged")


def describe_stream(
    shown: VisibleStream, bounds: OutputBounds, *, delay: float, beta: float
) -> StreamDetails:
    """All public facts of a stream, with its last output."""
    settings, last = shown.file.settings, shown.last
    window = settings.options.get("window")
    return StreamDetails(
        **_common(shown),
        last=bounds.records([last], settings, beta)[0] if last else None,
        mechanism=settings.mechanism,
        start=to_datetime(settings.start),
        horizon=settings.horizon,
        window=None if window is None else int(window),
        keys=list(settings.keys) or None,
        change=settings.change,
        delay=delay,
        closed=shown.periods,
        confidence=1 - beta,
    )


def csv_pages(shown: VisibleStream, since: int) -> Iterator[str]:
    """All outputs after a period as CSV, a page at a time: period, end, and a column of each value."""
    yield format_csv([("period", "end", *(shown.file.settings.keys or ("value",)))])
    while some := shown.outputs(since=since, limit=page_size(shown.file.settings)):
        values = (output.value for output in some)
        rows = (each.values() if isinstance(each, dict) else (each,) for each in values)
        yield format_csv((at.period, at.end, *row) for at, row in zip(some, rows, strict=True))
        since = some[-1].period


def _common(shown: VisibleStream) -> dict[str, Any]:
    settings = shown.file.settings
    return {
        "name": shown.name,
        "state": "ready",
        "guarantee": guarantee_entries(settings.guarantee),
        "period_seconds": settings.period / SECOND,
    }


def _record(output: AnyOutput, off: float | None) -> OutputRecord:
    value = output.value
    named: dict[str, Any] = {"values": value} if isinstance(value, dict) else {"value": value}
    return OutputRecord(period=output.period, end=output.end, off=off, **named)


# ---- live updates ----

_PING: Final = 15 * SECOND  # at whole multiples of it, whatever is fed; often enough for proxies
_SEND_TIMEOUT: Final = 10.0  # seconds for one event: slow readers against places of others
_BETA: Final = 0.05
_SHARE: Final = 10
"""One caller may have a tenth of all live connections."""

_RETRY: Final = b"retry: 2000\n\n"
_END: Final = b"event: end\ndata: {}\n\n"


@final
class LiveUpdates:
    """Server-sent events: each output once, to all listeners at the same public moment.

    Nothing is sent between two looks but pings. All listeners get the same bytes, formatted once for each
    look. The number of listeners is limited, and that of one caller to a share of it.
    """

    def __init__(self, watch: StreamWatcher, bounds: OutputBounds, threads: WorkerPool, *, most: int) -> None:
        self._watch, self._bounds, self._threads = watch, bounds, threads
        self._most, self._most_of_one = most, -(-most // _SHARE)
        self._pages: dict[tuple[str, int, int], asyncio.Task[tuple[bytes, int]]] = {}
        self._moment = 0
        self.listeners: Counter[str] = Counter()

    def listen(self, name: str, since: int | None, *, by: str) -> EventStream:
        """The events after a period, or after all that is shown now; raises Refusal if too many listen."""
        if self.listeners.total() >= self._most:
            raise _too_many(503, f"at most {self._most} may listen at once")
        if self.listeners[by] >= self._most_of_one:
            raise _too_many(429, f"at most {self._most_of_one} of one caller may listen at once")
        shown = self._watch[name]
        return EventStream(self, by, self._events(name, shown.periods if since is None else since))

    async def _events(self, name: str, since: int) -> AsyncIterator[bytes]:
        moment = self._watch.moment
        yield _RETRY
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

    async def _page(self, shown: VisibleStream, since: int) -> tuple[bytes, int]:
        """The next events and their last period; formatted once for all listeners that are up to date."""
        if shown.periods - since > page_size(shown.file.settings):
            return await self._format_in_thread(shown, since)
        if self._moment != self._watch.moment:
            self._moment, self._pages = self._watch.moment, {}
        key = (shown.name, since, shown.periods)
        if key not in self._pages:
            self._pages[key] = asyncio.create_task(self._format_in_thread(shown, since))
        return await asyncio.shield(self._pages[key])

    async def _format_in_thread(self, shown: VisibleStream, since: int) -> tuple[bytes, int]:
        return await self._threads.run(lambda: self._format(shown, since))

    def _format(self, shown: VisibleStream, since: int) -> tuple[bytes, int]:
        settings = shown.file.settings
        outputs = shown.outputs(since=since, limit=page_size(settings))
        records = self._bounds.records(outputs, settings, _BETA)
        return "".join(map(_event, records)).encode(), outputs[-1].period if outputs else shown.periods


@final
class EventStream(StreamingResponse):
    """A response without end. A client that reads too slowly is disconnected."""

    media_type = "text/event-stream"

    def __init__(self, live: LiveUpdates, by: str, events: AsyncIterator[bytes]) -> None:
        super().__init__(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._listeners, self._by = live.listeners, by

    async def stream_response(self, send: Send) -> None:
        """Send each event within a timeout."""
        self._listeners[self._by] += 1
        try:
            with suppress(TimeoutError):
                await super().stream_response(_with_timeout(send))
        finally:
            self._listeners[self._by] -= 1
            self._listeners += Counter()


def _too_many(status: int, rule: str) -> Refusal:
    message = f"{rule}; try again later, or ask for outputs.json"
    return Refusal(status, "TooManyListeners", message, headers={"Retry-After": "10"})


def _with_timeout(send: Send) -> Send:
    async def timely(message: object) -> None:
        async with asyncio.timeout(_SEND_TIMEOUT):
            await send(message)  # type: ignore[arg-type]

    return timely


def _event(record: OutputRecord) -> str:
    return f"id: {record.period}\nevent: output\ndata: {record.model_dump_json(exclude_none=True)}\n\n"


# ---- routes ----

_LARGEST: Final = 2**62  # periods: below what a 64-bit integer holds
_THOUSANDTH: Final = Fraction(1, 1000)

Confidence = Annotated[
    float, Query(description="how sure the bounds are, between 0 and 1; rounded up to thousandths")
]
Since = Annotated[int, Query(ge=0, le=_LARGEST, description="only what comes after this period")]
From = Annotated[int | None, Query(ge=0, le=_LARGEST, description="send what comes after this period first")]
Resume = Annotated[int | None, Header(ge=0, le=_LARGEST, description="the last event that was received")]
Limit = Annotated[int, Query(ge=1, le=PAGE, description="at most so many periods")]


def stream_entries(watch: StreamWatcher) -> list[StreamEntry]:
    """The streams for the catalogue; one output of each is read."""
    return [stream_entry(name, shown) for name, shown in watch.streams().items()]


def stream_routes(watch: StreamWatcher, lanes: Lanes, limits: Limits) -> APIRouter:
    """The routes of streams; looks go on while the application runs.

    A history takes long if its bounds are not cached, so histories are large work.
    """
    bounds = OutputBounds()
    live = LiveUpdates(watch, bounds, lanes.live, most=limits.subscribers)
    delay = float(watch.delay)
    router = APIRouter(tags=["streams"], responses=ERRORS, lifespan=_lifespan(watch, lanes))

    @router.get("/streams/{name}.json", operation_id="stream", response_model=StreamDetails)
    async def stream(name: str, confidence: Confidence = 0.95) -> Response:
        """A stream: its guarantee, its periods, and its last output with bounds."""
        shown, beta = watch[name], _beta(confidence)

        def make() -> str:
            return describe_stream(shown, bounds, delay=delay, beta=beta).model_dump_json()

        return Response(await lanes.small.run(make), media_type=JSON)

    @router.get("/streams/{name}/outputs.json", operation_id="stream_outputs", response_model=Outputs)
    async def outputs(
        name: str, since: Since = 0, limit: Limit = PAGE, confidence: Confidence = 0.95
    ) -> Response:
        """What was published, a page at a time; a page of a family with many keys is shorter than asked."""
        shown, beta = watch[name], _beta(confidence)

        def make() -> str:
            return _page(shown, bounds, since=since, limit=limit, beta=beta)

        return Response(await lanes.large.run(make), media_type=JSON)

    @router.get(
        "/streams/{name}/outputs.csv",
        operation_id="stream_outputs_csv",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
    )
    def table(name: str, since: Since = 0) -> StreamingResponse:
        """All that was published after a period, as CSV: period, end, and the value, or one for each key."""
        pages = csv_pages(watch[name], since)
        return StreamingResponse(pages, media_type="text/csv", headers=attachment(f"{name}.csv"))

    @router.get(
        "/streams/{name}/live",
        operation_id="stream_live",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    )
    async def listen(name: str, since: From = None, last_event_id: Resume = None) -> EventStream:
        """Server-sent events: an `output` for each period when it is shown, with the period as its id."""
        return live.listen(name, since if last_event_id is None else last_event_id, by=CALLER.get())

    return router


def _lifespan(watch: StreamWatcher, lanes: Lanes) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        """Look by the clock while the application runs, and end live connections when it stops."""
        await watch.look_in_thread()
        tasks = [asyncio.create_task(work) for work in (watch.keep_looking(), _end(app, watch, lanes))]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    return lifespan


async def _end(app: FastAPI, watch: StreamWatcher, lanes: Lanes) -> None:
    await app.state.ending.wait()
    watch.end()
    lanes.end()


def _page(shown: VisibleStream, bounds: OutputBounds, *, since: int, limit: int, beta: float) -> str:
    settings = shown.file.settings
    some = shown.outputs(since=since, limit=min(limit, page_size(settings)))
    more = bool(some) and some[-1].period < shown.periods
    page = Outputs(outputs=bounds.records(some, settings, beta), next=some[-1].period if more else None)
    return page.model_dump_json(exclude_none=True)


def _beta(confidence: float) -> float:
    """How often bounds may fail: rounded down to thousandths, so that few different bounds are computed.

    Below a thousandth it is the power of ten below.

    >>> [_beta(confidence) for confidence in (0.95, 0.8, 0.9512, 0.99995)]
    [0.05, 0.2, 0.048, 1e-05]
    """
    beta = 1 - check_probability(confidence, "confidence")
    step = _THOUSANDTH
    while beta < step:
        step /= 10
    return float(floor(beta / step) * step if step == _THOUSANDTH else step)
