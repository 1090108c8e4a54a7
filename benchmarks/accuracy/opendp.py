"""Against OpenDP's b-ary tree in one run: root mean square error and seconds of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from statistics import mean
from time import perf_counter

import numpy as np

from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.peers import dense
from benchmarks.accuracy.queries import Queries, Work
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.work import CELLS, work_1d
from benchmarks.speed.opendp_tree import BRANCHING, EPSILON, ROWS, OpenDPTree, lognormal, ranges
from partita import Histogram, Tree
from partita.arrays import Floats

BITS = (16, 20)
THEIR_TRIALS = 3
"""OpenDP takes seconds for one release."""
FASTER = 20


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *key) for key in product(DATA, BITS)]


def cell(plan: Plan, dataset: str, bits: int) -> Json:
    """Errors over 2,000 random ranges and the seconds of a release with all answers, of both.

    Beside them stands our own tree of the same shape and the same noise scale, made consistent as theirs is.
    """
    histogram, (lows, highs) = DATA[dataset](2**bits), ranges(2**bits)
    work = Work(dataset, ROWS, str(EPSILON), histogram, {"range": Queries(lows, highs)})
    tree, counts = OpenDPTree(2**bits, EPSILON), dense(histogram).astype(np.int32)
    tree.measurement, tree.consistency  # noqa: B018 -- made before the clock starts
    same = Tree(size=2**bits, epsilon=EPSILON, branching=BRANCHING)
    assert float(same.scale) == tree.scale, "both trees have noise of one scale"
    plain = timed(work, plan.trials, lambda: same.release(histogram).counts(lows, highs))
    ours = timed(work, plan.trials, lambda: Ours(plan.mechanism)(histogram, work.epsilon)(lows, highs))
    theirs = timed(work, THEIR_TRIALS, lambda: tree.answers(counts, lows, highs))
    return {
        "row": "opendp",
        "dataset": dataset,
        "size": f"2^{bits}",
        "n": ROWS,
        "epsilon": work.epsilon,
        "range_RMSE": ours[0],
        "opendp_RMSE": theirs[0],
        "range_ratio": short(ours[0] / theirs[0]),
        "seconds": ours[1],
        "opendp_seconds": theirs[1],
        "times_faster": short(theirs[1] / ours[1]),
        "tree_scale": short(tree.scale),
        "tree_RMSE": plain[0],
        "tree_ratio": short(plain[0] / theirs[0]),
        "tree_seconds": plain[1],
    }


def timed(work: Work[Histogram], trials: int, answers: Callable[[], Floats]) -> tuple[float, float]:
    """Root mean square error, mean over trials, and the least seconds of a trial."""
    truth, errors, seconds = work.queries["range"].truth(work.data), [], []
    for _ in range(trials):
        start = perf_counter()
        found = answers()
        seconds.append(perf_counter() - start)
        errors.append(float(np.sqrt(((found - truth) ** 2).mean())))
    return short(mean(errors)), short(min(seconds))


def medcost(size: int) -> Histogram:
    """100,000 rows of MEDCOST, each cell of 4,096 stretched to size/4096 cells, evenly."""
    rng, shape = np.random.default_rng(size), work_1d()[f"MEDCOST:{ROWS}"]
    wide = size // CELLS
    rows = np.repeat(np.arange(CELLS), shape) * wide + rng.integers(0, wide, int(shape.sum()))
    return Histogram.from_cells(rows, size=size)


DATA: dict[str, Callable[[int], Histogram]] = {"lognormal": lognormal, "MEDCOST": medcost}


def summary(rows: list[Json]) -> Iterator[Json]:
    """Lower error everywhere, and at least 20 times faster."""
    yield {
        "row": "opendp",
        "total": "range",
        "cells": len(rows),
        "worst_ratio": max(row["range_ratio"] for row in rows),
        "worst_tree_ratio": max(row["tree_ratio"] for row in rows),
        "least_times_faster": min(row["times_faster"] for row in rows),
        "target": f"ratio < 1, {FASTER} times faster",
        "met": all(row["range_ratio"] < 1 and row["times_faster"] >= FASTER for row in rows),
    }


OPENDP = Row(cells, summary, clocked=True)
