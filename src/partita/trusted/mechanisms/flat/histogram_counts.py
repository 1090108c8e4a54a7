"""The noisy histogram: every cell by itself [DMNS06]."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from partita.numbers import frozen
from partita.public.axis.flat.flat import FlatRelease
from partita.public.axis.flat.histogram_counts import HistogramRelease
from partita.public.bounds.query_error import independent_error
from partita.trusted.mechanisms.base.additive import Additive
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts


@final
@frozen(kw_only=True)
class HistogramCounts(Additive):
    """Publish once; answer every cell of 0, ..., size-1 as well as can be, and ranges as sums of cells.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DMNS06]
    Error:     O(log size / epsilon), all cells at once; O(sqrt(width) / epsilon) for a range.
    Proof:     docs/proofs/histogram_counts.md (integer noise)

    >>> HistogramCounts(size=2**24, epsilon=1).scale
    Fraction(1, 1)
    """

    name: ClassVar[str] = "histogram"
    released: ClassVar[type[FlatRelease]] = HistogramRelease

    @property
    def sensitivity(self) -> int:
        """A row is in one cell."""
        return 1

    @property
    def terms(self) -> float:
        """The mean width of all ranges."""
        return (self.size + 2) / 3

    @property
    def largest_error(self) -> float:
        """The expected largest error over all cells is at most this [SU, section 1.1]."""
        return independent_error(self.scale, self.size)

    def exact(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells themselves."""
        return cells

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> HistogramRelease:
        """Add noise to every cell."""
        return HistogramRelease(**self._measured(data, noise))
