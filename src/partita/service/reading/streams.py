"""Streams for readers: what was promised, the last output with its bounds, history, and live updates.

All of it is made of public files, as the last look at them found them: see `watching`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Final

from fastapi import APIRouter, FastAPI, Header, Query
from fastapi.responses import StreamingResponse

from partita.exact import failure
from partita.service.reading.live import EventStream, Live
from partita.service.reading.stream_records import (
    PAGE,
    Bounds,
    Outputs,
    Stream,
    StreamEntry,
    csv_lines,
    described,
    entry,
)
from partita.service.reading.watching import Watch
from partita.service.settings import Limits
from partita.service.web.errors import ERRORS

__all__ = ["stream_entries", "stream_routes"]

_LARGEST: Final = 2**62

Confidence = Annotated[float, Query(description="how sure the bounds are, between 0 and 1")]
Since = Annotated[int, Query(ge=0, le=_LARGEST, description="only what comes after this period")]
From = Annotated[int | None, Query(ge=0, le=_LARGEST, description="send what comes after this period first")]
Resume = Annotated[int | None, Header(ge=0, le=_LARGEST, description="the last event that was received")]
Limit = Annotated[int, Query(ge=1, le=PAGE, description="at most so many periods")]


def stream_entries(watch: Watch) -> list[StreamEntry]:
    """The streams for the catalogue; one output of each is read."""
    return [entry(name, shown) for name, shown in watch.streams().items()]


def stream_routes(watch: Watch, limits: Limits) -> APIRouter:
    """The routes about streams; looks go on for as long as the application runs."""
    bounds = Bounds()
    live, delay = Live(watch, bounds, most=limits.subscribers), float(watch.delay)
    router = APIRouter(tags=["streams"], responses=ERRORS, lifespan=_looking(watch))

    @router.get("/streams/{name}.json", operation_id="stream")
    def stream(name: str, confidence: Confidence = 0.95) -> Stream:
        """A stream: its guarantee, its periods, and its last output with bounds."""
        return described(watch[name], bounds, delay=delay, beta=_beta(confidence))

    @router.get(
        "/streams/{name}/outputs.json", operation_id="stream_outputs", response_model_exclude_none=True
    )
    def outputs(name: str, since: Since = 0, limit: Limit = PAGE, confidence: Confidence = 0.95) -> Outputs:
        """What was published, a page at a time."""
        shown, beta = watch[name], _beta(confidence)
        some = shown.outputs(since=since, limit=limit)
        more = bool(some) and some[-1].period < shown.periods
        records = bounds.records(some, shown.file.settings, beta)
        return Outputs(outputs=records, next=some[-1].period if more else None)

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
        return live.listen(name, since if last_event_id is None else last_event_id)

    return router


def _looking(watch: Watch) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        """Look by the clock while the application runs; when it is told to end, so are all who listen."""
        await asyncio.to_thread(watch.look)
        tasks = [asyncio.create_task(work) for work in (watch.keep_looking(), _end(app, watch))]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    return lifespan


async def _end(app: FastAPI, watch: Watch) -> None:
    await app.state.ending.wait()
    watch.end()


def _beta(confidence: float) -> float:
    return float(1 - failure(confidence, "confidence"))
