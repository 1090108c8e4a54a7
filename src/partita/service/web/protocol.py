"""HTTP with a limit for headers that come slowly; for bodies there is one already, see `bounds`."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["timed"]


def timed(seconds: float) -> type[asyncio.Protocol]:
    """The protocol of a server which ends connections that have sent no whole headers in so many seconds."""

    class Timed(HttpToolsProtocol):
        """A timer runs from a connection, or the first byte of a request, until the headers are whole."""

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._begin()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._begin()

        def on_headers_complete(self) -> Any:
            self._end()
            return super().on_headers_complete()

        def _begin(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(seconds, self.transport.close)

        def _end(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Timed
