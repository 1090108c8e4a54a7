"""One bound for all intervals at once, from bounds on every prefix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partita.public.axis.curve.curve import Floats


def widest_miss(values: Floats, lower: Floats, upper: Floats, wide: NDArray[np.bool_]) -> float:
    """The largest error that any interval can have if the truth at every edge lies in its bounds.

    `values` are the released counts up to each of the k+1 edges of k pieces, the first of nothing;
    the truth lies between `lower` and `upper` there, and in a piece that is `wide` (of more than
    one cell) both curves rise from edge to edge. An interval is a difference of two prefixes.

    >>> widest_miss(np.array([0.0, 4.0]), np.array([0.0, 1.0]), np.array([0.0, 6.0]), np.array([False]))
    5.0
    """
    lower = np.maximum.accumulate(np.maximum(lower, 0.0))
    upper = np.minimum.accumulate(upper[::-1])[::-1]
    above = np.concatenate([upper - values, (upper[1:] - values[:-1])[wide]])
    below = np.concatenate([values - lower, (values[1:] - lower[:-1])[wide]])
    return float(max(above.max(), 0.0) + max(below.max(), 0.0))
