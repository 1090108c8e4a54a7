"""The server below the app: what it remembers, how long it waits, how much it may open."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from starlette.responses import Response
from uvicorn.server import ServerState

from partita.service import server
from partita.service.server import limited_protocol
from partita.service.settings import Limits, ServiceSettings
from partita.service.web import Log

HEAD, REST = b"GET / HTTP/1.1\r\nHost: local", b"host\r\n\r\n"
SECONDS = 30
LIMITS = Limits(seconds=SECONDS, idle=20)


class Transport(asyncio.Transport):
    """A connection that knows what was said to it, and whether it was ended."""

    def __init__(self) -> None:
        super().__init__()
        self.said, self.ended = b"", False

    def write(self, data: Any) -> None:
        self.said += data

    def is_closing(self) -> bool:
        return self.ended

    def close(self) -> None:
        self.ended = True

    abort = close

    def get_write_buffer_size(self) -> int:
        return 0


class Connection:
    """A connection to an app that answers everything; its timers run when the test says."""

    def __init__(self, state: ServerState) -> None:
        self.state, self.transport, self.timers = state, Transport(), list[Any]()
        config = uvicorn.Config(Response(), log_config=None)
        loop = asyncio.get_running_loop()
        loop.call_later = self._later  # type: ignore[method-assign, assignment]
        self.protocol: Any = limited_protocol(LIMITS)(config, state, {}, loop)  # type: ignore[call-arg]
        self.protocol.connection_made(self.transport)

    def _later(self, delay: float, act: Callable[..., object], *given: Any, **_: Any) -> asyncio.TimerHandle:
        self.timers.append(asyncio.TimerHandle(delay, lambda: act(*given), (), asyncio.get_running_loop()))
        return self.timers[-1]  # type: ignore[no-any-return]

    async def send(self, data: bytes) -> None:
        """Send something, and wait for what it leads to."""
        self.protocol.data_received(data)
        await asyncio.gather(*self.state.tasks)

    def is_ended_after(self, seconds: float) -> bool:
        """Whether a timer of so many seconds runs; then it has run."""
        for timer in self.timers:
            if timer.when() == seconds and not timer.cancelled():
                timer._run()
        return self.transport.ended


def connected(act: Callable[[Connection], Any], state: ServerState | None = None) -> Any:
    """What an act does with a new connection."""

    async def run() -> Any:
        return await act(Connection(state or ServerState()))

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("pieces", "ended"),
    [
        ((HEAD,), True),
        ((HEAD, REST), False),
        ((HEAD + REST, HEAD), True),
        ((HEAD + REST, HEAD, REST), False),
    ],
)
def test_headers_come_in_time_or_not_at_all(pieces: tuple[bytes, ...], ended: bool) -> None:
    """Also those of a second request."""

    async def act(connection: Connection) -> tuple[bool, int]:
        for piece in pieces:
            await connection.send(piece)
        return connection.is_ended_after(SECONDS), connection.transport.said.count(b"200 OK")

    assert connected(act) == (ended, pieces.count(REST) + pieces.count(HEAD + REST))


@pytest.mark.parametrize(("state", "count"), [(server.UncountedState, 0), (ServerState, 2)])
def test_no_number_of_requests_is_kept(state: type[ServerState], count: int) -> None:
    """A server would count them by itself, and so count what was fed."""

    async def act(connection: Connection) -> int:
        for _ in range(2):
            await connection.send(HEAD + REST)
        return connection.state.total_requests

    assert connected(act, state()) == count


def test_a_server_is_one_that_does_not_count(tmp_path: Any) -> None:
    """It has the limits of the settings, too."""
    settings = ServiceSettings(folder=tmp_path, public=True)
    built = server._Server(server._app("reading", settings), settings, Log("reading", lambda: 0))

    assert type(built.server_state) is server.UncountedState
    assert built.config.limit_concurrency == settings.limits.connections + 1


def test_a_process_may_open_what_the_system_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many systems give a process 1,024 files at first, and let it ask for more."""
    asked: list[Any] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 524_288))
    monkeypatch.setattr(resource, "setrlimit", lambda *given: asked.append(given))
    server._allow_files()

    assert asked == [(resource.RLIMIT_NOFILE, (524_288, 524_288))]
