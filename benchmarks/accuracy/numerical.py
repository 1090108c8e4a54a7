"""Sums over ranges at a million rows by the four ways of the KDD 2022 slides, on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json
from partita.domain import Integer
from partita.public.queries.expressions import Value
from partita.public.queries.language import ranges
from partita.public.queries.queries import Queries, Universe
from partita.trusted.mechanisms.numerical import (
    ComposedTruncation,
    GlobalTruncation,
    InstanceTruncation,
    Normalization,
)
from partita.trusted.secret import Points

N = 1_000_000
EPSILON = 1
QUESTIONS = 400
HELD_OUT = 1000
"""Seeds from here on; thresholds were tuned on smaller ones."""

LARGEST = 2**32
WAYS: dict[str, Any] = {
    way.name: way for way in (Normalization, ComposedTruncation, GlobalTruncation, InstanceTruncation)
}


@dataclass(frozen=True, eq=False)
class People:
    """A class and a value for each row, and how many classes there are."""

    classes: Any
    values: Any
    number: int


def growing_scale(rng: np.random.Generator) -> People:
    """Values whose scale doubles with every twelve classes of 128."""
    key = rng.integers(0, 128, N)
    return People(key, _whole(rng.exponential(2.0 ** (8 + key / 12))), 128)


def income_by_age(rng: np.random.Generator) -> People:
    """Log-normal incomes that grow with age, zeros and a heavy tail."""
    age = np.clip(rng.gamma(9.0, 4.5, N), 0, 127).astype(np.int64)
    income = np.exp(rng.normal(9.9, 0.8, N)) * (0.5 + age / 60)
    income[rng.random(N) < 0.12] = 0
    rich = rng.random(N) < 0.01
    income[rich] = 2e5 * (1 + rng.pareto(1.6, int(rich.sum())))
    return People(age, _whole(income), 128)


def same_scale(rng: np.random.Generator) -> People:
    """Log-normal values, the same for all classes: one threshold suits all queries."""
    return People(rng.integers(0, 128, N), _whole(np.exp(rng.normal(10.5, 1.5, N))), 128)


def sums_of_t(rng: np.random.Generator) -> People:
    """The slides' sums of t in [a, b] over [0, 2^32], with ends on eight public steps an octave."""
    values = _whole(np.exp2(rng.normal(14, 4, N)))
    octave = np.floor(np.log2(np.maximum(values, 1))).astype(np.int64)
    within = np.floor(8 * (values / np.exp2(octave) - 1)).astype(np.int64)
    return People(np.where(values > 0, 1 + 8 * octave + np.clip(within, 0, 7), 0), values, 8 * 33 + 1)


SETS: dict[str, Callable[[np.random.Generator], People]] = {
    "growing scale": growing_scale,
    "income by age": income_by_age,
    "same scale": same_scale,
    "sum of t in [a, b]": sums_of_t,
}


def _whole(values: Any) -> Any:
    return np.minimum(values, LARGEST - 1).astype(np.int64)


def cells(plan: Plan) -> Sequence[Cell]:
    """Every set with every way, some times."""
    return [partial(cell, *key) for key in product(SETS, WAYS, range(min(plan.trials, 3)))]


def cell(name: str, way: str, trial: int) -> Json:
    """The errors of one release over random ranges of classes."""
    rng = np.random.default_rng([HELD_OUT, list(SETS).index(name), trial])
    people = SETS[name](rng)
    ends = sorted({tuple(sorted(pair)) for pair in rng.integers(0, people.number, (QUESTIONS, 2)).tolist()})
    queries, points = asked(people, ends)
    release = WAYS[way](queries=queries, universe=universe(people), epsilon=EPSILON).release(points)
    misses = np.abs(release.values - truth(people, ends))
    return {
        "row": "numerical",
        "dataset": name,
        "mechanism": way,
        "trial": trial,
        "mean": float(misses.mean()),
        "median": float(np.median(misses)),
    }


def universe(people: People) -> Universe:
    return Universe(["class", "value"], [Integer(0, people.number - 1), Integer(0, LARGEST - 1)])


def asked(people: People, ends: Any) -> tuple[Queries, Points]:
    """Sums of values over ranges of classes, and the rows."""
    axes = universe(people).axes
    before = np.array([axis.before for axis in axes])
    rows = np.stack([people.classes, people.values], axis=1) + before
    return ranges("class", ends) * Value("value"), Points.from_rows(rows, axes=axes)


def truth(people: People, ends: Any) -> Any:
    """The exact sums."""
    sums = np.zeros(people.number + 1)
    np.add.at(sums, people.classes + 1, people.values)
    upto = np.cumsum(sums)
    return np.array([upto[high + 1] - upto[low] for low, high in ends])


def summary(rows: list[Json]) -> Iterator[Json]:
    """Mean errors of every way, and that of instance-specific truncation over that of global truncation."""
    for name in SETS:
        means = {way: average(rows, name, way, "mean") for way in WAYS}
        medians = {way: average(rows, name, way, "median") for way in WAYS}
        yield {
            "row": "numerical",
            "total": name,
            **{f"{way}_mean": figure for way, figure in means.items()},
            "mean_ratio": means[InstanceTruncation.name] / means[GlobalTruncation.name],
            "median_ratio": medians[InstanceTruncation.name] / medians[GlobalTruncation.name],
        }


def average(rows: list[Json], name: str, way: str, figure: str) -> float:
    """Over the trials of one way on one set."""
    return float(np.mean([row[figure] for row in rows if (row["dataset"], row["mechanism"]) == (name, way)]))


NUMERICAL = Row(cells, summary)
