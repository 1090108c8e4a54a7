"""The inverse of cumulative counts: the least cell at which enough has been counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Floats, UInts

_BITS: Final = 64


def least_cells(upto: Callable[[UInts], Floats], targets: Floats, *, last: int) -> UInts:
    """The least cell of 0, ..., last at which `upto` is at least each target, by halving; else the last.

    Cells may need all 64 bits. If `upto` is not monotone, it reaches the target at the cell found
    (unless that is the last) and misses it just before (unless that is the first).

    >>> least_cells(lambda cells: cells.astype(float) ** 2, np.array([0.0, 10.0, 1e9]), last=99).tolist()
    [0, 4, 99]
    """
    low, high = np.zeros(targets.size, np.uint64), np.full(targets.size, last, np.uint64)
    for _ in range(_BITS):
        middle = low + (high - low) // np.uint64(2)
        reached = (upto(middle) >= targets) | (low == high)
        low, high = np.where(reached, low, middle + np.uint64(1)), np.where(reached, middle, high)
    return high
