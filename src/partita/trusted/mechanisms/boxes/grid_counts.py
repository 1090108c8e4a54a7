"""The noisy grid: every cell of a product of axes by itself [DMNS06]."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, final

from partita.errors.checks import check
from partita.numbers import frozen
from partita.public.boxes.grid.grid import MOST_CELLS, GridRelease
from partita.public.boxes.plan.prediction import grid_error
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.mechanisms.boxes.box_mechanism import BoxMechanism
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts


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
