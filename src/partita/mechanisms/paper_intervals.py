"""Interval counts over a huge universe as in the paper [DNRR15, section 3.2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from partita.exact import failure
from partita.guarantee import Guarantee, Neighbors, positive_epsilon
from partita.histogram import Histogram
from partita.mechanisms.checks import fitting
from partita.mechanisms.partition import Partition
from partita.mechanisms.tree import Tree
from partita.noise.protocol import Noise
from partita.noise.system import SYSTEM
from partita.releases.intervals import IntervalRelease

__all__ = ["PaperIntervals"]


@final
@dataclass(frozen=True, init=False, kw_only=True)
class PaperIntervals:
    """Publish once; answer every interval over 0, ..., size-1, size up to 2^64.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DNRR15, Thm 3.2]
    Error:     O((log size + log^2 n log 1/beta) / epsilon), all intervals at once, for sets.
    Proof:     docs/proofs/paper_intervals.md (integer noise, exact number of levels)

    Faithful to the paper on purpose: half of epsilon on a partition with its threshold, half on a
    binary tree over the segments, minimal covers.

    >>> PaperIntervals(size=2**64, epsilon=1).guarantee.epsilon
    Fraction(1, 1)
    """

    partition: Partition

    def __init__(
        self,
        *,
        size: int,
        epsilon: object,
        beta: object = "0.05",
        neighbors: Neighbors = "add-remove",
        contributions: int = 1,
    ) -> None:
        partition = Partition(
            size=size,
            epsilon=positive_epsilon(epsilon) / 2,
            beta=failure(beta) / 2,
            law="laplace",
            threshold="paper",
            neighbors=neighbors,
            contributions=contributions,
        )
        object.__setattr__(self, "partition", partition)

    @property
    def guarantee(self) -> Guarantee:
        """Both halves together."""
        return self.partition.guarantee + self.tree(segments=1).guarantee

    def tree(self, *, segments: int) -> Tree:
        """The tree over that many released segments."""
        return Tree(
            size=segments,
            epsilon=self.partition.epsilon,
            neighbors=self.partition.neighbors,
            contributions=self.partition.contributions,
        )

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> IntervalRelease:
        """Cut, then count the segments in a tree."""
        histogram = fitting(data, self.partition.size, self.partition.contributions)
        session = noise.session()
        cut = self.partition.cut(histogram, noise=session)
        segments = Histogram.dense(histogram.weigh(cut), contributions=histogram.contributions)
        tree = self.tree(segments=len(cut)).release(segments, noise=session)
        return IntervalRelease(cut=cut, tree=tree, guarantee=self.guarantee if noise.secure else None)
