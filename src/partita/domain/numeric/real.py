"""Numbers rounded to a step, between two bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Self, TypeAlias, cast, final

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
from partita.domain.base.specs import taken
from partita.domain.columns.columns import assemble
from partita.domain.columns.read import read
from partita.domain.columns.text import MOST_PLACES, decimal_places, number_text
from partita.domain.numeric.grid import Grid, bounded
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.lazy.cached import cached_property
from partita.numbers import Converted, freeze, frozen, parameter, rational

Number: TypeAlias = int | float | str | Decimal | Fraction


@final
@frozen(repr=False)
class Real:
    """The multiples of `step` from `low` to `high`, both included; a cell for each.

    A value is first rounded to the nearest multiple of the step, a tie to the even
    multiple, in exact arithmetic, and then compared with the bounds. A binary float is
    the number its bits say; text and decimals are what they write. NaN and what is no
    number are invalid. Bounds and step are read as people write them: 0.1 is 1/10.

    >>> prices = Real(0, 100, step="0.01")
    >>> prices.size, prices.encode(["0.005", "0.015", 99.999, "100.01"]).tolist()
    (10001, [0, 2, 10000, 'above'])
    >>> prices.decode([0, 1234])
    [Decimal('0.00'), Decimal('12.34')]
    """

    low: Converted[Number, Fraction] = parameter()
    high: Converted[Number, Fraction] = parameter()
    step: Converted[Number, Fraction] = parameter(kw_only=True)

    def __post_init__(self) -> None:
        low, high, step = self.low, self.high, self.step
        freeze(self, low=_bounded(low, "low"), high=_bounded(high, "high"), step=_bounded(step, "step"))
        check(self.step > 0, "step", "must be positive", given=step, fix='pass for example "0.01"')
        for name, bound, given in (("low", self.low, low), ("high", self.high, high)):
            if (bound / self.step).denominator != 1:
                rule = f"must be a multiple of the step {number_text(self.step)}"
                raise InvalidParameter(name, rule, given=given, fix="move the bound or choose a finer step")
        check_size(self.size, "low", "high", given=high)

    def __repr__(self) -> str:
        return f"Real({_written(self.low)}, {_written(self.high)}, step={_written(self.step)})"

    @property
    def size(self) -> int:
        """The number of multiples of the step, both ends included."""
        return self._grid.high - self._grid.low + 1

    @property
    def specials(self) -> tuple[str, ...]:
        """The special cells: below, above, invalid and null."""
        return ORDERED_SPECIALS

    def encode(self, values: object) -> Encoded:
        """The cell of every row of a column."""
        return assemble(read(values), self._grid.encode, invalid=Special.INVALID)

    def decode(self, cells: Sequence[int] | Cells) -> list[Decimal] | list[Fraction]:
        """The multiple of each cell: Decimals if a step has at most 60 decimal places, else Fractions."""
        multiples = [self._grid.low + cell for cell in indices(cells, self.size)]
        places = decimal_places(self.step)
        if places is None or places > MOST_PLACES:
            return [multiple * self.step for multiple in multiples]
        units = int(self.step * 10**places)
        return [Decimal(f"{multiple * units}e-{places}") for multiple in multiples]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """Where a public number lies, rounded as the column's values are."""
        multiple = cast(int, self._grid.nearest(*rational(value, name).as_integer_ratio()))
        return position(multiple, self._grid.low, self._grid.high)

    def to_spec(self) -> Spec:
        """Kind, low, high and step, all as exact text."""
        exact = {name: number_text(getattr(self, name)) for name in ("low", "high", "step")}
        return {"kind": "real", **exact}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The domain that `to_spec` described."""
        low, high, step = taken(spec, "real", "low", "high", "step")
        return cls(rational(low, "low"), rational(high, "high"), step=rational(step, "step"))

    @cached_property
    def _grid(self) -> Grid:
        return Grid(int(self.low / self.step), int(self.high / self.step), self.step, rounds=True)


def _bounded(value: object, name: str) -> Fraction:
    return bounded(rational(value, name), name, value)


def _written(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else repr(number_text(value))
