"""Columns of exact numbers: `Integer` and `Real`, and the arithmetic of the grid that both stand on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, Self, TypeAlias, assert_never, cast, final

import numpy as np
import numpy.typing as npt

from partita.domain import columns
from partita.domain.base import (
    ORDERED_SPECIALS,
    Cells,
    Encoded,
    Position,
    Spec,
    Special,
    check_size,
    indices,
    place,
    position,
    read_entries,
    whole,
)
from partita.errors import InvalidParameter, check, check_arguments
from partita.lazy import cached_property
from partita.numbers import Converted, freeze, frozen, integer, parameter, rational

_LARGEST_BITS: Final = 500
_ROUNDINGS: Final = 8  # of a float that is taken for a multiple of a step
_MARGIN: Final = 2.0**-50  # eight times the error of a quotient of floats, relative to its size

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Grid:
    """The multiples of `step` from the `low`-th to the `high`-th.

    A number is first brought to a multiple, then compared with the bounds. A grid that `rounds` takes the
    nearest multiple, of two the even one; on another grid a number between two multiples is invalid.
    """

    low: int
    high: int
    step: Fraction
    rounds: bool

    def encode(self, content: columns.Plain) -> Encoded:
        """The cells of content of any kind, which is first brought to multiples of the step."""
        match content:
            case columns.Scaled(values, unit) if unit == self.step:
                return place(values, self.low, self.high)
            case columns.Exacts(exacts):
                return self._encode_exacts(exacts)
        return columns.assemble(self._multiples(content), self.encode, invalid=Special.INVALID)

    def nearest(self, numerator: int, denominator: int) -> int | None:
        """Which multiple of the step a number is or rounds to; None if it is invalid."""
        over = denominator * self.step.numerator
        whole, rest = divmod(numerator * self.step.denominator, over)
        if rest and not self.rounds:
            return None
        return whole + (2 * rest > over or (2 * rest == over and whole % 2))

    def _encode_exacts(self, values: Sequence[columns.Number]) -> Encoded:
        multiples = [self._multiple(value) for value in values]
        invalid = np.fromiter((multiple is None for multiple in multiples), np.bool_, len(multiples))
        whole = np.array([self.low if multiple is None else multiple for multiple in multiples], object)
        encoded = place(whole, self.low, self.high)
        return Encoded(encoded.cells, np.where(invalid, np.uint8(Special.INVALID), encoded.special))

    def _multiple(self, value: columns.Number) -> int | None:
        """The multiple of any number; an infinite one is taken to lie just outside the bounds."""
        if isinstance(value, float) and not math.isfinite(value):
            return None if math.isnan(value) else self.high + 1 if value > 0 else self.low - 1
        return self.nearest(*value.as_integer_ratio())

    def _multiples(
        self, content: columns.Flags | columns.Scaled | columns.Floats | columns.Texts | columns.Moments
    ) -> columns.Column:
        match content:
            case columns.Scaled(values, unit):
                return self._divide_counts(values, unit)
            case columns.Floats(values):
                return self._divide_floats(values)
            case columns.Flags(flags):
                return columns.Column.of(columns.Scaled(flags.astype(np.int64)), len(flags))
            case columns.Texts():
                return columns.numbers(content)
            case columns.Moments():
                return columns.Column.of(columns.Blank.INVALID, len(content))
            case _:
                assert_never(content)

    def _divide_counts(self, values: columns.Whole, unit: Fraction) -> columns.Column:
        """Integers that count `unit`, in 64-bit arithmetic wherever no product can overflow."""
        ratio = unit / self.step
        if max(ratio.numerator, ratio.denominator) >= 2**62:
            return columns.Column.of(columns.Exacts([value * unit for value in values.tolist()]), len(values))
        largest = (2**63 - 1) // ratio.numerator
        sure = (values >= -largest) & (values <= largest)
        products = values[sure].astype(np.int64) * ratio.numerator
        others = [value * unit for value in values[~sure].tolist()]
        return columns.Column.split(sure, self._round(products, ratio.denominator), columns.Exacts(others))

    def _round(self, counts: npt.NDArray[np.int64], over: int) -> columns.Content:
        """The numbers counts / over, in units of the step."""
        whole, rest = np.divmod(counts, over)
        if not self.rounds:
            return columns.Column.split(
                rest == 0, columns.Scaled(whole[rest == 0], self.step), columns.Blank.INVALID
            )
        up = (rest > over - rest) | ((rest == over - rest) & (whole % 2 == 1))
        return columns.Scaled(whole + up, self.step)

    @np.errstate(all="ignore")
    def _divide_floats(self, values: npt.NDArray[np.float64]) -> columns.Column:
        """Floats by a quotient in floating point where it is certainly right, else exactly.

        The quotient by the step, itself rounded, is off by less than _MARGIN * (1 + its size): two roundings
        of 2^-53 each. It decides if no half-integer is that near. With step 1 it has no error at all.
        """
        quotient = values / float(self.step)
        nearest = np.rint(quotient)
        invalid = np.isnan(values) if self.rounds else values != nearest
        sure = ~invalid & self._certain(quotient, nearest)
        unsure = ~invalid & ~sure
        multiples = columns.Scaled(nearest[sure].astype(np.int64), self.step)
        exacts = columns.Exacts(values[unsure].tolist())
        return columns.Column(
            len(values), [(invalid, columns.Blank.INVALID), (sure, multiples), (unsure, exacts)]
        )

    def _certain(self, quotient: npt.NDArray[np.float64], nearest: npt.NDArray[np.float64]) -> Mask:
        size = np.abs(quotient)
        if self.step == 1:
            return size < 2.0**63
        from_tie = 0.5 - np.abs(quotient - nearest)
        return from_tie > _MARGIN * (1 + size)


def check_bounded(value: Fraction, name: str, given: object) -> Fraction:
    """`value`, if its numerator and denominator are small enough for floats to come near it."""
    fits = max(value.numerator.bit_length(), value.denominator.bit_length()) <= _LARGEST_BITS
    fix = "choose a smaller or simpler number"
    check(fits, name, f"must be a ratio of integers below 2^{_LARGEST_BITS}", given=given, fix=fix)
    return value


@final
@check_arguments
@dataclass(frozen=True, repr=False)
class Integer:
    """The integers from `low` to `high`, both included; a cell for each.

    A whole number counts as itself, however it is written: 5, 5.0, "5", " +5.0", "5e0", Decimal("5.00");
    True is 1. Other numbers, NaN, and values that are not numbers are invalid; the infinities are below and
    above. Comparison is exact at any size.

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
        return columns.assemble(columns.read(values), self._grid.encode, invalid=Special.INVALID)

    def decode(self, cells: Sequence[int] | Cells) -> list[int]:
        """The integer of each cell."""
        return [self.low + cell for cell in indices(cells, self.size)]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """Where a public whole number lies."""
        multiple = self._grid.nearest(*rational(value, name).as_integer_ratio())
        if multiple is None:
            rule = f"must be a whole number, as the column is {self!r}"
            below = math.floor(rational(value, name))
            raise InvalidParameter(name, rule, given=value, fix=f"pass {below} or {below + 1}")
        return position(multiple, self.low, self.high)

    def to_spec(self) -> Spec:
        """Kind, low and high, all as text."""
        return {"kind": "integer", "low": str(self.low), "high": str(self.high)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        low, high = read_entries(spec, "integer", "low", "high")
        return cls(whole(low, "low"), whole(high, "high"))

    @cached_property
    def _grid(self) -> Grid:
        return Grid(self.low, self.high, Fraction(1), rounds=False)


def _bound(value: object, name: str) -> int:
    return int(check_bounded(Fraction(integer(value, name)), name, value))


RealInput: TypeAlias = int | float | str | Decimal | Fraction


@final
@frozen(repr=False)
class Real:
    """The multiples of `step` from `low` to `high`, both included; a cell for each.

    A value is first rounded to the nearest multiple of the step, a tie to the even multiple, in exact
    arithmetic, and then compared with the bounds. A binary float is the number its bits say; text and
    decimals are what they write. NaN and values that are not numbers are invalid. Bounds and step are read as
    people write them: 0.1 is 1/10.

    >>> prices = Real(0, 100, step="0.01")
    >>> prices.size, prices.encode(["0.005", "0.015", 99.999, "100.01"]).tolist()
    (10001, [0, 2, 10000, 'above'])
    >>> prices.decode([0, 1234])
    [Decimal('0.00'), Decimal('12.34')]
    """

    low: Converted[RealInput, Fraction] = parameter()
    high: Converted[RealInput, Fraction] = parameter()
    step: Converted[RealInput, Fraction] = parameter(kw_only=True)

    def __post_init__(self) -> None:
        low, high, step = self.low, self.high, self.step
        freeze(
            self,
            low=_parse_bounded(low, "low"),
            high=_parse_bounded(high, "high"),
            step=_parse_bounded(step, "step"),
        )
        check(self.step > 0, "step", "must be positive", given=step, fix='pass for example "0.01"')
        for name, bound, given in (("low", self.low, low), ("high", self.high, high)):
            if (bound / self.step).denominator != 1:
                rule = f"must be a multiple of the step {columns.number_text(self.step)}"
                raise InvalidParameter(name, rule, given=given, fix="move the bound or choose a finer step")
        check_size(self.size, "low", "high", given=high)

    def __repr__(self) -> str:
        low, high, step = (
            str(value) if value.denominator == 1 else repr(columns.number_text(value))
            for value in (self.low, self.high, self.step)
        )
        return f"Real({low}, {high}, step={step})"

    @property
    def size(self) -> int:
        """The number of multiples of the step, both ends included."""
        return self._grid.high - self._grid.low + 1

    @property
    def specials(self) -> tuple[str, ...]:
        """The special cells: below, above, invalid and null."""
        return ORDERED_SPECIALS

    def encode(self, values: object) -> Encoded:
        return columns.assemble(columns.read(values), self._grid.encode, invalid=Special.INVALID)

    def decode(self, cells: Sequence[int] | Cells) -> list[Decimal] | list[Fraction]:
        """The multiple of each cell: Decimals if a step has at most 60 decimal places, else Fractions."""
        multiples = [self._grid.low + cell for cell in indices(cells, self.size)]
        places = columns.decimal_places(self.step)
        if places is None or places > columns.MOST_PLACES:
            return [multiple * self.step for multiple in multiples]
        units = int(self.step * 10**places)
        return [Decimal(f"{multiple * units}e-{places}") for multiple in multiples]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """Where a public number lies, rounded as the column's values are.

        Conditions do not round: `locate_exactly`.
        """
        multiple = cast(int, self._grid.nearest(*rational(value, name).as_integer_ratio()))
        return position(multiple, self._grid.low, self._grid.high)

    def locate_exactly(self, value: object, *, name: str = "value") -> Position:
        """Where a public number lies; one between two multiples of the step is refused.

        A float is a multiple if it is one but for the last digits. Beyond the bounds there are no cells, so
        no number is between two.

        >>> Real(0, 10, step="0.5").locate_exactly(4.1, name="score")
        Traceback (most recent call last):
            ...
        partita.errors.InvalidParameter: score must be a multiple of 0.5, got 4.1; pass 4.0 or 4.5
        """
        exact = rational(value, name)
        if not self.low <= exact <= self.high:
            return Position(0, Special.BELOW if exact < self.low else Special.ABOVE)
        found = self.locate(value, name=name)
        if (exact / self.step).denominator != 1 and not is_near_multiple(value, self.step):
            below = (exact - self.low) // self.step
            near = " or ".join(str(each) for each in self.decode([below, below + 1]))
            rule = f"must be a multiple of {columns.number_text(self.step)}"
            raise InvalidParameter(name, rule, given=value, fix=f"pass {near}")
        return found

    def encode_exactly(self, values: object) -> tuple[Encoded, Mask]:
        """Where many public values lie, and which of them are between two multiples of the step.

        >>> Real(0, 10, step="0.5").encode_exactly(["4.1", "4.5", 0.1 + 0.4, "10.1"])[1].tolist()
        [True, False, False, False]
        """
        encoded = self.encode(values)
        cells, special = encoded.cells.copy(), encoded.special.copy()
        given = np.array(values, object) if isinstance(values, list | tuple) else np.asarray(values)
        if given.dtype.kind == "f":
            between = (special == Special.ORDINARY) & ~_near_multiples(given, self.step)
        else:
            grid = Grid(self._grid.low, self._grid.high, self.step, rounds=False)
            exact = columns.assemble(columns.read(values), grid.encode, invalid=Special.INVALID)
            between = (special == Special.ORDINARY) & (exact.special == Special.INVALID)
        ends = (cells == 0) | (cells == np.uint64(self.size - 1))
        for row in np.flatnonzero(between & (ends | (given.dtype == object))).tolist():
            value = given[row].item() if given.dtype.kind in "iu" else given[row]
            if is_near_multiple(value, self.step):
                between[row] = False
            elif not self.low <= rational(value, "value") <= self.high:
                between[row], cells[row] = False, 0
                special[row] = Special.BELOW if rational(value, "value") < self.low else Special.ABOVE
        return Encoded(cells, special), between

    def to_spec(self) -> Spec:
        """Kind, low, high and step, all as exact text."""
        exact = {name: columns.number_text(getattr(self, name)) for name in ("low", "high", "step")}
        return {"kind": "real", **exact}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        low, high, step = read_entries(spec, "real", "low", "high", "step")
        return cls(rational(low, "low"), rational(high, "high"), step=rational(step, "step"))

    @cached_property
    def _grid(self) -> Grid:
        return Grid(int(self.low / self.step), int(self.high / self.step), self.step, rounds=True)


def is_near_multiple(value: object, step: Fraction) -> bool:
    """Whether a float is a multiple of a step but for the last digits, in which arithmetic may have left it.

    >>> is_near_multiple(0.1 + 0.2, Fraction(1, 10)), is_near_multiple("0.30000000000000004", Fraction(1, 10))
    (True, False)
    """
    return isinstance(value, float | np.floating) and bool(_near_multiples(np.asarray(value), step))


def _near_multiples(values: npt.NDArray[np.floating], step: Fraction) -> Mask:
    quotients = np.abs(np.where(np.isfinite(values), values, 0.0)).astype(np.float64) / float(step)
    near = _ROUNDINGS * float(np.finfo(values.dtype).eps) * (1.0 + quotients)
    return np.asarray(np.abs(quotients - np.rint(quotients)) <= near)


def _parse_bounded(value: object, name: str) -> Fraction:
    return check_bounded(rational(value, name), name, value)
