"""Rows on a Spark cluster: they are grouped, bounded, cut and weighed there, and only the release travels.

    SparkSource(frame)                     what `publish(frame, ...)` makes of a Spark DataFrame
    aggregate(frame, column, question)     reports of the local model, counted where they are
    sink.feed(stream, counter, ...)        a streaming query that feeds a durable counter exactly once

Only this package imports Spark, and only when it is given a DataFrame. docs/scale.md says what moves where.
"""

from __future__ import annotations

from partita.sources.spark.reports import aggregate
from partita.sources.spark.session import is_spark
from partita.sources.spark.source import SparkSource

__all__ = ["SparkSource", "aggregate", "is_spark"]
