"""Reports of the local model are counted on the cluster as they are here."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from partita.errors import SourceError
from partita.local import Frequency, Mean

pytest.importorskip("pyspark", reason="PySpark is not installed")

from partita.trusted.sources.spark.source import aggregate

pytestmark = pytest.mark.engines


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["response", "unary"])
def test_the_aggregator_is_the_one_that_counts_here(spark: Any, kind: Any) -> None:
    """Reports in several partitions make the state that one aggregator has of them all."""
    question = Frequency(5, epsilon=1, kind=kind)
    reports = question.randomize_many([0, 1, 2, 3, 4] * 40)
    column = reports.tolist() if reports.ndim == 1 else [bytes(row) for row in reports]
    here = question.aggregator()
    here.add_many(reports)

    rows = spark.createDataFrame(pa.table({"a.report": column})).repartition(3)

    assert aggregate(rows, "a.report", question).to_bytes() == here.to_bytes()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_what_is_no_report_is_refused(spark: Any) -> None:
    """One row that nobody can have sent, and nothing is counted."""
    rows = spark.createDataFrame(pa.table({"report": [0, 1, 99]}))

    with pytest.raises(SourceError, match="must hold a report"):
        aggregate(rows, "report", Frequency(5, epsilon=1, kind="response"))


def test_reports_of_several_lengths_are_refused(spark: Any) -> None:
    """Bytes that one report has too few are not taken from the next."""
    rows = spark.createDataFrame([(bytes(length),) for length in (5, 4, 6)], "report binary").coalesce(1)

    with pytest.raises(SourceError, match="must hold a report"):
        aggregate(rows, "report", Frequency(5, epsilon=1, kind="unary"))


def test_no_reports_are_counted_too(spark: Any) -> None:
    """An empty column makes an aggregator of nobody."""
    rows = spark.createDataFrame([], "report bigint")

    assert aggregate(rows, "report", Mean(0, 1, epsilon=1)).n == 0
