"""The page: one document for every address that people open, and the few files it is made of.

The document is the same whatever the name in the address: it asks for the JSON twin of its address, and that
says what is there. So nothing here looks at a release, and nothing needs a token.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response

from partita.service.web.errors import not_found

__all__ = ["STATIC", "pages_router"]

STATIC: Final = Path(__file__).parent.parent / "static"
"""Where the files of the page are; there is no build step."""

_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
_ADDRESSES: Final = ("/", "/releases/{name}", "/releases/{name}/view", "/streams/{name}")
_DATA: Final = (".json", ".csv", ".txt", ".bib", ".parquet")


def pages_router() -> APIRouter:
    """The addresses of the page; to be included after those of the data, which share their beginnings."""
    router = APIRouter(include_in_schema=False)
    for address in _ADDRESSES:
        router.add_api_route(address, _page, methods=["GET", "HEAD"])
    router.add_api_route("/static/{file}", _file, methods=["GET", "HEAD"])
    router.add_api_route("/favicon.ico", _no_icon, methods=["GET", "HEAD"])
    return router


async def _page(request: Request, name: str = "") -> Response:
    if name.endswith(_DATA):
        raise not_found("page")
    return _served("index.html", request)


async def _file(request: Request, file: str) -> Response:
    if file not in _files():
        raise not_found("file")
    return _served(file, request)


async def _no_icon() -> Response:
    return Response(status_code=204)


def _served(file: str, request: Request) -> Response:
    """A file of the page; browsers ask each time whether it is still the same."""
    content, tag = _files()[file]
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_KINDS[Path(file).suffix], headers=headers)


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    """The content of each file and what tells it from others, read once."""
    contents = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _KINDS}
    return {name: (content, _tag(content)) for name, content in contents.items()}


def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'
