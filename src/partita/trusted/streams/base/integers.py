"""Exact integers in arrays: int64 where a public scale says that they fit, else Python ints."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.trusted.noise.system.protocol import IntegerArray

Row: TypeAlias = "Sequence[int] | NDArray[np.int64]"
"""A row of a state."""

NARROW_NOISE: Final = 1 << 28
"""Noise below this, and sums of 64 times 64 of it in units of 2^-16, can be worked with in int64."""
NARROW_ERROR: Final = 1 << 53
"""So can errors below this."""

_NARROW_SCALE: Final = 1 << 18


def is_wide(scale: Fraction) -> bool:
    """Whether noise of a scale is kept as Python ints: a public question."""
    return scale > _NARROW_SCALE


def integers(values: ArrayLike, *, wide: bool, below: int = NARROW_ERROR) -> IntegerArray:
    """int64, unless the noise is wide.

    Noise that is not wide exceeds a thousand scales with a chance below 2^-1000; then too, it is kept
    as it is.
    """
    try:
        array = np.asarray(values, dtype=np.int64)
    except OverflowError:
        return np.asarray(values, dtype=object)
    fits = -below < int(array.min(initial=0)) and int(array.max(initial=0)) < below
    return array.astype(object) if wide or not fits else array


def row(array: IntegerArray) -> Row:
    """An array as a row of a state: of eight bytes each, or of many."""
    flat: Any = array.ravel()
    return flat if array.dtype == np.int64 else [int(value) for value in flat]
