"""Cumulative counts along one axis of a tree of boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from partita.arrays import changes
from partita.public.axis.curve.curve import Curve, Floats
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.measure import Stretches


def along(density: Density, axis: int, mass: Floats) -> Curve:
    """Leaves that hold `mass`, in the order of their nodes, as they lie along an axis.

    Pieces end where a leaf that holds anything begins or ends, and where the measure of the axis bends.
    Only parts of counts are added up and nothing is taken away, so that nothing is lost to rounding
    however wide the axis is.
    """
    leaves = np.flatnonzero(density.nodes.leaves)
    held = _Held.of(density.stretches[axis].at(leaves), mass)
    ends = density.edges(axis, leaves[mass > 0])
    pieces = Stretches.of(density.measures[axis], Curve.empty(ends).starts, ends)
    counts = np.zeros(ends.size)
    for layer in held.layers():
        layer.spread(pieces, counts)
    return Curve(ends, counts)


class _Held(NamedTuple):
    """Different stretches of an axis, any two nested or apart, and what they hold.

    They are in the order of their lows, wide ones first.
    """

    stretches: Stretches
    mass: Floats

    @staticmethod
    def of(stretches: Stretches, mass: Floats) -> _Held:
        """Those that hold anything; what is in the same stretch is taken together."""
        some = np.flatnonzero(mass > 0)
        lows, highs = stretches.lows[some], stretches.highs[some]
        order = np.lexsort((~highs, lows))
        lows, highs = lows[order], highs[order]
        new = changes(lows, highs)
        sums = np.bincount(np.cumsum(new) - 1, mass[some[order]], minlength=int(new.sum()))
        return _Held(stretches.at(some[order[new]]), np.asarray(sums, np.float64))

    def layers(self) -> Iterator[_Held]:
        """Those that lie in equally many others: they are apart from each other."""
        ended = np.searchsorted(np.sort(self.stretches.highs), self.stretches.lows)
        depth = np.arange(self.mass.size) - ended
        for each in np.unique(depth).tolist():
            some = np.flatnonzero(depth == each)
            yield _Held(self.stretches.at(some), self.mass[some])

    def spread(self, pieces: Stretches, counts: Floats) -> None:
        """Add what stretches that are apart have in each of the pieces, none of which they cut."""
        place = np.minimum(np.searchsorted(self.stretches.highs, pieces.lows), self.mass.size - 1)
        inside = np.flatnonzero(
            (self.stretches.lows[place] <= pieces.lows) & (self.stretches.highs[place] >= pieces.highs)
        )
        whole = self.stretches.at(place[inside])
        counts[inside] += self.mass[place[inside]] * whole.shares(pieces.at(inside))
