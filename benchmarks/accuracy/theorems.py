"""`python -m benchmarks.accuracy.theorems`: errors of the papers' own versions, beside the printed bounds.

Where a paper prints a constant it is taken; where it prints O(), the constants are those that its proof gives
with Corollary 12.3 of [DR14] and a union bound. A bound that may fail with probability beta stands beside the
error that all but beta of the releases keep within; `failed` is the share of releases beyond it. epsilon
is 1 and beta 0.05. Data are drawn from seeds 0, 1, ...; noise is fresh.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from math import log, log2, sqrt

import numpy as np

from benchmarks import machine
from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.table import table
from benchmarks.streams.packing import largest_error, least_error
from partita.arrays import Floats, Ints
from partita.local import BudgetMemory, LROracle, SQOracle
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.mechanisms.tree import PaperIntervals
from partita.trusted.secret import Histogram
from partita.trusted.streams.pan_private import PanPrivateCounter
from partita.trusted.streams.sparse import SparseCounter
from partita.trusted.streams.tree_counter import TreeCounter

BETA = 0.05

Draw = Callable[[np.random.Generator], float]


def sum_bound(terms: float, scale: float, beta: float) -> float:
    """Corollary 12.3 for so many Laplace noises of one scale: |Y| exceeds it with chance beta at most."""
    return max(sqrt(terms) * scale, scale * sqrt(log(2 / beta))) * sqrt(8 * log(2 / beta))


def segments_bound(size: int, epsilon: float, beta: float) -> float:
    """Theorem 2.1: no segment weighs more."""
    return 5 * log(size / beta) / epsilon


def heaviest(size: int, rows: int) -> tuple[str, float, Draw]:
    """Figure 1 of [DNRR15], on a random set."""
    partition = Partition(size=size, epsilon=1, beta=BETA, law="laplace", threshold="paper")

    def draw(random: np.random.Generator) -> float:
        people = _people_at(_some(size, rows, random), size)
        return float(max(people.weigh(partition.cut(people))))

    return (
        f"Theorem 2.1, heaviest segment, D = 2^{log2(size):.0f}, n = {rows}",
        segments_bound(size, 1, BETA),
        draw,
    )


def interval(size: int, rows: int) -> tuple[str, float, Draw]:
    """Theorem 3.2 by its proof: two segments at the ends, and 2 log n noises for each of n^2 unions."""
    mechanism, levels = PaperIntervals(size=size, epsilon=1, beta=BETA), log2(rows)
    noise = sum_bound(2 * levels, 2 * levels, BETA / 2 / rows**2)
    ends = 2 * segments_bound(size, 1 / 2, BETA / 2)

    def draw(random: np.random.Generator) -> float:
        cells = _some(size, rows, random)
        release = mechanism.release(_people_at(cells, size))
        pairs = np.sort(random.integers(0, size, (1000, 2), dtype=np.uint64), axis=1)
        truth = np.searchsorted(cells, pairs[:, 1], side="right") - np.searchsorted(cells, pairs[:, 0])
        return float(np.abs(np.asarray(release.counts(pairs[:, 0], pairs[:, 1])) - truth).max())

    return f"Theorem 3.2, 1,000 intervals, D = 2^{log2(size):.0f}, n = {rows}", ends + noise, draw


def sparse(periods: int, events: int) -> tuple[str, float, Draw]:
    """Theorem 3.1 by its proof: the open segment, and log n noises for each of n outputs."""
    levels = log2(events)
    noise = sum_bound(levels, 2 * levels, BETA / 2 / events)

    def draw(random: np.random.Generator) -> float:
        bits = np.zeros(periods, dtype=np.int64)
        bits[_some(periods, events, random)] = 1
        counter = SparseCounter(epsilon=1, horizon=periods, constants="paper", weight=events, beta=BETA)
        return float(np.abs(counter.update_many(bits) - np.cumsum(bits)).max())

    bound = segments_bound(periods, 1 / 2, BETA / 2) + noise
    return f"Theorem 3.1, all outputs, D = 2^{log2(periods):.0f}, n = {events}", bound, draw


def one_output(periods: int) -> tuple[str, float, Draw]:
    """Corollary 12.4 for Figure 12.1, in the period whose sum has the most noises."""
    levels = log2(periods)

    def draw(random: np.random.Generator) -> float:
        counter = TreeCounter(epsilon=1, horizon=periods)
        counter.advance(periods - 1)
        return abs(counter.value)

    return f"Figure 12.1, one output, T = 2^{levels:.0f}", sum_bound(levels, levels, BETA), draw


def all_outputs(periods: int, name: str, make: Callable[[], PanPrivateCounter]) -> tuple[str, float, Draw]:
    """Theorem 12.5 by Corollary 12.4 and a union over all outputs."""
    levels = 1 + log2(periods)
    empty: Ints = np.zeros(periods, dtype=np.int64)

    def draw(random: np.random.Generator) -> float:
        outputs: Floats = make().update_many(empty)
        return float(np.abs(outputs).max())

    return f"{name}, all outputs, T = 2^{levels - 1:.0f}", sum_bound(levels, levels, BETA / periods), draw


def statistical_query(people: int) -> tuple[str, float, Draw]:
    """Definition 12.4: the tolerance of `SQOracle` by Hoeffding's bound."""
    tau = SQOracle(_people(np.zeros(1)), epsilon=1, beta="0.05").tau(people)

    def draw(random: np.random.Generator) -> float:
        oracle = SQOracle(_people(random.random(people)), epsilon=1, beta="0.05")
        return abs(oracle.ask_rows(lambda rows: rows, tau=tau * (1 + 1e-9)).value - 1 / 2)

    return f"Definition 12.4, a query to {people} people", tau, draw


def _people(rows: Floats) -> LROracle:
    return LROracle(rows, BudgetMemory(people=len(rows), cap=1))


def _people_at(cells: Ints, size: int) -> Histogram:
    """One row in each of these cells."""
    return Histogram(size, cells.astype(np.uint64), np.ones(cells.size, dtype=np.int64))


def _some(size: int, count: int, random: np.random.Generator) -> Ints:
    """Different cells, in order."""
    return np.sort(random.choice(size, count, replace=False))


def theorem_rows(trials: int) -> Iterator[Json]:
    """All rows."""
    rows = [
        heaviest(2**20, 10_000),
        sparse(2**16, 256),
        interval(2**20, 4096),
        one_output(2**16),
        all_outputs(2**10, "Theorem 12.5, Figure 12.2",
                    partial(PanPrivateCounter, epsilon=1, horizon=2**10, variant="book")),
        all_outputs(2**10, "Theorem 12.5, our default", partial(PanPrivateCounter, epsilon=1, horizon=2**10)),
        statistical_query(10_000),
    ]  # fmt: skip
    for name, bound, draw in rows:
        errors = [draw(np.random.default_rng(seed)) for seed in range(trials)]
        measured = float(np.quantile(errors, 1 - BETA))
        failed = float(np.mean(np.array(errors) > bound))
        yield {"theorem": name, "bound": short(bound), "measured": short(measured), "failed": failed}
    bound = least_error(2**12)
    measured = largest_error(partial(TreeCounter, epsilon=1, horizon=2**12), 2**12, trials)
    name = "Theorem 12.6, largest error in 2/3 of the runs, at least, T = 2^12"
    yield {"theorem": name, "bound": short(bound), "measured": short(measured), "failed": None}


if __name__ == "__main__":
    number = int(sys.argv[1]) if sys.argv[1:] else 300
    print(", ".join(f"{name} {fact}" for name, fact in machine.facts().items()), f"{number} releases\n")
    print(table(list(theorem_rows(number))))
