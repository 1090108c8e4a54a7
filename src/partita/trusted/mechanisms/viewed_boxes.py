"""Boxes over columns of which some are categories: plain views of these, and boxes over all columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import ClassVar, Final, NamedTuple, final

import numpy as np

from partita.arrays import Ints, UInts
from partita.errors import check
from partita.numbers import frozen
from partita.public.boxes.plain_view import MOST_POSITIONS
from partita.public.boxes.plan import Recipe, default_bits, default_recipe, halvings, native_schedule
from partita.public.boxes.spending_boxes import LARGEST_TOTAL
from partita.public.boxes.view_audits import AuditGrid, measure_misfit
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
_AUDIT_SHARE: Final = Fraction(1, 100)  # of epsilon, for each audit: sums of many errors, so little is enough

# A view beside a tree or a grid has this share of epsilon over the number of columns: a label errs 3.2 times
# as much as in a view of its own with epsilon over the number of columns. With 46/100 it errs 2.2 times as
# much, and labels in ranges and cells, for which the tree has less, a tenth more: benchmarks/README.md has
# the curve of shares. Rank boxes have 47/100, which costs them next to nothing.
_VIEW_SHARE: Final = Fraction(31, 100)
# A label in boxes is a sum over the cells of the other columns. In a grid, or in a tree that tells all labels
# apart at once, it costs at most so many times the variance that those cells have in a grid, and in other
# trees about as many as the second number: 6 to 8 on Adult's countries by 16 levels of education, and 1 on
# its occupations by the same. Where that is less than the variance of a view the boxes answer labels.
_FLAT_VARIANCE, _TREE_VARIANCE = Fraction(5, 4), 5
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
# A category of at most 16 labels is told apart at the first level, and below it the tree is one of the other
# column alone: few levels of many boxes. Occupations and classes of work by hours, 50 releases at epsilon 1
# and .3: labels in ranges erred .76 to .88 times as much as without views, with 3 bits .88 to .98 and with
# the default of 2 bits .90 to 1.05 times; cells .60, .79 and .84 times.
_TOLD_APART_BITS: Final = 4
# Over more cells than that hardly any has rows of its own: only boxes matter.
_MOST_CELLS: Final = 2**20


class ViewsPlan(NamedTuple):
    """Which axes are counted plainly, with how much of epsilon each; the boxes beside them; the audits."""

    views: tuple[int, ...]
    view_epsilon: Fraction
    boxes: Structure
    audits: int
    audit_epsilon: Fraction


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
    ((1,), Fraction(31, 200), Fraction(163, 200))
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
            check_scale(self.rows_changed / plan.audit_epsilon, self.epsilon)

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
        released = ViewedBoxesRelease(
            views={axis: count_plainly(points, axis, scale, session) for axis in plan.views},
            boxes=plan.boxes.release(points, noise=PartNoise(session)),
            total=total,
            scale=None if total is None else self.total_scale,
            guarantee=self.guarantee if session.secure else None,
        )
        return self._audit(released, points, plan, session) if plan.audits else released

    def _audit(
        self, released: ViewedBoxesRelease, points: PointCounts, plan: ViewsPlan, session: Noise
    ) -> ViewedBoxesRelease:
        """The release with its audits: sums over grids, of which a row changes each term by one at most."""
        audits, widths = released.audit_grids(), [axis.width for axis in self.axes]
        if len(audits) > plan.audits:
            raise AssertionError("there would be more audits than the plan has paid for")
        epsilon = plan.audit_epsilon
        grids = [grid for audit in audits for grid in audit]
        counts = points.folded(partial(_count_grids, grids))
        noisy, first = [], 0
        for audit in audits:
            misfit = 0
            for grid in audit:
                exact, first = counts[first : first + grid.size], first + grid.size
                misfit += measure_misfit(exact, released.counts(*grid.boxes(widths)))
            noisy.append(int(session.add(misfit, self._audit_scale(len(audit), epsilon))))
        return replace(released, audits=tuple(noisy), audit_scale=self.rows_changed / epsilon)

    def _audit_scale(self, grids: int, epsilon: Fraction) -> Fraction:
        """The noise scale of an audit: a row changes the misfit of each of its grids by one."""
        return grids * self.rows_changed / epsilon

    def _count(self, points: PointCounts, session: Noise) -> int:
        """The noisy total."""
        noisy = int(session.add(points.total, self.total_scale))
        return min(LARGEST_TOTAL, max(-LARGEST_TOTAL, noisy))

    def _plan(self, structure: type[Structure]) -> ViewsPlan:
        """The views beside boxes of one structure, and the boxes with what the views and the total leave."""
        left = self.epsilon * (1 - _TOTAL_SHARE if self.asks_for_total else 1)
        audit, each = self.epsilon * _AUDIT_SHARE, self.epsilon * _VIEW_SHARE / len(self.axes)
        boxes: Structure
        if structure is RankBoxes:
            plain = self.categories if self.views is None else self.views
            audits = (3 if len(self.axes) == 3 else 2) if plain else 0
            rest = left - audits * audit
            boxes = RankBoxes(axes=self.axes, epsilon=rest, plain=plain, **self.protected)
            return ViewsPlan((), each, boxes, audits, audit)
        views = self.views
        if views is None:
            views = tuple(axis for axis in self.categories if self._is_worth_a_view(axis, structure))
        ordered = not all(line.labels for line in self.axes)
        audits = (2 * bool(views) + ordered) if structure is SpendingBoxes else 0
        rest = left - len(views) * each - audits * audit
        if structure is SpendingBoxes and views:
            recipe, bits = self._recipe, self._bits
            boxes = SpendingBoxes(axes=self.axes, epsilon=rest, recipe=recipe, bits=bits, **self.protected)
        else:
            boxes = structure(axes=self.axes, epsilon=rest, **self.protected)
        assert len(views) * each + audits * audit + boxes.epsilon <= left
        return ViewsPlan(views, each, boxes, audits, audit)

    def _is_worth_a_view(self, axis: int, structure: type[Structure]) -> bool:
        """Whether a sum over all cells of the other columns would err more than a view."""
        cells = math.prod(line.width for line in self.axes)
        others = cells // self.axes[axis].width
        told_apart = structure is not SpendingBoxes or self._is_told_apart(axis)
        if len(self.axes) == 2 and told_apart and default_bits(self.axes) == 1:
            return False  # two halves of a wide column tell a label: 2.8 times a view of its own, for nothing
        variance = others * (_FLAT_VARIANCE if told_apart else _TREE_VARIANCE)
        return cells > _FEW_CELLS and variance * (_VIEW_SHARE / len(self.axes)) ** 2 > 1

    def _is_told_apart(self, axis: int) -> bool:
        """Whether the first level of a tree comes down to single labels of a category."""
        first = native_schedule(self.axes, default_bits(self.axes))[0]
        return int(first[axis]) == halvings(self.axes[axis])

    @property
    def _recipe(self) -> Recipe:
        """How a tree beside views spends: for two columns whose cells are asked for, much of it at leaves."""
        recipe = default_recipe(self.axes)
        if not self._asks_for_cells:
            return recipe
        labels = all(line.labels and line.size <= _FEW_LABELS for line in self.axes)
        growth = _LABELS_GROWTH if labels else _GROWTH
        return Recipe(growth=growth, worth=_WORTH, depth_power=recipe.depth_power)

    @property
    def _bits(self) -> int | None:
        """By how many bits a level of that tree cuts each column: None leaves it to the tree."""
        told_apart = any(self._is_told_apart(axis) for axis in self.categories)
        is_narrow = self._asks_for_cells and default_bits(self.axes) > 1
        return _TOLD_APART_BITS if is_narrow and told_apart else None

    @property
    def _asks_for_cells(self) -> bool:
        """Whether there are two columns of not too many cells, so that single cells matter."""
        return len(self.axes) == 2 and math.prod(line.width for line in self.axes) <= _MOST_CELLS

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


def _count_grids(grids: Sequence[AuditGrid], places: UInts, counts: Ints) -> Ints:
    """How many rows lie in each box of some grids, one grid after another."""
    return np.concatenate([grid.count(places, counts) for grid in grids])
