"""Boxes over columns of which some are categories: plain views of these, and boxes over all columns."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Final, NamedTuple, final

from partita.errors import check
from partita.numbers import frozen
from partita.public.boxes.plain_view import MOST_POSITIONS
from partita.public.boxes.plan import Recipe, default_recipe
from partita.public.boxes.spending_boxes import LARGEST_TOTAL
from partita.public.boxes.viewed_boxes import ViewedBoxesRelease
from partita.trusted.mechanisms.base import PartNoise, check_scale
from partita.trusted.mechanisms.boxes import (
    BoxMechanism,
    GridCounts,
    RankBoxes,
    Rectangles,
    SpendingBoxes,
    Structure,
    count_plainly,
)
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts

_TOTAL_SHARE: Final = Fraction(1, 100)  # of epsilon, where the number of rows chooses the structure

# A view has this share of epsilon over the number of columns, so that a label errs at most 2.2 times as much
# as in a view of its own with epsilon over the number of columns. On made-up trips and on pairs of columns of
# Adult random boxes then erred 0.3 to 1.3 times as much as without views; with 30/100 in its place 0.3 to
# 1.25 times, but labels 3.3 times (8 to 16 releases each, docs/mechanisms/viewed_boxes.md).
_VIEW_SHARE: Final = Fraction(46, 100)
# All views together have at most this: with two of 23/100 each, cells of two categories erred 1.45 times as
# much as without, and with two of 15/100 each 1.15 times.
_MOST_FOR_VIEWS: Final = Fraction(30, 100)
# A label in boxes is a sum over the cells of the other columns, and costs a tree about so many times the
# variance that those cells have in a grid. With fewer cells than that the boxes answer labels better.
_TREE_VARIANCE: Final = Fraction(5, 4)
# Over so few cells a tree counts each with nearly all of epsilon. With views beside them boxes of two columns
# of Adult, 17 x 4 cells, erred 1.3 to 2.3 times as much.
_FEW_CELLS: Final = 128
# How a tree over two columns spends beside views: more of its budget at leaves, and fewer levels, than the
# defaults 7/5 and 8, or 5/3 and 7. Views tell sums over many cells, so boxes can do with less, and cells have
# what the views cost. With the defaults cells of three pairs of columns erred 1.20 to 1.36 times as much as
# without views, with these .85 to .99 times; with 9/4 and 12 .90 to 1.04 times, and with 3 and 16 cells .83
# to 1.03 times and boxes up to 1.27 times (16 releases each, docs/mechanisms/viewed_boxes.md).
_GROWTH, _WORTH = Fraction(5, 2), 16
# Of two categories, which have no ranges that matter, with few labels and so few levels: cells .74 to .93.
_LABELS_GROWTH, _FEW_LABELS = 4, 1024
# Over more cells than that hardly any has rows of its own: only boxes matter.
_MOST_CELLS: Final = 2**20


class ViewsPlan(NamedTuple):
    """Which axes are counted plainly beside the boxes, with how much of epsilon each, and the boxes."""

    views: tuple[int, ...]
    view_epsilon: Fraction
    boxes: Structure


@final
@frozen(kw_only=True)
class ViewedBoxes(BoxMechanism):
    """Every box over two to six columns, and every label of categories by a noisy count of its own.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     O(log labels / (share epsilon)) for all labels at once; of boxes measured, not proved.
    Proof:     docs/proofs/viewed_boxes.md (shares of epsilon, public choice of views, integer noise)

    Labels have no order, so a tree that cuts boxes in halves says little about any of them. A category is
    therefore counted position by position, and the boxes are released with the rest of epsilon, by the
    structure that `Rectangles` would choose. Rank boxes release a view of every column in any case: there
    the view of a category is the plain one. A category of more than 2^16 positions has no view. `views` names
    the axes to be viewed by their numbers; without it the axes and the structure of the boxes decide.

    >>> from partita.domain.axis import Axis
    >>> trips = ViewedBoxes(axes=[Axis(size=365), Axis(size=300, labels=True)], epsilon=1)
    >>> trips.plan(0).views, trips.plan(0).view_epsilon, trips.plan(0).boxes.epsilon
    ((1,), Fraction(23, 100), Fraction(77, 100))
    """

    name: ClassVar[str] = "viewed-boxes"
    fewest_axes: ClassVar[int] = 2

    views: tuple[int, ...] | None = None

    def _check(self) -> None:
        rule = f"must have a category of at most {MOST_POSITIONS:,} positions among them"
        fix = 'use mechanism="rectangles" for ordered columns'
        check(self.categories, "axes", rule, given=[axis.width for axis in self.axes], fix=fix)
        self._check_views()
        if self.asks_for_total:
            check_scale(self.total_scale, self.epsilon)
        for structure in self._structures:  # every plan can be drawn, whatever the total turns out to be
            plan = self._plan(structure)
            check_scale(self.rows_changed / plan.view_epsilon, self.epsilon)

    def _check_views(self) -> None:
        """Refuse views of axes that do not exist or are too wide."""
        given: object = () if self.views is None else self.views
        known = {axis for axis, line in enumerate(self.axes) if line.width <= MOST_POSITIONS}
        valid = isinstance(given, tuple) and len(set(given)) == len(given) and set(given) <= known
        rule = f"must be a tuple of different numbers of axes of at most {MOST_POSITIONS:,} positions"
        check(valid, "views", rule, given=given, fix="leave it out")

    @property
    def categories(self) -> tuple[int, ...]:
        """The numbers of the axes whose positions can be counted one by one and are labels."""
        lines = enumerate(self.axes)
        return tuple(axis for axis, line in lines if line.labels and line.width <= MOST_POSITIONS)

    @property
    def asks_for_total(self) -> bool:
        """Whether the number of rows chooses the structure of the boxes."""
        return self._default.asks_for_total

    @property
    def total_scale(self) -> Fraction:
        """The noise scale of the total, where it is drawn."""
        return 1 / (_TOTAL_SHARE * self.rate)

    @property
    def why(self) -> str:
        """A sentence about what public parameters choose."""
        return (
            "Labels have no order, so each is counted by itself where that is better than a sum of boxes. "
            f"{self._default.why}"
        )

    def plan(self, total: int) -> ViewsPlan:
        """What is released beside the total: a function of public parameters and the noisy total."""
        return self._plan(type(self._default.structure(total=total)))

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random box if there are that many rows."""
        return self.plan(rows).boxes.predicted_error(rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""
        plan = self.plan(rows)
        plain = plan.boxes.plain if isinstance(plan.boxes, RankBoxes) else plan.views
        return plan.boxes.predicted_numbers(rows) + sum(self.axes[axis].width for axis in plain)

    def label_scales(self, rows: int) -> dict[int, Fraction]:
        """The noise scale of a label of each viewed axis, by its number, if there are that many rows."""
        plan = self.plan(rows)
        if isinstance(plan.boxes, RankBoxes):
            return dict.fromkeys(plan.boxes.plain, plan.boxes.plain_scale)
        return dict.fromkeys(plan.views, self.rows_changed / plan.view_epsilon)

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> ViewedBoxesRelease:
        """Count all rows if that matters, then every position of the views, and release the boxes."""
        points = self.fitting(points)
        session = noise.session()
        total = self._count(points, session) if self.asks_for_total else None
        plan = self.plan(total or 0)
        scale = self.rows_changed / plan.view_epsilon
        return ViewedBoxesRelease(
            views={axis: count_plainly(points, axis, scale, session) for axis in plan.views},
            boxes=plan.boxes.release(points, noise=PartNoise(session)),
            total=total,
            scale=None if total is None else self.total_scale,
            guarantee=self.guarantee if session.secure else None,
        )

    def _count(self, points: PointCounts, session: Noise) -> int:
        """The noisy total."""
        noisy = int(session.add(points.total, self.total_scale))
        return min(LARGEST_TOTAL, max(-LARGEST_TOTAL, noisy))

    def _plan(self, structure: type[Structure]) -> ViewsPlan:
        """The views beside boxes of one structure, and the boxes with what the views and the total leave."""
        left = self.epsilon * (1 - _TOTAL_SHARE if self.asks_for_total else 1)
        most = self.epsilon * _VIEW_SHARE / len(self.axes)
        boxes: Structure
        if structure is RankBoxes:
            plain = self.categories if self.views is None else self.views
            boxes = RankBoxes(axes=self.axes, epsilon=left, plain=plain, **self.protected)
            return ViewsPlan((), most, boxes)
        views = self.views
        if views is None:
            views = tuple(axis for axis in self.categories if self._is_worth_a_view(axis))
        each = min(most, self.epsilon * _MOST_FOR_VIEWS / max(1, len(views)))
        rest = left - len(views) * each
        if structure is SpendingBoxes and views:
            boxes = SpendingBoxes(axes=self.axes, epsilon=rest, recipe=self._recipe, **self.protected)
        else:
            boxes = structure(axes=self.axes, epsilon=rest, **self.protected)
        assert len(views) * each + boxes.epsilon <= left
        return ViewsPlan(views, each, boxes)

    def _is_worth_a_view(self, axis: int) -> bool:
        """Whether a sum over all cells of the other columns would err more than a view."""
        cells = math.prod(line.width for line in self.axes)
        others = cells // self.axes[axis].width
        return cells > _FEW_CELLS and others * _TREE_VARIANCE * (_VIEW_SHARE / len(self.axes)) ** 2 > 1

    @property
    def _recipe(self) -> Recipe:
        """How a tree beside views spends: for two columns whose cells are asked for, much of it at leaves."""
        recipe = default_recipe(self.axes)
        if len(self.axes) > 2 or math.prod(line.width for line in self.axes) > _MOST_CELLS:
            return recipe
        labels = all(line.labels and line.size <= _FEW_LABELS for line in self.axes)
        growth = _LABELS_GROWTH if labels else _GROWTH
        return Recipe(growth=growth, worth=_WORTH, depth_power=recipe.depth_power)

    @property
    def _default(self) -> Rectangles:
        """The mechanism without views: it chooses the structure of the boxes."""
        return Rectangles(axes=self.axes, epsilon=self.epsilon, **self.protected)

    @property
    def _structures(self) -> tuple[type[Structure], ...]:
        """The structures that may be chosen."""
        if self.asks_for_total:
            return (GridCounts, RankBoxes, SpendingBoxes)
        return (type(self._default.structure()),)
