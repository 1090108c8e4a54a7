"""One process that serves one side of the service, until it is told to end or nobody holds its lifeline.

It is started by `partita.service.process` with a listening socket and a pipe as standard input. The
settings come through the pipe in one line; when the pipe ends, so does the process, however its
supervisor ended. One line on standard output says that it answers.
"""

from __future__ import annotations

import logging
import os
import resource
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, final

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from partita.errors import PartitaError
from partita.service.settings import Settings
from partita.service.web.errors import without_folders
from partita.service.web.logs import Log
from partita.service.web.protocol import guarded

__all__ = ["main"]

_READY: Final = b"ready\n"

_BUILDERS: Final[Mapping[str, tuple[str, str]]] = {
    "reading": ("partita.service.reading.app", "reading_app"),
    "steward": ("partita.service.steward.app", "steward_app"),
}
_SWITCH: Final = 0.0005
"""Seconds for which a thread that computes may make the others wait; the usual 0.005 are ten times as long.
The event loop waits a few times for each answer, so this is what large work costs small questions."""

_NICENESS: Final = 10
"""Readers come first: by how much the steward steps back where both want the processor."""


def main(side: str, handle: int) -> int:
    """Serve one side on a socket that listens already; the exit code."""
    log = Log(side, time.time_ns)
    _hush(log)
    _allow_files()
    sys.setswitchinterval(_SWITCH)
    if side == "steward":
        os.nice(_NICENESS)
    try:
        settings = Settings.from_json(sys.stdin.readline())
        server = _Server(_app(side, settings), settings, log)
    except PartitaError as error:
        log.error("start", message=without_folders(str(error)))
        return 1
    threading.Thread(target=_end_with_lifeline, args=(server,), daemon=True).start()
    server.run([socket.socket(fileno=handle)])
    code = 0 if server.started else 1
    if side == "reading":
        # Python would wait for threads that still work, and nothing that they do is wanted any more.
        os._exit(code)
    return code


def _app(side: str, settings: Settings) -> FastAPI:
    module, name = _BUILDERS[side]
    build: Callable[[Settings], FastAPI] = getattr(import_module(module), name)
    return build(settings)


@final
class _Server(uvicorn.Server):
    """Uvicorn that says when it answers, and tells whoever listens for long that it is about to end."""

    def __init__(self, app: FastAPI, settings: Settings, log: Log) -> None:
        super().__init__(_config(_Spoken(app, log), settings))
        self.server_state = Uncounted()
        self._ending = app.state.ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            os.write(sys.stdout.fileno(), _READY)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending.set()
        await super().shutdown(sockets)


@final
class Uncounted(ServerState):
    """What a server knows of its connections, but not of how many requests: that would count feeding."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, 0 if name == "total_requests" else value)


@final
class _Spoken:
    """An app that says in a line why it could not begin, if the reason is one of ours."""

    def __init__(self, app: ASGIApp, log: Log) -> None:
        self._app, self._log = app, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except PartitaError as error:
            self._log.error("start", message=without_folders(str(error)))
            raise


def _config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        http=guarded(settings.limits, proxied=settings.proxied),
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
    """Open as many connections as the system lets this process have, not as many as it is given at first."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _end_with_lifeline(server: uvicorn.Server) -> None:
    """Wait for the end of the pipe, which nothing is written to any more."""
    while sys.stdin.readline():
        pass
    server.should_exit = True


def _hush(log: Log) -> None:
    """Nothing that a library says may reach a log: it could quote what was fed. Types may."""

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
