"""A whole service in one process: both applications, tokens, and a clock that only tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
from fastapi import FastAPI

from partita.public.streams import SECOND
from partita.service.reading.app import reading_app
from partita.service.reading.streams import StreamWatcher
from partita.service.settings import Limits, ServiceSettings
from partita.service.steward.app import steward_app
from partita.service.tokens import TokenFile
from partita.testing import ZeroNoise
from partita.trusted.noise.system import Noise

SCOPES = {"reader": "read", "other": "read", "gate": "feed", "door": "feed", "boss": "admin"}


class Service:
    """Streams with periods of their own, no noise unless told, and the delay of one second."""

    def __init__(self, folder: Path, noise: Noise, **named: Any) -> None:
        self.folder, self.secret = folder / "public", folder / "secret"
        self.folder.mkdir(exist_ok=True)
        tokens = TokenFile(folder / "tokens.json")
        self.tokens = {name: tokens.create(name, scopes=[scope]) for name, scope in SCOPES.items()}
        self.settings = ServiceSettings(
            folder=self.folder,
            streams=self.secret,
            tokens=folder / "tokens.json",
            limits=Limits(rate=10**6, burst=10**6, **named),
        )
        self.noise, self.nanoseconds = noise, 0
        self.listeners: list[asyncio.Task[None]] = []
        self.start()

    def start(self) -> None:
        """Build the applications, as after a restart."""
        self.steward = steward_app(self.settings, now=self.now, noise=self.noise)
        self.steward.state.streams.resume()
        vars(self).pop("reading", None)

    @cached_property
    def reading(self) -> FastAPI:
        """The reading side, built for whoever asks it first."""
        return reading_app(self.settings, now=self.now)

    @property
    def watch(self) -> StreamWatcher:
        """What the reading side sees of streams."""
        watch: StreamWatcher = self.reading.state.watch
        return watch

    def stop(self) -> None:
        """Close all streams, as when the service ends."""
        self.steward.state.streams.close()

    def now(self) -> int:
        """The moment that the test says."""
        return self.nanoseconds

    def at(self, seconds: float, *, tick: bool = True) -> None:
        """Move the clock; the steward closes what has ended, and the reading side looks."""
        self.nanoseconds = round(seconds * SECOND)
        if tick:
            self.steward.state.streams.tick()
        if "reading" in vars(self):
            self.watch.look()

    def create(self, name: str = "visits", **named: Any) -> httpx.Response:
        """Make a stream with periods of ten seconds from 1970 on."""
        body = {"name": name, "epsilon": 1, "period": 10, "start": 0, **named}
        return self.ask("POST", "/streams", by="boss", json=body)

    def feed(
        self, body: Any, key: str | None = "k1", *, name: str = "visits", by: str = "gate"
    ) -> httpx.Response:
        """Send a feeding request."""
        headers = {} if key is None else {"Idempotency-Key": key}
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        return self.ask("POST", f"/streams/{name}/events", by=by, headers=headers, **sent)

    def read(self, address: str, **named: Any) -> httpx.Response:
        """Ask the reading side."""
        return self.ask("GET", address, by="reader", **named)

    def values(self, name: str = "visits") -> list[Any]:
        """All values that readers are shown."""
        outputs = self.read(f"/streams/{name}/outputs.json").json()["outputs"]
        return [output.get("value", output.get("values")) for output in outputs]

    def ask(self, method: str, address: str, *, by: str | None, **named: Any) -> httpx.Response:
        """One request, by somebody who has a token: readers ask one side, all others the other one."""
        headers = dict(named.pop("headers", {}))
        if by is not None:
            headers["Authorization"] = f"Bearer {self.tokens[by]}"
        app = self.reading if by == "reader" else self.steward
        return asked(app, method, address, headers=headers, **named)


def asked(app: FastAPI, method: str, address: str, **named: Any) -> httpx.Response:
    """One request to an application, without a network."""

    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, address, **named)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, request()).result()


Starter: TypeAlias = Callable[..., Service]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Starter]:
    """Starts services, each in a folder of its own; all are stopped in the end."""
    services: list[Service] = []

    def starter(*, noise: Noise | None = None, **named: Any) -> Service:
        folder = tmp_path / f"service-{len(services)}"
        folder.mkdir()
        services.append(Service(folder, noise or ZeroNoise(), **named))
        return services[-1]

    yield starter
    for service in services:
        service.stop()


@pytest.fixture
def service(started: Starter) -> Service:
    """A service without noise."""
    return started()
