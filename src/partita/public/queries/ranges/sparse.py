"""Explicit weights: a few cells for each query, all others zero."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.queries.operator.namespace import cumulative, like, namespace, places_like
from partita.public.queries.operator.structured import Structured, cap, fitted

Ints = NDArray[np.int64]


@final
@frozen(eq=False)
class Sparse(Structured):
    """`number` queries over few cells: entry e gives query rows[e] the weight weights[e] at cell cells_at[e].

    Cells are counted in the order of the shape, last axis fastest. Entries are kept in the order of queries;
    of two for one query and cell, their sum counts.
    """

    widths: tuple[int, ...]
    number: int
    rows: Converted[Any, Ints] = parameter()
    spots: Converted[Any, Ints] = parameter()
    weights: Converted[Any, NDArray[Any]] = parameter()
    grain: int = 1

    def __post_init__(self) -> None:
        row, spot = np.asarray(self.rows, np.int64), np.asarray(self.spots, np.int64)
        weight = np.asarray(self.weights, object)
        order = np.lexsort((spot, row))
        row, spot, weight = row[order], spot[order], weight[order]
        first = np.flatnonzero(np.diff(row, prepend=-1).astype(bool) | np.diff(spot, prepend=-1).astype(bool))
        weight = np.add.reduceat(weight, first) if first.size else weight
        largest = max((abs(int(each)) for each in weight), default=0)
        freeze(self, rows=row[first], spots=spot[first], weights=fitted(weight, largest))

    @property
    def shape(self) -> tuple[int, ...]:
        """The widths of the axes."""
        return self.widths

    @property
    def granularity(self) -> int:
        """Weights are integers over this number."""
        return self.grain

    @cached_property
    def lowest(self) -> int:
        """The lowest weight, zeros included."""
        return min(0, int(self.weights.min(initial=0)))

    @cached_property
    def highest(self) -> int:
        """The highest weight, zeros included."""
        return max(0, int(self.weights.max(initial=0)))

    @cached_property
    def tops(self) -> NDArray[Any]:
        """The highest weight of each query, zeros included."""
        tops = np.zeros(len(self), object)
        np.maximum.at(tops, self.rows, self.weights)
        return fitted(tops, self.largest)

    def norm(self, limit: int) -> int:
        """The largest sum of absolute weights of a cell."""
        return int(self._sums[1].max(initial=0))

    def __len__(self) -> int:
        return self.number

    def forward(self, x: Any) -> Any:
        """Weighted entries, summed up for each query."""
        xp = namespace(x)
        entries = xp.take(x, places_like(self.spots, x), axis=0) * self._column(x)
        ends = places_like(np.searchsorted(self.rows, np.arange(self.number + 1)), x)
        sums = xp.take(cumulative(entries), ends, axis=0)
        return sums[1:, ...] - sums[:-1, ...]

    def backward(self, y: Any) -> Any:
        """Weighted entries, summed up for each cell that has any, and zeros between those cells."""
        xp = namespace(y)
        entries = xp.take(y, places_like(self.rows, y), axis=0) * self._column(y)
        order, ends, lengths = self._by_cell
        sums = xp.take(
            cumulative(xp.take(entries, places_like(order, y), axis=0)), places_like(ends, y), axis=0
        )
        return xp.repeat(sums[1:, ...] - sums[:-1, ...], places_like(lengths, y), axis=0)

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
        """The sum of absolute weights of each cell."""
        spots, sums = self._sums
        dense = np.zeros(self.cells, sums.dtype)
        dense[spots] = sums
        return dense

    def single(self, index: int) -> Sparse:
        """One row."""
        mine = self.rows == self.checked(index)
        return Sparse(
            self.widths, 1, np.zeros(int(mine.sum())), self.spots[mine], self.weights[mine], self.grain
        )

    def multiplied(self, units: int, granularity: int = 1) -> Sparse:
        """All weights times `units`."""
        return self._changed(self.weights.astype(object) * units, self.grain * granularity)

    def truncated(self, tau: int) -> Sparse:
        """Weights up to tau."""
        return self._changed(np.minimum(self.weights.astype(object), cap(tau)), self.grain)

    def above(self, tau: int) -> Sparse:
        """One where the weight is above tau."""
        return self._changed((self.weights > cap(tau)).astype(object), 1)

    def _changed(self, weights: NDArray[Any], grain: int) -> Sparse:
        return Sparse(self.widths, self.number, self.rows, self.spots, weights, grain)

    def _column(self, x: Any) -> Any:
        return like(self.weights, x)[:, None]

    @cached_property
    def _sums(self) -> tuple[Ints, NDArray[Any]]:
        """The cells that have weights, and their sums of absolute weights."""
        order = np.argsort(self.spots, kind="stable")
        spots, first = np.unique(self.spots[order], return_index=True)
        weights = np.abs(self.weights[order]).astype(object)
        sums = np.add.reduceat(weights, first) if first.size else weights
        return spots, fitted(sums, max((int(each) for each in sums), default=0))

    @cached_property
    def _by_cell(self) -> tuple[Ints, Ints, Ints]:
        """The order of entries by cell; where runs of one cell end, empty ones between them; run lengths."""
        order = np.argsort(self.spots, kind="stable")
        spots, first = np.unique(self.spots[order], return_index=True)
        ends = np.append(np.repeat(first, 2), [len(order), len(order)])
        edges = np.stack([spots, spots + 1], axis=1).reshape(-1)
        return order, ends, np.diff(edges, prepend=0, append=self.cells)
