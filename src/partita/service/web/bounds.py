"""How long a body may be, in one piece or in many, and how long a request may take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from partita.service.settings import Limits
from partita.service.web.errors import Refusal

__all__ = ["Bounds"]


@final
@dataclass(frozen=True)
class Bounds:
    """Reads no more of a body than is allowed, whatever its header says.

    The time of a request runs until its answer begins, its body included: who sends slowly is cut off,
    and who listens to a long answer is not. `timeout` is injected by tests only.
    """

    app: ASGIApp
    limits: Limits
    timeout: Callable[[float], asyncio.Timeout] = asyncio.timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = _Body(receive, largest=self._largest(scope["path"]))
        body.check_announced(scope)
        try:
            async with self.timeout(self.limits.seconds) as clock:

                async def begun(message: Message) -> None:
                    body.check()
                    clock.reschedule(None)
                    await send(message)

                await self.app(scope, body.receive, begun)
        except TimeoutError:
            if not clock.expired():
                raise
            raise Refusal(503, "TooSlow", f"the request took longer than {self.limits.seconds} s") from None

    def _largest(self, path: str) -> int:
        if path.endswith("/counts"):
            return self.limits.counts_body
        return self.limits.events_body if path.endswith("/events") else self.limits.body


@final
class _Body:
    """The body of a request, counted as it comes.

    Frameworks turn what is raised while they read into errors of their own, so one that is too long is
    remembered, and refused again when the answer is about to begin.
    """

    def __init__(self, receive: Receive, *, largest: int) -> None:
        self._receive, self._largest, self._size = receive, largest, 0

    def check_announced(self, scope: Scope) -> None:
        """Refuse by the length that the header promises, before anything is read."""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                self._size = max(self._size, int(value[:20]))
        self.check()
        self._size = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        self.check()
        return message

    def check(self) -> None:
        if self._size > self._largest:
            raise Refusal(
                413, "BodyTooLarge", f"a body may have {self._largest} bytes here; send it in parts"
            )
