"""What is a DataFrame of Spark is told without Spark, and what cannot be used is refused in words."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from partita.errors import InvalidData, InvalidParameter, SourceError
from partita.trusted.sources.open import open_source
from partita.trusted.sources.spark.counts import to_cells, to_longs, whole_groups
from partita.trusted.sources.spark.session import Cluster, is_spark, pack_worker
from partita.trusted.sources.spark.source import SparkSource, aggregate


class DataFrame:
    """It has the name of one, and comes from where Connect has its own."""

    __module__ = "pyspark.sql.connect.dataframe"


def test_other_frames_are_none_of_spark() -> None:
    """A table of Arrow is read here, and no table of this name is taken for one of Spark."""
    other = type("DataFrame", (), {"__module__": "pandas"})()

    assert is_spark(DataFrame())
    assert not is_spark(other)
    assert not is_spark(pa.table({"x": [1]}))


def test_a_frame_of_spark_connect_is_refused() -> None:
    """Its session has no driver that we could speak to."""
    frame: Any = DataFrame()

    with pytest.raises(SourceError, match="not of Spark Connect"):
        open_source(frame)


@pytest.mark.parametrize("said", ["true", "TRUE"])
def test_a_cluster_whose_tasks_race_is_refused(said: str) -> None:
    """Speculation hands over the faster of two draws, and a cut with fewer seals is faster."""
    racing = Session({"spark.speculation": said})

    with pytest.raises(SourceError, match=r"spark\.speculation must be off"):
        Cluster(racing).require_no_races()

    for calm in ({}, {"spark.speculation": "false"}):
        Cluster(Session(calm)).require_no_races()


def test_the_number_of_shards_does_not_follow_the_machines() -> None:
    """A cluster that grows with the rows has as many as a small one, unless somebody has set a number."""
    for machines in (1, 1000):
        assert Cluster(Session({}, machines)).parts == 16
        assert Cluster(Session({"spark.default.parallelism": "200"}, machines)).parts == 400


class Session:
    """A session of which nothing is known but its settings, and how many tasks it runs side by side now."""

    def __init__(self, settings: dict[str, str], machines: int = 1) -> None:
        self.settings, self.defaultParallelism = settings, machines

    @property
    def sparkContext(self) -> Session:
        return self

    def getConf(self) -> dict[str, str]:
        return self.settings


def test_what_is_no_frame_is_refused_with_the_extra_that_makes_them() -> None:
    """Whoever has no Spark is told what to install."""
    with pytest.raises(InvalidData, match=r"partita\[spark\]"):
        SparkSource({"x": [1]})
    with pytest.raises(InvalidParameter, match="must be a question"):
        aggregate(DataFrame(), "report", "frequency")  # type: ignore[arg-type]


def test_spark_is_not_imported_to_open_a_table() -> None:
    """Reading a table here costs nothing of Spark, nor does having the package of its source."""
    code = (
        "import sys; from partita.trusted.sources.open import open_source; "
        "open_source({'x': [1]}); sys.exit('pyspark' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.engines
def test_a_worker_that_fails_says_nothing_of_its_rows() -> None:
    """What Spark would log of it has neither the text of the error nor its cause."""

    def fail(batches: Any) -> Any:
        yield next(batches)
        raise ValueError("canary")

    pytest.importorskip("pyspark", reason="PySpark is not installed")
    found = pack_worker(fail)(iter([1]))
    assert next(found) == 1
    with pytest.raises(RuntimeError) as raised:
        next(found)

    assert "canary" not in str(raised.value)
    assert raised.value.__context__ is None


def test_cells_keep_their_order_as_signed_numbers() -> None:
    """The smallest cell is the smallest number, and all come back as they were."""
    cells = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)

    longs = to_longs(cells)

    assert longs.tolist() == sorted(longs.tolist())
    assert to_cells(pa.array(longs)).tolist() == cells.tolist()


@pytest.mark.engines
@pytest.mark.parametrize("rows", [0, 3])
def test_a_block_is_read_as_it_was_packed(rows: int) -> None:
    """One without cells, too, keeps its shard and its columns."""
    packed = pytest.importorskip("partita.trusted.sources.spark.counts", reason="PySpark is not installed")
    kinds, cells = np.zeros((rows, 2), np.uint8), np.arange(2 * rows, dtype=np.uint64).reshape(rows, 2)
    block = packed.CellBlock(7, kinds, cells, np.ones(rows, np.int64))

    [found] = packed.CellBlock.read(iter([block.batch()]))

    assert found.shard == 7
    assert [part.tolist() for part in found[1:]] == [part.tolist() for part in block[1:]]
    assert found.cells.shape == (rows, 2)


def test_groups_are_never_cut() -> None:
    """Rows of a person that come in several batches stay together, those without a name, too."""
    people: list[list[Any]] = [[None, None], [None, "a"], ["a"], ["a", "b", "b"], ["c"]]
    tables = (pa.table({"who": pa.array(some, pa.string())}) for some in people)

    found = [table.column(0).to_pylist() for table in whole_groups(tables, lambda table: table.column(0))]

    assert [each for part in found for each in part] == [each for part in people for each in part]
    assert all(set(one).isdisjoint(other) for one in found for other in found if one is not other)
