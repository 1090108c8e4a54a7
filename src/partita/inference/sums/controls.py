"""The rows of level trees: null, invalid, zero, and the controls of both sides; what each row counts for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.inference.curve import Bools, Floats, Ints, UInts
from partita.inference.sums.answers import Covers
from partita.inference.sums.buckets import Tops
from partita.inference.sums.hats import Hats, mass_unit
from partita.inference.sums.knots import Knots
from partita.inference.sums.value_line import ValueLine

__all__ = ["Controls", "Reach", "Side"]

_NULL, _INVALID, _ZERO = 0, 1, 2
_LIMB: Final = 18
_SAFE: Final = 2.5


class Side(NamedTuple):
    """Values are covered up to a knot; rows beyond are clipped to it, or left out."""

    knots: int
    clipped: bool


class Reach(NamedTuple):
    """How both sides are covered."""

    up: Side
    down: Side


@final
@dataclass(frozen=True)
class Controls:
    """What is counted for every part: rows without a number, and masses on the controls of both sides.

    `values` and `squares` say what a unit of mass adds to sums of offsets and of their squares.
    """

    line: ValueLine
    tops: Tops
    degree: int

    @property
    def unit(self) -> int:
        """The mass of a row."""
        cap = self.tops.up or self.tops.down
        return mass_unit(Knots(cap).odd if cap else 1, self.degree)

    @property
    def size(self) -> int:
        """The number of rows."""
        return 3 + self._above + self._below

    @cached_property
    def up(self) -> Hats | None:
        """The hats above the origin."""
        return self._hats(self.tops.up)

    @cached_property
    def down(self) -> Hats | None:
        """The hats below the origin."""
        return self._hats(self.tops.down)

    @cached_property
    def values(self) -> Floats:
        """The offset of each row."""
        return self._laid_out("values", -1.0)

    @cached_property
    def squares(self) -> Floats:
        """The square that each row stands for."""
        return self._laid_out("squares", 1.0)

    @property
    def rounding(self) -> float:
        """By how much a row's offset, up to the caps, can exceed what its masses say, away from zero."""
        return max((hats.rounding for hats in (self.up, self.down) if hats), default=0.0)

    @property
    def rounding_squares(self) -> float:
        """By how much a row's squared offset can differ from what its masses say."""
        return max((hats.rounding_squares for hats in (self.up, self.down) if hats), default=0.0)

    def summed(self, parts: Ints, places: UInts, counts: Ints, number: int) -> NDArray[Any]:
        """The whole mass of every row in each of `number` parts, exactly, as Python ints."""
        low, high = np.zeros((2, self.size * number), np.int64)
        for row, mass, chosen in self._masses(places):
            cell = row * number + parts[chosen]
            np.add.at(low, cell, (mass & ((1 << _LIMB) - 1)) * counts[chosen])
            np.add.at(high, cell, (mass >> _LIMB) * counts[chosen])
        exact = (high.astype(object) << _LIMB) + low.astype(object)
        return np.asarray(exact.reshape(self.size, number))

    def chosen(self, found: Floats, deviations: Floats, weights: Floats, clear: Bools) -> Reach:
        """How to cover each side: where the sum, less 2.5 deviations of its noise, is largest.

        `found` holds the estimate of every row, with its deviation, `weights` what a row adds, and `clear`
        says which rows hold something over all keys: nothing beyond is covered.
        """
        sizes = np.abs(weights)
        return Reach(*(self._side(rows, found, deviations, sizes, clear) for rows in self._sides))

    def weighed(self, reach: Reach, weights: Floats) -> Floats:
        """What every row adds where the sides are covered like that."""
        covered = np.where(np.arange(self.size) == _ZERO, weights, 0.0)
        for rows, side in zip(self._sides, reach, strict=True):
            covered[rows] = self._along(rows, side, weights)
        return covered

    @property
    def ones(self) -> Floats:
        """What each row adds to the number of rows that hold numbers."""
        return self.numbers.astype(np.float64)

    @property
    def numbers(self) -> Bools:
        """The rows that hold numbers."""
        return np.arange(self.size) >= _ZERO

    @property
    def nulls(self) -> Bools:
        """The rows that hold none."""
        return ~self.numbers

    @property
    def choices(self) -> int:
        """In how many ways values can be covered."""
        return (1 + self._above // self.degree) ** 2 * (1 + self._below // self.degree) ** 2

    def covers(self, reach: Reach) -> Covers:
        """The values that are covered, as numbers."""
        line, ends, whole = self.line, [], []
        for hats, length, side in ((self.down, line.down, reach.down), (self.up, line.up, reach.up)):
            cap = hats.knots.offsets[side.knots] if hats else 0
            ends.append(min(cap, length))
            whole.append(cap >= length)
        clipped = all(side.clipped or full for side, full in zip((reach.down, reach.up), whole, strict=True))
        return Covers(line.number(-ends[0]), line.number(ends[1]), everything=all(whole), clamped=clipped)

    def _side(self, rows: Ints, found: Floats, deviations: Floats, weights: Floats, clear: Bools) -> Side:
        """The best of all ways to cover one side: up to any knot that may be, clipped there or not."""
        seen = clear[rows[self.degree - 1 :: self.degree]]
        last = int(np.flatnonzero(seen).max(initial=-1)) + 1
        ways = [*(Side(knots, clipped=False) for knots in range(last + 1)), Side(last, clipped=True)]
        worth = []
        for way in ways:
            covered = self._along(rows, way, weights)
            worth.append(covered @ found[rows] - _SAFE * np.sqrt(covered**2 @ deviations[rows] ** 2))
        return ways[int(np.argmax(worth))]

    def _along(self, rows: Ints, side: Side, weights: Floats) -> Floats:
        """What the rows of one side add."""
        inside = self.degree * side.knots
        last = weights[rows[inside - 1]] if inside else weights[_ZERO]
        beyond = np.full(rows.size - inside, last if side.clipped else 0.0)
        return np.concatenate([weights[rows[:inside]], beyond])

    @property
    def _sides(self) -> tuple[Ints, Ints]:
        """The rows of the controls above zero, in ascending order, of each side."""
        first = 3 + self._above
        return np.arange(3, first), np.arange(first, self.size)

    @property
    def _above(self) -> int:
        return self.up.controls - 1 if self.up else 0

    @property
    def _below(self) -> int:
        return self.down.controls - 1 if self.down else 0

    def _hats(self, top: int | None) -> Hats | None:
        return None if top is None else Hats(Knots(top, fine=True), self.degree)

    def _laid_out(self, name: str, sign: float) -> Floats:
        sides = [getattr(hats, name)[1:] if hats else np.zeros(0) for hats in (self.up, self.down)]
        return np.concatenate([np.zeros(3), sides[0], sign * sides[1]])

    def _masses(self, places: UInts) -> list[tuple[Ints, Ints, Bools]]:
        """Rows and masses of the chosen among the places: those without a number, then of each side."""
        offsets, invalid, null = self.line.offsets(places), self.line.invalid(places), self.line.null(places)
        absent, number = invalid | null, ~(invalid | null)
        none = np.where(null[absent], _NULL, _INVALID)
        found = [(none, np.full(none.size, self.unit), absent)]
        for hats, first, side in (
            (self.up, 3, number & (offsets >= 0)),
            (self.down, 3 + self._above, number & (offsets < 0)),
        ):
            found += [(row, mass, side) for row, mass in self._of_side(hats, first, np.abs(offsets[side]))]
        return found

    def _of_side(self, hats: Hats | None, first: int, offsets: Ints) -> list[tuple[Ints, Ints]]:
        """Rows and masses of the offsets on one side; without hats, all count as zero."""
        if hats is None:
            return [(np.full(offsets.size, _ZERO), np.full(offsets.size, self.unit))]
        control, mass = hats.laid(offsets)
        rows = control[:, np.newaxis] + np.arange(self.degree + 1)
        rows = np.where(rows == 0, _ZERO, rows + first - 1)
        return list(zip(rows.T, mass.T, strict=True))
