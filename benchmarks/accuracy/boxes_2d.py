"""DPBench shapes over 256 x 256 cells, against the best published peer of each cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.accuracy.boxes_work import flat_peers, flat_shapes, flat_work
from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.queries import misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Goal, Json, cell_row, totals

GOALS = {"box": Goal(ratio=0.82, worst=1.5)}


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *shape) for shape in flat_shapes()]


def cell(plan: Plan, dataset: str, n: int, epsilon: str) -> Json:
    """Mean error over the boxes, against the least among the peers of anchors_2d.csv."""
    work = flat_work(dataset, n, epsilon)
    found = misses(Ours(plan.boxes), work, plan.trials)
    return cell_row("boxes2d", work, found, flat_peers(dataset, n, epsilon))


def summary(rows: list[Json]) -> Iterator[Json]:
    return totals("boxes2d", rows, GOALS)


BOXES_2D = Row(cells, summary)
