"""Whole numbers between two bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, final

from partita.domain.base.base import (
    ORDERED_SPECIALS,
    Cells,
    Encoded,
    Position,
    Spec,
    Special,
    check_size,
    indices,
    position,
)
from partita.domain.base.specs import taken, whole
from partita.domain.columns.columns import assemble
from partita.domain.columns.read import read
from partita.domain.numeric.grid import Grid, bounded
from partita.errors.errors import InvalidParameter
from partita.lazy.cached import cached_property
from partita.numbers import freeze, integer, rational


@final
@dataclass(frozen=True, repr=False)
class Integer:
    """The integers from `low` to `high`, both included; a cell for each.

    A value that is a whole number is itself, however it is written: 5, 5.0, "5", " +5.0",
    "5e0", Decimal("5.00"), and True is 1. Other numbers, NaN, and what is no number are
    invalid; the infinities are below and above. Comparison is exact at any size.

    >>> ages = Integer(0, 120)
    >>> ages.size, ages.encode([30, "31", 32.0, -1, 121, 30.5, None]).tolist()
    (121, [30, 31, 32, 'below', 'above', 'invalid', 'null'])
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        freeze(self, low=_bound(self.low, "low"), high=_bound(self.high, "high"))
        check_size(self.size, "low", "high", given=self.high)

    def __repr__(self) -> str:
        return f"Integer({self.low}, {self.high})"

    @property
    def size(self) -> int:
        """The number of integers, both ends included."""
        return self.high - self.low + 1

    @property
    def specials(self) -> tuple[str, ...]:
        """The special cells: below, above, invalid and null."""
        return ORDERED_SPECIALS

    def encode(self, values: object) -> Encoded:
        """The cell of every row of a column."""
        return assemble(read(values), self._grid.encode, invalid=Special.INVALID)

    def decode(self, cells: Sequence[int] | Cells) -> list[int]:
        """The integer of each cell."""
        return [self.low + cell for cell in indices(cells, self.size)]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """Where a public whole number lies."""
        multiple = self._grid.nearest(*rational(value, name).as_integer_ratio())
        if multiple is None:
            rule = f"must be a whole number, as the column is {self!r}"
            raise InvalidParameter(name, rule, given=value, fix="pass an int")
        return position(multiple, self.low, self.high)

    def to_spec(self) -> Spec:
        """Kind, low and high, all as text."""
        return {"kind": "integer", "low": str(self.low), "high": str(self.high)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The domain that `to_spec` described."""
        low, high = taken(spec, "integer", "low", "high")
        return cls(whole(low, "low"), whole(high, "high"))

    @cached_property
    def _grid(self) -> Grid:
        return Grid(self.low, self.high, Fraction(1), rounds=False)


def _bound(value: object, name: str) -> int:
    return int(bounded(Fraction(integer(value, name)), name, value))
