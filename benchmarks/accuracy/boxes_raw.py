"""Raw tables of two to six columns at their own resolution, against the best peer of each list of boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from benchmarks.accuracy.boxes_work import EPSILONS, SETS, WORKLOADS, raw_peers, raw_work
from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.queries import misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Goal, Json, cell_row, pooled, totals

DIMENSIONS = range(2, 7)
GOAL_OF_TWO, GOAL_OF_MORE = Goal(ratio=1.0), Goal(ratio=0.65)


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *key) for key in product(SETS, EPSILONS)]


def cell(plan: Plan, name: str, epsilon: str) -> Json:
    """Mean errors over the four lists of boxes, each against the least peer in anchors_boxes.csv."""
    work = raw_work(name, epsilon)
    found = misses(Ours(plan.boxes), work, plan.trials)
    row = cell_row("boxesraw", work, found, raw_peers(name, epsilon))
    return {**row, "columns": len(work.data.axes)}


def summary(rows: list[Json]) -> Iterator[Json]:
    """Each list of boxes alone, then all of them for each number of columns, and for three or more."""
    yield from totals("boxesraw", rows, dict.fromkeys(WORKLOADS, Goal()))
    for number in DIMENSIONS:
        yield together(f"{number} columns", rows, [number], GOAL_OF_TWO if number == 2 else Goal())
    yield together("3 to 6 columns", rows, DIMENSIONS[1:], GOAL_OF_MORE)


def together(name: str, rows: list[Json], numbers: Sequence[int], goal: Goal) -> Json:
    """All lists of boxes of the sets with so many columns."""
    return pooled("boxesraw", name, [row for row in rows if row["columns"] in numbers], WORKLOADS, goal)


BOXES_RAW = Row(cells, summary)
