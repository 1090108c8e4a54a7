"""Which axes are halved at each level of a tree of boxes: those that tell most about others come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Floats, Ints

_MOST_AT_ONCE: Final = 3
"""A box is cut into at most eight: with more, children would have little budget each to tell them apart."""

_FADING, _WORTH_OF_BEST = 1.5, 0.25
"""By what factor an axis counts for less with each halving, and how near to the best one others must come.

Chosen by measured errors on shown tables of three to six columns; any schedule is as private.
"""


def rank_schedule(importance: Floats, bits: Sequence[int]) -> Ints:
    """A row for each level, a column for each axis: 1 where the axis is halved, 0 where it is not.

    An axis counts for less with each of its halvings. A level takes up to three axes that can still
    be halved: the one that counts most, and others that count at least a quarter of that. Where no axis
    can be halved at all there is one level that halves none.

    >>> rank_schedule(np.array([1.0, 0.1]), [2, 1]).tolist()
    [[1, 0], [1, 0], [0, 1]]
    """
    left = np.array(bits)
    levels = []
    while bool(left.any()):
        score = np.where(left > 0, importance * _FADING ** (left - np.array(bits)), 0.0)
        levels.append(_chosen(score))
        left = left - levels[-1]
    return np.array(levels or [np.zeros_like(left)])


def _chosen(score: Floats) -> Ints:
    order = np.argsort(-score, kind="stable")[:_MOST_AT_ONCE]
    worth = order[score[order] >= _WORTH_OF_BEST * score.max()]
    return np.isin(np.arange(score.size), worth).astype(np.int64)
