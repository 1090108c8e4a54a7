"""Universes of 2^64 cells, against the same mechanism on the same people in 2^32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from benchmarks.accuracy.draws import FAMILIES, FAMILY_BITS, Generator, at_bits, counted, three_kinds
from benchmarks.accuracy.huge import EPSILONS, KINDS, joined
from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.queries import Misses, Work, misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Goal, Json, cell_row, totals
from partita import Histogram

ROWS = (1_000, 100_000)
WIDE_BITS = 64
STRETCHED, SAME = "stretched", "same values"
GOALS = {STRETCHED: Goal(ratio=1.15), SAME: Goal(ratio=1.7)}
"""Values times 2^32 with uniform low bits, and the values as they are, in the wide universe."""


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *key) for key in product(GOALS, FAMILIES, ROWS, EPSILONS)]


def cell(plan: Plan, how: str, family: str, n: int, epsilon: str) -> Json:
    """Mean errors at 2^64 over those at 2^32, as many fresh draws of each."""
    pairs = [one_trial(plan.mechanism, how, family, n, epsilon, trial) for trial in range(plan.trials)]
    wide = {kind: joined([pair[0][kind] for pair in pairs]) for kind in KINDS}
    narrow = {kind: {f"2^{FAMILY_BITS}": joined([pair[1][kind] for pair in pairs]).L1} for kind in KINDS}
    work = Work(family, n, epsilon, counted(np.zeros(1, np.uint64), 1), {})
    return {**cell_row("wide", work, wide, narrow), "how": how}


def one_trial(
    mechanism: str, how: str, family: str, n: int, epsilon: str, trial: int
) -> tuple[dict[str, Misses], dict[str, Misses]]:
    """The same people in the wide universe and in the narrow one."""
    rng = np.random.default_rng([n, trial, list(FAMILIES).index(family)])
    values = FAMILIES[family](n, rng)
    asked = three_kinds(values, 2**FAMILY_BITS, rng)
    narrow = Work(family, n, epsilon, counted(values, 2**FAMILY_BITS), asked)
    wide = stretched(narrow, values, rng) if how == STRETCHED else same_values(narrow, values)
    return misses(Ours(mechanism), wide, 1), misses(Ours(mechanism), narrow, 1)


def stretched(narrow: Work[Histogram], values: np.ndarray, rng: Generator) -> Work[Histogram]:
    """Values times 2^32 with uniform low bits, and questions drawn alike."""
    size, values = 2**WIDE_BITS, at_bits(values, WIDE_BITS, rng)
    asked = three_kinds(values, size, rng)
    return Work(narrow.dataset, narrow.n, narrow.epsilon, counted(values, size), asked)


def same_values(narrow: Work[Histogram], values: np.ndarray) -> Work[Histogram]:
    """The same values and questions; only the public bound is wider."""
    return replace(narrow, data=counted(values, 2**WIDE_BITS))


def summary(rows: list[Json]) -> Iterator[Json]:
    """Each way to be wide, each kind of question."""
    for how, goal in GOALS.items():
        mine = [row for row in rows if row["how"] == how]
        yield from totals(f"wide, {how}", mine, dict.fromkeys(KINDS, goal))


WIDE = Row(cells, summary)
