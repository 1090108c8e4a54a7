"""Noisy prefixes, and intervals by difference: the simple improvement [SU, section 2.1]."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from partita.numbers import frozen
from partita.public.axis.flat.flat import FlatRelease
from partita.public.axis.flat.thresholds import ThresholdRelease
from partita.public.bounds.query_error import difference_error
from partita.trusted.mechanisms.base.additive import Additive
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts


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
        return ThresholdRelease(**self._measured(data, noise))
