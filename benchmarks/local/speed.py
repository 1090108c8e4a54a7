"""Rows `client-KIND`, `collect-KIND`, `projective`: reports in a second, against pure-ldp in the same run."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.local.peers import peer
from benchmarks.speed.clock import Work, rates
from benchmarks.speed.row import Row, Target
from partita.local import Frequency

SIZE = 1024
EPSILON = 1

CLIENT = {"response": 20, "unary": 8, "hadamard": 50}
COLLECT = {"response": 20, "unary": 3, "hadamard": 20}
PROJECTIVE = 1e6
"""Reports in a second."""

PEOPLE = {"response": 1_000_000, "unary": 20_000, "hadamard": 1_000_000, "projective": 1_000_000}
PEER_PEOPLE = {"response": 50_000, "unary": 2_000, "hadamard": 10_000}
"""So many take pure-ldp about a tenth of a second."""


def client(quick: bool, *, kind: Any) -> Row:
    """Reports made in a second: one call on a column, against one call for each person."""
    ours, theirs = _people(kind, quick)
    question, baseline = Frequency(SIZE, epsilon=EPSILON, kind=kind), peer(kind, SIZE, EPSILON)
    listed = theirs.tolist()
    return rates(
        quick,
        Work(f"randomize_many, {kind}", lambda: question.randomize_many(ours), len(ours)),
        Work("pure-ldp privatise", lambda: baseline.randomize(listed), len(listed)),
        target=Target("ratio", ">=", CLIENT[kind]),
        cells=SIZE,
        epsilon=EPSILON,
    )


def collect(quick: bool, *, kind: Any) -> Row:
    """Reports aggregated in a second, with the estimates of all cells at the end."""
    ours, theirs = _people(kind, quick)
    question, baseline = Frequency(SIZE, epsilon=EPSILON, kind=kind), peer(kind, SIZE, EPSILON)
    reports, others = question.randomize_many(ours), baseline.randomize(theirs.tolist())

    def estimated() -> object:
        aggregator = question.aggregator()
        aggregator.add_many(reports)
        return aggregator.estimate().values

    return rates(
        quick,
        Work(f"add_many and estimate, {kind}", estimated, len(ours)),
        Work("pure-ldp aggregate and estimate", lambda: baseline.collect(others, SIZE), len(others)),
        target=Target("ratio", ">=", COLLECT[kind]),
        cells=SIZE,
        epsilon=EPSILON,
    )


def projective(quick: bool) -> Row:
    """Projective geometry reports made in a second; the baseline is randomized response of ours."""
    cells = np.arange(10_000 if quick else PEOPLE["projective"]) % SIZE
    question = Frequency(SIZE, epsilon=EPSILON, kind="projective")
    simple = Frequency(SIZE, epsilon=EPSILON, kind="response")
    return rates(
        quick,
        Work("randomize_many, projective", lambda: question.randomize_many(cells), len(cells)),
        Work("randomize_many, response", lambda: simple.randomize_many(cells), len(cells)),
        target=Target("figure", ">=", PROJECTIVE),
        cells=SIZE,
        epsilon=EPSILON,
    )


def _people(kind: str, quick: bool) -> tuple[Any, Any]:
    counts = (200, 20) if quick else (PEOPLE[kind], PEER_PEOPLE[kind])
    ours, theirs = (np.arange(count) % SIZE for count in counts)
    return ours, theirs
