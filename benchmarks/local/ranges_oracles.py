"""Rows `budgets` and `logistic`: a batch of the LR oracle on the disk, and a learner by queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.accuracy.score import Json, short
from partita.local import BudgetFile, BudgetMemory, LROracle, RandomizedResponse, SQOracle, learn_logistic

BATCH_SECONDS = 1.0
BATCHES = 5
ROUNDS = 20
WEIGHTS = (3.2, -2.1, 2.6, 0.8, -2.8)


def budgets(quick: bool) -> Iterator[Json]:
    """Seconds for one batch: everybody charged durably, then everybody's randomized response."""
    people = 1_000 if quick else 1_000_000
    response = RandomizedResponse(size=2, epsilon=1)  # type: ignore[arg-type]
    with TemporaryDirectory() as folder, BudgetFile(Path(folder) / "budgets", people=people, cap=100) as book:
        oracle, everybody = LROracle(np.arange(people) % 2, book), np.arange(people)
        seconds = [timed(lambda: oracle.ask(everybody, response)) for _ in range(BATCHES)]
    yield {
        "row": "budgets",
        "people": people,
        "batches": BATCHES,
        "seconds": short(median(seconds)),
        "slowest": short(max(seconds)),
        "target": BATCH_SECONDS,
        "met": None if quick else median(seconds) <= BATCH_SECONDS,
    }


def logistic(quick: bool) -> Iterator[Json]:
    """Accuracy of weights from one bit of each person, against the weights that made the labels."""
    people = 20_000 if quick else 400_000
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (people, len(WEIGHTS)))
    labels = (rng.random(people) < 1 / (1 + np.exp(-features @ WEIGHTS))).astype(np.int64)
    rows = np.column_stack([features, labels])
    found = [accuracy(rows) for _ in range(1 if quick else 5)]
    yield {
        "row": "logistic",
        "n": people,
        "epsilon": 1,
        "features": len(WEIGHTS),
        "accuracy": short(float(np.mean(found))),
        "bayes": short(float(((features @ WEIGHTS > 0) == labels).mean())),
    }


def accuracy(rows: Any) -> float:
    oracle = SQOracle(LROracle(rows, BudgetMemory(people=len(rows), cap=1)), epsilon=1)
    group = len(rows) // ROUNDS // len(WEIGHTS)
    learned = learn_logistic(oracle, rounds=ROUNDS, tau=min(1.0, oracle.tau(group)))
    return float((learned.predict(rows[:, :-1]) == rows[:, -1]).mean())


def timed(work: Any) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
