"""Any column, as a few kinds of typed content.

A column arrives as a NumPy array, an Arrow array, a list, or whatever speaks the Arrow
interface. `read.read` turns it into parts: some rows, and content of one kind. A domain then
says what each kind means to it, and `assemble` puts the rows back together. A column of
mixed Python values has several parts, and a part may be a column again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from partita.domain.base.base import Encoded, Special

LONGEST: Final = 400
"""Bytes of text beyond which no number, date or time is read."""
WHITE: Final = b" \t\n\r\f\v"
"""The ASCII white space that is trimmed around numbers, dates and times."""

Rows: TypeAlias = slice | npt.NDArray[np.int64] | npt.NDArray[np.bool_]
Number: TypeAlias = int | Fraction | float
Whole: TypeAlias = npt.NDArray[np.int64 | np.uint64]


class Blank(Enum):
    """Rows without content: of no value (None, masked, NaT, an Arrow null), or of none that can be read."""

    MISSING = auto()
    INVALID = auto()


@dataclass(frozen=True)
class Flags:
    """True and False."""

    values: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Scaled:
    """64-bit integers, signed or not, that count a common unit: integers and decimals."""

    values: Whole
    unit: Fraction = Fraction(1)

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Floats:
    """Binary floating point, each the exact number that its 64 bits say."""

    values: npt.NDArray[np.float64]

    @classmethod
    def widened(cls, values: npt.NDArray[Any]) -> Floats:
        """Floats of 64 bits or fewer; a signalling NaN may pass without complaint."""
        with np.errstate(invalid="ignore"):
            return cls(values.astype(np.float64, copy=False))

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Exacts:
    """Python ints and Fractions of any size, and floats as the numbers that their bits say."""

    values: Sequence[Number]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Texts:
    """Text as bytes in an Arrow large_binary array without nulls, valid UTF-8 or not."""

    values: Any

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Moments:
    """Points in time: a day since 1970-01-01 and the nanosecond of that day.

    `aware` moments are instants, written in UTC; the others are readings of a wall clock
    somewhere. `dated` ones are calendar days and have no time of day. Days further than
    `moments.FAR` from 1970 are brought to that distance.
    """

    day: npt.NDArray[np.int64]
    nanosecond: npt.NDArray[np.int64]
    aware: bool
    dated: bool = False

    def __len__(self) -> int:
        return len(self.day)


@dataclass(frozen=True)
class Coded:
    """Rows that are positions in another column, as in a dictionary of distinct values."""

    codes: npt.NDArray[np.int64]
    column: Column


@dataclass(frozen=True)
class Column:
    """A column cut into parts that together hold every row once."""

    length: int
    parts: Sequence[Part]

    @classmethod
    def of(cls, content: Content, length: int) -> Column:
        """A column of one kind."""
        return cls(length, [(slice(None), content)])

    @classmethod
    def split(cls, mask: npt.NDArray[np.bool_], there: Content, elsewhere: Content) -> Column:
        """A column of two kinds: one where the mask is true, another where it is false."""
        return cls(len(mask), [(mask, there), (~mask, elsewhere)])


Plain: TypeAlias = Flags | Scaled | Floats | Exacts | Texts | Moments
Content: TypeAlias = Plain | Blank | Coded | Column
Part: TypeAlias = tuple[Rows, Content]
Encoder: TypeAlias = Callable[[Plain], Encoded]


def assemble(column: Column, encode: Encoder, *, invalid: Special) -> Encoded:
    """Encode each part by `encode` and put its rows back where they were."""
    cells = np.zeros(column.length, np.uint64)
    special = np.zeros(column.length, np.uint8)
    for rows, content in column.parts:
        if isinstance(content, Blank):
            special[rows] = Special.NULL if content is Blank.MISSING else invalid
        else:
            part = _encode_part(content, encode, invalid)
            cells[rows], special[rows] = part.cells, part.special
    return Encoded(cells, special)


def exact_column(values: Sequence[Number | None]) -> Column:
    """A column of exact numbers that is invalid where there is None."""
    known = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return Column.split(known, Exacts([value for value in values if value is not None]), Blank.INVALID)


def _encode_part(content: Plain | Coded | Column, encode: Encoder, invalid: Special) -> Encoded:
    match content:
        case Coded(codes, column):
            return assemble(column, encode, invalid=invalid).take(codes)
        case Column():
            return assemble(content, encode, invalid=invalid)
        case _:
            return encode(content)
