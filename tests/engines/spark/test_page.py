"""What docs/scale.md shows runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from partita.local import Frequency

pytest.importorskip("pyspark", reason="PySpark is not installed")

pytestmark = pytest.mark.engines

PAGE = Path(__file__).parents[3] / "docs" / "scale.md"


def snippets() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_publishes_and_aggregates(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release of a Parquet file on the cluster, stored where the page says, and all reports counted."""
    monkeypatch.chdir(tmp_path)
    rows = spark.range(500).selectExpr("id % 200 AS patient", "id * 1000 AS bytes")
    rows.write.parquet(str(tmp_path / "visits.parquet"))
    question = Frequency(5, epsilon=1, kind="response")
    known: dict[str, Any] = {
        "spark": Reading(spark, tmp_path),
        "question": question,
        "reports": spark.range(40).selectExpr("id % 5 AS report"),
    }

    publishing, aggregating, *_ = snippets()
    exec(publishing, known)
    exec(aggregating, known)

    assert (tmp_path / "visits.release.parquet").exists()
    assert known["aggregator"].counts.tolist() == [8] * 5


class Reading:
    """A session whose relative paths start here: the Java side has a working directory of its own."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    @property
    def read(self) -> Reading:
        return self

    def parquet(self, name: str) -> Any:
        return self.spark.read.parquet(str(self.folder / name))


def test_the_page_feeds_a_counter_by_names_that_exist() -> None:
    """The third snippet needs a stream and never ends; its imports and its call are checked."""
    import inspect

    from partita.trusted.sources.spark import session as sink

    feeding = snippets()[2]
    names = re.findall(r"(\w+)=", feeding.partition("sink.feed(")[2].partition(")")[0])
    exec("\n".join(line for line in feeding.splitlines() if line.startswith("from ")), {})

    assert names
    assert set(names) <= set(inspect.signature(sink.feed).parameters)
