"""Runs of integers, and work on many of them some at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partita.public.axis.curve.curve import Ints


def runs(starts: Ints, sizes: Ints) -> Ints:
    """As many integers as each size says, counted from each start on, one run after another.

    >>> runs(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    behind = np.cumsum(sizes)
    return np.asarray(np.repeat(starts - behind + sizes, sizes) + np.arange(sizes.sum()))


def blocks(sizes: Ints, most: int) -> Iterator[slice]:
    """Neighbours whose sizes add up to at most that, or single ones that are larger.

    >>> list(blocks(np.array([2, 1, 9, 1]), 4))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    upto, begin = np.cumsum(sizes), 0
    while begin < sizes.size:
        done = int(upto[begin] - sizes[begin])
        end = max(begin + 1, int(np.searchsorted(upto, done + most, side="right")))
        yield slice(begin, end)
        begin = end
