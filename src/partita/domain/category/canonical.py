"""The canonical text of values that are not text, by which they match labels."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, TypeAlias, assert_never

from partita.domain.base.base import Special
from partita.domain.columns.columns import Exacts, Flags, Floats, Moments, Scaled
from partita.domain.columns.text import number_text

Label: TypeAlias = str | Special

_LARGEST_BITS: Final = 2000
"""Numbers longer than this have no canonical text; Python refuses to write far longer ones."""


def canonical(content: Flags | Scaled | Floats | Exacts | Moments) -> list[Label]:
    """The text of each value, NULL for NaN, and OTHER for what has no canonical text."""
    match content:
        case Flags(flags):
            return ["true" if flag else "false" for flag in flags.tolist()]
        case Scaled(values, unit):
            return [_text(value * unit) for value in values.tolist()]
        case Floats(floats):
            return [_float_text(value) for value in floats.tolist()]
        case Exacts(exacts):
            return [_float_text(value) if isinstance(value, float) else _text(value) for value in exacts]
        case Moments():
            return _day_texts(content)
        case _:
            assert_never(content)


def _text(value: int | Fraction) -> Label:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _LARGEST_BITS:
        return Special.OTHER
    return number_text(Fraction(value))


def _float_text(value: float) -> Label:
    """The number that the shortest decimal of a float writes, so that 0.1 is "0.1"."""
    if math.isfinite(value):
        return number_text(Fraction(repr(value)))
    return Special.NULL if math.isnan(value) else Special.OTHER


def _day_texts(moments: Moments) -> list[Label]:
    if not moments.dated:
        return [Special.OTHER] * len(moments)
    return [str(day) for day in moments.day.astype("M8[D]")]
