"""Lists of linear queries, written like dataframe expressions and evaluated when a universe is known."""

from __future__ import annotations

import datetime
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Final, TypeAlias, final

import numpy as np

from partita.domain.axis import LARGEST_AXIS, Axis
from partita.domain.base import Domain, Special, is_domain
from partita.domain.columns import number_text
from partita.errors import InvalidParameter, check
from partita.lazy import cached_property
from partita.numbers import Converted, freeze, frozen, integer, parameter, rational
from partita.public.queries.operator import Structured
from partita.public.queries.product import Factor, Product, Stack, stack_operators
from partita.public.queries.ranges import MOST_QUERIES, Weighted, as_vector

_LONGEST_NAME: Final = 1000
_MOST_OVERLAPS: Final = 4096  # an operator for each: bounds the memory of products over common columns
MOST_LISTS: Final = 2**14
"""The largest number of lists in one concatenation."""


@final
@frozen()
class Universe:
    """Columns and their domains, in order: a cell for each combination of positions along their axes.

    Special cells are included.

    >>> from partita.domain import Category, Integer
    >>> Universe(["age", "sex"], [Integer(0, 120), Category(["f", "m"])]).shape
    (125, 4)
    """

    columns: Converted[Sequence[str], tuple[str, ...]] = parameter()
    domains: Converted[Sequence[Domain], tuple[Domain, ...]] = parameter()

    def __post_init__(self) -> None:
        freeze(self, columns=_names(self.columns), domains=_domains(self.domains))
        number, fits = len(self.domains), len(self.domains) == len(self.columns)
        check(fits, "domains", "must be as many as columns", given=number, fix="pass one for each")

    @staticmethod
    def of(schema: Mapping[str, Domain], columns: Sequence[str]) -> Universe:
        """Some columns of a schema, in the order of the columns."""
        missing = next((column for column in columns if column not in schema), None)
        rule, fix = "must name columns of the schema", "check the spelling"
        check(missing is None, "queries", rule, given=missing, fix=fix)
        return Universe(tuple(columns), tuple(schema[column] for column in columns))

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axis of each column."""
        return tuple(map(Axis.of, self.domains))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many positions each axis has."""
        return tuple(axis.width for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    def number(self, column: str) -> int:
        """Which axis a column is, counted from 0."""
        rule = f"must name columns among {', '.join(self.columns)}"
        fix = "check the spelling, or add the column"
        check(column in self.columns, "queries", rule, given=column, fix=fix)
        return self.columns.index(column)

    def domain(self, column: str) -> Domain:
        """The domain of a column."""
        return self.domains[self.number(column)]

    def axis(self, column: str) -> Axis:
        """The axis of a column."""
        return self.axes[self.number(column)]


def _names(columns: object) -> tuple[str, ...]:
    given = tuple(columns) if isinstance(columns, list | tuple) else ()
    names = given and all(isinstance(column, str) and column for column in given)
    check(names, "columns", "must be a list of names", given=columns, fix='pass for example ["age"]')
    different = len(set(given)) == len(given)
    check(different, "columns", "must be different", given=len(given), fix="name each once")
    return given


def _domains(domains: object) -> tuple[Domain, ...]:
    given = tuple(domains) if isinstance(domains, list | tuple) else ()
    fits = given and all(is_domain(domain) and domain.size <= LARGEST_AXIS for domain in given)
    fix = "pass for example [Integer(0, 120)]"
    check(fits, "domains", "must be a list of domains of at most 2^63 cells", given=domains, fix=fix)
    return given


# The text form of columns, values and numbers.


Key: TypeAlias = str | Special
"""What stands for a cell: the text of its value, or a special cell."""

KEYWORDS: Final = ("none", *(str(special) for special in Special if special is not Special.ORDINARY))

_WORD: Final = re.compile(r"[^\W\d]\w*")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?(/[0-9]+)?")


def column_name(column: object) -> str:
    """The name of a column."""
    rule, fix = "must be the name of a column", 'pass "age"'
    check(isinstance(column, str) and 0 < len(column) <= _LONGEST_NAME, "column", rule, given=column, fix=fix)
    return str(column)


def value_text(value: object, name: str = "value") -> str:
    """A public value as text, which every domain reads as that value.

    >>> value_text(30), value_text(0.5), value_text(datetime.date(2026, 1, 31))
    ('30', '0.5', '2026-01-31')
    """
    special = isinstance(value, Special)  # an integer, too, which stands for no number
    if isinstance(value, np.generic):
        return value_text(value.item() if not isinstance(value, np.datetime64) else str(value), name)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if not special and isinstance(value, Decimal | Real):
        return number_text(rational(value, name))
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise InvalidParameter(name, "must be a number, text or date", given=value, fix="pass for example 30")


def cell_key(value: object) -> Key:
    """What stands for a cell of a column."""
    return value if isinstance(value, Special) and value is not Special.ORDINARY else value_text(value)


def quote(text: str) -> str:
    """A name or a value: as it is if it is a plain word or number, else in quotes."""
    plain = _NUMBER.fullmatch(text) or (_WORD.fullmatch(text) and text.lower() not in KEYWORDS)
    return text if plain else '"' + text.replace('"', '""') + '"'


def format_key(value: Key) -> str:
    """A cell: special ones by their names, without quotes."""
    return str(value) if isinstance(value, Special) else quote(value)


def format_call(name: str, *arguments: str) -> str:
    """A query of a name with arguments that are text already."""
    return f"{name}({', '.join(arguments)})"


# The algebra of queries.


class Queries(ABC):
    """A list of linear queries over some columns. Nothing is computed before a universe is known.

    `a * b` multiplies weights, every query of a with every one of b; `a + b` puts the lists one behind the
    other; numbers scale. `repr` is the text form, which `parse` reads back.
    """

    columns: tuple[str, ...]
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
        check_number(self.number(universe))
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
        """Whether the text form is complete: no weights are given by a function."""
        return True

    def to_json(self) -> str:
        """The text form, for a file; `queries_from` reads it."""
        text, rule = str(self), "must not hold functions to be written"
        check(self.written_out, "queries", rule, given=text, fix="use settled(universe)")
        return text

    def __mul__(self, other: object) -> Queries:
        if isinstance(other, Queries):
            return Times.of(Fraction(1), [self, other])
        number = isinstance(other, Rational | float) and not isinstance(other, bool)
        return Times.of(rational(other, "queries"), [self]) if number else NotImplemented

    def __rmul__(self, other: object) -> Queries:
        return self.__mul__(other)

    def __add__(self, other: object) -> Queries:
        return Concatenation.of([self, other]) if isinstance(other, Queries) else NotImplemented

    def __repr__(self) -> str:
        return str(self)


class _QueryLists(Queries):
    """Queries that are made of several lists."""

    lists: tuple[Queries, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for each in self.lists for column in each.columns))

    @property
    def written_out(self) -> bool:
        return all(each.written_out for each in self.lists)


@final
@dataclass(frozen=True, repr=False)
class Times(_QueryLists):
    """Products of one query of each list, times a number; the queries of the last list come fastest."""

    scale: Fraction
    lists: tuple[Queries, ...]

    @staticmethod
    def of(scale: Fraction, lists: Sequence[Queries]) -> Queries:
        """The product; nested products are flattened, a single list without a number stays as it is."""
        flat: list[Queries] = []
        for each in lists:
            scale *= each.scale if isinstance(each, Times) else 1
            flat += each.lists if isinstance(each, Times) else [each]
        return flat[0] if scale == 1 and len(flat) == 1 else Times(scale, tuple(flat))

    def number(self, universe: Universe) -> int:
        return math.prod(each.number(universe) for each in self.lists)

    def factors(self, universe: Universe) -> list[Factor]:
        """Those of all lists; lists over common axes are merged."""
        found: list[Factor] = []
        for each in self.lists:
            found = _merge_factors(universe.shape, found, each.factors(universe))
        if self.scale == 1:
            return found
        scaled = Product(universe.shape, found).multiply(self.scale.numerator, self.scale.denominator)
        return list(scaled.factors)

    def pick(self, universe: Universe, index: int) -> Queries:
        places = np.unravel_index(index, [each.number(universe) for each in self.lists])
        both = zip(self.lists, places, strict=True)
        return Times.of(self.scale, [each.pick(universe, int(place)) for each, place in both])

    def settled(self, universe: Universe) -> Queries:
        return Times.of(self.scale, [each.settled(universe) for each in self.lists])

    def __str__(self) -> str:
        lists = [f"({each})" if isinstance(each, Concatenation) else str(each) for each in self.lists]
        return " * ".join(([] if self.scale == 1 else [number_text(self.scale)]) + lists)


@final
@dataclass(frozen=True, repr=False)
class Concatenation(_QueryLists):
    """Several lists, one behind the other."""

    lists: tuple[Queries, ...]

    @staticmethod
    def of(lists: Sequence[Queries]) -> Queries:
        """The list of all; nested lists are flattened."""
        flat: list[Queries] = []
        for each in lists:
            flat += each.lists if isinstance(each, Concatenation) else [each]
        rule = f"must be at most {MOST_LISTS} lists"
        check(len(flat) <= MOST_LISTS, "queries", rule, given=len(flat), fix="use ranges or matrix")
        return flat[0] if len(flat) == 1 else Concatenation(tuple(flat))

    def number(self, universe: Universe) -> int:
        return sum(each.number(universe) for each in self.lists)

    def factors(self, universe: Universe) -> list[Factor]:
        """One stack over all axes that are named."""
        axes = tuple(universe.number(column) for column in self.columns) or (0,)
        inner = Universe([universe.columns[a] for a in axes], [universe.domains[a] for a in axes])
        return [(axes, stack_operators([each.over(inner) for each in self.lists]))]

    def over(self, universe: Universe) -> Structured:
        check_number(self.number(universe))
        return stack_operators([each.over(universe) for each in self.lists])

    def pick(self, universe: Universe, index: int) -> Queries:
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

    def settled(self, universe: Universe) -> Queries:
        return Concatenation.of([each.settled(universe) for each in self.lists])

    def __str__(self) -> str:
        return " + ".join(map(str, self.lists))


def check_number(number: int) -> None:
    """Refuse more queries than an operator may have."""
    rule, fix = f"must be at most {MOST_QUERIES}", "ask for fewer ranges, for example step="
    check(number <= MOST_QUERIES, "queries", rule, given=number, fix=fix)


def _merge_factors(shape: tuple[int, ...], before: list[Factor], more: list[Factor]) -> list[Factor]:
    """The factors of a product, in order: those over common axes become one.

    One query over axes that one other factor is over merges with that; else all that came before it do.
    """
    found = list(before)
    for axes, operator in more:
        touched = [number for number, (others, _) in enumerate(found) if set(others) & set(axes)]
        if not touched:
            found.append((axes, operator))
        elif len(touched) == 1 and (len(operator) == 1 or touched[0] == len(found) - 1):
            found[touched[0]] = _multiply_cells(shape, [found[touched[0]]], (axes, operator))
        else:
            found = [_multiply_cells(shape, found, (axes, operator))]
    return found


def _multiply_cells(shape: tuple[int, ...], left: list[Factor], right: Factor) -> Factor:
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
