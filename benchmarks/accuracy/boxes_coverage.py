"""How often error bars of boxes hold, and how wide they are: the rule of `coverage`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

from benchmarks.accuracy import boxes_breaking
from benchmarks.accuracy.boxes_work import EPSILONS, SETS, flat_shapes, flat_work, raw_work
from benchmarks.accuracy.coverage import kind_total, measured
from benchmarks.accuracy.queries import Work
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json
from partita import Points


def cells(plan: Plan) -> Sequence[Cell]:
    """The shapes over 256 x 256 cells, the raw sets, and the breaking cases."""
    keys: dict[str, list[tuple[str, int, str]]] = {
        "shape": flat_shapes(),
        "raw": [(name, 0, epsilon) for name, epsilon in product(SETS, EPSILONS)],
        "breaking": [(case, 0, epsilon) for case, epsilon in product(boxes_breaking.CASES, EPSILONS)],
    }
    return [partial(cell, plan, kind, *key) for kind in keys for key in keys[kind]]


def cell(plan: Plan, kind: str, dataset: str, n: int, epsilon: str) -> Json:
    """Coverage and width on each list of boxes, over fresh releases of the same points."""
    work = WORKS[kind](dataset, n, epsilon)
    made: Json = {"row": "boxescoverage", "kind": kind, "dataset": dataset, "n": work.n, "epsilon": epsilon}
    return {**made, "questions": measured(plan.boxes, work, plan.trials)}


WORKS: dict[str, Callable[[str, int, str], Work[Points]]] = {
    "shape": flat_work,
    "raw": lambda name, _, epsilon: raw_work(name, epsilon),
    "breaking": lambda case, _, epsilon: boxes_breaking.case_work(case, epsilon),
}


def summary(rows: list[Json]) -> Iterator[Json]:
    """Lists of boxes that keep the rule, and failures of the guaranteed bounds, for each kind of data."""
    for kind in WORKS:
        yield kind_total("boxescoverage", kind, [row for row in rows if row["kind"] == kind])


BOXES_COVERAGE = Row(cells, summary)
