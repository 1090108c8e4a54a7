"""Ranges of values as ranges of cells: clipped to the axis, with open ends, closed on either side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.checks import check
from partita.conditions import Closed
from partita.domain import Encoded
from partita.inference.curve import UInts

__all__ = ["Bools", "Spans", "spans"]

Bools: TypeAlias = NDArray[np.bool_]

_LOW_SIDES: Final = np.array([0, -1, 1, 0, -2, 0], np.int8)
_HIGH_SIDES: Final = np.array([0, -1, 1, 0, 2, 0], np.int8)
"""Where an end lies by the code of its `Special`: on the axis 0, below -1, above 1, open 2 beyond all."""
_ZERO: Final = np.uint64(0)
_UP: Final = np.uint64(1)
_DOWN: Final = np.uint64(2**64 - 1)
"""One cell on, and one cell back: cells are added modulo 2^64."""


@final
@dataclass(frozen=True, eq=False)
class Spans:
    """The cells lows, ..., highs of an axis, unless `empty`; `below`, `above`: which ends are open.

    Where a span is empty, its cells are 0..0 and mean nothing.
    """

    lows: UInts
    highs: UInts
    empty: Bools
    below: Bools
    above: Bools

    def __len__(self) -> int:
        return len(self.lows)


def spans(low: Encoded, high: Encoded, *, size: int, closed: Closed, name: str, given: object) -> Spans:
    """The cells from each low end to each high end of the column `name`; an end that is NULL is open.

    >>> from partita.domain import Integer
    >>> ages = Integer(0, 120)
    >>> low, high = ages.encode([-5, 30, None]), ages.encode([9, 39, 17])
    >>> found = spans(low, high, size=121, closed="left", name="age", given="ages")
    >>> found.lows.tolist(), found.highs.tolist(), found.below.tolist()
    ([0, 30, 0], [8, 38, 16], [False, False, True])
    """
    first, last = _LOW_SIDES[low.special], _HIGH_SIDES[high.special]
    lows, highs = low.cells, np.where(last == 0, high.cells, np.uint64(size - 1))
    _check_order((first > last) | ((first == 0) & (lows > highs)), name, given)
    empty = (first == 1) | (last == -1)
    if closed in ("right", "neither"):
        lows, empty = _moved(lows, _UP, first == 0, empty, outermost=size - 1)
    if closed in ("left", "neither"):
        highs, empty = _moved(highs, _DOWN, last == 0, empty, outermost=0)
    empty = empty | (lows > highs)
    return Spans(np.where(empty, _ZERO, lows), np.where(empty, _ZERO, highs), empty, first == -2, last == 2)


def _moved(
    cells: UInts, step: np.uint64, on_axis: Bools, empty: Bools, *, outermost: int
) -> tuple[UInts, Bools]:
    """Ends that lie on the axis moved inwards by a cell; a span that had no other cell is empty."""
    stuck = on_axis & (cells == outermost)
    return np.where(on_axis & ~stuck, cells + step, cells), empty | stuck


def _check_order(backwards: Bools, name: str, given: object) -> None:
    check(not backwards.any(), name, "must go from low to high", given=given, fix="swap the two ends")
