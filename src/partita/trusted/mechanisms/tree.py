"""The tree mechanism: noisy counts of a hierarchy of intervals [SU, Thm 2.5; DNPR10]; also after a cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Final, final

import numpy as np

from partita.arrays import Ints, UInts
from partita.errors import check, check_bool
from partita.guarantee import Guarantee
from partita.numbers import Converted, Exact, check_probability, freeze, frozen, integer, parameter, rational
from partita.public.axis.base import Hierarchy
from partita.public.axis.consistent import LevelSolver
from partita.public.axis.tree import PaperIntervalsRelease, TreeRelease
from partita.public.bounds import (
    independent_error,
    laplace_sum_reach,
    laplace_variance,
    spread_ranges,
    square_root_error,
    tree_error,
)
from partita.public.boxes.tree_of_trees import SegmentTree
from partita.trusted.mechanisms.base import (
    FixedCounts,
    Mechanism,
    PartNoise,
    check_fits,
    check_rows,
    check_scale,
)
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts, Histogram

_LARGEST_SIZE: Final = 2**30  # the counts of all nodes are in memory
_MOST_LEVELS: Final = 31
_MOST_SEGMENTS: Final = 2**30
"""Limits of a tree over segments: leaves, and levels."""


@final
@frozen(kw_only=True)
class Tree(FixedCounts):
    """Publish once; answer every interval over 0, ..., size-1 from a tree of noisy counts.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [SU, Thm 2.5]
    Error:     O(log^1.5 size / epsilon) for an interval; noise scale levels / epsilon.
    Proof:     docs/proofs/tree.md (integer noise, exact number of levels, weighted levels, consistency)

    Without the `root` the level below it is the last, and nothing is spent on the total. `weights`
    are the levels' shares of epsilon, leaves first, up to a common factor; all the same by default.
    Answers are `consistent`: they come from the least-squares solution of all nodes, and add up. If not,
    an answer is the sum of the fewest nodes, as in the notes.

    >>> Tree(size=8, epsilon=1).scale
    Fraction(4, 1)
    >>> Tree(size=8, epsilon=1, branching=4, root=False, weights=(1, 2)).scales
    (Fraction(3, 1), Fraction(3, 2))
    """

    name: ClassVar[str] = "tree"
    bound_of: ClassVar[str] = "any range between two values"

    size: int
    branching: int = 2
    root: bool = True
    weights: Converted[Sequence[object] | None, tuple[Fraction, ...]] = parameter(default=None)
    consistent: bool = True

    def _convert(self) -> None:
        super()._convert()
        branching = integer(self.branching, "branching", low=2, high=_LARGEST_SIZE)
        freeze(self, size=self._check_size(), branching=branching, root=check_bool(self.root, "root"))
        check_bool(self.consistent, "consistent")
        freeze(self, weights=_check_weights(self.weights, self.shape.levels))

    def _check(self) -> None:
        for scale in self.scales:
            check_scale(scale, self.epsilon)

    def _check_size(self) -> int:
        exact = integer(self.size, "size", low=1)
        rule = f"must be at most {_LARGEST_SIZE} for a plain tree"
        check(exact <= _LARGEST_SIZE, "size", rule, given=exact, fix="use a Partition first")
        return exact

    @cached_property
    def shape(self) -> Hierarchy:
        """The cells of each node."""
        return Hierarchy.of(size=self.size, branching=self.branching, root=self.root)

    @property
    def widths(self) -> tuple[int, ...]:
        """Cells per node on each level, leaves first; a root covers everything."""
        return self.shape.widths

    @cached_property
    def scales(self) -> tuple[Fraction, ...]:
        """The change of neighbours' counts over epsilon, shared out to the levels by their weights."""
        return tuple(self.changed / (weight * self.epsilon) for weight in self.weights)

    @property
    def sensitivity(self) -> Fraction:
        """A row is in one node of each level; a level of weight w counts w times."""
        return sum(self.weights, Fraction(0))

    @property
    def moved(self) -> Fraction:
        """A row leaves a node and enters another on each level that has two; the root keeps it."""
        levels = zip(self.weights, self.shape.nodes, strict=True)
        return 2 * sum((weight for weight, nodes in levels if nodes > 1), Fraction(0))

    @property
    def scale(self) -> Fraction:
        """The largest noise scale of a level, and the only one if the weights are all the same."""
        return max(self.scales)

    @property
    def node_error(self) -> float:
        """The expected largest error over all nodes is at most this [SU, (10)]."""
        return independent_error(self.scale, self.predicted_numbers(0))

    @property
    def largest_error(self) -> float:
        """The expected largest error over all intervals is at most this: the smaller of two bounds.

        (15) of [SU] adds up the largest noise of a node; the square-root version lets signs cancel. For
        consistent answers only the second holds, with the largest variance of a range in noises.
        """
        terms, intervals = sum(self.shape.most), self.size * (self.size + 1) // 2
        if self.consistent:
            noises = math.ceil(self._solver.largest_variance / laplace_variance(self.scale))
            return square_root_error(self.scale, intervals, min(noises, terms))
        signed = square_root_error(self.scale, intervals, terms)
        return min(tree_error(self.scale, self.predicted_numbers(0), terms), signed)

    @property
    def _solver(self) -> LevelSolver:
        return LevelSolver(self.shape, self.scales)

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random range; the number of rows does not matter.

        Exact for few cells, else over some thousands of ranges that are spread evenly.
        """
        ranges = spread_ranges(self.size)
        if self.consistent:
            return float(np.sqrt(self._solver.variances(*ranges).mean()))
        numbers = self.shape.numbers(*ranges)
        variances = (float(n.mean()) * laplace_variance(s) for n, s in zip(numbers, self.scales, strict=True))
        return float(np.sqrt(sum(variances)))

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return sum(self.shape.nodes)

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> TreeRelease:
        """Count every node and add noise."""
        counts = check_fits(data, self.size, self.contributions)
        session = noise.session()
        nodes = counts.folded(partial(_count_nodes, self.size, self.widths))
        exact = np.split(nodes, np.cumsum(self.shape.nodes)[:-1])
        levels = [session.add(level, scale) for level, scale in zip(exact, self.scales, strict=True)]
        return self._released(levels, self.guarantee if session.secure else None)

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no range is off by more, whatever the data: the release says the same."""
        empty = [np.broadcast_to(np.int64(0), nodes) for nodes in self.shape.nodes]
        return self._released(empty, None).error(float(check_probability(beta)))

    def _released(self, levels: Sequence[Ints], guarantee: Guarantee | None) -> TreeRelease:
        return TreeRelease(
            levels=tuple(levels),
            size=self.size,
            branching=self.branching,
            scales=self.scales,
            consistent=self.consistent,
            guarantee=guarantee,
        )


def _count_nodes(size: int, widths: tuple[int, ...], cells: UInts, counts: Ints) -> Ints:
    """The exact count of each node, level by level: all nodes of a level have the same width."""
    levels = [np.zeros(-(-size // width), dtype=np.int64) for width in widths]
    for nodes, width in zip(levels, widths, strict=True):
        np.add.at(nodes, (cells // np.uint64(width)).astype(np.int64), counts)
    return np.concatenate(levels)


def _check_weights(weights: object, levels: int) -> tuple[Fraction, ...]:
    """One positive weight for each level."""
    if weights is None:
        return (Fraction(1),) * levels
    given = weights if isinstance(weights, (list, tuple)) else ()
    exact = tuple(rational(weight, "weights") for weight in given)
    rule, fix = f"must be {levels} positive numbers, one for each level", "leave them out for equal shares"
    check(len(exact) == levels and min(exact) > 0, "weights", rule, given=weights, fix=fix)
    return exact


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
    bound_of: ClassVar[str] = "any range between two values, if no two rows share a cell"

    size: int
    beta: Exact = parameter(default="0.05")

    def _convert(self) -> None:
        super()._convert()
        freeze(self, size=integer(self.size, "size", low=1, high=2**64), beta=check_probability(self.beta))

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
        """The tree over that many released segments, with the other half of epsilon, row by row."""
        rows, epsilon = self.contributions, self.rate * self.contributions / 2
        return Tree(size=segments, epsilon=epsilon, contributions=rows, unit=self.unit, consistent=False)

    @property
    def guarantee(self) -> Guarantee:
        """Both halves together."""
        return Guarantee(epsilon=self.partition.epsilon + self.epsilon / 2, **self.protected)

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range, if that many rows lie in cells of their own.

        The error is the noise of a tree over the segments, plus the rows that the two segments at the ends
        hold outside of the range: a uniform share of each. Values with many rows make it worse.
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

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no range is off by more, for at most `rows` rows in cells of their own.

        A third of beta each for the number of segments, for the weight of all of them, and for the noise of
        all runs of segments; docs/proofs/paper_intervals.md, "The bound before any data".
        """
        number, share = check_rows(rows), check_probability(beta) / 3
        segments = min(self.partition.most_segments(number, share), _MOST_SEGMENTS)
        runs, terms = segments * (segments + 1) // 2, SegmentTree(segments).most
        noise = laplace_sum_reach(self.tree(segments=segments).scale, terms, float(share) / runs)
        return noise + 2 * self.partition.heaviest(segments, share)

    def _segments(self, rows: int) -> int:
        """How many segments there are if rows lie evenly: about `size / rows` cells for each row.

        Each count meets that many fresh noises, and the largest of them seals a segment by
        scale ln(size / rows) before its weight reaches the threshold.
        """
        early = float(self.partition.scale) * math.log(max(1.0, self.size / max(rows, 1)))
        weight = max(1.0, self.partition.threshold - early)
        return min(1 + int(rows / weight), self.size, _MOST_SEGMENTS)

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> PaperIntervalsRelease:
        """Cut, then count the segments by a tree."""
        counts = check_fits(data, self.size, self.contributions)
        session = noise.session()
        part = PartNoise(session)
        cut = self.partition.cut(counts, noise=part)
        segments = Histogram.dense(counts.weigh(cut), contributions=counts.contributions)
        tree = self.tree(segments=len(cut)).release(segments, noise=part)
        return PaperIntervalsRelease(cut=cut, tree=tree, guarantee=self.guarantee if session.secure else None)
