"""A solved tree over two axes as a table of cumulative counts: for many boxes at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.public.axis.curve.curve import Curve, Floats, Ints, UInts
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.measure import Stretches
from partita.public.boxes.plan.runs import blocks, runs

_MOST_CELLS: Final = 2**22
_BLOCK: Final = 2**20


@final
@dataclass(frozen=True, eq=False)
class Plane:
    """Counts before each pair of edges; between edges of either axis they are evenly spread.

    Edges are where a leaf begins or ends, and where the measure of the axis bends.
    """

    first: Curve
    second: Curve
    before: Floats

    @staticmethod
    def of(density: Density) -> Plane | None:
        """The table of a tree over two axes; None if it would be too large."""
        leaves = np.flatnonzero(density.nodes.leaves & (density.held.values > 0))
        first, second = (Curve.empty(density.edges(axis, leaves)) for axis in (0, 1))
        if first.ends.size * second.ends.size > _MOST_CELLS:
            return None
        table = np.zeros((first.ends.size, second.ends.size))
        axes = [_Runs.of(density, axis, leaves, curve) for axis, curve in enumerate((first, second))]
        for leaf, row, column in _cells(*axes):
            share = axes[0].shares(leaf, row) * axes[1].shares(leaf, column)
            held = share * density.held.values[leaves[leaf]]
            table += np.bincount(row * table.shape[1] + column, held, minlength=table.size).reshape(
                table.shape
            )
        before = np.zeros((table.shape[0] + 1, table.shape[1] + 1))
        before[1:, 1:] = table.cumsum(axis=0).cumsum(axis=1)
        return Plane(first, second, before)

    def counts(self, boxes: Sequence[Stretches]) -> Floats:
        """The value of each box."""
        (left, right), (bottom, top) = (
            (_Place.before(curve, box.lows), _Place.upto(curve, box.highs))
            for curve, box in zip((self.first, self.second), boxes, strict=True)
        )
        outer = self._at(right, top) - self._at(left, top)
        return np.maximum(outer - (self._at(right, bottom) - self._at(left, bottom)), 0.0)

    def _at(self, one: _Place, other: _Place) -> Floats:
        low = self._row(one.piece, other)
        return np.asarray(low + one.share * (self._row(one.piece + 1, other) - low))

    def _row(self, row: Ints, other: _Place) -> Floats:
        low = self.before[row, other.piece]
        return np.asarray(low + other.share * (self.before[row, other.piece + 1] - low))


@final
@dataclass(frozen=True, eq=False)
class _Place:
    """A place on an axis: the piece in which it lies, and the share of that before it."""

    piece: Ints
    share: Floats

    @staticmethod
    def upto(curve: Curve, positions: UInts) -> _Place:
        """Behind each position."""
        piece = np.searchsorted(curve.ends, positions)
        cells = (positions - curve.starts[piece]).astype(np.float64) + 1.0
        return _Place(piece, cells / curve.widths[piece])

    @staticmethod
    def before(curve: Curve, positions: UInts) -> _Place:
        """In front of each position."""
        piece = np.searchsorted(curve.ends, positions)
        return _Place(piece, (positions - curve.starts[piece]).astype(np.float64) / curve.widths[piece])


@final
@dataclass(frozen=True, eq=False)
class _Runs:
    """Leaves along one axis, each a run of pieces."""

    first: Ints
    count: Ints
    leaves: Stretches
    pieces: Stretches

    @staticmethod
    def of(density: Density, axis: int, leaves: Ints, curve: Curve) -> _Runs:
        own = density.stretches[axis].at(leaves)
        first, last = np.searchsorted(curve.ends, own.lows), np.searchsorted(curve.ends, own.highs)
        pieces = Stretches.of(density.measures[axis], curve.starts, curve.ends)
        return _Runs(first, last - first + 1, own, pieces)

    def shares(self, leaf: Ints, piece: Ints) -> Floats:
        """The share of each leaf that lies in a piece of it."""
        return self.leaves.at(leaf).shares(self.pieces.at(piece))


def _cells(rows: _Runs, columns: _Runs) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Every leaf with every cell of the table in it, some at a time."""
    sizes = rows.count * columns.count
    for some in blocks(sizes, _BLOCK):
        leaf = np.repeat(np.arange(some.start, some.stop), sizes[some])
        at = runs(np.zeros(some.stop - some.start, np.int64), sizes[some])
        row, column = np.divmod(at, columns.count[leaf])
        yield leaf, rows.first[leaf] + row, columns.first[leaf] + column
