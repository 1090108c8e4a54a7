"""Operators that weigh few cells, ranges, boxes, or cells by a function; and their products cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.lazy import cached_property
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.queries.operator import (
    MOST_DENSE,
    OperatorWrapper,
    Pointwise,
    StretchQueries,
    Structured,
    all_places,
    as_integers,
    check_threshold,
    convert_like,
    convert_places,
    cumulative,
    namespace,
)


@final
@frozen(eq=False)
class Sparse(Structured):
    """`number` queries over few cells: entry e gives query rows[e] the weight weights[e] at cell spots[e].

    Cells are counted in the order of the shape, last axis fastest. Entries are kept in the order of queries;
    of two for one query and cell, their sum counts.
    """

    shape: tuple[int, ...]
    number: int
    rows: Converted[Any, Ints] = parameter()
    spots: Converted[Any, Ints] = parameter()
    weights: Converted[Any, NDArray[Any]] = parameter()
    granularity: int = 1

    def __post_init__(self) -> None:
        row, spot = np.asarray(self.rows, np.int64), np.asarray(self.spots, np.int64)
        weight = np.asarray(self.weights, object)
        order = np.lexsort((spot, row))
        row, spot, weight = row[order], spot[order], weight[order]
        first = np.flatnonzero(np.diff(row, prepend=-1).astype(bool) | np.diff(spot, prepend=-1).astype(bool))
        weight = np.add.reduceat(weight, first) if first.size else weight
        largest = max((abs(int(each)) for each in weight), default=0)
        freeze(self, rows=row[first], spots=spot[first], weights=as_integers(weight, largest))

    @cached_property
    def lowest(self) -> int:
        return min(0, int(self.weights.min(initial=0)))

    @cached_property
    def highest(self) -> int:
        return max(0, int(self.weights.max(initial=0)))

    @cached_property
    def tops(self) -> NDArray[Any]:
        tops = np.zeros(len(self), object)
        np.maximum.at(tops, self.rows, self.weights)
        return as_integers(tops, self.largest)

    def norm(self, limit: int) -> int:
        return int(self._sums[1].max(initial=0))

    def __len__(self) -> int:
        return self.number

    def forward(self, x: Any) -> Any:
        """Weighted entries, summed up for each query."""
        xp = namespace(x)
        entries = xp.take(x, convert_places(self.spots, x), axis=0) * self._column(x)
        ends = convert_places(np.searchsorted(self.rows, np.arange(self.number + 1)), x)
        sums = xp.take(cumulative(entries), ends, axis=0)
        return sums[1:, ...] - sums[:-1, ...]

    def backward(self, y: Any) -> Any:
        """Weighted entries, summed up for each cell that has any, and zeros between those cells."""
        xp = namespace(y)
        entries = xp.take(y, convert_places(self.rows, y), axis=0) * self._column(y)
        order, ends, lengths = self._by_cell
        sums = xp.take(
            cumulative(xp.take(entries, convert_places(order, y), axis=0)), convert_places(ends, y), axis=0
        )
        return xp.repeat(sums[1:, ...] - sums[:-1, ...], convert_places(lengths, y), axis=0)

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        """The weights of points, found by their cells."""
        cells = np.ravel_multi_index(tuple(places.T.astype(np.int64)), self.shape)
        found = np.zeros((len(self), len(places)), self.weights.dtype)
        order = np.argsort(cells, kind="stable")
        first = np.searchsorted(cells[order], self.spots)
        behind = np.searchsorted(cells[order], self.spots, side="right")
        entry = np.repeat(np.arange(len(self.spots)), behind - first)
        points = order[np.arange(len(entry)) - np.repeat(np.cumsum(behind - first) - behind, behind - first)]
        found[self.rows[entry], points] = self.weights[entry]
        return found

    def column_sums(self) -> NDArray[Any]:
        spots, sums = self._sums
        dense = np.zeros(self.cells, sums.dtype)
        dense[spots] = sums
        return dense

    def single(self, index: int) -> Sparse:
        mine = self.rows == self.check_index(index)
        rows = np.zeros(int(mine.sum()))
        return replace(self, number=1, rows=rows, spots=self.spots[mine], weights=self.weights[mine])

    def multiply(self, units: int, granularity: int = 1) -> Sparse:
        weights = self.weights.astype(object) * units
        return replace(self, weights=weights, granularity=self.granularity * granularity)

    def truncate(self, tau: int) -> Sparse:
        return replace(self, weights=np.minimum(self.weights.astype(object), check_threshold(tau)))

    def above(self, tau: int) -> Sparse:
        return replace(self, weights=(self.weights > check_threshold(tau)).astype(object), granularity=1)

    def _column(self, x: Any) -> Any:
        return convert_like(self.weights, x)[:, None]

    @cached_property
    def _sums(self) -> tuple[Ints, NDArray[Any]]:
        """The cells that have weights, and their sums of absolute weights."""
        order = np.argsort(self.spots, kind="stable")
        spots, first = np.unique(self.spots[order], return_index=True)
        weights = np.abs(self.weights[order]).astype(object)
        sums = np.add.reduceat(weights, first) if first.size else weights
        return spots, as_integers(sums, max((int(each) for each in sums), default=0))

    @cached_property
    def _by_cell(self) -> tuple[Ints, Ints, Ints]:
        """The order of entries by cell; where runs of one cell end, empty ones between them; run lengths."""
        order = np.argsort(self.spots, kind="stable")
        spots, first = np.unique(self.spots[order], return_index=True)
        ends = np.append(np.repeat(first, 2), [len(order), len(order)])
        edges = np.stack([spots, spots + 1], axis=1).reshape(-1)
        return order, ends, np.diff(edges, prepend=0, append=self.cells)


LARGEST_TABLE: Final = 2**62
"""A table of cumulative sums with more positions could not be indexed."""


@final
@dataclass(frozen=True, eq=False)
class BoxOperator(StretchQueries):
    """Query i weighs starts[i, a] <= position < stops[i, a] on every axis a with `height` units, else zero.

    With x summed up along all axes, a box is a signed sum of its 2^d corners.
    """

    shape: tuple[int, ...]
    starts: UInts
    stops: UInts
    height: int = 1
    granularity: int = 1

    @property
    def tops(self) -> NDArray[Any]:
        return as_integers(np.where((self.stops > self.starts).all(axis=1), self.highest, 0), self.largest)

    def norm(self, limit: int) -> int:
        """The most boxes over one cell, times the height; at most all, where cells are too many."""
        return int(self.column_sums().max()) if self.cells <= limit else len(self) * self.largest

    def forward(self, x: Any) -> Any:
        """Cumulative sums along all axes, added and taken away at the corners."""
        xp = namespace(x)
        table = xp.reshape(x, (*self.shape, x.shape[1]))
        for axis in range(len(self.shape)):
            table = xp.moveaxis(cumulative(xp.moveaxis(table, axis, 0)), 0, axis)
        return self._corners.forward(xp.reshape(table, (self._corners.cells, x.shape[1])))

    def backward(self, y: Any) -> Any:
        """What lies at corners, summed up along all axes from the far end."""
        xp = namespace(y)
        table = xp.reshape(self._corners.backward(y), (*self._corners.shape, y.shape[1]))
        for axis in range(len(self.shape)):
            sums = cumulative(xp.moveaxis(table, axis, 0))
            table = xp.moveaxis(sums[-1:, ...] - sums[1:-1, ...], 0, axis)
        return xp.reshape(table, (self.cells, y.shape[1]))

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        inside = np.ones((len(self), len(places)), bool)
        for axis, at in enumerate(places.astype(np.uint64, copy=False).T):
            inside &= (self.starts[:, axis, None] <= at) & (at < self.stops[:, axis, None])
        return as_integers(inside, self.largest) * self.height

    def column_sums(self) -> NDArray[Any]:
        """How many boxes lie over each cell, times the height."""
        covers = replace(self, height=1).backward(np.ones((len(self), 1), np.int64))[:, 0]
        return np.asarray(as_integers(covers, len(self) * self.largest) * abs(self.height))

    @cached_property
    def _corners(self) -> Sparse:
        """The corners in a table of cumulative sums, which has a position more on each axis."""
        widths = tuple(width + 1 for width in self.shape)
        corners = list(product((False, True), repeat=len(widths)))
        ends = [np.where(corner, self.stops, self.starts).astype(np.int64) for corner in corners]
        spots = np.concatenate([np.ravel_multi_index(tuple(each.T), widths) for each in ends])
        signs = [self.height * (-1) ** corner.count(False) for corner in corners]
        rows = np.tile(np.arange(len(self)), len(corners))
        return Sparse(widths, len(self), rows, spots, np.repeat(np.array(signs, object), len(self)))


MOST_QUERIES: Final = 2**24
"""No operator has more queries."""


@final
@frozen(eq=False)
class SpanOperator(StretchQueries):
    """Ranges along one axis: query i weighs starts[i], ..., stops[i]-1 with `height` units, else zero.

    >>> SpanOperator(4, [0, 1], [2, 4]).answers(np.array([1, 2, 3, 4])).tolist()
    [3, 9]
    """

    width: int
    starts: Converted[Sequence[int] | UInts, UInts] = parameter()
    stops: Converted[Sequence[int] | UInts, UInts] = parameter()
    height: int = 1
    granularity: int = 1

    def __post_init__(self) -> None:
        first, behind = np.asarray(self.starts, np.uint64), np.asarray(self.stops, np.uint64)
        freeze(self, starts=first, stops=np.maximum(first, behind))

    @staticmethod
    def everything(width: int) -> SpanOperator:
        """One query: all positions."""
        return SpanOperator(width, [0], [width])

    @staticmethod
    def each(width: int) -> SpanOperator:
        """A query for every position."""
        places = np.arange(width, dtype=np.uint64)
        return SpanOperator(width, places, places + np.uint64(1))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return (self.width,)

    @property
    def tops(self) -> NDArray[Any]:
        return as_integers(np.where(self.stops > self.starts, self.highest, 0), self.largest)

    @property
    def constant(self) -> bool:
        """Whether it is one query that weighs all positions alike."""
        return len(self) == 1 and int(self.starts[0]) == 0 and int(self.stops[0]) == self.width

    def norm(self, limit: int) -> int:
        """The largest number of ranges over one position, times the height."""
        return int(self._pieces.covers.max()) * abs(self.height)

    def forward(self, x: Any) -> Any:
        """Differences of cumulative sums; single positions are taken as they are."""
        xp = namespace(x)
        starts = convert_places(self.starts.astype(np.int64), x)
        if self.constant:
            found = xp.sum(x, axis=0, keepdims=True)
        elif self._single_positions:
            found = xp.take(x, starts, axis=0)
        else:
            sums = cumulative(x)
            stops = convert_places(self.stops.astype(np.int64), x)
            found = xp.take(sums, stops, axis=0) - xp.take(sums, starts, axis=0)
        return found if self.height == 1 else found * self.height

    def backward(self, y: Any) -> Any:
        """On each piece between two ends the sum of the ranges over it: those begun less those ended."""
        xp, pieces = namespace(y), self._pieces
        begun, ended = (cumulative(xp.take(y, convert_places(o, y), axis=0)) for o in pieces.orders)
        level = xp.take(begun, convert_places(pieces.begun, y), axis=0) - xp.take(
            ended, convert_places(pieces.ended, y), axis=0
        )
        spread = xp.repeat(level, convert_places(pieces.lengths, y), axis=0)
        return spread if self.height == 1 else spread * self.height

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        at = places[:, 0].astype(np.uint64, copy=False)
        inside = (self.starts[:, None] <= at) & (at < self.stops[:, None])
        return as_integers(inside, self.largest) * self.height

    def answers_at(self, places: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        """Differences of cumulative sums over the points in order."""
        order = np.argsort(places[:, 0], kind="stable")
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[order])])
        ordered = places[order, 0].astype(np.uint64)
        first, behind = (np.searchsorted(ordered, ends) for ends in (self.starts, self.stops))
        return np.asarray((sums[behind] - sums[first]).astype(object) * self.height)

    def column_sums(self) -> NDArray[Any]:
        """How many ranges lie over each position, times the height."""
        covers = np.repeat(self._pieces.covers, self._pieces.lengths)
        return as_integers(covers, self.column_norm) * abs(self.height)

    @cached_property
    def _single_positions(self) -> bool:
        return bool((self.stops == self.starts + np.uint64(1)).all())

    @cached_property
    def _pieces(self) -> _Pieces:
        edges = np.unique(np.concatenate([np.array([0], np.uint64), self.starts, self.stops]))
        edges = edges[edges < np.uint64(self.width)]
        orders = np.argsort(self.starts, kind="stable"), np.argsort(self.stops, kind="stable")
        begun, ended = (
            np.searchsorted(ends[order], edges, side="right")
            for ends, order in zip((self.starts, self.stops), orders, strict=True)
        )
        lengths = np.diff(edges, append=np.uint64(self.width)).astype(np.int64)
        return _Pieces(lengths, begun, ended, orders)


class _Pieces(NamedTuple):
    """The axis cut at all ends: how many ranges have begun and ended by each piece, in order of ends."""

    lengths: Ints
    begun: Ints
    ended: Ints
    orders: tuple[Ints, Ints]

    @property
    def covers(self) -> Ints:
        """How many ranges lie over each piece."""
        return self.begun - self.ended


Weigh: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]
"""The weights in units of given points, a row of positions for each."""


@final
@dataclass(frozen=True, eq=False)
class Vector(Structured):
    """One query. Its weights are a function of positions, evaluated on given points or on all cells once.

    Weights are clamped to [lowest, highest]. A function that returns different weights for one cell cannot
    make a query weigh more than its norm: once all cells were evaluated, they are not evaluated again.
    `sharp` says that both ends are weights of some cell.
    """

    shape: tuple[int, ...]
    weigh: Weigh
    lowest: int
    highest: int
    granularity: int = 1
    sharp: bool = False

    @property
    def tops(self) -> NDArray[Any]:
        return as_integers([self.highest], self.largest)

    def norm(self, limit: int) -> int:
        """The largest absolute weight; over more cells than the limit, an upper bound."""
        exact = not self.sharp and self.cells <= limit
        return int(np.abs(self.dense).max()) if exact else self.largest

    @cached_property
    def dense(self) -> NDArray[Any]:
        """The weights of all cells in order."""
        return np.concatenate([self._weights(places) for places in all_places(self.shape)])

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """The same as floats."""
        return self.dense.astype(np.float64)

    def __len__(self) -> int:
        return 1

    def forward(self, x: Any) -> Any:
        return namespace(x).sum(x * self.column(x), axis=0, keepdims=True)

    def backward(self, y: Any) -> Any:
        return self.column(y) * y

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        return self._weights(places)[None]

    def column_sums(self) -> NDArray[Any]:
        return np.asarray(np.abs(self.dense))

    def single(self, index: int) -> Vector:
        self.check_index(index)
        return self

    def multiply(self, units: int, granularity: int = 1) -> Vector:
        low, high = sorted((self.lowest * units, self.highest * units))
        return self._with(lambda weights: weights * units, low, high, self.granularity * granularity)

    def truncate(self, tau: int) -> Vector:
        most = check_threshold(tau)
        low, high = min(self.lowest, most), min(self.highest, most)
        return self._with(lambda weights: np.minimum(weights, most), low, high, self.granularity)

    def above(self, tau: int) -> Vector:
        least = check_threshold(tau)
        return self._with(lambda weights: weights > least, 0, int(self.highest > least), 1)

    def _with(self, change: Weigh, lowest: int, highest: int, granularity: int) -> Vector:
        """The query with changed weights, computed in integers that are wide enough for both."""
        wide = max(abs(lowest), abs(highest), self.largest)

        def weigh(places: NDArray[Any]) -> NDArray[Any]:
            return change(as_integers(self._weights(places), wide))

        return replace(self, weigh=weigh, lowest=lowest, highest=highest, granularity=granularity)

    def _weights(self, places: NDArray[Any]) -> NDArray[Any]:
        """The weights of points, never beyond the ends; those stored in `dense` once all cells are there."""
        if "dense" in self.__dict__:
            cells = np.ravel_multi_index(tuple(places.T.astype(np.int64)), self.shape)
            return np.asarray(self.dense[cells])
        return as_integers(np.clip(self.weigh(places), self.lowest, self.highest), self.largest)

    def column(self, x: Any) -> Any:
        """The weights of all cells as a column like x."""
        exact = isinstance(x, np.ndarray) and x.dtype.kind != "f"
        return convert_like(self.dense if exact else self.floats, x)[:, None]


def as_vector(operator: Structured) -> Vector:
    """An operator of one query as a function of positions."""
    if isinstance(operator, Vector):
        return operator
    ends = operator.lowest, operator.highest
    return Vector(operator.shape, lambda places: operator.weights_at(places)[0], *ends, operator.granularity)


@final
@dataclass(frozen=True, eq=False)
class Weighted(OperatorWrapper):
    """Query i has the weights of query i of the operator times those of the vector, cell by cell."""

    operator: Structured
    vector: Vector

    @cached_property
    def granularity(self) -> int:
        return self.operator.granularity * self.vector.granularity

    @cached_property
    def lowest(self) -> int:
        return min(self._corners)

    @cached_property
    def highest(self) -> int:
        return max(self._corners)

    @cached_property
    def tops(self) -> NDArray[Any]:
        """The highest weight of each query; with too many cells, the highest of all."""
        if len(self) * self.cells > MOST_DENSE:
            return as_integers(np.full(len(self), self.highest, object), self.largest)
        tops = [self.weights_at(places).max(axis=1) for places in all_places(self.shape)]
        return np.asarray(np.max(tops, axis=0))

    def norm(self, limit: int) -> int:
        """The largest sum of absolute weights of one cell; over more cells than the limit, an upper bound."""
        if self.cells > limit:
            return self.operator.norm(limit) * self.vector.largest
        return int(self.column_sums().max())

    def forward(self, x: Any) -> Any:
        return self.operator.forward(self.vector.column(x) * x)

    def backward(self, y: Any) -> Any:
        return self.vector.column(y) * self.operator.backward(y)

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        weights = as_integers(self.operator.weights_at(places), self.largest)
        return as_integers(weights * self.vector.weights_at(places), self.largest)

    def column_sums(self) -> NDArray[Any]:
        most = self.operator.column_norm * self.vector.largest
        return np.asarray(as_integers(self.operator.column_sums(), most) * self.vector.column_sums())

    def single(self, index: int) -> Weighted:
        return replace(self, operator=self.operator.single(index))

    def multiply(self, units: int, granularity: int = 1) -> Weighted:
        return replace(self, vector=self.vector.multiply(units, granularity))

    def truncate(self, tau: int) -> Structured:
        """Weights up to tau; where the operator's are zero and one, the vector is truncated."""
        if self.operator.binary:
            return replace(self, vector=self.vector.truncate(tau))
        return Pointwise(self, "truncated", check_threshold(tau))

    def above(self, tau: int) -> Structured:
        """One where the weight is above tau; where the operator's are zero and one, the vector decides."""
        if self.operator.binary:
            return Weighted(self.operator.above(0), self.vector.above(tau))
        return Pointwise(self, "above", check_threshold(tau))

    @property
    def _corners(self) -> list[int]:
        ours = (self.operator.lowest, self.operator.highest)
        return [one * other for one in ours for other in (self.vector.lowest, self.vector.highest)]
