"""Noise of one scale on a fixed list of counts: cells [DMNS06], all intervals, prefixes [SU, section 2.1]."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from partita.numbers import frozen
from partita.public.axis.flat import FlatRelease, HistogramRelease, LaplaceRelease, ThresholdRelease
from partita.public.bounds import difference_error, independent_error
from partita.trusted.mechanisms.base import Additive
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts


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
    def moved(self) -> int:
        """The cell that it leaves and the cell that it enters."""
        return 2

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
        return HistogramRelease(**self._measure(data, noise))


@final
@frozen(kw_only=True)
class Laplace(Additive):
    """Publish once; answer every interval over 0, ..., size-1 by a noisy count of its own; size up to 1447.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [SU, section 2.1]
    Error:     O(size^2 log size / epsilon), all intervals at once.                [SU, (6)]
    Proof:     docs/proofs/laplace.md (integer noise, exact sensitivity)

    >>> Laplace(size=3, epsilon=1).scale
    Fraction(4, 1)
    """

    name: ClassVar[str] = "laplace"
    released: ClassVar[type[FlatRelease]] = LaplaceRelease

    @property
    def sensitivity(self) -> int:
        """(x+1) (size-x) intervals hold cell x, most of all for the cell in the middle."""
        return (self.size + 1) // 2 * ((self.size + 2) // 2)

    @property
    def moved(self) -> int:
        """d (size + 1 - d) intervals hold one of two cells that are d apart, and not the other."""
        return self.sensitivity if self.size > 1 else 0

    @property
    def terms(self) -> float:
        """Every interval is one count."""
        return 1.0

    @property
    def largest_error(self) -> float:
        """The expected largest error over all intervals is at most this [SU, (6)]."""
        return independent_error(self.scale, self.predicted_numbers(0))

    def exact(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """All differences of two prefixes."""
        before = np.concatenate([[0], np.cumsum(cells)])
        lows, highs = np.triu_indices(self.size)
        return np.asarray(before[highs + 1] - before[lows])

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> LaplaceRelease:
        """Count every interval and add noise."""
        return LaplaceRelease(**self._measure(data, noise))


@final
@frozen(kw_only=True)
class Thresholds(Additive):
    """Publish once; answer every interval over 0, ..., size-1 as the difference of two noisy prefixes.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [SU, section 2.1]
    Error:     O(size log size / epsilon), all intervals at once.                  [SU, (7)]
    Proof:     docs/proofs/thresholds.md (integer noise, exact sensitivity)

    >>> Thresholds(size=3, epsilon=1).scale
    Fraction(3, 1)
    """

    name: ClassVar[str] = "thresholds"
    released: ClassVar[type[FlatRelease]] = ThresholdRelease

    @property
    def sensitivity(self) -> int:
        """A row in the first cell is in every prefix."""
        return self.size

    @property
    def moved(self) -> int:
        """From the first cell to the last: every prefix but that of all cells."""
        return self.size - 1

    @property
    def terms(self) -> float:
        """Two prefixes; one for the size of all size (size+1) / 2 ranges that begin with the first cell."""
        return 2.0 - 2.0 / (self.size + 1)

    @property
    def largest_error(self) -> float:
        """The expected largest error over all intervals is at most this [SU, (7)]."""
        return difference_error(self.scale, self.size)

    def exact(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Running sums."""
        return np.cumsum(cells)

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> ThresholdRelease:
        """Count every prefix and add noise."""
        return ThresholdRelease(**self._measure(data, noise))
