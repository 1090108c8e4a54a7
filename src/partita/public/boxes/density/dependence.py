"""How much two columns have to do with each other, by released scores.

The score of two columns is the sum over the 8 x 8 cells of their top ranks of |count - m|, where m is what
the cell would hold if the columns were independent: a whole number, made of released views.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Floats, Ints

TOP_BITS: Final = 3
"""Two to this many ranks of each axis are told apart."""

_LEAST, _MOST = 0.03, 2.0
"""No axis matters less, so that all are halved in the end; and no score says more: |count - m| adds up to
at most two for each row if the counts and m have the same total."""

_POWER: Final = 0.7
"""Importance grows by this power of what a score tells; chosen by measured errors, like `rank_schedule`."""


def pairs(axes: int) -> list[tuple[int, int]]:
    """All pairs of axes, in the order of their scores."""
    return list(combinations(range(axes), 2))


def expected_counts(rows: int, one: Floats, other: Floats) -> Ints:
    """What each cell holds if so many rows have these shares along two axes, and independently so.

    >>> expected_counts(100, np.array([0.5, 0.5]), np.array([0.9, 0.1])).tolist()
    [45, 5, 45, 5]
    """
    return np.rint(float(rows) * np.outer(one, other)).astype(np.int64).ravel()


def importance(scores: Sequence[int], scale: Fraction, rows: int, shares: Sequence[Floats]) -> Floats:
    """For each axis how much it tells about another one.

    Of every score what chance alone may give is taken away: about sqrt(2 m / pi) in each cell, and the
    scale of the noise. What remains, per row, counts for both axes of the pair, and an axis has the best
    of its pairs.
    """
    best = np.full(len(shares), _LEAST)
    for (one, other), score in zip(pairs(len(shares)), scores, strict=True):
        chance = math.sqrt(2.0 * rows / math.pi) * float(np.sqrt(np.outer(shares[one], shares[other])).sum())
        excess = (float(score) - chance - float(scale)) / max(1, rows)
        best[[one, other]] = np.maximum(best[[one, other]], excess)
    return np.asarray(np.minimum(best, _MOST) ** _POWER)
