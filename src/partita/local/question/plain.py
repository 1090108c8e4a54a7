"""Domains on a device: the cell of one value, in plain Python, as `partita.domain` finds it for a column.

Labels and whole numbers need the standard library only. Dates, times and rounded numbers are found by NumPy.
"""

from __future__ import annotations

import datetime
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias, final

from partita.errors.errors import InvalidParameter

Number: TypeAlias = Fraction | float

_MISSING: Final = {"NoneType", "NAType", "NaTType"}
_LONGEST: Final = 400
_FAR: Final = 1000
_LARGEST: Final = 10**400
_LARGEST_BITS: Final = 2000
_MOST_PLACES: Final = 60
_WHITE: Final = " \t\n\r\f\v"
_NUMBER: Final = re.compile(r"([+-]?(?=\.?[0-9])[0-9]*(?:\.[0-9]*)?)(?:[eE]([+-]?[0-9]+))?")
_INFINITE: Final = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE | re.ASCII)


class PlainDomain(ABC):
    """Ordinary cells, then special ones; every value has a cell."""

    specials: ClassVar[tuple[str, ...]]
    unreadable: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of ordinary cells."""

    @abstractmethod
    def to_spec(self) -> dict[str, Any]:
        """As it was read."""

    @abstractmethod
    def _found(self, value: object) -> int | str:
        """An ordinary cell, or the name of a special one."""

    def cell(self, value: object) -> int:
        """The cell of a value; one whose own methods fail is unreadable."""
        try:
            found = "null" if type(value).__name__ in _MISSING else self._found(value)
        except Exception:
            found = self.unreadable
        return found if isinstance(found, int) else self.size + self.specials.index(found)


@final
@dataclass(frozen=True)
class PlainCategory(PlainDomain):
    """Labels: text matches exactly, other values by their canonical text.

    >>> browsers = PlainCategory(("chrome", "7"))
    >>> [browsers.cell(value) for value in ("chrome", 7.0, None, "lynx")]
    [0, 1, 2, 3]
    """

    specials: ClassVar[tuple[str, ...]] = ("null", "other")
    unreadable: ClassVar[str] = "other"
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.labels)

    def to_spec(self) -> dict[str, Any]:
        """Kind and labels."""
        return {"kind": "category", "labels": list(self.labels)}

    def _found(self, value: object) -> int | str:
        if isinstance(value, float | Decimal) and math.isnan(value):
            return "null"
        return self._cells.get(_text(value), "other")

    @cached_property
    def _cells(self) -> Mapping[str, int | str]:
        return {label: cell for cell, label in enumerate(self.labels)}


@final
@dataclass(frozen=True)
class PlainInteger(PlainDomain):
    """The integers from low to high, however they are written.

    >>> ages = PlainInteger(0, 120)
    >>> [ages.cell(value) for value in (30, " 31.0", -1, 1e9, 0.5, None)]
    [30, 31, 121, 122, 123, 124]
    """

    specials: ClassVar[tuple[str, ...]] = ("below", "above", "invalid", "null")
    unreadable: ClassVar[str] = "invalid"
    low: int
    high: int

    @property
    def size(self) -> int:
        """The number of integers, both ends included."""
        return self.high - self.low + 1

    def to_spec(self) -> dict[str, Any]:
        """Kind, low and high, all as text."""
        return {"kind": "integer", "low": str(self.low), "high": str(self.high)}

    def _found(self, value: object) -> int | str:
        number = _number(value)
        whole = number.denominator == 1 if isinstance(number, Fraction) else number in (math.inf, -math.inf)
        if number is None or not whole:
            return "invalid"
        if not self.low <= number <= self.high:
            return "below" if number < self.low else "above"
        return int(number) - self.low


def plain_domain(spec: Mapping[str, Any]) -> PlainDomain:
    """The domain that a description names, if it can be found without NumPy."""
    match spec:
        case {"kind": "category", "labels": list(labels), **rest} if not rest and _are_labels(labels):
            return PlainCategory(tuple(labels))
        case {"kind": "integer", "low": str(low), "high": str(high), **rest} if not rest:
            bounds = _read(low), _read(high)
            if all(isinstance(end, Fraction) and end.denominator == 1 for end in bounds):
                return PlainInteger(*(int(end) for end in bounds if end is not None))
    rule = "must be of labels or of integers where NumPy is not installed"
    raise InvalidParameter("domain", rule, given=spec.get("kind"), fix="install NumPy on this device")


def _are_labels(labels: Sequence[object]) -> bool:
    texts = [label for label in labels if isinstance(label, str) and label and _is_text(label)]
    return 0 < len(set(texts)) == len(labels)


def _is_text(label: str) -> bool:
    return label == label.encode("utf-8", "replace").decode()


def _text(value: object) -> str:
    """The canonical text of a value; empty if there is none, and no label is."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "surrogateescape")
    if isinstance(value, datetime.date):
        return "" if isinstance(value, datetime.datetime) else value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    number = Fraction(repr(value)) if isinstance(value, float) and math.isfinite(value) else _number(value)
    return _number_text(number) if isinstance(number, Fraction) else ""


def _number_text(value: Fraction) -> str:
    """Digits, a decimal of up to 60 places, or a ratio; empty beyond 2,000 bits."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _LARGEST_BITS:
        return ""
    places = next((p for p in range(_MOST_PLACES + 1) if 10**p % value.denominator == 0), 0)
    if not places:
        return str(value)
    digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}}"
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _number(value: object) -> Number | None:
    """The exact number that a value is or writes; None if it is none."""
    if isinstance(value, str | Decimal):
        return _read(str(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return _read(bytes(value).decode("utf-8", "surrogateescape"))
    if isinstance(value, float) and not math.isfinite(value):
        return value
    return Fraction(value) if isinstance(value, int | float | Fraction) else None


def _read(text: str) -> Number | None:
    """A sign, digits with a point, an exponent; or an infinity. None for all else."""
    trimmed = text.strip(_WHITE)
    if len(text.encode("utf-8", "surrogatepass")) > _LONGEST:
        return None
    if match := _INFINITE.fullmatch(trimmed):
        return -math.inf if match[1] == "-" else math.inf
    if not (match := _NUMBER.fullmatch(trimmed)):
        return None
    mantissa, exponent = Fraction(match[1]), int(match[2] or 0)
    number = mantissa * Fraction(10) ** max(-_FAR, min(exponent, _FAR))
    return math.copysign(math.inf, mantissa) if abs(number) >= _LARGEST else number
