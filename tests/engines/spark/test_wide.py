"""Tables of up to forty columns on a cluster: the same counts as here, and one pass for each round."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partita as pt
from partita.domain.axis import MOST_AXES, MOST_COLUMNS, Axis
from partita.domain.base import Domain
from partita.errors import SourceError
from partita.public.boxes.bins import AxisBins
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import Tally, tally

pytest.importorskip("pyspark", reason="PySpark is not installed")

from partita.trusted.sources.spark import wide
from partita.trusted.sources.spark.counts import PartitionSum, SparkPoints
from partita.trusted.sources.spark.session import Cluster
from partita.trusted.sources.spark.source import SparkSource
from partita.trusted.sources.spark.wide import RowEncoder, SparkWideTally

pytestmark = pytest.mark.engines

ROWS = 3_000
PERSONS = 700
LONG = 2**40

KINDS: list[tuple[Domain, Callable[[int, int], Any]]] = [
    (
        pt.Integer(0, 9),
        lambda row, column: None if row % 31 == column % 31 else (row * (column + 3)) % 12 - 1,
    ),
    (
        pt.Category(["a", "b", "é"]),
        lambda row, column: [None, "a", "b", "é", "?"][row * 7 % (column + 4) % 5],
    ),
    (pt.Real(-1, 1, step="0.25"), lambda row, column: [0.0, -0.0, float("nan"), 0.3, 7.0][row * column % 5]),
    (pt.Date("2024-01-01", "2026-12-31"), lambda row, column: date(2024, 1, 1) + timedelta(row % 1200)),
    (pt.Integer(0, LONG - 1), lambda row, column: row * row * 1_000_003 % LONG),
]
"""Domains of columns, over and over, and the value of a row in such a column."""


def schema(width: int) -> dict[str, Domain]:
    return {f"c{number}": KINDS[number % len(KINDS)][0] for number in range(width)}


@cache
def rows() -> Any:
    """Forty columns and an id that is a float: some ids are missing, and zero has two signs."""
    persons = [None if row % 97 == 0 else float(row * 7 % PERSONS) for row in range(ROWS)]
    columns = {
        f"c{number}": [KINDS[number % len(KINDS)][1](row, number) for row in range(ROWS)]
        for number in range(MOST_COLUMNS)
    }
    signed = [-0.0 if person == 0 and row % 2 else person for row, person in enumerate(persons)]
    return pa.table({"id": pa.array(signed, pa.float64()), **columns})


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    """The same rows in five partitions, one of them empty."""
    made = spark.createDataFrame(rows())
    return made.repartition(4).union(made.limit(0))


def coarse(axis: Axis) -> AxisBins:
    """A few bins of an axis: runs, or sets of labels."""
    if axis.labels:
        return AxisBins.from_lookup(np.arange(axis.width)[::-1] % 3)
    return AxisBins.from_edges(np.array([axis.width // 3, axis.width - 2, axis.width - 1], np.uint64))


SETS = [
    *((number,) for number in range(MOST_COLUMNS)),
    *combinations(range(MOST_COLUMNS), 2),
    (39, 0, 17),
    (5, 22, 1, 38),
]
"""Views, all pairs, and larger sets in another order."""

BOUNDS: list[dict[str, Any]] = [
    {},
    {"where": ("c1", "b")},
    {"person": "id", "contributions": 2, "salt": "autumn"},
    {"person": "id", "contributions": 1, "salt": "autumn", "where": ("c6", "é")},
]


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_forty_columns_have_the_same_tables_as_here(frame: Any, bound: dict[str, Any]) -> None:
    """Views, all 780 pairs and larger sets agree cell by cell: all rows, a part, and bounded persons."""
    names = list(schema(MOST_COLUMNS))
    here: Tally = tally(open_source(rows()), schema(MOST_COLUMNS), **bound)
    there = SparkSource(frame).tally(schema(MOST_COLUMNS), **bound)
    told, found = here.points(names), there.points(names)
    bins = [coarse(axis) for axis in told.axes]

    assert isinstance(there, SparkWideTally)
    assert (found.total, found.axes, found.contributions) == (told.total, told.axes, told.contributions)
    assert 0 < found.total < ROWS or not bound
    for mine, theirs in zip(found.tables(SETS, bins), told.tables(SETS, bins), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_single_columns_are_those_from_here(frame: Any) -> None:
    """A short axis is counted here, a long one in shards of it; both have all special cells."""
    domains = schema(MOST_AXES + 1)
    here, there = tally(open_source(rows()), domains), SparkSource(frame).tally(domains)
    mine, theirs = there.points(list(domains)), here.points(list(domains))

    for axis, name in enumerate(list(domains)[:4]):
        assert mine.alone(axis).gathered().places.tolist() == theirs.alone(axis).places.tolist()
        assert mine.alone(axis).gathered().counts.tolist() == theirs.alone(axis).counts.tolist()
        assert mine.along(axis).spread().tolist() == theirs.along(axis).spread().tolist()
        assert there.column(name).specials == here.column(name).specials
    halves = [AxisBins.from_edges([LONG // 2, theirs.axes[4].width - 1])]
    assert isinstance(mine.alone(4), SparkPoints)
    assert (
        mine.alone(4).tables([(0,)], halves)[0].tolist() == theirs.alone(4).tables([(0,)], halves)[0].tolist()
    )
    assert mine.along(4).total == theirs.along(4).total
    assert there.column("c4").histogram.total == here.column("c4").histogram.total == ROWS


def test_few_columns_have_the_same_tables_too(frame: Any) -> None:
    """Their rows are grouped, and combinations of bins are counted without putting groups in order."""
    domains = schema(MOST_AXES)
    sets = [(0,), (5, 1), (2, 4, 3)]
    told = tally(open_source(rows()), domains).points(list(domains))
    bins = [coarse(axis) for axis in told.axes]

    found = SparkSource(frame).tally(domains).points(list(domains))

    assert isinstance(found, SparkPoints)
    for mine, theirs in zip(found.tables(sets, bins), told.tables(sets, bins), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_short_axes_with_many_cells_are_counted_in_several_passes(
    frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many axes at once as there may be counts in one pass, and no axis is left out."""
    domains = schema(MOST_AXES + 1)
    told = tally(open_source(rows()), domains).points(list(domains))
    monkeypatch.setattr(wide, "MOST_COUNTED", 40)

    found = SparkSource(frame).tally(domains).points(list(domains))

    for axis in (0, 1, 2, 5, 6):
        assert found.alone(axis).gathered().counts.tolist() == told.alone(axis).counts.tolist()


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """All workers that were sent to the cluster."""
    sent: list[Any] = []
    mapped = Cluster.mapped

    def record(self: Cluster, frame: Any, worker: Any, schema: str) -> Any:
        sent.append(worker)
        return mapped(self, frame, worker, schema)

    monkeypatch.setattr(Cluster, "mapped", record)
    return sent


def count_reads(spark: Any, frame: Any) -> tuple[Any, Any]:
    """The same rows, and a counter of how often one of them was read."""
    reads = spark.sparkContext.accumulator(0)

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            reads.add(batch.num_rows)
            yield batch

    return frame.mapInArrow(read, frame.schema), reads


ROUNDS = ("views", "trees of long columns", "pairs", "covers", "triples of the audit", "cells of the audit")
"""What a table release counts, a pass over all rows for each at most."""


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("width", [MOST_AXES + 1, MOST_COLUMNS])
def test_a_round_is_one_pass_however_many_columns_there_are(
    spark: Any, frame: Any, workers: list[Any], width: int
) -> None:
    """The table is read once. What is stored of it is read once for each round of counts, and no more."""
    domains = schema(width) | {name: pt.Integer(0, 9) for name in LONG_NAMES if name in schema(width)}
    watched, reads = count_reads(spark, frame)

    there = SparkSource(watched).tally(domains)
    points = there.points(list(domains))
    TableGraph(axes=points.axes, epsilon=1).release(points)

    assert reads.value == ROWS
    passes = [worker for worker in workers if isinstance(worker, PartitionSum)]
    assert 3 <= len(passes) <= len(ROUNDS)
    assert sum(isinstance(worker, RowEncoder) for worker in workers) == 1
    assert len(workers) == 1 + 2 * len(passes)


LONG_NAMES = [f"c{number}" for number in range(4, MOST_COLUMNS, len(KINDS))]
"""Columns whose trees stay on the cluster: they take a pass over that column, and one for each level."""


def test_a_wide_table_is_published_and_forgotten(spark: Any, frame: Any) -> None:
    """Columns of all kinds, persons with two rows at most; afterwards the cluster stores nothing."""
    domains = {name: domain for name, domain in schema(MOST_COLUMNS).items() if name not in LONG_NAMES[1:]}

    release = pt.publish(frame, domains, epsilon=5, person="id", contributions=2)

    assert release.guarantee is not None
    assert release.guarantee.contributions == 2
    exact = tally(open_source(rows()), domains, person="id", contributions=2).points(["c0"]).total
    assert abs(release.count().value - exact) < 100
    gc.collect()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0


def test_rows_that_the_cluster_lost_fail_the_count(frame: Any) -> None:
    """They are not read again, since the table may have changed."""
    domains = schema(MOST_AXES + 1)
    there = SparkSource(frame).tally(domains)
    points = there.points(list(domains))

    there.close()

    with pytest.raises(SourceError, match="could not be counted"):
        points.tables([(0,)], [coarse(axis) for axis in points.axes])


def test_no_rows_are_a_table_too(spark: Any) -> None:
    """All counts of a table without rows are zero."""
    domains = schema(MOST_AXES + 1)
    empty = (
        SparkSource(spark.createDataFrame(rows()).limit(0)).tally(domains, person="id").points(list(domains))
    )

    tables = empty.tables([(0,), (1, 4)], [coarse(axis) for axis in empty.axes])

    assert empty.total == 0
    assert [table.sum() for table in tables] == [0, 0]
    assert empty.alone(0).total == 0


def test_nothing_shows_a_row(frame: Any) -> None:
    """Tallies and points print public facts only."""
    domains = schema(MOST_AXES + 1)
    there = SparkSource(frame).tally(domains)

    assert repr(there) == f"SparkWideTally({list(domains)}, contributions=1, secret)"
    assert repr(there.points(["c1", "c0"])) == "SparkWidePoints(2 axes, contributions=1, secret)"
