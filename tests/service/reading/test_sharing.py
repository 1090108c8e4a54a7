"""Who asks for much waits for others who do, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from partita.public.release import Release
from partita.service.reading.batches import BatchTask, parse_batch
from partita.service.reading.work import ReleaseSizes

from .conftest import LIMITS, served

LARGE = b'{"where": {"age": {"values": [' + b"1, " * 30_000 + b"1]}}}"
PATIENCE = 3600
"""Seconds after which something waits for ever."""


@pytest.fixture
def blocked() -> Iterator[threading.Event]:
    """What holds up all work that waits for it, until the test lets it go."""
    free = threading.Event()
    yield free
    free.set()


@asynccontextmanager
async def asking(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of its own app, for many requests at once."""
    transport = httpx.ASGITransport(served(folder))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def until(reached: Callable[[], bool]) -> None:
    """Wait for something that other tasks do."""
    async with asyncio.timeout(PATIENCE):
        while not reached():
            await asyncio.sleep(0.001)


def test_made_up_rows_hold_up_no_question(
    shelf: Path, blocked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one caller they are made one at a time; eight more wait, and the next is told to come again."""
    begun: list[int] = []

    def slow(self: Release, rows: int) -> dict[str, list[object]]:
        begun.append(rows)
        blocked.wait()
        return {"age": [1]}

    monkeypatch.setattr(Release, "synthesize", slow)

    async def lived() -> tuple[int, list[int]]:
        async with asking(shelf) as client:
            path = "/releases/people/synthesize.csv?rows="
            rows = [asyncio.create_task(client.get(f"{path}{number}")) for number in range(1, 11)]
            await until(lambda: bool(begun) and rows[-1].done())
            async with asyncio.timeout(PATIENCE):
                count = await client.get("/releases/people/count?where=age < 7")
            assert len(begun) == 1
            blocked.set()
            return count.status_code, [(await each).status_code for each in rows]

    assert asyncio.run(lived()) == (200, [200] * 9 + [429])


def test_large_batches_hold_up_no_question_and_are_read_in_turn(
    shelf: Path, blocked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twelve large bodies of one caller two are read, and eight wait; a small one is answered at once."""
    taken: list[int] = []

    def slow(facts: ReleaseSizes, body: bytes, limits: Any) -> BatchTask:
        if len(body) == len(LARGE):
            blocked.wait()
            return BatchTask(0, lambda: b"{}")
        return parse_batch(facts, body, limits)

    monkeypatch.setattr("partita.service.reading.batches.parse_batch", slow)

    async def body(number: int) -> AsyncIterator[bytes]:
        taken.append(number)
        yield LARGE

    async def lived() -> tuple[list[int], list[int]]:
        async with asking(shelf) as client:
            path, known = "/releases/people/counts", {"Content-Length": str(len(LARGE))}
            large = [
                asyncio.create_task(
                    client.post(path, content=body(number), headers=known if number % 2 else {})
                )
                for number in range(12)
            ]
            await until(lambda: len(taken) == 2 and all(each.done() for each in large[10:]))
            async with asyncio.timeout(PATIENCE):
                count = await client.get("/releases/people/count?where=age < 7")
                batch = await client.post(path, json={"where": {"age": {"values": [1, 2]}}})
            assert len(taken) == 2
            blocked.set()
            return [count.status_code, batch.status_code], [(await each).status_code for each in large]

    assert asyncio.run(lived()) == ([200, 200], [200] * 10 + [429] * 2)


def test_made_up_rows_have_so_many_values_and_no_more(shelf: Path) -> None:
    """What they cost goes by values: of four columns a fourth of the limit in rows."""

    async def lived() -> list[httpx.Response]:
        async with asking(shelf) as client:
            most = LIMITS.rows // 4
            return [
                await client.get(f"/releases/people/synthesize.{end}?rows={rows}")
                for end in ("csv", "parquet")
                for rows in (most, most + 1)
            ]

    answers = asyncio.run(lived())

    assert [answer.status_code for answer in answers] == [200, 400, 200, 400]
    assert "at most 500 here" in answers[1].json()["error"]["message"]
