"""Row `time`: publishing on Spark against Spark's own sorted group-by of the same column, in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import partita as pt
from benchmarks.accuracy.score import Json, short
from benchmarks.scale.rows import COLUMN, HEAP, SCHEMA, frame

MOST = 2.0
"""Publishing should take at most so many times as long."""


def speed(spark: Any, rows: Sequence[int]) -> Iterator[Json]:
    """Both on a session that has done both before; memory is that of the Python driver at its peak."""
    sort(spark, 1000)
    publish(spark, 1000)
    for number in rows:
        forget_peak()
        own, ours = seconds(sort, spark, number), seconds(publish, spark, number)
        yield {
            "row": "time",
            "rows": f"{number:.0e}",
            "group-by and sort (s)": short(own),
            "publish (s)": short(ours),
            "ratio": short(ours / own),
            "driver (MB)": round(peak() / 1024),
            "heap": HEAP,
            "met": ours <= MOST * own,
        }


def sort(spark: Any, rows: int) -> None:
    """Spark's own: every distinct value and its count, in order, thrown away."""
    counted = frame(spark, rows).groupBy(COLUMN).count().orderBy(COLUMN)
    counted.write.format("noop").mode("overwrite").save()


def publish(spark: Any, rows: int) -> pt.Release:
    """Ours: the release of the column."""
    return pt.publish(frame(spark, rows), SCHEMA, epsilon=1)


def seconds(work: Callable[[Any, int], object], spark: Any, rows: int) -> float:
    start = time.perf_counter()
    work(spark, rows)
    return time.perf_counter() - start


def forget_peak() -> None:
    """The kernel starts to watch for the largest memory anew."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The largest memory of this process since then, in kilobytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
