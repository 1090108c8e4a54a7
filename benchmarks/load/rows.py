"""One row for each way to ask or to feed, beside the figure that it should reach."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import numpy as np

from benchmarks.load.client import Connection, Service, as_fast_as_it_goes, at_a_rate, numbered, percentile
from benchmarks.load.serving import Processes

Row = dict[str, Any]

CONNECTIONS = 16
RANGES = 10_000
EVENTS = 1_000
HALF = 1_000
UNASKED = 10_000_000


def single(service: Processes, seconds: float) -> Iterator[Row]:
    """Counts asked one by one, as fast as they are answered: the same few questions, and fresh ones."""
    kept = cycle([_count(service.reading, age, age + 9) for age in range(64)])
    fresh = numbered(lambda n: _salary(service.reading, n))
    for name, requests in (("single counts, asked before", kept), ("single counts, all fresh", fresh)):
        rate = asyncio.run(
            as_fast_as_it_goes(service.reading, requests, connections=CONNECTIONS, seconds=seconds)
        )
        yield {"row": name, "per_second": round(rate), "target": 2_000, "reached": rate >= 2_000}


def half_load(service: Processes, seconds: float) -> Iterator[Row]:
    """Waiting times at half of the load, asked for by a clock whether or not answers came."""
    kept = cycle([_count(service.reading, age, age + 9) for age in range(64)])
    fresh = numbered(lambda n: _salary(service.reading, n + UNASKED))
    for name, requests in (("asked before", kept), ("all fresh", fresh)):
        took = asyncio.run(
            at_a_rate(service.reading, requests, rate=HALF, connections=4 * CONNECTIONS, seconds=seconds)
        )
        p50, p99 = (1_000 * percentile(took, share) for share in (0.5, 0.99))
        row = f"waiting at {HALF:,}/s, {name}, ms"
        yield {"row": row, "p50": p50, "p99": p99, "target": 50, "reached": p99 < 50}


def batches(service: Processes, seconds: float) -> Iterator[Row]:
    """Counts asked many at a time."""
    request = _batch(service.reading)
    rate = RANGES * asyncio.run(
        as_fast_as_it_goes(service.reading, cycle([request]), connections=2, seconds=seconds)
    )
    yield {
        "row": "batch counts",
        "per_second": round(rate),
        "target": 1_000_000,
        "reached": rate >= 1_000_000,
    }


def feeding(service: Processes, seconds: float) -> Iterator[Row]:
    """Events a second, each on disk before it is acknowledged."""
    kinds: dict[str, tuple[Row, Callable[[int], Row]]] = {
        "fed as totals of 1,000": ({}, lambda n: {"count": EVENTS}),
        "fed with ids of their own": (
            {},
            lambda n: {"events": [{"id": n * EVENTS + i} for i in range(EVENTS)]},
        ),
        "fed by person, all new": ({"contributions": 1, "unit": "user"}, _people),
        "fed by key, a family": (
            {"keys": [f"region-{i}" for i in range(100)], "horizon": 10_000},
            lambda n: {"counts": {f"region-{i}": EVENTS // 100 for i in range(100)}},
        ),
    }
    for place, (name, (made, body)) in enumerate(kinds.items()):
        stream = f"load-{place}"
        asyncio.run(create(service.admin, stream, **made))
        requests = numbered(lambda n, stream=stream, body=body: fed(service.steward, stream, body(n), n))  # type: ignore[misc]
        rate = EVENTS * asyncio.run(
            as_fast_as_it_goes(service.steward, requests, connections=4, seconds=seconds)
        )
        yield {"row": name, "per_second": round(rate), "target": 20_000, "reached": rate >= 20_000}


async def create(service: Service, name: str, **named: Any) -> None:
    """Make a stream, or find that it is there."""
    body = json.dumps({"name": name, "epsilon": 1, "period": "1s", **named}).encode()
    connection = await Connection.to(service)
    request = service.request("POST", "/streams", body, Content_Type="application/json")
    status, answer = await connection.ask(request)
    await connection.close()
    if status >= 300:
        raise RuntimeError(f"the service answered {status}: {answer!r}")


def fed(service: Service, stream: str, body: Row, number: int) -> bytes:
    """A feeding request under a key of its own."""
    written = json.dumps(body).encode()
    return service.request("POST", f"/streams/{stream}/events", written, Idempotency_Key=f"request-{number}")


def _people(number: int) -> Row:
    return {"events": [{"person": number * EVENTS + i, "id": 0} for i in range(EVENTS)]}


def _count(service: Service, low: int, high: int) -> bytes:
    return service.request("GET", f"/releases/people/count?where=age%20between%20{low}%20and%20{high}")


def _salary(service: Service, number: int) -> bytes:
    low, width = number % 40_000, 1 + number // 40_000
    where = f"salary%20between%20{low}%20and%20{low + width}"
    return service.request("GET", f"/releases/people/count?where={where}")


def _ranges(size: int) -> tuple[Any, Any]:
    draws = np.random.default_rng(2)
    low = draws.integers(0, 60_000, size)
    return low, low + draws.integers(0, 5_000, size)


def _batch(service: Service) -> bytes:
    low, high = _ranges(RANGES)
    body = json.dumps({"where": {"salary": {"low": low.tolist(), "high": high.tolist()}}}).encode()
    return service.request("POST", "/releases/people/counts", body, Content_Type="application/json")
