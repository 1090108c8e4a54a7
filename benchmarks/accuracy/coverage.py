"""How often error bars hold, and how wide they are.

`interval(c)` should hold for c - 2% of the questions of a cell at least, and its root mean square
half-width should be at most 2.5 times the root mean square error times the normal quantile, or
12/epsilon where that is more; in the breaking cases only the first is asked. All questions of a list are
asked in one call. `worst(beta)` of one question of each list and `error(beta)` of each release, for all
questions, should fail at most beta of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from benchmarks.accuracy import breaking, huge
from benchmarks.accuracy.bars import Alone, Bars, quantile
from benchmarks.accuracy.draws import FAMILIES
from benchmarks.accuracy.ours import release
from benchmarks.accuracy.queries import Data, Ints, Work
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.work import shape_work, shapes
from partita import Histogram

RELEASES, QUESTIONS = 20, 500
CONFIDENCES = {"90": 0.90, "95": 0.95, "99": 0.99}
BETA, SLACK, WIDE, FLOOR = 0.05, 0.02, 2.5, 12
HUGE_ROWS = (1_000, 100_000)


def cells(plan: Plan) -> Sequence[Cell]:
    """The DPBench shapes, the families at 2^32, and the breaking cases: each list of questions alone."""
    keys: dict[str, list[tuple[str, int, str]]] = {
        "shape": shapes(),
        "huge": list(product(FAMILIES, HUGE_ROWS, huge.EPSILONS)),
        "breaking": [(case, 0, epsilon) for case, epsilon in product(breaking.CASES, breaking.EPSILONS)],
    }
    return [partial(cell, plan, kind, *key) for kind in keys for key in keys[kind]]


def cell(plan: Plan, kind: str, dataset: str, n: int, epsilon: str) -> Json:
    """Coverage and width on each list of questions, over fresh releases of one histogram."""
    work = WORKS[kind](dataset, n, epsilon)
    made: Json = {"row": "coverage", "kind": kind, "dataset": dataset, "n": work.n, "epsilon": epsilon}
    return {**made, "questions": measured(plan.mechanism, work, plan.trials)}


WORKS: dict[str, Callable[[str, int, str], Work[Histogram]]] = {
    "shape": shape_work,
    "huge": lambda family, n, epsilon: huge.fresh_work(family, n, epsilon, 0),
    "breaking": lambda case, _, epsilon: breaking.case_work(case, epsilon),
}


@dataclass(frozen=True)
class Seen:
    """What one release gave for a list of questions."""

    bars: Bars
    alone: Alone
    band_failed: bool


def measured(mechanism: str, work: Work[Data], trials: int) -> dict[str, Json]:
    """The figures of each list of questions, over at least twenty releases."""
    asked = {name: queries.some(QUESTIONS) for name, queries in work.queries.items()}
    truth = {name: queries.truth(work.data) for name, queries in asked.items()}
    seen: dict[str, list[Seen]] = {name: [] for name in asked}
    for number in range(max(trials, RELEASES)):
        made = release(mechanism, work.data, work.epsilon)
        reach = made.error(BETA)
        for name, queries in asked.items():
            bars, place = Bars.of(made, queries, truth[name]), single(len(queries.lows), number)
            alone = Alone.of(queries.at(place).alone(made), truth[name][place], BETA)
            seen[name].append(Seen(bars, alone, bars.beyond(reach)))
    return {name: figures(looks, float(work.epsilon)) for name, looks in seen.items()}


def single(questions: int, number: int) -> Ints:
    """The place of one of the questions, another one in each release."""
    return np.array([number * questions // RELEASES % questions])


def figures(looks: list[Seen], epsilon: float) -> Json:
    """Shares covered, widths over the widest allowed, and failures of what is guaranteed."""
    bars, single = Bars.joined([one.bars for one in looks]), Bars.joined([one.alone.bars for one in looks])
    return {
        "covered": {name: short(bars.covered(c)) for name, c in CONFIDENCES.items()},
        "width": {
            name: short(bars.half_width(c) / widest(bars, c, epsilon)) for name, c in CONFIDENCES.items()
        },
        "covered_alone": {name: short(single.covered(c)) for name, c in CONFIDENCES.items()},
        "worst_failed": sum(one.alone.failed for one in looks),
        "worst_asked": single.truth.size,
        "band_failed": sum(one.band_failed for one in looks),
        "band_asked": len(looks),
    }


def widest(bars: Bars, c: float, epsilon: float) -> float:
    """The root mean square half-width that the rule allows."""
    return max(WIDE * bars.RMSE * quantile(c), FLOOR / epsilon)


def summary(rows: list[Json]) -> Iterator[Json]:
    """Lists of questions that keep the rule, and failures of the guaranteed bounds, for each kind of data."""
    for kind in WORKS:
        yield kind_total("coverage", kind, [row for row in rows if row["kind"] == kind])


def kind_total(benchmark: str, kind: str, rows: list[Json]) -> Json:
    """One kind of data."""
    lists = [(row, name, found) for row in rows for name, found in row["questions"].items()]
    found = [figures for _, _, figures in lists]
    bad = [
        f"{name} {row['dataset']} {row['n']} {row['epsilon']}" for row, name, f in lists if not kept(f, kind)
    ]
    worst, band = rate(found, "worst"), rate(found, "band")
    return {
        "row": benchmark,
        "total": kind,
        "cells": len(lists),
        "kept": len(lists) - len(bad),
        "broken": bad,
        "least_covered": extreme(min, found, "covered"),
        "mean_covered_alone": {
            c: short(sum(f["covered_alone"][c] for f in found) / len(found)) for c in CONFIDENCES
        },
        "widest": extreme(max, found, "width"),
        "worst_failure_rate": worst,
        "band_failure_rate": band,
        "target": "all kept, failure rates at most 5%",
        "met": not bad and max(worst, band) <= BETA,
    }


def kept(found: Json, kind: str) -> bool:
    """Whether a list of questions keeps the rule."""
    enough = all(found["covered"][name] >= c - SLACK for name, c in CONFIDENCES.items())
    return enough and (kind == "breaking" or max(found["width"].values()) <= 1)


def extreme(choose: Callable[..., float], found: list[Json], figure: str) -> dict[str, float]:
    """The least or the most for each confidence."""
    return {c: choose(one[figure][c] for one in found) for c in CONFIDENCES}


def rate(found: list[Json], bound: str) -> float:
    """Failures of a guaranteed bound over how often it was asked for."""
    return short(sum(one[f"{bound}_failed"] for one in found) / sum(one[f"{bound}_asked"] for one in found))


COVERAGE = Row(cells, summary)
