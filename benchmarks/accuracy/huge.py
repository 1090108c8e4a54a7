"""Universes of 2^32 cells, fresh draws, against the best of binned Hb and PrivTree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from statistics import mean

import numpy as np

from benchmarks.accuracy.draws import FAMILIES, FAMILY_BITS, counted, three_kinds
from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.queries import Method, Misses, Work, misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Goal, Json, cell_row, pooled, totals
from benchmarks.accuracy.work import peers_huge
from partita import Histogram

ROWS = (1_000, 100_000, 1_000_000)
EPSILONS = ("0.1", "1.0")
KINDS = ("uniform", "data", "prefix")
POOLED = Goal(ratio=0.78)
GOALS = {"uniform": Goal(), "data": Goal(worst=1.9, worst_weak=1.9), "prefix": Goal()}


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *key) for key in product(FAMILIES, ROWS, EPSILONS)]


def cell(plan: Plan, family: str, n: int, epsilon: str) -> Json:
    """Mean errors over fresh data in each trial, against the least among the peers of anchors_huge.csv."""
    found = fresh_misses(Ours(plan.mechanism), family, n, epsilon, plan.trials)
    return cell_row("huge", fresh_work(family, n, epsilon, 0), found, peers_huge(family, n, epsilon))


def fresh_misses(
    method: Method[Histogram], family: str, n: int, epsilon: str, trials: int
) -> dict[str, Misses]:
    """What a method misses each kind of question by, new data and new questions in each trial."""
    found = [misses(method, fresh_work(family, n, epsilon, trial), 1) for trial in range(trials)]
    return {kind: joined([one[kind] for one in found]) for kind in KINDS}


def joined(found: list[Misses]) -> Misses:
    """The mean over trials that had their own data."""
    lengths = np.array([one.L1 for one in found])
    deviation = lengths.std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else 0.0
    return Misses(
        L1=float(lengths.mean()),
        RMSE=mean(one.RMSE for one in found),
        largest=mean(one.largest for one in found),
        spread=float(deviation / max(lengths.mean(), 1e-12)),
    )


def fresh_work(family: str, n: int, epsilon: str, trial: int) -> Work[Histogram]:
    """Data and questions of one trial; the same for every mechanism and epsilon."""
    rng = np.random.default_rng([n, trial, list(FAMILIES).index(family)])
    values, size = FAMILIES[family](n, rng), 2**FAMILY_BITS
    return Work(family, n, epsilon, counted(values, size), three_kinds(values, size, rng))


def summary(rows: list[Json]) -> Iterator[Json]:
    """Each kind alone, then all of them pooled."""
    yield from totals("huge", rows, GOALS)
    yield pooled("huge", "pooled", rows, KINDS, POOLED)


HUGE = Row(cells, summary)
