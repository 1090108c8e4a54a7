"""Values along a column of a table: pieces of it, and what each bin adds to sums and counts of values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Bools, Floats, UInts
from partita.public.bounds import noise_variance
from partita.public.boxes.grid import CellGrid
from partita.public.sums.base import ValueLine
from partita.public.tables.sides import ColumnReader, Runs

_TOTAL_DOUBT: Final = 2.0  # times the variance of the number of rows: trees among the views shrink theirs
FOLLOWED: Final = 1.44
"""Times the variance of independent noise: bins follow the noise of views. Set as in `sums`."""
_EMPTY: Final = 1e-9
_ONE: Final = np.uint64(1)


@final
@dataclass(frozen=True, eq=False)
class ValuePieces:
    """Runs of positions of a column: bin, estimated rows, values, and whether each piece is summed.

    `middles` is the mean of the values of a piece, and `deviations` their standard deviation if they are
    spread evenly. Special cells have no value and are never summed.
    """

    starts: UInts
    ends: UInts
    bins: NDArray[np.intp]
    rows: Floats
    middles: Floats
    deviations: Floats
    inside: Bools

    @staticmethod
    def of(reader: ColumnReader, line: ValueLine, runs: Runs) -> ValuePieces:
        """The column cut so that a piece is in one bin and in a run as a whole; cell by cell if cells are."""
        axis = reader.view.axes[0]
        first, last = axis.before, axis.before + axis.size - 1
        ends = _find_ends(reader, [first - 1, last, *(low - 1 for low, _, _ in runs), *(r[1] for r in runs)])
        starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1] + _ONE])
        step, cells = float(line.step), (ends - starts).astype(np.float64) + 1.0
        offset = starts.astype(np.float64) - first + (cells - 1.0) / 2
        ordinary = (starts >= np.uint64(first)) & (ends <= np.uint64(last))
        asked = np.zeros(ends.size, np.bool_)
        for low, high, _ in runs:
            asked |= (starts >= np.uint64(low)) & (ends <= np.uint64(high))
        return ValuePieces(
            starts,
            ends,
            reader.bins.of(ends),
            reader.curve.between(starts, ends),
            np.where(ordinary, (float(line.low) + offset) * step, 0.0),
            np.where(ordinary, np.sqrt((cells**2 - 1.0) / 12) * step, 0.0),
            ordinary & asked,
        )

    def variances(self, reader: ColumnReader) -> Floats:
        """The variance of the noisy count of each piece, by the view.

        A tree shrinks what noise hides, and its errors with it, which long tails exceed. So no piece has a
        smaller one than half of the pieces that are clearly there.
        """
        if isinstance(reader.view, CellGrid):
            return np.full(self.ends.size, noise_variance(reader.view.law))
        errors = reader.view.errors(self.starts[:, None], self.ends[:, None])
        clear = errors[self.rows > errors]
        usual = float(np.median(clear) if clear.size else errors.max())
        return np.asarray(np.maximum(errors, usual) ** 2)

    def parts(self, number: int) -> Floats:
        """The part of the rows of its bin in each piece; pieces of an empty bin have parts by their cells."""
        cells = (self.ends - self.starts).astype(np.float64) + 1.0
        held = np.bincount(self.bins, self.rows, number)[self.bins]
        even = cells / np.bincount(self.bins, cells, number)[self.bins]
        return np.asarray(np.where(held > _EMPTY, self.rows / np.maximum(held, _EMPTY), even))


def _find_ends(reader: ColumnReader, cuts: Iterable[int]) -> UInts:
    """The last positions of pieces; a grid has each position for itself."""
    width = reader.bins.width
    if isinstance(reader.view, CellGrid):
        return np.arange(width, dtype=np.uint64)
    there = np.array([cut for cut in cuts if 0 <= cut < width], np.uint64)
    edges = reader.bins.spans[1]
    return np.unique(np.concatenate([reader.curve.ends, edges, there])).astype(np.uint64)


@final
@dataclass(frozen=True, eq=False)
class BinSums:
    """What the bins of a column add to a sum of values and to the count of these values.

    `values` and `counted` have estimates, which are not projected on anything but the total of all rows.
    `parts`, `means` and `squares` are moments of what a row of each bin adds, along the curve.
    """

    values: BinWeights
    counted: BinWeights
    parts: Floats
    means: Floats
    squares: Floats

    @staticmethod
    def of(reader: ColumnReader, pieces: ValuePieces, total: Answer) -> BinSums:
        """The sums of the pieces that are summed; `total` is the number of all rows."""
        number, bins, share = reader.bins.number, pieces.bins, pieces.parts(reader.bins.number)
        value = np.where(pieces.inside, pieces.middles, 0.0)
        inside = pieces.inside.astype(np.float64)
        deviation = np.where(pieces.inside, pieces.deviations, 0.0)
        moments = (inside, value, value**2 + deviation**2)
        parts, means, squares = (_sum_bins(bins, share * each, number) for each in moments)
        one, other = (BinWeights.of(reader, pieces, weights, share, total) for weights in (value, inside))
        return BinSums(one, other, parts, means, squares)

    @property
    def spreads(self) -> Floats:
        """The standard deviation inside of each bin, of what its rows add."""
        inner = self.squares - self.means**2 / np.maximum(self.parts, _EMPTY)
        return np.sqrt(np.maximum(inner, 0.0))


@final
@dataclass(frozen=True, eq=False)
class BinWeights:
    """Sums of weights times noisy counts, bin by bin: a mean weight times the count of the bin, and a rest.

    All tables tell about the count of a bin, but only the view about how it is divided. If the mean weight
    is one over cells, the noise of the two parts is independent. Counts of bins add up to all rows, so that
    their noise is less than independent: `known` is the part of the noise of their sum that this removes.
    """

    reader: ColumnReader
    pieces: ValuePieces
    level: Floats
    rest: Floats
    noise: Floats
    sums: Floats
    known: float

    @staticmethod
    def of(
        reader: ColumnReader, pieces: ValuePieces, weights: Floats, share: Floats, total: Answer
    ) -> BinWeights:
        """Weights of pieces, which have these shares of their bins."""
        number, bins, view = reader.bins.number, pieces.bins, reader.view
        grid = view if isinstance(view, CellGrid) else None
        level = _sum_bins(bins, weights * (share if grid is None else _even(bins, number)), number)
        rest = weights - level[bins]
        beside = 0.0 if grid is None else np.bincount(bins, rest * grid.noisy.astype(np.float64), number)
        whole = float(reader.variances.sum())
        missing = total.value - float(reader.combined.sum())
        counts = reader.combined + reader.variances * (missing / whole)
        known = max(0.0, 1.0 - _TOTAL_DOUBT * total.error**2 / whole)
        return BinWeights(
            reader, pieces, level, rest, pieces.variances(reader), level * counts + beside, known
        )

    def covariance(self, other: BinWeights, parts: Floats) -> float:
        """The covariance of two sums over bins, each bin times a part."""
        variances = self.reader.variances
        inner = np.bincount(self.pieces.bins, self.rest * other.rest * self.noise, parts.size)
        one, two = self.level * parts, other.level * parts
        removed = float(one @ variances) * float(two @ variances) / float(variances.sum())
        return FOLLOWED * (float(parts**2 @ inner + (one * two) @ variances) - self.known * removed)


def _sum_bins(bins: NDArray[np.intp], weights: Floats, number: int) -> Floats:
    return np.bincount(bins, weights, number).astype(np.float64)


def _even(bins: NDArray[np.intp], number: int) -> Floats:
    return np.asarray(1.0 / np.bincount(bins, minlength=number)[bins])
