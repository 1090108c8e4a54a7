"""Labels of a category that is released together with other columns, and what stands beside them.

Each label is judged against a view of its own: a plain histogram of that column with epsilon / c, where c
columns are released. Everything is judged against `rectangles` in the same run, on the same questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

import partita as pt
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, geometric_mean, short
from benchmarks.accuracy.tables_questions import Seen, ask, categories
from benchmarks.accuracy.tables_sets import SETS, Table, is_held_out

EPSILONS = ("0.3", "1")
QUESTIONS = 200
"""Of each kind, the same in every release."""

JOINT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("trips-200k", ("day", "dest")),
    ("trips-200k", ("dest", "delay", "day")),
    ("trips-200k", ("dest", "delay")),
    ("adult", ("native-country", "age")),
    ("adult", ("occupation", "age")),
    ("adult", ("occupation", "native-country")),
    ("adult", ("occupation", "hours-per-week")),
    ("adult", ("native-country", "education-num")),
    ("adult", ("workclass", "occupation")),
    ("adult", ("occupation", "age", "hours-per-week")),
    ("trips-1m", ("day", "dest")),
    ("trips-1m", ("dest", "delay", "day")),
)
"""Sets, and columns that are released together."""

MECHANISMS = {"ours": "auto", "rectangles": "rectangles"}
LEAST_COVERED, MOST_COVERED = 0.94, 0.97
"""Coverage of labels."""
LIMITS = ((2.2, 1.3), (3.4, 1.15))
"""Labels over a view of their own, and boxes over those of `rectangles`: either pair will do."""


def cells(plan: Plan) -> Sequence[Cell]:
    chosen = [(name, columns) for name, columns in JOINT if name in plan.chosen(tuple(SETS))]
    return [partial(cell, plan, *joint, epsilon) for joint, epsilon in product(chosen, EPSILONS)]


def cell(plan: Plan, name: str, columns: tuple[str, ...], epsilon: str) -> Json:
    """The figures of every kind of question, of the default and of `rectangles`, and those of plain views."""
    table = SETS[name]().part(*columns)
    asked = ask(table, QUESTIONS, seed=0)
    made: Json = {"row": "labels", "dataset": table.name, "n": len(table.rows), "epsilon": epsilon}
    made |= {"held_out": is_held_out(name), "view_RMSE": view_error(table, epsilon, plan.trials)}
    for method, mechanism in MECHANISMS.items():
        releases = [
            pt.publish(table.source, table.schema, epsilon=epsilon, mechanism=mechanism)
            for _ in range(plan.trials)
        ]
        made[method] = {
            kind: Seen.joined([Seen.of(release, questions) for release in releases]).figures
            for kind, questions in asked.items()
        }
    return {**made, **ratios(made)}


def ratios(made: Json) -> Json:
    """Errors over those of `rectangles`, and of labels over those of a view."""
    kinds = made["ours"]
    ratio = {kind: short(kinds[kind]["RMSE"] / made["rectangles"][kind]["RMSE"]) for kind in kinds}
    return {"ratio": ratio, "label_over_view": short(kinds["label"]["RMSE"] / made["view_RMSE"])}


def view_error(table: Table, epsilon: str, trials: int) -> float:
    """The root mean square error of labels in views of their own, each with an equal share of epsilon."""
    share, squares = Fraction(epsilon) / len(table.columns), []
    for column, _ in product(categories(table), range(trials)):
        counts = np.bincount(table.rows[:, column], minlength=table.sizes[column])
        release = pt.HistogramCounts(size=counts.size, epsilon=share).release(pt.Histogram.dense(counts))
        every = np.arange(counts.size, dtype=np.uint64)
        squares.append((release.counts(every, every) - counts) ** 2)
    return short(float(np.sqrt(np.concatenate(squares).mean())))


def summary(rows: list[Json]) -> Iterator[Json]:
    """Each set of columns, then ratios over all of them."""
    for row in rows:
        label, was = row["ours"]["label"], row["rectangles"]["label"]
        yield {
            "row": "labels",
            "total": f"{row['dataset']}, epsilon {row['epsilon']}" + (" (held out)" * row["held_out"]),
            "label_RMSE": label["RMSE"],
            "rectangles": was["RMSE"],
            "over_view": row["label_over_view"],
            "covered": label["covered"],
            "least_covered": min(kind["covered"] for kind in row["ours"].values()),
            "widest": max(kind["width"] for kind in row["ours"].values()),
            "over_rectangles": row["ratio"],
            "met": LEAST_COVERED <= label["covered"] <= MOST_COVERED and is_within(row),
        }
    kinds = dict.fromkeys(kind for row in rows for kind in row["ratio"])
    held = {kind: [row["ratio"][kind] for row in rows if kind in row["ratio"]] for kind in kinds}
    yield {
        "row": "labels",
        "total": "all, over rectangles",
        **{kind: geometric_mean(each) for kind, each in held.items()},
    }


def is_within(row: Json) -> bool:
    """Whether labels and boxes are both within one pair of limits."""
    return any(row["label_over_view"] <= label and most_box(row) <= box for label, box in LIMITS)


def most_box(row: Json) -> float:
    return max(float(ratio) for kind, ratio in row["ratio"].items() if kind.startswith("box"))


LABELS = Row(cells, summary)
