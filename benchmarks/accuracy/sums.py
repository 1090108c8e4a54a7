"""Sums over ranges of a key, against a tree of truncated values that was tuned in hindsight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json
from benchmarks.accuracy.sums_moments import moments
from benchmarks.accuracy.sums_own import own_sums
from benchmarks.accuracy.sums_ranges import SEEDS, VALUE, Ranges, asked, averaged, truncated
from benchmarks.accuracy.sums_sets import SETS, Ints
from partita.domain.axis import Axis
from partita.trusted.mechanisms.sums import LevelTrees
from partita.trusted.secret import Points

ROWS = (20_000, 200_000)
REAL = ("wages", "diamonds")
MOMENTS = ("lognormal", "exponential", "uniform", "incomes")


def cells(plan: Plan) -> Sequence[Cell]:
    synthetic = [name for name in SETS if name not in REAL]
    work = [*product(synthetic, ROWS), *((name, 0) for name in REAL)]
    return [
        *(partial(range_sums, name, n, plan.trials) for name, n in work),
        *(partial(own_sums, n, plan.trials) for n in ROWS),
        *(partial(moments, name, n, plan.trials) for name, n in product(MOMENTS, ROWS)),
    ]


def range_sums(name: str, n: int, trials: int) -> Json:
    """Mean errors of sums over ranges of the key at epsilon 1, over those of the tuned trees."""
    rows = [_of_seed(name, n, trials, seed) for seed in SEEDS]
    figures = averaged(rows, "ratio")
    number = int(figures.pop("n"))
    return {"row": "sums", "kind": SETS[name].kind, "set": name, "n": number, **figures}


def _of_seed(name: str, n: int, trials: int, seed: int) -> Json:
    chosen = SETS[name]
    rng = np.random.default_rng([n, list(SETS).index(name), seed, 1])
    keys, values = chosen.draw(n, rng)
    ranges = asked(keys, chosen.cells, rng)
    ours = _mean_error(ranges, values, trials)
    tuned = truncated(ranges, values, rng)
    return {
        "n": len(values),
        "mean": ours,
        "ratio": ours / tuned.octaves,
        "ratio_fine": ours / tuned.half_octaves,
        "normalization": tuned.uncapped / ours,
    }


def _mean_error(ranges: Ranges, values: Ints, trials: int) -> float:
    """Of fresh releases."""
    axis = Axis(size=ranges.cells)
    points = Points.from_rows(np.stack([ranges.keys, values + 1], axis=1), axes=[axis, Axis.of(VALUE)])
    mechanism = LevelTrees(keys=[axis], value=VALUE, epsilon=1)
    truth = ranges.sums(values.astype(np.float64))
    misses = []
    for _ in range(trials):
        release = mechanism.release(points)
        misses.append([release.sum(term).value for term in ranges.terms] - truth)
    return float(np.abs(misses).mean())


def summary(rows: list[Json]) -> Iterator[Json]:
    """Every cell, and then the worst ratio of each kind."""
    for row in rows:
        yield {**row, "total": row["kind"]}
    for kind, name, worst in (
        ("constant", "ratio", max),
        ("varying", "ratio", max),
        ("mixed", "ratio", max),
        ("own", "median_ratio", min),
        ("moments", "mean_ratio", min),
        ("moments", "std_ratio", min),
    ):
        yield {
            "row": "sums",
            "total": f"{kind}: worst {name}",
            "figure": worst(row[name] for row in rows if row["kind"] == kind),
        }
    least = min(row["normalization"] for row in rows if "normalization" in row)
    yield {"row": "sums", "total": "all: least normalization", "figure": least}


SUMS = Row(cells, summary)
