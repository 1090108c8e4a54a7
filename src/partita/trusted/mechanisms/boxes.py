"""Boxes over several axes: the noisy grid, the spending tree, rank boxes, and the default among them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Final, NamedTuple, TypeAlias, TypeVar, final

import numpy as np

from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import MOST_AXES, Axis, check_axes
from partita.errors import check
from partita.numbers import Converted, check_probability, freeze, frozen, integer, parameter
from partita.public.axis.tree_solver import MOST_NODES, UNITS, LevelEvidence, SpendingRule, TreeLooks
from partita.public.boxes.base import BoxRelease
from partita.public.boxes.density import TOP_BITS, importance, pairs, trimmed
from partita.public.boxes.grid import MOST_CELLS, GridRelease
from partita.public.boxes.plain_view import MOST_POSITIONS, PlainView
from partita.public.boxes.plan import (
    MOST_BITS,
    BoxLevel,
    BoxPlan,
    BoxShape,
    BoxSplit,
    Corners,
    RankSlots,
    Recipe,
    SlotBoxes,
    default_bits,
    default_recipe,
    grid_error,
    halvings,
    native_schedule,
    native_slots,
    rank_error,
    tree_error,
)
from partita.public.boxes.rank_boxes import (
    AxisView,
    RankBoxesRelease,
    RankViews,
    RectanglesRelease,
    rank_schedule,
)
from partita.public.boxes.spending_boxes import LARGEST_TOTAL, SpendingBoxesRelease
from partita.trusted.mechanisms.base import NoisyLooks, PartNoise, Private, check_points_fit, check_scale
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts


@frozen(kw_only=True)
class BoxMechanism(Private, ABC):
    """A pure epsilon-DP release of points along several axes, special cells included."""

    name: ClassVar[str]
    """The name that users know."""

    fewest_axes: ClassVar[int] = 1
    most_axes: ClassVar[int] = MOST_AXES

    axes: Converted[Sequence[Axis], tuple[Axis, ...]] = parameter()

    def _convert(self) -> None:
        super()._convert()
        axes = check_axes(self.axes)
        rule, fix = f"must be at least {self.fewest_axes}", "use Intervals for one column"
        check(len(axes) >= self.fewest_axes, "axes", rule, given=len(axes), fix=fix)
        fix = "publish fewer columns together, several times: views=[(...), (...)]"
        rule = f"must be at most {self.most_axes}"
        check(len(axes) <= self.most_axes, "axes", rule, given=len(axes), fix=fix)
        freeze(self, axes=axes)

    @abstractmethod
    def _check(self) -> None:
        """Refuse axes that are too large, and an epsilon whose noise cannot be drawn."""

    @property
    def why(self) -> str:
        """A sentence about what the mechanism chooses by public parameters; empty if nothing."""
        return ""

    @abstractmethod
    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random box if there are that many rows."""

    @abstractmethod
    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""

    def fitting(self, points: PointCounts) -> PointCounts:
        """The points, if they lie on these axes and bound contributions at least as tightly."""
        return check_points_fit(points, self.axes, self.contributions)

    @abstractmethod
    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> BoxRelease:
        """Draw noise and release."""


@final
@frozen(kw_only=True)
class GridCounts(BoxMechanism):
    """Publish once; answer every cell of a product of axes as well as can be, and boxes as sums of cells.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DMNS06]
    Error:     O(log cells / epsilon), all cells at once; O(sqrt(cells in it) / epsilon) for a box.
    Proof:     docs/proofs/grid_counts.md (integer noise)

    Special cells are cells like others. There may be up to 2^22 cells in all.

    >>> from partita.domain.axis import Axis
    >>> GridCounts(axes=[Axis(size=7), Axis(size=2, after=2)], epsilon="1/2").cells
    28
    """

    name: ClassVar[str] = "grid"
    bound_of: ClassVar[str] = "any box"

    def _check(self) -> None:
        check_scale(self.scale, self.epsilon)
        rule = "must have at most 2^22 cells together, special cells included"
        fix = 'publish fewer columns together, make cells coarser, or use mechanism="rectangles"'
        check(self.cells <= MOST_CELLS, "axes", rule, given=self.cells, fix=fix)

    @property
    def cells(self) -> int:
        """The number of cells of the product, special cells included."""
        return math.prod(axis.width for axis in self.axes)

    @property
    def scale(self) -> Fraction:
        """The noise scale: by how many rows neighbours differ, over epsilon."""
        return 1 / self.rate

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random box, exactly; the number of rows does not matter."""
        return grid_error(self.axes, self.rate)

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return self.cells

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no box is off by more, whatever the data: the release says the same."""
        empty = GridRelease(axes=self.axes, noisy=np.broadcast_to(np.int64(0), self.cells), scale=self.scale)
        return empty.error(float(check_probability(beta)))

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> GridRelease:
        """Add noise to every cell, whether or not there is a row in it."""
        cells = self.fitting(points).spread().ravel()
        session = noise.session()
        return GridRelease(
            axes=self.axes,
            noisy=session.add(cells, self.scale),
            scale=self.scale,
            guarantee=self.guarantee if session.secure else None,
        )


_TOTAL_UNITS: Final = UNITS // 20
"""The cost of the look at the root, if no total is public: the total is the most frequent question."""

_MOST_BITS_TOGETHER: Final = 12
"""No box is cut into more than two to this many others, special cells aside."""

_PER_OPENED, _PER_CELL, _PER_ROW = 5, 7, Fraction(3, 2)
"""How many integers there are for each box that the root is cut into, each cell, and each row.

A look is a node, its units and a noisy count, and each node has a flag if it is cut: that makes seven
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
            bits=default_bits(self.axes) if bits is None else integer(bits, "bits", low=1, high=most),
            recipe=default_recipe(self.axes) if recipe is None else recipe,
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
        """About how many integers the release holds, measured on tables of one to six columns.

        Three for every two rows in units of the noise, but no more than seven for each cell, and at
        least five for each box that the root is cut into.
        """
        cells = math.prod(axis.width for axis in self.axes)
        opened = int(self.plan.cut(0, self.plan.root).sizes.sum())
        return max(_PER_OPENED * opened, min(_PER_CELL * cells, int(_PER_ROW * rows * self.rate)))

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> SpendingBoxesRelease:
        """Grow the tree level by level, all nodes of a level at once."""
        points = self.fitting(points)
        session = noise.session()
        shape, looks = grow(
            points, plan=self.plan, recipe=self.recipe, scale=self.scale, total=self.total, session=session
        )
        return SpendingBoxesRelease(
            shape=shape,
            looks=looks,
            scale=self.scale,
            total=self.total,
            recipe=self.recipe,
            guarantee=self.guarantee if session.secure else None,
        )


def grow(
    points: PointCounts, *, plan: BoxPlan, recipe: Recipe, scale: Fraction, total: int | None, session: Noise
) -> tuple[BoxShape, TreeLooks]:
    """Grow a tree over points: its shape, and all looks at its nodes in the order in which they were taken.

    It costs UNITS / `scale` of epsilon for each row by which neighbours differ. `total` is a number that is
    public already; if it is None, the first look is at the root.
    """
    looks = _Looks(points, plan, session, scale, root=points.total if total is None else 0)
    rule = recipe.rule(float(1 / scale))
    front = _open_root(plan, looks, total)
    levels: list[Bools] = []
    for at, level in enumerate(plan.levels):
        cut = plan.cut(at, front.boxes)
        boxes = cut.boxes()
        evidence = _look(looks, rule, level, cut, front, plan.splittable(boxes))
        children = plan.levels[min(at + 1, len(plan.levels) - 1)].children
        expanded = rule.cut(evidence, most=MOST_NODES // children)
        leaves = np.flatnonzero(~expanded & (evidence.left > 0))
        looks.take(evidence, leaves, evidence.left[leaves])
        levels.append(expanded)
        if not expanded.any():
            break
        looks.follow(expanded)
        front = _Front(boxes.some(expanded), evidence.left[expanded], evidence.counts[expanded])
    return BoxShape.join(plan, levels), looks.taken


class _Front(NamedTuple):
    """The boxes that are cut next, the units that they have left, and their released counts."""

    boxes: SlotBoxes
    budget: Ints
    counts: Floats


def _open_root(plan: BoxPlan, looks: _Looks, total: int | None) -> _Front:
    """The root, with the public total, or with a look at it."""
    if total is not None:
        return _Front(plan.root, np.array([UNITS]), np.array([float(total)]))
    evidence = LevelEvidence(left=np.array([UNITS]), splittable=np.ones(1, bool))
    looks.take(evidence, np.zeros(1, np.int64), np.array([_TOTAL_UNITS]))
    return _Front(plan.root, evidence.left, evidence.counts)


def _look(
    looks: _Looks, rule: SpendingRule, level: BoxLevel, cut: BoxSplit, front: _Front, splittable: Bools
) -> LevelEvidence:
    """A first look at every child, and second looks where they decide."""
    parents = np.repeat(np.arange(front.budget.size), cut.sizes)
    evidence = LevelEvidence(left=front.budget[parents], splittable=splittable & (level.left > 1))
    looks.open(cut)
    units = rule.first_look(level, front.counts, front.budget)
    looks.take_all(evidence, units[parents], rule, level)
    return evidence


class _Looks(NoisyLooks):
    """Looks at boxes, as points walk down the tree. There is no look at a root whose total is public."""

    def __init__(
        self, points: PointCounts, plan: BoxPlan, session: Noise, scale: Fraction, *, root: int
    ) -> None:
        super().__init__(session, scale, root=root)
        self._walk = points.descent(partial(_at_root, plan))

    def open(self, cut: BoxSplit) -> None:
        """Go on to the next level: every point moves to its child."""
        self._walk.go(partial(_move, cut))
        self.turn_to(self._walk.folded(partial(_count, int(cut.sizes.sum()))))

    def follow(self, expanded: Bools) -> None:
        """Number the expanded boxes, and drop the points in leaves."""
        self._walk.go(partial(_keep_expanded, expanded))


class _Walkers(NamedTuple):
    """Points that walk down: their slots, their rows, and the number of the box that holds each."""

    slots: Corners
    rows: Ints
    boxes: Ints


def _at_root(plan: BoxPlan, places: Corners, counts: Ints) -> _Walkers:
    return _Walkers(plan.holding(places), counts, np.zeros(counts.size, np.int64))


def _move(cut: BoxSplit, points: _Walkers) -> _Walkers:
    return points._replace(boxes=cut.child(points.boxes, points.slots))


def _count(boxes: int, points: _Walkers) -> Ints:
    counts = np.zeros(boxes, np.int64)
    np.add.at(counts, points.boxes, points.rows)
    return counts


def _keep_expanded(expanded: Bools, points: _Walkers) -> _Walkers:
    alive = expanded[points.boxes]
    boxes = (np.cumsum(expanded) - 1)[points.boxes[alive]]
    return _Walkers(points.slots[alive], points.rows[alive], boxes)


_VIEWS_SHARE, _SCORES_SHARE = Fraction(45, 100), Fraction(2, 100)
"""The parts of epsilon for all views and for all scores; the tree has the rest.

Like the constants below they are not derived: they had the smallest errors on public tables of three to six
columns. Any others are as private, since docs/proofs/rank_boxes.md only needs that the shares add up.
"""

_PLAIN_SHARE: Final = Fraction(47, 100)
"""Of all views if they are plain: a label errs 2.2 times as much as in a view with epsilon / axes."""

_RANK_BITS: Final = {2: 12, 3: 11, 4: 10, 5: 9, 6: 9}
"""For each number of axes, two to this many slots along each: fewer with more axes, which share one tree."""

_VIEW_BITS: Final = 3
_VIEW_RECIPE: Final = Recipe(growth="3/2", worth=5, depth_power=1)
_TREE_RECIPE: Final = Recipe(growth="17/10", worth=3, depth_power=1)
"""How the trees spend: `Recipe` explains the constants."""

_NUMBERS, _FEWEST_NUMBERS = 1.2, 1000.0
"""How sizes grow with rows times epsilon: fitted to tables of three to six columns."""


@final
@frozen(kw_only=True)
class RankBoxes(BoxMechanism):
    """Every box over two to six axes: views of all axes, and a tree for dependence between columns.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/rank_boxes.md (shares of epsilon, scores of sensitivity one, budgets along a path)

    The views give rank coordinates, in which every axis alone is uniform. Scores of all pairs of axes
    then decide which axes a spending tree halves first. The view of an axis is a spending tree, or for the
    axes whose numbers are in `plain` a noisy count of every position.

    >>> from partita.domain.axis import Axis
    >>> mechanism = RankBoxes(axes=[Axis(size=2**32), Axis(size=3), Axis(size=1000)], epsilon=1)
    >>> [str(view.epsilon) for view in mechanism.views], mechanism.scores_epsilon, mechanism.tree_epsilon
    (['3/20', '3/20', '3/20'], Fraction(1, 50), Fraction(53, 100))
    """

    name: ClassVar[str] = "rank-boxes"
    fewest_axes: ClassVar[int] = 2

    plain: tuple[int, ...] = ()

    def _check(self) -> None:
        looks = self.view_scale, self.scale
        for scale in (*looks, self.scores_scale, self.plain_scale, *(look / UNITS for look in looks)):
            check_scale(scale, self.epsilon)
        numbers: object = self.plain
        known = set(range(len(self.axes)))
        valid = isinstance(numbers, tuple) and len(set(numbers)) == len(numbers) and set(numbers) <= known
        rule, fix = "must be a tuple of different numbers of axes, counted from 0", "leave it out"
        check(valid, "plain", rule, given=numbers, fix=fix)
        widest = max((self.axes[axis].width for axis in self.plain), default=1)
        rule, fix = f"must be axes of at most {MOST_POSITIONS} positions", "leave out wider ones"
        check(widest <= MOST_POSITIONS, "plain", rule, given=widest, fix=fix)

    @cached_property
    def views(self) -> tuple[SpendingBoxes, ...]:
        """The mechanism of each axis alone."""
        epsilon = self.view_epsilon
        return tuple(
            SpendingBoxes(
                axes=[axis], epsilon=epsilon, bits=_VIEW_BITS, recipe=_VIEW_RECIPE, **self.protected
            )
            for axis in self.axes
        )

    @property
    def view_epsilon(self) -> Fraction:
        """The cost of each view."""
        return self.epsilon * _VIEWS_SHARE / len(self.axes)

    @property
    def view_scale(self) -> Fraction:
        """The noise of a look of a view that costs one unit."""
        return UNITS * self.rows_changed / self.view_epsilon

    @property
    def plain_epsilon(self) -> Fraction:
        """The cost of each plain view."""
        return self.epsilon * _PLAIN_SHARE / len(self.axes)

    @property
    def plain_scale(self) -> Fraction:
        """The noise of every position of a plain view: a row is at one of them."""
        return self.rows_changed / self.plain_epsilon

    @property
    def scores_epsilon(self) -> Fraction:
        """The cost of all scores together."""
        return self.epsilon * _SCORES_SHARE

    @property
    def scores_scale(self) -> Fraction:
        """The noise of a score: a row changes each by at most one."""
        return len(pairs(len(self.axes))) * self.rows_changed / self.scores_epsilon

    @property
    def tree_epsilon(self) -> Fraction:
        """The cost of the tree: the rest."""
        trees = len(self.axes) - len(self.plain)
        views = trees * self.view_epsilon + len(self.plain) * self.plain_epsilon
        return self.epsilon - views - self.scores_epsilon

    @property
    def scale(self) -> Fraction:
        """The noise of a look of the tree that costs one unit; one of k units has a k-th of it."""
        return UNITS * self.rows_changed / self.tree_epsilon

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random box if there are that many rows."""
        return rank_error(self.axes, self.rate, rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds: the edges of slots, and all looks of views and tree."""
        most = 1 << _RANK_BITS[len(self.axes)]
        edges = sum(min(most, axis.width) + 1 for axis in self.axes)
        return edges + int(_NUMBERS * max(float(rows * self.rate), _FEWEST_NUMBERS))

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> RankBoxesRelease:
        """Release the views, score the pairs of axes in their ranks, and grow the tree in rank space."""
        points = self.fitting(points)
        session = noise.session()
        views = RankViews(self._views(points, session))
        scores = session.add(_scores(points, views), self.scores_scale)
        shape, looks = grow(
            points,
            plan=self._plan(views, scores.tolist()),
            recipe=_TREE_RECIPE,
            scale=self.scale,
            total=views.rows,
            session=session,
        )
        return RankBoxesRelease(
            views=views,
            rows=views.rows,
            scores=scores,
            scores_scale=self.scores_scale,
            shape=shape,
            looks=looks,
            scale=self.scale,
            guarantee=self.guarantee if session.secure else None,
        )

    def _views(self, points: PointCounts, session: Noise) -> tuple[AxisView, ...]:
        noise = PartNoise(session)
        return tuple(
            count_plainly(points, axis, self.plain_scale, session)
            if axis in self.plain
            else view.release(points.alone(axis), noise=noise)
            for axis, view in enumerate(self.views)
        )

    def _plan(self, views: RankViews, scores: Sequence[int]) -> BoxPlan:
        """Where the tree may cut, by released numbers: important axes first."""
        slots = tuple(RankSlots(trimmed(edges)) for edges in views.edges(_RANK_BITS[len(self.axes)]))
        matters = importance(scores, self.scores_scale, views.rows, views.top_shares) * views.hurry
        return BoxPlan(slots, rank_schedule(matters, [halvings(each.line) for each in slots]))


def count_plainly(points: PointCounts, axis: int, scale: Fraction, session: Noise) -> PlainView:
    """A noisy count of every position of one axis, special cells included: a row is at one of them."""
    counts = points.alone(axis).spread().ravel()
    return PlainView(axis=points.axes[axis], noisy=session.add(counts, scale), scale=scale)


def _scores(points: PointCounts, views: RankViews) -> Ints:
    """The exact scores of all pairs: a row counts in one cell of each, so it changes each by at most one."""
    expected = np.array([views.expected(*pair) for pair in pairs(len(views.top_edges))])
    counts = points.folded(partial(_count_pairs, tuple(views.top_edges), expected.shape))
    return _misfit(counts, expected)


def _misfit(counts: Ints, expected: Ints) -> Ints:
    """For each pair the sum of |count - expected| over all cells, of exact counts."""
    return np.asarray(np.abs(counts - expected).sum(axis=-1))


def _count_pairs(edges: tuple[UInts, ...], shape: tuple[int, ...], places: UInts, rows: Ints) -> Ints:
    """For each pair of axes the number of rows in each cell of their ranks."""
    ranks = [RankSlots(each).holding(places[:, axis]).astype(np.int64) for axis, each in enumerate(edges)]
    counts = np.zeros(shape, np.int64)
    for row, (one, other) in zip(counts, pairs(len(ranks)), strict=True):
        np.add.at(row, (ranks[one] << TOP_BITS) + ranks[other], rows)
    return counts


Structure: TypeAlias = GridCounts | RankBoxes | SpendingBoxes
Chosen = TypeVar("Chosen", GridCounts, RankBoxes, SpendingBoxes)

_TOTAL_SHARE: Final = Fraction(1, 100)  # of epsilon: a better choice of structure against less for it


@final
@frozen(kw_only=True)
class Rectangles(BoxMechanism):
    """The default for two to six columns: every box, by the most suitable structure for axes and rows.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/rectangles.md (public facts, or a noisy total for one hundredth, choose)

    Two columns are published by a spending tree over boxes, and more columns with very many cells by
    rank boxes. Between these, a noisy total is released first, and the smallest predicted error decides.

    >>> from partita.domain.axis import Axis
    >>> Rectangles(axes=[Axis(size=2**32), Axis(size=3)], epsilon=1).structure().name
    'spending-boxes'
    >>> Rectangles(axes=[Axis(size=2**32)] * 3, epsilon=1).structure().name
    'rank-boxes'
    >>> Rectangles(axes=[Axis(size=16, labels=True)] * 3, epsilon=1).structure(total=10**6).name
    'grid'
    """

    name: ClassVar[str] = "rectangles"
    fewest_axes: ClassVar[int] = 2

    def _check(self) -> None:
        check_scale(self.total_scale, self.epsilon)
        self.structure(total=0)

    @property
    def asks_for_total(self) -> bool:
        """Whether the number of rows matters: for three columns or more whose cells can all be counted."""
        return len(self.axes) > 2 and math.prod(axis.width for axis in self.axes) <= MOST_CELLS

    @property
    def total_scale(self) -> Fraction:
        """The noise scale of the total, where it is drawn."""
        return 1 / (_TOTAL_SHARE * self.rate)

    @property
    def why(self) -> str:
        """A sentence about how public parameters choose the structure."""
        if len(self.axes) == 2:
            return "For two columns a spending tree was measured to err least, however many rows there are."
        if not self.asks_for_total:
            return "For so many cells in three columns or more, rank boxes were measured to err least."
        return (
            "A grid, a spending tree or rank boxes, by the least predicted error for a noisy number of rows "
            "that took one hundredth of epsilon."
        )

    def structure(self, *, total: int = 0) -> Structure:
        """The mechanism for everything but the total: a function of public parameters and the noisy total."""
        if not self.asks_for_total:
            return self._fixed
        candidates: list[Structure]
        candidates = [self._make(SpendingBoxes), self._make(RankBoxes), self._make(GridCounts)]
        return min(candidates, key=lambda each: each.predicted_error(max(0, total)))

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random box if there are that many rows."""
        return self.structure(total=rows).predicted_error(rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""
        return self.structure(total=rows).predicted_numbers(rows)

    def release(
        self, points: PointCounts, *, noise: Noise = SYSTEM
    ) -> RankBoxesRelease | RectanglesRelease | SpendingBoxesRelease:
        """Count all rows if that matters, choose the structure, and release with it."""
        points = self.fitting(points)
        session = noise.session()
        guarantee = self.guarantee if session.secure else None
        if self.asks_for_total:
            return replace(self._release_with_total(points, session), guarantee=guarantee)
        return replace(self._fixed.release(points, noise=PartNoise(session)), guarantee=guarantee)

    def _release_with_total(self, points: PointCounts, session: Noise) -> RectanglesRelease:
        """Release the total, and then the structure that it chooses."""
        noisy = int(session.add(points.total, self.total_scale))
        total = min(LARGEST_TOTAL, max(-LARGEST_TOTAL, noisy))
        chosen = self.structure(total=total).release(points, noise=PartNoise(session))
        return RectanglesRelease(chosen=chosen, total=total, scale=self.total_scale)

    @property
    def _fixed(self) -> RankBoxes | SpendingBoxes:
        """The structure that public parameters choose."""
        return self._make(SpendingBoxes) if len(self.axes) == 2 else self._make(RankBoxes)

    def _make(self, structure: type[Chosen]) -> Chosen:
        """The structure with all of epsilon, or with the rest after the total."""
        share = 1 - _TOTAL_SHARE if self.asks_for_total else Fraction(1)
        return structure(axes=self.axes, epsilon=share * self.epsilon, **self.protected)
