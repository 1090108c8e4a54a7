"""Bodies, times, hosts and headers: what is let in, and what goes out with every answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from partita.service.errors import ErrorMiddleware
from partita.service.settings import Limits
from partita.service.web import RequestLimits

from .client import Client, app, kind, messages

TIGHT = Limits(body=100, counts_body=1000)


async def pieces(size: int) -> AsyncIterator[bytes]:
    """A body of that size in pieces of 50 bytes, without a length in the header."""
    for _ in range(size // 50):
        yield b"x" * 50


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("size", "status"), [(1000, 200), (1050, 413)])
def test_a_body_is_counted_however_it_comes(size: int, status: int, chunked: bool, tmp_path: Path) -> None:
    """In one piece with a length, or in many without."""
    client = Client(app(tmp_path, limits=TIGHT))
    content = pieces(size) if chunked else b"x" * size

    assert client("POST", "/releases/people/counts", content=content).status_code == status


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_no_batch_must_be_shorter(chunked: bool, tmp_path: Path) -> None:
    """Also where the framework reads it, and makes an error of its own of what stops it."""
    client = Client(app(tmp_path, limits=TIGHT))
    content = pieces(150) if chunked else b"x" * 150

    assert kind(client("POST", "/releases/people/sum", content=content)) == (413, "BodyTooLarge")


def test_a_false_length_helps_nobody(tmp_path: Path) -> None:
    """What comes is counted, whatever the header says."""
    client = Client(app(tmp_path, limits=TIGHT))
    response = client(
        "POST", "/releases/people/counts", content=pieces(2000), headers={"content-length": "10"}
    )

    assert kind(response) == (413, "BodyTooLarge")


def test_a_request_ends_in_time() -> None:
    """What has no answer after the limit gets one that says so."""
    limits: list[float] = []

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    def at_once(seconds: float) -> asyncio.Timeout:
        limits.append(seconds)
        return asyncio.timeout(0)

    bounded = ErrorMiddleware(
        RequestLimits(never, Limits(seconds=7), timeout=at_once), unexpected=lambda *_: None
    )

    assert kind(Client(bounded).get("/")) == (503, "TooSlow")
    assert limits == [7]


@pytest.mark.parametrize(
    "base", ["http://evil.example", "http://localhost.evil.example", "http://127.0.0.1.x"]
)
def test_a_foreign_name_is_refused(base: str, tmp_path: Path) -> None:
    """A page elsewhere whose name resolves to this machine gets nothing."""
    response = Client(app(tmp_path)).get("/releases/people/count", base=base)

    assert kind(response) == (421, "UnknownHost")


@pytest.mark.parametrize(
    "base", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:1", "http://Stats.example.org"]
)
def test_own_names_are_served(base: str, tmp_path: Path) -> None:
    """With any port and in any case."""
    client = Client(app(tmp_path, hosts=("stats.example.org",)))

    assert client.get("/releases/people/count", base=base).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["localhost:²", "localhost:٣", "localhost:", "localhost:8000:1", "localhost:123456", "localhost: 1"],
)
def test_a_port_is_digits(host: str, tmp_path: Path) -> None:
    """Plain ones, at most five; with anything else behind the colon it is another name."""
    sent = messages(app(tmp_path), "/-/healthy", headers=[(b"host", host.encode("latin-1", "replace"))])

    assert sent[0]["status"] == 421


@pytest.mark.parametrize("hosts", [[], [b"localhost", b"evil.example"], [b"localhost", b"localhost"]])
def test_a_request_has_one_host(hosts: list[bytes], tmp_path: Path) -> None:
    """Proxies disagree about which of two counts, so two are none."""
    sent = messages(app(tmp_path), "/-/healthy", headers=[(b"host", host) for host in hosts])

    assert sent[0]["status"] == 421


@pytest.mark.parametrize("path", ["/releases/people/count", "/broken", "/no", "/-/healthy"])
def test_every_answer_has_the_headers(path: str, tmp_path: Path) -> None:
    """Errors too: nothing from elsewhere, no guessed types, no frame, no referrer, no cache unless said."""
    headers = Client(app(tmp_path, limits=TIGHT)).get(path).headers

    assert headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "geolocation=()" in headers["permissions-policy"]
    assert headers["cache-control"] == "no-store"
    assert "strict-transport-security" not in headers
    assert "server" not in headers


def test_tls_is_demanded_behind_tls_only(tmp_path: Path) -> None:
    """The scheme is what the proxy says it is."""
    answer = Client(app(tmp_path)).get("/-/healthy", base="https://localhost")

    assert answer.headers["strict-transport-security"] == "max-age=31536000"
