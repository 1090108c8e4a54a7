"""One connection of the HTTP server, with limits on what it may hold and for how long.

Uvicorn parses HTTP (with httptools), runs the app and ends connections that are idle. It does not limit the
size of headers with httptools (with h11, which is slower, it does), the time that a request takes to arrive,
the time that a reader takes to fetch an answer, or the connections of one address. Any byte ends its timer of
idle connections. So these limits are here, in a subclass that adds nothing else:

    header bytes        `header`, 64 KiB as uvicorn has it for h11, and 100 fields as nginx and Apache     431
    a request           `seconds` from its first byte to its last; single bytes do not prolong it          408
    no request          `idle` seconds from the end of the last one, whatever else is sent meanwhile    closed
    pipelined requests  16 that wait; no client that is in use sends any                                closed
    an answer           128 KiB must be fetched in every `slow_write` seconds                           closed
    unfetched answers   32 MiB for all connections of an address                                        closed
    connections         `connections` for the process                                                      503
    of one address      `per_address`; an IPv6 address counts as its /64                                   429

Behind a proxy on this machine all connections come from the proxy, so the limits of one address are the
proxy's business: see docs/deployment.md. No limit depends on what is fed or released, and nothing is logged.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import socket
import sys
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import import_module
from typing import Any, Final, final

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from partita.errors import PartitaError
from partita.service.access import network_of
from partita.service.errors import strip_folders
from partita.service.settings import Limits, ServiceSettings, is_loopback
from partita.service.web import Log

# ---- connections with limits ----

_FIELDS: Final = 100  # as in nginx and Apache
_PIPELINED: Final = 16  # requests that wait in a connection; clients in use send none
_LEAST_FETCHED: Final = 128 * 2**10
"""Bytes that must be fetched in `slow_write` seconds: 13 KB a second, a tenth of a poor mobile connection."""

_UNFETCHED: Final = 32 * 2**20
"""Bytes that wait for the readers of one address: four of the largest responses, which have about 8 MB."""

_FRAMING: Final = 8
"""Overhead of chunked bodies, as a factor: chunks of one byte take six bytes each."""


@final
@dataclass
class Connections:
    """All connections of a process, by where they come from; with `proxied`, this machine is a proxy."""

    limits: Limits
    proxied: bool = False
    number: int = 0
    by_address: dict[str, set[Any]] = field(default_factory=lambda: defaultdict(set))

    def address(self, client: tuple[str, int] | None) -> str | None:
        """Where a connection comes from; None for one that is not counted by address."""
        if client is None or (self.proxied and is_loopback(client[0])):
            return None
        return network_of(client[0])


def limited_protocol(limits: Limits, *, proxied: bool = False) -> type[asyncio.Protocol]:
    """The protocol class of a server whose connections share these limits."""
    connections = Connections(limits, proxied)

    class LimitedConnection(_LimitedConnection):
        """A connection with its shared limits."""

        shared = connections

    return LimitedConnection


class _LimitedConnection(HttpToolsProtocol):
    """A connection is idle or reads a request: a timer runs for either, and none while an answer is made."""

    shared: Connections

    _is_refused = False
    _address: str | None = None
    _timer: asyncio.TimerHandle | None = None
    _is_last_chance = False
    _is_reading = False
    _in_head = False
    _head = 0
    _fields = 0
    _raw = 0
    _content = 0
    _write_timer: asyncio.TimerHandle | None = None
    _unsent = 0

    # connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        shared, limits = self.shared, self.shared.limits
        shared.number += 1
        self._address = shared.address(self.client)
        here = set() if self._address is None else shared.by_address[self._address]
        here.add(self)
        if len(here) > limits.per_address:
            self._refuse(429, "TooManyConnections", f"an address may have {limits.per_address} connections")
        elif shared.number > limits.connections:
            self._refuse(503, "Busy", "the service has too many connections; try again later")
        else:
            self._begin_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_timer()
        self._end_write_timer()
        self.shared.number -= 1
        if self._address is not None:
            here = self.shared.by_address[self._address]
            here.discard(self)
            if not here:
                del self.shared.by_address[self._address]
        super().connection_lost(exc)

    # requests

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        was_reading = self._is_reading
        super().data_received(data)
        if was_reading and self._is_reading and not self._is_refused:
            self._raw += len(data)
            self._check_raw()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._is_refused:
            return
        self._is_reading = self._in_head = True
        self._head = self._fields = self._raw = self._content = 0
        self._begin_timer(self.shared.limits.seconds, self._too_slow)

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._fields += 1
        self._count_head(len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._is_refused:
            return
        if len(self.pipeline) >= _PIPELINED:
            self._refuse(429, "TooManyRequests", f"at most {_PIPELINED} requests may wait in a connection")
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._is_refused:
            return
        self._content += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_reading = False
        if self._is_refused:
            return
        super().on_message_complete()
        if self.cycle.response_complete:
            self._begin_idle()
        else:
            self._end_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_writing()
        elif not self._is_reading and not self.pipeline and self.cycle.response_complete:
            self._begin_idle()

    # limits of what comes in

    def _count_head(self, size: int) -> None:
        """Count what was parsed: the first line, headers, and trailers behind a body."""
        self._head += size
        limit = self.shared.limits.header
        if self._head > limit or self._fields > _FIELDS:
            self._refuse(431, "HeadersTooLarge", f"headers may have {limit} bytes and {_FIELDS} fields")

    def _check_raw(self) -> None:
        """Count what came after the first piece of a request, also what the parser has not understood yet."""
        limits, largest = self.shared.limits, self.shared.limits.largest_body
        if self._in_head and self._raw > limits.header:
            self._refuse(431, "HeadersTooLarge", f"headers may have {limits.header} bytes")
        elif self._content > largest + limits.header:
            self._refuse(413, "BodyTooLarge", f"a body may have {largest} bytes; send it in parts")
        elif self._raw - self._content > limits.header * 2 + _FRAMING * self._content:
            self._refuse(431, "HeadersTooLarge", "there is too much between the parts of the body")

    def _too_slow(self) -> None:
        if self.flow.read_paused:  # it waits for us: an answer is due before its bytes are read on
            self._begin_timer(self.shared.limits.seconds, self._too_slow)
            return
        self._refuse(408, "RequestTimeout", f"a request must arrive in {self.shared.limits.seconds} s")

    def _begin_idle(self) -> None:
        self._is_last_chance = False
        self._begin_timer(self.shared.limits.idle, self._idle_over)

    def _idle_over(self) -> None:
        """End the connection, but not while an answer is being fetched; its last part has as long again."""
        is_fetched = not self.transport.get_write_buffer_size()
        if is_fetched or self._is_last_chance:
            self.transport.abort()
        else:
            self._is_last_chance = not self.flow.write_paused
            self._begin_timer(self.shared.limits.idle, self._idle_over)

    def timeout_keep_alive_handler(self) -> None:
        """Do nothing: any byte ends uvicorn's own timer of idle connections, so `_begin_idle` replaces it."""

    def _begin_timer(self, seconds: float, then: Any) -> None:
        self._end_timer()
        self._timer = self.loop.call_later(seconds, then)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # limits of what goes out

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._address is not None and self._all_unsent() > _UNFETCHED:
            self.transport.abort()
        elif self._write_timer is None:
            self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._end_write_timer()

    def _all_unsent(self) -> int:
        here = self.shared.by_address[self._address or ""]
        return sum(each.transport.get_write_buffer_size() for each in here)

    def _watch_writing(self) -> None:
        """Look again after a while whether enough of the answer was fetched."""
        self._end_write_timer()
        self._unsent = self.transport.get_write_buffer_size()
        if self._unsent:
            self._write_timer = self.loop.call_later(self.shared.limits.slow_write, self._check_writing)

    def _check_writing(self) -> None:
        self._write_timer = None
        fetched = self._unsent - self.transport.get_write_buffer_size()
        if fetched < min(self._unsent, _LEAST_FETCHED):
            self.transport.abort()
        else:
            self._watch_writing()

    def _end_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    # refusals

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "InvalidRequest", "this is not HTTP as it should be")

    def _refuse(self, status: int, kind: str, message: str) -> None:
        """Answer with an error, if no answer has begun, and end the connection; nothing more is read."""
        if self._is_refused:
            return
        self._is_refused = True
        self._end_timer()
        if self._may_answer():
            self.transport.write(_answer(status, kind, message))
            self.transport.close()
            self._watch_writing()
        else:
            self.transport.abort()
        if self.cycle is not None:  # the app, if it still reads a body or makes an answer, is told
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _may_answer(self) -> bool:
        """Whether the client expects an answer to what it is sending, and none has begun."""
        if self.transport.is_closing():
            return False
        cycle: Any = self.cycle  # None before the first request, which uvicorn's types do not say
        if cycle is None:
            return True
        return bool(cycle.response_complete if self._in_head else not cycle.response_started)


def _answer(status: int, kind: str, message: str) -> bytes:
    """An error response in the form of the app, for requests that do not reach the app."""
    body = json.dumps({"error": {"kind": kind, "message": message}}).encode()
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + body


# ---- the process of one side ----

_READY: Final = b"ready\n"

_BUILDERS: Final[Mapping[str, tuple[str, str]]] = {
    "reading": ("partita.service.reading.app", "reading_app"),
    "steward": ("partita.service.steward.app", "steward_app"),
}
_SWITCH: Final = 0.0005
"""Seconds that a computing thread may hold the interpreter lock; Python's default is 0.005.

The event loop waits for it a few times in each response, so large work delays small questions by this."""

_NICENESS: Final = 10
"""Lower priority of the steward where both processes want the processor: readers come first."""


def main(side: str, handle: int) -> int:
    """Serve one side on a socket that listens already; the exit code."""
    log = Log(side, time.time_ns)
    _silence_libraries(log)
    _allow_files()
    sys.setswitchinterval(_SWITCH)
    if side == "steward":
        os.nice(_NICENESS)
    try:
        settings = ServiceSettings.from_json(sys.stdin.readline())
        server = _Server(_app(side, settings), settings, log)
    except PartitaError as error:
        log.error("start", message=strip_folders(str(error)))
        return 1
    threading.Thread(target=_end_with_lifeline, args=(server,), daemon=True).start()
    server.run([socket.socket(fileno=handle)])
    code = 0 if server.started else 1
    if side == "reading":
        # Python would wait for threads that still work, and their results are not needed.
        os._exit(code)
    return code


def _app(side: str, settings: ServiceSettings) -> FastAPI:
    module, name = _BUILDERS[side]
    build: Callable[[ServiceSettings], FastAPI] = getattr(import_module(module), name)
    return build(settings)


@final
class _Server(uvicorn.Server):
    """Uvicorn that reports when it answers, and ends live streams before it stops."""

    def __init__(self, app: FastAPI, settings: ServiceSettings, log: Log) -> None:
        super().__init__(_config(_StartupErrors(app, log), settings))
        self.server_state = UncountedState()
        self._ending = app.state.ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            os.write(sys.stdout.fileno(), _READY)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending.set()
        await super().shutdown(sockets)


@final
class UncountedState(ServerState):
    """The state of a server without the number of requests, which would count feeding."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, 0 if name == "total_requests" else value)


@final
class _StartupErrors:
    """An app that logs the reason if it cannot start and the exception is one of ours."""

    def __init__(self, app: ASGIApp, log: Log) -> None:
        self._app, self._log = app, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except PartitaError as error:
            self._log.error("start", message=strip_folders(str(error)))
            raise


def _config(app: ASGIApp, settings: ServiceSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        http=limited_protocol(settings.limits, proxied=settings.proxied),
        lifespan="on",
        limit_concurrency=settings.limits.connections + 1,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=settings.proxied,
        forwarded_allow_ips="127.0.0.1,::1",
        timeout_graceful_shutdown=settings.limits.grace,
    )


def _allow_files() -> None:
    """Raise the soft limit of open files to the hard limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _end_with_lifeline(server: uvicorn.Server) -> None:
    """Stop the server when the pipe of the supervisor ends."""
    while sys.stdin.readline():
        pass
    server.should_exit = True


def _silence_libraries(log: Log) -> None:
    """Keep messages of libraries out of the log, as they could quote what was fed; log types only."""

    def unexpected(kind: type[BaseException] | None) -> None:
        log.error("unexpected", kind="unknown" if kind is None else kind.__name__)

    def in_thread(found: Any) -> None:
        unexpected(found.exc_type)

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.excepthook = lambda kind, *_: unexpected(kind)
    threading.excepthook = sys.unraisablehook = in_thread


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
