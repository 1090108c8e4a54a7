"""Cumulative counts along an axis of cells: monotone, linear inside pieces, exact positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property

Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
UInts: TypeAlias = NDArray[np.uint64]

_ONE = np.uint64(1)


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """Pieces of the cells 0, ..., ends[-1] and a count >= 0 for each, spread evenly inside.

    `ends` holds the last cell of each piece, increasing. Cells may need all 64 bits, so positions
    inside a piece are differences of integers, made floats last.

    >>> curve = Curve(np.array([3, 9], np.uint64), np.array([8.0, 0.0]))
    >>> curve.upto(np.array([0, 3, 9], np.uint64)).tolist(), curve.between(np.uint64(1), np.uint64(5)).item()
    ([2.0, 8.0, 8.0], 6.0)
    """

    ends: UInts
    counts: Floats

    @staticmethod
    def empty(ends: UInts) -> Curve:
        """Pieces with nothing in them: for questions about their cells alone."""
        return Curve(ends, np.zeros(ends.size))

    @cached_property
    def starts(self) -> UInts:
        """The first cell of each piece."""
        return np.concatenate([np.zeros(1, np.uint64), self.ends[:-1] + _ONE])

    @cached_property
    def widths(self) -> Floats:
        """The number of cells of each piece."""
        return (self.ends - self.starts).astype(np.float64) + 1.0

    @cached_property
    def before(self) -> Floats:
        """The count before each piece, and of all pieces at the end."""
        return np.concatenate([np.zeros(1), np.cumsum(self.counts)])

    @property
    def total(self) -> float:
        """The count of all cells."""
        return float(self.before[-1])

    def upto(self, cells: UInts) -> Floats:
        """The count of the cells 0, ..., cell, for each cell; looked up in order, which is faster."""
        order = np.argsort(cells, axis=None)
        found = np.empty(order.size)
        found[order] = self._upto(np.ravel(cells)[order])
        return found.reshape(np.shape(cells))

    def between(self, lows: UInts, highs: UInts) -> Floats:
        """The count of the cells low, ..., high, for each pair."""
        below = np.where(lows > 0, self.upto(np.where(lows > 0, lows - _ONE, lows)), 0.0)
        return np.asarray(self.upto(highs) - below)

    def _upto(self, cells: UInts) -> Floats:
        piece = np.searchsorted(self.ends, cells)
        share = ((cells - self.starts[piece]).astype(np.float64) + 1.0) / self.widths[piece]
        return np.asarray(self.before[piece] + share * self.counts[piece])
