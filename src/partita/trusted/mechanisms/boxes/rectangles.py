"""Box counts over several columns: the structure that is predicted to err least."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias, TypeVar, final

from partita.numbers import frozen
from partita.public.boxes.grid.grid import MOST_CELLS
from partita.public.boxes.rank_boxes.rank_boxes import RankBoxesRelease
from partita.public.boxes.rank_boxes.rectangles import RectanglesRelease
from partita.public.boxes.spending_boxes.spending_boxes import LARGEST_TOTAL, SpendingBoxesRelease
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.mechanisms.base.part_noise import PartNoise
from partita.trusted.mechanisms.boxes.box_mechanism import BoxMechanism
from partita.trusted.mechanisms.boxes.grid_counts import GridCounts
from partita.trusted.mechanisms.boxes.rank_boxes import RankBoxes
from partita.trusted.mechanisms.boxes.spending_boxes import SpendingBoxes
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts

Structure: TypeAlias = GridCounts | RankBoxes | SpendingBoxes
Chosen = TypeVar("Chosen", GridCounts, RankBoxes, SpendingBoxes)

_TOTAL_SHARE: Final = Fraction(1, 100)


@final
@frozen(kw_only=True)
class Rectangles(BoxMechanism):
    """The default for two to six columns: every box, by the structure that suits the axes and the rows.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/rectangles.md (public facts, or a noisy total for one hundredth, choose)

    Two columns are published by a spending tree over boxes, and more with very many cells together by
    rank boxes. Between these, a noisy total is released first, and the least predicted error decides.

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
        """A sentence about how the structure is chosen, a function of public facts."""
        if len(self.axes) == 2:
            return "For two columns a spending tree was measured to err least, however many rows there are."
        if not self.asks_for_total:
            return "For so many cells in three columns or more, rank boxes were measured to err least."
        return (
            "A grid, a spending tree or rank boxes, by the least predicted error for a noisy number of rows "
            "that took one hundredth of epsilon."
        )

    def structure(self, *, total: int = 0) -> Structure:
        """The mechanism for everything but the total: a function of public facts and the released total."""
        if not self.asks_for_total:
            return self._fixed
        return min(self._candidates, key=lambda each: each.predicted_error(max(0, total)))

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random box if there are that many rows."""
        return self.structure(total=rows).predicted_error(rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""
        return self.structure(total=rows).predicted_numbers(rows)

    def release(
        self, points: PointCounts, *, noise: Noise = SYSTEM
    ) -> RankBoxesRelease | RectanglesRelease | SpendingBoxesRelease:
        """Count everybody if that matters, choose, and let the structure do the rest."""
        fitting = self.fitting(points)
        session = noise.session()
        release = self._chosen(fitting, session) if self.asks_for_total else self._only(fitting, session)
        return replace(release, guarantee=self.guarantee if session.secure else None)

    def _chosen(self, points: PointCounts, session: Noise) -> RectanglesRelease:
        """The total is released, and what it chose."""
        noisy = int(session.add(points.total, self.total_scale))
        total = min(LARGEST_TOTAL, max(-LARGEST_TOTAL, noisy))
        chosen = self.structure(total=total).release(points, noise=PartNoise(session))
        return RectanglesRelease(chosen=chosen, total=total, scale=self.total_scale)

    def _only(self, points: PointCounts, session: Noise) -> RankBoxesRelease | SpendingBoxesRelease:
        """The structure that public facts chose."""
        return self._fixed.release(points, noise=PartNoise(session))

    @property
    def _fixed(self) -> RankBoxes | SpendingBoxes:
        return self._made(SpendingBoxes) if len(self.axes) == 2 else self._made(RankBoxes)

    @property
    def _candidates(self) -> tuple[Structure, ...]:
        return self._made(SpendingBoxes), self._made(RankBoxes), self._made(GridCounts)

    def _made(self, structure: type[Chosen]) -> Chosen:
        """The structure with all of epsilon, or with what the total leaves."""
        share = 1 - _TOTAL_SHARE if self.asks_for_total else Fraction(1)
        return structure(axes=self.axes, epsilon=share * self.epsilon, **self.protected)
