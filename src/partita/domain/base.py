"""What every domain is: a line of public cells, and a few special cells beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Any, Final, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from partita.errors import InvalidParameter, check, check_data
from partita.numbers import rational

LARGEST_SIZE: Final = 2**64

Cells: TypeAlias = npt.NDArray[np.uint64]
Spec: TypeAlias = dict[str, str | list[str]]


class Special(IntEnum):
    """Where a value went: an ordinary cell of the line, or one of the cells beside it.

    Arrays hold its number, but it equals no number of Python: {NULL, 4} is a set of two.

    >>> Special.BELOW, str(Special.BELOW), Special.named("null")
    (<Special.BELOW: 1>, 'below', <Special.NULL: 4>)
    >>> len({Special.NULL, 4})
    2
    """

    ORDINARY = 0
    BELOW = 1
    ABOVE = 2
    INVALID = 3
    NULL = 4
    OTHER = 5

    def __str__(self) -> str:
        return self.name.lower()

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    @classmethod
    def named(cls, name: str) -> Special:
        """The special cell that `Domain.specials` calls `name`."""
        return cls[name.upper()]


BELOW: Final = Special.BELOW
ABOVE: Final = Special.ABOVE
INVALID: Final = Special.INVALID
NULL: Final = Special.NULL
OTHER: Final = Special.OTHER


ORDERED_SPECIALS: Final = tuple(
    str(special) for special in (Special.BELOW, Special.ABOVE, Special.INVALID, Special.NULL)
)


@dataclass(frozen=True, eq=False)
class Encoded:
    """One cell per row, in two read-only arrays of the same length.

    `special` holds the codes of `Special`; where it is ORDINARY the row is in cell `cells` of the line,
    elsewhere `cells` is 0 and means nothing. A cell of a `Text` column is wider than 64 bits: there `cells`
    has a row of words for each row, whose order is that of the cells.
    """

    cells: Cells
    special: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        self.cells.setflags(write=False)
        self.special.setflags(write=False)

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def keys(self) -> list[npt.NDArray[Any]]:
        """The rows as columns of integers to sort and to compare by: the special code, then the words."""
        return [self.special, *(self.cells.T if self.cells.ndim > 1 else [self.cells])]

    @classmethod
    def from_keys(cls, keys: Sequence[npt.NDArray[Any]]) -> Encoded:
        """The rows that have these `keys`."""
        special, *words = keys
        return cls(words[0] if len(words) == 1 else np.stack(words, axis=1), special)

    @classmethod
    def all(cls, length: int, special: Special) -> Encoded:
        """`length` rows, all in the same special cell."""
        return cls(np.zeros(length, np.uint64), np.full(length, special, np.uint8))

    def tolist(self) -> list[int | str]:
        """The rows as Python values: the number of an ordinary cell, the name of a special one."""
        pairs = zip(self.cells.tolist(), self.special.tolist(), strict=True)
        return [str(Special(special)) if special else cell for cell, special in pairs]

    def take(self, rows: npt.NDArray[np.int64]) -> Encoded:
        """The encoded rows at these positions, repeats allowed."""
        return Encoded(self.cells[rows], self.special[rows])


@dataclass(frozen=True)
class Position:
    """Where one public value of a query lies: in a cell, below the line, or above it."""

    cell: int
    special: Special = Special.ORDINARY


@runtime_checkable
class Domain(Protocol):
    """The public geometry of a column, declared and never inferred from data.

    A domain has `size` ordered cells, numbered from 0, and the special cells that
    `specials` names. It is total: every value that any column can hold has a cell.
    """

    @property
    def size(self) -> int:
        """The number of ordered cells, from 1 to 2^64; more of a `Text` column."""

    @property
    def specials(self) -> tuple[str, ...]:
        """The names of the special cells, in the order of `Special`."""

    def encode(self, values: object) -> Encoded:
        """The cell of every row. Values never raise; only a container that is no column does."""

    def decode(self, cells: Sequence[int] | Cells) -> Sequence[object]:
        """The Python value that stands for each ordinary cell."""

    def locate(self, value: object, *, name: str = "value") -> Position:
        """Where a public bound called `name` lies; refused if no value of the column could equal it."""

    def to_spec(self) -> Spec:
        """A plain, exact description: JSON strings and lists of strings only."""

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The domain that `to_spec` described."""


def is_domain(given: object) -> bool:
    """Whether it is a domain; a class of domains has all the names of one, and is none."""
    return isinstance(given, Domain) and not isinstance(given, type)


def place(whole: npt.NDArray[Any], low: int, high: int) -> Encoded:
    """Cells of whole numbers on the line from `low` to `high`, compared exactly.

    The numbers are 64-bit integers, signed or not, or Python ints of any size. The subtraction wraps modulo
    2^64, which is exact because only differences from 0 to 2^64 - 1 are used.

    >>> place(np.array([-1, 0, 7]), 0, 5).tolist()
    ['below', 0, 'above']
    """
    below, above = whole < low, whole > high
    inside = ~(below | above)
    cells = np.zeros(len(whole), np.uint64)
    if whole.dtype == object:
        cells[inside] = (whole[inside] - low).astype(np.uint64)
    else:
        np.subtract(whole.astype(np.uint64), np.uint64(low % LARGEST_SIZE), out=cells, where=inside)
    special = below * np.uint8(Special.BELOW) + above * np.uint8(Special.ABOVE)
    return Encoded(cells, special)


def position(whole: int, low: int, high: int) -> Position:
    """Where one whole number lies on the line from `low` to `high`."""
    if low <= whole <= high:
        return Position(whole - low)
    return Position(0, Special.BELOW if whole < low else Special.ABOVE)


def check_size(size: int, first: str, last: str, *, given: object) -> None:
    """Refuse a line whose `last` bound, given as `given`, leaves no cell or more than 2^64."""
    check(size >= 1, last, f"must not be below {first}", given=given, fix="swap the two bounds")
    fix = f"bring it nearer to {first} or make the cells coarser"
    check(size <= LARGEST_SIZE, last, "must leave at most 2^64 cells", given=given, fix=fix)


def indices(cells: Sequence[int] | Cells, size: int) -> list[int]:
    """`cells` as Python ints, each a cell of a line of `size` cells."""
    listed = cells.tolist() if isinstance(cells, np.ndarray) else list(cells)
    numbers = (isinstance(cell, (int, np.integer)) and not isinstance(cell, bool) for cell in listed)
    fits = all(numbers) and all(0 <= cell < size for cell in listed)
    fix = "decode the ordinary cells of this domain only"
    check_data(fits, "cells", f"must be integers from 0 to {size - 1}", fix=fix)
    return [int(cell) for cell in listed]


# Specs: plain dictionaries of strings, read strictly.


def kind_of(spec: object) -> tuple[str, Mapping[str, object]]:
    """The kind of domain that a spec describes, and the spec itself."""
    if not isinstance(spec, Mapping) or not isinstance(spec.get("kind"), str):
        fix = 'pass what to_spec returned, such as {"kind": "integer", ...}'
        raise InvalidParameter("spec", "must be a mapping with a kind", given=spec, fix=fix)
    return spec["kind"], spec


def read_entries(spec: object, kind: str, *names: str) -> list[object]:
    """The entries of a spec of this kind, which must be exactly the named ones."""
    given, entries = kind_of(spec)
    fix = "use domain_from_spec for specs of any kind"
    check(given == kind, "spec", f"must be of kind {kind!r}", given=given, fix=fix)
    rule = f"of kind {kind!r} must have the entries kind, {', '.join(names)}"
    listed, fix = ", ".join(map(str, entries)), "pass what to_spec returned"
    check(set(entries) == {"kind", *names}, "spec", rule, given=listed, fix=fix)
    return [entries[name] for name in names]


def whole(value: object, name: str) -> int:
    """An integer of a spec, written as text or as a number."""
    number: Fraction = rational(value, name)
    check(number.denominator == 1, name, "must be an integer", given=value, fix="write digits only")
    return int(number)
