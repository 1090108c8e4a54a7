"""Row `feeding`: events that a durable counter or family takes in a second, every one of them on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.accuracy.score import Json, short
from benchmarks.streams.measure import Effort
from partita.trusted.durable.events import Event
from partita.trusted.durable.open import open_counter, open_family

TARGET = 20_000
"""Events in a second, on two cores, with one sync for each batch."""

AT_ONCE = 1000
KEYS = [f"gate {number}" for number in range(10)]

Made = Callable[[int], Event]


def totals(number: int) -> Event:
    """A thousand events that were counted elsewhere, under a text that is used once."""
    return Event("gate", f"delivery {number}", AT_ONCE)


def numbers(number: int) -> Event:
    """An event with a number of its own."""
    return Event("gate", number)


def texts(number: int) -> Event:
    """An event with a text of its own."""
    return Event("gate", f"event {number}")


def people(number: int) -> Event:
    """An event of somebody who was not there before."""
    return Event(f"person {number}", 1)


def of_keys(number: int) -> Event:
    """An event with a number of its own, under one of ten keys."""
    return Event("gate", number, {KEYS[number % len(KEYS)]: 1})


def people_of_keys(number: int) -> Event:
    """An event of somebody new, under one of ten keys."""
    return Event(f"person {number}", 1, {KEYS[number % len(KEYS)]: 1})


CASES: list[tuple[str, Made, int, int, dict[str, Any]]] = [
    ("counter, totals", totals, 1, AT_ONCE, {}),
    ("counter, own numbers", numbers, AT_ONCE, 1, {}),
    ("counter, own texts", texts, AT_ONCE, 1, {}),
    ("counter, new people", people, AT_ONCE, 1, {"unit": "user"}),
    ("family, own numbers", of_keys, AT_ONCE, 1, {"keys": KEYS}),
    ("family, new people", people_of_keys, AT_ONCE, 1, {"keys": KEYS, "unit": "user"}),
]
"""What is fed, how many in a batch, how many events each stands for, and what it is opened with."""


def feeding(effort: Effort) -> Iterator[Json]:
    """How fast each kind of event is fed, in batches: wall clock, syncs among it, and processor alone."""
    events = 10_000 if effort.quick else 300_000
    for name, make, batch, each, options in CASES:
        wall, cpu = fed([make(number) for number in range(events // each)], batch, options)
        yield {
            "row": "feeding",
            "fed": name,
            "events": events,
            "in_a_batch": batch * each,
            "events_a_second": short(events / wall),
            "of_processor": short(events / cpu),
            "target": TARGET,
            "met": effort.verdict(TARGET, events / wall),
        }


def fed(events: list[Event], batch: int, options: dict[str, Any]) -> tuple[float, float]:
    """Seconds that pass and seconds of the processor, until all events are on disk."""
    with TemporaryDirectory() as folder, opened(Path(folder) / "visits", options) as stream:
        wall, cpu = time.perf_counter(), time.process_time()
        for begin in range(0, len(events), batch):
            stream.add_many(events[begin : begin + batch])
        return time.perf_counter() - wall, time.process_time() - cpu


def opened(path: Path, options: dict[str, Any]) -> Any:
    """A counter, or a family if there are keys."""
    open_ = open_family if "keys" in options else open_counter
    return open_(path, epsilon=1, period="1h", horizon=1000, **options)
