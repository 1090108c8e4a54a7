"""The cells that queries weigh: columns with their public domains, special cells included."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import final

from partita.domain.axis import LARGEST_AXIS, Axis
from partita.domain.base.base import Domain, is_domain
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.lazy.cached import cached_property
from partita.numbers import Converted, freeze, frozen, parameter


@final
@frozen()
class Universe:
    """Columns and their domains, in order: a cell for each combination of positions along their axes.

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
        missing = [column for column in columns if column not in schema]
        if missing:
            fix = "check the spelling"
            raise InvalidParameter("queries", "must name columns of the schema", given=missing[0], fix=fix)
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
        if column not in self.columns:
            rule = f"must name columns among {', '.join(self.columns)}"
            raise InvalidParameter("queries", rule, given=column, fix="check the spelling, or add the column")
        return self.columns.index(column)

    def domain(self, column: str) -> Domain:
        """The domain of a column."""
        return self.domains[self.number(column)]

    def axis(self, column: str) -> Axis:
        """The axis of a column."""
        return self.axes[self.number(column)]


def _names(columns: object) -> tuple[str, ...]:
    given = tuple(columns) if isinstance(columns, list | tuple) else ()
    if not given or not all(isinstance(column, str) and column for column in given):
        rule = "must be a list of names"
        raise InvalidParameter("columns", rule, given=columns, fix='pass for example ["age"]')
    fix = "name each once"
    check(len(set(given)) == len(given), "columns", "must be different", given=len(given), fix=fix)
    return given


def _domains(domains: object) -> tuple[Domain, ...]:
    given = tuple(domains) if isinstance(domains, list | tuple) else ()
    fits = given and all(is_domain(domain) and domain.size <= LARGEST_AXIS for domain in given)
    fix = "pass for example [Integer(0, 120)]"
    check(fits, "domains", "must be a list of domains of at most 2^63 cells", given=domains, fix=fix)
    return given
