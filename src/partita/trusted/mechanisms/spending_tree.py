"""The spending tree, which spends the budget of each path where it pays, and the default for intervals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Final, NamedTuple, TypeAlias, final

import numpy as np

from partita.arrays import Floats, Ints, UInts
from partita.errors import check
from partita.numbers import Exact, freeze, frozen, integer, parameter, rational
from partita.public.axis.spending_tree import NodeBoxes, SpendingPlan, SpendingTreeRelease, Step
from partita.public.axis.tents import LITTLE, PartitionTentsRelease
from partita.public.axis.tree_solver import UNITS, LevelEvidence, TreeLevel, TreeShape
from partita.public.base import LARGEST_NUMBER
from partita.public.bounds import typical_error
from partita.trusted.mechanisms.base import Mechanism, NoisyLooks, PartNoise, check_fits, check_scale
from partita.trusted.mechanisms.partition import PartitionTents
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts

Tool: TypeAlias = "PartitionTents | SpendingTree"

_LARGEST_SIZE: Final = 2**63
_LARGEST_BRANCHING: Final = 256
_ROWS_PER_NODE: Final = 30  # predicts the size of a release: rows, in units of the noise, for each node
_SMALLEST: Final = Fraction(1, 2**62)
_TOTAL_SHARE: Final = Fraction(1, 100)  # of epsilon: a better choice of the tool against less for the tool
_LARGEST_TREE: Final = 2**14  # cells; a larger universe gets a partition
_MANY: Final = 30_000  # rows times rate, from which the tree has branching 16 instead of 8
_LARGEST_TOTAL: Final = 2**63
"""A noisy total is clipped to this, as files hold 64 bits; only a tiny epsilon gets there."""


@final
@frozen(kw_only=True)
class SpendingTree(Mechanism):
    """A tree that spends epsilon where it is worth it: every interval over 0, ..., size-1, size up to 2^63.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/spending_tree.md (budgets along a path, integer noise)

    `total` is a public number: a guess of the number of rows, or a noisy count that was released
    before with noise of `total_scale`. All of epsilon is spent on the tree.

    >>> SpendingTree(size=4096, epsilon=1, total=100_000).scale
    Fraction(1048576, 1)
    """

    name: ClassVar[str] = "spending-tree"

    size: int
    total: int = 0
    total_scale: Fraction | None = None
    branching: int = 16
    growth: Exact = parameter(default="4/5")
    worth: Exact = parameter(default=8)
    depth_power: Exact = parameter(default="1/2")

    def _convert(self) -> None:
        super()._convert()
        freeze(
            self,
            size=integer(self.size, "size", low=1, high=_LARGEST_SIZE),
            total=integer(self.total, "total", low=-LARGEST_NUMBER, high=LARGEST_NUMBER),
            total_scale=None
            if self.total_scale is None
            else _check_positive(self.total_scale, "total_scale"),
            branching=integer(self.branching, "branching", low=2, high=_LARGEST_BRANCHING),
            growth=_check_positive(self.growth, "growth"),
            worth=_check_positive(self.worth, "worth"),
            depth_power=_check_share(self.depth_power, "depth_power"),
        )

    def _check(self) -> None:
        branching = self.branching
        rule, fix = "must be a power of two", "pass for example 16"
        check(branching & (branching - 1) == 0, "branching", rule, given=branching, fix=fix)
        check_scale(self.scale, self.epsilon)
        check_scale(self.scale / UNITS, self.epsilon)

    @property
    def scale(self) -> Fraction:
        """The noise of a look that costs one unit; one of k units has a k-th of it."""
        return UNITS / self.rate

    @cached_property
    def plan(self) -> SpendingPlan:
        """The rule that turns released counts into budgets."""
        return SpendingPlan(
            size=self.size,
            unit=float(1 / self.scale),
            branching=self.branching,
            growth=self.growth,
            worth=float(self.worth),
            depth_power=float(self.depth_power),
        )

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range if there are that many rows."""
        return typical_error(self.size, self.rate, rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds: six for each node that is worth a look."""
        worth = int(rows * self.rate / _ROWS_PER_NODE)
        return 6 * max(self.branching, min(self.size, worth))

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> SpendingTreeRelease:
        """Grow the tree level by level, all nodes of a level at once."""
        counts = check_fits(data, self.size, self.contributions)
        session = noise.session()
        looks = _Looks(counts, session, self.scale)
        return SpendingTreeRelease(
            shape=TreeShape.join([_root(self.size), *self._grow(looks)]),
            looks=looks.taken,
            scale=self.scale,
            total=self.total,
            total_scale=self.total_scale,
            branching=self.branching,
            growth=self.growth,
            worth=self.worth,
            depth_power=self.depth_power,
            guarantee=self.guarantee if session.secure else None,
        )

    def _grow(self, looks: _Looks) -> list[TreeLevel]:
        levels: list[TreeLevel] = []
        front = _Front(np.zeros(1, np.uint64), np.array([UNITS]), np.array([float(self.total)]))
        for step in self.plan.steps:
            boxes = step.cut(front.first, self.size)
            evidence = self._look(looks, step, boxes, front)
            expanded = self.plan.expanded(step, evidence)
            leaves = np.flatnonzero(~expanded & (evidence.left > 0))
            looks.take(evidence, leaves, evidence.left[leaves])
            levels.append(TreeLevel(boxes.first, boxes.last, expanded))
            if not expanded.any():
                break
            front = _Front(boxes.first[expanded], evidence.left[expanded], evidence.counts[expanded])
        return levels

    def _look(self, looks: _Looks, step: Step, boxes: NodeBoxes, front: _Front) -> LevelEvidence:
        """A first look at every box, and second looks where they decide."""
        splittable = (boxes.last > boxes.first) & (step.left > 1)
        evidence = LevelEvidence(left=front.budget[boxes.parent], splittable=splittable)
        looks.open(boxes)
        units = self.plan.first_look(step, front.counts, front.budget)
        looks.take_all(evidence, units[boxes.parent], self.plan, step)
        return evidence


class _Front(NamedTuple):
    """The nodes that are cut next: their first cells, the units that they have left, and noisy counts."""

    first: UInts
    budget: Ints
    counts: Floats


class _Looks(NoisyLooks):
    """Looks at ranges of cells. There is no look at the root: the total is a public number."""

    def __init__(self, counts: AxisCounts, session: Noise, scale: Fraction) -> None:
        super().__init__(session, scale, root=0)
        self._walk = counts.descent(_Running.over)

    def open(self, boxes: NodeBoxes) -> None:
        """Go on to the next level."""
        self.turn_to(self._walk.folded(partial(_count_between, boxes)))


class _Running(NamedTuple):
    """The secret, in order: the number of rows before each cell."""

    cells: UInts
    before: Ints

    @classmethod
    def over(cls, cells: UInts, counts: Ints) -> _Running:
        return cls(cells, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]))


def _count_between(boxes: NodeBoxes, running: _Running) -> Ints:
    """The exact count of each box."""
    behind = running.before[np.searchsorted(running.cells, boxes.last, side="right")]
    return np.asarray(behind - running.before[np.searchsorted(running.cells, boxes.first)])


def _root(size: int) -> TreeLevel:
    return TreeLevel(np.zeros(1, np.uint64), np.array([size - 1], np.uint64), np.ones(1, bool))


def _check_share(value: object, name: str) -> Fraction:
    exact = rational(value, name)
    check(0 <= exact <= 1, name, "must lie in [0, 1]", given=value, fix="leave it out")
    return exact


def _check_positive(value: object, name: str) -> Fraction:
    exact = rational(value, name)
    fix = "leave it out"
    check(_SMALLEST <= exact <= 1 / _SMALLEST, name, "must lie between 2^-62 and 2^62", given=value, fix=fix)
    return exact


@final
@frozen(kw_only=True)
class Intervals(Mechanism):
    """The default for many cells in order: every interval, size up to 2^64, by the most suitable mechanism.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/intervals.md (one hundredth on the total, the rest on the tool it chooses)

    A noisy total is released first. It and public parameters alone decide the tool: a spending tree
    if the universe is small and people are many, else a private partition counted by tents.

    >>> Intervals(size=2**64, epsilon=1).tool(total=100_000).name
    'partition-tents'
    >>> Intervals(size=4096, epsilon=1).tool(total=100_000).name
    'spending-tree'
    """

    name: ClassVar[str] = "intervals"

    size: int

    def _convert(self) -> None:
        super()._convert()
        freeze(self, size=integer(self.size, "size", low=1, high=2**64))

    def _check(self) -> None:
        check_scale(self.total_scale, self.epsilon)
        for total in (0, LITTLE * 2**62, _MANY * 2**62):
            self.tool(total=total)

    @property
    def total_scale(self) -> Fraction:
        """The noise scale of the total."""
        return 1 / (_TOTAL_SHARE * self.rate)

    def tool(self, *, total: int) -> Tool:
        """The mechanism for everything but the total: a function of public parameters and the noisy total."""
        informed, epsilon = total * self.rate, self.epsilon * (1 - _TOTAL_SHARE)
        if self.size > _LARGEST_TREE or informed < LITTLE:
            return PartitionTents(size=self.size, epsilon=epsilon, total=total, **self.protected)
        # Tuned constants, no part of the privacy argument: few rows get a narrower tree.
        branching, growth, worth = (8, Fraction(3, 4), 20) if informed < _MANY else (16, Fraction(4, 5), 8)
        return SpendingTree(
            size=self.size,
            epsilon=epsilon,
            total=total,
            total_scale=self.total_scale,
            branching=branching,
            growth=growth,
            worth=worth,
            **self.protected,
        )

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range if there are that many rows."""
        return self.tool(total=rows).predicted_error(rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""
        return self.tool(total=rows).predicted_numbers(rows)

    def release(
        self, data: AxisCounts, *, noise: Noise = SYSTEM
    ) -> PartitionTentsRelease | SpendingTreeRelease:
        """Count all rows, choose the tool by the noisy count, and release with it."""
        counts = check_fits(data, self.size, self.contributions)
        session = noise.session()
        noisy = int(session.add(counts.total, self.total_scale))
        total = min(_LARGEST_TOTAL, max(-_LARGEST_TOTAL, noisy))
        release = self.tool(total=total).release(counts, noise=PartNoise(session))
        return replace(release, guarantee=self.guarantee if session.secure else None)
