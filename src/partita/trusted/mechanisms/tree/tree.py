"""The tree mechanism: noisy counts of a hierarchy of intervals [SU, Thm 2.5; DNPR10]."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Final, final

import numpy as np

from partita.errors.checks import check, check_bool
from partita.numbers import Converted, freeze, frozen, integer, parameter, rational
from partita.public.axis.base.tree_cover import Hierarchy
from partita.public.axis.curve.curve import Ints, UInts
from partita.public.axis.tree.tree import TreeRelease
from partita.public.bounds.query_error import independent_error, spread_ranges, square_root_error, tree_error
from partita.public.bounds.tails import laplace_variance
from partita.trusted.mechanisms.base.base import Mechanism
from partita.trusted.mechanisms.base.checks import check_scale, fitting
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts

_LARGEST_SIZE: Final = 2**30


@final
@frozen(kw_only=True)
class Tree(Mechanism):
    """Publish once; answer every interval over 0, ..., size-1 from a tree of noisy counts.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [SU, Thm 2.5]
    Error:     O(log^1.5 size / epsilon) for an interval; noise scale levels / epsilon.
    Proof:     docs/proofs/tree.md (integer noise, exact number of levels, weighted levels)

    Without the `root` the level below it is the last, and nothing is spent on the total. `weights`
    are the levels' shares of epsilon, leaves first, up to a common factor; all the same by default.

    >>> Tree(size=8, epsilon=1).scale
    Fraction(4, 1)
    >>> Tree(size=8, epsilon=1, branching=4, root=False, weights=(1, 2)).scales
    (Fraction(3, 1), Fraction(3, 2))
    """

    name: ClassVar[str] = "tree"

    size: int
    branching: int = 2
    root: bool = True
    weights: Converted[Sequence[object] | None, tuple[Fraction, ...]] = parameter(default=None)

    def _convert(self) -> None:
        super()._convert()
        freeze(
            self,
            size=_size(self.size),
            branching=integer(self.branching, "branching", low=2, high=_LARGEST_SIZE),
            root=check_bool(self.root, "root"),
        )
        freeze(self, weights=_weights(self.weights, self.shape.levels))

    def _check(self) -> None:
        for scale in self.scales:
            check_scale(scale, self.epsilon)

    @cached_property
    def shape(self) -> Hierarchy:
        """Which cells the nodes stand for."""
        return Hierarchy.of(size=self.size, branching=self.branching, root=self.root)

    @property
    def widths(self) -> tuple[int, ...]:
        """Cells per node on each level, leaves first; a root covers everything."""
        return self.shape.widths

    @cached_property
    def scales(self) -> tuple[Fraction, ...]:
        """Every row lies in one node of each level, and the levels share epsilon by their weights."""
        total = sum(self.weights)
        return tuple(total / (weight * self.rate) for weight in self.weights)

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

        (15) of [SU] adds up the largest noise of a node; the square-root version lets signs cancel.
        """
        terms, intervals = sum(self.shape.most), self.size * (self.size + 1) // 2
        return min(
            tree_error(self.scale, self.predicted_numbers(0), terms),
            square_root_error(self.scale, intervals, terms),
        )

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random range; the number of rows does not matter.

        Exact for few cells, else over some thousands of ranges that are spread evenly.
        """
        numbers = self.shape.numbers(*spread_ranges(self.size))
        variances = (float(n.mean()) * laplace_variance(s) for n, s in zip(numbers, self.scales, strict=True))
        return float(np.sqrt(sum(variances)))

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return sum(self.shape.nodes)

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> TreeRelease:
        """Count every node and add noise."""
        counts = fitting(data, self.size, self.contributions)
        session = noise.session()
        nodes = counts.folded(partial(_node_counts, self.size, self.widths))
        exact = np.split(nodes, np.cumsum(self.shape.nodes)[:-1])
        levels = [session.add(level, scale) for level, scale in zip(exact, self.scales, strict=True)]
        return TreeRelease(
            levels=tuple(levels),
            size=self.size,
            branching=self.branching,
            scales=self.scales,
            guarantee=self.guarantee if session.secure else None,
        )


def _node_counts(size: int, widths: tuple[int, ...], cells: UInts, counts: Ints) -> Ints:
    """The exact count of each node, level by level: nodes of a level are as many cells wide."""
    return np.concatenate([_level_counts(size, width, cells, counts) for width in widths])


def _level_counts(size: int, width: int, cells: UInts, counts: Ints) -> Ints:
    nodes = np.zeros(-(-size // width), dtype=np.int64)
    np.add.at(nodes, (cells // np.uint64(width)).astype(np.int64), counts)
    return nodes


def _size(size: object) -> int:
    exact = integer(size, "size", low=1)
    rule = f"must be at most {_LARGEST_SIZE} for a plain tree"
    check(exact <= _LARGEST_SIZE, "size", rule, given=exact, fix="use a Partition first")
    return exact


def _weights(weights: object, levels: int) -> tuple[Fraction, ...]:
    """One positive weight for each level."""
    if weights is None:
        return (Fraction(1),) * levels
    given = weights if isinstance(weights, (list, tuple)) else ()
    exact = tuple(rational(weight, "weights") for weight in given)
    rule, fix = f"must be {levels} positive numbers, one for each level", "leave them out for equal shares"
    check(len(exact) == levels and min(exact) > 0, "weights", rule, given=weights, fix=fix)
    return exact
