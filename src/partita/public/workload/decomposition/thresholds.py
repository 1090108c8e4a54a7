"""Where to cut each query, from released answers: the slides' rule, and one that weighs what is left out.

Both are functions of numbers that were released, so they cost nothing. Rows of the arrays are thresholds
0 = tops[0] < tops[1] < ..., columns are queries.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Floats, Ints
from partita.public.sums.knots.buckets import clear_level, highest_clear
from partita.public.workload.weights.measured import Weighed

STEADY: Final = 0.125
"""How much of its own noise a larger threshold may add before it is worth taking, among those below the
last clear one; measured."""

CAUTIOUS: Final = 0.5
"""The same where it is not known which thresholds are clear; measured."""


def first_quiet(above: Floats, alpha: float) -> Ints:
    """The first threshold above which at most `alpha` rows seem to lie; none lies above the last.

    With error at most alpha in every count, at most 2 alpha rows lie above it, and the threshold before
    it is below the largest weight in the data.

    >>> first_quiet(np.array([[90.0, 5.0], [20.0, 1.0]]), 9.0).tolist()
    [2, 0]
    """
    quiet = np.vstack([above <= alpha, np.ones((1, above.shape[1]), np.bool_)])
    return np.asarray(quiet.argmax(axis=0))


def first_steady(sums: Floats, noise: Floats, share: float) -> Ints:
    """The first threshold from which no larger one adds more than a share of its own noise [Lepski 1991].

    `sums` are the released sums of min(w, top), zero for the first threshold, and `noise` is about the
    standard error of each.

    >>> sums, noise = np.array([[0.0], [50.0], [90.0], [91.0]]), np.array([[0.0], [3.0], [6.0], [12.0]])
    >>> first_steady(sums, noise, 0.5).tolist()
    [2]
    """
    surely_ahead = np.maximum.accumulate((sums - share * noise)[::-1], axis=0)[::-1]
    return np.asarray((surely_ahead <= sums).argmax(axis=0))


def last_clear(weighed: Weighed, axis: int) -> int | None:
    """The last position along an axis whose noisy mass is clear; None where masses along it are not known."""
    first = 0
    for margin in weighed.margins:
        noisy = weighed.marginals[first : first + margin.bins]
        if margin.axis == axis and margin.bins == margin.shape[axis]:
            level = clear_level(weighed.scales.marginal, margin.bins)
            return max(0, int(highest_clear(noisy[np.newaxis], clear=level, near=level)[0]))
        first += margin.bins
    return None
