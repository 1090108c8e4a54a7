"""The segments that the axes of a release were cut into: which of them boxes touch, and which they cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Ints, UInts
from partita.public.boxes.plan.nodes import Corners

_ONE: Final = np.uint64(1)


@final
@dataclass(frozen=True, eq=False)
class Segments:
    """The last position of each segment, increasing, along every axis.

    >>> segments = Segments((np.array([2, 3, 9], np.uint64),))
    >>> box = np.array([[1]], np.uint64), np.array([[5]], np.uint64)
    >>> [ends.tolist() for ends in segments.touched(*box)], [cut.tolist() for cut in segments.cut(*box)]
    ([[[0]], [[2]]], [[[True]], [[True]]])
    """

    edges: tuple[UInts, ...]

    @cached_property
    def starts(self) -> tuple[UInts, ...]:
        """The first position of each segment."""
        return tuple(np.concatenate([np.zeros(1, np.uint64), edges[:-1] + _ONE]) for edges in self.edges)

    @cached_property
    def wide(self) -> tuple[Bools, ...]:
        """Which segments have several positions, and so can be cut by a box."""
        return tuple(edges > starts for edges, starts in zip(self.edges, self.starts, strict=True))

    def touched(self, lows: Corners, highs: Corners) -> tuple[Ints, Ints]:
        """The first and the last segment along each axis that have a position in common with each box."""
        return self._located(lows), self._located(highs)

    def cut(self, lows: Corners, highs: Corners) -> tuple[Bools, Bools]:
        """Whether the first and the last of these have positions outside of the box: of its low, high end."""
        firsts, lasts = self.touched(lows, highs)
        return _taken(self.starts, firsts) < lows, _taken(self.edges, lasts) > highs

    def inside(self, lows: Corners, highs: Corners) -> tuple[Ints, Ints]:
        """The first and the last segment along each axis that lie in each box; there may be none."""
        (firsts, lasts), (cut_first, cut_last) = self.touched(lows, highs), self.cut(lows, highs)
        return firsts + cut_first, lasts - cut_last

    def boxes(self, firsts: Ints, lasts: Ints) -> tuple[Corners, Corners]:
        """The corners of boxes of segments."""
        return _taken(self.starts, firsts), _taken(self.edges, lasts)

    def _located(self, corners: Corners) -> Ints:
        found = [np.searchsorted(edges, corners[:, axis]) for axis, edges in enumerate(self.edges)]
        return np.stack(found, axis=1)


def _taken(positions: tuple[UInts, ...], segments: Ints) -> Corners:
    """The position that belongs to each segment along each axis."""
    return np.stack([each[segments[:, axis]] for axis, each in enumerate(positions)], axis=1)
