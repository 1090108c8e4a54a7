"""The Laplace mechanism on every interval: the baseline that all others improve on [SU, section 2.1]."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from partita.numbers import frozen
from partita.public.axis.flat.flat import FlatRelease
from partita.public.axis.flat.laplace import LaplaceRelease
from partita.public.bounds.query_error import independent_error
from partita.trusted.mechanisms.base.additive import Additive
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts


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
        return LaplaceRelease(**self._measured(data, noise))
