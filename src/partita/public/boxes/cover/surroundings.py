"""What lies around the boxes of a density: how full the cells next to them are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from partita.domain.axis import Axis
from partita.public.axis.curve.curve import Floats, Ints, UInts
from partita.public.boxes.cover.cover import summed
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.measure import Stretches
from partita.public.boxes.plan.nodes import Corners, volumes

_ONE = np.uint64(1)


class _Room(NamedTuple):
    """By how many cells boxes may be moved down and up along an axis: no further than they are wide."""

    down: UInts
    up: UInts


@final
@dataclass(frozen=True, eq=False)
class Surroundings:
    """The cells around some nodes of a density, as far on every side as each node is wide.

    Labels and special cells have no cells beside them: their order means nothing.
    """

    density: Density
    axes: tuple[Axis, ...]
    nodes: Ints

    def expected(self) -> Floats:
        """The count of each node if it were as full as the cells around it; NaN where there are none."""
        lows, highs = self._corners
        wide = [self._room(axis) for axis in range(len(self.axes))]
        outer = (
            lows - np.stack([room.down for room in wide], axis=1),
            highs + np.stack([room.up for room in wide], axis=1),
        )
        own, all_ = volumes(lows, highs), volumes(*outer)
        around = np.maximum(0.0, _counted(self.density, *outer) - self.density.held.values[self.nodes])
        there = np.any([(room.down > 0) | (room.up > 0) for room in wide], axis=0)
        fullness = np.divide(around, all_ - own, out=np.full(own.size, np.nan), where=there & (all_ > own))
        return np.asarray(fullness * own)

    def beside(self, axis: int) -> tuple[Floats, Floats]:
        """The counts of each node if it were as full as the cells below, and above, along one axis.

        At the end of the axis that is the node's own count.
        """
        room = self._room(axis)
        lows, highs = self._corners
        below, above = lows.copy(), highs.copy()
        below[:, axis] -= room.down
        above[:, axis] += room.up
        under, over = highs.copy(), lows.copy()
        under[:, axis] = np.where(room.down > 0, lows[:, axis] - _ONE, highs[:, axis])
        over[:, axis] = np.where(room.up > 0, highs[:, axis] + _ONE, lows[:, axis])
        return self._as_full_as(below, under), self._as_full_as(over, above)

    @property
    def _corners(self) -> tuple[Corners, Corners]:
        return self.density.nodes.lows[self.nodes], self.density.nodes.highs[self.nodes]

    def _room(self, axis: int) -> _Room:
        line = self.axes[axis]
        lows, highs = (corners[:, axis] for corners in self._corners)
        first, last = np.uint64(line.before), np.uint64(line.before + line.size - 1)
        ordered = (lows >= first) & (highs <= last) & (not line.labels)
        width, none = highs - lows + _ONE, np.uint64(0)
        return _Room(
            np.where(ordered, np.minimum(width, np.where(ordered, lows - first, none)), none),
            np.where(ordered, np.minimum(width, np.where(ordered, last - highs, none)), none),
        )

    def _as_full_as(self, lows: Corners, highs: Corners) -> Floats:
        own = volumes(*self._corners)
        return _counted(self.density, lows, highs) * (own / volumes(lows, highs))


def _counted(density: Density, lows: Corners, highs: Corners) -> Floats:
    """The count of each box."""
    return summed(density, Stretches.along(density.measures, lows, highs)).values
