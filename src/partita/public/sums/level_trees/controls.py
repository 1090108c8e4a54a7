"""The rows of level trees: null, invalid, zero, and the controls of both sides; what each row counts for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats, Ints, UInts
from partita.public.sums.base.covers import Covers, End
from partita.public.sums.base.value_line import ValueLine
from partita.public.sums.knots.buckets import Tops
from partita.public.sums.knots.hats import Hats, mass_unit
from partita.public.sums.knots.knots import Knots

_NULL, _INVALID, _ZERO = 0, 1, 2
_LIMBS, _LIMB = 3, 14
_MANY_ROWS: Final = 2**48
_SAFE: Final = 3.0
_STRAY: Final = 0.02
"""Values thin out towards their end: beside a full knot, one with so little is noise."""


class There(NamedTuple):
    """About how many rows each row of the controls holds over all keys, and which stand out from noise."""

    whole: Floats
    clear: Bools


class Side(NamedTuple):
    """Values are covered up to a knot; those beyond are clipped to it, or fade until the next knot."""

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
        """The whole mass of every row in each of `number` parts, exactly, as Python ints.

        A mass has less than 42 bits. It is summed 14 bits at a time, in 64 bits for fewer than 2^48 rows.
        """
        times = counts if int(counts.sum()) < _MANY_ROWS else counts.astype(object)
        limbs = np.zeros((_LIMBS, self.size * number), times.dtype)
        for row, mass, chosen in self._masses(places):
            cell = row * number + parts[chosen]
            for limb, sums in enumerate(limbs):
                np.add.at(sums, cell, (mass >> (_LIMB * limb) & ((1 << _LIMB) - 1)) * times[chosen])
        exact = sum(sums.astype(object) << (_LIMB * limb) for limb, sums in enumerate(limbs))
        return np.asarray(exact).reshape(self.size, number)

    def chosen(self, found: Floats, deviations: Floats, weights: Floats, there: There) -> Reach:
        """How to cover each side: where the sum, less three deviations of its noise, is largest.

        `found` holds the estimate of every row, with its deviation, and `weights` what a row adds. Nothing
        is covered beyond the last row that is there over all keys.
        """
        sizes = np.abs(weights)
        sides = zip(self._sides, self._headroom, strict=True)
        return Reach(*(self._side(rows, free, found, deviations, sizes, there) for rows, free in sides))

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
    def invalid(self) -> Bools:
        """The row of what is not null, but no number."""
        return np.asarray(np.arange(self.size) == _INVALID)

    @property
    def null(self) -> Bools:
        """The row of nulls."""
        return np.asarray(np.arange(self.size) == _NULL)

    @property
    def choices(self) -> int:
        """In how many ways values can be covered."""
        return (1 + self._above // self.degree) ** 2 * (1 + self._below // self.degree) ** 2

    def covers(self, reach: Reach) -> Covers:
        """What every value counts as."""
        lower = self._end(self.down, reach.down, self.line.down, -1)
        return Covers(lower, self._end(self.up, reach.up, self.line.up, 1), self.degree)

    def beyond(self, reach: Reach) -> Bools:
        """The rows past the last knots that are covered."""
        found = np.zeros(self.size, np.bool_)
        for rows, side in zip(self._sides, reach, strict=True):
            found[rows[self.degree * side.knots :]] = True
        return found

    def at_top(self, reach: Reach) -> tuple[bool, bool]:
        """On which sides all knots are covered, so that values past them count as the last."""
        return self.degree * reach.up.knots == self._above, self.degree * reach.down.knots == self._below

    def _end(self, hats: Hats | None, side: Side, length: int, sign: int) -> End:
        """How far one side is covered; without hats, or at the last of the knots, values are clamped."""
        knots = hats.knots.offsets if hats else (0,)
        cap = knots[side.knots]
        fades = cap < length and not side.clipped and side.knots + 1 < len(knots)
        gone = self.line.number(sign * knots[side.knots + 1]) if fades else None
        return End(self.line.number(sign * min(cap, length)), gone, whole=cap >= length)

    def _side(
        self, rows: Ints, free: int, found: Floats, deviations: Floats, weights: Floats, there: There
    ) -> Side:
        """The best of all ways to cover one side: up to any knot that may be, clipped there or not."""
        last = self._last(rows[self.degree - 1 :: self.degree], free, there)
        ways = [*(Side(knots, clipped=False) for knots in range(last + 1)), Side(last, clipped=True)]
        worth = []
        for way in ways:
            covered = self._along(rows, way, weights)
            worth.append(covered @ found[rows] - _SAFE * np.sqrt(covered**2 @ deviations[rows] ** 2))
        return ways[int(np.argmax(worth))]

    def _last(self, knots: Ints, free: int, there: There) -> int:
        """How many knots of a side may be covered: up to the last that is clear, and no stray beside the cap.

        The last `free` knots lie above the cap that was seen, in case values do. If they did, they would
        thin out.
        """
        clear = there.clear[knots]
        if free and knots.size > free:
            beyond, cap = knots[-free:], knots[-free - 1]
            clear[-free:] &= there.whole[beyond] > _STRAY * there.whole[cap]
        return int(np.flatnonzero(clear).max(initial=-1)) + 1

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

    @cached_property
    def _headroom(self) -> tuple[int, int]:
        """How many knots of each side lie above the cap that was seen there."""
        up, down = (
            sum(knot > seen for knot in hats.knots.offsets) if hats and seen else 0
            for hats, seen in zip((self.up, self.down), self.tops.seen, strict=True)
        )
        return up, down

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
