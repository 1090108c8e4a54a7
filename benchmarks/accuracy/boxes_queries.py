"""Questions about boxes: many corners at once, along several axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.queries import Ints, Questions
from partita import Answer, Axis, Points
from partita.arrays import Floats, UInts
from partita.public.boxes.base import BoxTerm


@dataclass(frozen=True)
class BoxQueries(Questions[Points]):
    """Boxes from the corner low to the corner high, both included: a row each, a column for each axis."""

    @classmethod
    def half_open(cls, lows: Ints, stops: Ints) -> BoxQueries:
        """The boxes low, ..., stop-1 along every axis."""
        return cls(lows.astype(np.uint64), stops.astype(np.uint64) - np.uint64(1))

    def truth(self, data: Points) -> Floats:
        """The exact counts: points are sorted along the first axis, and the others are looked through."""
        first = data.places[:, 0].copy()
        starts = np.searchsorted(first, self.lows[:, 0], side="left")
        stops = np.searchsorted(first, self.highs[:, 0], side="right")
        others = np.ascontiguousarray(data.places[:, 1:].T)
        return np.array(
            [
                inside(others[:, start:stop], low, high) @ data.counts[start:stop]
                for start, stop, low, high in zip(
                    starts, stops, self.lows[:, 1:], self.highs[:, 1:], strict=True
                )
            ],
            dtype=np.float64,
        )

    def alone(self, release: Any) -> list[Answer]:
        """What `answer` gives for each box."""
        corners = zip(self.lows.tolist(), self.highs.tolist(), strict=True)
        return [release.answer(BoxTerm(tuple(low), tuple(high))) for low, high in corners]


def inside(columns: UInts, low: UInts, high: UInts) -> NDArray[np.bool_]:
    """Which points, given axis by axis, lie between two corners."""
    found = np.ones(columns.shape[1], bool)
    for column, least, most in zip(columns, low, high, strict=True):
        found &= (column >= least) & (column <= most)
    return found


def plain_axes(sizes: Sequence[int]) -> list[Axis]:
    """Ordered axes of these sizes, without special cells."""
    return [Axis(size=size) for size in sizes]
