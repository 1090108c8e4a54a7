"""Private multiplicative weights on random ranges over two and three columns, against plain Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json
from partita.public.queries.product import Product
from partita.public.queries.ranges import SpanOperator
from partita.public.workload.release import Change
from partita.public.workload.weights import WeightsBudget
from partita.trusted.mechanisms.weights import weigh
from partita.trusted.noise.system import SYSTEM

SHAPES: dict[str, tuple[tuple[int, ...], int]] = {"2d": ((64, 64), 32), "3d": ((24, 24, 24), 10)}
"""Widths, and how many random ranges each column has: all products of them are asked."""

ROWS, EPSILONS, KINDS = (10_000, 1_000_000), ("0.1", "1"), ("dependent", "heaped")
SEED = 20_261
"""None of these draws was looked at when the constants were chosen."""


def cells(plan: Plan) -> Sequence[Cell]:
    return [
        partial(cell, plan.trials, shape, kind, rows, epsilon)
        for shape in SHAPES
        for kind in KINDS
        for rows in ROWS
        for epsilon in EPSILONS
    ]


def cell(trials: int, shape: str, kind: str, rows: int, epsilon: str) -> Json:
    """Root-mean-square and mean largest error, those of Laplace noise on all answers, and missed bounds."""
    errors, largest, missed, spreads = [], [], 0, []
    for trial in range(trials):
        rng = np.random.default_rng((SEED, trial))
        operator = workload(*SHAPES[shape], rng)
        data = people(kind, operator.shape, rows, rng)
        weighed = weigh(
            data,
            operator=operator,
            unit=1,
            change=Change(1),
            budget=WeightsBudget(epsilon=epsilon),
            session=SYSTEM.session(),
        )
        off = weighed.answers - operator.answers(data)
        errors.append(float(np.mean(off**2)))
        largest.append(float(np.abs(off).max()))
        missed += bool((np.abs(off) > weighed.bounds(0.05)).any())
        spreads.append(weighed.spread)
    plain = math.sqrt(2) * operator.column_norm / float(epsilon)
    ours = math.sqrt(float(np.mean(errors)))
    return {
        "row": "weights",
        "cell": f"{shape} {kind}",
        "rows": rows,
        "epsilon": epsilon,
        "error": ours,
        "largest": float(np.mean(largest)),
        "laplace": plain,
        "ratio": ours / plain,
        "standard_error": float(np.mean(spreads)),
        "missed_bounds": missed / trials,
    }


def workload(widths: tuple[int, ...], ranges: int, rng: np.random.Generator) -> Product:
    """All products of random ranges, one of each column."""
    factors = []
    for axis, width in enumerate(widths):
        ends = np.sort(rng.integers(0, width, (ranges, 2)), axis=1)
        factors.append(((axis,), SpanOperator(width, ends[:, 0].tolist(), (ends[:, 1] + 1).tolist())))
    return Product(widths, factors)


def people(kind: str, widths: tuple[int, ...], rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Columns that depend on each other, or half of all rows in one cell and heavy tails."""
    size = np.array(widths)
    if kind == "dependent":
        places = (0.8 * rng.normal(size=(rows, 1)) + 0.6 * rng.normal(size=(rows, size.size)) + 4) / 8 * size
    else:
        tails = np.abs(rng.standard_cauchy((rows, size.size))) * size * 0.05
        places = np.where(rng.random((rows, 1)) < 0.5, size * 0.3, tails)
    counts = np.zeros(widths, np.int64)
    np.add.at(counts, tuple(np.clip(places.astype(np.int64), 0, size - 1).T), 1)
    return counts


def summary(rows: list[Json]) -> Iterator[Json]:
    """The geometric mean of ratios for each number of rows and epsilon."""
    for count in ROWS:
        for epsilon in EPSILONS:
            ratios = [row["ratio"] for row in rows if (row["rows"], row["epsilon"]) == (count, epsilon)]
            if ratios:
                mean = math.exp(sum(math.log(float(str(ratio))) for ratio in ratios) / len(ratios))
                yield {"total": "weights", "rows": count, "epsilon": epsilon, "ratio_to_laplace": mean}


WEIGHTS = Row(cells, summary)
