"""A whole release and its answers, against OpenDP's b-ary tree with its own least squares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import partita as pt
from benchmarks.accuracy import draws
from benchmarks.accuracy.draws import at_bits
from benchmarks.accuracy.peers import dense
from benchmarks.speed.clock import Work, times
from benchmarks.speed.row import Row, Target
from partita import Histogram

ROWS, RANGES, EPSILON, BRANCHING = 100_000, 2_000, 1, 16
TARGET = Target("ratio", "<=", 1 / 20)


def opendp_tree(quick: bool, *, bits: int) -> Row:
    """Histogram in, 2,000 range counts out: `Intervals` against OpenDP, lognormal data in 2^bits cells."""
    bits = 10 if quick else bits
    size = 2**bits
    data, (lows, highs) = lognormal(size), ranges(size)
    ours, tree = pt.Intervals(size=size, epsilon=EPSILON), OpenDPTree(size, EPSILON)
    counts = dense(data).astype(np.int32)
    return times(
        quick,
        Work("Intervals, release and answers", lambda: ours.release(data).counts(lows, highs)),
        Work(f"OpenDP b-ary tree, b={BRANCHING}", lambda: tree.answers(counts, lows, highs)),
        target=TARGET,
        size=f"2^{bits}",
        epsilon=EPSILON,
        rows=data.total,
        ranges=lows.size,
    )


@dataclass(frozen=True)
class OpenDPTree:
    """OpenDP's tree over a dense histogram: noisy levels, then cells that agree with all of them.

    Where in doubt it has the advantage: dense counts that lie ready, the narrow type, one tree made
    beforehand, and answers by one cumulative sum.
    """

    size: int
    epsilon: float

    @cached_property
    def levels(self) -> Any:
        """The counts of all nodes."""
        dp = opendp()
        space = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.l1_distance(T=dp.i32)
        return dp.t.make_b_ary_tree(*space, leaf_count=self.size, branching_factor=BRANCHING)

    @property
    def scale(self) -> float:
        """The noise scale that makes them epsilon-private."""
        return float(self.levels.map(1) / self.epsilon)

    @cached_property
    def measurement(self) -> Any:
        """The levels with exact integer noise of that scale."""
        return self.levels >> opendp().m.then_laplace(scale=self.scale)

    @cached_property
    def consistency(self) -> Any:
        """OpenDP's least squares over the levels."""
        return opendp().t.make_consistent_b_ary_tree(branching_factor=BRANCHING)

    def answers(self, counts: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
        """One fresh release and the counts of the ranges low..high."""
        cells = np.array(self.consistency(self.measurement(counts)))[: self.size]
        before = np.concatenate([[0.0], np.cumsum(cells)])
        return np.asarray(before[highs.astype(np.int64) + 1] - before[lows.astype(np.int64)])


def opendp() -> Any:
    """The library, with the features that it asks for."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def lognormal(size: int) -> Histogram:
    """100,000 values of the lognormal family, squeezed into the cells."""
    rng = np.random.default_rng(size)
    values = at_bits(draws.lognormal(ROWS, rng), (size - 1).bit_length(), rng)
    return Histogram.from_cells(values, size=size)


def ranges(size: int) -> tuple[np.ndarray, np.ndarray]:
    """2,000 ranges with uniform ends."""
    ends = np.sort(np.random.default_rng(size).integers(0, size, (RANGES, 2), dtype=np.uint64), axis=1)
    return ends[:, 0], ends[:, 1]
