"""What every worker does: read a problem, release and answer several times, write answers and seconds.

A worker is `python -m benchmarks.peers.NAME METHOD problem.npz answers.npz`, run by the Python of the
library it measures. It needs that library and NumPy, and nothing of Partita.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

Problem = Mapping[str, Any]
"""Arrays by name: data, questions, `epsilon`, and `releases`, how often it is done afresh.

A problem with `columns` has that many columns: releases take them in turn, and the arrays that differ between
columns, those of `OF_COLUMNS`, have an entry for each.
"""

OF_COLUMNS = ("values", "keys", "largest", "epsilon")

Answers = Callable[[], Any]
"""Asked of a release: the answers to all questions, one number for each."""

Method = Callable[[Problem], Answers]
"""Makes one fresh release."""


def measured(method: Method, problem: Problem) -> dict[str, Any]:
    """Answers of fresh releases, a row for each, and what a release and all its answers took in seconds."""
    found, releasing, answering = [], [], []
    for number in range(int(problem["releases"])):
        column = column_of(problem, number)
        start = perf_counter()
        answers = method(column)
        released = perf_counter()
        found.append(np.asarray(answers(), dtype=np.float64))
        releasing.append(released - start)
        answering.append(perf_counter() - released)
    return {"answers": np.array(found), "releasing": np.array(releasing), "answering": np.array(answering)}


def column_of(problem: Problem, number: int) -> Problem:
    """What the release of that number is about."""
    if "columns" not in problem:
        return problem
    place = number % int(problem["columns"])
    return {**problem, **{name: problem[name][place] for name in OF_COLUMNS if name in problem}}


def serve(methods: Mapping[str, Method]) -> None:
    """The work of a worker: the named method on the problem of a file."""
    name, problem, answers = sys.argv[1:]
    with np.load(problem) as stored:
        made = measured(methods[name], dict(stored))
    np.savez(answers, **made)


def between(cells: Any, lows: Any, highs: Any) -> Any:
    """Sums of cells low, ..., high, for many ranges at once."""
    before = np.concatenate([[0.0], np.cumsum(cells)])
    return before[highs.astype(np.int64) + 1] - before[lows.astype(np.int64)]


def boxes(cells: Any, lows: Any, highs: Any) -> Any:
    """Sums of cells between two corners of a table with two axes, for many boxes at once."""
    before = np.zeros(np.add(cells.shape, 1))
    before[1:, 1:] = cells.cumsum(axis=0).cumsum(axis=1)
    (left, bottom), (right, top) = lows.astype(np.int64).T, highs.astype(np.int64).T + 1
    return before[right, top] - before[left, top] - before[right, bottom] + before[left, bottom]


def groups(problem: Problem) -> list[Any]:
    """The values of each group; the groups are disjoint, so each may have all of epsilon."""
    return [problem["values"][problem["keys"] == group] for group in range(int(problem["groups"]))]


def with_total(sums: Any) -> Any:
    """The figures of the groups, and their total."""
    return np.append(sums, np.sum(sums))
