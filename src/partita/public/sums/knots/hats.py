"""Hats: a value as whole masses on the knots around it, from which sums are exactly linear.

Between two knots k and k + gap a value v = k + x gives the mass U x / gap to the upper knot and the rest of
U to the lower one. Every row has mass U, whatever its value, so the masses of all knots together have
sensitivity U; counts, sums and sums of min(v, knot) are linear in them. Of degree 2 there is a third mass
between any two knots (Bernstein polynomials), and sums of squares are linear, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.sums.knots.knots import Knots

_FINEST: Final = 32
_MOST_BITS: Final = 40
_MOST_SQUARED: Final = 26


class Masses(NamedTuple):
    """For each value the first of the controls that it touches, and its whole mass on that and the next."""

    first: Ints
    mass: Ints


@final
@dataclass(frozen=True)
class Hats:
    """How the offsets 0, ..., 2^top are laid on the controls: the knots, and for degree 2 points between.

    The cap is m 2^e. Gaps are 3 m 2^s or m 2^s: with U = 3 m 2^32 masses are exact for every
    knot up to 2^32, and so are sums with U = 9 m^2 2^32, for degree 2. Above that they are rounded
    down, by less than two units.

    >>> hats = Hats(Knots(32))
    >>> masses = hats.laid(np.array([0, 2, 5, 32], np.int64))
    >>> masses.first.tolist(), (masses.mass * 6 // hats.unit).tolist()
    ([0, 0, 1, 2], [[6, 0], [0, 6], [3, 3], [0, 6]])
    """

    knots: Knots
    degree: int = 1

    @property
    def unit(self) -> int:
        """U, the mass of a row."""
        return mass_unit(self.knots.odd, self.degree)

    @property
    def controls(self) -> int:
        """How many numbers a row is laid on: zero, and `degree` for every other knot."""
        return self.degree * (len(self.knots) - 1) + 1

    @cached_property
    def values(self) -> Floats:
        """What a unit of mass on each control adds to the sum."""
        knots = self._knots
        if self.degree == 1:
            return knots
        return _between(knots, (knots[1:] + knots[:-1]) / 2)

    @cached_property
    def squares(self) -> Floats:
        """What a unit of mass on each control adds to the sum of squares; of degree 1, at most."""
        knots = self._knots
        if self.degree == 1:
            return knots**2
        return _between(knots**2, knots[1:] * knots[:-1])

    @property
    def rounding(self) -> float:
        """By how much at most a row's value, up to the cap, exceeds what its masses say."""
        coarse = [
            gap for gap, shift in zip(self._gaps, self._shifts.tolist(), strict=True) if shift > _FINEST
        ]
        return 2 * max(coarse, default=0) / self.unit

    @property
    def rounding_squares(self) -> float:
        """By how much at most a row's square differs from what its masses say; of degree 2."""
        twice = 2 * self.knots.cap * self.rounding
        coarse = [
            gap for gap, shift in zip(self._gaps, self._shifts.tolist(), strict=True) if 2 * shift > _FINEST
        ]
        return twice + float(max(coarse, default=0)) ** 2 * 2.0**-_MOST_SQUARED

    def laid(self, offsets: Ints) -> Masses:
        """The masses of offsets >= 0, those above the cap clamped to it: they add up to U in each row."""
        knots = np.array(self.knots.offsets, np.uint64)
        values = np.minimum(offsets.astype(np.uint64), knots[-1])
        level = np.searchsorted(knots[1:], values)
        above, shift = values - knots[level], self._shifts[level]
        thirds = self._thirds[level]
        factor = (3 * self.knots.odd) ** (self.degree - 1) * thirds
        upper = _scaled(above, shift, factor)
        if self.degree == 1:
            return Masses(level, np.stack([self.unit - upper, upper], axis=1))
        square = np.clip(_squared(above, shift, thirds), np.maximum(2 * upper - self.unit, 0), upper)
        mass = np.stack([self.unit - 2 * upper + square, 2 * (upper - square), square], axis=1)
        return Masses(2 * level, mass)

    @property
    def _knots(self) -> Floats:
        return np.array([float(knot) for knot in self.knots.offsets])

    @property
    def _gaps(self) -> list[int]:
        knots = self.knots.offsets
        return [high - low for low, high in pairwise(knots)]

    @property
    def _shifts(self) -> Ints:
        """s for every gap: m 2^s, or three times that."""
        shifts = self.knots.shifts
        return np.array([shifts[0], *shifts[:-1]])

    @property
    def _thirds(self) -> Ints:
        """How often each gap goes into 3 m 2^s: three times, or once."""
        return np.array([3, *(3 if high - low == 1 else 1 for low, high in pairwise(self.knots.shifts))])


def mass_unit(odd: int, degree: int) -> int:
    """U, the mass of a row, for caps that are this odd number times a power of two."""
    return int((3 * odd) ** degree) << _FINEST


def _between(knots: Floats, inner: Floats) -> Floats:
    """The knots with a number between any two."""
    merged = np.empty(2 * knots.size - 1)
    merged[::2], merged[1::2] = knots, inner
    return merged


def _scaled(above: NDArray[np.uint64], shift: Ints, factor: Ints) -> Ints:
    """Factor times above 2^32 / 2^shift, rounded down where that is no integer; nothing overflows."""
    spare = np.maximum(shift - _MOST_BITS, 0)
    reduced = (above >> spare.astype(np.uint64)).astype(np.int64)
    return _shifted(reduced * factor, _FINEST - (shift - spare))


def _squared(above: NDArray[np.uint64], shift: Ints, thirds: Ints) -> Ints:
    """U (above / gap)^2, rounded down where that is no integer; gaps are cut to 31 bits."""
    spare = np.maximum(shift - _MOST_SQUARED, 0)
    reduced = (above >> spare.astype(np.uint64)).astype(np.int64)
    return _shifted(reduced**2 * thirds**2, _FINEST - 2 * (shift - spare))


def _shifted(values: Ints, by: Ints) -> Ints:
    """Times 2^by, rounded down."""
    return np.asarray((values << np.maximum(by, 0)) >> np.maximum(-by, 0))
