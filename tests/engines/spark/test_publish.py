"""`publish` on a cluster: what it releases, what it leaves behind, and what nobody gets to see."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.errors import BudgetExceeded, SourceError

pytest.importorskip("pyspark", reason="PySpark is not installed")

from partita.trusted.sources.spark.session import SILENCE
from partita.trusted.sources.spark.source import SparkSource

pytestmark = pytest.mark.engines

CANARY = "canary-4711"
ROWS = 20_000


@pytest.fixture(scope="module")
def people(spark: Any) -> Any:
    """Twenty thousand rows of four thousand persons, made on the cluster."""
    return spark.range(ROWS).selectExpr(
        "id % 4000 AS person",
        "id % 80 AS age",
        "(id * id) % 1000003 * 4001 AS bytes",
        "if(id % 3 = 0, 'n', 's') AS region",
    )


def kept(spark: Any) -> int:
    """How many data sets the cluster keeps for anybody."""
    gc.collect()
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def test_a_column_of_four_billion_cells_is_published(spark: Any, people: Any) -> None:
    """Counts of ranges are as near as the release says, and the cluster keeps nothing afterwards."""
    release = pt.publish(people, {"bytes": pt.Integer(0, 2**32 - 1)}, epsilon=4)

    answer = release.count(bytes=(0, 2**31))
    exact = people.where("bytes <= 2147483648").count()
    assert abs(answer.value - exact) < 12 * answer.error
    assert (
        release.guarantee
        == pt.publish({"bytes": [1]}, {"bytes": pt.Integer(0, 2**32 - 1)}, epsilon=4).guarantee
    )
    assert kept(spark) == 0


def test_shards_without_rows_are_cut_too(spark: Any) -> None:
    """Three values in the first of many shards; whoever wants another number of shards says so."""
    rows = spark.createDataFrame([(5,), (7,), (9,)], "x int")

    release = pt.publish(SparkSource(rows, shards=16), {"x": pt.Integer(0, 2**24 - 1)}, epsilon=4)

    assert abs(release.count(x=(0, 2**20)).value - 3) < 60
    assert abs(release.count(x=(2**20, 2**24 - 1)).value) < 60


def test_rows_that_were_lost_are_not_counted_again(spark: Any, tmp_path: Path) -> None:
    """What the cluster has lost fails the release: the table may be another one by now."""
    path = str(tmp_path / "rows")
    spark.range(10).write.parquet(path)
    tally = SparkSource(spark.read.parquet(path)).tally({"id": pt.Integer(0, 99)})
    assert tally.column("id").histogram.total == 10

    tally.close()

    with pytest.raises(SourceError, match="could not be counted"):
        tally.column("id")


def test_executors_of_another_version_are_refused(
    spark: Any, people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They might do something else under the same name, so they do nothing."""
    monkeypatch.setattr(pt, "__version__", "0.0.1")

    with pytest.raises(SourceError, match="same version") as raised:
        pt.publish(people, {"age": pt.Integer(0, 99)}, epsilon=1)

    assert raised.value.__context__ is None


def test_a_log_is_off_until_the_last_has_left(spark: Any) -> None:
    """Two that overlap leave every logger as it was, one with a level of its own, too."""
    log4j = spark._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel("canary", log4j.Level.INFO)
    names = ("canary", "org.apache.spark", "")

    def levels() -> list[str]:
        return [log4j.LogManager.getLogger(name).getLevel().toString() for name in names]

    before = levels()
    one, two = (SILENCE.on(spark.sparkContext) for _ in range(2))
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(one)
        second.enter_context(two)
        first.close()
        assert levels() == ["OFF"] * 3
    assert before[0] == "INFO"
    assert levels() == before


SCHEMA: Mapping[str, Any] = {
    "age": pt.Integer(0, 99),
    "bytes": pt.Integer(0, 2**32 - 1),
    "region": pt.Category(["n", "s"]),
}


def test_boxes_sums_and_queries_are_published_by_person(spark: Any, people: Any) -> None:
    """Views, sums and queries under one debit; of each person five rows at most, which is all they have."""
    release = pt.publish(
        people,
        SCHEMA,
        epsilon=5,
        views=[("region", "age")],
        sums=["age"],
        queries="ranges(age)",
        person="person",
        contributions=5,
    )

    exact = people.where("region = 'n' AND age < 40").count()
    assert abs(release.count(region="n", age=(0, 39)).value - exact) < ROWS / 5
    assert release.guarantee is not None
    assert release.guarantee.contributions == 5
    assert kept(spark) == 0


def test_what_a_ledger_refuses_is_not_kept(spark: Any, people: Any, tmp_path: Path) -> None:
    """Rows are counted before the debit; if there is no budget for them, the cluster forgets them, too."""
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.open("people", epsilon=1)

    with pytest.raises(BudgetExceeded):
        pt.publish(people, {"age": pt.Integer(0, 99)}, epsilon=2, ledger=ledger, dataset="people")

    assert kept(spark) == 0


def test_no_word_of_spark_is_repeated(spark: Any, spark_log: Path, capfd: Any) -> None:
    """An error that holds a value shows it neither in ours, nor in its causes, nor in a log on the driver."""
    printed = spark_log.stat().st_size
    rows = spark.range(3).selectExpr(f"CAST(concat('{CANARY}', id) AS INT) AS age")

    with pytest.raises(SourceError) as raised:
        pt.publish(rows, {"age": pt.Integer(0, 99)}, epsilon=1)

    error: BaseException | None = raised.value
    assert error is not None
    assert error.__cause__ is None
    assert error.__context__ is None
    out, err = capfd.readouterr()
    log = spark_log.read_bytes()[printed:].decode()
    assert CANARY not in str(error) + out + err + log


def test_a_worker_that_fails_tells_nothing(spark: Any, people: Any, spark_log: Path) -> None:
    """What our own code says on an executor goes to Spark's log without what it worked on."""
    secret = "what a worker saw"  # a word of its own: Spark may log late what it knows from earlier tests
    counts = SparkSource(people).tally({"age": pt.Integer(0, 99)}).column("age").histogram

    def fail(cells: Any, weights: Any) -> Any:
        if len(cells):
            raise ValueError(secret)
        return np.zeros(1, np.int64)

    with pytest.raises(SourceError, match="could not be counted"):
        counts.folded(fail)

    assert secret not in spark_log.read_bytes().decode()


def test_columns_of_no_use_are_refused_before_anything_runs(spark: Any) -> None:
    """Names, types and ids are checked on the driver."""
    rows = spark.createDataFrame([], "xs array<int>, age int, day date")

    with pytest.raises(SourceError, match="column 'xs' must hold"):
        pt.publish(rows, {"xs": pt.Integer(0, 9)}, epsilon=1)
    with pytest.raises(SourceError, match="did you mean 'age'"):
        pt.publish(rows, {"Age": pt.Integer(0, 9)}, epsilon=1)
    with pytest.raises(SourceError, match="tell persons apart"):
        pt.publish(rows, {"age": pt.Integer(0, 9)}, epsilon=1, person="day")
