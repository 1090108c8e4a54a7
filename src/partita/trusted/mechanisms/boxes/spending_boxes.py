"""The spending tree over boxes: every node spends from the budget of its path, where it is worth it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Final, NamedTuple, final

import numpy as np

from partita.numbers import Converted, freeze, frozen, integer, parameter
from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.axis.tree_solver.spending_rule import MOST_NODES, UNITS, Evidence, SpendingRule
from partita.public.axis.tree_solver.tree_looks import TreeLooks
from partita.public.boxes.plan.nodes import Corners
from partita.public.boxes.plan.plan import MOST_BITS, BoxLevel, BoxPlan, native_schedule
from partita.public.boxes.plan.prediction import tree_error
from partita.public.boxes.plan.shape import BoxShape
from partita.public.boxes.plan.slots import native_slots
from partita.public.boxes.plan.tree_cut import Cut, SlotBoxes
from partita.public.boxes.plan.tree_recipe import Recipe, usual_bits, usual_recipe
from partita.public.boxes.spending_boxes.spending_boxes import LARGEST_TOTAL, SpendingBoxesRelease
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.mechanisms.base.noisy_looks import NoisyLooks
from partita.trusted.mechanisms.boxes.box_mechanism import BoxMechanism
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts

_TOTAL_UNITS: Final = UNITS // 20
"""What the look at the root costs, if no total is public: the count of everything is asked for most."""

_MOST_BITS_TOGETHER: Final = 12
"""No box is cut into more than two to this many others, special cells aside."""

_PER_OPENED, _PER_CELL, _PER_ROW = 5, 7, Fraction(3, 2)
"""How many integers there are for each box that the root is cut into, each cell, and each row.

A look is a node, its units and a noisy count, and of a node it is known whether it is cut: that makes seven
for a leaf with a first and a last look, and between four and seven where the first may have been the last.
How they grow with the rows, in units of the noise, was measured on tables of one to six columns.
"""


@final
@frozen(kw_only=True)
class SpendingBoxes(BoxMechanism):
    """A tree of boxes that spends epsilon where it is worth it: every box over up to six axes.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/spending_boxes.md (budgets along a path, integer noise)

    Axes are cut at native positions, up to 2^63 of them; special cells are pieces of their own from
    the first level on. `total` is a public number, where there is one: a guess of the number of rows,
    or a noisy count that was released before. Without it a twentieth of epsilon is spent on the total.

    >>> from partita.domain.axis import Axis
    >>> SpendingBoxes(axes=[Axis(size=2**32), Axis(size=3)], epsilon=1).scale
    Fraction(1048576, 1)
    """

    name: ClassVar[str] = "spending-boxes"

    total: int | None = None
    bits: Converted[int | None, int] = parameter(default=None)
    recipe: Converted[Recipe | None, Recipe] = parameter(default=None)

    def _convert(self) -> None:
        super()._convert()
        most = min(MOST_BITS, _MOST_BITS_TOGETHER // len(self.axes))
        total: int | None = self.total
        bits: int | None = self.bits
        recipe: Recipe | None = self.recipe
        freeze(
            self,
            total=None if total is None else integer(total, "total", low=-LARGEST_TOTAL, high=LARGEST_TOTAL),
            bits=usual_bits(self.axes) if bits is None else integer(bits, "bits", low=1, high=most),
            recipe=usual_recipe(self.axes) if recipe is None else recipe,
        )

    def _check(self) -> None:
        check_scale(self.scale, self.epsilon)
        check_scale(self.scale / UNITS, self.epsilon)

    @property
    def scale(self) -> Fraction:
        """The noise of a look that costs one unit; one of k units has a k-th of it."""
        return UNITS / self.rate

    @cached_property
    def plan(self) -> BoxPlan:
        """Where the tree may cut."""
        return BoxPlan(native_slots(self.axes), native_schedule(self.axes, self.bits))

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random box if there are that many rows."""
        return tree_error(self.axes, self.rate, rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds, by what tables of one to six columns needed.

        Three for every two rows in units of the noise, but no more than seven for each cell, and at
        least five for each box that the root is cut into.
        """
        cells = math.prod(axis.width for axis in self.axes)
        opened = int(self.plan.cut(0, self.plan.root).sizes.sum())
        return max(_PER_OPENED * opened, min(_PER_CELL * cells, int(_PER_ROW * rows * self.rate)))

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> SpendingBoxesRelease:
        """Grow the tree level by level, all nodes of a level at once."""
        fitting = self.fitting(points)
        session = noise.session()
        grown = grow(
            fitting, plan=self.plan, recipe=self.recipe, scale=self.scale, total=self.total, session=session
        )
        return SpendingBoxesRelease(
            shape=grown.shape,
            looks=grown.looks,
            scale=self.scale,
            total=self.total,
            recipe=self.recipe,
            guarantee=self.guarantee if session.secure else None,
        )


class Grown(NamedTuple):
    """A tree, and all looks at its nodes in the order in which they were taken."""

    shape: BoxShape
    looks: TreeLooks


def grow(
    points: PointCounts, *, plan: BoxPlan, recipe: Recipe, scale: Fraction, total: int | None, session: Noise
) -> Grown:
    """Grow a tree over points. It costs UNITS / `scale` of epsilon for each row by which neighbours differ.

    `total` is a number that is public already; if there is none, the first look is at the root.
    """
    looks = _Looks(points, plan, session, scale, root=points.total if total is None else 0)
    rule = recipe.rule(float(1 / scale))
    front = _front(plan, looks, total)
    levels: list[Bools] = []
    for at, level in enumerate(plan.levels):
        cut = plan.cut(at, front.boxes)
        boxes = cut.boxes()
        evidence = _looked_at(looks, rule, level, cut, front, plan.splittable(boxes))
        expanded = rule.cut(evidence, most=_most(plan, at))
        leaves = np.flatnonzero(~expanded & (evidence.left > 0))
        looks.take(evidence, leaves, evidence.left[leaves])
        levels.append(expanded)
        if not expanded.any():
            break
        looks.follow(expanded)
        front = _Front(boxes.some(expanded), evidence.left[expanded], evidence.counts[expanded])
    return Grown(BoxShape.join(plan, levels), looks.taken)


class _Front(NamedTuple):
    """The boxes that are cut next, the units that they have left, and their released counts."""

    boxes: SlotBoxes
    budget: Ints
    counts: Floats


def _front(plan: BoxPlan, looks: _Looks, total: int | None) -> _Front:
    """The root, with the public total, or with a look at it."""
    if total is not None:
        return _Front(plan.root, np.array([UNITS]), np.array([float(total)]))
    evidence = Evidence(left=np.array([UNITS]), splittable=np.ones(1, bool))
    looks.take(evidence, np.zeros(1, np.int64), np.array([_TOTAL_UNITS]))
    return _Front(plan.root, evidence.left, evidence.counts)


def _looked_at(
    looks: _Looks, rule: SpendingRule, level: BoxLevel, cut: Cut, front: _Front, splittable: Bools
) -> Evidence:
    """A first look at every child, and second looks where they decide."""
    parents = np.repeat(np.arange(front.budget.size), cut.sizes)
    evidence = Evidence(left=front.budget[parents], splittable=splittable & (level.left > 1))
    looks.open(cut)
    units = rule.first_look(level, front.counts, front.budget)
    looks.take_all(evidence, units[parents], rule, level)
    return evidence


def _most(plan: BoxPlan, at: int) -> int:
    """How many nodes of a level may be cut further."""
    return MOST_NODES // plan.levels[min(at + 1, len(plan.levels) - 1)].children


class _Looks(NoisyLooks):
    """Looks at boxes, as points walk down the tree. Nobody looks at a root whose total is public."""

    def __init__(
        self, points: PointCounts, plan: BoxPlan, session: Noise, scale: Fraction, *, root: int
    ) -> None:
        super().__init__(session, scale, root=root)
        self._walk = points.descent(partial(_at_root, plan))

    def open(self, cut: Cut) -> None:
        """Turn to the next level: every point moves to its child."""
        self._walk.go(partial(_moved, cut))
        self.turn_to(self._walk.folded(partial(_counted, int(cut.sizes.sum()))))

    def follow(self, expanded: Bools) -> None:
        """Count boxes among the expanded ones, and let go of the points in leaves."""
        self._walk.go(partial(_among, expanded))


class _Walkers(NamedTuple):
    """Points that walk down: their slots, their rows, and the box each is in, of those that are cut next."""

    slots: Corners
    rows: Ints
    boxes: Ints


def _at_root(plan: BoxPlan, places: Corners, counts: Ints) -> _Walkers:
    return _Walkers(plan.holding(places), counts, np.zeros(counts.size, np.int64))


def _moved(cut: Cut, points: _Walkers) -> _Walkers:
    return points._replace(boxes=cut.child(points.boxes, points.slots))


def _counted(boxes: int, points: _Walkers) -> Ints:
    counts = np.zeros(boxes, np.int64)
    np.add.at(counts, points.boxes, points.rows)
    return counts


def _among(expanded: Bools, points: _Walkers) -> _Walkers:
    alive = expanded[points.boxes]
    boxes = (np.cumsum(expanded) - 1)[points.boxes[alive]]
    return _Walkers(points.slots[alive], points.rows[alive], boxes)
