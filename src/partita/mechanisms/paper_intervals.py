"""Interval counts over a huge universe as in the paper [DNRR15, section 3.2]."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, final

from partita.exact import failure, freeze, integer
from partita.guarantee import Guarantee, Neighbors, Unit, positive_epsilon, rows_changed, unit_of
from partita.histogram import Histogram
from partita.mechanisms.checks import check_scale, fitting
from partita.mechanisms.partition import Partition
from partita.mechanisms.tree import Tree
from partita.noise.protocol import Noise
from partita.noise.system import SYSTEM
from partita.releases.intervals import IntervalRelease

__all__ = ["PaperIntervals"]

_MOST_LEVELS: Final = 31
"""Of a tree over the segments: a tree has at most 2^30 leaves."""


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

    size: int
    epsilon: Fraction
    beta: Fraction
    neighbors: Neighbors
    contributions: int
    unit: Unit

    def __init__(
        self,
        *,
        size: int,
        epsilon: object,
        beta: object = "0.05",
        neighbors: Neighbors = "add-remove",
        contributions: int = 1,
        unit: Unit | None = None,
    ) -> None:
        rows_changed(neighbors, contributions)
        freeze(
            self,
            size=integer(size, "size", low=1, high=2**64),
            epsilon=positive_epsilon(epsilon),
            beta=failure(beta),
            neighbors=neighbors,
            contributions=int(contributions),
            unit=unit_of(unit, contributions),
        )
        for levels in (1, _MOST_LEVELS):
            check_scale(2 * levels * rows_changed(neighbors, contributions) / self.epsilon, self.epsilon)

    @cached_property
    def partition(self) -> Partition:
        """Figure 1 with half of epsilon and half of beta."""
        return Partition(
            size=self.size,
            epsilon=self.epsilon / 2,
            beta=self.beta / 2,
            law="laplace",
            threshold="paper",
            neighbors=self.neighbors,
            contributions=self.contributions,
            unit=self.unit,
        )

    def tree(self, *, segments: int) -> Tree:
        """The tree over that many released segments, with the other half of epsilon."""
        return Tree(
            size=segments,
            epsilon=self.epsilon / 2,
            neighbors=self.neighbors,
            contributions=self.contributions,
            unit=self.unit,
        )

    @property
    def guarantee(self) -> Guarantee:
        """Both halves together."""
        return self.partition.guarantee + self.tree(segments=1).guarantee

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> IntervalRelease:
        """Cut, then count the segments in a tree."""
        histogram = fitting(data, self.size, self.contributions)
        session = noise.session()
        cut = self.partition.cut(histogram, noise=session)
        segments = Histogram.dense(histogram.weigh(cut), contributions=histogram.contributions)
        tree = self.tree(segments=len(cut)).release(segments, noise=session)
        return IntervalRelease(cut=cut, tree=tree, guarantee=self.guarantee if session.secure else None)
