"""From a file to a release."""

from __future__ import annotations

import atexit
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import partita as pt
from benchmarks.speed.clock import Work, times
from benchmarks.speed.row import Row, Target
from partita.public.release import Release

SIZE, EPSILON = 2**32, 1
ROWS, DISTINCT = 10**7, 300_000
SCHEMA = {"v": pt.Integer(0, SIZE - 1)}


def publish_file(quick: bool) -> Row:
    """`publish` of a Parquet column, against DuckDB's own sorted group-by of it, fully fetched.

    The process is warm: the untimed call has loaded the compiled code, as a first column with so many
    distinct values does (row `first-compiled-draw` tells what that costs).
    """
    n = ROWS // 1000 if quick else ROWS
    file = parquet(n)
    ours = Work("publish, from the file to the release", partial(published, file), n)
    target = Target("ratio", "<=", 2)
    return times(quick, ours, group_by(file, n), target=target, size="2^32", epsilon=EPSILON)


def published(file: Path) -> Release:
    """One call, with fresh noise."""
    release: Release = pt.publish(file, SCHEMA, epsilon=EPSILON)
    return release


def group_by(file: Path, n: int) -> Work:
    """What any count of a column costs, made and fetched by the same engine."""
    import duckdb

    query = f"select v, count(*) from read_parquet('{file}') group by v order by v"
    connection: Any = duckdb.connect()
    return Work("DuckDB group by, sorted, fetched", lambda: connection.execute(query).fetchnumpy(), n)


@cache
def parquet(n: int) -> Path:
    """A file with one column of n rows: skewed, about 300,000 distinct values below 2^32 in ten million."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(n)
    pool = np.exp(rng.normal(15, 1.2, DISTINCT)).clip(0, SIZE - 1).astype(np.int64)
    rows = pool[(DISTINCT * rng.random(n) ** 2).astype(np.int64)]
    file = folder() / f"{n}.parquet"
    pq.write_table(pa.table({"v": rows}), file)
    return file


@cache
def folder() -> Path:
    """A place for files, gone when the process ends."""
    made = TemporaryDirectory(prefix="partita-benchmark-")
    atexit.register(made.cleanup)
    return Path(made.name)
