"""Boxes over columns of which some are categories: plain views of these beside the boxes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Final, NamedTuple, TypeAlias, final

from partita.errors import check
from partita.numbers import frozen
from partita.public.boxes.plain_view import MOST_POSITIONS
from partita.public.boxes.spending_boxes import LARGEST_TOTAL
from partita.public.boxes.viewed_boxes import ViewedBoxesRelease
from partita.trusted.mechanisms.base import PartNoise, check_scale
from partita.trusted.mechanisms.boxes import (
    BoxMechanism,
    GridCounts,
    RankBoxes,
    Rectangles,
    SpendingBoxes,
    count_plainly,
)
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts

Inner: TypeAlias = GridCounts | RankBoxes | SpendingBoxes

_TOTAL_SHARE: Final = Fraction(1, 100)  # of epsilon: a better choice of structure and views against less for them
_SHARES: Final = {2: Fraction(15, 100), 3: Fraction(12, 100), 4: Fraction(1, 10), 5: Fraction(8, 100), 6: Fraction(7, 100)}
_FEW_ORDERED: Final = 1024
_ROWS_FOR_ORDERED: Final = 10


class ViewsPlan(NamedTuple):
    """Which axes have a view of their own, and the mechanism of the boxes with the rest of epsilon."""

    views: tuple[int, ...]
    boxes: Inner


@final
@frozen(kw_only=True)
class ViewedBoxes(BoxMechanism):
    """Boxes."""

    name: ClassVar[str] = "viewed-boxes"
    fewest_axes: ClassVar[int] = 2

    def _check(self) -> None:
        pass

    @property
    def total_scale(self) -> Fraction:
        return 1 / (_TOTAL_SHARE * self.rate)

    @property
    def share(self) -> Fraction:
        return _SHARES[len(self.axes)]

    @property
    def view_scale(self) -> Fraction:
        return 1 / (self.share * self.rate)

    def plan(self, total: int) -> ViewsPlan:
        structure = type(Rectangles(axes=self.axes, epsilon=self.epsilon, **self.protected).structure(total=total))
        if structure is RankBoxes:
            plain = tuple(a for a, x in enumerate(self.axes) if x.labels and x.width <= MOST_POSITIONS)
            return ViewsPlan((), RankBoxes(axes=self.axes, epsilon=(1 - _TOTAL_SHARE) * self.epsilon, plain=plain, **self.protected))
        views = tuple(a for a in range(len(self.axes)) if self._worth_a_view(a, total))
        share = 1 - _TOTAL_SHARE - len(views) * self.share
        return ViewsPlan(views, structure(axes=self.axes, epsilon=share * self.epsilon, **self.protected))

    def _worth_a_view(self, axis: int, total: int) -> bool:
        line = self.axes[axis]
        others = math.prod(a.width for a in self.axes) // line.width
        if others * self.share**2 <= 1:
            return False
        if line.labels:
            return line.width <= MOST_POSITIONS
        return line.size <= _FEW_ORDERED and total * self.rate * self.share >= _ROWS_FOR_ORDERED * line.width

    def predicted_error(self, rows: int) -> float:
        return self.plan(rows).boxes.predicted_error(rows)

    def predicted_numbers(self, rows: int) -> int:
        plan = self.plan(rows)
        return plan.boxes.predicted_numbers(rows) + sum(self.axes[axis].width for axis in plan.views)

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> ViewedBoxesRelease:
        points = self.fitting(points)
        session = noise.session()
        noisy = int(session.add(points.total, self.total_scale))
        total = min(LARGEST_TOTAL, max(-LARGEST_TOTAL, noisy))
        plan = self.plan(max(0, total))
        views = {axis: count_plainly(points, axis, self.view_scale, session) for axis in plan.views}
        return ViewedBoxesRelease(
            boxes=plan.boxes.release(points, noise=PartNoise(session)),
            views=views,
            total=total,
            scale=self.total_scale,
            guarantee=self.guarantee if session.secure else None,
        )
