"""Requests measured, for logs and metrics of public quantities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from partita.service.web.logs import Log, rounded
from partita.service.web.metrics import Metrics

__all__ = ["Observed", "template"]

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@final
@dataclass(frozen=True)
class Observed:
    """Notes every request but those that `hidden` says leave no trace: when events come is secret.

    It is asked when a request is over, and has been given a caller and a route.

    The clock stops when an answer begins, so who listens for hours is not taken for slow.
    """

    app: ASGIApp
    log: Log
    metrics: Metrics | None
    hidden: Callable[[Scope], bool]
    addresses: bool
    now: Callable[[], int]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, answer = self.now(), _Answer(0, 0)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status, answer.time = message["status"], self.now() - start
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            if not self.hidden(scope):
                self._note(scope, answer)

    def _note(self, scope: Scope, answer: _Answer) -> None:
        route = template(scope) or "none"
        if self.metrics is not None:
            self.metrics.read(route=route, status=answer.status, nanoseconds=answer.time)
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        asked = {"address": scope["client"][0]} if self.addresses and scope.get("client") else {}
        took = rounded(answer.time)
        self.log.info("request", method=method, route=route, status=answer.status, milliseconds=took, **asked)


@final
@dataclass
class _Answer:
    """The status of an answer, 0 while there is none, and after how long it began."""

    status: int
    time: int


def template(scope: Scope) -> str | None:
    """The route of a request as it was declared, or the name of what answers it; never its path."""
    declared = getattr(scope.get("route"), "path", None)
    return declared or getattr(scope.get("endpoint"), "__name__", None)
