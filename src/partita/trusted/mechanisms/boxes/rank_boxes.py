"""Rank boxes: every axis alone first, then a tree of boxes in rank space that looks for dependence."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Final, final

import numpy as np

from partita.numbers import frozen
from partita.public.axis.curve.curve import Ints, UInts
from partita.public.axis.tree_solver.spending_rule import UNITS
from partita.public.boxes.density.dependence import TOP_BITS, importance, pairs
from partita.public.boxes.density.ranks import trimmed
from partita.public.boxes.plan.plan import BoxPlan
from partita.public.boxes.plan.prediction import rank_error
from partita.public.boxes.plan.slots import RankSlots, halvings
from partita.public.boxes.plan.tree_recipe import Recipe
from partita.public.boxes.rank_boxes.rank_boxes import RankBoxesRelease
from partita.public.boxes.rank_boxes.rank_views import RankViews
from partita.public.boxes.rank_boxes.schedule import rank_schedule
from partita.public.boxes.spending_boxes.spending_boxes import SpendingBoxesRelease
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.mechanisms.base.part_noise import PartNoise
from partita.trusted.mechanisms.boxes.box_mechanism import BoxMechanism
from partita.trusted.mechanisms.boxes.spending_boxes import SpendingBoxes, grow
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts

_VIEWS_SHARE, _SCORES_SHARE = Fraction(45, 100), Fraction(2, 100)
"""The parts of epsilon for all views and for all scores; the tree has the rest.

Like the constants below they are not derived: they erred least on shown tables of three to six columns. Any
others would be as private, since docs/proofs/rank_boxes.md asks no more of shares than that they add up.
"""

_RANK_BITS: Final = {2: 12, 3: 11, 4: 10, 5: 9, 6: 9}
"""For each number of axes, two to this many slots along each: fewer with more axes, which share one tree."""

_VIEW_BITS: Final = 3
_VIEW_RECIPE: Final = Recipe(growth="3/2", worth=5, depth_power=1)
_TREE_RECIPE: Final = Recipe(growth="17/10", worth=3, depth_power=1)
"""How the trees spend: `Recipe` says what the constants mean."""

_NUMBERS, _FEWEST_NUMBERS = 1.2, 1000.0
"""How sizes grow with rows times epsilon: fitted to tables of three to six columns."""


@final
@frozen(kw_only=True)
class RankBoxes(BoxMechanism):
    """Every box over two to six axes: views of all axes, and a tree where columns depend on each other.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/rank_boxes.md (shares of epsilon, scores of sensitivity one, budgets along a path)

    The views give rank coordinates, in which every axis alone looks even. Scores of all pairs of axes
    then decide which axes a spending tree halves first.

    >>> from partita.domain.axis import Axis
    >>> mechanism = RankBoxes(axes=[Axis(size=2**32), Axis(size=3), Axis(size=1000)], epsilon=1)
    >>> [str(view.epsilon) for view in mechanism.views], mechanism.scores_epsilon, mechanism.tree_epsilon
    (['3/20', '3/20', '3/20'], Fraction(1, 50), Fraction(53, 100))
    """

    name: ClassVar[str] = "rank-boxes"
    fewest_axes: ClassVar[int] = 2

    def _check(self) -> None:
        looks = self.view_scale, self.scale
        for scale in (*looks, self.scores_scale, *(look / UNITS for look in looks)):
            check_scale(scale, self.epsilon)

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
        """What each view costs."""
        return self.epsilon * _VIEWS_SHARE / len(self.axes)

    @property
    def view_scale(self) -> Fraction:
        """The noise of a look of a view that costs one unit."""
        return UNITS * self.rows_changed / self.view_epsilon

    @property
    def scores_epsilon(self) -> Fraction:
        """What all scores cost together."""
        return self.epsilon * _SCORES_SHARE

    @property
    def scores_scale(self) -> Fraction:
        """The noise of a score: a row changes each by at most one."""
        return len(pairs(len(self.axes))) * self.rows_changed / self.scores_epsilon

    @property
    def tree_epsilon(self) -> Fraction:
        """What the tree costs: all that is left."""
        return self.epsilon - len(self.axes) * self.view_epsilon - self.scores_epsilon

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
        fitting = self.fitting(points)
        session = noise.session()
        views = RankViews(self._views(fitting, session))
        scores = session.add(_scores(fitting, views), self.scores_scale)
        grown = grow(
            fitting,
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
            shape=grown.shape,
            looks=grown.looks,
            scale=self.scale,
            guarantee=self.guarantee if session.secure else None,
        )

    def _views(self, points: PointCounts, session: Noise) -> tuple[SpendingBoxesRelease, ...]:
        noise = PartNoise(session)
        return tuple(view.release(points.alone(axis), noise=noise) for axis, view in enumerate(self.views))

    def _plan(self, views: RankViews, scores: Sequence[int]) -> BoxPlan:
        """Where the tree may cut, by released numbers: axes that matter first."""
        slots = tuple(RankSlots(trimmed(edges)) for edges in views.edges(_RANK_BITS[len(self.axes)]))
        matters = importance(scores, self.scores_scale, views.rows, views.top_shares)
        return BoxPlan(slots, rank_schedule(matters, [halvings(each.line) for each in slots]))


def _scores(points: PointCounts, views: RankViews) -> Ints:
    """The exact scores of all pairs: a row counts in one cell of each, so it changes each by at most one."""
    expected = np.array([views.expected(*pair) for pair in pairs(len(views.top_edges))])
    counts = points.folded(partial(_pair_counts, tuple(views.top_edges), expected.shape))
    return _misfit(counts, expected)


def _misfit(counts: Ints, expected: Ints) -> Ints:
    """For each pair the sum of |count - expected| over all cells, of exact counts."""
    return np.asarray(np.abs(counts - expected).sum(axis=-1))


def _pair_counts(edges: tuple[UInts, ...], shape: tuple[int, ...], places: UInts, rows: Ints) -> Ints:
    """For each pair of axes how many rows are in each cell of their ranks."""
    ranks = [RankSlots(each).holding(places[:, axis]).astype(np.int64) for axis, each in enumerate(edges)]
    counts = np.zeros(shape, np.int64)
    for row, (one, other) in zip(counts, pairs(len(ranks)), strict=True):
        np.add.at(row, (ranks[one] << TOP_BITS) + ranks[other], rows)
    return counts
