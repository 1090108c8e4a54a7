"""From a release to a million answers, for every kind of release."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

import partita as pt
from benchmarks.speed.clock import Work, rates
from benchmarks.speed.end_to_end import ROWS, SCHEMA, SIZE, parquet, published
from benchmarks.speed.row import Row, Target
from partita.arrays import UInts
from partita.public.axis.base import AxisRelease
from partita.public.views import Along

RANGES, PEOPLE = 10**6, 200_000
TARGET = Target("figure", ">=", 1e6)

KINDS: dict[str, Callable[[int], AxisRelease]] = {
    "tents": lambda bits: pt.Tents(size=2**bits, epsilon=1).release(people(2**bits)),
    "tree": lambda bits: pt.Tree(size=2**bits, epsilon=1).release(people(2**bits)),
    "histogram": lambda bits: pt.HistogramCounts(size=2**bits, epsilon=1).release(people(2**bits)),
    "paper": lambda bits: pt.PaperIntervals(size=2**bits, epsilon=1).release(people(2**bits)),
    "spending": lambda bits: pt.SpendingTree(size=2**bits, epsilon=1, total=PEOPLE).release(people(2**bits)),
}


def counts_of_ranges(quick: bool) -> Row:
    """A million ranges in one call of a published release, against NumPy's interpolation on floats."""
    release = published(parquet(ROWS // 1000 if quick else ROWS))
    (column,), (lows, highs) = SCHEMA, ranges(SIZE, quick)
    call = Work("Release.counts", lambda: release.counts(where={column: (lows, highs)}), lows.size)
    return _row(quick, call, release.slice(column).axis, lows, highs)


def counts_of_kind(quick: bool, *, kind: str, bits: int) -> Row:
    """The same for one kind of release, over 2^bits cells."""
    bits = min(bits, 10) if quick else bits
    axis, (lows, highs) = KINDS[kind](bits), ranges(2**bits, quick)
    call = Work(f"{type(axis).__name__}.counts", lambda: axis.counts(lows, highs), lows.size)
    return _row(quick, call, axis, lows, highs)


def _row(quick: bool, ours: Work, axis: Along, lows: UInts, highs: UInts) -> Row:
    edges, before = np.append(0.0, axis.curve.ends + 1.0), axis.curve.before

    def interpolated() -> object:
        return np.interp(highs + 1.0, edges, before) - np.interp(lows.astype(float), edges, before)

    baseline = Work("numpy.interp twice", interpolated, ours.items)
    return rates(quick, ours, baseline, target=TARGET, size=axis.size, pieces=axis.curve.ends.size)


def people(size: int) -> pt.Histogram:
    """Rows of a skewed shape, most of them in the lower part of the axis."""
    rng = np.random.default_rng(size)
    rows = np.exp(rng.normal(0, 1, PEOPLE)) * size / 20
    return pt.Histogram.from_cells(rows.clip(0, size - 1).astype(np.uint64), size=size)


@cache
def ranges(size: int, quick: bool) -> tuple[UInts, UInts]:
    """A million ranges with uniform ends."""
    ends = np.random.default_rng(0).integers(
        0, size, (RANGES // 1000 if quick else RANGES, 2), dtype=np.uint64
    )
    ends.sort(axis=1)
    return ends[:, 0].copy(), ends[:, 1].copy()
