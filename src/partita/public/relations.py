"""The views of a release as tables of noisy counts, for DuckDB: post-processing of released numbers.

Nothing here reads a row or imports DuckDB: the caller passes a connection, and tables are handed to it. Each
column is a relation, and so is each set of columns that were released together:

    dest                                   a label, or a value of a column of few cells
    delay_first, delay_last                the first and the last value of a piece of any other column
    dest_special                           null, other, ...: for a special cell, which has no value
    count, error, low, high, basis         the estimate, its standard error, its 95% interval
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import numpy as np

from partita.arrays import Floats, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain, Special
from partita.domain.category import Category
from partita.errors import check
from partita.public.axis.curve import Curve
from partita.public.base import checkpoint
from partita.public.boxes.density import find_positions
from partita.public.tables.graph import TableGraphRelease
from partita.public.views import BoxView, ScaledView

if TYPE_CHECKING:
    import pyarrow

    from partita.public.release import Release

MOST_VALUES: Final = 1024
"""A relation of one column has a row for each value if there are no more of them, else one for each piece."""

MOST_TOGETHER: Final = 2**16
"""No relation of several columns has more rows: sets of more labels are left out."""

_VALUES_TOGETHER: Final = 128  # values of a column in a relation of several; more are cut in pieces
_PIECES: Final = (32, 16, 8, 4, 2)  # pieces of such a column, of about equally many rows
_REACH: Final = math.log(20) / math.sqrt(2)
"""Standard errors to each side of a 95% interval: by the Laplace law, the noise of a cell that was counted by
itself. Sums of such noise have thinner tails, so that for them it holds a little more."""
_COUNTED: Final = ("count", "error", "low", "high", "basis")


class DuckConnection(Protocol):
    """What is needed of a connection of DuckDB."""

    def register(self, view_name: str, python_object: object) -> Any:
        """Make a table known under a name."""


def register(release: Release, connection: DuckConnection, prefix: str = "") -> list[str]:
    """Hand every relation of a release to a connection of DuckDB; the names that they have there."""
    rule, fix = "must be a connection of DuckDB", "pass duckdb.connect()"
    check(callable(getattr(connection, "register", None)), "connection", rule, given=connection, fix=fix)
    check(isinstance(prefix, str), "prefix", "must be text", given=prefix, fix='pass for example "people_"')
    names: list[str] = []
    for columns, relation in relations(release):
        name = _unused(prefix + "__".join(columns), names)
        connection.register(name, relation)
        names.append(name)
    return names


def relations(release: Release) -> Iterator[tuple[tuple[str, ...], pyarrow.Table]]:
    """Each column, and each set of columns that were released together, with its relation."""
    fix = "ask the release, or publish with by= or views="
    check(release.views, "release", "must have released counts", given="none", fix=fix)
    for column in release.columns:
        yield (column,), _along(release, column)
    for scaled in release.scaled_views:
        if isinstance(scaled.view, BoxView):
            for columns in _measured(scaled.view):
                checkpoint()
                found = _together(release, scaled, columns)
                if found is not None:
                    yield columns, found


def arrow_column(values: Sequence[object]) -> pyarrow.Array:
    """Values of one column for Arrow: whole numbers beyond 64 bits become decimals, and None is null."""
    import pyarrow

    try:
        return pyarrow.array(values)
    except OverflowError:
        return pyarrow.array(values, pyarrow.decimal128(38))


@final
@dataclass(frozen=True)
class _Side:
    """A column of a relation: runs of positions along its axis, and the columns that name them."""

    lows: UInts
    highs: UInts
    named: Mapping[str, Sequence[object]]

    @staticmethod
    def of(column: str, domain: Domain, cells: tuple[UInts, UInts], *, each: bool) -> _Side:
        """Runs of ordinary cells, in order, then the special cells; `each` says that a run is one value."""
        axis, specials = Axis.of(domain), Axis.specials(domain)
        shift = np.uint64(axis.before)
        beside = np.array(list(specials.values()), np.uint64)
        lows, highs = (np.concatenate([part + shift, beside]) for part in cells)
        return _Side(lows, highs, _named(column, domain, cells, domain.specials, each=each))

    def __len__(self) -> int:
        return self.lows.size


def _named(
    column: str, domain: Domain, cells: tuple[UInts, UInts], specials: Iterable[str], *, each: bool
) -> dict[str, Sequence[object]]:
    """The columns that name some runs of cells, and some special cells behind them."""
    listed = list(specials)
    none: list[object] = [None] * len(listed)
    ends = dict(zip((column,) if each else (f"{column}_first", f"{column}_last"), cells, strict=False))
    values: dict[str, Sequence[object]] = {name: [*domain.decode(part), *none] for name, part in ends.items()}
    return values | {f"{column}_special": [*[None] * cells[0].size, *listed]}


def _along(release: Release, column: str) -> pyarrow.Table:
    """The relation of one column: its values, or the pieces between which nothing was told apart."""
    line = release.slice(column)
    each = isinstance(line.domain, Category) or line.domain.size <= MOST_VALUES
    if each:
        cells = np.arange(line.domain.size, dtype=np.uint64)
        lows, highs = cells, cells
    else:
        lows, highs = line.axis.curve.starts, line.axis.curve.ends
    beside = [release.count({column: Special.named(name)}) for name in line.special_cells]
    counts = np.append(line.axis.counts(lows, highs), [answer.value for answer in beside])
    errors = np.append(line.axis.errors(lows, highs), [answer.error for answer in beside])
    named = _named(column, line.domain, (lows, highs), line.special_cells, each=each)
    return _table(named, counts, errors, line.basis or "measured")


def _measured(view: BoxView) -> list[tuple[str, ...]]:
    """The sets of columns that were counted together; of a model, those that it was fitted to."""
    if not isinstance(view.boxes, TableGraphRelease):
        return [view.columns]
    sets = sorted({table.columns for table in view.boxes.fit.tables})
    return [tuple(view.columns[number] for number in numbers) for numbers in sets if len(numbers) > 1]


def _together(release: Release, scaled: ScaledView, columns: Sequence[str]) -> pyarrow.Table | None:
    """The relation of several columns; None if it has too many labels."""
    view = scaled.together
    curves = {column: release.slice(column).axis.curve for column in columns}
    for pieces in _PIECES:
        sides = {column: _cut(view, column, curves[column], pieces) for column in columns}
        if math.prod(map(len, sides.values())) <= MOST_TOGETHER:
            return _product(scaled, sides)
    return None


def _cut(view: BoxView, column: str, curve: Curve, pieces: int) -> _Side:
    """A column by its values, or in pieces of about equally many rows, by a released curve."""
    domain = view.declared[column]
    if isinstance(domain, Category) or domain.size <= min(_VALUES_TOGETHER, 4 * pieces):
        cells = np.arange(domain.size, dtype=np.uint64)
        return _Side.of(column, domain, (cells, cells), each=True)
    last = np.uint64(domain.size - 1)
    inner = find_positions(curve, np.arange(1.0, pieces) / pieces * curve.total)
    highs = np.unique(np.append(np.minimum(inner, last), last))
    lows = np.append(np.uint64(0), highs[:-1] + np.uint64(1))
    return _Side.of(column, domain, (lows, highs), each=False)


def _product(scaled: ScaledView, sides: Mapping[str, _Side]) -> pyarrow.Table:
    """Every combination of the runs of some columns; the others are not constrained."""
    view = scaled.together
    places = np.indices([len(side) for side in sides.values()]).reshape(len(sides), -1)
    lows = np.zeros((places.shape[1], len(view.columns)), np.uint64)
    highs = np.tile(np.array([axis.width - 1 for axis in view.boxes.axes], np.uint64), (len(lows), 1))
    named: dict[str, Sequence[object]] = {}
    for place, (column, side) in zip(places, sides.items(), strict=True):
        number = view.columns.index(column)
        lows[:, number], highs[:, number] = side.lows[place], side.highs[place]
        named |= {name: [values[i] for i in place.tolist()] for name, values in side.named.items()}
    numbers = [view.columns.index(column) for column in sides]
    counts = view.boxes.counts(lows, highs) * scaled.factor
    basis = view.boxes.basis(numbers) or "measured"
    return _table(named, counts, view.boxes.errors(lows, highs), basis)


def _table(
    named: Mapping[str, Sequence[object]], counts: Floats, errors: Floats, basis: str
) -> pyarrow.Table:
    """A relation; a name that is taken has a number behind it."""
    import pyarrow

    reach = _REACH * errors
    lows, highs = np.maximum(counts - reach, 0.0), np.maximum(counts + reach, 0.0)
    names: list[str] = []
    for name in (*named, *_COUNTED):
        names.append(_unused(name, names))
    arrays = [arrow_column(values) for values in named.values()]
    numbers = [pyarrow.array(each) for each in (counts, errors, lows, highs)]
    return pyarrow.table([*arrays, *numbers, pyarrow.array([basis] * len(counts))], names=names)


def _unused(name: str, used: Sequence[str]) -> str:
    """A name that none of the used ones is like: for DuckDB capitals and small letters are alike."""
    taken = {each.lower() for each in used}
    numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (name, *numbered) if each.lower() not in taken)
