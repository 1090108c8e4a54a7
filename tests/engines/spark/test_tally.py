"""Rows on a cluster are counted as rows are here: same cells, same counts, same choice of a person's rows."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from partita.domain import Category, Date, Domain, Integer, Real, Timestamp
from partita.domain.axis import MOST_AXES
from partita.public.axis.tree import Cut
from partita.trusted.secret import AxisCounts, Histogram
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import ColumnCounts, Tally, tally

pytest.importorskip("pyspark", reason="PySpark is not installed")

from partita.trusted.sources.spark.counts import CellBlock, SparkTally, to_longs
from partita.trusted.sources.spark.source import Raw, SparkSource, are_integers, integer_cells

pytestmark = pytest.mark.engines

NAN = float("nan")
UTC = datetime.UTC

TABLE = pa.table(
    {
        "whole": pa.array([3, 3, -7, 2**62, None, 2**63 - 1, -(2**63), 5, 40], pa.int64()),
        "real": pa.array([0.0, -0.0, NAN, None, 0.25, 1e300, -1e300, float("inf"), 0.25], pa.float64()),
        "exact": pa.array(
            [
                None if x is None else Decimal(x)
                for x in ("1.50", "1.5", None, "-2.25", "9.99", "0", "0", "1", "2")
            ],
            pa.decimal128(12, 2),
        ),
        "text": pa.array(["a", "A", "", None, "ä", "a ", "a", "b", "5"], pa.string()),
        "day": pa.array([None, *(datetime.date(2024, 2, d) for d in (1, 2, 29, 3, 3, 3, 4, 5))], pa.date32()),
        "moment": pa.array(
            [None, *(datetime.datetime(2024, 3, 10, h, 30, tzinfo=UTC) for h in (1, 2, 6, 7, 8, 8, 9, 23))],
            pa.timestamp("us", tz="UTC"),
        ),
        "wall": pa.array(
            [None, *(datetime.datetime(2024, 3, 10, h, 30) for h in (1, 2, 6, 7, 8, 8, 9, 23))],
            pa.timestamp("us"),
        ),
        "flag": pa.array([True, False, None, True, True, False, True, True, None], pa.bool_()),
        "person": pa.array(["p", "p", "p", None, "", "q", "q", "q", "p"], pa.string()),
        "number": pa.array([NAN, 1.0, 1.0, None, NAN, 1.0, 2.0, 2.0, 1.0], pa.float64()),
    }
)

SCHEMA = (
    "whole bigint, real double, exact decimal(12, 2), text string, day date, moment timestamp, "
    "wall timestamp_ntz, flag boolean, person string, number double"
)

COLUMNS: dict[str, Domain] = {
    "whole": Integer(-(2**63), 2**63 - 1),
    "real": Real(-1, 1, step="0.25"),
    "exact": Real(-5, 5, step="0.5"),
    "text": Category(["a", "b", "5"]),
    "day": Date("2024-02-02", "2024-02-29"),
    "moment": Timestamp("2024-03-10T02:00Z", "2024-03-10T12:00Z", resolution="1h"),
    "wall": Timestamp("2024-03-10T02:00", "2024-03-10T12:00", resolution="1h"),
    "flag": Category(["true", "false"]),
}


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.createDataFrame(TABLE, SCHEMA)


def facts(column: ColumnCounts, around: ColumnCounts) -> tuple[list[int], Mapping[str, int], int]:
    """The weights of the cells that are filled in `around` and of all between them; special cells; total."""
    assert isinstance(around.histogram, Histogram)
    ends = {cell + side for cell in around.histogram.cells.tolist() for side in (-1, 0)}
    edges = sorted({end for end in ends if end >= 0} | {around.histogram.size - 1})
    found = column.histogram.weigh(Cut(edges=np.array(edges, np.uint64)))
    return found.tolist(), column.specials, column.histogram.total


def collected(there: SparkTally) -> dict[tuple[int, ...], int]:
    """All that the cluster keeps: special cell and cell of each column, and how many rows."""
    found: dict[tuple[int, ...], int] = {}
    for block in CellBlock.read(iter(there.packed.frame.toArrow().to_batches())):
        for kinds, cells, count in zip(
            block.special.tolist(), block.cells.tolist(), block.counts.tolist(), strict=True
        ):
            row = tuple(each for pair in zip(kinds, cells, strict=True) for each in pair)
            assert row not in found
            found[row] = count
    return found


def kept(here: Tally) -> dict[tuple[int, ...], int]:
    columns = [part.tolist() for each in here.cells.values() for part in (each.special, each.cells)]
    return dict(zip(zip(*columns, strict=True), here.counts.tolist(), strict=True))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_every_type_of_column_has_the_same_cells_as_here(frame: Any) -> None:
    """Nulls, NaN, two zeros, decimals, days, zones and the ends of 64 bits, several columns together."""
    for names in (list(COLUMNS)[:MOST_AXES], list(COLUMNS)[-MOST_AXES:]):
        there = SparkSource(frame).tally(COLUMNS, names)

        assert isinstance(there, SparkTally)
        assert collected(there) == kept(tally(open_source(TABLE), COLUMNS, names))


@pytest.mark.parametrize("name", ["whole", "moment"])
def test_a_column_has_the_same_counts_as_here(frame: Any, name: str) -> None:
    """In shards of a universe of up to 2^64 cells, and beside other columns."""
    here = tally(open_source(TABLE), COLUMNS, [name]).column(name)
    alone = SparkSource(frame, shards=1).tally(COLUMNS, [name]).column(name)
    beside = SparkSource(frame, shards=1).tally(COLUMNS, [name, "text"]).column(name)

    assert facts(alone, here) == facts(here, here)
    assert facts(beside, here) == facts(here, here)


@pytest.mark.parametrize("person", ["person", "number"])
def test_the_rows_of_a_person_are_chosen_as_here(frame: Any, person: str) -> None:
    """Null, NaN and empty ids are one person, whose rows meet on one executor."""
    schema: dict[str, Domain] = {"whole": Integer(0, 9), "text": Category(["a", "b"])}
    names = ["text", "whole"]
    asked: dict[str, Any] = {"person": person, "contributions": 2, "salt": "2024"}

    here = tally(open_source(TABLE), schema, **asked).points(names)
    there = SparkSource(frame).tally(schema, **asked).points(names)

    assert there.gathered().places.tolist() == here.places.tolist()
    assert there.gathered().counts.tolist() == here.counts.tolist()
    assert facts_along(there.along(1)) == facts_along(here.along(1))
    assert there.alone(0).gathered().counts.tolist() == here.alone(0).counts.tolist()


def facts_along(counts: AxisCounts) -> tuple[list[int], int]:
    return counts.spread().tolist(), counts.total


BOUNDS = [
    (0, 2**64 - 1),
    (-(2**63), 2**63 - 1),
    (3, 5),
    (-7, 40),
    (2**62, 2**63 - 1),
    (2**63 - 1, 2**64),
    (-(2**63), 2**62),
]


def test_spark_places_integers_as_we_do(frame: Any) -> None:
    """Its expressions subtract what our own code subtracts, at the ends of 64 bits and beyond them."""
    raw = Raw.of(frame, ["whole"])
    values = [row["k0"] for row in raw.group().collect()]
    for low, high in BOUNDS:
        domain = {"whole": Integer(low, high)}
        assert are_integers(domain, raw)

        found = integer_cells(domain, raw).collect()
        encoded = domain["whole"].encode(pa.array(values, pa.int64()))

        assert Counter((row[0], row[1]) for row in found) == Counter(
            zip(encoded.special.tolist(), to_longs(encoded.cells).tolist(), strict=True)
        )


def test_only_rows_of_a_part_are_counted(frame: Any) -> None:
    """A part is matched as a label is, on the executors."""
    schema: dict[str, Domain] = {"whole": Integer(0, 99)}

    here = tally(open_source(TABLE), schema, where=("text", "a")).column("whole")
    there = SparkSource(frame).tally(schema, where=("text", "a")).column("whole")

    assert facts(there, here) == facts(here, here)


def test_raw_counts_are_those_of_every_source(frame: Any) -> None:
    """Grouped raw values come in the promised types and order."""
    for keys, sums in ((["real", "text"], []), (["moment", "wall"], ["whole"])):
        here = open_source(TABLE).counts(keys, sums)
        there = open_source(frame).counts(keys, sums)

        assert there.schema.types == here.schema.types
        assert repr(there.to_pydict()) == repr(here.to_pydict())


def test_names_and_collations_are_taken_as_they_are(spark: Any) -> None:
    """A dot in a name is no field, case counts, and texts that a collation makes equal are two."""
    rows = spark.createDataFrame([("a", 1), ("A", 2), ("a", 3)], "`t.x` string collate UTF8_LCASE, T int")

    there = SparkSource(rows).tally({"t.x": Category(["a", "A"])}).column("t.x")

    assert there.histogram.spread().tolist() == [2, 1]


def test_no_rows_are_counted_too(spark: Any) -> None:
    """A frame without rows has a count of zero everywhere, in every shard of a wide universe."""
    rows = spark.createDataFrame([], "x bigint, y string")

    axis = SparkSource(rows, shards=2).tally({"x": Integer(0, 2**24)}).column("x").histogram
    box = SparkSource(rows).tally({"x": Integer(0, 9), "y": Category(["a"])}, person="y").points(["x", "y"])

    assert (axis.total, box.total) == (0, 0)
    assert axis.weigh(Cut(edges=np.array([5, 2**24], np.uint64))).tolist() == [0, 0]


def test_sums_of_any_size_stay_exact(frame: Any) -> None:
    """A sum of Python ints beyond 64 bits comes back as it is, and so does a long one."""
    counts = SparkSource(frame).tally({"whole": Integer(0, 99)}).column("whole").histogram

    def huge(cells: Any, weights: Any) -> Any:
        found = np.zeros((2, 70_000), dtype=object)
        found[1, -1] = 10**30 * int(weights.sum())
        return found

    sums = counts.folded(huge)

    assert sums.shape == (2, 70_000)
    assert sums[1, -1] == 4 * 10**30
    assert not sums[0].any()
