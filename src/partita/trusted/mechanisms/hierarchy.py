"""Noisy counts of every node of a hierarchy of labels, level by level [HRMS10]."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.errors import check
from partita.guarantee import Guarantee
from partita.numbers import Converted, freeze, frozen, integer, parameter, rational
from partita.public.axis.hierarchy import LARGEST_SIZE, HierarchyRelease, Levels
from partita.public.bounds import laplace_variance, spread_ranges
from partita.trusted.mechanisms.base import FixedCounts, check_fits, check_scale
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts

_START: Final = 24  # units of each level, before shares are moved
_STEPS: Final = (8, 4, 2)
"""Units by which a level's share grows or shrinks, until nothing is better by a thousandth."""
_LEAST: Final = 6
_MOST: Final = 96
"""Units of a level. Where nodes have one or two below them, counts of labels tell nearly all, but users who
look at the top only should not pay for the bottom alone."""


@final
@frozen(kw_only=True)
class HierarchyCounts(FixedCounts):
    """Publish once; answer every node of a hierarchy over 0, ..., size-1, all levels consistent.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DMNS06; HRMS10]
    Error:     O(levels / epsilon) for a node of any level; never more than that of its level alone.
    Proof:     docs/proofs/hierarchy_counts.md (integer noise, levels of any shape, consistency, shares)

    `nodes` are ranges of cells, each before those inside of it. `shares` are the levels' parts of epsilon
    from the top to the cells, up to a common factor; left out, they are those of the smallest geometric
    mean of the levels' errors, which follows from the nodes alone.

    >>> HierarchyCounts(size=8, nodes=[(0, 3), (4, 7)], epsilon=1, shares=[1, 1]).scales
    (Fraction(2, 1), Fraction(2, 1))
    """

    name: ClassVar[str] = "hierarchy"

    size: int
    nodes: Converted[Sequence[tuple[int, int]], tuple[tuple[int, int], ...]] = parameter(default=())
    shares: Converted[Sequence[object] | None, tuple[Fraction, ...]] = parameter(default=None)

    def _convert(self) -> None:
        super()._convert()
        size = integer(self.size, "size", low=1, high=LARGEST_SIZE)
        freeze(self, size=size, nodes=_check_nodes(self.nodes))
        freeze(self, shares=_check_shares(self.shares, self.levels))

    def _check(self) -> None:
        for scale in self.scales:
            check_scale(scale, self.epsilon)

    @cached_property
    def levels(self) -> Levels:
        """Which nodes are counted, and the levels that each stands for."""
        return Levels.of(self.size, self.nodes)

    @cached_property
    def parts(self) -> tuple[Fraction, ...]:
        """The part of epsilon of each level."""
        return tuple(share / sum(self.shares) for share in self.shares)

    @property
    def sensitivity(self) -> Fraction:
        """A row is in one node for each level, and the shares of all levels add up to one."""
        return sum(self.parts, Fraction(0))

    @property
    def moved(self) -> Fraction:
        """A row leaves a node and enters another on each level, but for those of a node that holds all."""
        common = self.levels.common
        if common is None:
            return 2 * self.sensitivity
        return 2 * (self.sensitivity - sum(self.parts[common.first : common.last + 1], Fraction(0)))

    @cached_property
    def scales(self) -> tuple[Fraction, ...]:
        """The noise scale of each kind of node: the change of neighbours' counts over its part of epsilon."""
        return tuple(self.changed / (weight * self.epsilon) for weight in self.levels.weights(self.parts))

    @cached_property
    def level_errors(self) -> tuple[float, ...]:
        """The root-mean-square error of a node of each level before any is raised to zero."""
        return tuple(self.levels.deviations(np.array([laplace_variance(scale) for scale in self.scales])))

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random range, about exactly; the number of rows does not matter."""
        lows, highs = (ends.astype(np.uint64) for ends in spread_ranges(self.size))
        empty = np.broadcast_to(np.int64(0), self.levels.kinds.size)
        return float(np.sqrt((self._released(empty, None).errors(lows, highs) ** 2).mean()))

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds: a count for each node, its place and its kind."""
        return 4 * self.levels.kinds.size

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> HierarchyRelease:
        """Count every node and add the noise of its kind."""
        counts = check_fits(data, self.size, self.contributions)
        session = noise.session()
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts.spread())])
        shape, kinds = self.levels.shape, self.levels.kinds
        exact = before[shape.last[1:] + np.uint64(1)] - before[shape.first[1:]]
        drawn = [session.add(exact[kinds == kind], scale) for kind, scale in enumerate(self.scales)]
        noisy = np.zeros(exact.size, np.result_type(*drawn))
        for kind, values in enumerate(drawn):
            noisy[kinds == kind] = values
        return self._released(noisy, self.guarantee if session.secure else None)

    def _released(self, noisy: NDArray[Any], guarantee: Guarantee | None) -> HierarchyRelease:
        return HierarchyRelease(
            shape=self.levels.shape,
            scale_numbers=self.levels.kinds,
            noisy=noisy,
            scales=self.scales,
            guarantee=guarantee,
        )


def _check_nodes(nodes: object) -> tuple[tuple[int, int], ...]:
    """Pairs of cells; whether they lie inside each other is checked with their levels."""
    given = nodes if isinstance(nodes, list | tuple) else None
    pairs = given is not None and all(isinstance(each, list | tuple) and len(each) == 2 for each in given)
    fix = "pass the first and the last cell of each"
    check(pairs, "nodes", "must be a list of pairs of cells", given=type(nodes).__name__, fix=fix)
    return tuple(
        (integer(first, "nodes", low=0, high=LARGEST_SIZE), integer(last, "nodes", low=0, high=LARGEST_SIZE))
        for first, last in given or ()
    )


def _check_shares(shares: object, levels: Levels) -> tuple[Fraction, ...]:
    """Positive numbers, one for each level."""
    if shares is None:
        units = [Fraction(each) for each in _balance(levels)]
        return tuple(each / sum(units) for each in units)
    given = shares if isinstance(shares, list | tuple) else ()
    exact = tuple(rational(share, "shares") for share in given)
    rule = f"must be {levels.number} positive numbers, one for each level from the top"
    fits = len(exact) == levels.number and min(exact) > 0
    check(fits, "shares", rule, given=shares, fix="leave them out for those of the smallest error")
    return exact


def _balance(levels: Levels) -> tuple[int, ...]:
    """Whole units for each level with which the geometric mean of the levels' errors is smallest.

    It begins with equal units, moves those of one level at a time, and stops where no move is better. This
    is a function of the nodes alone.
    """
    known: dict[tuple[int, ...], float] = {}

    def mean_error(units: tuple[int, ...]) -> float:
        if units not in known:
            weights = levels.weights([Fraction(each, sum(units)) for each in units])
            errors = levels.deviations(np.array([2.0 / float(weight) ** 2 for weight in weights]))
            known[units] = math.fsum(map(math.log, errors))
        return known[units]

    best = (_START,) * levels.number
    for step in _STEPS if levels.number > 1 else ():
        best = _descend(best, step, mean_error)
    return best


def _descend(
    best: tuple[int, ...], step: int, mean_error: Callable[[tuple[int, ...]], float]
) -> tuple[int, ...]:
    """The best units that moves of one level by one step lead to, each by a thousandth or more."""
    while True:
        moves = [
            (*best[:level], best[level] + change, *best[level + 1 :])
            for level in range(len(best))
            for change in (step, -step)
            if _LEAST <= best[level] + change <= _MOST
        ]
        found = min(moves, key=mean_error)
        if mean_error(found) > mean_error(best) - 1e-3:
            return best
        best = found
