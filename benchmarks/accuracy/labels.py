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
from benchmarks.accuracy.tables_questions import Question, Seen, ask
from benchmarks.accuracy.tables_sets import SETS, Table, is_held_out
from partita.public.bounds import laplace_variance

EPSILONS = ("0.3", "1")
QUESTIONS = 100
"""Of each kind, the same in every release and for both mechanisms."""
INTERVALS = 3
"""Releases whose intervals are asked for: that takes most of the time. Errors are those of all releases."""

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
LEAST_COVERED, MOST_COVERED = 0.93, 0.97
"""Coverage of labels."""
LIMITS = ((2.2, 1.3), (3.4, 1.15))
"""Labels over a view of their own, and boxes over those of `rectangles`: either pair will do."""


def cells(plan: Plan) -> Sequence[Cell]:
    chosen = [(name, columns) for name, columns in JOINT if name in plan.chosen(tuple(SETS))]
    return [partial(cell, plan, *joint, epsilon) for joint, epsilon in product(chosen, EPSILONS)]


def cell(plan: Plan, name: str, columns: tuple[str, ...], epsilon: str) -> Json:
    """Errors of every kind of question, of the default and of `rectangles`, and intervals of the default."""
    table = SETS[name]().part(*columns)
    asked = ask(table, QUESTIONS, seed=0)
    made: Json = {"row": "labels", "dataset": table.name, "n": len(table.rows), "epsilon": epsilon}
    made |= {"held_out": is_held_out(name), "view_RMSE": view_error(table, epsilon)}
    for method, mechanism in MECHANISMS.items():
        releases = [
            pt.publish(table.source, table.schema, epsilon=epsilon, mechanism=mechanism)
            for _ in range(plan.trials)
        ]
        made[method] = {kind: {"RMSE": miss(releases, questions)} for kind, questions in asked.items()}
        if method == "ours":
            seen = {
                kind: Seen.joined([Seen.of(release, questions) for release in releases[:INTERVALS]])
                for kind, questions in asked.items()
            }
            made[method] = {kind: each.figures | made[method][kind] for kind, each in seen.items()}
    return {**made, **ratios(made)}


def miss(releases: Sequence[pt.Release], questions: Sequence[Question]) -> float:
    """The root mean square error of the answers of all releases."""
    squares = [
        (release.count(question.where).value - question.truth) ** 2
        for release, question in product(releases, questions)
    ]
    return short(float(np.sqrt(np.mean(squares))))


def ratios(made: Json) -> Json:
    """Errors over those of `rectangles`, and of labels over those of a view."""
    kinds = made["ours"]
    ratio = {kind: short(kinds[kind]["RMSE"] / made["rectangles"][kind]["RMSE"]) for kind in kinds}
    return {"ratio": ratio, "label_over_view": short(kinds["label"]["RMSE"] / made["view_RMSE"])}


def view_error(table: Table, epsilon: str) -> float:
    """The root mean square error of labels in views of their own, each with an equal share of epsilon."""
    return short(laplace_variance(len(table.columns) / Fraction(epsilon)) ** 0.5)


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
