"""The values of a summed column: whole steps on a line, seen from the point of it that is nearest to zero."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from partita.domain.axis import LARGEST_AXIS, Axis
from partita.domain.base.base import Domain
from partita.domain.numeric.integer import Integer
from partita.domain.numeric.real import Real
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.public.axis.curve.curve import Bools, Ints, UInts


@final
@dataclass(frozen=True)
class ValueLine:
    """The multiples low, ..., low + size - 1 of a step.

    A value is its `origin`, the multiple nearest to zero, and an offset up or down from there, all counted
    in steps.

    >>> line = ValueLine.of(Integer(-3, 10))
    >>> line.origin, line.up, line.down
    (0, 10, 3)
    """

    low: int
    size: int
    step: Fraction

    @staticmethod
    def of(domain: Domain, name: str = "value") -> ValueLine:
        """The line of a column of numbers; no other column has sums."""
        if not isinstance(domain, Integer | Real):
            rule = "must be an Integer or a Real domain: only numbers have sums"
            raise InvalidParameter(name, rule, given=type(domain).__name__, fix="sum a column of numbers")
        fix = "use a coarser step"
        check(domain.size <= LARGEST_AXIS, name, "must have at most 2^63 cells", given=domain.size, fix=fix)
        step = domain.step if isinstance(domain, Real) else Fraction(1)
        return ValueLine(int(domain.low / step), domain.size, step)

    @property
    def origin(self) -> int:
        """The point of the line that is nearest to zero."""
        return min(max(0, self.low), self.low + self.size - 1)

    @property
    def up(self) -> int:
        """The largest offset above the origin."""
        return self.low + self.size - 1 - self.origin

    @property
    def down(self) -> int:
        """The largest offset below the origin."""
        return self.origin - self.low

    @property
    def axis(self) -> Axis:
        """Its positions: below, the values in order, above, invalid, null."""
        return Axis(size=self.size, before=1, after=3)

    def offsets(self, places: UInts) -> Ints:
        """The offsets of positions, those below and above clamped to the line; invalid and null have none."""
        cells = np.clip(places, np.uint64(1), np.uint64(self.size)) - np.uint64(1)
        return np.asarray(cells.astype(np.int64) - self.down)

    def invalid(self, places: UInts) -> Bools:
        """Which positions hold no number, though they are not null."""
        return np.asarray(places == np.uint64(self.size + 2))

    def null(self, places: UInts) -> Bools:
        """Which positions are null."""
        return np.asarray(places == np.uint64(self.size + 3))

    def number(self, offset: float) -> float:
        """The value at an offset, as a float."""
        return float((self.origin + Fraction(offset)) * self.step)
