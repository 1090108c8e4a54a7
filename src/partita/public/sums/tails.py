"""What the part of a tail that noise hides may add, if the tail thins out; all answers of sums use it.

Noise hides rows on knots that hold few of them. No release can rule them out without an assumption, which
answers print: from knot to knot there are fewer and fewer rows. Guaranteed bounds do not use it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from partita.answer import Bounds
from partita.arrays import Floats

# The constants are those of a prototype of totals, chosen on lognormal columns, wages, a Pareto tail and few
# huge values; benchmarks/README.md, "Totals alone" and "Range sums", has families that chose none of them.
BETA: Final = 0.05  # what an interval of 95% may leave out of a hidden tail
THINNING: Final = 0.4  # rows of a doubling for each row of the one before it, where nothing was measured
CONTRADICTED: Final = 3.0  # deviations by which a knot exceeds what thinning allows: nothing is known then
MARGIN: Final = 2.0  # deviations, or scales, that a knot may hold more than it shows
_MOST_THINNING: Final = 0.5  # from here on every knot adds as much as the one before it
_RATIO: Final = (0.1, 0.45)  # measured thinning is taken to lie in here
_RATIO_SLOPE, _RATIO_SHIFT = 1.3, 0.1  # a margin for its noise
_INTERVAL: Final = 2 * 1.96  # deviations from end to end of an interval of 95%
_SELDOM: Final = 0.03  # rows that a silent knot is expected to hold, below which it is left out


def measured_thinning(rows: float, before: float) -> float:
    """Rows of a knot for each row of the one before it, by the noisy masses of covered knots."""
    ratio = min(max(rows / before, _RATIO[0]), _RATIO[1])
    return min(_MOST_THINNING, _RATIO_SLOPE * ratio + _RATIO_SHIFT)


def limit_rows(
    knots: Sequence[float], seen: Sequence[float], *, last: tuple[float, float], cap: float, thinning: float
) -> Floats:
    """At most how many rows each silent knot holds: what was seen allows, and thinning above the cap.

    `seen` is that limit of the first knots by their own noisy masses; of those behind nothing was measured.
    `last` is the knot before them, and at most how many rows it holds. Up to the cap every knot may hold any
    number, and the first one above it as many as the cap.

    >>> limit_rows([8.0, 16.0, 32.0], [9.0], last=(4.0, 10.0), cap=4.0, thinning=0.5).tolist()
    [9.0, 4.5, 2.25]
    """
    (place, rows), found = last, []
    for number, knot in enumerate(knots):
        own = seen[number] if number < len(seen) else math.inf
        fewer = thinning ** math.log2(knot / place) if place > cap else 1.0
        rows = min(own, rows * fewer if place >= cap else math.inf)
        place = knot
        found.append(rows)
    return np.array(found)


def weigh_tail(weights: Floats, rows: Floats, beta: float, *, least: bool = False) -> float:
    """What silent knots may add that are expected to hold at most so many rows, each with its weight.

    All hold what is expected of them, those with next to no row left out, or the last knot where beta rows
    are expected holds a whole one; whichever is more. With `least` that is a row of the first knot at least:
    what nothing was seen of has no error of its own.
    """
    together = float(weights @ np.where(rows >= _SELDOM, rows, 0.0))
    found = max(together, float(weights[rows >= beta].max(initial=0.0)))
    return max(found, float(weights[weights > 0.0][:1].sum())) if least else found


def spread_hidden(hidden: tuple[float, float], bounds: Bounds) -> float:
    """The error of a sum of which nothing is covered: by how far the hidden values may spread."""
    low, high = bounds(BETA)
    return max(0.0, min(hidden[1], high) - max(hidden[0], low)) / _INTERVAL
