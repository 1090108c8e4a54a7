"""Small counts of one client, while eight others send the worst questions that are permitted."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, cycle
from typing import Any
from urllib.parse import urlencode

import numpy as np

from benchmarks.load.client import Connection, Service, at_a_rate, numbered, percentile
from benchmarks.load.serving import Processes

Row = dict[str, Any]

CLIENTS = 8
CONNECTIONS = 4
RATE = 20
TARGET = 250
UNASKED = 20_000_000
SOURCE, OTHERS = "127.0.0.100", "127.0.0.{}"


def hostile(service: Processes, seconds: float) -> Iterator[Row]:
    """Waiting times of fresh counts, 20 a second; each client has an address of its own and 4 connections.

    The clients run in a process of their own. Their questions are all different, so none is answered from
    memory, and each is just below the limit of work or of size, or is a batch or a download of the largest
    kind.
    """
    told: Any = multiprocessing.get_context("spawn").SimpleQueue()
    clients = multiprocessing.get_context("spawn").Process(
        target=_attack, args=(service.reading.address, 4 * seconds + 4, told)
    )
    clients.start()
    if isinstance(begun := told.get(), Exception):
        raise begun
    fresh = numbered(lambda n: _salary(service.reading, n))
    took = asyncio.run(
        at_a_rate(service.reading, fresh, rate=RATE, connections=4, seconds=4 * seconds, source=SOURCE)
    )
    statuses = told.get()
    clients.join()
    p50, p95, p99 = (1_000 * percentile(took, share) for share in (0.5, 0.95, 0.99))
    yield {
        "row": "small counts beside 8 hostile clients, ms",
        "p50": p50,
        "p95": p95,
        "p99": p99,
        "counts": len(took),
        "hostile_answers": statuses,
        "target": TARGET,
        "reached": p95 < TARGET,
    }


def _attack(address: str, seconds: float, told: Any) -> None:
    try:
        told.put(asyncio.run(_attacking(Service(address), seconds, told)))
    except Exception as error:
        told.put(error)


async def _attacking(service: Service, seconds: float, told: Any) -> dict[str, int]:
    bombs, seen = _bombs(service), Counter[str]()
    for bomb in bombs:  # each of them is permitted
        connection = await Connection.to(service, source=OTHERS.format(50))
        status, body = await connection.ask(bomb(0))
        await connection.close()
        if 400 <= status < 500:
            raise RuntimeError(f"the service answered {status}: {body[:200]!r}")
    told.put("begun")
    numbers = count(1)
    tasks = [
        asyncio.create_task(
            _client(service, cycle(bombs[each % len(bombs) :] + bombs), numbers, seen, client)
        )
        for client in range(CLIENTS)
        for each in range(CONNECTIONS)
    ]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return dict(sorted(seen.items()))


async def _client(
    service: Service,
    bombs: Iterator[Callable[[int], bytes]],
    numbers: Iterator[int],
    seen: Counter[str],
    client: int,
) -> None:
    """One connection of one client, which asks as soon as it is answered, and again when it is cut off."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            connection = await Connection.to(service, source=OTHERS.format(2 + client))
            for bomb in bombs:
                status, _ = await connection.ask(bomb(next(numbers)))
                seen[str(status)] += 1


def _bombs(service: Service) -> list[Callable[[int], bytes]]:
    """The worst of each kind; the number makes each one a question that nobody asked before."""

    def get(kind: str, number: int, **asked: Any) -> bytes:
        asked = {**asked, "confidence": 0.5 + (number % 400_000) / 10**6}
        return service.request("GET", f"/releases/together/{kind}?{urlencode(asked, doseq=True)}")

    def made(kind: str, number: int) -> bytes:
        return service.request("GET", f"/releases/together/{kind}?rows={300_000 + number % 30_000}")

    boxes = f"{_even('age', 20)} and {_even('town', 20)}"
    fewer = f"{_even('age', 8)} and {_even('town', 8)}"
    return [
        lambda n: get("histogram", n, column="salary", bins=130, where=boxes),
        lambda n: get("histogram2d", n, x="salary", y="town", x_bins=64, y_bins=64, where=_even("age", 18)),
        lambda n: get("cdf", n, column="salary", at=list(range(0, 60_000, 200)), where=fewer),
        lambda n: get("view.json", n, x="salary", y="town", bins=64, where=_even("age", 14)),
        lambda n: get("count", n, where=f"2*salary + 3*age <= {n} and {_even('town', 100)}"),
        lambda n: made("synthesize.csv", n),
        lambda n: made("synthesize.parquet", n),
        _batch(service),
    ]


def _even(column: str, values: int) -> str:
    """So many single values of a column, none beside another: each is a box of its own."""
    return f"{column} in ({', '.join(map(str, range(0, 2 * values, 2)))})"


def _ends(size: int) -> tuple[Any, Any]:
    draws = np.random.default_rng(3)
    low = draws.integers(0, 60_000, size)
    return low, low + draws.integers(0, 5_000, size)


def _batch(service: Service) -> Callable[[int], bytes]:
    low, high = _ends(80_000)
    where = {"salary": {"low": low.tolist(), "high": high.tolist()}, "age": [3, 60]}
    body = json.dumps({"where": where, "errors": True}).encode()
    request = service.request("POST", "/releases/together/counts", body, Content_Type="application/json")
    return lambda n: request


def _salary(service: Service, number: int) -> bytes:
    low, width = number % 40_000, 7 + number // 40_000
    where = f"salary%20between%20{low}%20and%20{low + width}"
    return service.request("GET", f"/releases/people/count?where={where}")
