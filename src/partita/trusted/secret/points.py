"""The secret of several columns together: exact counts of distinct points, here or elsewhere."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import changes, integer_array
from partita.domain.axis import Axis, checked_axes
from partita.errors.checks import check, check_data
from partita.errors.errors import InvalidData
from partita.numbers import freeze, integer
from partita.trusted.secret.histogram import AxisCounts, Histogram
from partita.trusted.secret.secret import Begin, Ints, Remembered, Secret, State, UInts, Work

_LARGEST_TOTAL: Final = 2**62
_MOST_GATHERED: Final = 2**20


class PointCounts(Secret):
    """How many rows are at each point, wherever that is kept. The axes are public."""

    axes: tuple[Axis, ...]

    @abstractmethod
    def alone(self, axis: int) -> PointCounts:
        """The same rows along one axis."""

    @abstractmethod
    def along(self, axis: int) -> AxisCounts:
        """The rows in ordinary cells of one axis, by cell."""

    def spread(self) -> Ints:
        """The count of every point, empty ones too: an array with a dimension for each axis."""
        return self.folded(partial(_spread, tuple(axis.width for axis in self.axes)))

    def gathered(self) -> Points:
        """All of them here, where the axes have so few cells that there is room for every one."""
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
@dataclass(frozen=True, eq=False, repr=False)
class Points(PointCounts):
    """How many rows are at each point, stamped with what one person may contribute.

    `places` has a row for each distinct point and a column for each axis: positions as `Axis` counts them,
    special cells included. Points are in ascending order, first axis first, and have positive
    counts. Printing shows public facts only.

    >>> Points.from_rows([[3, 1], [0, 1], [3, 1]], axes=[Axis(size=4), Axis(size=2)]).counts.tolist()
    [1, 2]
    """

    axes: tuple[Axis, ...]
    places: NDArray[np.uint64]
    counts: NDArray[np.int64]
    contributions: int = 1

    def __post_init__(self) -> None:
        axes = checked_axes(self.axes)
        places, counts = _places(self.places, axes).view(), _counts(self.counts).view()
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
        places = _places(rows, checked_axes(axes))
        times = np.ones(len(places), np.int64) if counts is None else _flat(counts)
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
        """A walk that remembers where it is."""
        return Remembered(begin(self.places, self.counts))

    def alone(self, axis: int) -> Points:
        """Counted anew."""
        return Points.from_rows(
            self.places[:, [axis]],
            axes=[self.axes[axis]],
            counts=self.counts,
            contributions=self.contributions,
        )

    def along(self, axis: int) -> Histogram:
        """Counted anew, without special cells."""
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


def _spread(widths: tuple[int, ...], places: UInts, counts: Ints) -> Ints:
    every = np.zeros(widths, np.int64)
    every[tuple(places.T.astype(np.int64))] = counts
    return every


def _places(places: ArrayLike, axes: tuple[Axis, ...]) -> NDArray[np.uint64]:
    array = integer_array(places, "places")
    if array.size == 0:
        return np.zeros((0, len(axes)), np.uint64)
    rule, fix = "must have a column for each axis", "pass a row for each point"
    check_data(array.ndim == 2 and array.shape[1] == len(axes), "places", rule, fix=fix)
    if bool((array < 0).any()) or any(int(array[:, a].max()) >= axis.width for a, axis in enumerate(axes)):
        raise InvalidData("places", "must lie on their axes", fix="encode values with a Domain")
    return array.astype(np.uint64, copy=False)


def _flat(counts: ArrayLike) -> NDArray[np.int64]:
    array = integer_array(counts, "counts")
    rule, fix = "must be a flat array of counts >= 0", "count rows"
    check_data(array.ndim == 1 and (not array.size or int(array.min()) >= 0), "counts", rule, fix=fix)
    rule, fix = "must add up to less than 2^62", "use a coarser unit of weight"
    check_data(float(array.astype(np.float64).sum()) < _LARGEST_TOTAL, "counts", rule, fix=fix)
    return array.astype(np.int64, copy=False)


def _counts(counts: ArrayLike) -> NDArray[np.int64]:
    array = _flat(counts)
    fix = "use Points.from_rows, which drops zeros"
    check_data(not array.size or int(array.min()) >= 1, "counts", "must be positive", fix=fix)
    return array


def _ascending(places: NDArray[np.uint64]) -> bool:
    later, earlier = places[1:], places[:-1]
    differs = later != earlier
    rows, first = np.arange(len(later)), differs.argmax(axis=1) if len(later) else np.zeros(0, np.int64)
    return bool((later[rows, first] > earlier[rows, first]).all())
