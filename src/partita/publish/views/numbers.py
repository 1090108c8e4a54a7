"""Which columns are summed, over which keys, and with which part of epsilon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from partita.domain.axis import LARGEST_AXIS
from partita.domain.base.base import Domain
from partita.domain.numeric.integer import Integer
from partita.domain.numeric.real import Real
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.publish.views.views import check_columns


@final
@dataclass(frozen=True)
class Summed:
    """Columns of which sums are published, and those of them of which squares are, too."""

    columns: tuple[str, ...] = ()
    squared: frozenset[str] = frozenset()


def checked_sums(schema: Mapping[str, Domain], sums: object, moments: object) -> Summed:
    """The summed columns in their order; a column with moments is summed as well."""
    squared, plain = _numbers(moments, schema, "moments"), _numbers(sums, schema, "sums")
    return Summed(tuple(dict.fromkeys([*plain, *squared])), frozenset(squared))


def sum_views(views: Iterable[tuple[str, ...]], summed: Sequence[str]) -> list[tuple[tuple[str, ...], str]]:
    """The keys and the summed column of each view of sums: all columns of a view but the summed one.

    Where a view is of the summed column alone, the column is its own key. Without any view there is no
    key, and only whole sums can be asked for.

    >>> sum_views([("age", "salary"), ("salary",)], ["salary"])
    [(('age',), 'salary'), (('salary',), 'salary')]
    >>> sum_views([], ["salary"])
    [((), 'salary')]
    """
    found: dict[tuple[frozenset[str], str], tuple[tuple[str, ...], str]] = {}
    for view in list(views) or [()]:
        for column in summed:
            keys = tuple(key for key in view if key != column) or view
            found.setdefault((frozenset(keys), column), (keys, column))
    return list(found.values())


def _numbers(columns: object, schema: Mapping[str, Domain], name: str) -> list[str]:
    """The columns, if they are different columns of the schema that can be added up."""
    listed = [columns] if isinstance(columns, str) else columns
    if not isinstance(listed, list | tuple) or not all(isinstance(column, str) for column in listed):
        fix = 'pass for example ["salary"]'
        raise InvalidParameter(name, "must be a list of columns", given=columns, fix=fix)
    check_columns(listed, schema, name)
    return [_number(column, schema[column], name) for column in listed]


def _number(column: str, domain: Domain, name: str) -> str:
    check(
        isinstance(domain, Integer | Real),
        name,
        f"must name columns of numbers, and this one is {type(domain).__name__}",
        given=column,
        fix="declare it as Integer or Real, or ask for its counts and quantiles",
    )
    fix = "make its domain coarser"
    check(domain.size <= LARGEST_AXIS, name, "must name columns of at most 2^63 cells", given=column, fix=fix)
    return column
