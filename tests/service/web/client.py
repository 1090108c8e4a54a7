"""A small app behind everything that stands around one, and a way to ask it in this process."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp

from partita.errors import InvalidParameter, StreamError
from partita.service.access import Side
from partita.service.settings import ServiceSettings
from partita.service.web import secure

CANARY = "Quetzalcoatlus"
"""A word that no answer, header, log or metric may repeat."""


class Fed(BaseModel):
    """A body with a number."""

    model_config = ConfigDict(extra="forbid")

    count: int


@dataclass
class Clock:
    """A clock that stands still until it is moved; in nanoseconds."""

    time: int = 1_700_000_000 * 10**9

    def __call__(self) -> int:
        return self.time

    def pass_seconds(self, seconds: float) -> None:
        self.time += int(seconds * 10**9)


@dataclass(frozen=True)
class Client:
    """Asks an app from an address, with or without a token."""

    app: ASGIApp
    token: str | None = None
    address: str = "192.0.2.1"
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, method: str, path: str, **options: Any) -> httpx.Response:
        return asyncio.run(self._ask(method, path, **options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self("GET", path, **options)

    async def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        bearer = {} if self.token is None else {"authorization": f"Bearer {self.token}"}
        headers = {**bearer, **self.headers, **options.pop("headers", {})}
        transport = httpx.ASGITransport(app=self.app, client=(self.address, 4711))
        base = options.pop("base", "http://localhost")
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.request(method, path, headers=headers, **options)


def messages(built: ASGIApp, path: str, *, headers: list[tuple[bytes, bytes]]) -> list[dict[str, Any]]:
    """All that an app sends for a GET, unfinished answers too; the headers are taken as they are."""
    sent: list[dict[str, Any]] = []

    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def ask() -> None:
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
        await built({**scope, "scheme": "http", "client": ("192.0.2.1", 1)}, receive, send)

    asyncio.run(ask())
    return sent


def kind(response: httpx.Response) -> tuple[int, str]:
    """The status of an error and its kind."""
    return response.status_code, response.json()["error"]["kind"]


def app(
    folder: Path,
    *,
    side: Side = "reading",
    clock: Callable[[], int] | None = None,
    releases: Callable[[], int] | None = lambda: 3,
    is_pan_private: Callable[[str], bool] = lambda _: False,
    **settings: Any,
) -> FastAPI:
    """An app with a few routes, one for each way to go wrong."""
    built = FastAPI()
    _add_routes(built)
    chosen = ServiceSettings(folder=folder, **{"public": True, **settings})
    watched = None if side == "steward" else releases
    return secure(
        built, chosen, side=side, releases=watched, is_pan_private=is_pan_private, now=clock or Clock()
    )


def _add_routes(built: FastAPI) -> None:
    @built.get("/releases/{name}/count")
    async def count(name: str, where: str = "") -> dict[str, int]:
        return {"value": len(name) + len(where)}

    @built.post("/releases/{name}/counts")
    async def counts(name: str, request: Request) -> dict[str, int]:
        return {"size": len(await request.body())}

    @built.post("/streams/{id}/events")
    async def feed(id: str, fed: Fed, request: Request) -> dict[str, Any]:
        if id == "broken":
            raise RuntimeError(CANARY)
        return {"feeder": request.state.caller.name, "count": fed.count}

    @built.post("/streams")
    async def create() -> dict[str, str]:
        return {"created": "yes"}

    @built.post("/releases/{name}/sum")
    async def total(name: str, fed: Fed) -> dict[str, int]:
        return {"value": fed.count}

    @built.get("/broken")
    async def broken() -> None:
        try:
            raise KeyError(CANARY)
        except KeyError as cause:
            raise RuntimeError(f"{CANARY} in /srv/{CANARY}/file", CANARY) from cause

    @built.get("/broken/late")
    async def broken_late() -> Any:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"begun"
            raise RuntimeError(CANARY)

        return StreamingResponse(pieces())

    @built.get("/refused")
    async def refused() -> None:
        raise InvalidParameter("path", "must exist", given=f"/srv/{CANARY} dir/x.db", fix="check it")

    @built.get("/closed")
    async def closed() -> None:
        raise StreamError(f"counter file '/srv/{CANARY}.db' cannot be written; check the disk")


def logged(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is written to standard error from now on."""
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    return written
