"""Reads the parts of a release that may come from anybody: every fact is checked, nothing is guessed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.errors import InvalidParameter, InvalidRelease
from partita.exact import rational
from partita.inference.curve import UInts
from partita.releases.ranges import Json, Parts

__all__ = ["PartsReader"]

_SMALLEST_SCALE: Final = Fraction(1, 2**20)
_LARGEST_SCALE: Final = Fraction(2**62)
_LARGEST_VALUE: Final = 2**127
_FIX: Final = "get the file again from where it was published"


@final
@dataclass(frozen=True)
class PartsReader:
    """Typed looks at the parts of a release. What is not as it must be is an `InvalidRelease`."""

    parts: Parts

    def expect(self, *, facts: Iterable[str], series: Iterable[str]) -> None:
        """Refuse a release that lacks a part or has one too many."""
        if set(self.parts.facts) != set(facts) or set(self.parts.series) != set(series):
            raise InvalidRelease("parts", "must be those of its kind, no more and no less", fix=_FIX)

    def integer(self, name: str, *, low: int, high: int) -> int:
        """A whole number between low and high, both included."""
        value = self.parts.facts.get(name)
        if type(value) is not int or not low <= value <= high:
            raise InvalidRelease(name, f"must be a whole number from {low} to {high}", fix=_FIX)
        return value

    def scale(self, name: str) -> Fraction:
        """A noise scale."""
        return _scale(self.parts.facts.get(name), name)

    def scales(self, name: str, *, most: int) -> tuple[Fraction, ...]:
        """A list of noise scales, at least one and at most so many."""
        values = self.parts.facts.get(name)
        if not isinstance(values, list) or not 1 <= len(values) <= most:
            raise InvalidRelease(name, f"must be a list of 1 to {most} noise scales", fix=_FIX)
        return tuple(_scale(value, name) for value in values)

    def noisy(self, name: str, *, count: int) -> NDArray[Any]:
        """`count` noisy integers."""
        values = self.parts.series.get(name)
        if not isinstance(values, np.ndarray) or values.shape != (count,) or not _whole(values):
            raise InvalidRelease(name, f"must hold {count} integers", fix=_FIX)
        return values

    def edges(self, name: str, *, size: int) -> UInts:
        """Cells in increasing order, the last of which is size-1."""
        cells = self.parts.series.get(name)
        if (
            not isinstance(cells, np.ndarray)
            or cells.dtype != np.uint64
            or cells.ndim != 1
            or not cells.size
            or bool((cells[1:] <= cells[:-1]).any())
            or int(cells[-1]) != size - 1
        ):
            raise InvalidRelease(name, "must be increasing cells up to the last one", fix=_FIX)
        return cells


def _scale(value: Json, name: str) -> Fraction:
    try:
        exact = rational(value, name) if isinstance(value, str) else Fraction(0)
    except InvalidParameter:
        exact = Fraction(0)
    if not _SMALLEST_SCALE <= exact <= _LARGEST_SCALE:
        raise InvalidRelease(name, "must be a noise scale between 2^-20 and 2^62, as text", fix=_FIX)
    return exact


def _whole(values: NDArray[Any]) -> bool:
    if values.dtype == object:
        return all(type(value) is int and abs(value) < _LARGEST_VALUE for value in values)
    return bool(values.dtype == np.int64)
