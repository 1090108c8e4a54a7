"""Keys and values for sums: synthetic sets of constant and of varying scale, and real tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.work import folder

Ints = NDArray[np.int64]
Draw = Callable[[int, np.random.Generator], tuple[Ints, Ints]]

LARGEST = 2**32 - 1
"""The declared bound of every value."""


class Sums(NamedTuple):
    """How many cells the key has, how the scale of values varies with it, and rows."""

    cells: int
    kind: str
    draw: Draw


def lognormal(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    return rng.integers(0, 128, n), _whole(np.exp(rng.normal(10.5, 1.5, n)))


def uniform(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    return rng.integers(0, 128, n), rng.integers(0, 100_001, n)


def exponential(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The scale doubles with every twelve keys."""
    keys = rng.integers(0, 128, n)
    return keys, _whole(rng.exponential(2.0 ** (8 + keys / 12)))


def incomes(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Incomes that grow fivefold with age, one in eight zero, one in a hundred from a Pareto tail."""
    ages = np.clip(rng.gamma(9, 4.5, n).astype(np.int64), 0, 127)
    values = np.exp(rng.normal(9.9, 0.8, n)) * (0.5 + ages / 60)
    values[rng.random(n) < 0.12] = 0
    tail = rng.random(n) < 0.01
    values[tail] = 2e5 * (1 + rng.pareto(1.6, int(tail.sum())))
    return ages, _whole(values)


def wages(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Real income by age of the General Social Survey, every row."""
    return _table("gss_wages.parquet", "age", "realrinc")


def diamonds(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Price by carat of diamonds, every row."""
    return _table("diamonds.parquet", "carat", "price")


SETS = {
    "lognormal": Sums(128, "constant", lognormal),
    "uniform": Sums(128, "constant", uniform),
    "incomes": Sums(128, "mixed", incomes),
    "exponential": Sums(128, "varying", exponential),
    "wages": Sums(128, "constant", wages),
    "diamonds": Sums(1024, "varying", diamonds),
}


def _whole(values: NDArray[np.float64]) -> Ints:
    return np.minimum(values, LARGEST).astype(np.int64)


def _table(name: str, key: str, value: str) -> tuple[Ints, Ints]:
    import pyarrow.parquet as parquet

    table = parquet.read_table(folder() / name, columns=[key, value])
    return tuple(table[column].to_numpy().astype(np.int64) for column in (key, value))
