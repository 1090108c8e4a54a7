"""Box counts over several columns: the structure that is predicted to err least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias, final

from partita.errors import InvalidParameter
from partita.guarantee import Neighbors, Unit
from partita.inference.boxes.axis import Axis
from partita.mechanisms.box_mechanism import BoxMechanism
from partita.mechanisms.checks import check_scale
from partita.mechanisms.grid_counts import GridCounts
from partita.mechanisms.rank_boxes import RankBoxes
from partita.mechanisms.spending_boxes import SpendingBoxes
from partita.noise.protocol import Noise
from partita.noise.system import SYSTEM
from partita.points import Points
from partita.releases.grid import MOST_CELLS, GridRelease
from partita.releases.rank_boxes import RankBoxesRelease
from partita.releases.spending_boxes import SpendingBoxesRelease

__all__ = ["Rectangles"]

Structure: TypeAlias = GridCounts | RankBoxes | SpendingBoxes

_TOTAL_SHARE: Final = Fraction(1, 100)


@final
@dataclass(frozen=True, init=False, kw_only=True)
class Rectangles(BoxMechanism):
    """The default for two to six columns: every box, by the structure that suits the axes and the rows.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/rectangles.md (public facts, or a noisy total for one hundredth, choose)

    Two columns are published by a spending tree over boxes, and more with very many cells together by
    rank boxes. Between these, a noisy total is drawn first, and the least predicted error decides.

    >>> Rectangles(axes=[Axis(size=2**32), Axis(size=3)], epsilon=1).structure().name
    'spending-boxes'
    >>> Rectangles(axes=[Axis(size=2**32)] * 3, epsilon=1).structure().name
    'rank-boxes'
    >>> Rectangles(axes=[Axis(size=16, labels=True)] * 3, epsilon=1).structure(total=10**6).name
    'grid'
    """

    name: ClassVar[str] = "rectangles"

    def __init__(
        self,
        *,
        axes: Sequence[Axis],
        epsilon: object,
        neighbors: Neighbors = "add-remove",
        contributions: int = 1,
        unit: Unit | None = None,
    ) -> None:
        self._settle_boxes(
            axes=axes, epsilon=epsilon, neighbors=neighbors, contributions=contributions, unit=unit
        )
        if len(self.axes) < 2:
            raise InvalidParameter(
                "axes", "must be at least two", given=len(self.axes), fix="use Intervals for one column"
            )
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
            return "For two columns a spending tree is predicted to err least, however many rows there are."
        if not self.asks_for_total:
            return "For so many cells in three columns or more, rank boxes are predicted to err least."
        return (
            "A grid, a spending tree or rank boxes, by the least predicted error for a noisy number of rows "
            "that took one hundredth of epsilon."
        )

    def structure(self, *, total: int = 0) -> Structure:
        """The mechanism for everything but the total: a function of public facts and the released total."""
        if len(self.axes) == 2:
            return self._made(SpendingBoxes)
        if not self.asks_for_total:
            return self._made(RankBoxes)
        return min(self._candidates, key=lambda each: each.predicted_error(max(0, total)))

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random box if there are that many rows."""
        return self.structure(total=rows).predicted_error(rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""
        return self.structure(total=rows).predicted_numbers(rows)

    def release(
        self, points: Points, *, noise: Noise = SYSTEM
    ) -> GridRelease | RankBoxesRelease | SpendingBoxesRelease:
        """Count everybody if that matters, choose, and let the structure do the rest."""
        fitting = self.fitting(points)
        session = noise.session()
        total = int(session.add(fitting.total, self.total_scale)) if self.asks_for_total else 0
        release = self.structure(total=total).release(fitting, noise=session)
        return replace(release, guarantee=self.guarantee if session.secure else None)

    @property
    def _candidates(self) -> tuple[Structure, ...]:
        return self._made(SpendingBoxes), self._made(RankBoxes), self._made(GridCounts)

    def _made(self, structure: type[Structure]) -> Structure:
        """The structure with all of epsilon, or with what the total leaves."""
        share = 1 - _TOTAL_SHARE if self.asks_for_total else Fraction(1)
        return structure(axes=self.axes, epsilon=share * self.epsilon, **self.protected)
