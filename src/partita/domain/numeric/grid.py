"""Exact numbers on a grid: the arithmetic of Integer and Real.

The points of a grid are the multiples of `step` from `low * step` to `high * step`. A
number is brought to a multiple first, and compared with the bounds after that. On a
grid that rounds, it goes to the nearest multiple, a tie to the even one; on one that
does not, a number between two multiples is invalid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from partita.domain.base.base import Encoded, Special, place
from partita.domain.columns.columns import (
    Blank,
    Column,
    Content,
    Exacts,
    Flags,
    Floats,
    Moments,
    Number,
    Plain,
    Scaled,
    Texts,
    Whole,
    assemble,
)
from partita.domain.columns.text import numbers
from partita.errors.checks import check

_LARGEST_BITS: Final = 500
_MARGIN: Final = 2.0**-50

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Grid:
    """The multiples of `step` from the `low`-th to the `high`-th."""

    low: int
    high: int
    step: Fraction
    rounds: bool

    def encode(self, content: Plain) -> Encoded:
        """The cells of content of any kind, which is first brought to multiples of the step."""
        match content:
            case Scaled(values, unit) if unit == self.step:
                return place(values, self.low, self.high)
            case Exacts(exacts):
                return self._exacts(exacts)
        return assemble(self._multiples(content), self.encode, invalid=Special.INVALID)

    def nearest(self, numerator: int, denominator: int) -> int | None:
        """Which multiple of the step a number is or rounds to; None if it is invalid."""
        over = denominator * self.step.numerator
        whole, rest = divmod(numerator * self.step.denominator, over)
        if rest and not self.rounds:
            return None
        return whole + (2 * rest > over or (2 * rest == over and whole % 2))

    def _exacts(self, values: Sequence[Number]) -> Encoded:
        multiples = [self._reach(value) for value in values]
        invalid = np.fromiter((multiple is None for multiple in multiples), np.bool_, len(multiples))
        whole = np.array([self.low if multiple is None else multiple for multiple in multiples], object)
        encoded = place(whole, self.low, self.high)
        return Encoded(encoded.cells, np.where(invalid, np.uint8(Special.INVALID), encoded.special))

    def _reach(self, value: Number) -> int | None:
        """The multiple of any number; an infinite one is taken to lie just outside the bounds."""
        if isinstance(value, float) and math.isnan(value):
            return None
        if isinstance(value, float) and math.isinf(value):
            return self.high + 1 if value > 0 else self.low - 1
        return self.nearest(*value.as_integer_ratio())

    def _multiples(self, content: Flags | Scaled | Floats | Texts | Moments) -> Column:
        match content:
            case Scaled(values, unit):
                return self._scaled(values, unit)
            case Floats(values):
                return self._floats(values)
            case Flags(flags):
                return Column.of(Scaled(flags.astype(np.int64)), len(flags))
            case Texts():
                return numbers(content)
            case Moments():
                return Column.of(Blank.INVALID, len(content))
            case _:
                assert_never(content)

    def _scaled(self, values: Whole, unit: Fraction) -> Column:
        """Integers that count `unit`, in 64-bit arithmetic wherever no product can overflow."""
        ratio = unit / self.step
        if max(ratio.numerator, ratio.denominator) >= 2**62:
            return Column.of(Exacts([value * unit for value in values.tolist()]), len(values))
        largest = (2**63 - 1) // ratio.numerator
        sure = (values >= -largest) & (values <= largest)
        products = values[sure].astype(np.int64) * ratio.numerator
        others = [value * unit for value in values[~sure].tolist()]
        return Column.split(sure, self._divided(products, ratio.denominator), Exacts(others))

    def _divided(self, counts: npt.NDArray[np.int64], over: int) -> Content:
        """The numbers counts / over, in units of the step."""
        whole, rest = np.divmod(counts, over)
        if not self.rounds:
            return Column.split(rest == 0, Scaled(whole[rest == 0], self.step), Blank.INVALID)
        up = (rest > over - rest) | ((rest == over - rest) & (whole % 2 == 1))
        return Scaled(whole + up, self.step)

    @np.errstate(all="ignore")
    def _floats(self, values: npt.NDArray[np.float64]) -> Column:
        """Floats by a quotient in floating point where it is certainly right, else exactly.

        The quotient by the step, itself rounded, is off by less than _MARGIN * (1 + its
        size): two roundings of 2^-53 each. It decides if no half-integer is that near.
        With step 1 it has no error at all.
        """
        quotient = values / float(self.step)
        nearest = np.rint(quotient)
        invalid = np.isnan(values) if self.rounds else values != nearest
        sure = ~invalid & self._certain(quotient, nearest)
        unsure = ~invalid & ~sure
        return Column(
            len(values),
            [
                (invalid, Blank.INVALID),
                (sure, Scaled(nearest[sure].astype(np.int64), self.step)),
                (unsure, Exacts(values[unsure].tolist())),
            ],
        )

    def _certain(self, quotient: npt.NDArray[np.float64], nearest: npt.NDArray[np.float64]) -> Mask:
        size = np.abs(quotient)
        if self.step == 1:
            return size < 2.0**63
        from_tie = 0.5 - np.abs(quotient - nearest)
        return from_tie > _MARGIN * (1 + size)


def bounded(value: Fraction, name: str, given: object) -> Fraction:
    """`value`, if its numerator and denominator are small enough for floats to come near it."""
    fits = max(value.numerator.bit_length(), value.denominator.bit_length()) <= _LARGEST_BITS
    fix = "choose a smaller or simpler number"
    check(fits, name, f"must be a ratio of integers below 2^{_LARGEST_BITS}", given=given, fix=fix)
    return value
