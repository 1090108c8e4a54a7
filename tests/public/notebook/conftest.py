"""Things that people look at in notebooks, small and made without fresh noise where that can be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import partita as pt
from partita.public.release import Release

HOSTILE = "<script>alert('&')</script>"
"""A name that would be code if anybody forgot to escape it."""


@pytest.fixture(scope="session")
def release() -> Release:
    """Views of one column and of two, sums, and a column whose name and labels are hostile."""
    ages = np.arange(600) % 60
    return pt.publish(
        {"age": ages, "pay": 10 * ages, HOSTILE: [HOSTILE] * 600},
        {"age": pt.Integer(0, 59), "pay": pt.Integer(0, 599), HOSTILE: pt.Category([HOSTILE, "b"])},
        epsilon=1,
        views=[("age", "pay"), (HOSTILE,)],
        sums=["pay"],
    )


@pytest.fixture(scope="session")
def asked() -> Release:
    """A release of answers to queries and of nothing else."""
    schema = {"age": pt.Integer(0, 60)}
    return pt.publish({"age": [1, 2, 3]}, schema, epsilon=1, queries=pt.ranges("age", [(0, 9), (10, 60)]))


@pytest.fixture
def visits(tmp_path: Path) -> Iterator[pt.DurableCounter]:
    """A durable counter of two closed periods and an open one."""
    counter = pt.open_counter(tmp_path / "visits.db", epsilon=1, period="1h", start="2026-01-01")
    for hour in (1, 2):
        counter.add(5, feeder="door", sequence=hour)
        counter.tick(f"2026-01-01T0{hour}:00:00")
    yield counter
    counter.close()


@pytest.fixture
def in_memory() -> dict[str, pt.ContinualCounter]:
    """Counters in memory, each after a period in which four were counted."""
    made: dict[str, pt.ContinualCounter] = {
        "counter": pt.Counter(epsilon=1, horizon=64),
        "endless": pt.Counter(epsilon=1),
        "tree": pt.TreeCounter(epsilon=1, horizon=64),
        "sparse": pt.SparseCounter(epsilon=1, horizon=64),
        "sliding": pt.SlidingCounter(epsilon=1, window=8),
        "pan-private": pt.PanPrivateCounter(epsilon=1, horizon=64),
        "direct": pt.DirectCounter(epsilon=1, horizon=64),
    }
    for counter in made.values():
        counter.update(4)
    return made
