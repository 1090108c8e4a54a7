"""Universes between 2^12 and 2^28: two mechanisms of the library side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from benchmarks.accuracy.draws import FAMILIES, at_bits, counted, three_kinds
from benchmarks.accuracy.huge import KINDS
from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.queries import Work, misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, cell_row, grouped
from benchmarks.accuracy.work import column_bounds, column_values, columns
from partita import Histogram

BITS = (14, 16, 18, 20, 24, 28)
ROWS = (1_000, 100_000, 10_000_000)
EPSILONS = ("0.1", "1.0")
LEAST_NATIVE = 2**13
"""Raw columns over fewer cells are covered by the row raw."""


def cells(plan: Plan) -> Sequence[Cell]:
    """Families at each width, and raw columns at their own resolution."""
    grid = list(product(ROWS, EPSILONS))
    drawn = [partial(family_cell, plan, *key, *shape) for key in product(FAMILIES, BITS) for shape in grid]
    return drawn + [partial(column_cell, plan, *column, *shape) for column in native() for shape in grid]


def native() -> list[tuple[str, str]]:
    """The raw columns over many cells."""
    return [column for column in columns() if width(*column) >= LEAST_NATIVE]


def width(table: str, column: str) -> int:
    """The number of cells of a raw column."""
    low, high = column_bounds(table, column)
    return int(high - low + 1)


def family_cell(plan: Plan, family: str, bits: int, n: int, epsilon: str) -> Json:
    """A family squeezed into 2^bits cells."""
    rng = np.random.default_rng([n, bits, list(FAMILIES).index(family)])
    values = at_bits(FAMILIES[family](n, rng), bits, rng)
    work = Work(family, n, epsilon, counted(values, 2**bits), three_kinds(values, 2**bits, rng))
    return compared(plan, work)


def column_cell(plan: Plan, table: str, column: str, n: int, epsilon: str) -> Json:
    """A raw column at its own resolution, n rows drawn with replacement."""
    rng, size = np.random.default_rng(n), width(table, column)
    values = rng.choice(column_values(table, column), n).astype(np.uint64)
    work = Work(f"{table}.{column}", n, epsilon, counted(values, size), three_kinds(values, size, rng))
    return compared(plan, work)


def compared(plan: Plan, work: Work[Histogram]) -> Json:
    """The mechanism's mean errors, against those of the other on the same data."""
    first, second = (misses(Ours(name), work, plan.trials) for name in (plan.mechanism, plan.against))
    others = {kind: {plan.against: second[kind].L1} for kind in KINDS}
    return {**cell_row("border", work, first, others), "size": work.data.size}


def summary(rows: list[Json]) -> Iterator[Json]:
    """Over one the other mechanism is better: for each width, n epsilon and kind of question."""
    for kind in KINDS:
        yield {
            "row": "border",
            "total": kind,
            "cells": len(rows),
            "ratio_by_size": grouped(rows, f"{kind}_ratio", by_size),
            "ratio_by_size_n_epsilon": grouped(rows, f"{kind}_ratio", by_strength),
        }


def by_size(row: Json) -> str:
    return f"2^{np.log2(row['size']):.3g} {'native' if '.' in row['dataset'] else row['dataset']}"


def by_strength(row: Json) -> str:
    return f"{by_size(row)}, {float(row['n']) * float(row['epsilon']):.0e}"


BORDER = Row(cells, summary)
