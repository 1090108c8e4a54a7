"""Whole numbers in proportion to weights along a line."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.public.axis.curve.curve import Floats

_UNITS: Final = 2**50


def apportion(seats: int, weights: Floats) -> NDArray[np.int64]:
    """`seats` shared out in proportion to weights >= 0, of which one is positive.

    Every share is its quota rounded down or up, and so is, to one seat, the sum of neighbouring
    shares: cumulative quotas are rounded. Plain largest remainders would hand all seats to the
    heaviest weights, or to the first of equal ones, where there are fewer seats than weights.
    Weights become multiples of 2^-50 of their sum; from there on everything is exact.

    >>> apportion(10, np.array([1.0, 1.0, 1.0])).tolist(), apportion(2, np.ones(6)).tolist()
    ([3, 4, 3], [0, 1, 0, 0, 1, 0])
    """
    units = np.rint(weights / weights.sum() * _UNITS).astype(np.int64)
    upto: NDArray[Any] = np.cumsum(units).astype(object)
    rounded = (2 * seats * upto + upto[-1]) // (2 * upto[-1])
    return np.asarray(np.diff(rounded, prepend=0), np.int64)
