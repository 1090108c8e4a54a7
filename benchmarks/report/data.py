"""Public data that the report makes itself: the same rows in every run, for every method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Generator = np.random.Generator

SIZE = 2**16
"""Cells of a column."""

SIDE = 256
"""Cells of each of two columns."""


def salaries(n: int, rng: Generator) -> Any:
    """Log-normal, with a long tail."""
    return whole(np.exp(rng.normal(9, 0.7, n)))


def bimodal(n: int, rng: Generator) -> Any:
    """A narrow and a wide hump."""
    first = rng.random(n) < 0.6
    return whole(np.where(first, rng.normal(15_000, 1_500, n), rng.normal(45_000, 6_000, n)))


def heaped(n: int, rng: Generator) -> Any:
    """Salaries as people tell them: most in thousands, some in hundreds."""
    grain = rng.choice([1_000, 100, 1], n, p=[0.7, 0.2, 0.1])
    return whole(salaries(n, rng) // grain * grain)


def spikes(n: int, rng: Generator) -> Any:
    """Everybody at one of fifty places, few of which are common."""
    shares = 1 / np.arange(1, 51)
    return rng.choice(rng.integers(0, SIZE, 50), n, p=shares / shares.sum())


def whole(values: Any) -> Any:
    return np.clip(values, 0, SIZE - 1).astype(np.int64)


COLUMNS: dict[str, Callable[[int, Generator], Any]] = {
    "salaries": salaries,
    "bimodal": bimodal,
    "heaped": heaped,
    "spikes": spikes,
}


def city(n: int, rng: Generator) -> Any:
    """Five quarters of different width, and people everywhere between them."""
    centres, widths = rng.uniform(40, 216, (5, 2)), rng.uniform(4, 30, 5)
    quarter = rng.integers(0, 5, n)
    points = rng.normal(centres[quarter], widths[quarter, None])
    points[: n // 10] = rng.uniform(0, SIDE, (n // 10, 2))
    return inside(points)


def age_and_income(n: int, rng: Generator) -> Any:
    """Two columns that rise together."""
    age = rng.gamma(6, 15, n)
    return inside(np.stack([age, age * np.exp(rng.normal(-0.2, 0.4, n))], axis=1))


def roads(n: int, rng: Generator) -> Any:
    """Points along twelve straight lines: most of the plane is empty."""
    ends = rng.uniform(0, SIDE, (12, 2, 2))
    road, along = rng.integers(0, 12, n), rng.random((n, 1))
    return inside(ends[road, 0] * along + ends[road, 1] * (1 - along))


def inside(points: Any) -> Any:
    return np.clip(points, 0, SIDE - 1).astype(np.int64)


PLANES: dict[str, Callable[[int, Generator], Any]] = {
    "city": city,
    "age and income": age_and_income,
    "roads": roads,
}


def sorted_pairs(rng: Generator, size: int, number: int) -> tuple[Any, Any]:
    """The first and last cells of ranges with uniform ends."""
    ends = np.sort(rng.integers(0, size, (number, 2)), axis=1)
    return ends[:, 0], ends[:, 1]
