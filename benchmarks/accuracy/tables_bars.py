"""How often 95% intervals of a whole-table release hold, and how wide they are: every kind of question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from statistics import mean

import partita as pt
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.tables import DELTA
from benchmarks.accuracy.tables_families import FAMILIES
from benchmarks.accuracy.tables_families import HELD_OUT as HELD_OUT_FAMILIES
from benchmarks.accuracy.tables_questions import Seen, ask
from benchmarks.accuracy.tables_sets import HELD_OUT, SETS
from partita.concentrated import rho_within

EPSILONS = ("0.1", "1")
UNITS = ("epsilon", "rho")
"""What is spent: epsilon, or the largest rho that is (epsilon, 1e-9)-DP."""
TABLES = SETS | FAMILIES
QUESTIONS = 100
"""Of each kind; other ones in each release."""
LEAST, MEAN, WIDEST = 0.90, 0.95, 4.0
"""Coverage of each kind, mean over the kinds, and half-width over the mean error."""


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *key) for key in product(plan.chosen(tuple(TABLES)), EPSILONS, UNITS)]


def cell(plan: Plan, name: str, epsilon: str, unit: str) -> Json:
    """The figures of every kind over fresh releases of all columns, pure or under the rho of this epsilon."""
    table = TABLES[name]()
    made: Json = {
        "row": "tablesbars",
        "dataset": name,
        "n": len(table.rows),
        "epsilon": epsilon,
        "unit": unit,
    }
    budget = {"rho": rho_within(epsilon, DELTA)} if unit == "rho" else {"epsilon": epsilon}
    seen: dict[str, list[Seen]] = {}
    try:
        for trial in range(plan.trials):
            release = pt.publish(table.source, table.schema, **budget)
            for kind, questions in ask(table, QUESTIONS, seed=trial).items():
                seen.setdefault(kind, []).append(Seen.of(release, questions))
    except pt.PartitaError as refused:
        return {**made, "refused": str(refused)[:200]}
    return {**made, "kinds": {kind: Seen.joined(parts).figures for kind, parts in seen.items()}}


def summary(rows: list[Json]) -> Iterator[Json]:
    """Each set at each epsilon."""
    for row in rows:
        if "kinds" in row:
            yield total(row)


def total(row: Json) -> Json:
    covered, width, predicted = (
        {kind: figures[name] for kind, figures in row["kinds"].items()}
        for name in ("covered", "width", "predicted")
    )
    least, average, widest = min(covered.values()), mean(covered.values()), max(width.values())
    return {
        "row": "tablesbars",
        "total": row["dataset"] + (" (held out)" if row["dataset"] in HELD_OUT | HELD_OUT_FAMILIES else ""),
        "epsilon": row["epsilon"],
        "unit": row["unit"],
        "covered": covered,
        "mean_covered": short(average),
        "width": width,
        "predicted": predicted,
        "met": least >= LEAST and average >= MEAN and widest <= WIDEST,
    }


TABLES_BARS = Row(cells, summary)
