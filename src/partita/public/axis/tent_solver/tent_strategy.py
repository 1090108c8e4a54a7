"""Tents: overlapping triangular sums of units, level upon level, instead of a tree.

Level 0 is the units themselves. A tent of level l is a bump over the nodes of the level below: each of
those gives its count to its two neighbouring tents, in parts that add up to one. So every level counts
everybody once, and one person changes a level by exactly one in L1 norm. The parts are multiples of
2^-8, so level l is a vector of integers in units of 2^-8l.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Floats

GRAIN_BITS: Final = 8
GRAIN: Final = 1 << GRAIN_BITS
SHARE_UNITS: Final = 2**20
MOST_LEVELS: Final = 5

_LIMB_BITS: Final = 24
_MOST_NODES: Final = 2**22
_FEWEST_NODES: Final = 3

_PLANS: Final = (
    (20, (), (1.0,)),
    (400, ((0.7, 1 / 2),), (0.5, 0.5)),
    (12_000, ((0.78, 2 / 3), (0.65, 1 / 3)), (0.37, 0.32, 0.31)),
    (300_000, ((0.65, 3 / 4), (0.55, 1 / 2), (0.45, 1 / 4)), (0.27, 0.25, 0.24, 0.24)),
    (None, ((0.65, 4 / 5), (0.6, 3 / 5), (0.55, 2 / 5), (0.5, 1 / 5)), (0.2, 0.21, 0.2, 0.2, 0.19)),
)
"""Up to how many units k, (c, p) for c k^p tents on each level, and the levels' shares of epsilon."""


@final
@dataclass(frozen=True, eq=False)
class TentLevel:
    """Tents over the nodes of the level below.

    Node i below gives right[i] / 2^8 of its count to the tent left[i] + 1 and the rest to the tent
    left[i]. `left` does not decrease, and every tent but the last is a left one.
    """

    tents: int
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    @staticmethod
    def over(below: int, tents: int) -> TentLevel:
        """`tents` >= 2 tents over `below` >= tents nodes, by integer arithmetic alone.

        Node i has its centre at i + 1/2; tent j has its top at (j + 1/4) s, s = below / (tents - 1/2),
        and the first and the last are flat outside of their tops.
        """
        centre = 2 * np.arange(below, dtype=np.int64) + 1
        place = (GRAIN * (centre * (2 * tents - 1) - below) + 2 * below) // (4 * below)
        place = np.clip(place, 0, GRAIN * (tents - 1))
        left = np.minimum(place >> GRAIN_BITS, tents - 2)
        return TentLevel(tents, left, place - (left << GRAIN_BITS))

    def exact(self, values: NDArray[Any]) -> NDArray[np.object_]:
        """The tents of integers, as integers in units 2^-8 times theirs.

        Sums of 64-bit integers are taken in two halves that cannot overflow: at most 2^30 values, of
        less than 2^62 together.
        """
        high, low = values >> _LIMB_BITS, values & ((1 << _LIMB_BITS) - 1)
        return np.asarray((self._sums(high).astype(object) << _LIMB_BITS) + self._sums(low).astype(object))

    def down(self, values: Floats) -> Floats:
        """The tents of values along the last axis."""
        whole, right = self.by_left(values), self.by_left(values * self.weights)
        tents = np.zeros((*values.shape[:-1], self.tents))
        tents[..., :-1] = whole - right
        tents[..., 1:] += right
        return tents

    def up(self, tents: Floats) -> Floats:
        """The transpose of `down`."""
        steps = tents[..., 1:] - tents[..., :-1]
        return np.asarray(tents[..., self.left] + self.weights * steps[..., self.left])

    def by_left(self, values: Floats) -> Floats:
        """Sums along the last axis of the values of nodes with the same left tent."""
        return np.asarray(np.add.reduceat(values, self.firsts, axis=-1))

    def _sums(self, values: NDArray[Any]) -> NDArray[Any]:
        sums = np.zeros(self.tents, dtype=values.dtype)
        np.add.at(sums, self.left, values * (GRAIN - self.right))
        np.add.at(sums, self.left + 1, values * self.right)
        return sums

    @cached_property
    def weights(self) -> Floats:
        """The part that each node below gives to its right tent."""
        return self.right / float(GRAIN)

    @cached_property
    def firsts(self) -> NDArray[np.intp]:
        """The first node below of each left tent."""
        return np.searchsorted(self.left, np.arange(self.tents - 1))


@final
@dataclass(frozen=True, eq=False)
class TentStrategy:
    """The levels of tents over `units` units and each level's share of epsilon; shares add up to one."""

    units: int
    levels: tuple[TentLevel, ...]
    shares: tuple[Fraction, ...]

    @staticmethod
    def over(sizes: tuple[int, ...], shares: tuple[Fraction, ...]) -> TentStrategy:
        """The strategy with that many nodes on each level, units first."""
        levels = tuple(TentLevel.over(below, tents) for below, tents in pairwise(sizes))
        return TentStrategy(sizes[0], levels, shares)

    def exact(self, units: NDArray[np.int64]) -> list[NDArray[Any]]:
        """The integers to measure on each level; level l in units of 2^-8l."""
        measured: list[NDArray[Any]] = [units]
        for level in self.levels:
            measured.append(level.exact(measured[-1]))
        return measured

    def down(self, units: Floats) -> Floats:
        """All tents of the units, level after level in one vector."""
        rows, values = [], units
        for level in self.levels:
            values = level.down(values)
            rows.append(values)
        return np.concatenate(rows, axis=-1)

    def up(self, rows: Floats) -> Floats:
        """The transpose of `down`."""
        stops = np.cumsum([level.tents for level in self.levels])
        carried: Floats | float = 0.0
        for level, stop in zip(reversed(self.levels), reversed(stops.tolist()), strict=True):
            carried = level.up(rows[..., stop - level.tents : stop] + carried)
        return np.asarray(carried)


def planned(units: int) -> tuple[tuple[int, ...], tuple[Fraction, ...]]:
    """How many nodes each level gets, units first, and its share: a public function of the number of units.

    >>> planned(256)
    ((256, 11), (Fraction(1, 2), Fraction(1, 2)))
    """
    powers, shares = next((p, s) for most, p, s in _PLANS if most is None or units <= most)
    tents = (min(_MOST_NODES, max(_FEWEST_NODES, round(c * units**power))) for c, power in powers)
    return (units, *tents), _exact_shares(shares)


def _exact_shares(shares: tuple[float, ...]) -> tuple[Fraction, ...]:
    """The shares in whole units that add up to one; level 0 takes what rounding leaves."""
    above = [round(share * SHARE_UNITS) for share in shares[1:]]
    return tuple(Fraction(part, SHARE_UNITS) for part in (SHARE_UNITS - sum(above), *above))
