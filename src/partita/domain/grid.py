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

from partita.domain.base import Encoded, Special, place
from partita.domain.columns import (
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
from partita.domain.text import numbers
from partita.errors import InvalidParameter

__all__ = ["Grid", "bounded"]

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
        """The cells of content of any kind; moments are not numbers."""
        match content:
            case Scaled(values, unit):
                return self._scaled(values, unit)
            case Floats(values):
                return self._floats(values)
            case Exacts(exacts):
                return self._exacts(exacts)
            case Flags(flags):
                return self._scaled(flags.astype(np.int64), Fraction(1))
            case Texts():
                return assemble(numbers(content), self.encode, invalid=Special.INVALID)
            case Moments():
                return Encoded.all(len(content), Special.INVALID)
            case _:
                assert_never(content)

    def multiple(self, value: int | Fraction) -> int | None:
        """Which multiple of the step `value` is or rounds to; None if it is invalid."""
        return self._nearest(value.numerator, value.denominator)

    def _nearest(self, numerator: int, denominator: int) -> int | None:
        over = denominator * self.step.numerator
        whole, rest = divmod(numerator * self.step.denominator, over)
        if rest and not self.rounds:
            return None
        return whole + (2 * rest > over or (2 * rest == over and whole % 2))

    def _exacts(self, values: Sequence[Number]) -> Encoded:
        return self._placed([self._reach(value) for value in values])

    def _reach(self, value: Number) -> int | None:
        """The multiple of any number; an infinite one is taken to lie just outside the bounds."""
        if not isinstance(value, float):
            return self.multiple(value)
        if math.isnan(value):
            return None
        return self.high + 1 if value > 0 else self.low - 1

    def _placed(self, multiples: Sequence[int | None]) -> Encoded:
        invalid = np.fromiter((multiple is None for multiple in multiples), np.bool_, len(multiples))
        whole = np.array([self.low if multiple is None else multiple for multiple in multiples], object)
        return _marked(place(whole, self.low, self.high), invalid)

    def _scaled(self, values: Whole, unit: Fraction) -> Encoded:
        """Integers that count `unit`, in 64-bit arithmetic wherever no product can overflow."""
        ratio = unit / self.step
        if ratio == 1:
            return place(values, self.low, self.high)
        near = self._brought_near(values, ratio) if self.rounds else values
        if max(ratio.numerator, ratio.denominator) >= 2**62:
            return self._exacts([value * unit for value in near.tolist()])
        largest = (2**63 - 1) // ratio.numerator
        sure = (near >= -largest) & (near <= largest)
        products = near[sure].astype(np.int64) * ratio.numerator
        exact = [value * unit for value in near[~sure].tolist()]
        return _merged(sure, self._divided(products, ratio.denominator), self._exacts(exact))

    def _brought_near(self, values: Whole, ratio: Fraction) -> Whole:
        """The same values, but those further out than the bounds brought to just outside them."""
        limits = np.iinfo(values.dtype)
        first, last = math.floor((self.low - 1) / ratio), math.ceil((self.high + 1) / ratio)
        near: Whole = values.clip(
            min(max(first, limits.min), limits.max), max(min(last, limits.max), limits.min)
        )
        return near

    def _divided(self, counts: npt.NDArray[np.int64], over: int) -> Encoded:
        """The cells of the numbers counts / over, in units of the step."""
        whole, rest = np.divmod(counts, over)
        if not self.rounds:
            return _marked(place(whole, self.low, self.high), rest != 0)
        up = (rest > over - rest) | ((rest == over - rest) & (whole % 2 == 1))
        return place(whole + up, self.low, self.high)

    @np.errstate(all="ignore")
    def _floats(self, values: npt.NDArray[np.float64]) -> Encoded:
        """Floats by a quotient in floating point where it is certainly right, else exactly.

        The quotient by the step, itself rounded, is off by less than _MARGIN * (1 + its
        size): two roundings of 2^-53 each. It decides if no half-integer and no bound is
        that near. With step 1 it has no error at all.
        """
        quotient = values / float(self.step)
        nearest = np.rint(quotient)
        invalid = np.isnan(values) if self.rounds else values != nearest
        outside = self._certainly_outside(quotient)
        sure = (outside == 0) & ~invalid & self._certain(quotient, nearest)
        unsure = (outside == 0) & ~invalid & ~sure
        inner = place(nearest[sure].astype(np.int64), self.low, self.high)
        exact = self._placed([self._nearest(*value.as_integer_ratio()) for value in values[unsure].tolist()])
        ends = Encoded(np.zeros(len(values), np.uint64), outside)
        return _marked(_overlaid(_overlaid(ends, sure, inner), unsure, exact), invalid)

    def _certain(self, quotient: npt.NDArray[np.float64], nearest: npt.NDArray[np.float64]) -> Mask:
        size = np.abs(quotient)
        if self.step == 1:
            return size < 2.0**63
        from_tie = 0.5 - np.abs(quotient - nearest)
        return (size < 2.0**49) & (from_tie > _MARGIN * (1 + size))

    def _certainly_outside(self, quotient: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
        first, last = float(self.low - 1), float(self.high + 1)
        below = quotient < first - 4 * _MARGIN * (1 + abs(first))
        above = quotient > last + 4 * _MARGIN * (1 + abs(last))
        return below * np.uint8(Special.BELOW) + above * np.uint8(Special.ABOVE)


def bounded(value: Fraction, name: str, given: object) -> Fraction:
    """`value`, if its numerator and denominator are small enough for floats to come near it."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _LARGEST_BITS:
        raise InvalidParameter(
            name,
            f"must be a ratio of integers below 2^{_LARGEST_BITS}",
            given=given,
            fix="choose a smaller or simpler number",
        )
    return value


def _marked(encoded: Encoded, invalid: Mask) -> Encoded:
    """The same rows, invalid where the mask says so."""
    special = np.where(invalid, np.uint8(Special.INVALID), encoded.special)
    return Encoded(np.where(invalid, np.uint64(0), encoded.cells), special)


def _merged(mask: Mask, there: Encoded, elsewhere: Encoded) -> Encoded:
    """Rows of one where the mask is true, of the other where it is false, in order."""
    blank = Encoded.all(len(mask), Special.ORDINARY)
    return _overlaid(_overlaid(blank, mask, there), ~mask, elsewhere)


def _overlaid(under: Encoded, mask: Mask, over: Encoded) -> Encoded:
    """`under`, with the rows of the mask replaced by those of `over`."""
    cells, special = under.cells.copy(), under.special.copy()
    cells[mask], special[mask] = over.cells, over.special
    return Encoded(cells, special)
