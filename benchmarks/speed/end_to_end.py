"""From a file to a release, and from a release to a million answers."""

from __future__ import annotations

import atexit
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import partita as pt
from benchmarks.speed.clock import Work, rates, times
from benchmarks.speed.row import Row, Target
from partita.inference.curve import UInts
from partita.noise import SystemNoise
from partita.releases.release import Release

SIZE, EPSILON = 2**32, 1
ROWS, DISTINCT, RANGES = 10**7, 300_000, 10**6
SCHEMA = {"v": pt.Integer(0, SIZE - 1)}


def publish_file(quick: bool) -> Row:
    """`publish` of a Parquet column, against DuckDB's own sorted group-by of it, fully fetched.

    The process is warm: a first draw by compiled code has loaded it, which pays only for longer data
    (row `first-compiled-draw`).
    """
    SystemNoise(path="compiled").geometric(20, 10)
    n = ROWS // 1000 if quick else ROWS
    file = parquet(n)
    ours = Work("publish, from the file to the release", partial(published, file), n)
    target = Target("ratio", "<=", 2)
    return times(quick, ours, group_by(file, n), target=target, size="2^32", epsilon=EPSILON)


def counts_of_ranges(quick: bool) -> Row:
    """A million ranges in one call of the release, against NumPy's interpolation on floats."""
    n, (lows, highs) = len(ranges(quick)[0]), ranges(quick)
    release = published(parquet(ROWS // 1000 if quick else ROWS))
    curve = release.views[0].axis.curve
    edges, before = np.append(0.0, curve.ends + 1.0), curve.before

    def interpolated() -> object:
        return np.interp(highs + 1.0, edges, before) - np.interp(lows.astype(float), edges, before)

    ours = Work("Release.counts", lambda: release.counts(v=(lows, highs)), n)
    target = Target("figure", ">=", 1e6)
    return rates(
        quick, ours, Work("numpy.interp twice", interpolated, n), target=target, pieces=curve.ends.size
    )


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


@cache
def ranges(quick: bool) -> tuple[UInts, UInts]:
    """A million ranges with uniform ends."""
    ends = np.random.default_rng(0).integers(
        0, SIZE, (RANGES // 1000 if quick else RANGES, 2), dtype=np.uint64
    )
    ends.sort(axis=1)
    return ends[:, 0].copy(), ends[:, 1].copy()
