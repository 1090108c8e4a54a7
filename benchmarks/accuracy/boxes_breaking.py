"""Points over several columns that break mechanisms: the rule of `breaking`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np

from benchmarks.accuracy.boxes_peers import PEERS
from benchmarks.accuracy.boxes_queries import BoxQueries, plain_axes
from benchmarks.accuracy.boxes_work import EPSILONS
from benchmarks.accuracy.breaking import judged, summary
from benchmarks.accuracy.queries import Work
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json
from partita import Points
from partita.arrays import UInts

Generator = np.random.Generator
Sizes = tuple[int, ...]

ROWS, BOXES = 100_000, 250

Case = tuple[Sizes, Callable[[Sizes, Generator], UInts]]
"""The number of cells along each axis, and the places of all rows."""


def spread(n: int, sizes: Sizes, rng: Generator) -> UInts:
    """n rows, all cells alike."""
    columns = [rng.integers(0, size - 1, n, dtype=np.uint64, endpoint=True) for size in sizes]
    return np.stack(columns, axis=1)


def one_point(sizes: Sizes, rng: Generator) -> UInts:
    """Everybody at the same point."""
    return np.tile(np.array([size // 3 for size in sizes], np.uint64), (ROWS, 1))


def diagonal(sizes: Sizes, rng: Generator) -> UInts:
    """Columns that say the same."""
    shares = rng.random(ROWS)
    return np.stack([(shares * size).astype(np.uint64) for size in sizes], axis=1)


def idle_axis(sizes: Sizes, rng: Generator) -> UInts:
    """A last column in which everybody has the same value."""
    rows = spread(ROWS, sizes, rng)
    rows[:, -1] = sizes[-1] // 3
    return rows


def lopsided(sizes: Sizes, rng: Generator) -> UInts:
    """Skewed along the first axis, each value of the second with a scale of its own."""
    few = rng.integers(0, sizes[1], ROWS)
    rows = np.exp(rng.normal(0, 1, ROWS)) * sizes[0] / 50 / (1 + few)
    return np.stack([rows.clip(0, sizes[0] - 1).astype(np.uint64), few.astype(np.uint64)], axis=1)


CASES: dict[str, Case] = {
    "one point, 256 x 256": ((256, 256), one_point),
    "one point, 2^32 x 2^32": ((2**32, 2**32), one_point),
    "one point, 2^20 three times": ((2**20,) * 3, one_point),
    "diagonal, 256 x 256": ((256, 256), diagonal),
    "diagonal, 2^32 x 2^32": ((2**32, 2**32), diagonal),
    "diagonal, 2^32 three times": ((2**32,) * 3, diagonal),
    "idle axis, 2^10 x 2^10": ((2**10, 2**10), idle_axis),
    "idle axis, 2^32 x 2^32": ((2**32, 2**32), idle_axis),
    "idle axis, 2^10 four times": ((2**10,) * 4, idle_axis),
    "an axis of one cell, 2^20 x 1": ((2**20, 1), partial(spread, ROWS)),
    "one cell in all, 1 x 1": ((1, 1), partial(spread, ROWS)),
    "2^40 x 3": ((2**40, 3), lopsided),
    "2^40 x 3, spread": ((2**40, 3), partial(spread, ROWS)),
    "2^63 x 2^63": ((2**63, 2**63), partial(spread, ROWS)),
    "2^63 six times": ((2**63,) * 6, partial(spread, ROWS)),
    "nobody, 256 x 256": ((256, 256), partial(spread, 0)),
    "nobody, 2^32 three times": ((2**32,) * 3, partial(spread, 0)),
    "one person, 256 x 256": ((256, 256), partial(spread, 1)),
    "one person, 2^32 three times": ((2**32,) * 3, partial(spread, 1)),
}


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *key) for key in product(CASES, EPSILONS)]


def cell(plan: Plan, case: str, epsilon: str) -> Json:
    """Mean errors beside the best peer and the floor, and whether all of it is sane."""
    return judged("boxesbreaking", plan.boxes, case_work(case, epsilon), PEERS, plan.trials)


def case_work(case: str, epsilon: str) -> Work[Points]:
    """A case with its lists of boxes."""
    (sizes, draw), rng = CASES[case], np.random.default_rng(list(CASES).index(case))
    rows = draw(sizes, rng)
    points = Points.from_rows(rows, axes=plain_axes(sizes))
    return Work(case, points.total, epsilon, points, four_kinds(rows, sizes, rng))


def four_kinds(rows: UInts, sizes: Sizes, rng: Generator) -> dict[str, BoxQueries]:
    """Corners anywhere, corners at data values, single cells (rows and others), and the box of everything."""
    anywhere = np.sort([spread(BOXES, sizes, rng) for _ in range(2)], axis=0)
    known = rows if len(rows) else spread(BOXES, sizes, rng)
    at_data = np.sort([rng.permuted(rng.choice(known, BOXES), axis=0) for _ in range(2)], axis=0)
    single = np.concatenate([rng.choice(known, BOXES // 2), spread(BOXES // 2, sizes, rng)])
    last = np.array([[size - 1 for size in sizes]], np.uint64)
    return {
        "uniform": BoxQueries(*anywhere),
        "data": BoxQueries(*at_data),
        "cell": BoxQueries(single, single),
        "whole": BoxQueries(np.zeros_like(last), last),
    }


BOXES_BREAKING = Row(cells, summary)
