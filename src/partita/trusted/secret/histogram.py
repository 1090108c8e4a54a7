"""The secret of one axis: exact counts of the cells of a universe, here or elsewhere."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import changes, integer_array
from partita.errors.checks import check_data
from partita.errors.errors import InvalidData
from partita.numbers import freeze, integer
from partita.public.axis.tree.cut import Cut
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.secret.secret import Begin, Ints, Remembered, Secret, State, UInts, Work

_LARGEST_SIZE: Final = 2**64
_LARGEST_TOTAL: Final = 2**62


class AxisCounts(Secret):
    """Exact counts over cells 0, ..., size-1, wherever they are kept. Only the size is public."""

    size: int

    @abstractmethod
    def in_shards(self, work: ShardWork, *, noise: Noise) -> UInts:
        """What work(counts, shard, noise) finds in each of some public ranges of cells, in order.

        The holder splits the universe by public facts, never by counts. The counts are a histogram of the
        whole universe in which only cells of the shard are filled. Where shards are cut on other machines,
        each draws noise of its own there, and only one answer for each shard may ever be seen.
        """

    def spread(self) -> Ints:
        """The count of every cell in order, empty ones too: what `Histogram.dense` takes."""
        return self.folded(partial(_spread, self.size))

    def weigh(self, cut: Cut) -> Ints:
        """The exact weight of each segment of a cut."""
        return self.folded(partial(_weights, cut.edges, cut.start))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Histogram(AxisCounts):
    """Integer counts over cells 0, ..., size-1, stamped with what one person may contribute.

    `cells` holds the cells with a positive count, increasing. Printing a histogram shows its
    public facts only.

    >>> Histogram.from_cells([7, 3, 3], size=10)
    Histogram(size=10, contributions=1, secret)
    """

    size: int
    cells: UInts
    counts: Ints
    contributions: int = 1

    def __post_init__(self) -> None:
        size = integer(self.size, "size", low=1, high=_LARGEST_SIZE)
        contributions = integer(self.contributions, "contributions", low=1)
        cells, counts = _cells(self.cells).view(), _counts(self.counts).view()
        fix = "pass one count for each cell"
        check_data(cells.shape == counts.shape, "counts", "must be as many as cells", fix=fix)
        fix = "sort them, or use Histogram.from_cells"
        check_data(not (cells[1:] <= cells[:-1]).any(), "cells", "must be in ascending order", fix=fix)
        fix = "encode values with a Domain"
        check_data(not cells.size or int(cells[-1]) < size, "cells", "must lie in 0, ..., size-1", fix=fix)
        fix = "use Histogram.from_counts, which drops zeros"
        check_data(not cells.size or int(counts.min()) >= 1, "counts", "must be positive", fix=fix)
        cells.flags.writeable = counts.flags.writeable = False
        freeze(self, size=size, cells=cells, counts=counts, contributions=contributions)

    @staticmethod
    def from_cells(cells: ArrayLike, *, size: int, contributions: int = 1) -> Histogram:
        """Count cells given one per row, in any order."""
        return Histogram.from_sorted(np.sort(_cells(cells)), size=size, contributions=contributions)

    @staticmethod
    def from_sorted(cells: ArrayLike, *, size: int, contributions: int = 1) -> Histogram:
        """Count cells given one per row, in ascending order."""
        rows = _cells(cells)
        first = np.flatnonzero(changes(rows))
        counts = np.empty(first.size, dtype=np.int64)
        np.subtract(first[1:], first[:-1], out=counts[:-1])
        counts[-1:] = rows.size - first[-1:]
        return Histogram(size, rows[first], counts, contributions)

    @staticmethod
    def from_counts(cells: ArrayLike, counts: ArrayLike, *, size: int, contributions: int = 1) -> Histogram:
        """Counts of distinct cells in ascending order; zero counts are dropped."""
        keys, values = _cells(cells), _counts(counts)
        present = values > 0 if keys.shape == values.shape else slice(None)
        return Histogram(size, keys[present], values[present], contributions)

    @staticmethod
    def dense(counts: ArrayLike, *, contributions: int = 1) -> Histogram:
        """Counts of all cells, in order."""
        values = _counts(counts)
        cells = np.arange(values.size, dtype=np.uint64)
        return Histogram.from_counts(cells, values, size=values.size, contributions=contributions)

    def folded(self, work: Work) -> NDArray[Any]:
        """There is one block."""
        return work(self.cells, self.counts)

    def in_shards(self, work: ShardWork, *, noise: Noise) -> UInts:
        """There is one shard, the universe."""
        return work(self, range(self.size), noise)

    def descent(self, begin: Begin[State]) -> Remembered[State]:
        """A walk that remembers where it is."""
        return Remembered(begin(self.cells, self.counts))

    def within(self, start: int, stop: int) -> tuple[UInts, Ints]:
        """Cells start, ..., stop-1 and their counts."""
        integer(stop, "stop", low=integer(start, "start", low=0) + 1, high=self.size)
        low = int(np.searchsorted(self.cells, np.uint64(start)))
        high = int(np.searchsorted(self.cells, np.uint64(stop - 1), side="right"))
        return self.cells[low:high], self.counts[low:high]

    def __repr__(self) -> str:
        return f"Histogram(size={self.size}, contributions={self.contributions}, secret)"


ShardWork: TypeAlias = Callable[[Histogram, range, Noise], UInts]
"""Finds the last cell of every segment of a shard."""


def _spread(size: int, cells: UInts, counts: Ints) -> Ints:
    every = np.zeros(size, np.int64)
    every[cells.astype(np.int64)] = counts
    return every


def _weights(edges: UInts, start: int, cells: UInts, counts: Ints) -> Ints:
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    upto = before[np.searchsorted(cells, edges, side="right")]
    return np.diff(upto, prepend=before[np.searchsorted(cells, np.uint64(start))])


def _cells(cells: ArrayLike) -> UInts:
    array = _flat(cells, "cells")
    if (
        array.size
        and array.dtype != np.uint64
        and not 0 <= int(array.min()) <= int(array.max()) < _LARGEST_SIZE
    ):
        raise InvalidData("cells", "must lie in 0, ..., size-1", fix="encode values with a Domain")
    return array.astype(np.uint64, copy=False)


def _counts(counts: ArrayLike) -> Ints:
    array = _flat(counts, "counts")
    fix = "count rows, or weigh them with integers >= 0"
    check_data(not array.size or int(array.min()) >= 0, "counts", "must not be negative", fix=fix)
    rule, fix = "must add up to less than 2^62", "use a coarser unit of weight"
    check_data(float(array.astype(np.float64).sum()) < _LARGEST_TOTAL, "counts", rule, fix=fix)
    return array.astype(np.int64, copy=False)


def _flat(values: ArrayLike, name: str) -> NDArray[Any]:
    array = integer_array(values, name)
    check_data(array.ndim == 1, name, "must be a flat array", fix="pass one dimension")
    return array
