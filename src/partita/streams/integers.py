"""Exact integers in arrays: int64 where a public scale says that they fit, else Python ints."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partita.noise.protocol import IntegerArray

__all__ = ["Row", "integers", "row"]

Row: TypeAlias = "Sequence[int] | NDArray[np.int64]"

_NARROW_SCALE: Final = 1 << 24
_NARROW: Final = 1 << 54


def integers(values: Any, scale: Fraction) -> IntegerArray:
    """int64 if the scale of the noise is small, and Python ints otherwise.

    Noise of a small scale fits, but for a chance below 2^-1000: then too, nothing is cut off.
    """
    exact = np.asarray(values, dtype=object)
    if scale <= _NARROW_SCALE and all(-_NARROW < value < _NARROW for value in exact.flat):
        return exact.astype(np.int64)
    return exact


def row(array: IntegerArray) -> Row:
    """An array as a row of a state: of eight bytes each, or of many."""
    flat: Any = array.ravel()
    return flat if array.dtype == np.int64 else [int(value) for value in flat]
