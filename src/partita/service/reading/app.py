"""The reading application: the routes of the data, and the page. Building it opens no socket."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response

from partita.service.errors import not_found
from partita.service.reading.batches import BODY_MODELS, count_routes
from partita.service.reading.catalogue import Catalogue, Replies, set_openapi
from partita.service.reading.questions import Answerer, question_routes
from partita.service.reading.releases import download_routes, release_routes
from partita.service.reading.streams import StreamWatcher, stream_routes
from partita.service.reading.views import view_routes
from partita.service.reading.work import Lanes
from partita.service.settings import VERSION, ServiceSettings
from partita.service.web import secure

# ---- the page ----

STATIC: Final = Path(__file__).parent.parent / "static"
"""The files of the page; there is no build step."""

_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
_ADDRESSES: Final = ("/", "/releases/{name}", "/releases/{name}/view", "/streams/{name}", "/docs")
_DATA: Final = (".json", ".csv", ".txt", ".bib", ".parquet")


def pages_router() -> APIRouter:
    """The addresses of the page; include it after the data routes, whose paths have the same prefixes.

    The page is the same whatever the name in the address: it asks for the JSON of its address. So nothing
    here looks at a release, and nothing needs a token.
    """
    router = APIRouter(include_in_schema=False)
    for address in _ADDRESSES:
        router.add_api_route(address, _page, methods=["GET", "HEAD"])
    router.add_api_route("/releases/{name}/embed", _embedded, methods=["GET", "HEAD"])
    router.add_api_route("/static/{file}", _file, methods=["GET", "HEAD"])
    router.add_api_route("/favicon.ico", _no_icon, methods=["GET", "HEAD"])
    return router


async def _page(request: Request, name: str = "") -> Response:
    if name.endswith(_DATA):
        raise not_found("page")
    return _respond_with("index.html", request)


async def _embedded(request: Request, name: str) -> Response:
    """One chart, for a frame in another page."""
    return _respond_with("embed.html", request)


async def _file(request: Request, file: str) -> Response:
    if file not in _files():
        raise not_found("file")
    return _respond_with(file, request)


async def _no_icon() -> Response:
    return Response(status_code=204)


def _respond_with(file: str, request: Request) -> Response:
    """A file of the page; browsers revalidate it each time."""
    content, tag = _files()[file]
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_KINDS[Path(file).suffix], headers=headers)


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    """The content and the tag of each file, read once."""
    contents = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _KINDS}
    tags = {name: hashlib.sha256(content).hexdigest()[:32] for name, content in contents.items()}
    return {name: (content, f'"{tags[name]}"') for name, content in contents.items()}


# ---- the application ----

_DESCRIPTION: Final = (
    "Releases of differentially private statistics, and live counts. Every question is free: "
    "what is served is public from the first byte to the last, and no answer reads any data."
)


def reading_app(settings: ServiceSettings, *, now: Callable[[], int] = time.time_ns) -> FastAPI:
    """The app that readers talk to; `now` is its only clock.

    The most frequent routes come first, and the pages last: their paths are prefixes of others.
    """
    app = FastAPI(
        title="Partita",
        summary="Private statistics",
        description=_DESCRIPTION,
        version=VERSION,
        docs_url=None,
        redoc_url=None,
    )
    lanes = Lanes()
    catalogue = Catalogue(settings.folder, lanes.opening)
    replies = Replies.create(lanes, public=settings.public)
    answerer, watch = Answerer(settings.limits), StreamWatcher(settings, now=now)
    app.state.watch = watch
    app.include_router(question_routes(catalogue, replies, answerer))
    app.include_router(count_routes(catalogue, lanes, settings.limits))
    app.include_router(view_routes(catalogue, replies, answerer))
    app.include_router(download_routes(catalogue, replies, settings.limits))
    app.include_router(release_routes(catalogue, replies, answerer, watch))
    app.include_router(stream_routes(watch, lanes, settings.limits))
    secure(app, settings, side="reading", releases=lambda: len(catalogue.names()), now=now)
    app.include_router(pages_router())
    set_openapi(app, BODY_MODELS)
    return app
