"""Tables over some columns of coded rows, and how far two of them are apart; NumPy and nothing else.

Workers that measure whole tables share this with the rows of the benchmark: every method is judged by the
same function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from benchmarks.peers.worker import Answers, Problem

Subset: TypeAlias = tuple[int, ...]
"""Columns by number, in rising order."""

Project: TypeAlias = Callable[[Subset], Any]
"""The estimated table over some columns, every cell of it, in any scale."""


def count_cells(rows: Any, sizes: Sequence[int], subset: Subset) -> Any:
    """How many rows are in each cell of the table over some columns."""
    shape = tuple(sizes[column] for column in subset)
    places = np.ravel_multi_index(tuple(rows[:, column] for column in subset), shape)
    return np.bincount(places, minlength=int(np.prod(shape))).reshape(shape)


def variation(truth: Any, guess: Any) -> float:
    """The total variation between two tables: half of the L1 distance of their shares.

    What a guess has below zero counts as zero; a guess without rows is the table of equal cells.
    """
    shares = np.maximum(np.asarray(guess, dtype=np.float64).ravel(), 0.0)
    shares = shares / shares.sum() if shares.sum() > 0 else np.full(shares.size, 1 / shares.size)
    return float(np.abs(truth.ravel() / truth.sum() - shares).sum() / 2)


def variations(rows: Any, sizes: Sequence[int], subsets: Iterable[Subset], project: Project) -> Any:
    """The total variation of each table."""
    return np.array([variation(count_cells(rows, sizes, each), project(each)) for each in subsets])


def unpack_subsets(problem: Problem) -> list[Subset]:
    """The columns of each table that a problem asks for; a row of `subsets` is filled up with -1."""
    return [tuple(int(column) for column in row if column >= 0) for row in problem["subsets"]]


def answer_variations(problem: Problem, project: Project) -> Answers:
    """What a worker answers: the total variation of every table that the problem asks for."""
    sizes = problem["sizes"].tolist()
    return lambda: variations(problem["rows"], sizes, unpack_subsets(problem), project)
