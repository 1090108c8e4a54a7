"""Data that break mechanisms: answers stay finite, and as good as anybody's.

Sane means: every answer is finite and not negative, and on each list of questions the mean error is
at most three times that of the best peer, or of the noise floor where that is more. The floor is the
error of one count that was given a quarter of epsilon: nobody's answers to all questions are better
on every kind of data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np

from benchmarks.accuracy.draws import QUERIES, Generator, lognormal, three_kinds, uniform
from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.peers import ANCHORED, Peer
from benchmarks.accuracy.queries import Counts, Data, Method, Work, misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, short
from partita import Histogram, Points
from partita.arrays import Floats, UInts

EPSILONS = ("0.1", "1.0")
DENSE_PEERS = 2**16
"""The widest universe in which peers that hold every cell run."""
TIMES = 3
FLOOR = 4

Case = tuple[int, Callable[[Generator], UInts]]
"""The number of cells, and the values of all rows."""


def atom_among_few(size: int, rng: Generator) -> UInts:
    """Three rows of ten in one cell, the others sparse around it."""
    rows = rng.integers(0, size - 1, 100_000, dtype=np.uint64, endpoint=True)
    rows[:30_000] = size * 5 // 7
    return rows


def top_coded(size: int, rng: Generator) -> UInts:
    """A fifth of all rows in the last cell."""
    rows = np.minimum(lognormal(100_000, rng), np.uint64(size - 1))
    rows[:20_000] = size - 1
    return rows


def one_cell(size: int, rng: Generator) -> UInts:
    """Everybody in the same cell."""
    return np.full(100_000, size // 3, np.uint64)


def spread(n: int, size: int, rng: Generator) -> UInts:
    """n rows, all cells alike."""
    return rng.integers(0, size - 1, n, dtype=np.uint64, endpoint=True)


def high_atoms(rng: Generator) -> UInts:
    """Heavy values that floats cannot tell apart, above 2^53, in a sparse crowd."""
    rows = rng.integers(0, 2**64 - 1, 100_000, dtype=np.uint64, endpoint=True)
    rows[:60_000] = np.uint64(2**63) + rng.integers(0, 3, 60_000, dtype=np.uint64)
    return rows


def smooth(size: int, rng: Generator) -> UInts:
    """A dense bell: more than a hundred rows for each cell on average."""
    return np.clip(rng.normal(size / 2, size / 6, 2_000_000), 0, size - 1).astype(np.uint64)


def hundred(size: int, rng: Generator) -> UInts:
    """A hundred rows in a heap and around it."""
    return np.concatenate([np.full(60, size // 5, np.uint64), uniform(40, rng) % np.uint64(size)])


CASES: dict[str, Case] = {
    **{f"atom, 2^{b}": (2**b, partial(atom_among_few, 2**b)) for b in (12, 32)},
    **{f"top-coded, 2^{b}": (2**b, partial(top_coded, 2**b)) for b in (20, 32)},
    **{f"one cell, 2^{b}": (2**b, partial(one_cell, 2**b)) for b in (12, 32, 64)},
    **{f"nobody, 2^{b}": (2**b, partial(spread, 0, 2**b)) for b in (12, 64)},
    **{f"one person, 2^{b}": (2**b, partial(spread, 1, 2**b)) for b in (12, 64)},
    **{f"{size} cells": (size, partial(spread, 10_000, size)) for size in (1, 2, 3, 1_000, 65_537, 3**30)},
    "atoms above 2^53": (2**64, high_atoms),
    **{f"dense and smooth, 2^{b}": (2**b, partial(smooth, 2**b)) for b in (8, 12)},
    **{f"a hundred rows, 2^{b}": (2**b, partial(hundred, 2**b)) for b in (12, 32)},
}


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *key) for key in product(CASES, EPSILONS)]


def cell(plan: Plan, case: str, epsilon: str) -> Json:
    """Mean errors beside the best peer and the floor, and whether all of it is sane."""
    work = case_work(case, epsilon)
    return judged("breaking", plan.mechanism, work, able(work.data), plan.trials)


def judged(
    benchmark: str, mechanism: str, work: Work[Data], peers: Mapping[str, Method[Data]], trials: int
) -> Json:
    """A case measured against these peers."""
    checked, floor = Checked(mechanism), FLOOR / float(work.epsilon)
    found = misses(checked, work, trials)
    made: Json = {
        "row": benchmark,
        "dataset": work.dataset,
        "n": work.n,
        "epsilon": work.epsilon,
        "finite": checked.finite,
    }
    for query, best in best_peers(work, peers, trials).items():
        made[f"{query}_L1"], made[f"{query}_peer_L1"] = short(found[query].L1), short(best)
        made[f"{query}_ratio"] = short(found[query].L1 / max(best, floor))
    sane = checked.finite and all(made[f"{query}_ratio"] <= TIMES for query in work.queries)
    return {**made, "sane": sane}


class Checked:
    """A method of ours that remembers whether every answer was finite and not negative."""

    def __init__(self, name: str) -> None:
        self.method, self.finite = Ours(name), True

    def __call__(self, data: Histogram | Points, epsilon: str) -> Counts:
        counts = self.method(data, epsilon)

        def watched(lows: UInts, highs: UInts) -> Floats:
            found = counts(lows, highs)
            self.finite &= bool(np.isfinite(found).all() and (found >= -1e-6).all())
            return found

        return watched


def able(histogram: Histogram) -> Mapping[str, Peer]:
    """The peers that can run."""
    return ANCHORED if histogram.size <= DENSE_PEERS else {name: ANCHORED[name] for name in SPARSE}


SPARSE = ("Uniform", "PrivTree")


def best_peers(work: Work[Data], peers: Mapping[str, Method[Data]], trials: int) -> dict[str, float]:
    """The least mean error among the peers, for each list of questions."""
    found = [misses(peer, work, trials) for peer in peers.values()]
    return {query: min(one[query].L1 for one in found) for query in work.queries}


def case_work(case: str, epsilon: str) -> Work[Histogram]:
    """A case with its questions: uniform ends, ends at data values, prefixes up to data values."""
    (size, draw), rng = CASES[case], np.random.default_rng(list(CASES).index(case))
    rows = draw(rng)
    asked = three_kinds(rows if rows.size else spread(QUERIES, size, rng), size, rng)
    return Work(case, rows.size, epsilon, Histogram.from_cells(rows, size=size), asked)


def summary(rows: list[Json]) -> Iterator[Json]:
    """How many cases are sane, and which are not."""
    wrong = [f"{row['dataset']} epsilon={row['epsilon']}{beyond(row)}" for row in rows if not row["sane"]]
    yield {
        "row": rows[0]["row"],
        "total": "sane",
        "cells": len(rows),
        "sane": len(rows) - len(wrong),
        "not_sane": wrong,
        "target": f"all, within {TIMES} times the best peer or the floor",
        "met": not wrong,
    }


def beyond(row: Json) -> str:
    """The lists of questions that are too far off, and by what ratio."""
    far = {key: ratio for key, ratio in row.items() if key.endswith("_ratio") and ratio > TIMES}
    return "".join(f" {key.removesuffix('_ratio')}:{ratio:.3g}" for key, ratio in far.items())


BREAKING = Row(cells, summary)
