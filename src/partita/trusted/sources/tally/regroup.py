"""Rows that are the same, made one, with their counts added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from partita.arrays import changes

Array: TypeAlias = npt.NDArray[Any]
Ints: TypeAlias = npt.NDArray[np.int64]


def regroup(keys: Sequence[Array], counts: Ints) -> tuple[list[Array], Ints]:
    """The distinct rows of `keys`, in ascending order of the first, then the second, and so on.

    >>> regroup([np.array([2, 1, 2])], np.array([10, 20, 30]))
    ([array([1, 2])], array([20, 40]))
    """
    if not _in_order(keys):
        order = np.lexsort(list(reversed(keys)))
        keys, counts = [key[order] for key in keys], counts[order]
    first = firsts(keys)
    added = np.add.reduceat(counts, first) if len(first) else counts[:0]
    return [key[first] for key in keys], added


def firsts(keys: Sequence[Array]) -> Ints:
    """Where a new row starts, in sorted rows."""
    return np.flatnonzero(changes(*keys))


def _in_order(keys: Sequence[Array]) -> bool:
    """Whether the rows are in ascending order, as grouped rows often are; far cheaper than to sort them."""
    tied = np.ones(max(0, len(keys[0]) - 1), np.bool_)
    for key in keys:
        if bool((tied & (key[1:] < key[:-1])).any()):
            return False
        tied &= key[1:] == key[:-1]
    return True
