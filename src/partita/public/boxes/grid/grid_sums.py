"""Sums over boxes of a full grid of integers, exactly: summed-area tables, and boxes laid over each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Floats
from partita.public.boxes.plan.nodes import Corners, SignedBox

_ROOM: Final = 2**62
_ONE: Final = np.uint64(1)


@final
@dataclass(frozen=True, eq=False)
class GridSums:
    """An integer for every cell of a grid, and the sums of boxes of them.

    >>> sums = GridSums(np.arange(6).reshape(2, 3))
    >>> sums.of(np.array([[0, 1]], np.uint64), np.array([[1, 2]], np.uint64)).tolist()
    [12]
    """

    values: NDArray[Any]

    @cached_property
    def table(self) -> NDArray[Any]:
        """At each cell the sum of all up to it: exact, of Python ints where int64 might not do."""
        largest = max(int(self.values.max(initial=0)), -int(self.values.min(initial=0)))
        fits = largest * self.values.size < _ROOM
        table = self.values.astype(np.int64 if fits else object)
        for axis in range(table.ndim):
            np.cumsum(table, axis=axis, out=table)
        return table

    def of(self, lows: Corners, highs: Corners) -> NDArray[Any]:
        """The sum of each box: its corners in the table, added and taken away in turn."""
        sums = np.zeros(len(lows), self.table.dtype)
        for below in product((False, True), repeat=self.values.ndim):
            corner = np.where(below, lows - _ONE, highs)
            there = ~(np.array(below) & (lows == 0)).any(axis=1)
            found = self.table[tuple(corner[there].T.astype(np.int64))]
            sums[there] += -found if sum(below) % 2 else found
        return sums

    def floats(self, lows: Corners, highs: Corners) -> Floats:
        """The same as floats, rounded last."""
        return np.asarray(self.of(lows, highs).astype(np.float64))


def laid_over(boxes: Sequence[SignedBox]) -> Mapping[int, int]:
    """How many cells have each sum of signs, other than zero, where boxes are laid over each other.

    The ends of the boxes cut each axis into pieces; a product of pieces lies in a box or outside.

    >>> laid_over([((0, 0), (3, 3), 1), ((1, 1), (2, 2), -1), ((0, 0), (0, 0), 1)])
    {1: 11, 2: 1}
    """
    lows = np.array([low for low, _, _ in boxes], np.int64)
    behind = np.array([high for _, high, _ in boxes], np.int64) + 1
    cuts = [np.unique(np.concatenate([lows[:, axis], behind[:, axis]])) for axis in range(lows.shape[1])]
    signs = _summed(lows, behind, np.array([sign for _, _, sign in boxes]), cuts)
    cells = np.ones((), np.int64)
    for cut in cuts:
        cells = np.multiply.outer(cells, np.diff(cut))
    factors, kind = np.unique(signs, return_inverse=True)
    numbers = np.bincount(kind.ravel(), weights=cells.ravel())
    return {int(f): round(n) for f, n in zip(factors, numbers, strict=True) if f}


def _summed(
    lows: NDArray[np.int64],
    behind: NDArray[np.int64],
    signs: NDArray[np.int64],
    cuts: Sequence[NDArray[np.int64]],
) -> NDArray[np.int64]:
    """The sum of signs in each product of pieces: a step at each corner of a box, summed up."""
    steps = np.zeros([cut.size for cut in cuts], np.int64)
    for upper in product((False, True), repeat=len(cuts)):
        corner = np.where(upper, behind, lows)
        places = tuple(np.searchsorted(cut, corner[:, axis]) for axis, cut in enumerate(cuts))
        np.add.at(steps, places, signs * (-1) ** sum(upper))
    for axis in range(len(cuts)):
        np.cumsum(steps, axis=axis, out=steps)
    return steps[tuple(slice(cut.size - 1) for cut in cuts)]
