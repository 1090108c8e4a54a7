"""Row `ranges`: the squared error of range queries, against least squares alone and against HaarHRR."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.accuracy.score import Json, short
from benchmarks.local.haar import haar_shares
from partita.local import Range

SIZE = 1024
PEOPLE = 100_000
RUNS = 40
QUERIES = 2_000
TARGET = 0.5


def ranges(quick: bool) -> Iterator[Json]:
    """Two humps over 1,024 cells, random ranges; all methods in one run, on the same people."""
    people, runs = (2_000, 2) if quick else (PEOPLE, RUNS)
    rng = np.random.default_rng(3)
    cells = humps(people, rng)
    asked = np.sort(rng.integers(0, SIZE, (QUERIES, 2)), axis=1)
    truth = answers(np.bincount(cells, minlength=SIZE) / people, asked)
    for epsilon in ("0.5", "1", "2"):
        errors = [measured(epsilon, cells, asked, truth, rng) for _ in range(runs)]
        ours, squares, haar = (mean(each) for each in zip(*errors, strict=True))
        yield {
            "row": "ranges",
            "epsilon": epsilon,
            "cells": SIZE,
            "n": people,
            "runs": runs,
            "mse": short(ours),
            "mse_squares_4": short(squares),
            "mse_haar": short(haar),
            "ratio_squares_4": short(ours / squares),
            "ratio_haar": short(ours / haar),
            "target": TARGET,
            "met": None if quick else max(ours / squares, ours / haar) <= TARGET,
        }


def measured(epsilon: str, cells: Any, asked: Any, truth: Any, rng: Any) -> tuple[float, float, float]:
    """The errors of `Range`, of least squares alone with branching 4, and of HaarHRR."""
    tables = (
        estimate(cells, epsilon, 2).values,
        estimate(cells, epsilon, 4).unbiased,
        haar_shares(cells, SIZE, float(epsilon), rng),
    )
    first, second, third = (float(((answers(table, asked) - truth) ** 2).mean()) for table in tables)
    return first, second, third


def estimate(cells: Any, epsilon: str, branching: int) -> Any:
    question = Range(SIZE, epsilon=epsilon, branching=branching)
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(cells))
    return aggregator.estimate()


def answers(shares: Any, asked: Any) -> Any:
    upto = np.concatenate([[0.0], np.cumsum(shares)])
    return upto[asked[:, 1] + 1] - upto[asked[:, 0]]


def humps(people: int, rng: Any) -> Any:
    """Half of the people near 400, half near 700."""
    centres = np.where(np.arange(people) % 2, 400, 700)
    widths = np.where(np.arange(people) % 2, 120, 60)
    return np.clip(rng.normal(centres, widths), 0, SIZE - 1).astype(np.int64)
