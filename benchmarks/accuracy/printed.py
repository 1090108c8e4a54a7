"""Algorithms as printed against the bounds of their theorems before the data, and against the defaults.

python -m benchmarks.accuracy.printed
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import partita as pt
from partita.trusted.mechanisms.tree import Tree
from partita.trusted.secret import Histogram

BETA = 0.05


class Row(NamedTuple):
    """Mean largest miss and root-mean-square error over some releases, and the bound before them."""

    what: str
    largest: float
    mean: float
    bound: float
    seconds: float


def weights(size: int, rows: int, delta: str, variant: str, trials: int = 5) -> Row:
    """All ranges of one column of values that fall off exponentially [HLM12, Thm 2.2]."""
    random = np.random.default_rng(1)
    values = np.minimum(random.exponential(size / 5, rows).astype(np.int64), size - 1)
    universe = pt.Universe(["v"], [pt.Integer(0, size - 1)])
    mechanism = pt.MultiplicativeWeights(
        queries=pt.ranges("v"),
        universe=universe,
        epsilon=1,
        delta=delta,
        neighbors="change-one",
        variant=variant,  # type: ignore[arg-type]
    )
    (axis,) = universe.axes
    points = pt.Points.from_rows((values + axis.before)[:, None], axes=universe.axes)
    truth = mechanism.operator.answers(mechanism.counts(points)) / mechanism.operator.granularity
    bound = mechanism.bound(BETA, rows=rows) if variant == "printed" else float("nan")
    return _row(
        f"weights, {size} values, {rows:,} rows, delta {delta}, {variant}",
        trials,
        bound,
        lambda: mechanism.release(points).values - truth,
    )


def rectangles(trials: int = 50, **options: Any) -> Row:
    """400 boxes over rows near a diagonal, at different positions along both axes [DNRR15, Thm 3.3]."""
    sizes = np.array([2**10, 2**9] if "cuts" in options else [2**16, 2**12])
    random = np.random.default_rng(8)
    first = np.sort(random.choice(2**16, 700, replace=False))
    second = random.permuted(np.sort(random.choice(2**12, 700, replace=False)).reshape(70, 10), axis=1)
    rows = np.stack([first, second.ravel()], axis=1) * sizes // [2**16, 2**12]
    axes = [pt.Axis(size=int(size)) for size in sizes]
    ends = np.sort(random.random((400, 2, 2)), axis=1) * sizes
    lows, highs = ends[:, 0].astype(np.uint64), ends[:, 1].astype(np.uint64)
    truth = ((rows >= lows[:, None]) & (rows <= highs[:, None])).all(axis=2).sum(axis=1)
    mechanism = pt.PaperRectangles(axes=axes, epsilon=16, **options)
    points = pt.Points.from_rows(rows, axes=axes)
    bound = mechanism.bound(BETA, rows=700)
    return _row(
        f"rectangles, {options}", trials, bound, lambda: mechanism.release(points).counts(lows, highs) - truth
    )


def ranges(trials: int = 200, **options: Any) -> Row:
    """5,000 ranges of 1,024 values that fall off exponentially, by a tree [SU, Theorem 2.5]."""
    random = np.random.default_rng(3)
    values = np.sort(np.minimum(random.exponential(205, 4096).astype(int), 1023))
    ends = np.sort(random.integers(0, 1024, (5_000, 2)), axis=1)
    after = np.searchsorted(values, ends[:, 1], side="right")
    truth = after - np.searchsorted(values, ends[:, 0], side="left")
    lows, highs = ends[:, 0].astype(np.uint64), ends[:, 1].astype(np.uint64)
    mechanism = Tree(size=1024, epsilon=1, neighbors="change-one", **options)
    people = Histogram.from_cells(values.tolist(), size=1024)
    bound = mechanism.bound(BETA)
    return _row(
        f"tree, {options}", trials, bound, lambda: mechanism.release(people).counts(lows, highs) - truth
    )


def projection(variant: str, trials: int = 200) -> Row:
    """All ranges of 64 values by Algorithm 18; its theorem bounds the root mean square [DR14, Thm 12.8]."""
    random = np.random.default_rng(3)
    universe = pt.Universe(["v"], [pt.Integer(0, 63)])
    mechanism = pt.ProjectedLaplace(
        queries=pt.ranges("v"),
        universe=universe,
        epsilon=1,
        delta="1e-6",
        neighbors="change-one",
        variant=variant,  # type: ignore[arg-type]
    )
    (axis,) = universe.axes
    values = np.minimum(random.exponential(13, 4096).astype(np.int64), 63)
    points = pt.Points.from_rows((values + axis.before)[:, None], axes=universe.axes)
    truth = np.asarray(mechanism.truth(points)) / mechanism.operator.granularity
    bound = mechanism.bound(BETA, rows=4096)
    return _row(f"projection, {variant}", trials, bound, lambda: mechanism.release(points).values - truth)


def _row(what: str, trials: int, bound: float, miss: Any) -> Row:
    start, misses = perf_counter(), [np.abs(miss()) for _ in range(trials)]
    largest = float(np.mean([each.max() for each in misses]))
    mean = float(np.mean([np.sqrt(np.mean(each**2)) for each in misses]))
    return Row(what, largest, mean, bound, (perf_counter() - start) / trials)


def rows() -> Iterator[Row]:
    for options in ({"pruned": False}, {}, {"threshold": "paper"}, {"cuts": "cells"}):
        yield rectangles(**options)
    for tree in ({"consistent": False}, {"consistent": False, "branching": 16}, {"consistent": True}):
        yield ranges(**tree)
    for kind in ("book", "tight"):
        yield projection(kind)
    for size, number, delta in ((64, 10_000, "0"), (256, 100_000, "0"), (256, 100_000, "1e-9")):
        for variant in ("printed", "fitted"):
            yield weights(size, number, delta, variant)


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row.what}: largest {row.largest:,.0f}, root mean square {row.mean:,.0f}, "
            f"bound {row.bound:,.0f}, {row.seconds:.2f} s",
            flush=True,
        )
