"""Reads the parts of a release that may come from anybody: every part is checked, nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from partita.errors.errors import InvalidParameter
from partita.numbers import rational
from partita.public.axis.base.ranges import Json, Parts
from partita.public.axis.curve.curve import UInts
from partita.public.base.released import damaged, noise_scale, noisy_integers

Value = TypeVar("Value")


@final
@dataclass(frozen=True)
class PartsReader:
    """Typed looks at the parts of a release. What is not as it must be is an `InvalidRelease`."""

    parts: Parts

    def expect(self, *, facts: Iterable[str], series: Iterable[str]) -> None:
        """Refuse a release that lacks a part or has one too many."""
        if set(self.parts.facts) != set(facts) or set(self.parts.series) != set(series):
            raise damaged("parts", "must be those of its kind, no more and no less")

    def optional(self, name: str, read: Callable[[str], Value]) -> Value | None:
        """None if the fact is null, else what `read` makes of it."""
        return None if self.parts.facts.get(name) is None else read(name)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.parts.facts.get(name)
        if not isinstance(value, bool):
            raise damaged(name, "must be true or false")
        return value

    def integer(self, name: str, *, low: int, high: int) -> int:
        """A whole number between low and high, both included."""
        value = self.parts.facts.get(name)
        if type(value) is not int or not low <= value <= high:
            raise damaged(name, f"must be a whole number from {low} to {high}")
        return value

    def rational(self, name: str) -> Fraction:
        """An exact number."""
        return _rational(self.parts.facts.get(name), name)

    def rationals(self, name: str, *, most: int) -> tuple[Fraction, ...]:
        """A list of exact numbers, at least one and at most so many."""
        values = self.parts.facts.get(name)
        if not isinstance(values, list) or not 1 <= len(values) <= most:
            raise damaged(name, f"must be a list of 1 to {most} numbers")
        return tuple(_rational(value, name) for value in values)

    def scale(self, name: str) -> Fraction:
        """A noise scale."""
        return noise_scale(self.rational(name), name)

    def scales(self, name: str, *, most: int) -> tuple[Fraction, ...]:
        """A list of noise scales, at least one and at most so many."""
        return tuple(noise_scale(scale, name) for scale in self.rationals(name, most=most))

    def row(self, name: str, *dtypes: DTypeLike) -> NDArray[Any]:
        """A flat array of one of these types."""
        values = self.parts.series.get(name)
        if type(values) is not np.ndarray or values.ndim != 1 or values.dtype not in dtypes:
            raise damaged(name, "must be a row of integers of its type")
        return values

    def noisy(self, name: str, *, count: int | None = None) -> NDArray[Any]:
        """Noisy integers; `count` of them, if that is known."""
        values = noisy_integers(self.row(name, np.int64, object), name)
        if count not in (None, values.size):
            raise damaged(name, f"must hold {count} integers")
        return values

    def edges(self, name: str, *, size: int) -> UInts:
        """Cells in increasing order, the last of which is size-1."""
        cells = self.row(name, np.uint64)
        if not cells.size or bool((cells[1:] <= cells[:-1]).any()) or int(cells[-1]) != size - 1:
            raise damaged(name, "must be increasing cells up to the last one")
        return cells


def _rational(value: Json, name: str) -> Fraction:
    try:
        return rational(value if isinstance(value, str) else None, name)
    except InvalidParameter:
        raise damaged(name, 'must be a number as text like "1/3"') from None
