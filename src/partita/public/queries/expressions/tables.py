"""Queries given cell by cell: explicit weights for a few values, zero for all others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias, final

from partita.domain.axis import Axis
from partita.domain.base.base import Domain, Special
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.numbers import rational
from partita.public.queries.product.product import Factor
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.queries.queries.writing import (
    Key,
    key,
    written,
    written_call,
    written_key,
    written_number,
)
from partita.public.queries.ranges.sparse import Sparse

Entry: TypeAlias = tuple[tuple[Key, ...], Fraction]
"""What stands for a cell, one key for each column, and its weight."""

_MOST_ENTRIES: Final = 2**20
_LARGEST: Final = 2**62
_FINEST: Final = 2**62


@final
@dataclass(frozen=True, repr=False)
class Matrix(Queries):
    """Rows of explicit weights over the cells of some columns."""

    names: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns."""
        return self.names

    def number(self, universe: Universe) -> int:
        """One for each row."""
        return len(self.rows)

    def factors(self, universe: Universe) -> list[Factor]:
        """One sparse matrix."""
        axes = tuple(universe.number(column) for column in self.columns)
        widths = tuple(universe.shape[axis] for axis in axes)
        if math.prod(widths) > _LARGEST:
            raise _wrong("must be over columns of at most 2^62 cells together", "name fewer columns")
        fine = math.lcm(1, *(weight.denominator for row in self.rows for _, weight in row))
        if fine > _FINEST:
            raise _wrong("must have a common denominator of at most 2^62", "round the weights")
        listed = [(number, *entry) for number, row in enumerate(self.rows) for entry in row]
        places = [_Places.of(column, universe.domain(column)) for column in self.columns]
        spots = [_spot(keys, places, widths) for _, keys, _ in listed]
        weights = [int(weight * fine) for _, _, weight in listed]
        return [(axes, Sparse(widths, len(self.rows), [row for row, _, _ in listed], spots, weights, fine))]

    def pick(self, universe: Universe, index: int) -> Queries:
        """One row."""
        return Matrix(self.columns, (self.rows[index],))

    def __str__(self) -> str:
        names, rows = map(written, self.columns), map(_written_row, self.rows)
        return written_call("weights" if len(self.rows) == 1 else "matrix", *names, *rows)


def entries(columns: tuple[str, ...], row: object) -> tuple[Entry, ...]:
    """The entries of a mapping from values, or tuples of values, to weights."""
    if not isinstance(row, Mapping):
        raise _wrong("must map values to weights", "pass for example {30: 1, 31: 2}")
    found = tuple((_keys(columns, each), rational(weight, "weights")) for each, weight in row.items())
    if len({keys for keys, _ in found}) < len(found):
        raise _wrong("must name each cell once", "leave out the second")
    return found


def check_entries(rows: Sequence[tuple[Entry, ...]]) -> None:
    """Refuse more explicit weights than there may be."""
    if not rows or sum(map(len, rows)) > _MOST_ENTRIES:
        raise _wrong(f"must have 1 to {_MOST_ENTRIES} entries", "use ranges or prefixes for many cells")


def _keys(columns: tuple[str, ...], given: object) -> tuple[Key, ...]:
    keys = given if isinstance(given, tuple) else (given,)
    if len(keys) != len(columns):
        raise _wrong("must name a value for each column", "pass tuples of values")
    return tuple(map(key, keys))


class _Places(NamedTuple):
    """Where the values of a column lie along its axis."""

    column: str
    domain: Domain
    axis: Axis
    specials: Mapping[str, int]

    @staticmethod
    def of(column: str, domain: Domain) -> _Places:
        return _Places(column, domain, Axis.of(domain), Axis.specials(domain))

    def position(self, each: Key) -> int:
        """The position of a value, or of a special cell by its name."""
        return self._special(str(each)) if isinstance(each, Special) else self._ordinary(each)

    def _special(self, name: str) -> int:
        if name in self.specials:
            return self.specials[name]
        rule = f"must have a special cell of that name to weigh it: {self.domain!r}"
        raise InvalidParameter(self.column, rule, given=name, fix="leave it out")

    def _ordinary(self, each: Key) -> int:
        found = self.domain.locate(each, name=self.column)
        rule, fix = "must lie within its bounds to be weighed", "use pt.BELOW or pt.ABOVE"
        check(found.special is Special.ORDINARY, self.column, rule, given=each, fix=fix)
        return self.axis.position(found.cell)


def _spot(keys: tuple[Key, ...], places: Sequence[_Places], widths: tuple[int, ...]) -> int:
    """The cell that keys stand for, last column fastest."""
    spot = 0
    for along, each, width in zip(places, keys, widths, strict=True):
        spot = spot * width + along.position(each)
    return spot


def _written_row(row: tuple[Entry, ...]) -> str:
    return "{" + ", ".join(f"{_written_keys(keys)}: {written_number(weight)}" for keys, weight in row) + "}"


def _written_keys(keys: tuple[Key, ...]) -> str:
    return written_key(keys[0]) if len(keys) == 1 else f"({', '.join(map(written_key, keys))})"


def _wrong(rule: str, fix: str) -> InvalidParameter:
    return InvalidParameter("weights", rule, given=None, fix=fix)
