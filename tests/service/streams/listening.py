"""A listener to server-sent events without a network: what it was sent, and when."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from tests.service.streams.conftest import Service


class Listener:
    """Listens to a stream within an event loop, and remembers each piece with the moment it came at."""

    def __init__(
        self, service: Service, name: str = "visits", *, headers: dict[str, str] | None = None
    ) -> None:
        self._service, self._path = service, f"/streams/{name}/live"
        self._headers = {"Authorization": f"Bearer {service.tokens['reader']}", "Host": "localhost"}
        self._headers |= headers or {}
        self._left, self._begun = asyncio.Event(), False
        self.status, self.sent_headers = 0, b""
        self.pieces: list[tuple[int, bytes]] = []

    @property
    def text(self) -> str:
        """All that was sent."""
        return b"".join(piece for _, piece in self.pieces).decode()

    @property
    def periods(self) -> list[int]:
        """The ids of all events."""
        return [int(line[4:]) for line in self.text.splitlines() if line.startswith("id: ")]

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._service.reading(self._scope(), self._receive, self._send))
        self._service.listeners.append(self._task)
        await self.settled()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._left.set()
        await self._task

    async def settled(self) -> None:
        """Wait until all was sent that is to be sent before the next look."""
        while len(self._service.watch._notified._waiters) < sum(map(_listens, self._service.listeners)):
            await asyncio.sleep(0.001)

    async def _receive(self) -> dict[str, Any]:
        if not self._begun:
            self._begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.sent_headers = (
                message["status"],
                b"\n".join(map(b": ".join, message["headers"])),
            )
        elif message["body"]:
            self.pieces.append((self._service.nanoseconds, message["body"]))

    def _scope(self) -> dict[str, Any]:
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in self._headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }


def _listens(task: asyncio.Task[None]) -> bool:
    return not task.done()
