"""Privacy as a currency: epsilon and delta, exact, each added up for itself."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, final

from partita.showing import card

__all__ = ["Amount", "Balance"]

_READABLE: Final = 40


@final
@dataclass(frozen=True)
class Amount:
    """Some epsilon and some delta.

    >>> print(Amount(Fraction(1, 3)) + Amount(Fraction(1, 6), Fraction(1, 1000)))
    epsilon 1/2 and delta 1/1000
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.epsilon - other.epsilon, self.delta - other.delta)

    def __mul__(self, count: int) -> Amount:
        return Amount(self.epsilon * count, self.delta * count)

    def __or__(self, other: Amount) -> Amount:
        """The larger epsilon and the larger delta."""
        return Amount(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def fits(self, room: Amount) -> bool:
        """Whether neither epsilon nor delta is above what `room` has."""
        return self.epsilon <= room.epsilon and self.delta <= room.delta

    def times_in(self, room: Amount) -> int:
        """How often this positive amount fits into `room`, one after the other.

        >>> Amount(Fraction(1, 3)).times_in(Amount(Fraction(1)))
        3
        """
        pairs = [(room.epsilon, self.epsilon), (room.delta, self.delta)]
        return min(int(has // needs) for has, needs in pairs if needs)

    def __str__(self) -> str:
        return self.said(delta=self.delta > 0)

    def said(self, *, delta: bool) -> str:
        """In words, with delta or without."""
        return f"epsilon {_shown(self.epsilon)}" + (f" and delta {_shown(self.delta)}" if delta else "")


@final
@dataclass(frozen=True)
class Balance:
    """What a dataset has: `left` is what a release about everybody may cost.

    A release about one part may cost more where other parts have spent more than it has.
    """

    total: Amount
    spent: Amount

    @property
    def left(self) -> Amount:
        """What is not spent."""
        return self.total - self.spent

    def _repr_html_(self) -> str:
        return card("Balance", [("total", self.total), ("spent", self.spent), ("left", self.left)])


def _shown(number: Fraction) -> str:
    """The exact number where it is short, else six digits of it."""
    if number.numerator.bit_length() + number.denominator.bit_length() <= 3 * _READABLE:
        return str(number)
    return f"about {Decimal(number.numerator) / Decimal(number.denominator):.6g}"
