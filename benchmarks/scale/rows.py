"""Rows that are made on the cluster: a heavy-tailed column of integers, like sizes of files in bytes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import partita as pt

SIZE = 2**32
COLUMN = "bytes"
SCHEMA = {COLUMN: pt.Integer(0, SIZE - 1)}
SEED = 7
HEAP = "4g"


@contextmanager
def session(master: str) -> Iterator[Any]:
    """A quiet Spark of its own, with a heap of four gigabytes."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).config("spark.driver.memory", HEAP)
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in (quiet | {"spark.driver.host": "127.0.0.1"}).items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    try:
        yield made
    finally:
        made.stop()


def frame(spark: Any, rows: int) -> Any:
    """The same rows whenever it is asked for: log-normal, cut off at 2^32."""
    from pyspark.sql import functions as sf

    value = sf.floor(sf.exp(12 + 2.5 * sf.randn(SEED)))
    return spark.range(rows).select(sf.least(value, sf.lit(SIZE - 1)).alias(COLUMN))
