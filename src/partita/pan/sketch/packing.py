"""Tables as rows of a state: as many bytes as they have, whatever is in them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from partita.public.streams.terms import misfit

Choice = TypeVar("Choice")


def packed_bits(bits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Eight to a byte."""
    return _words(np.packbits(bits))


def bits_of(row: Sequence[int], size: int) -> NDArray[np.bool_]:
    """So many bits, if that is what was packed."""
    data = _bytes(row, -(-size // 8))
    return np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=size).astype(np.bool_)


def packed_numbers(numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Numbers below `count`, in as few bytes as the largest needs."""
    return _words(numbers.astype(_type_of(count)))


def numbers_of(row: Sequence[int], size: int, count: int) -> NDArray[np.int64]:
    """So many numbers below `count`, if that is what was packed."""
    kind = _type_of(count)
    numbers = np.frombuffer(_bytes(row, size * kind.itemsize), dtype=kind).astype(np.int64)
    if numbers.max(initial=0) >= count:
        raise misfit("hold numbers that a register has")
    return numbers


def choice_of(index: int, choices: Sequence[Choice]) -> Choice:
    """The choice with this number."""
    if not 0 <= index < len(choices):
        raise misfit("hold a choice that there is")
    return choices[index]


def fraction_of(numerator: int, denominator: int) -> Fraction:
    """A positive fraction."""
    if not numerator > 0 < denominator:
        raise misfit("hold positive shares")
    return Fraction(numerator, denominator)


def _type_of(count: int) -> np.dtype[Any]:
    return np.min_scalar_type(count - 1).newbyteorder("<")


def _words(table: NDArray[Any]) -> NDArray[np.int64]:
    data = table.tobytes()
    filled = data.ljust(-(-len(data) // 8) * 8, b"\0")
    return np.frombuffer(filled, dtype="<i8").astype(np.int64)


def _bytes(row: Sequence[int], length: int) -> bytes:
    if len(row) != -(-length // 8):
        raise misfit("hold its whole table")
    return np.array(row, dtype="<i8").tobytes()[:length]
