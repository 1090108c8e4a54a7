"""Trials of a plan on PUBLIC data: many questions asked of a release, and how far each answer is off.

Ranges of one column and boxes of several; of a table labels, and cells and boxes of two columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Final, NamedTuple, Protocol, final

import numpy as np

from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.public.axis.base import AxisRelease
from partita.public.boxes.base import BoxRelease
from partita.trusted.secret import Histogram, Points

_BITS: Final = 64
_WORD: Final = 2**_BITS
_FEWEST_OF_A_PAIR: Final = 4  # questions of each pair of a table of many columns


class RangeEnds(NamedTuple):
    """The lowest and the highest cells of many ranges, or corners of many boxes."""

    lows: UInts
    highs: UInts

    @classmethod
    def between(cls, one: UInts, other: UInts) -> RangeEnds:
        """From the lower of two cells to the higher, along each axis."""
        return cls(np.minimum(one, other), np.maximum(one, other))


class SimulationTrial(Protocol):
    """A release of public data beside its exact counts."""

    def ends(self, count: int) -> Mapping[str, RangeEnds]:
        """So many ranges that end anywhere, and so many that end at values, if there are any."""

    def misses(self, ends: RangeEnds) -> Floats:
        """How far each answer lies from the exact count."""


@final
@dataclass(frozen=True)
class ColumnTrial:
    """The ranges of one column."""

    axis: AxisRelease
    histogram: Histogram

    def ends(self, count: int) -> Mapping[str, RangeEnds]:
        """Ranges of cells, and ranges from a value to a value."""
        cells = self.histogram.cells
        found = {"anywhere": RangeEnds.between(*_spread(count, self.axis.size, self.axis.size))}
        if cells.size:
            one, other = _spread(count, cells.size, cells.size)
            found["values"] = RangeEnds.between(cells[one], cells[other])
        return found

    def misses(self, ends: RangeEnds) -> Floats:
        """Against the running sums of the exact counts."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.histogram.counts)])
        upto = before[np.searchsorted(self.histogram.cells, ends.highs, side="right")]
        exact = upto - before[np.searchsorted(self.histogram.cells, ends.lows)]
        return np.asarray(np.abs(self.axis.counts(*ends) - exact))


@final
@dataclass(frozen=True)
class BoxTrial:
    """The boxes of several columns."""

    boxes: BoxRelease
    points: Points

    def ends(self, count: int) -> Mapping[str, RangeEnds]:
        """Boxes of ordinary cells, and boxes spanned by two of the points that lie in such cells."""
        axes = self.boxes.axes
        corners = _spread(count, *(axis.size for axis in axes), *(axis.size for axis in axes))
        starts = np.array([axis.before for axis in axes], np.uint64)
        halves = np.stack(corners[: len(axes)], axis=1), np.stack(corners[len(axes) :], axis=1)
        found = {"anywhere": RangeEnds.between(halves[0] + starts, halves[1] + starts)}
        ordinary = self.points.places[_ordinary(self.points.places, axes)]
        if len(ordinary):
            one, other = _spread(count, len(ordinary), len(ordinary))
            found["values"] = RangeEnds.between(ordinary[one], ordinary[other])
        return found

    def misses(self, ends: RangeEnds) -> Floats:
        """Against the points inside each box."""
        exact = np.array([self._inside(low, high) for low, high in zip(*ends, strict=True)])
        return np.asarray(np.abs(self.boxes.counts(*ends) - exact))

    def _inside(self, low: UInts, high: UInts) -> int:
        """How many rows are in a box; points are in order along the first axis."""
        first = self.points.places[:, 0]
        near = slice(np.searchsorted(first, low[0]), np.searchsorted(first, high[0], side="right"))
        places = self.points.places[near]
        inside = ((places >= low) & (places <= high)).all(axis=1)
        return int(self.points.counts[near][inside].sum())


@final
@dataclass(frozen=True)
class TableTrial:
    """The labels, cells of two columns and boxes of two columns of a table."""

    boxes: BoxRelease
    points: Points

    def misses(self, count: int) -> Iterator[tuple[tuple[int, ...], str, Floats]]:
        """About `count` questions of each kind: the columns, the kind, and how far each answer lies off."""
        number, axes = len(self.boxes.axes), self.boxes.axes
        for column in range(number):
            yield (column,), "labels", self._miss((column,), self._cells((column,), count))
            ends = RangeEnds.between(*_spread(count, *(2 * [axes[column].size])))
            yield (column,), "ranges", self._miss((column,), RangeEnds(*(each[:, None] for each in ends)))
        pairs = list(combinations(range(number), 2))
        each = max(_FEWEST_OF_A_PAIR, count // len(pairs))
        for pair in pairs:
            yield pair, "cells", self._miss(pair, self._cells(pair, each))
            sizes = [axes[column].size for column in pair]
            one, two, three, four = _spread(each, *sizes, *sizes)
            corners = np.stack([one, two], axis=1), np.stack([three, four], axis=1)
            yield pair, "boxes", self._miss(pair, RangeEnds.between(*corners))

    def _cells(self, columns: tuple[int, ...], count: int) -> RangeEnds:
        """Ordinary cells of some columns: all of them, or evenly spread ones."""
        sizes = [self.boxes.axes[column].size for column in columns]
        if len(sizes) == 1 and sizes[0] <= count:
            cells = np.arange(sizes[0], dtype=np.uint64)[:, None]
        else:
            cells = np.stack(_spread(count, *sizes), axis=1)
        return RangeEnds(cells, cells)

    def _miss(self, columns: tuple[int, ...], ends: RangeEnds) -> Floats:
        """How far each answer lies off, if only these columns are constrained."""
        lows = np.zeros((len(ends.lows), len(self.boxes.axes)), np.uint64)
        highs = np.array([[axis.width - 1 for axis in self.boxes.axes]] * len(lows), np.uint64)
        for place, column in enumerate(columns):
            before = np.uint64(self.boxes.axes[column].before)
            lows[:, column], highs[:, column] = ends.lows[:, place] + before, ends.highs[:, place] + before
        places, counts = self._projected(columns)
        asked = zip(lows[:, columns], highs[:, columns], strict=True)
        exact = [int(counts[((places >= low) & (places <= high)).all(axis=1)].sum()) for low, high in asked]
        return np.asarray(np.abs(self.boxes.counts(lows, highs) - np.array(exact)))

    def _projected(self, columns: tuple[int, ...]) -> tuple[UInts, Ints]:
        """The points on these columns only, those that are alike put together."""
        places, which = np.unique(self.points.places[:, columns], axis=0, return_inverse=True)
        counts = np.zeros(len(places), np.int64)
        np.add.at(counts, which.ravel(), self.points.counts)
        return places, counts


def _ordinary(places: UInts, axes: tuple[Axis, ...]) -> Bools:
    """Which points lie in no special cell."""
    lows = np.array([axis.before for axis in axes], np.uint64)
    highs = np.array([axis.before + axis.size - 1 for axis in axes], np.uint64)
    return np.asarray(((places >= lows) & (places <= highs)).all(axis=1))


def _spread(count: int, *sizes: int) -> list[UInts]:
    """For each size a row of numbers below it; together they spread evenly over all combinations."""
    return [
        np.array([(turn * stride % _WORD) * size // _WORD for turn in range(1, count + 1)], dtype=np.uint64)
        for stride, size in zip(_strides(len(sizes)), sizes, strict=True)
    ]


@cache
def _strides(dimensions: int) -> tuple[int, ...]:
    """2^64 / g, 2^64 / g^2, ... with g^(d+1) = g + 1: multiples of these spread evenly in d dimensions."""
    low, high = _WORD, 2 * _WORD
    while high - low > 1:
        middle = (low + high) // 2
        below = middle ** (dimensions + 1) < (middle + _WORD) * _WORD**dimensions
        low, high = (middle, high) if below else (low, middle)
    return tuple(_WORD ** (power + 1) // low**power for power in range(1, dimensions + 1))
