"""The reading process as one app, made without touching the network."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fastapi import FastAPI

from partita.service.reading.answering import Answering
from partita.service.reading.asking import question_routes
from partita.service.reading.catalogue import Catalogue
from partita.service.reading.counts import BODIES, count_routes
from partita.service.reading.document import document
from partita.service.reading.downloads import download_routes
from partita.service.reading.pages import pages_router
from partita.service.reading.releases import release_routes
from partita.service.reading.replies import Replies
from partita.service.reading.streams import stream_routes
from partita.service.reading.threads import Lanes
from partita.service.reading.views import view_routes
from partita.service.reading.watching import Watch
from partita.service.settings import Settings
from partita.service.web.secured import secured
from partita.service.web.version import VERSION

__all__ = ["reading_app"]

_SAYS: Final = (
    "Releases of differentially private statistics, and live counts. Every question is free: "
    "what is served is public from the first byte to the last, and no answer reads any data."
)


def reading_app(settings: Settings, *, now: Callable[[], int] = time.time_ns) -> FastAPI:
    """The app that readers talk to; `now` is its only clock.

    The routes that are asked most often come first, and the pages last: their addresses begin like others.
    """
    app = FastAPI(
        title="Partita",
        summary="Private statistics",
        description=_SAYS,
        version=VERSION,
        docs_url=None,
        redoc_url=None,
    )
    lanes = Lanes()
    catalogue = Catalogue(settings.folder, lanes.opening)
    replies = Replies.made(lanes, public=settings.public)
    answering, watch = Answering(settings.limits), Watch(settings, now=now)
    app.state.watch = watch
    app.include_router(question_routes(catalogue, replies, answering))
    app.include_router(count_routes(catalogue, lanes, settings.limits))
    app.include_router(view_routes(catalogue, replies, answering))
    app.include_router(download_routes(catalogue, replies, settings.limits))
    app.include_router(release_routes(catalogue, replies, answering, watch))
    app.include_router(stream_routes(watch, lanes, settings.limits))
    secured(app, settings, side="reading", releases=catalogue.size, now=now)
    app.include_router(pages_router())
    document(app, BODIES)
    return app
