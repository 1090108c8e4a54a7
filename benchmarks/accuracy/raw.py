"""Columns of raw records scaled to 4,096 cells, against peers that run beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.peers import PEERS
from benchmarks.accuracy.queries import Ints, Work, misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Goal, Json, cell_row, totals
from benchmarks.accuracy.work import CELLS, Peers, column_bounds, column_values, columns, fixed_queries
from partita import Histogram

ROWS = (1_000, 100_000, 10_000_000)
EPSILONS = ("0.1", "1.0")
GOALS = {"range": Goal(ratio=0.80), "prefix": Goal(ratio=0.80)}


def cells(plan: Plan) -> Sequence[Cell]:
    grid = product(columns(), ROWS, EPSILONS)
    return [partial(cell, plan, table, column, n, epsilon) for (table, column), n, epsilon in grid]


def cell(plan: Plan, table: str, column: str, n: int, epsilon: str) -> Json:
    """Mean errors over ranges and prefixes, against the least of Identity, Hb and PrivTree."""
    histogram = Histogram.dense(resampled(scaled(table, column), n))
    work = Work(f"{table}.{column}", n, epsilon, histogram, fixed_queries())
    return cell_row(
        "raw", work, misses(Ours(plan.mechanism), work, plan.trials), peer_errors(work, plan.trials)
    )


def peer_errors(work: Work[Histogram], trials: int) -> Peers:
    """The mean error of each peer on each list of questions, fresh releases."""
    found = {name: misses(peer, work, trials) for name, peer in PEERS.items()}
    return {query: {name: found[name][query].L1 for name in found} for query in work.queries}


def scaled(table: str, column: str) -> Ints:
    """How many records each of 4,096 cells holds: cell = floor((v - low) 4096 / (high - low + 1))."""
    low, high = column_bounds(table, column)
    return np.bincount(column_values(table, column) * CELLS // (high - low + 1), minlength=CELLS)


def resampled(counts: Ints, n: int) -> Ints:
    """n rows drawn with replacement from the shape; the same ones for every mechanism and run."""
    return np.random.default_rng(n).multinomial(n, counts / counts.sum())


def summary(rows: list[Json]) -> Iterator[Json]:
    return totals("raw", rows, GOALS)


RAW = Row(cells, summary)
