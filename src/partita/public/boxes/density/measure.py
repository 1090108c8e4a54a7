"""How counts are spread inside of boxes: along each axis by a measure, independently of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Curve, Floats, Ints, UInts

_TOLD: Final = 1e-9
"""A stretch with a smaller share of the measure is taken to be even: rounding would tell the rest."""

_ONE: Final = np.uint64(1)


class Measure(Protocol):
    """Where along an axis counts are likely to lie, as far as a release tells."""

    @property
    def curve(self) -> Curve | None:
        """Cumulative mass over all positions; None if every position is as likely as any other."""


@final
@dataclass(frozen=True)
class Even:
    """All positions of a stretch hold the same."""

    @property
    def curve(self) -> Curve | None:
        """Nothing is told about any position."""
        return None


@final
@dataclass(frozen=True, eq=False)
class Curved:
    """The positions of a stretch hold what the increments of a released curve say."""

    shape: Curve

    @cached_property
    def curve(self) -> Curve | None:
        """The curve with a total of one; None if it is nothing at all."""
        total = self.shape.total
        return Curve(self.shape.ends, self.shape.counts / total) if total > 0 else None


@final
@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches low, ..., high along one axis, and the mass before each and up to its end.

    A stretch that holds next to nothing of the measure counts by its number of positions, as all do
    if there is no measure. Positions may need all 64 bits: differences are taken before they are floats.
    """

    lows: UInts
    highs: UInts
    before: Floats | None = None
    upto: Floats | None = None

    @staticmethod
    def of(measure: Measure, lows: UInts, highs: UInts) -> Stretches:
        """The stretches as the measure sees them."""
        lows, highs, curve = np.ascontiguousarray(lows), np.ascontiguousarray(highs), measure.curve
        if curve is None:
            return Stretches(lows, highs)
        before = np.where(lows > 0, curve.upto(np.where(lows > 0, lows - _ONE, lows)), 0.0)
        return Stretches(lows, highs, before, curve.upto(highs))

    @staticmethod
    def along(measures: Sequence[Measure], lows: UInts, highs: UInts) -> tuple[Stretches, ...]:
        """The stretches of boxes, given by their corners, along each axis."""
        return tuple(Stretches.of(each, lows[:, a], highs[:, a]) for a, each in enumerate(measures))

    @cached_property
    def cells(self) -> Floats:
        """The number of positions of each."""
        return np.asarray((self.highs - self.lows).astype(np.float64) + 1.0)

    @cached_property
    def told(self) -> Floats:
        """The mass of each, or zero if that is too little to tell where in the stretch it lies."""
        if self.before is None or self.upto is None:
            return np.zeros(self.lows.size)
        mass = self.upto - self.before
        return np.where(mass > _TOLD, mass, 0.0)

    def at(self, places: Ints | slice) -> Stretches:
        """Some of them."""
        ends = (None if end is None else end[places] for end in (self.before, self.upto))
        return Stretches(self.lows[places], self.highs[places], *ends)

    def within(self, other: Stretches) -> Stretches:
        """What each has in common with one of the other stretches, which it must meet."""
        lows, highs = np.maximum(self.lows, other.lows), np.minimum(self.highs, other.highs)
        if self.before is None or other.before is None or self.upto is None or other.upto is None:
            return Stretches(lows, highs)
        before, upto = np.maximum(self.before, other.before), np.minimum(self.upto, other.upto)
        return Stretches(lows, highs, before, upto)

    def shares(self, part: Stretches) -> Floats:
        """The share of each that lies in a part of it."""
        even = part.cells / self.cells
        if part.before is None or part.upto is None:
            return np.asarray(even)
        return np.divide(np.maximum(part.upto - part.before, 0.0), self.told, out=even, where=self.told > 0)

    def overlap(self, other: Stretches) -> Floats:
        """The share of each that lies in one other stretch; nothing if they do not meet."""
        meets = (self.lows <= other.highs) & (self.highs >= other.lows)
        share = np.zeros(self.lows.size)
        met = self.at(np.flatnonzero(meets))
        share[meets] = met.shares(met.within(other))
        return share
