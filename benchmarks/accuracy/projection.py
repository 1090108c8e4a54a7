"""Projected Laplace where queries outnumber rows: against noise alone, an even guess, and smaller hulls.

The hull is that of the noisy number of rows plus its reach. Beside it are measured the hull of the noisy
number itself, and the short one that it would be when the noise is as low as once in a hundred releases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, geometric_mean, short
from partita.domain import Integer
from partita.public.queries.language import matrix, ranges
from partita.public.queries.queries import Queries, Universe
from partita.public.workload.projection import ProjectedLaplaceRelease, project, rows_reach
from partita.trusted.mechanisms.workload import ProjectedLaplace
from partita.trusted.secret import Points

Floats: TypeAlias = NDArray[np.float64]

SIZE = 64
AGES = Universe(["age"], [Integer(0, SIZE - 1)])
ROWS = (200, 2_000, 20_000)
DELTAS = ("0", "1e-6")
RANDOM_QUERIES = 1_000
QUERIES_SEED = 20_260
DATA_SEED = 61
UNLUCKY = 0.01


def bell(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A smooth column."""
    return np.clip(np.rint(rng.normal(0.4 * SIZE, 0.12 * SIZE, n)), 0, SIZE - 1).astype(np.int64)


def few(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A column of few values, the largest of which has half of the rows."""
    return rng.choice(SIZE, 6, replace=False)[np.minimum(rng.geometric(0.5, n) - 1, 5)]


def one(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """All rows in one cell: the hull touches the truth, and a hull of too few rows shows most."""
    return np.full(n, rng.integers(SIZE))


FAMILIES: dict[str, Callable[[int, np.random.Generator], NDArray[np.int64]]] = {
    "bell": bell,
    "few": few,
    "one": one,
}


@cache
def workload(name: str) -> Queries:
    """All ranges, or as many random sets of cells: each in a set with probability one half."""
    if name == "ranges":
        return ranges("age")
    sets = np.random.default_rng(QUERIES_SEED).random((RANDOM_QUERIES, SIZE)) < 0.5
    return matrix("age", [dict.fromkeys(np.flatnonzero(chosen).tolist(), 1) for chosen in sets])


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *key) for key in product(("ranges", "random"), FAMILIES, ROWS, DELTAS)]


def cell(plan: Plan, queries: str, family: str, n: int, delta: str) -> Json:
    """Root-mean-square errors over all queries, new data in each trial."""
    mechanism = ProjectedLaplace(queries=workload(queries), universe=AGES, epsilon=1, delta=delta)
    found = [trial(mechanism, family, n, number) for number in range(plan.trials)]
    errors = {name: float(np.sqrt(np.mean([each[name] for each in found]))) for name in found[0]}
    return {
        "row": "projection",
        "dataset": f"{queries} of {family}",
        "queries": len(mechanism.operator),
        "n": n,
        "delta": delta,
        "rule": mechanism.composition.rule,
        **{
            f"{name}_RMSE": short(error)
            for name, error in errors.items()
            if name not in ("certified", "stated")
        },
        "stated_error": short(errors["stated"]),
        "certified": short(errors["certified"] ** 2),
        "ratio": short(errors["projected"] / errors["unprojected"]),
        "noisy_hull_ratio": short(errors["noisy_hull"] / errors["projected"]),
        "short_hull_ratio": short(errors["short_hull"] / errors["projected"]),
    }


def trial(mechanism: ProjectedLaplace, family: str, n: int, number: int) -> dict[str, float]:
    """Mean squares: of what each way misses the truth by, and of the error that the release states."""
    rng = np.random.default_rng([DATA_SEED, n, number])
    positions = FAMILIES[family](n, rng) + mechanism.universe.axes[0].before
    points = Points.from_rows(positions[:, None], axes=AGES.axes)
    truth = np.asarray(mechanism.truth(points), np.float64)
    release = mechanism.release(points)
    assert release.rows_scale is not None, "rows come and go in this row"
    ways = {
        "projected": release.values,
        "unprojected": release.unprojected,
        "even": even(mechanism, release),
        "noisy_hull": on_rows(release, release.rows),
        "short_hull": on_rows(release, n - rows_reach(release.rows_scale, UNLUCKY)),
    }
    squares = {name: float(np.square(values - truth).mean()) for name, values in ways.items()}
    return {
        **squares,
        "stated": float(np.square(release.spreads).mean()),
        "certified": float(release.projection is not None),
    }


def even(mechanism: ProjectedLaplace, release: ProjectedLaplaceRelease) -> Floats:
    """The answers if the released number of rows were spread evenly over the domain."""
    axis = mechanism.universe.axes[0]
    x = np.zeros(axis.width)
    x[axis.before : axis.before + SIZE] = release.rows / SIZE
    return np.asarray(mechanism.operator.answers(x), np.float64)


def on_rows(release: ProjectedLaplaceRelease, rows: int) -> Floats:
    """The projection on the hull of another number of rows."""
    found = project(release.operator, release.noisy, rows=max(0, rows), deviation=release.noise.deviation)
    return release.unprojected if found is None else found.values


def summary(rows: list[Json]) -> Iterator[Json]:
    """Over all cells of a workload and a delta: geometric means, and how much smaller hulls hurt at worst."""
    for name, delta in product(("ranges", "random"), DELTAS):
        here: list[Any] = [row for row in rows if row["dataset"].startswith(name) and row["delta"] == delta]
        yield {
            "row": "projection",
            "total": f"{name}, delta {delta}",
            "cells": len(here),
            "projected_over_unprojected": geometric_mean(row["ratio"] for row in here),
            "worst": max(row["ratio"] for row in here),
            "projected_over_even": geometric_mean(row["projected_RMSE"] / row["even_RMSE"] for row in here),
            "worst_noisy_hull": max(row["noisy_hull_ratio"] for row in here),
            "worst_short_hull": max(row["short_hull_ratio"] for row in here),
            "certified": min(row["certified"] for row in here),
        }


PROJECTION = Row(cells, summary)
