"""Row `tables`: a table of many columns on Spark: reading it, each pass over what is stored, memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, TypeVar

from numpy.typing import NDArray

from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.tables_sets import declare
from benchmarks.scale.speed import forget_peak, peak
from benchmarks.speed.tables import EPSILON, SIZES
from partita.arrays import Ints
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.public.boxes.bins import AxisBins
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.secret import AxisCounts, PointCounts, Work
from partita.trusted.sources.spark.source import SparkSource
from partita.trusted.tables import AxisSets

T = TypeVar("T")

WIDTHS = (10, 40)
"""How many columns the table has, unless the command says so."""

WARM = 1000
"""Rows of the table that is published first, so that workers have started."""

CLOCK = os.sysconf("SC_CLK_TCK")


def tables(
    spark: Any, rows: Sequence[int], widths: Sequence[int] = WIDTHS, folder: str | None = None
) -> Iterator[Json]:
    """Every width with every number of rows, from a Parquet file that is written before the clock starts."""
    with TemporaryDirectory(dir=folder) as written:
        for width in widths:
            measure(spark, width, WARM, written)
            for number in rows:
                yield measure(spark, width, number, written)


def measure(spark: Any, width: int, rows: int, folder: str) -> Json:
    """One release. The baseline is Spark's own count of one pair of columns from the same file."""
    path = str(Path(folder, f"rows-{width}-{rows}"))
    draw(spark, width, rows).write.mode("overwrite").parquet(path)
    frame, schema = spark.read.parquet(path), declare_columns(width)
    frame.count()
    _, pair = timed(lambda: frame.groupBy("q0", "q1").count().collect())
    forget_peak()
    before = cpu_seconds()
    tally, reading = timed(lambda: SparkSource(frame).tally(schema))
    reading_cpu = cpu_seconds() - before
    points = Watched(tally.points(list(schema)))
    _, releasing = timed(lambda: TableGraph(axes=points.axes, epsilon=EPSILON).release(points))
    tally.close()
    return {
        "row": "tables",
        "columns": width,
        "rows": f"{rows:.0e}",
        "one pair by Spark (s)": short(pair),
        "read and encode (s)": short(reading),
        "passes": len(points.seconds),
        "pass, mean (s)": short(sum(points.seconds) / len(points.seconds)),
        "pass, longest (s)": short(max(points.seconds)),
        "model and noise (s)": short(releasing - sum(points.seconds)),
        "all (s)": short(reading + releasing),
        "CPU, encode (s)": round(reading_cpu),
        "CPU, all (s)": round(cpu_seconds() - before),
        "driver (MB)": round(peak() / 1024),
    }


def draw(spark: Any, width: int, rows: int) -> Any:
    """The same rows whenever it is asked for: columns share a trait; every fourth is text."""
    from pyspark.sql import functions as sf

    frame = spark.range(rows).withColumn("trait", sf.rand(0))
    columns = []
    for number, (size, ordered) in enumerate(kinds(width)):
        mixed = (sf.col("trait") + sf.rand(number + 1)) / 2
        code = sf.least(sf.floor(sf.pow(mixed, 1.5) * size), sf.lit(size - 1))
        columns.append(code.cast("smallint" if ordered else "string").alias(f"q{number}"))
    return frame.select(columns)


def declare_columns(width: int) -> dict[str, Domain]:
    """The domains of the columns."""
    return {f"q{number}": declare(*kind) for number, kind in enumerate(kinds(width))}


def kinds(width: int) -> list[tuple[int, bool]]:
    """The cells of each column, and whether they have an order, as in `benchmarks.speed`."""
    return [(SIZES[number % len(SIZES)], number % 4 != 3) for number in range(width)]


@dataclass(frozen=True, eq=False)
class Watched(PointCounts):
    """Points that record how long each question takes: each is a pass over the rows."""

    inner: PointCounts
    seconds: list[float] = field(default_factory=list)

    @property
    def axes(self) -> tuple[Axis, ...]:  # type: ignore[override]
        return self.inner.axes

    @property
    def contributions(self) -> int:  # type: ignore[override]
        return self.inner.contributions

    @property
    def total(self) -> int:
        return self.inner.total

    def tables(self, sets: AxisSets, bins: Sequence[AxisBins]) -> list[Ints]:
        with self.watching():
            return self.inner.tables(sets, bins)

    def alone(self, axis: int) -> PointCounts:
        with self.watching():
            return self.inner.alone(axis)

    def along(self, axis: int) -> AxisCounts:
        with self.watching():
            return self.inner.along(axis)

    def folded(self, work: Work) -> NDArray[Any]:
        with self.watching():
            return self.inner.folded(work)

    @contextmanager
    def watching(self) -> Iterator[None]:
        start = perf_counter()
        yield
        self.seconds.append(perf_counter() - start)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    start = perf_counter()
    found = work()
    return found, perf_counter() - start


def cpu_seconds() -> float:
    """Of this process, of Spark's Java process, and of all Python workers."""
    stats = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = file.read_text()
        except OSError:
            continue
        values = text.rpartition(")")[2].split()
        stats[int(file.parent.name)] = int(values[1]), sum(map(int, values[11:15])) / CLOCK
    family = {os.getpid()}
    while more := {each for each, (parent, _) in stats.items() if parent in family} - family:
        family |= more
    return sum(stats[each][1] for each in family)
