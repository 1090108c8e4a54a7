"""Published mechanisms that others are measured against.

Written for the benchmark, with float noise: good baselines, and no protection for anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log
from typing import Protocol

import numpy as np

from benchmarks.accuracy.queries import Counts, Queries
from partita import Histogram
from partita.arrays import Floats, UInts
from partita.public.axis.curve import Curve

Generator = np.random.Generator


def uniform(histogram: Histogram, epsilon: str, rng: Generator | None = None) -> Counts:
    """One noisy total, spread evenly."""
    total = histogram.total + np.random.default_rng(rng).laplace(0, 1 / float(epsilon))
    return Curve(np.array([histogram.size - 1], np.uint64), np.array([total])).between


def identity(histogram: Histogram, epsilon: str, rng: Generator | None = None) -> Counts:
    """Every cell with its own noise."""
    noise = np.random.default_rng(rng).laplace(0, 1 / float(epsilon), histogram.size)
    return cells(dense(histogram) + noise)


def hb(histogram: Histogram, epsilon: str, rng: Generator | None = None) -> Counts:
    """Hb: a tree without root, the paper's branching, equal shares, least squares."""
    return cells(tree_estimate(dense(histogram), branching(histogram.size), float(epsilon), rng))


def tree_estimate(counts: Floats, b: int, epsilon: float, rng: Generator | None = None) -> Floats:
    """Least-squares cells from a b-ary tree, every level but the root measured with an equal share."""
    levels = sums_by_level(counts, b)
    height, rng = max(len(levels) - 1, 1), np.random.default_rng(rng)
    noisy = [level + rng.laplace(0, height / epsilon, level.size) for level in levels[:height]]
    return consistent(noisy, counts.size, b)


def sums_by_level(counts: Floats, b: int) -> list[Floats]:
    """The cells, sums of b of them, and so on up to the root."""
    levels = [counts]
    while levels[-1].size > 1:
        levels.append(groups(levels[-1], b).sum(axis=1))
    return levels


def groups(values: Floats, b: int, fill: float = 0.0) -> Floats:
    """Values in rows of b; the last row is filled up."""
    padded = np.full(-(-values.size // b) * b, fill)
    padded[: values.size] = values
    return padded.reshape(-1, b)


def consistent(noisy: list[Floats], size: int, b: int) -> Floats:
    """Least squares in two passes [HRMS10]: equal noise on every level; absent cells are exactly zero."""
    values, variances, sums, spread = [noisy[0]], [np.ones(size)], [], []
    for level in noisy[1:]:
        sums.append(groups(values[-1], b).sum(axis=1))
        spread.append(groups(variances[-1], b).sum(axis=1))
        variances.append(spread[-1] / (1 + spread[-1]))
        values.append(sums[-1] + variances[-1] * (level - sums[-1]))
    final = values[-1]
    for below in range(len(noisy) - 2, -1, -1):
        short = np.repeat((final - sums[below]) / spread[below], b)[: values[below].size]
        final = values[below] + variances[below] * short
    return final


def branching(size: int) -> int:
    """The branching with the least mean variance of a range [QYL13, equation 3]."""

    def variance(b: int) -> float:
        h = ceil(log(size) / log(b) - 1e-9)
        return float((b - 1) * h**3 - 2 * (b + 1) * h * h / 3)

    return min(range(2, min(max(size, 3), 4096)), key=variance)


def privtree(histogram: Histogram, epsilon: str, rng: Generator | None = None) -> Counts:
    """PrivTree with fan-out two: half of epsilon on the tree, half on the leaves [ZXX16]."""
    rng, half = np.random.default_rng(rng), float(epsilon) / 2
    ends = np.sort(np.concatenate(list(leaf_ends(histogram, half, rng))))
    counts = np.diff(Queries.prefixes(ends).truth(histogram), prepend=0.0)
    return Curve(ends, counts + rng.laplace(0, 1 / half, counts.size)).between


def leaf_ends(histogram: Histogram, epsilon: float, rng: Generator) -> Iterator[UInts]:
    """The last cell of each leaf, level by level: lambda = 3/epsilon, delta = lambda ln 2, theta = 0."""
    scale, last = 3 / epsilon, np.uint64(histogram.size - 1)
    bits = (histogram.size - 1).bit_length()
    starts = np.zeros(1, np.uint64)
    for depth in range(bits + 1):
        width_less_one = np.uint64(2 ** (bits - depth) - 1)
        ends = np.minimum(starts + width_less_one, last)
        weights = Queries(starts, ends).truth(histogram)
        biased = np.maximum(weights - depth * scale * log(2), -scale * log(2))
        split = (biased + rng.laplace(0, scale, starts.size) > 0) & (depth < bits)
        yield ends[~split]
        middle = starts[split] + (width_less_one >> np.uint64(1)) + np.uint64(1)
        starts = np.concatenate([starts[split], middle[middle <= last]])


def dense(histogram: Histogram) -> Floats:
    """One number for each cell."""
    counts = np.zeros(histogram.size)
    counts[histogram.cells.astype(np.int64)] = histogram.counts
    return counts


def cells(estimates: Floats) -> Counts:
    """Answers from one estimate for each cell."""
    return Curve(np.arange(estimates.size, dtype=np.uint64), estimates).between


class Peer(Protocol):
    """A method whose noise can be repeated."""

    def __call__(self, histogram: Histogram, epsilon: str, rng: Generator | None = None) -> Counts: ...


PEERS: dict[str, Peer] = {"Identity": identity, "Hb": hb, "PrivTree": privtree}
ANCHORED: dict[str, Peer] = {"Uniform": uniform, **PEERS}
