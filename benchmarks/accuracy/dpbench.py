"""DPBench shapes over 4,096 cells, against the best published peer of each cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.queries import misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Goal, Json, cell_row, totals
from benchmarks.accuracy.work import peers_1d, shape_work, shapes

GOALS = {
    "range": Goal(ratio=0.90, worst=1.6, worst_weak=2.6),
    "prefix": Goal(ratio=0.88, worst=1.6, worst_weak=2.6),
}


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *shape) for shape in shapes()]


def cell(plan: Plan, dataset: str, n: int, epsilon: str) -> Json:
    """Mean errors over ranges and prefixes, against the least among the peers of anchors_1d.csv."""
    work = shape_work(dataset, n, epsilon)
    found = misses(Ours(plan.mechanism), work, plan.trials)
    return cell_row("dpbench", work, found, peers_1d(dataset, n, epsilon))


def summary(rows: list[Json]) -> Iterator[Json]:
    return totals("dpbench", rows, GOALS)


DPBENCH = Row(cells, summary)
