"""Raw values into cells: engines group, a domain encodes what is distinct, and cells are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from partita.domain.axis import Axis
from partita.domain.base.base import Domain, Encoded, Special, is_domain
from partita.domain.category.category import Category
from partita.domain.numeric.integer import Integer
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.numbers import integer
from partita.trusted.secret.histogram import AxisCounts, Histogram
from partita.trusted.secret.points import Points
from partita.trusted.sources.arrow.keys import distinct
from partita.trusted.sources.base.names import checked, positions
from partita.trusted.sources.base.protocol import Source, Table
from partita.trusted.sources.tally.bounding import bound, people
from partita.trusted.sources.tally.regroup import regroup

Ints: TypeAlias = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """One column of a table: how many rows in each ordinary cell, and in each special one."""

    histogram: AxisCounts
    specials: Mapping[str, int]

    def __repr__(self) -> str:
        return f"Column({self.histogram!r}, specials={list(self.specials)})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """The distinct combinations of cells in some columns, ascending, and how many rows are in each."""

    schema: Mapping[str, Domain]
    cells: Mapping[str, Encoded]
    counts: Ints
    contributions: int

    def column(self, name: str) -> Column:
        """The counts of one column by itself."""
        positions([name], list(self.cells))
        encoded, domain = self.cells[name], self.schema[name]
        (special, cells), counts = regroup([encoded.special, encoded.cells], self.counts)
        there = special == Special.ORDINARY
        ordinary = Histogram(domain.size, cells[there], counts[there], self.contributions)
        found = dict(zip(special[~there].tolist(), counts[~there].tolist(), strict=True))
        return Column(ordinary, {name: found.get(int(Special.named(name)), 0) for name in domain.specials})

    def points(self, names: Sequence[str]) -> Points:
        """The counts of several columns together: rows are at positions along the axes of their domains."""
        positions(names, list(self.cells))
        along, counts = regroup([places(self.schema[name], self.cells[name]) for name in names], self.counts)
        axes = tuple(Axis.of(self.schema[name]) for name in names)
        return Points(axes, np.stack(along, axis=1), counts, self.contributions)

    def __repr__(self) -> str:
        return f"Tally({list(self.cells)}, contributions={self.contributions}, secret)"


def places(domain: Domain, encoded: Encoded) -> npt.NDArray[np.uint64]:
    """Where cells, ordinary and special ones, lie along the axis of their domain."""
    starts = np.zeros(len(Special), np.uint64)
    starts[Special.ORDINARY] = Axis.of(domain).position(0)
    for name, position in Axis.specials(domain).items():
        starts[Special.named(name)] = position
    return np.asarray(encoded.cells + starts[encoded.special])


def tally(
    source: Source,
    schema: Mapping[str, Domain],
    by: Sequence[str] | None = None,
    *,
    person: str | None = None,
    contributions: int = 1,
    salt: str = "",
    where: tuple[str, str] | None = None,
) -> Tally:
    """Count the cells of the columns `by`, or of all columns of the schema.

    With `where`, a column and a text, only rows count whose value in that column is the text, as a
    `Category` matches a label. With `person`, the column that holds an id, at most `contributions` of
    each person's rows count, chosen by the rule in `bounding`. Without it every row counts.

    >>> from partita.domain import Integer
    >>> from partita.sources import open_source
    >>> ages = tally(open_source({"age": [30, 31, 30, 999]}), {"age": Integer(0, 120)}).column("age")
    >>> ages.histogram.counts.tolist(), ages.specials["above"]
    ([2, 1], 1)
    """
    names = _columns(_checked_schema(schema), by)
    limit = _limit(contributions, person)
    check(isinstance(source, Source), "source", "must be a source", given=source, fix="use open_source")
    keys = list(dict.fromkeys([*_named(person), *_named(where and where[0]), *names]))
    table = source.counts(keys)
    if where is not None:
        table = _matching(table, keys.index(where[0]), where[1])
    cells = [_encoded(schema[name], table.column(keys.index(name)), alone=len(keys) == 1) for name in names]
    counts = table.column(len(keys)).to_numpy()
    if person is not None:
        who, ids = people(table.column(0), person)
        cells, counts = bound(who, ids, cells, counts, limit=limit, salt=salt.encode())
    return _merged(schema, names, cells, counts, 1 if person is None else limit)


def _named(column: str | None) -> list[str]:
    return [] if column is None else [column]


def _matching(table: Table, place: int, text: str) -> Table:
    """The rows of a grouped count whose value in the column at this place is the text."""
    encoded = _encoded(Category([text]), table.column(place), alone=False)
    return table.filter(pa.array(encoded.special == Special.ORDINARY))


def _limit(contributions: object, person: str | None) -> int:
    limit = integer(contributions, "contributions", low=1)
    fix = "name the column of ids, or leave it out"
    check(person is not None or limit <= 1, "contributions", "needs person", given=limit, fix=fix)
    return limit


def _checked_schema(schema: object) -> Mapping[str, Domain]:
    if isinstance(schema, Mapping) and all(is_domain(domain) for domain in schema.values()):
        return schema
    fix = 'pass for example {"age": Integer(0, 120)}'
    raise InvalidParameter("schema", "must map columns to domains", given=schema, fix=fix)


def _columns(schema: Mapping[str, Domain], by: Sequence[str] | None) -> list[str]:
    names = checked(list(schema) if by is None else by, "by")
    unknown = next((name for name in names if name not in schema), None)
    fix = "declare the domain of each column"
    check(unknown is None and names, "by", "must name columns of the schema", given=unknown, fix=fix)
    return names


def _encoded(domain: Domain, column: Any, *, alone: bool) -> Encoded:
    """The cells of a column, each distinct value encoded once; one grouped `alone` has no repeats.

    To place integers among integers costs less than to find the distinct ones.
    """
    if types.is_integer(column.type) and (alone or isinstance(domain, Integer)):
        return domain.encode(column.combine_chunks())
    values, codes = distinct(column)
    return domain.encode(values).take(codes)


def _merged(
    schema: Mapping[str, Domain],
    names: Sequence[str],
    cells: Sequence[Encoded],
    counts: Ints,
    contributions: int,
) -> Tally:
    keys = [key for column in cells for key in (column.special, column.cells)]
    merged, totals = regroup(keys, counts)
    pairs = zip(names, merged[0::2], merged[1::2], strict=True)
    return Tally(
        {name: schema[name] for name in names},
        {name: Encoded(cell, special) for name, special, cell in pairs},
        totals,
        contributions,
    )
