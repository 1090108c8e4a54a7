"""Scores: error over that of the best peer, in a cell and over many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import exp, log
from statistics import mean
from typing import Any, TypeAlias

from benchmarks.accuracy.queries import Misses, Work

Json: TypeAlias = dict[str, Any]

WEAK = 300
"""Below this n epsilon little can be learned, and the worst cell is judged apart."""


@dataclass(frozen=True)
class Goal:
    """What a geometric mean and the worst cell of one list of questions should not exceed."""

    ratio: float | None = None
    worst: float | None = None
    worst_weak: float | None = None


def cell_row(
    row: str, work: Work[Any], found: Mapping[str, Misses], peers: Mapping[str, Mapping[str, float]]
) -> Json:
    """One cell: for each list of questions our error, the best peer, its error, and the ratio."""
    made: Json = {"row": row, "dataset": work.dataset, "n": work.n, "epsilon": work.epsilon}
    for name, ours in found.items():
        best = min(peers[name], key=peers[name].__getitem__)
        made |= {
            f"{name}_L1": short(ours.L1),
            f"{name}_RMSE": short(ours.RMSE),
            f"{name}_max": short(ours.largest),
            f"{name}_spread": short(ours.spread),
            f"{name}_peer": best,
            f"{name}_peer_L1": short(peers[name][best]),
            f"{name}_ratio": short(ours.L1 / peers[name][best]),
        }
    return made


def totals(row: str, rows: list[Json], goals: Mapping[str, Goal]) -> Iterator[Json]:
    """For each list of questions: the geometric mean, the worst cells, and each (n, epsilon) alone."""
    for name, goal in goals.items():
        ratio = f"{name}_ratio"
        weak, strong = halves(rows)
        yield {
            "row": row,
            "total": name,
            "cells": len(rows),
            "ratio": geometric_mean(made[ratio] for made in rows),
            "worst": worst(strong, ratio),
            "worst_weak": worst(weak, ratio),
            "target": goal.ratio,
            "met": verdict(rows, ratio, goal),
            "by_n_epsilon": breakdown(rows, ratio),
        }


def pooled(row: str, name: str, rows: list[Json], queries: Iterable[str], goal: Goal) -> Json:
    """One geometric mean over several lists of questions."""
    ratios = [made[f"{query}_ratio"] for made in rows for query in queries]
    ratio = geometric_mean(ratios)
    return {
        "row": row,
        "total": name,
        "cells": len(ratios),
        "ratio": ratio,
        "worst": max(ratios),
        "target": goal.ratio,
        "met": None if goal.ratio is None else ratio <= goal.ratio,
    }


def halves(rows: list[Json]) -> tuple[list[Json], list[Json]]:
    """Cells of small n epsilon, and the others."""

    def is_weak(row: Json) -> bool:
        return float(row["n"]) * float(row["epsilon"]) <= WEAK

    return [row for row in rows if is_weak(row)], [row for row in rows if not is_weak(row)]


def verdict(rows: list[Json], ratio: str, goal: Goal) -> bool | None:
    """Whether the goal is met in every part; None without one."""
    weak, strong = halves(rows)
    checks = [
        (goal.ratio, geometric_mean(row[ratio] for row in rows)),
        (goal.worst, max((row[ratio] for row in strong), default=0.0)),
        (goal.worst_weak, max((row[ratio] for row in weak), default=0.0)),
    ]
    asked = [figure <= most for most, figure in checks if most is not None]
    return all(asked) if asked else None


def worst(rows: list[Json], ratio: str) -> str:
    """The largest ratio and where it is."""
    if not rows:
        return ""
    row = max(rows, key=lambda made: made[ratio])
    return f"{row[ratio]:.3g} {row['dataset']} n={row['n']} epsilon={row['epsilon']}"


def breakdown(rows: list[Json], ratio: str) -> dict[str, float]:
    """The geometric mean for each n and epsilon."""
    return grouped(rows, ratio, lambda row: f"{row['n']}, {row['epsilon']}")


def grouped(rows: list[Json], ratio: str, key: Callable[[Json], str]) -> dict[str, float]:
    """The geometric mean for each value of a key, in the order of first appearance."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row[ratio])
    return {name: geometric_mean(ratios) for name, ratios in found.items()}


def geometric_mean(ratios: Iterable[float]) -> float:
    """The mean for ratios: 2 and 1/2 cancel."""
    return short(exp(mean(log(max(ratio, 1e-12)) for ratio in ratios)))


def short(figure: float) -> float:
    """Four digits: more would be noise."""
    return float(f"{figure:.4g}")
