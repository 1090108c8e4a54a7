"""The processes of a service, for real: they begin together, end together, and leave nobody behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from partita.service import process
from partita.service.settings import Limits, ServiceSettings
from partita.service.tokens import TokenFile
from partita.trusted.durable.open import open_counter
from tests.service.web.client import CANARY

pytestmark = pytest.mark.faults

PATIENCE = 3600.0
"""Seconds after which something that should happen is taken not to; a busy machine needs some."""


@dataclass
class Service:
    """A running service: its supervisor, its addresses by side, and an admin's token."""

    supervisor: subprocess.Popen[str]
    addresses: dict[str, Any]
    token: str

    @property
    def children(self) -> list[int]:
        """The processes that the supervisor started."""
        pid = self.supervisor.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def get(self, side: str, path: str) -> httpx.Response:
        bearer = {"authorization": f"Bearer {self.token}"}
        return httpx.get(f"{self.addresses[side]}{path}", headers=bearer, timeout=PATIENCE)

    def ended(self) -> tuple[int, str]:
        """The exit code and what was said on standard error, without lines of the log."""
        _, err = self.supervisor.communicate(timeout=PATIENCE)
        return self.supervisor.returncode, "".join(
            line for line in err.splitlines(keepends=True) if not line.startswith("{")
        )


def command(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "partita", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def running(folder: Path, *, sides: int = 2, extra: tuple[str, ...] = ()) -> Iterator[Service]:
    """A service on free ports; whatever happens, none of its processes outlives the block."""
    (folder / "public").mkdir(exist_ok=True)
    token = TokenFile(folder / "tokens.json").create("ada", scopes=["read", "admin"])
    streams = ("--streams", folder / "secret") if sides == 2 else ()
    ports = ("--port", 0, "--steward-port", 0)
    supervisor = command(
        "serve", folder / "public", "--tokens", folder / "tokens.json", *ports, *streams, *extra, "--json"
    )
    assert supervisor.stdout is not None
    said = [json.loads(supervisor.stdout.readline() or "{}") for _ in range(sides)]
    service = Service(supervisor, {line.get("process"): line.get("address") for line in said}, token)
    children = service.children
    try:
        yield service
    finally:
        for pid in (supervisor.pid, *children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        supervisor.communicate()


def eventually(happened: Callable[[], bool]) -> bool:
    """Whether something comes true within the patience."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def gone(pid: int) -> bool:
    """Whether a process has ended; one that waits to be collected has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_both_sides_answer_once_they_are_announced(tmp_path: Path) -> None:
    """On this machine only, without a word about the server; the steward steps back; Ctrl-C ends both."""
    with running(tmp_path) as service:
        children, answers = service.children, [service.get(side, "/-/healthy") for side in service.addresses]

        assert [answer.status_code for answer in answers] == [200, 200]
        assert all("server" not in answer.headers for answer in answers)
        assert service.get("reading", "/index.json").status_code == 200
        assert service.get("steward", "/streams").status_code == 200
        assert all(address.startswith("http://127.0.0.1:") for address in service.addresses.values())
        assert sorted(os.getpriority(os.PRIO_PROCESS, pid) for pid in children) == [0, 10]

        service.supervisor.send_signal(signal.SIGINT)
        assert service.ended() == (0, "")
        assert all(map(gone, children))


@contextmanager
def half_sent(service: Service) -> Iterator[socket.socket]:
    """A question whose second half has not been sent yet."""
    address = httpx.URL(service.addresses["reading"])
    with socket.create_connection((address.host, address.port or 0), timeout=PATIENCE) as connection:
        lines = (
            "POST /releases/people/count HTTP/1.1",
            f"Host: {address.host}",
            f"Authorization: Bearer {service.token}",
            "Content-Type: application/json",
            "Content-Length: 2",
        )
        connection.sendall("\r\n".join((*lines, "", "{")).encode())
        yield connection


def test_the_end_is_graceful(tmp_path: Path) -> None:
    """When SIGTERM comes, who listens to live updates is told, and an open request is still answered."""
    (tmp_path / "public").mkdir()
    outputs = tmp_path / "public" / "visits.outputs"
    with open_counter(tmp_path / "visits.db", epsilon=1, period="1h", outputs=outputs):
        pass
    with running(tmp_path, sides=1) as service:
        bearer = {"authorization": f"Bearer {service.token}"}
        live = f"{service.addresses['reading']}/streams/visits/live"
        assert eventually(lambda: service.get("reading", "/streams/visits.json").status_code == 200)
        with half_sent(service) as asked:
            with httpx.stream("GET", live, headers=bearer, timeout=PATIENCE) as response:
                assert response.status_code == 200
                service.supervisor.terminate()
                response.read()
            asked.sendall(b"}")
            assert asked.recv(4096).startswith(b"HTTP/1.1 404 ")
        assert service.ended() == (0, "")


@pytest.mark.parametrize("side", ["reading", "steward"])
def test_one_that_is_killed_ends_all(side: str, tmp_path: Path) -> None:
    """Nothing is started again in silence: the exit code is 1, and the message says who died."""
    with running(tmp_path) as service:
        children = service.children
        names = [Path(f"/proc/{pid}/cmdline").read_text() for pid in children]
        [victim] = [pid for pid, name in zip(children, names, strict=True) if f"\0{side}\0" in name]
        os.kill(victim, signal.SIGKILL)

        expected = f"partita: error: the {side} process ended by itself; the service ended with it\n"
        assert service.ended() == (1, expected)
        assert all(map(gone, children))


def test_a_killed_supervisor_leaves_no_orphan(tmp_path: Path) -> None:
    """Its processes notice that nobody holds them any more."""
    with running(tmp_path) as service:
        children = service.children
        service.supervisor.kill()

        assert len(children) == 2
        assert eventually(lambda: all(map(gone, children)))


def test_readers_may_have_several_processes(tmp_path: Path) -> None:
    """They share one port, and end together."""
    with running(tmp_path, sides=1, extra=("--workers", "2")) as service:
        children = service.children
        assert len(children) == 2
        assert service.get("reading", "/-/healthy").status_code == 200
        service.supervisor.terminate()

        assert service.ended() == (0, "")
        assert all(map(gone, children))


def test_headers_that_come_slowly_are_cut_off(tmp_path: Path) -> None:
    """By a real server, after the time that a request has; and one that is whole is answered."""
    settings = ServiceSettings(folder=tmp_path, public=True, port=0, limits=Limits(seconds=1, grace=1))
    with (
        process.open_listener(settings, "reading") as opened,
        process._children(settings, {"reading": opened}) as [child],
    ):
        assert child.output.readline() == b"ready\n"
        host, port = opened.getsockname()
        with socket.create_connection((host, port), timeout=PATIENCE) as slow:
            slow.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: local")
            assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert httpx.get(f"http://{host}:{port}/-/healthy", timeout=PATIENCE).status_code == 200


def test_a_taken_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    """In one line that names the port and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = command("serve", tmp_path, "--public", "--port", port)
        out, err = ended.communicate(timeout=PATIENCE)

    assert (ended.returncode, out) == (1, "")
    assert err == (
        f"partita: error: port must be free on 127.0.0.1 (Address already in use), got {port}; "
        "choose another port or stop the process that uses it\n"
    )


def test_a_stream_that_cannot_be_resumed_stops_the_start(tmp_path: Path) -> None:
    """The service ends with exit code 1 and no address is announced."""
    (tmp_path / "secret").mkdir(mode=0o700)
    held = open_counter(tmp_path / "secret" / "visits.db", epsilon=1, period="1h")
    with held, running(tmp_path, sides=2) as service:
        code, err = service.ended()

    assert (code, list(service.addresses.values())) == (1, [None])
    assert "the steward process ended by itself" in err


HUSHED = """
import asyncio, gc, logging, sys, threading, time, warnings
from partita.service.web import Log
from partita.service.server import _silence_libraries

_silence_libraries(Log("steward", time.time_ns))
logging.getLogger("uvicorn.error").error("{canary}")
logging.getLogger().critical("{canary}", exc_info=ValueError("{canary}"))
warnings.warn("{canary}")

class Unraisable:
    def __del__(self):
        raise RuntimeError("{canary}")

def fails():
    raise KeyError("{canary}")

async def forgotten():
    asyncio.get_running_loop().call_soon(fails)
    await asyncio.sleep(0.01)

Unraisable()
gc.collect()
thread = threading.Thread(target=fails)
thread.start()
thread.join()
asyncio.run(forgotten())
raise ValueError("{canary}")
"""


def test_nothing_that_a_library_says_gets_into_the_log() -> None:
    """Neither its log, its warnings, nor exceptions of threads, callbacks and finalizers: types only."""
    script = HUSHED.format(canary=CANARY)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    kinds = [json.loads(line)["kind"] for line in ended.stderr.splitlines()]

    assert kinds == ["RuntimeError", "KeyError", "ValueError"]
    assert CANARY not in ended.stdout + ended.stderr
