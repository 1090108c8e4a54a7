"""A real server, and clients that want too much of it: loopback only, a few connections each."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

import httpx
import numpy as np
import pytest

import partita as pt
from partita.service import process
from partita.service.settings import Limits

from .test_process import PATIENCE, Service, command, running

pytestmark = pytest.mark.faults

EVEN = ", ".join(map(str, range(0, 40, 2)))
BOXES = f"age in ({EVEN}) and town in ({EVEN})"


def address(service: Service) -> tuple[str, int]:
    url = httpx.URL(service.addresses["reading"])
    return url.host, url.port or 0


@contextmanager
def connected(service: Service, sent: bytes = b"", *, source: str = "127.0.0.1") -> Iterator[socket.socket]:
    """A connection from an address of this machine, over which something was sent."""
    with socket.create_connection(address(service), PATIENCE, (source, 0)) as connection:
        connection.sendall(sent)
        yield connection


def received(connection: socket.socket) -> bytes:
    """All that comes until the connection ends, in whatever way."""
    said = b""
    with suppress(ConnectionError):
        while part := connection.recv(65_536):
            said += part
    return said


def asked(service: Service, path: str, **parameters: object) -> bytes:
    """A question as bytes."""
    lines = (
        f"GET {path}?{urlencode(parameters)} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {service.token}",
    )
    return "\r\n".join((*lines, "", "")).encode()


def publish(folder: Path) -> None:
    """Three columns together, of few people."""
    rows = np.arange(3_000)
    people = {"age": rows * 7 % 100, "town": rows * 13 % 64, "salary": rows * 37 % 1024}
    schema = {"age": pt.Integer(0, 99), "town": pt.Integer(0, 63), "salary": pt.Integer(0, 1023)}
    release = pt.publish(people, schema, epsilon=4, views=[tuple(people)])
    (folder / "public").mkdir()
    release.save(folder / "public" / "crowd.release.parquet")


def test_headers_without_end_are_refused(tmp_path: Path) -> None:
    """The server reads no more than some hundred kilobytes of them, and answers others all the while."""
    with running(tmp_path, sides=1) as service, connected(service, b"GET / HTTP/1.1\r\nX-Long: ") as hostile:
        sent = 0
        with suppress(ConnectionError):
            while sent < 8 * 2**20:
                hostile.sendall(b"x" * 65_536)
                sent += 65_536
        assert service.get("reading", "/-/healthy").status_code == 200

    assert sent < 8 * 2**20


def test_one_byte_after_an_answer_does_not_keep_a_connection(tmp_path: Path) -> None:
    """It is the first byte of a request, which has its time."""
    with (
        running(tmp_path, sides=1, extra=("--request-seconds", "1")) as service,
        connected(service, asked(service, "/nowhere")) as hostile,
    ):
        assert hostile.recv(65_536).startswith(b"HTTP/1.1 404 ")
        hostile.sendall(b"G")

        assert b"HTTP/1.1 408 " in received(hostile)


def test_one_address_does_not_take_all_connections(tmp_path: Path) -> None:
    """Beyond its own it is refused, and another address is answered."""
    extra = ("--connections-per-address", "5")
    with running(tmp_path, sides=1, extra=extra) as service, ExitStack() as held:
        source = "127.0.0.9"
        for _ in range(5):
            held.enter_context(connected(service, b"GET", source=source))
        refused = held.enter_context(connected(service, source=source))

        assert received(refused).startswith(b"HTTP/1.1 429 ")
        assert service.get("reading", "/-/healthy").status_code == 200


def test_it_ends_under_load(tmp_path: Path) -> None:
    """With large questions at work, answers that nobody fetches, and requests that never end.

    How long it may take is bounded by what is configured, as the next test says.
    """
    publish(tmp_path)
    with running(tmp_path) as service, ExitStack() as held:
        assert service.get("reading", "/releases/crowd/count").status_code == 200
        path = "/releases/crowd/histogram"
        for number in range(8):
            source = f"127.0.0.{number + 2}"
            for bins in (60 + number, 80 + number):
                question = asked(service, path, column="salary", bins=bins, where=BOXES)
                held.enter_context(connected(service, question, source=source))
            rows = asked(service, "/releases/crowd/synthesize.csv", rows=200_000 + number)
            held.enter_context(connected(service, rows, source=source))
            held.enter_context(connected(service, b"POST /releases/crowd/counts HTTP/1.1\r\n", source=source))
        service.supervisor.terminate()

        assert service.ended() == (0, "")


def test_the_time_to_end_is_bounded_by_what_is_configured() -> None:
    """Open requests have their grace, and a process that takes longer is killed soon after."""
    assert Limits().grace + process._MARGIN <= 4


def test_a_service_that_cannot_be_understood_starts_nothing(tmp_path: Path) -> None:
    """A limit is a whole number from 1 on."""
    started = command("serve", tmp_path, "--public", "--work", "0")
    _, said = started.communicate(timeout=PATIENCE)

    assert (started.returncode, "work must be at least 1" in said) == (2, True)
