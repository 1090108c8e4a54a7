"""Boxes as the views of single axes see them: how far that may be off adds to the error of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.boxes.base.boxes import BoxTerm
from partita.public.boxes.plan.nodes import Corners
from partita.public.boxes.rank_boxes.rank_views import RankViews

_VIEWS_SHARE: Final = 0.25
"""So much of the variance of a side is that of a box in it, which the tree has looked at, too; calibrated."""


@final
@dataclass(frozen=True, eq=False)
class RankSides:
    """The sides of some boxes, a row for each, and what the views of their axes say about these.

    The proof note docs/proofs/rank_boxes.md tells how the model of errors was found.
    """

    views: RankViews
    lows: Corners
    highs: Corners

    def variances(self, values: Floats, tree: Floats, parts: int = 1) -> Floats:
        """The variance of each `parts` boxes, of these values and, by the tree alone, these variances.

        Of boxes with one side tree and view both tell, and raking keeps to the better of them. Of other
        boxes, what is not known about the rows of their sides is not known about their own.
        """
        beside, doubt = (
            each.reshape(-1, parts).sum(axis=1) for each in (self._beside(values), self._doubt(values))
        )
        own, bounded = tree + beside, np.asarray(self._bounded.reshape(tree.size, parts, -1).any(axis=1))
        for axis, view in enumerate(self.views.trees):
            alone = bounded[:, axis] & (bounded.sum(axis=1) == 1)
            low, high = (end[np.repeat(alone, parts)] for end in self._side(axis))
            own[alone] = np.minimum(tree[alone], view.errors(low, high, parts=parts) ** 2)
        return np.asarray(own + doubt)

    def variance(self, times: Ints, values: Floats, tree: float) -> float:
        """The variance of a sum of the boxes, each so many times, by the tree alone `tree`.

        If only one axis is bounded at all, its view is asked the same question. Else what the views add to
        each box adds up.
        """
        sides, doubt = np.flatnonzero(self._bounded.any(axis=0)), float(times**2 @ self._doubt(values))
        if sides.size != 1:
            return tree + float(times**2 @ self._beside(values)) + doubt
        view = self.views.trees[int(sides[0])].answer(*self._along(int(sides[0]), times))
        return min(tree, view.error**2) + doubt

    def _beside(self, values: Floats) -> Floats:
        """What the views of all sides of each box add."""
        return np.asarray((_VIEWS_SHARE * self._held(values) * self._own).sum(axis=1))

    def _doubt(self, values: Floats) -> Floats:
        """What special cells add, which are doubted by all the noise of the looks at them.

        Where hardly anything was seen solved values are near zero, and so are their errors. That is right
        for cells at large, but special cells are asked for by name.
        """
        return np.asarray((self._held(values) * self._special).sum(axis=1))

    def _along(self, axis: int, times: Ints) -> list[BoxTerm]:
        """The sides along one axis, as a question to its view."""
        ends = zip(self.lows[:, axis].tolist(), self.highs[:, axis].tolist(), times.tolist(), strict=True)
        terms = [(BoxTerm((low,), (high,), 1 if often > 0 else -1), abs(often)) for low, high, often in ends]
        return [term for term, often in terms for _ in range(often)]

    @cached_property
    def _bounded(self) -> Bools:
        """Which axes each box bounds."""
        last = np.array([axis.width - 1 for axis in self.views.axes], np.uint64)
        return np.asarray((self.lows > 0) | (self.highs < last))

    @cached_property
    def _counts(self) -> Floats:
        """About how many rows each side has, at least one."""
        counts = [tree.counts(*self._side(axis)) for axis, tree in enumerate(self.views.trees)]
        return np.maximum(1.0, np.stack(counts, axis=1))

    @cached_property
    def _own(self) -> Floats:
        """The variance of each side by its view; none where an axis is not bounded."""
        errors = [tree.errors(*self._side(axis)) for axis, tree in enumerate(self.views.trees)]
        return np.where(self._bounded, np.stack(errors, axis=1) ** 2, 0.0)

    @cached_property
    def _special(self) -> Floats:
        """The variance, as seen, of the special cells in each side that is not everything."""
        found = np.zeros(self.lows.shape)
        for axis, (places, variances) in enumerate(self.views.specials):
            low, high = self._side(axis)
            found[:, axis] = ((low <= places) & (places <= high)) @ variances
        return np.where(self._bounded, found, 0.0)

    def _held(self, values: Floats) -> Floats:
        """The share of each side that is in the box: by its value or, if that is more, by independence."""
        rows = max(1.0, self.views.total.value)
        shares = np.where(self._bounded, np.minimum(1.0, self._counts / rows), 1.0)
        others = shares.prod(axis=1)[:, None] / shares
        return np.asarray(np.maximum(others, np.clip(values[:, None] / self._counts, 0.0, 1.0)))

    def _side(self, axis: int) -> tuple[Corners, Corners]:
        return self.lows[:, [axis]], self.highs[:, [axis]]
