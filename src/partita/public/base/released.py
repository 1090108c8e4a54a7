"""Released numbers as they may come from anybody: one limit for integers, one for noise, one refusal."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import integer_array
from partita.errors.errors import InvalidData, InvalidRelease

LARGEST_NUMBER: Final = 2**127
"""No released integer is further from zero."""

_LEAST_SCALE: Final = Fraction(1, 2**20)
_LARGEST_SCALE: Final = Fraction(2**62)


def damaged(name: str, rule: str) -> InvalidRelease:
    """The error for a part of a release that is not what it should be."""
    return InvalidRelease(name, rule, fix="get the release again from where it was published")


def noise_scale(scale: Fraction, name: str) -> Fraction:
    """A scale of noise, if it is one that can be drawn."""
    if not _LEAST_SCALE <= scale <= _LARGEST_SCALE:
        raise damaged(name, "must be a noise scale between 2^-20 and 2^62")
    return scale


def noise_rate(rate: Fraction, name: str) -> Fraction:
    """One over a scale of noise, if it is one that can be drawn."""
    if not 1 / _LARGEST_SCALE <= rate <= 1 / _LEAST_SCALE:
        raise damaged(name, "must give noise of a scale between 2^-20 and 2^62")
    return rate


def noisy_integers(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Released integers in a row: int64, or Python ints where those do not fit; read-only."""
    try:
        array = integer_array(values, name)
    except InvalidData:
        raise damaged(name, "must hold integers") from None
    if array.ndim != 1 or (array.dtype == object and any(abs(value) > LARGEST_NUMBER for value in array)):
        raise damaged(name, "must be a row of integers of at most 127 bits")
    fits = array.dtype.kind == "i" or bool(((array >= -(2**63)) & (array < 2**63)).all())
    array = array.astype(np.int64 if fits else object)
    array.flags.writeable = False
    return array
