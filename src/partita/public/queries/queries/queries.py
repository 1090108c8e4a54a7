"""Lists of linear queries, written like dataframe expressions and evaluated when a universe is known."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Final, final

import numpy as np

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.numbers import integer, rational
from partita.public.queries.operator.structured import Structured
from partita.public.queries.product.product import Factor, Product
from partita.public.queries.product.stack import Stack, stacked
from partita.public.queries.queries.universe import Universe
from partita.public.queries.queries.writing import written_number
from partita.public.queries.ranges.spans import MOST_QUERIES
from partita.public.queries.ranges.vector import as_vector
from partita.public.queries.ranges.weighted import Weighted

_MOST_OVERLAPS: Final = 4096
MOST_LISTS: Final = 2**14
"""No more lists stand one behind the other."""


class Queries(ABC):
    """A list of linear queries over some columns. Nothing is computed before a universe is known.

    `a * b` multiplies weights, every query of a with every one of b; `a + b` puts the lists one behind the
    other; numbers scale. `repr` is the text form, which `parse` reads back.
    """

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that are named, each once, in order of appearance."""

    @abstractmethod
    def number(self, universe: Universe) -> int:
        """How many queries there are."""

    @abstractmethod
    def factors(self, universe: Universe) -> list[Factor]:
        """Operators over different axes of the universe whose Kronecker product it is."""

    @abstractmethod
    def pick(self, universe: Universe, index: int) -> Queries:
        """One of the queries, as an expression."""

    @abstractmethod
    def __str__(self) -> str:
        """The text form."""

    def over(self, universe: Universe) -> Structured:
        """The operator of all queries over a universe."""
        if self.number(universe) > MOST_QUERIES:
            raise too_many(self.number(universe))
        return Product(universe.shape, self.factors(universe))

    def label(self, universe: Universe, index: int) -> str:
        """One of the queries as text, which reads back as this one."""
        return str(self.pick(universe, integer(index, "index", low=0, high=self.number(universe) - 1)))

    def total_at(self, universe: Universe) -> int | None:
        """The index of a query that counts all rows, if there is one."""
        return None

    def settled(self, universe: Universe) -> Queries:
        """The same queries with functions replaced by their weights on the public cells."""
        return self

    @property
    def written_out(self) -> bool:
        """Whether the text form says all: no weights are given by a function."""
        return True

    def to_json(self) -> str:
        """The text form, for a file; `queries_from` reads it."""
        if not self.written_out:
            rule = "must not hold functions to be written"
            raise InvalidParameter("queries", rule, given=str(self), fix="use settled(universe)")
        return str(self)

    def __mul__(self, other: object) -> Queries:
        if isinstance(other, Queries):
            return Times.of(Fraction(1), [self, other])
        return Times.of(_scale(other), [self]) if _is_number(other) else NotImplemented

    def __rmul__(self, other: object) -> Queries:
        return self.__mul__(other)

    def __add__(self, other: object) -> Queries:
        return Concatenation.of([self, other]) if isinstance(other, Queries) else NotImplemented

    def __repr__(self) -> str:
        return str(self)


@final
@dataclass(frozen=True, repr=False)
class Times(Queries):
    """Products of one query of each list, times a number; the queries of the last list come fastest."""

    scale: Fraction
    lists: tuple[Queries, ...]

    @staticmethod
    def of(scale: Fraction, lists: Sequence[Queries]) -> Queries:
        """The product; products in it are taken apart, and one list without a number stays what it is."""
        flat: list[Queries] = []
        for each in lists:
            scale *= each.scale if isinstance(each, Times) else 1
            flat += each.lists if isinstance(each, Times) else [each]
        return flat[0] if scale == 1 and len(flat) == 1 else Times(scale, tuple(flat))

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of all lists."""
        return tuple(dict.fromkeys(column for each in self.lists for column in each.columns))

    def number(self, universe: Universe) -> int:
        """The product of all numbers."""
        return math.prod(each.number(universe) for each in self.lists)

    def factors(self, universe: Universe) -> list[Factor]:
        """Those of all lists; lists over common axes are merged."""
        found: list[Factor] = []
        for each in self.lists:
            found = _merged(universe.shape, found, each.factors(universe))
        if self.scale == 1:
            return found
        scaled = Product(universe.shape, found).multiplied(self.scale.numerator, self.scale.denominator)
        return list(scaled.factors)

    def pick(self, universe: Universe, index: int) -> Queries:
        """One query of each list."""
        places = np.unravel_index(index, [each.number(universe) for each in self.lists])
        both = zip(self.lists, places, strict=True)
        return Times.of(self.scale, [each.pick(universe, int(place)) for each, place in both])

    @property
    def written_out(self) -> bool:
        """Whether all lists are."""
        return all(each.written_out for each in self.lists)

    def settled(self, universe: Universe) -> Queries:
        """The product of settled lists."""
        return Times.of(self.scale, [each.settled(universe) for each in self.lists])

    def __str__(self) -> str:
        lists = [f"({each})" if isinstance(each, Concatenation) else str(each) for each in self.lists]
        return " * ".join(([] if self.scale == 1 else [written_number(self.scale)]) + lists)


@final
@dataclass(frozen=True, repr=False)
class Concatenation(Queries):
    """Several lists, one behind the other."""

    lists: tuple[Queries, ...]

    @staticmethod
    def of(lists: Sequence[Queries]) -> Queries:
        """The list of all; lists of lists are taken apart."""
        flat: list[Queries] = []
        for each in lists:
            flat += each.lists if isinstance(each, Concatenation) else [each]
        rule = f"must be at most {MOST_LISTS} lists"
        check(len(flat) <= MOST_LISTS, "queries", rule, given=len(flat), fix="use ranges or matrix")
        return flat[0] if len(flat) == 1 else Concatenation(tuple(flat))

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of all lists."""
        return tuple(dict.fromkeys(column for each in self.lists for column in each.columns))

    def number(self, universe: Universe) -> int:
        """The sum of all numbers."""
        return sum(each.number(universe) for each in self.lists)

    def factors(self, universe: Universe) -> list[Factor]:
        """One stack over all axes that are named."""
        axes = tuple(universe.number(column) for column in self.columns)
        if not axes:
            axes = (0,)
        inner = Universe([universe.columns[a] for a in axes], [universe.domains[a] for a in axes])
        return [(axes, stacked([each.over(inner) for each in self.lists]))]

    def over(self, universe: Universe) -> Structured:
        """A stack over the whole universe."""
        if self.number(universe) > MOST_QUERIES:
            raise too_many(self.number(universe))
        return stacked([each.over(universe) for each in self.lists])

    def pick(self, universe: Universe, index: int) -> Queries:
        """One query of the list that has it."""
        for each in self.lists:
            number = each.number(universe)
            if index < number:
                return each.pick(universe, index)
            index -= number
        raise AssertionError("index is less than the number of queries")

    def total_at(self, universe: Universe) -> int | None:
        """The first total of any list."""
        first = 0
        for each in self.lists:
            found = each.total_at(universe)
            if found is not None:
                return first + found
            first += each.number(universe)
        return None

    @property
    def written_out(self) -> bool:
        """Whether all lists are."""
        return all(each.written_out for each in self.lists)

    def settled(self, universe: Universe) -> Queries:
        """The list of settled lists."""
        return Concatenation.of([each.settled(universe) for each in self.lists])

    def __str__(self) -> str:
        return " + ".join(map(str, self.lists))


def too_many(number: int) -> InvalidParameter:
    """The error for more queries than there may be."""
    fix = "ask for fewer ranges, for example step="
    return InvalidParameter("queries", f"must be at most {MOST_QUERIES}", given=number, fix=fix)


def _merged(shape: tuple[int, ...], before: list[Factor], more: list[Factor]) -> list[Factor]:
    """The factors of a product, in order: those over common axes become one.

    One query over axes that one other factor is over merges with that; else all that came before it do.
    """
    found = list(before)
    for axes, operator in more:
        touched = [number for number, (others, _) in enumerate(found) if set(others) & set(axes)]
        if not touched:
            found.append((axes, operator))
        elif len(touched) == 1 and (len(operator) == 1 or touched[0] == len(found) - 1):
            found[touched[0]] = _overlapping(shape, [found[touched[0]]], (axes, operator))
        else:
            found = [_overlapping(shape, found, (axes, operator))]
    return found


def _overlapping(shape: tuple[int, ...], left: list[Factor], right: Factor) -> Factor:
    """All pairs of queries over common axes, cell by cell."""
    axes = tuple(sorted({axis for mine, _ in [*left, right] for axis in mine}))
    widths = tuple(shape[axis] for axis in axes)
    one, other = (
        Product(widths, [(tuple(axes.index(a) for a in mine), each) for mine, each in factors])
        for factors in (left, [right])
    )
    if len(other) == 1:
        return axes, Weighted(one, as_vector(other))
    rule = f"must multiply at most {_MOST_OVERLAPS} queries with others over the same column"
    fix = "write the longer list last, or ask for fewer"
    check(len(one) <= _MOST_OVERLAPS, "queries", rule, given=len(one), fix=fix)
    rows = [Weighted(other, as_vector(one.single(index))) for index in range(len(one))]
    return axes, rows[0] if len(rows) == 1 else Stack(rows)


def _is_number(value: object) -> bool:
    return isinstance(value, Rational | float) and not isinstance(value, bool)


def _scale(value: object) -> Fraction:
    return rational(value, "queries")
