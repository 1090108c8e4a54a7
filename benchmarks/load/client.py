"""A light HTTP/1.1 client: it shares two cores with what it measures. Keep-alive, no pipelining."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Service:
    """Where one of the two processes listens, and with what token it is asked."""

    address: str
    token: str | None = None

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
        """A whole request as bytes."""
        host = urlsplit(self.address).netloc
        named = {"Host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.token is not None:
            named["Authorization"] = f"Bearer {self.token}"
        if body or method == "POST":
            named["Content-Length"] = str(len(body))
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


class Connection:
    """One connection, which is asked one thing at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, service: Service, *, source: str | None = None) -> Self:
        """Connect to a process of the service, from an address of this machine."""
        place, local = urlsplit(service.address), None if source is None else (source, 0)
        streams = await asyncio.open_connection(place.hostname, place.port, limit=2**26, local_addr=local)
        return cls(*streams)

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        self._writer.write(request)
        await self._writer.drain()
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        return status, await self._body(head.lower())

    async def _body(self, head: bytes) -> bytes:
        _, found, rest = head.partition(b"content-length:")
        if found:
            return await self._reader.readexactly(int(rest.partition(b"\r\n")[0]))
        body = b""
        while b"transfer-encoding: chunked" in head:
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            body += (await self._reader.readexactly(size + 2))[:-2]
            if not size:
                break
        return body

    async def close(self) -> None:
        """Leave, whether or not anybody is still there."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


async def as_fast_as_it_goes(
    service: Service, requests: Iterator[bytes], *, connections: int, seconds: float
) -> float:
    """Answers a second, each connection asking again as soon as it has an answer. All must be well."""
    until = time.perf_counter() + seconds

    async def worker() -> int:
        connection, done = await Connection.to(service), 0
        while time.perf_counter() < until:
            status, body = await connection.ask(next(requests))
            if status >= 300:
                raise RuntimeError(f"the service answered {status}: {body[:200]!r}")
            done += 1
        await connection.close()
        return done

    begin = time.perf_counter()
    done = await asyncio.gather(*(worker() for _ in range(connections)))
    return sum(done) / (time.perf_counter() - begin)


async def at_a_rate(
    service: Service,
    requests: Iterator[bytes],
    *,
    rate: float,
    connections: int,
    seconds: float,
    source: str | None = None,
) -> list[float]:
    """Seconds from when each request was due until its answer: whoever waits for a connection waits too."""
    queue: asyncio.Queue[float | None] = asyncio.Queue()
    took: list[float] = []

    async def worker() -> None:
        connection = await Connection.to(service, source=source)
        while (due := await queue.get()) is not None:
            status, _ = await connection.ask(next(requests))
            took.append(time.perf_counter() - due if status < 300 else float("inf"))
        await connection.close()

    workers = [asyncio.create_task(worker()) for _ in range(connections)]
    begin = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = begin + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        queue.put_nowait(due)
    for _ in workers:
        queue.put_nowait(None)
    await asyncio.gather(*workers)
    return took


def percentile(took: list[float], share: float) -> float:
    """The smallest time that this share of all did not exceed."""
    return sorted(took)[min(len(took) - 1, int(share * len(took)))]


def numbered(make: Callable[[int], bytes]) -> Iterator[bytes]:
    """Requests without end, each made from its number."""
    number = 0
    while True:
        yield make(number)
        number += 1
