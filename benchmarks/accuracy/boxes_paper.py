"""The mechanism of the paper beside the default, on the shapes over 256 x 256 cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.accuracy.boxes_work import flat_peers, flat_shapes, flat_work
from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.queries import misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Goal, Json, cell_row, short, totals
from benchmarks.accuracy.work import LITERAL

NAME = "rectangles-paper"
FIGURES = ("paper", "default", "paper_to_literal", "paper_to_default")


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *shape) for shape in flat_shapes()]


def cell(plan: Plan, dataset: str, n: int, epsilon: str) -> Json:
    """Both against the best peer; the paper's also against the literal one of anchors_2d.csv."""
    work, (peers,) = flat_work(dataset, n, epsilon), flat_peers(dataset, n, epsilon).values()
    (literal,) = flat_peers(dataset, n, epsilon, (LITERAL,))["box"].values()
    found = {
        name: misses(Ours(mechanism), work, plan.trials)["box"]
        for name, mechanism in (("paper", NAME), ("default", plan.boxes))
    }
    return {
        **cell_row("boxespaper", work, found, dict.fromkeys(found, peers)),
        "paper_to_literal_ratio": short(found["paper"].L1 / literal),
        "paper_to_default_ratio": short(found["paper"].L1 / found["default"].L1),
    }


def summary(rows: list[Json]) -> Iterator[Json]:
    """Reported, without a target: faithful on purpose, and the default is better."""
    return totals("boxespaper", rows, dict.fromkeys(FIGURES, Goal()))


BOXES_PAPER = Row(cells, summary)
