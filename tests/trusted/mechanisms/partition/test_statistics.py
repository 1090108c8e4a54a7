"""Promises of the cut on fresh noise. Error probability of this file: 17 comparisons of 1e-8 each, 1.7e-7."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from partita import Cut, Histogram, Partition
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.laws import Words
from partita.trusted.noise.system import Path, SystemNoise

pytestmark = pytest.mark.statistics

BETA = Fraction(1, 20)
RUNS = 400
SURE = 1e-8


def _set(size: int, n: int) -> Histogram:
    """n distinct cells: a clump, and the rest spread out."""
    random = Random(f"{size}, {n}")
    cells = {size // 2 + i for i in range(n // 2)}
    while len(cells) < n:
        cells.add(random.randrange(size))
    return Histogram.from_cells(np.array(sorted(cells), dtype=np.uint64), size=size)


def _cuts(partition: Partition, data: Histogram) -> list[tuple[Cut, NDArray[np.int64]]]:
    noise = SystemNoise(Words, path="numpy")
    cuts = [partition.cut(data, noise=noise) for _ in range(RUNS)]
    return [(cut, data.weigh(cut)) for cut in cuts]


def _consistent(failures: int, rate: float) -> bool:
    """Whether so many failures among all runs are not too many for a failure rate; wrong with 1e-8."""
    return bool(stats.binom.sf(failures - 1, RUNS, rate) > SURE)


@pytest.mark.parametrize(("size", "n"), [(2**10, 100), (2**32, 300), (2**64, 1000)])
def test_the_paper_mode_keeps_theorem_2_1(size: int, n: int) -> None:
    """More than n+1 segments, or a weight above 5 (ln D + ln 1/beta) / epsilon, has rate at most beta."""
    partition = Partition(size=size, epsilon=1, beta=BETA, law="laplace", threshold="paper")
    heaviest = 5 * math.log(size / BETA)

    failures = sum(
        len(cut) > n + 1 or int(weights.max()) > heaviest for cut, weights in _cuts(partition, _set(size, n))
    )

    assert _consistent(failures, float(BETA))


@pytest.mark.parametrize("law", ["geometric", "laplace"])
@pytest.mark.parametrize(("size", "n"), [(2**10, 100), (2**32, 300), (2**64, 1000)])
def test_the_default_mode_keeps_its_promises(size: int, n: int, law: Law) -> None:
    """An empty segment before the last, and a weight above the bound, each have rate at most beta / 2."""
    partition = Partition(size=size, epsilon=1, beta=BETA, law=law)
    cuts = _cuts(partition, _set(size, n))

    empty = sum(bool((weights[:-1] == 0).any()) for _, weights in cuts)
    heavy = sum(int(weights.max()) > partition.weight_bound(n) for _, weights in cuts)

    assert _consistent(empty, float(BETA / 2))
    assert _consistent(heavy, float(BETA / 2))


def _segment_probability(levels: list[int], sealed: bool, a: float) -> float:
    """P[no seal before the last cell, and one there if sealed], by a long sum over geometric N_T."""
    total = 0.0
    for t in range(60):
        seals = [a ** max(0, level + t + 1) for level in levels]
        total += (1 - a) * a**t * math.prod(1 - p for p in seals[:-1]) * (seals[-1] if sealed else 1.0)
    return total


def _edges_law(counts: tuple[int, ...], threshold: int, a: float) -> dict[tuple[int, ...], float]:
    """The probability of every cut of the cells, position by position."""
    found = {}
    for mask in range(2 ** (len(counts) - 1)):
        edges = [i for i in range(len(counts) - 1) if mask >> i & 1] + [len(counts) - 1]
        mass, start = 1.0, 0
        for edge in edges:
            levels = [threshold - sum(counts[start : i + 1]) for i in range(start, edge + 1)]
            mass *= _segment_probability(levels, edge < len(counts) - 1, a)
            start = edge + 1
        found[tuple(edges)] = mass
    return found


@pytest.mark.parametrize("path", ["numpy", pytest.param("compiled", marks=pytest.mark.sample)])
def test_tiny_cuts_have_the_exact_law(path: Path) -> None:
    """On four cells 8,000 fresh cuts fit the exact law; chi-square, wrong with 1e-8."""
    counts, runs = (1, 0, 2, 1), 8_000
    partition = Partition(size=4, epsilon=1, threshold=1)
    noise, data = SystemNoise(Words, path=path), Histogram.dense(counts)
    expected = _edges_law(counts, 1, math.exp(-1))

    seen = [tuple(partition.cut(data, noise=noise).edges.tolist()) for _ in range(runs)]

    observed = [seen.count(edges) for edges in expected]
    assert sum(observed) == runs
    assert stats.chisquare(observed, [runs * mass for mass in expected.values()]).pvalue > SURE
