"""Quantiles of estimated shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partita.errors.checks import check
from partita.local.aggregate.consistency import Floats


def quantile_cells(shares: Floats, quantiles: Sequence[float]) -> list[int]:
    """For each q the least cell at which q of all that the cells hold is reached.

    >>> quantile_cells(np.array([0.1, 0.0, 0.2, 0.1]), [0.0, 0.25, 0.5, 1.0])
    [0, 0, 2, 3]
    """
    fix = "pass for example 0.5"
    check(all(0 <= q <= 1 for q in quantiles), "q", "must lie between 0 and 1", given=None, fix=fix)
    reached = np.cumsum(shares)
    total = float(reached[-1])
    if not total > 0:
        return [0 for _ in quantiles]
    places = np.searchsorted(reached, np.array(quantiles, dtype=np.float64) * total * (1 - 2.0**-40))
    return [int(place) for place in places.clip(0, shares.size - 1)]
