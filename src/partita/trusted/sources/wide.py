"""Tables with many columns: rows as positions along each axis, in few bytes, and never grouped.

Hardly two rows of a wide table are equal, so grouping them costs much and saves nothing. Each batch of rows
is encoded as it is read, by the code that encodes grouped values, and forgotten. What stays is one array of
positions for each column, of the smallest type that its domain needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from partita.arrays import Ints
from partita.domain.axis import MOST_AXES, Axis
from partita.domain.base import Domain
from partita.errors import SourceError, check_data
from partita.public.boxes.bins import AxisBins
from partita.trusted.secret import Begin, Descent, Histogram, PointCounts, Points, State, Work
from partita.trusted.sources.arrow import wide_type, widen
from partita.trusted.sources.base import Rows, attempt, locate_columns
from partita.trusted.sources.tally import (
    RANK,
    ColumnCounts,
    Limits,
    bound_contributions,
    check_request,
    encode_column,
    encode_positions,
    find_starts,
    locate_cells,
    match_label,
    number_persons,
    rank_contributions,
    with_rank,
)
from partita.trusted.tables import AxisSets, check_sets, count_columns, split_tables

Positions: TypeAlias = NDArray[Any]
"""Positions along one axis, one for each row: unsigned integers, as short as the axis allows."""

_BATCH: Final = 2**16  # rows encoded at once: memory against calls
_BOUNDED: Final = 2**16  # rows of persons with too many that are grouped at once, if no person has more
_SHORT: Final = 2**20  # positions of an axis whose rows are counted in an array, without sorting


@final
@dataclass(frozen=True, eq=False, repr=False)
class CompactPoints(PointCounts):
    """Rows at points of many axes, one by one: an array of positions for each axis.

    >>> columns = [np.array([3, 0, 3], np.uint8), np.array([1, 1, 1], np.uint8)]
    >>> rows = CompactPoints((Axis(size=4), Axis(size=2)), columns)
    >>> rows.total, rows.gathered().counts.tolist()
    (3, [1, 2])
    """

    axes: tuple[Axis, ...]
    columns: Sequence[Positions]
    contributions: int = 1

    def __post_init__(self) -> None:
        fits = len({len(column) for column in self.columns}) == 1 and len(self.columns) == len(self.axes)
        check_data(fits, "columns", "must have the same length, one for each axis", fix="pass all rows")
        for axis, column in zip(self.axes, self.columns, strict=True):
            inside = column.dtype.kind == "u" and (not column.size or int(column.max()) < axis.width)
            check_data(inside, "columns", "must lie on their axes", fix="encode values with a Domain")

    @property
    def total(self) -> int:
        """The number of rows."""
        return len(self.columns[0])

    def tables(self, sets: AxisSets, bins: Sequence[AxisBins]) -> list[Ints]:
        """The exact number of rows in each combination of bins; see `PointCounts.tables`."""
        shapes = check_sets(sets, bins, self.axes)
        ones = np.broadcast_to(np.int64(1), (self.total,))
        return split_tables(count_columns(sets, bins, self.columns, ones), shapes)

    def alone(self, axis: int) -> Points:
        """Counted along one axis."""
        positions, counts = _count_positions(self.columns[axis], self.axes[axis].width)
        return Points((self.axes[axis],), positions[:, None], counts, self.contributions)

    def along(self, axis: int) -> Histogram:
        """Counted along one axis, without special cells."""
        line, (positions, counts) = (
            self.axes[axis],
            _count_positions(self.columns[axis], self.axes[axis].width),
        )
        cells = positions - np.uint64(line.before)
        inside = cells < np.uint64(line.size)
        return Histogram(line.size, cells[inside], counts[inside], self.contributions)

    def folded(self, work: Work) -> NDArray[Any]:
        """Rows are grouped first, which takes much memory: `tables`, `alone` and `along` do without."""
        return self.gathered().folded(work)

    def descent(self, begin: Begin[State]) -> Descent[State]:
        """A walk over grouped rows."""
        return self.gathered().descent(begin)

    def gathered(self) -> Points:
        """Equal rows are one point."""
        rows = np.stack([column.astype(np.uint64) for column in self.columns], axis=1)
        return Points.from_rows(rows, axes=self.axes, contributions=self.contributions)

    def __repr__(self) -> str:
        return f"CompactPoints({len(self.axes)} axes, contributions={self.contributions}, secret)"


def _count_positions(column: Positions, width: int) -> tuple[NDArray[np.uint64], Ints]:
    """The positions with rows, ascending, and the number of rows at each."""
    if width > _SHORT:
        positions, counts = np.unique(column, return_counts=True)
        return positions.astype(np.uint64), counts.astype(np.int64)
    every = np.bincount(column, minlength=width)
    there = np.flatnonzero(every)
    return there.astype(np.uint64), every[there].astype(np.int64)


@final
@dataclass(frozen=True, eq=False, repr=False)
class WideTally:
    """The counterpart of `Tally` for many columns: the position of every row, and no groups."""

    schema: Mapping[str, Domain]
    positions: Mapping[str, Positions]
    contributions: int

    def within(self, limits: tuple[int, ...], place: int) -> WideTally:
        """The rows within one of the limits for which they were counted, as if they were for it alone."""
        there = self.positions[RANK] <= Axis.of(self.schema[RANK]).position(place)
        kept = {name: column[there] for name, column in self.positions.items() if name != RANK}
        return WideTally({name: self.schema[name] for name in kept}, kept, limits[place])

    def column(self, name: str) -> ColumnCounts:
        """The counts of one column by itself."""
        return count_column(self.schema[name], self.points([name]).alone(0))

    def points(self, names: Sequence[str]) -> CompactPoints:
        """Several columns together."""
        locate_columns(names, list(self.positions))
        axes = tuple(Axis.of(self.schema[name]) for name in names)
        return CompactPoints(axes, [self.positions[name] for name in names], self.contributions)

    def __repr__(self) -> str:
        return f"WideTally({list(self.positions)}, contributions={self.contributions}, secret)"


def count_column(domain: Domain, alone: Points) -> ColumnCounts:
    """The counts of a column from its rows along its axis, special cells included."""
    found = dict(zip(alone.places[:, 0].tolist(), alone.counts.tolist(), strict=True))
    specials = {name: found.get(position, 0) for name, position in Axis.specials(domain).items()}
    return ColumnCounts(alone.along(0), {name: specials[name] for name in domain.specials})


def is_wide(schema: Mapping[str, Domain], by: Sequence[str] | None) -> bool:
    """Whether there are more columns than a box has axes: a public rule, whatever the rows."""
    return len(schema if by is None else by) > MOST_AXES


def tally_rows(
    rows: Rows,
    schema: Mapping[str, Domain],
    by: Sequence[str] | None = None,
    *,
    person: str | None = None,
    contributions: Limits = 1,
    salt: str = "",
    where: tuple[str, str] | None = None,
) -> WideTally:
    """Encode rows one by one; which ones count is what `sources.tally` says, with the same arguments.

    >>> from partita.domain import Integer
    >>> from partita.trusted.sources.arrow import Mapped
    >>> ages = tally_rows(Mapped({"age": [30, 31, 30, 999]}), {"age": Integer(0, 120)})
    >>> ages.column("age").histogram.total, ages.column("age").specials["above"]
    (3, 1)
    """
    names, limits, keys = check_request(schema, by, person=person, contributions=contributions, where=where)
    chosen = {name: schema[name] for name in names}
    ids: list[Any] = []
    parts: dict[str, list[Positions]] = {name: [] for name in names}
    for columns in read_columns(rows, keys):
        kept = columns if where is None else _filter_rows(columns, where)
        if person is not None:
            ids.append(kept[person])
        for name, positions in _encode_batch(chosen, kept).items():
            parts[name].append(positions)
    found = {name: _join(parts.pop(name), domain) for name, domain in chosen.items()}
    if person is not None:
        found = _bound(found, chosen, pa.chunked_array(ids), person=person, limits=limits, salt=salt.encode())
    return WideTally(
        with_rank(chosen, limits) if len(limits) > 1 else chosen, found, 1 if person is None else limits[-1]
    )


def read_columns(rows: Rows, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The columns of some thousand rows at a time, in the types of `Source.counts`; an empty batch first."""
    read = rows.read(keys)
    yield {field.name: pa.array([], wide_type(field.type, field.name)) for field in read.schema}
    for batch in read.batches:
        for start in range(0, batch.num_rows, _BATCH):
            yield attempt(partial(_widen_batch, batch.slice(start, _BATCH), keys), _failed())


def _widen_batch(batch: Any, keys: Sequence[str]) -> dict[str, Any]:
    return {name: widen(batch.column(place), name) for place, name in enumerate(keys)}


def _filter_rows(columns: dict[str, Any], where: tuple[str, str]) -> dict[str, Any]:
    name, label = where
    matches = attempt(lambda: match_label(label, pa.chunked_array([columns[name]])), _failed())
    return {each: column.filter(matches) for each, column in columns.items()}


def _encode_batch(schema: Mapping[str, Domain], columns: dict[str, Any]) -> dict[str, Positions]:
    def encode(name: str, domain: Domain) -> Positions:
        found = locate_cells(domain, encode_column(domain, pa.chunked_array([columns[name]])))
        return found.astype(position_type(domain))

    return {name: attempt(partial(encode, name, domain), _failed()) for name, domain in schema.items()}


def position_type(domain: Domain) -> Any:
    """The shortest unsigned integers that hold all positions along the axis of a domain."""
    return np.min_scalar_type(Axis.of(domain).width - 1)


def _join(parts: list[Positions], domain: Domain) -> Positions:
    return np.concatenate([np.zeros(0, position_type(domain)), *parts])


# A person with at most `limit` rows has all of them counted, so only the rows of others are grouped.
def _bound(
    found: dict[str, Positions],
    schema: Mapping[str, Domain],
    ids: Any,
    *,
    person: str,
    limits: tuple[int, ...],
    salt: bytes,
) -> dict[str, Positions]:
    """The rows that `bound_contributions` keeps, or those of `rank_contributions` for several limits."""
    who, texts = number_persons(ids, person)
    rows = np.bincount(who, minlength=len(texts))
    within = rows[who] <= limits[0]
    several = len(limits) > 1
    schema = with_rank(schema, limits) if several else schema
    kept = {name: [column[within]] for name, column in found.items()}
    if several:
        first = Axis.of(schema[RANK]).position(0)
        kept[RANK] = [np.full(int(within.sum()), first, position_type(schema[RANK]))]
    beyond = np.flatnonzero(~within)
    for some in _split_persons(beyond[np.argsort(who[beyond], kind="stable")], who):
        cells = [
            encode_positions(schema[name], column[some].astype(np.uint64)) for name, column in found.items()
        ]
        ones = np.ones(some.size, np.int64)
        facts: Any = {"limits": limits} if several else {"limit": limits[0]}
        work = rank_contributions if several else bound_contributions
        chosen, counts = work(who[some], texts, cells, ones, salt=salt, **facts)
        for (name, domain), encoded in zip(schema.items(), chosen, strict=True):
            positions = locate_cells(domain, encoded).astype(position_type(domain))
            kept[name].append(np.repeat(positions, counts))
    return {name: np.concatenate(parts) for name, parts in kept.items()}


def _split_persons(rows: Ints, who: Ints) -> Iterator[Ints]:
    """Rows, sorted by person, in pieces that hold all rows of their persons."""
    ends = [*find_starts([who[rows]])[1:].tolist(), rows.size]
    first = 0
    for end, following in zip(ends, [*ends[1:], None], strict=True):
        if end > first and (following is None or following - first > _BOUNDED):
            yield rows[first:end]
            first = end


def _failed() -> SourceError:
    fix = "name fewer columns, or use a machine with more memory"
    return SourceError("data", "could not be encoded in the memory there is", fix=fix)
