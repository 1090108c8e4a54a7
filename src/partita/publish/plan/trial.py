"""Many ranges, or boxes, asked of a release of public data, and how far each answer lies from the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, Protocol, final

import numpy as np

from partita.domain.axis import Axis
from partita.public.axis.base.ranges import Ranges
from partita.public.axis.curve.curve import Bools, Floats, UInts
from partita.public.boxes.base.boxes import Boxes
from partita.trusted.secret.histogram import Histogram
from partita.trusted.secret.points import Points

_BITS: Final = 64
_WORD: Final = 2**_BITS


class Ends(NamedTuple):
    """The lowest and the highest cells of many ranges, or corners of many boxes."""

    lows: UInts
    highs: UInts

    @classmethod
    def between(cls, one: UInts, other: UInts) -> Ends:
        """From the lower of two cells to the higher, along each axis."""
        return cls(np.minimum(one, other), np.maximum(one, other))


class Trial(Protocol):
    """A release of public data beside its exact counts."""

    def ends(self, count: int) -> Mapping[str, Ends]:
        """So many ranges that end anywhere, and so many that end at values, if there are any."""

    def misses(self, ends: Ends) -> Floats:
        """How far each answer lies from the exact count."""


@final
@dataclass(frozen=True)
class ColumnTrial:
    """The ranges of one column."""

    axis: Ranges
    histogram: Histogram

    def ends(self, count: int) -> Mapping[str, Ends]:
        """Ranges of cells, and ranges from a value to a value."""
        cells = self.histogram.cells
        found = {"anywhere": Ends.between(*_spread(count, self.axis.size, self.axis.size))}
        if cells.size:
            one, other = _spread(count, cells.size, cells.size)
            found["values"] = Ends.between(cells[one], cells[other])
        return found

    def misses(self, ends: Ends) -> Floats:
        """Against the running sums of the exact counts."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.histogram.counts)])
        upto = before[np.searchsorted(self.histogram.cells, ends.highs, side="right")]
        exact = upto - before[np.searchsorted(self.histogram.cells, ends.lows)]
        return np.asarray(np.abs(self.axis.counts(*ends) - exact))


@final
@dataclass(frozen=True)
class BoxTrial:
    """The boxes of several columns."""

    boxes: Boxes
    points: Points

    def ends(self, count: int) -> Mapping[str, Ends]:
        """Boxes of ordinary cells, and boxes spanned by two of the points that lie in such cells."""
        axes = self.boxes.axes
        corners = _spread(count, *(axis.size for axis in axes), *(axis.size for axis in axes))
        starts = np.array([axis.before for axis in axes], np.uint64)
        halves = np.stack(corners[: len(axes)], axis=1), np.stack(corners[len(axes) :], axis=1)
        found = {"anywhere": Ends.between(halves[0] + starts, halves[1] + starts)}
        ordinary = self.points.places[_ordinary(self.points.places, axes)]
        if len(ordinary):
            one, other = _spread(count, len(ordinary), len(ordinary))
            found["values"] = Ends.between(ordinary[one], ordinary[other])
        return found

    def misses(self, ends: Ends) -> Floats:
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
