"""Streams for readers: what was promised, the last output with its bounds, history, and live updates.

All of it is made of public files, as the last look at them found them: see `watching`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from fractions import Fraction
from math import floor
from typing import Annotated, Final

from fastapi import APIRouter, FastAPI, Header, Query, Response
from fastapi.responses import StreamingResponse

from partita.exact import failure
from partita.service.access.callers import CALLER
from partita.service.reading.document import ERRORS
from partita.service.reading.live import EventStream, Live
from partita.service.reading.replies import JSON
from partita.service.reading.stream_records import (
    PAGE,
    Bounds,
    Outputs,
    Stream,
    StreamEntry,
    csv_lines,
    described,
    entry,
    page_of,
)
from partita.service.reading.threads import Lanes
from partita.service.reading.watching import Shown, Watch
from partita.service.settings import Limits

__all__ = ["stream_entries", "stream_routes"]

_LARGEST: Final = 2**62
_THOUSANDTH: Final = Fraction(1, 1000)

Confidence = Annotated[
    float, Query(description="how sure the bounds are, between 0 and 1; rounded up to thousandths")
]
Since = Annotated[int, Query(ge=0, le=_LARGEST, description="only what comes after this period")]
From = Annotated[int | None, Query(ge=0, le=_LARGEST, description="send what comes after this period first")]
Resume = Annotated[int | None, Header(ge=0, le=_LARGEST, description="the last event that was received")]
Limit = Annotated[int, Query(ge=1, le=PAGE, description="at most so many periods")]


def stream_entries(watch: Watch) -> list[StreamEntry]:
    """The streams for the catalogue; one output of each is read."""
    return [entry(name, shown) for name, shown in watch.streams().items()]


def stream_routes(watch: Watch, lanes: Lanes, limits: Limits) -> APIRouter:
    """The routes about streams; looks go on for as long as the application runs.

    A history takes long if its bounds are not known yet, so histories are large work.
    """
    bounds = Bounds()
    live = Live(watch, bounds, lanes.live, most=limits.subscribers)
    delay = float(watch.delay)
    router = APIRouter(tags=["streams"], responses=ERRORS, lifespan=_looking(watch, lanes))

    @router.get("/streams/{name}.json", operation_id="stream", response_model=Stream)
    async def stream(name: str, confidence: Confidence = 0.95) -> Response:
        """A stream: its guarantee, its periods, and its last output with bounds."""
        shown, beta = watch[name], _beta(confidence)

        def make() -> str:
            return described(shown, bounds, delay=delay, beta=beta).model_dump_json()

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
        saved = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        return StreamingResponse(csv_lines(watch[name], since), media_type="text/csv", headers=saved)

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


def _looking(watch: Watch, lanes: Lanes) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        """Look by the clock while the application runs; when it is told to end, so are all who listen."""
        await watch.look_aside()
        tasks = [asyncio.create_task(work) for work in (watch.keep_looking(), _end(app, watch, lanes))]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    return lifespan


async def _end(app: FastAPI, watch: Watch, lanes: Lanes) -> None:
    await app.state.ending.wait()
    watch.end()
    lanes.end()


def _page(shown: Shown, bounds: Bounds, *, since: int, limit: int, beta: float) -> str:
    settings = shown.file.settings
    some = shown.outputs(since=since, limit=min(limit, page_of(settings)))
    more = bool(some) and some[-1].period < shown.periods
    made = Outputs(outputs=bounds.records(some, settings, beta), next=some[-1].period if more else None)
    return made.model_dump_json(exclude_none=True)


def _beta(confidence: float) -> float:
    """How often bounds may fail: in whole thousandths, rounded down, so that few are ever worked out.

    Below a thousandth it is the power of ten below.

    >>> [_beta(confidence) for confidence in (0.95, 0.8, 0.9512, 0.99995)]
    [0.05, 0.2, 0.048, 1e-05]
    """
    beta = 1 - failure(confidence, "confidence")
    step = _THOUSANDTH
    while beta < step:
        step /= 10
    return float(floor(beta / step) * step if step == _THOUSANDTH else step)
