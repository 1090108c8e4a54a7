"""Series of integers as the columns of a file: 64 bits each, and two columns for up to 128."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.errors.errors import InvalidRelease

_WIDE: Final = "int128"
_DTYPES: Final = {"i": "int64", "u": "uint64", "O": _WIDE}
_HALVES: Final = (("_high", "int64"), ("_low", "uint64"))
_WIDE_COST: Final = 64
_BITS: Final = 64
_LOW: Final = 2**_BITS - 1
_SMALLEST, _LARGEST = -(2**127), 2**127 - 1


@final
@dataclass(frozen=True)
class Column:
    """One list of the file: its name, whether its integers are `int64` or `uint64`, and how many.

    `cost` is what each takes in memory, in bytes.
    """

    name: str
    dtype: str
    length: int
    cost: int = 8


@final
@dataclass(frozen=True, kw_only=True)
class Series:
    """What the specification says of a series: `int64`, `uint64`, or `int128` for Python ints.

    The last takes two columns, the floor of x / 2^64 and the rest, so that any tool can read them.
    """

    name: str
    dtype: str
    length: int

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES.values():
            raise _refused(self.name, f"must be of one of the types {', '.join(_DTYPES.values())}")

    @property
    def width(self) -> int:
        """How many columns hold this series."""
        return 2 if self.dtype == _WIDE else 1

    @classmethod
    def of(cls, name: str, values: NDArray[Any]) -> Series:
        """The series that holds these values."""
        dtype = _DTYPES.get(values.dtype.kind)
        if values.ndim != 1 or dtype is None:
            raise _refused(name, "must be a flat array of integers")
        return cls(name=name, dtype=dtype, length=values.size)

    def columns(self, prefix: str) -> Iterator[Column]:
        """The columns of the file that hold this series."""
        name = f"{prefix}.{self.name}"
        if self.dtype != _WIDE:
            yield Column(name, self.dtype, self.length)
            return
        for suffix, dtype in _HALVES:
            yield Column(name + suffix, dtype, self.length, cost=_WIDE_COST)

    def split(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """The content of each of these columns."""
        if self.dtype != _WIDE:
            yield values.astype(self.dtype, copy=False)
            return
        whole = [_bounded(value, self.name) for value in values.tolist()]
        yield np.array([value >> _BITS for value in whole], np.int64)
        yield np.array([value & _LOW for value in whole], np.uint64)

    def join(self, columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The values that `split` gave these columns for."""
        if self.dtype != _WIDE:
            (values,) = columns
            return values
        high, low = (column.astype(object) for column in columns)
        return np.asarray(high * 2**_BITS + low, dtype=object)


def _bounded(value: object, name: str) -> int:
    if type(value) is not int or not _SMALLEST <= value <= _LARGEST:
        raise _refused(name, "must hold integers of at most 128 bits")
    return value


def _refused(name: str, rule: str) -> InvalidRelease:
    return InvalidRelease(f"series {name!r}", rule, fix="save what a mechanism released")
