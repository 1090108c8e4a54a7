"""The steward's application: events come in, a clock closes periods, publishing is started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from fastapi import FastAPI

from partita.service.settings import VERSION, ServiceSettings
from partita.service.steward.feeding import feeding_routes
from partita.service.steward.publishing import publishing_router
from partita.service.steward.streams import PeriodClock, StreamRegistry
from partita.service.web import secure
from partita.trusted.noise.system import Noise

_ABOUT: Final = """Make streams, feed them, and start publishing. Only for stewards and their feeders:
nothing here is for readers, who have an application of their own, in another process."""


def steward_app(
    settings: ServiceSettings, *, now: Callable[[], int] = time.time_ns, noise: Noise | None = None
) -> FastAPI:
    """The application, which opens nothing before it is started; `app.state.streams` are its streams.

    `noise` is injected by tests only: what is published then promises nothing.
    """
    streams = StreamRegistry(settings, now=now, noise=noise)
    app = FastAPI(
        title="Partita steward",
        version=VERSION,
        description=_ABOUT,
        lifespan=_lifespan(streams, now) if settings.streams is not None else None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.streams = streams
    if settings.streams is not None:
        app.include_router(feeding_routes(streams))
    if settings.specs is not None:
        app.include_router(publishing_router(settings))
    return secure(app, settings, side="steward", is_pan_private=streams.is_pan_private, now=now)


def _lifespan(
    streams: StreamRegistry, now: Callable[[], int]
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        """Streams are open while the application runs, and their periods end by the clock."""
        try:
            await asyncio.to_thread(streams.resume)
            with PeriodClock(streams, now=now).run():
                yield
        finally:
            await asyncio.to_thread(streams.close)

    return lifespan
