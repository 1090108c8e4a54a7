"""Totals of one column alone, against truncation that was tuned in hindsight and has all of epsilon.

The constants of the walk are those of a prototype. Families of the group "tuned" were among the columns that
they were chosen on; those of the group "held out" never chose one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json
from benchmarks.accuracy.sums_sets import LARGEST, Ints, incomes, wages
from partita.domain import Integer
from partita.domain.axis import Axis
from partita.trusted.mechanisms.totals import KnotTotal
from partita.trusted.secret import Points

ROWS = (2_000, 100_000)
EPSILONS = ("0.1", "1")
SEEDS = 40
"""Columns of each family; every one is released as often as there are trials."""

Floats = NDArray[np.float64]


class Family(NamedTuple):
    """Whether it has chosen constants, and how its columns are drawn."""

    group: str
    draw: Callable[[int, np.random.Generator], Floats]


FAMILIES = {
    "lognormal 1": Family("tuned", lambda n, rng: np.exp(rng.normal(9, 1.0, n))),
    "wages": Family("tuned", lambda n, rng: rng.choice(wages(n, rng)[1], n).astype(np.float64)),
    "pareto 1.2": Family("tuned", lambda n, rng: 1_000 * (1 + rng.pareto(1.2, n))),
    "few huge": Family(
        "tuned", lambda n, rng: np.where(rng.random(n) < 0.01, np.exp(rng.normal(14, 1.0, n)), 0.0)
    ),
    "lognormal 2": Family("held out", lambda n, rng: np.exp(rng.normal(8, 2.0, n))),
    "exponential": Family("held out", lambda n, rng: rng.exponential(20_000, n)),
    "uniform": Family("held out", lambda n, rng: rng.uniform(0, 100_000, n)),
    "pareto 1.5": Family("held out", lambda n, rng: 1_000 * (1 + rng.pareto(1.5, n))),
    "incomes": Family("held out", lambda n, rng: incomes(n, rng)[1].astype(np.float64)),
}


def cells(plan: Plan) -> Sequence[Cell]:
    work = product(FAMILIES, ROWS, EPSILONS)
    return [partial(totals, name, n, epsilon, plan.trials) for name, n, epsilon in work]


def totals(name: str, n: int, epsilon: str, trials: int) -> Json:
    """Root-mean-square errors over those of hindsight, and how often intervals hold the true total."""
    found = [_of_seed(name, n, epsilon, trials, seed) for seed in range(SEEDS)]
    return {
        "row": "totals",
        "group": FAMILIES[name].group,
        "family": name,
        "n": n,
        "epsilon": epsilon,
        "ratio": math.exp(np.mean([math.log(each["ratio"]) for each in found])),
        **{
            key: float(np.mean([each[key] for each in found])) for key in ("error", "covered", "low", "width")
        },
    }


def _of_seed(name: str, n: int, epsilon: str, trials: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([n, list(FAMILIES).index(name), seed, 9])
    values = np.minimum(FAMILIES[name].draw(n, rng), LARGEST).astype(np.int64)
    value = Integer(0, LARGEST)
    points = Points.from_rows((values + 1)[:, np.newaxis], axes=[Axis.of(value)])
    mechanism, truth = KnotTotal(value=value, epsilon=epsilon), float(values.sum())
    answers = [mechanism.release(points).sum([]) for _ in range(trials)]
    ends = np.array([answer.interval() for answer in answers])
    error = math.sqrt(np.mean([(answer.value - truth) ** 2 for answer in answers]))
    return {
        "ratio": error / tune_truncation(values, float(epsilon)),
        "error": error / truth,
        "covered": float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()),
        "low": float((ends[:, 0] <= truth).mean()),
        "width": float(np.median(ends[:, 1] - ends[:, 0])) / truth,
    }


def tune_truncation(values: Ints, epsilon: float) -> float:
    """The least root-mean-square error of a truncated total with noise, over two thresholds an octave."""
    ordered = np.sort(values.astype(np.float64))
    before = np.concatenate([[0.0], np.cumsum(ordered)])
    thresholds = 2.0 ** np.arange(0, 33, 0.5)
    first = np.searchsorted(ordered, thresholds)
    lost = before[-1] - before[first] - thresholds * (ordered.size - first)
    return float(np.hypot(lost, math.sqrt(2) * thresholds / epsilon).min())


def summary(rows: list[Json]) -> Iterator[Json]:
    """Every cell, then the geometric mean of the ratios and the least coverage of each group."""
    for row in rows:
        yield {**row, "total": row["family"]}
    for group in ("tuned", "held out"):
        chosen = [row for row in rows if row["group"] == group]
        mean = math.exp(np.mean([math.log(row["ratio"]) for row in chosen]))
        yield {
            "row": "totals",
            "total": f"{group}: geometric mean of ratios, least coverage",
            "ratio": mean,
            "covered": min(row["covered"] for row in chosen),
        }


TOTALS = Row(cells, summary)
