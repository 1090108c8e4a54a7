"""What one connection may hold and for how long, by a clock and a transport of the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from partita.service.server import limited_protocol
from partita.service.settings import Limits

LIMITS = Limits(
    header=1_000,
    body=1_000,
    counts_body=10_000,
    events_body=10_000,
    seconds=30,
    idle=10,
    slow_write=20,
    per_address=3,
    connections=5,
)
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n"
KIB = 2**10


class Clock:
    """Timers that run when the test lets time pass; tasks are those of the running loop."""

    def __init__(self) -> None:
        self.now, self.timers = 0.0, list[Any]()

    def call_later(self, delay: float, act: Callable[[], object]) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(self.now + delay, act, (), asyncio.get_running_loop())
        self.timers.append(timer)
        return timer

    def create_task(self, work: Any) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(work)

    def call_soon(self, *_: Any, **__: Any) -> None:
        return None

    def get_debug(self) -> bool:
        return False

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass, second by second."""
        for _ in range(int(seconds)):
            self.now += 1
            due = [timer for timer in self.timers if timer.when() <= self.now]
            self.timers = [timer for timer in self.timers if timer not in due]
            for timer in due:
                if not timer.cancelled():
                    timer._run()


class Transport(asyncio.Transport):
    """A peer that takes what the test says: `unsent` is what it has not taken."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 4711), "sockname": ("127.0.0.1", 8000)})
        self.said, self.unsent, self.state, self.paused = b"", 0, "open", False

    def write(self, data: Any) -> None:
        self.said += data

    def is_closing(self) -> bool:
        return self.state != "open"

    def close(self) -> None:
        self.state = "closed" if self.state == "open" else self.state

    def abort(self) -> None:
        self.state = "aborted"

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return self.unsent


class Server:
    """Connections of one process."""

    def __init__(self, app: Any, limits: Limits = LIMITS, *, proxied: bool = False) -> None:
        self.clock, self.state = Clock(), ServerState()
        self.config = uvicorn.Config(app, log_config=None)
        self.protocol = limited_protocol(limits, proxied=proxied)

    def connect(self, address: str = "192.0.2.1") -> Connection:
        return Connection(self, Transport(address))


class Connection:
    """One of them."""

    def __init__(self, server: Server, transport: Transport) -> None:
        self.server, self.transport = server, transport
        self.protocol: Any = server.protocol(server.config, server.state, {}, server.clock)  # type: ignore[call-arg]
        self.protocol.connection_made(transport)

    async def send(self, data: bytes) -> None:
        """Send something, and let tasks run for a while."""
        self.protocol.data_received(data)
        for _ in range(10):
            await asyncio.sleep(0)

    @property
    def answers(self) -> list[int]:
        """The statuses of what was answered."""
        return [int(part[:3]) for part in self.transport.said.split(b"HTTP/1.1 ")[1:]]

    @property
    def error(self) -> dict[str, str]:
        """The last answer, which is an error."""
        found: dict[str, dict[str, str]] = json.loads(self.transport.said.rpartition(b"\r\n\r\n")[2])
        return found["error"]


async def ok(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that answers at once, without reading a body."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


async def reads(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that reads the body first."""
    while (await receive()).get("more_body"):
        pass
    await ok(scope, receive, send)


def lived(act: Callable[[Server], Awaitable[Any]], app: Any = ok, **options: Any) -> Any:
    """What an act does with a server."""

    async def run() -> Any:
        return await act(Server(app, **options))

    return asyncio.run(run())


@pytest.mark.parametrize(
    "piece",
    [b"x" * 100, b"X-Name: value\r\n", b"X-Name: " + b"v" * 50 + b"\r\n"],
    ids=["one", "many", "long"],
)
def test_headers_end(piece: bytes) -> None:
    """Headers without end, in one field or in many, are refused after the limit and one piece."""

    async def act(server: Server) -> tuple[Any, ...]:
        connection, sent = server.connect(), 0
        await connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        while not connection.transport.is_closing() and sent < 100_000:
            await connection.send(piece)
            sent += len(piece)
        return connection.answers, connection.error["kind"], sent <= 1_000 + 2 * len(piece)

    assert lived(act) == ([431], "HeadersTooLarge", True)


def test_headers_in_one_piece_have_the_same_limit() -> None:
    """A whole request with too long headers is not given to the app; one of the allowed size is."""

    async def act(server: Server) -> list[list[int]]:
        answers = []
        for size in (900, 1_000):
            connection = server.connect()
            await connection.send(GET[:-2] + b"X-Long: " + b"v" * size + b"\r\n\r\n")
            answers.append(connection.answers)
        return answers

    assert lived(act) == [[200], [431]]


def test_fields_are_counted() -> None:
    """A hundred headers are enough."""

    async def act(server: Server) -> list[list[int]]:
        answers = []
        for number in (99, 100):
            connection = server.connect()
            await connection.send(GET[:-2] + b"a: b\r\n" * number + b"\r\n")
            answers.append(connection.answers)
        return answers

    assert lived(act, limits=Limits(header=10_000)) == [[200], [431]]


@pytest.mark.parametrize("piece", [b"x" * 100, b"a: b\r\n"], ids=["one", "many"])
def test_trailers_end(piece: bytes) -> None:
    """What comes behind a body in chunks is counted, too."""

    async def act(server: Server) -> tuple[bool, bool]:
        connection, sent = server.connect(), 0
        await connection.send(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx: "
        )
        while not connection.transport.is_closing() and sent < 100_000:
            await connection.send(piece)
            sent += len(piece)
        return connection.transport.is_closing(), sent <= 3_000

    assert lived(act, app=reads) == (True, True)


def test_a_request_has_its_time_from_the_first_byte() -> None:
    """Single bytes do not prolong it; after it there is a 408 as JSON, and the connection ends."""

    async def act(server: Server) -> tuple[Any, ...]:
        connection = server.connect()
        for number, byte in enumerate(GET):
            if connection.transport.is_closing():
                return number, connection.answers, connection.error["kind"]
            await connection.send(bytes([byte]))
            server.clock.pass_seconds(2)
        return ()

    assert lived(act) == (15, [408], "RequestTimeout")


def test_a_body_has_no_time_of_its_own() -> None:
    """Headers and body together have it, and the app is told that the client is gone."""

    async def act(server: Server) -> tuple[Any, ...]:
        connection = server.connect()
        await connection.send(HEAD)
        server.clock.pass_seconds(20)
        await connection.send(b"x" * 499)
        before = connection.transport.state
        server.clock.pass_seconds(10)
        await asyncio.sleep(0)
        return before, connection.answers, connection.protocol.cycle.disconnected

    assert lived(act, app=reads) == ("open", [408], True)


def test_whoever_is_answered_before_the_end_of_a_body_has_to_end_it() -> None:
    """A byte after an early answer, such as an error, does not keep the connection for ever."""

    async def act(server: Server) -> tuple[Any, ...]:
        connection = server.connect()
        await connection.send(HEAD)
        for _ in range(40):
            if not connection.transport.is_closing():
                await connection.send(b"x")
                server.clock.pass_seconds(1)
        return connection.answers, connection.transport.state, server.clock.now

    assert lived(act, app=ok) == ([200], "aborted", 30)


@pytest.mark.parametrize("sent", [b"", b"\r\n", GET], ids=["nothing", "empty lines", "a request"])
def test_idle_connections_end(sent: bytes) -> None:
    """Whether or not there was a request; empty lines between requests do not prolong it."""

    async def act(server: Server) -> tuple[Any, ...]:
        connection = server.connect()
        await connection.send(sent)
        for _ in range(9):
            server.clock.pass_seconds(1)
            await connection.send(b"\r\n")
        before = connection.transport.state
        server.clock.pass_seconds(1)
        return before, connection.transport.state

    assert lived(act) == ("open", "aborted")


def test_one_byte_after_an_answer_begins_the_time_of_a_request() -> None:
    """It does not end the timer of an idle connection without beginning another one."""

    async def act(server: Server) -> list[Any]:
        connection = server.connect()
        await connection.send(GET)
        await connection.send(b"G")
        server.clock.pass_seconds(29)
        before = connection.transport.state
        server.clock.pass_seconds(1)
        return [before, connection.transport.state, connection.answers]

    assert lived(act) == ["open", "closed", [200, 408]]


def test_requests_one_after_another_go_on() -> None:
    """A connection that is used has no end."""

    async def act(server: Server) -> list[int]:
        connection = server.connect()
        for _ in range(30):
            await connection.send(GET)
            server.clock.pass_seconds(9)
        return connection.answers

    assert lived(act) == [200] * 30


async def never(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that takes its time."""
    await asyncio.Event().wait()


def test_no_timer_runs_while_an_answer_is_made() -> None:
    """How long that may take is another limit's business."""

    async def act(server: Server) -> str:
        connection = server.connect()
        await connection.send(GET)
        server.clock.pass_seconds(300)
        for task in server.state.tasks:
            task.cancel()
        return connection.transport.state

    assert lived(act, app=never) == "open"


def test_pipelined_requests_have_an_end() -> None:
    """A thousand small requests in one piece are not a thousand in memory."""

    async def act(server: Server) -> tuple[bool, bool]:
        connection = server.connect()
        await connection.send(GET * 1_000)
        for task in server.state.tasks:
            task.cancel()
        return connection.transport.is_closing(), len(connection.protocol.pipeline) <= 16

    assert lived(act, app=never) == (True, True)


def test_an_answer_is_fetched_at_some_rate() -> None:
    """Less than 128 KiB in the time of a write ends the connection; more does not, however long it takes."""

    async def act(server: Server) -> list[str]:
        states = []
        for each in (130 * KIB, 120 * KIB):
            connection = server.connect()
            await connection.send(GET)
            connection.transport.unsent = 1_000 * KIB
            connection.protocol.pause_writing()
            for _ in range(5):
                connection.transport.unsent -= each
                server.clock.pass_seconds(20)
            states.append(connection.transport.state)
        return states

    assert lived(act) == ["open", "aborted"]


def test_a_connection_that_is_being_closed_is_not_kept_by_its_reader() -> None:
    """The last part of an answer is fetched in time, or never."""

    async def act(server: Server) -> list[str]:
        connection = server.connect()
        connection.transport.unsent = 10 * KIB
        await connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        states = [connection.transport.state]
        server.clock.pass_seconds(20)
        return [*states, connection.transport.state]

    assert lived(act) == ["closed", "aborted"]


def test_an_idle_connection_with_an_answer_to_fetch_has_some_more_time() -> None:
    """One that is fetched at the rate is not idle; the last part has as long again."""

    async def act(server: Server) -> list[str]:
        connection, states = server.connect(), []
        await connection.send(GET)
        connection.transport.unsent = 500 * KIB
        connection.protocol.pause_writing()
        for unsent in (300, 100, 10):
            server.clock.pass_seconds(15)
            connection.transport.unsent = unsent * KIB
            states.append(connection.transport.state)
        connection.protocol.resume_writing()
        server.clock.pass_seconds(20)
        return [*states, connection.transport.state]

    assert lived(act) == ["open", "open", "open", "aborted"]


def test_answers_that_nobody_fetches_are_bounded_for_an_address() -> None:
    """All of its connections together may leave 32 MiB; another address has its own."""

    async def act(server: Server) -> list[str]:
        connections = [server.connect(address) for address in ("192.0.2.1", "192.0.2.1", "192.0.2.9")]
        for connection in connections:
            await connection.send(GET)
            connection.transport.unsent = 20 * KIB * KIB
            connection.protocol.pause_writing()
        return [connection.transport.state for connection in connections]

    assert lived(act) == ["open", "aborted", "open"]


def test_an_address_has_so_many_connections() -> None:
    """One more is told so and ends; once one of them ends there is room, and others have their own."""

    async def act(server: Server) -> tuple[Any, ...]:
        first = [server.connect() for _ in range(4)]
        other = server.connect("192.0.2.9")
        refused = first[3]
        await refused.send(GET)
        for gone in (refused, first[0]):
            gone.protocol.connection_lost(None)
        await (again := server.connect()).send(GET)
        await other.send(GET)
        return refused.answers, refused.error["kind"], again.answers, other.answers

    assert lived(act) == ([429], "TooManyConnections", [200], [200])


def test_ipv6_addresses_of_one_network_are_one() -> None:
    """A customer is given 2^64 of them."""

    async def act(server: Server) -> list[list[int]]:
        return [server.connect(f"2001:db8::{number}").answers for number in range(1, 5)]

    assert lived(act) == [[], [], [], [429]]


def test_a_process_has_so_many_connections() -> None:
    """One more, of any address, is told so as JSON."""

    async def act(server: Server) -> tuple[Any, ...]:
        connections = [server.connect(f"192.0.2.{number}") for number in range(6)]
        return [each.answers for each in connections], connections[5].error["kind"]

    assert lived(act) == ([[]] * 5 + [[503]], "Busy")


@pytest.mark.parametrize(("proxied", "refused"), [(True, []), (False, [429])])
def test_a_proxy_on_this_machine_is_many(proxied: bool, refused: list[int]) -> None:
    """Its connections are those of others, whom it has to count itself."""

    async def act(server: Server) -> list[int]:
        return [server.connect("127.0.0.1") for _ in range(4)][-1].answers

    assert lived(act, proxied=proxied) == refused


def test_what_is_no_http_is_refused_as_json() -> None:
    """In the style of all other errors."""

    async def act(server: Server) -> tuple[Any, ...]:
        connection = server.connect()
        await connection.send(b"\x16\x03\x01 hello\r\n\r\n")
        return connection.answers, connection.error["kind"], connection.transport.state

    assert lived(act) == ([400], "InvalidRequest", "closed")


def test_nothing_is_left_of_connections_that_ended() -> None:
    """Neither a timer, nor a count, nor an address."""

    async def act(server: Server) -> tuple[Any, ...]:
        connections = [server.connect(f"192.0.2.{number % 2}") for number in range(4)]
        for connection in connections:
            await connection.send(GET[:5])
            connection.protocol.connection_lost(None)
        shared = connections[0].protocol.shared
        left = [timer for timer in server.clock.timers if not timer.cancelled()]
        return shared.number, dict(shared.by_address), left, server.state.connections

    assert lived(act) == (0, {}, [], set())
