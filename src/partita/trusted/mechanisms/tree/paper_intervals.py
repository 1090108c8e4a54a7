"""Interval counts over a huge universe as in the paper [DNRR15, section 3.2]."""

from __future__ import annotations

import math
from functools import cached_property
from typing import ClassVar, Final, final

from partita.guarantee.guarantee import Guarantee
from partita.numbers import Exact, failure, freeze, frozen, integer, parameter
from partita.public.axis.tree.paper_intervals import PaperIntervalsRelease
from partita.trusted.mechanisms.base.base import Mechanism
from partita.trusted.mechanisms.base.checks import check_scale, fitting
from partita.trusted.mechanisms.base.part_noise import PartNoise
from partita.trusted.mechanisms.partition.partition import Partition
from partita.trusted.mechanisms.tree.tree import Tree
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts, Histogram

_MOST_LEVELS: Final = 31
_MOST_SEGMENTS: Final = 2**30
"""Of a tree over the segments: it has at most so many leaves, and then so many levels."""


@final
@frozen(kw_only=True)
class PaperIntervals(Mechanism):
    """A private partition, counted by a binary tree as in the paper: every interval, size up to 2^64.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DNRR15, Thm 3.2]
    Error:     O((log size + log^2 n log 1/beta) / epsilon), all intervals at once, for sets.
    Proof:     docs/proofs/paper_intervals.md (integer noise, exact number of levels)

    Faithful to the paper on purpose: half of epsilon on a partition with its threshold, half on a
    binary tree over the segments, minimal covers.

    >>> PaperIntervals(size=2**64, epsilon=1).guarantee.epsilon
    Fraction(1, 1)
    """

    name: ClassVar[str] = "intervals-paper"

    size: int
    beta: Exact = parameter(default="0.05")

    def _convert(self) -> None:
        super()._convert()
        freeze(self, size=integer(self.size, "size", low=1, high=2**64), beta=failure(self.beta))

    def _check(self) -> None:
        for levels in (1, _MOST_LEVELS):
            check_scale(2 * levels / self.rate, self.epsilon)

    @cached_property
    def partition(self) -> Partition:
        """Figure 1 with half of epsilon and half of beta."""
        return Partition(
            size=self.size,
            epsilon=self.epsilon / 2,
            beta=self.beta / 2,
            law="laplace",
            threshold="paper",
            **self.protected,
        )

    def tree(self, *, segments: int) -> Tree:
        """The tree over that many released segments, with the other half of epsilon."""
        return Tree(size=segments, epsilon=self.epsilon / 2, **self.protected)

    @property
    def guarantee(self) -> Guarantee:
        """Both halves together."""
        return Guarantee(epsilon=self.partition.epsilon + self.tree(segments=1).epsilon, **self.protected)

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range, if that many rows lie in cells of their own.

        To the noise of a tree over the segments comes what the two at the ends hold outside of the
        range: a uniform share of each. Values that many rows have in common make it worse.
        """
        rows = integer(rows, "rows", low=0)
        segments = self._segments(rows)
        noise = self.tree(segments=segments).predicted_error(rows)
        weight = rows / segments * (1 - segments / self.size)
        return math.hypot(noise, weight * math.sqrt(2 / 3 + 1 / 2))

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds: an edge for each segment, and the nodes of the tree."""
        segments = self._segments(integer(rows, "rows", low=0))
        return segments + self.tree(segments=segments).predicted_numbers(rows)

    def _segments(self, rows: int) -> int:
        """How many segments there are if rows lie evenly: about `size / rows` cells for each.

        So many fresh noises meet each count, and the largest of them seals a segment by
        scale ln(size / rows) before its weight reaches the threshold.
        """
        early = float(self.partition.scale) * math.log(max(1.0, self.size / max(rows, 1)))
        weight = max(1.0, self.partition.threshold - early)
        return min(1 + int(rows / weight), self.size, _MOST_SEGMENTS)

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> PaperIntervalsRelease:
        """Cut, then count the segments in a tree."""
        counts = fitting(data, self.size, self.contributions)
        session = noise.session()
        part = PartNoise(session)
        cut = self.partition.cut(counts, noise=part)
        segments = Histogram.dense(counts.weigh(cut), contributions=counts.contributions)
        tree = self.tree(segments=len(cut)).release(segments, noise=part)
        return PaperIntervalsRelease(cut=cut, tree=tree, guarantee=self.guarantee if session.secure else None)
