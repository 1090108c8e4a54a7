"""Signed runs laid over each other: where the sum of the signs changes, and what it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

Run: TypeAlias = tuple[int, int, int]
"""(first, the one behind the last, sign) of cells or integers in a row."""

SignedRange: TypeAlias = tuple[int, int, int]
"""The first and the last cell of a range, and +1 or -1."""


def turns(runs: Iterable[Run]) -> list[tuple[int, int]]:
    """The places at which the sum of the signs may change, in order, and the sum from there on.

    >>> turns([(2, 9, 1), (4, 6, -1)])
    [(2, 1), (4, 0), (6, 1), (9, 0)]
    """
    steps = Counter[int]()
    for first, behind, sign in runs:
        steps[first] += sign
        steps[behind] -= sign
    found, height = [], 0
    for place in sorted(steps):
        height += steps[place]
        found.append((place, height))
    return found


def laid_over(runs: Iterable[Run]) -> Iterator[Run]:
    """Disjoint runs and the sum of the signs on each, where that is not zero.

    >>> list(laid_over([(2, 9, 1), (4, 6, -1)]))
    [(2, 4, 1), (6, 9, 1)]
    """
    for (first, height), (behind, _) in pairwise(turns(runs)):
        if height:
            yield first, behind, height
