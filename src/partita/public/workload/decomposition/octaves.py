"""The thresholds 0, 1, 2, 4, ... at which numerical queries are cut, and the octaves between them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.public.axis.curve.curve import Ints
from partita.public.sums.knots.buckets import clear_level, highest_clear, near_level

FINEST: Final = 1 << 30
"""A sum cut at a threshold is released in units of the threshold over this, or in units of 1."""

_WORD: Final = 1 << 63


def octave_tops(highest: int) -> tuple[int, ...]:
    """0, 1, 2, 4, ... up to the first that is at least `highest`: no weight lies above the last.

    >>> octave_tops(5), octave_tops(0)
    ((0, 1, 2, 4, 8), (0,))
    """
    if highest <= 0:
        return (0,)
    return (0, *(1 << power for power in range((highest - 1).bit_length() + 1)))


def octave_of(weights: NDArray[Any], tops: tuple[int, ...]) -> Ints:
    """The number of the first top that is at least each weight; what lies above the last is cut to it.

    >>> octave_of(np.array([0, 1, 2, 3, 4, 5, 9]), (0, 1, 2, 4, 8)).tolist()
    [0, 1, 2, 3, 3, 4, 4]
    """
    edges = np.array(tops, dtype=np.uint64 if tops[-1] <= _WORD else object)
    cut = np.minimum(weights.astype(edges.dtype), edges[-1])
    return np.asarray(np.searchsorted(edges, cut.ravel(), side="left").reshape(cut.shape), np.int64)


def top_octave(noisy: NDArray[Any], scale: Fraction) -> Ints:
    """The octave to cut at, from noisy counts along the last axis: the highest that is clear, or the next.

    The first octave, of weights 0, is taken where no other is clear. Counts of empty octaves seem clear with
    chance at most 1/1000 in each row.
    """
    above = noisy[..., 1:]
    if not above.shape[-1]:
        return np.zeros(noisy.shape[:-1], np.int64)
    clear = clear_level(scale, above.shape[-1])
    return highest_clear(above, clear=clear, near=near_level(scale)) + 1


def shared_top(noisy: NDArray[Any], scale: Fraction, tops: tuple[int, ...]) -> int:
    """One threshold for all queries, from noisy counts of rows by their largest weight; never 0."""
    return tops[max(1, int(top_octave(noisy[np.newaxis], scale)[0]))]


def grid_of(top: int) -> int:
    """The unit in which a sum cut at `top`, a power of two, is released.

    >>> grid_of(1024), grid_of(2**40)
    (1, 1024)
    """
    return max(1, top // FINEST)
