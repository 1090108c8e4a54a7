"""Exact counts of cells or points, here or on other machines, and the questions that mechanisms may ask."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import Bools, Ints, UInts, changes, integer_array
from partita.domain.axis import Axis, check_axes
from partita.domain.text import Text
from partita.errors import InvalidData, check, check_arguments, check_data, check_type
from partita.numbers import freeze, integer
from partita.public.axis.tree import Cut
from partita.public.boxes.bins import AxisBins
from partita.trusted.noise.system import Noise
from partita.trusted.tables import AxisSets, check_sets, count_tables, split_tables

State = TypeVar("State")

Work: TypeAlias = Callable[[UInts, Ints], NDArray[Any]]
"""A sum over the cells or points of a block and their counts."""

Begin: TypeAlias = Callable[[UInts, Ints], State]
"""The state of a walk in a block before its first step."""

_LARGEST_SIZE: Final = 2**64
_LARGEST_TOTAL: Final = 2**62  # sums of counts, and noisy ones, stay within 64 bits
_MOST_GATHERED: Final = 2**20  # cells whose counts fit in the memory of one machine


class Secret(ABC):
    """Exact counts of distinct cells of an axis, or of distinct points, here or on other machines.

    Counts lie in blocks: each cell or point is in one block, and they ascend in it. The number of blocks and
    their contents are up to the holder: no mechanism can see them.
    """

    contributions: int
    """How many rows one person may have."""

    @abstractmethod
    def folded(self, work: Work) -> NDArray[Any]:
        """The sum of work(cells or points, counts) over all blocks.

        `work` holds public and released numbers only, so that it may travel. It returns integers, of 64 bits
        or Python's, in an array of the same shape for every block, for an empty one too.
        """

    @property
    def total(self) -> int:
        """The number of rows."""
        return int(self.folded(_total)[0])

    def descent(self, begin: Begin[State]) -> Descent[State]:
        """A walk over all blocks, which begins with begin(cells or points, counts) in each."""
        return Replayed(self, begin)


class Descent(ABC, Generic[State]):
    """A walk over a secret, step by step, where released numbers decide every step.

    Each block has a state. A step turns it into the next state, and a fold reads it.
    """

    @abstractmethod
    def go(self, step: Callable[[State], State]) -> None:
        """Take the same step in every block."""

    @abstractmethod
    def folded(self, work: Callable[[State], NDArray[Any]]) -> NDArray[Any]:
        """The sum of work(state) over all blocks."""


@final
class Remembered(Descent[State]):
    """A walk over one block on this machine: its state is stored."""

    def __init__(self, state: State) -> None:
        self._state = state

    def go(self, step: Callable[[State], State]) -> None:
        """Take the step now."""
        self._state = step(self._state)

    def folded(self, work: Callable[[State], NDArray[Any]]) -> NDArray[Any]:
        """Read the state."""
        return work(self._state)


@final
class Replayed(Descent[State]):
    """A walk over blocks on other machines: each fold repeats all steps, and nothing is stored there."""

    def __init__(self, secret: Secret, begin: Begin[State]) -> None:
        self._secret, self._begin = secret, begin
        self._steps: list[Callable[[State], State]] = []

    def go(self, step: Callable[[State], State]) -> None:
        """Store the step."""
        self._steps.append(step)

    def folded(self, work: Callable[[State], NDArray[Any]]) -> NDArray[Any]:
        """Walk through every block, and read its state."""
        return self._secret.folded(partial(_replay, self._begin, tuple(self._steps), work))


def _replay(
    begin: Begin[State],
    steps: tuple[Callable[[State], State], ...],
    work: Callable[[State], NDArray[Any]],
    items: UInts,
    counts: Ints,
) -> NDArray[Any]:
    """A walk through one block: a top-level function, so that it can travel to other machines."""
    return work(reduce(lambda state, step: step(state), steps, begin(items, counts)))


def _total(items: UInts, counts: Ints) -> Ints:
    return np.array([counts.sum()])


class AxisCounts(Secret):
    """Exact counts over cells 0, ..., size-1, here or on other machines. Only the size is public."""

    size: int

    @abstractmethod
    def in_shards(self, work: ShardWork, *, noise: Noise) -> UInts:
        """The results of work(counts, shard, noise) for public ranges of cells, in order.

        The holder splits the universe by public parameters, never by counts. The counts are a histogram of
        the whole universe with the counts of the shard only. On other machines each shard draws its own
        noise there, and only one answer for each shard may ever be seen.
        """

    def spread(self) -> Ints:
        """The count of every cell in order, empty ones too: the input of `Histogram.dense`."""
        return self.folded(partial(_spread_cells, self.size))

    def weigh(self, cut: Cut) -> Ints:
        """The exact weight of each segment of a cut."""
        return self.folded(partial(_weights, cut.edges, cut.start))


@final
@check_arguments
@dataclass(frozen=True, eq=False, repr=False)
class Histogram(AxisCounts):
    """Integer counts over cells 0, ..., size-1, with the number of rows that one person may have.

    `cells` holds the cells with a positive count, increasing. Printing a histogram shows its
    public parameters only.

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
        cells, counts = _check_cells(self.cells).view(), _check_counts(self.counts).view()
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
        return Histogram.from_sorted(np.sort(_check_cells(cells)), size=size, contributions=contributions)

    @staticmethod
    def from_sorted(cells: ArrayLike, *, size: int, contributions: int = 1) -> Histogram:
        """Count cells given one per row, in ascending order."""
        rows = _check_cells(cells)
        first = np.flatnonzero(changes(rows))
        counts = np.empty(first.size, dtype=np.int64)
        np.subtract(first[1:], first[:-1], out=counts[:-1])
        counts[-1:] = rows.size - first[-1:]
        return Histogram(size, rows[first], counts, contributions)

    @staticmethod
    def from_counts(cells: ArrayLike, counts: ArrayLike, *, size: int, contributions: int = 1) -> Histogram:
        """Counts of distinct cells in ascending order; zero counts are dropped."""
        keys, values = _check_cells(cells), _check_counts(counts)
        present = values > 0 if keys.shape == values.shape else slice(None)
        return Histogram(size, keys[present], values[present], contributions)

    @staticmethod
    def dense(counts: ArrayLike, *, contributions: int = 1) -> Histogram:
        """Counts of all cells, in order."""
        values = _check_counts(counts)
        cells = np.arange(values.size, dtype=np.uint64)
        return Histogram.from_counts(cells, values, size=values.size, contributions=contributions)

    def folded(self, work: Work) -> NDArray[Any]:
        """There is one block."""
        return work(self.cells, self.counts)

    def in_shards(self, work: ShardWork, *, noise: Noise) -> UInts:
        """There is one shard, the universe."""
        return work(self, range(self.size), noise)

    def descent(self, begin: Begin[State]) -> Remembered[State]:
        """A walk that stores its state."""
        return Remembered(begin(self.cells, self.counts))

    def within(self, start: int, stop: int) -> tuple[UInts, Ints]:
        """Cells start, ..., stop-1 and their counts."""
        integer(stop, "stop", low=integer(start, "start", low=0) + 1, high=self.size)
        low = int(np.searchsorted(self.cells, np.uint64(start)))
        high = int(np.searchsorted(self.cells, np.uint64(stop - 1), side="right"))
        return self.cells[low:high], self.counts[low:high]

    def __repr__(self) -> str:
        return f"Histogram(size={self.size}, contributions={self.contributions}, secret)"


@final
@check_arguments
@dataclass(frozen=True, eq=False, repr=False)
class NameCounts(AxisCounts):
    """How many rows have each text of a `Text` column; its cells are wider than 64 bits.

    `words` has a row for each distinct text, as `Text` encodes it, in ascending order. Printing shows public
    parameters only.

    >>> from partita.domain.text import Text
    >>> NameCounts.from_texts(["Rome", "Bari", "Rome"], Text(24)).counts.tolist()
    [1, 2]
    """

    text: Text
    words: UInts
    counts: Ints
    contributions: int = 1

    def __post_init__(self) -> None:
        check_type(self.text, Text, "text", "must be a domain of text", fix="pass Text(max_bytes=24)")
        words, counts = integer_array(self.words, "words").view(), _check_counts(self.counts).view()
        fits = words.ndim == 2 and words.shape == (counts.size, self.text.words) and words.dtype == np.uint64
        check_data(
            fits, "words", "must be encoded texts, one for each count", fix="use NameCounts.from_texts"
        )
        fix = "use NameCounts.from_texts"
        check_data(_ascending(words), "words", "must be distinct and in ascending order", fix=fix)
        check_data(not counts.size or int(counts.min()) >= 1, "counts", "must be positive", fix=fix)
        words.flags.writeable = counts.flags.writeable = False
        contributions = integer(self.contributions, "contributions", low=1)
        freeze(self, words=words, counts=counts, contributions=contributions)

    @staticmethod
    def from_texts(values: object, text: Text, *, contributions: int = 1) -> NameCounts:
        """Count texts given one per row; what is null or other is left out."""
        encoded = text.encode(values)
        words = encoded.cells[encoded.special == 0]
        distinct, counts = np.unique(words, axis=0, return_counts=True)
        return NameCounts(text, distinct, counts.astype(np.int64), contributions)

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of cells of the universe."""
        return self.text.size

    def folded(self, work: Work) -> NDArray[Any]:
        """There is one block."""
        return work(self.words, self.counts)

    def in_shards(self, work: ShardWork, *, noise: Noise) -> UInts:
        """Cells are too wide for a `Histogram` of a shard."""
        raise InvalidData("data", "must be a Histogram", fix="use the mechanism of names")

    def items(self) -> tuple[list[int], list[int]]:
        """The cell of each text, ascending, and its count, as Python integers."""
        return self.text.cells_of(self.words), self.counts.tolist()

    @staticmethod
    def places(words: UInts, among: UInts) -> tuple[Ints, Bools]:
        """Where each text stands among distinct ascending ones, and whether it is one of these."""
        both = np.concatenate([among, words])
        order = np.lexsort(both.T[::-1])
        group = np.cumsum(changes(*both[order].T)) - 1
        groups = np.empty(len(both), np.int64)
        groups[order] = group
        place = np.full(int(group[-1]) + 1 if group.size else 0, -1, np.int64)
        place[groups[: len(among)]] = np.arange(len(among))
        found = place[groups[len(among) :]]
        return np.maximum(found, 0), found >= 0

    def __repr__(self) -> str:
        return f"NameCounts({self.text!r}, contributions={self.contributions}, secret)"


ShardWork: TypeAlias = Callable[[Histogram, range, Noise], UInts]
"""Finds the last cell of every segment of a shard."""


def _spread_cells(size: int, cells: UInts, counts: Ints) -> Ints:
    every = np.zeros(size, np.int64)
    every[cells.astype(np.int64)] = counts
    return every


def _weights(edges: UInts, start: int, cells: UInts, counts: Ints) -> Ints:
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    upto = before[np.searchsorted(cells, edges, side="right")]
    return np.diff(upto, prepend=before[np.searchsorted(cells, np.uint64(start))])


def _check_cells(cells: ArrayLike) -> UInts:
    array = integer_array(cells, "cells")
    check_data(array.ndim == 1, "cells", "must be a flat array", fix="pass one dimension")
    if array.size and array.dtype != np.uint64:
        fits = 0 <= int(array.min()) <= int(array.max()) < _LARGEST_SIZE
        check_data(fits, "cells", "must lie in 0, ..., size-1", fix="encode values with a Domain")
    return array.astype(np.uint64, copy=False)


def _check_counts(counts: ArrayLike) -> Ints:
    array = integer_array(counts, "counts")
    check_data(array.ndim == 1, "counts", "must be a flat array", fix="pass one dimension")
    fix = "count rows, or weigh them with integers >= 0"
    check_data(not array.size or int(array.min()) >= 0, "counts", "must not be negative", fix=fix)
    rule, fix = "must add up to less than 2^62", "use a coarser unit of weight"
    check_data(float(array.astype(np.float64).sum()) < _LARGEST_TOTAL, "counts", rule, fix=fix)
    return array.astype(np.int64, copy=False)


class PointCounts(Secret):
    """How many rows are at each point, here or on other machines. The axes are public."""

    axes: tuple[Axis, ...]

    @abstractmethod
    def alone(self, axis: int) -> PointCounts:
        """The same rows along one axis."""

    @abstractmethod
    def along(self, axis: int) -> AxisCounts:
        """The rows in ordinary cells of one axis, by cell."""

    def spread(self) -> Ints:
        """The count of every point, empty ones too: an array with a dimension for each axis."""
        return self.folded(partial(_spread_points, tuple(axis.width for axis in self.axes)))

    def tables(self, sets: AxisSets, bins: Sequence[AxisBins]) -> list[Ints]:
        """The exact number of rows in each combination of bins, for each set of axes.

        A table is an array with a dimension for each axis of its set. `bins` has the bins of all axes. The
        rows are read once for the whole list.

        >>> points = Points.from_rows([[3, 1], [0, 1], [3, 1]], axes=[Axis(size=4), Axis(size=2)])
        >>> halves = AxisBins.from_edges([1, 3])
        >>> [table.tolist() for table in points.tables([(0,), (0, 1)], [halves, AxisBins.identity(2)])]
        [[1, 2], [[0, 1], [0, 2]]]
        """
        shapes = check_sets(sets, bins, self.axes)
        return split_tables(self.folded(partial(count_tables, tuple(map(tuple, sets)), tuple(bins))), shapes)

    def gathered(self) -> Points:
        """All points on this machine, if the axes have few enough cells."""
        cells = math.prod(axis.width for axis in self.axes)
        rule = f"must have at most {_MOST_GATHERED} cells to be gathered from a cluster"
        fix = "choose coarser domains or fewer columns"
        check(cells <= _MOST_GATHERED, "points", rule, given=cells, fix=fix)
        every = self.spread()
        there = np.argwhere(every)
        return Points.from_rows(
            there, axes=self.axes, counts=every[every > 0], contributions=self.contributions
        )


@final
@check_arguments
@dataclass(frozen=True, eq=False, repr=False)
class Points(PointCounts):
    """How many rows are at each point, with the number of rows that one person may have.

    `places` has a row for each distinct point and a column for each axis: positions on its `Axis`,
    special cells included. Points are in ascending order, first axis first, and have positive
    counts. Printing shows public parameters only.

    >>> Points.from_rows([[3, 1], [0, 1], [3, 1]], axes=[Axis(size=4), Axis(size=2)]).counts.tolist()
    [1, 2]
    """

    axes: tuple[Axis, ...]
    places: NDArray[np.uint64]
    counts: NDArray[np.int64]
    contributions: int = 1

    def __post_init__(self) -> None:
        axes = check_axes(self.axes)
        places, counts = _check_places(self.places, axes).view(), _check_point_counts(self.counts).view()
        fix = "use Points.from_rows, which drops zeros"
        check_data(not counts.size or int(counts.min()) >= 1, "counts", "must be positive", fix=fix)
        fix = "pass one count for each point"
        check_data(len(places) == len(counts), "counts", "must be as many as points", fix=fix)
        fix = "use Points.from_rows"
        check_data(_ascending(places), "places", "must be distinct and in ascending order", fix=fix)
        places.flags.writeable = counts.flags.writeable = False
        contributions = integer(self.contributions, "contributions", low=1)
        freeze(self, axes=axes, places=places, counts=counts, contributions=contributions)

    @staticmethod
    def from_rows(
        rows: ArrayLike, *, axes: Sequence[Axis], counts: ArrayLike | None = None, contributions: int = 1
    ) -> Points:
        """Count points given one per row, in any order; `counts` says how many times each row counts."""
        places = _check_places(rows, check_axes(axes))
        times = np.ones(len(places), np.int64) if counts is None else _check_point_counts(counts)
        fix = "pass one count for each row"
        check_data(len(times) == len(places), "counts", "must be as many as rows", fix=fix)
        order = np.lexsort(places.T[::-1])
        places, times = places[order], times[order]
        first = np.flatnonzero(changes(*places.T))
        sums = np.add.reduceat(times, first) if first.size else times
        there = sums > 0
        return Points(tuple(axes), places[first][there], sums[there], contributions)

    def folded(self, work: Work) -> NDArray[Any]:
        """There is one block."""
        return work(self.places, self.counts)

    def descent(self, begin: Begin[State]) -> Remembered[State]:
        """A walk that stores its state."""
        return Remembered(begin(self.places, self.counts))

    def alone(self, axis: int) -> Points:
        """Counted again."""
        return Points.from_rows(
            self.places[:, [axis]],
            axes=[self.axes[axis]],
            counts=self.counts,
            contributions=self.contributions,
        )

    def along(self, axis: int) -> Histogram:
        """Counted again, without special cells."""
        line = self.axes[axis]
        cells, place = np.unique(self.places[:, axis] - np.uint64(line.before), return_inverse=True)
        counts = np.zeros(cells.size, np.int64)
        np.add.at(counts, place, self.counts)
        inside = cells < np.uint64(line.size)
        return Histogram(line.size, cells[inside], counts[inside], self.contributions)

    def gathered(self) -> Points:
        """They are here."""
        return self

    def __repr__(self) -> str:
        return f"Points({len(self.axes)} axes, contributions={self.contributions}, secret)"


def _spread_points(widths: tuple[int, ...], places: UInts, counts: Ints) -> Ints:
    every = np.zeros(widths, np.int64)
    every[tuple(places.T.astype(np.int64))] = counts
    return every


def _check_places(places: ArrayLike, axes: tuple[Axis, ...]) -> NDArray[np.uint64]:
    array = integer_array(places, "places")
    if array.size == 0:
        return np.zeros((0, len(axes)), np.uint64)
    rule, fix = "must have a column for each axis", "pass a row for each point"
    check_data(array.ndim == 2 and array.shape[1] == len(axes), "places", rule, fix=fix)
    if bool((array < 0).any()) or any(int(array[:, a].max()) >= axis.width for a, axis in enumerate(axes)):
        raise InvalidData("places", "must lie on their axes", fix="encode values with a Domain")
    return array.astype(np.uint64, copy=False)


def _check_point_counts(counts: ArrayLike) -> NDArray[np.int64]:
    array = integer_array(counts, "counts")
    rule, fix = "must be a flat array of counts >= 0", "count rows"
    check_data(array.ndim == 1 and (not array.size or int(array.min()) >= 0), "counts", rule, fix=fix)
    rule, fix = "must add up to less than 2^62", "use a coarser unit of weight"
    check_data(float(array.astype(np.float64).sum()) < _LARGEST_TOTAL, "counts", rule, fix=fix)
    return array.astype(np.int64, copy=False)


def _ascending(places: NDArray[np.uint64]) -> bool:
    later, earlier = places[1:], places[:-1]
    differs = later != earlier
    rows, first = np.arange(len(later)), differs.argmax(axis=1) if len(later) else np.zeros(0, np.int64)
    return bool((later[rows, first] > earlier[rows, first]).all())
