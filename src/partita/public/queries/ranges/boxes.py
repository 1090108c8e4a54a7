"""Many boxes of positions over several axes: answered by cumulative sums at their corners."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.queries.operator.namespace import cumulative, namespace
from partita.public.queries.operator.raised import Raised, UInts
from partita.public.queries.operator.structured import fitted
from partita.public.queries.ranges.sparse import Sparse

LARGEST_TABLE: Final = 2**62
"""Cumulative sums of more positions have no numbers."""


@final
@dataclass(frozen=True, eq=False)
class Boxes(Raised):
    """Query i weighs starts[i, a] <= position < stops[i, a] on every axis a with `height` units, else zero.

    With x summed up along all axes, a box is a signed sum of its 2^d corners.
    """

    widths: tuple[int, ...]
    starts: UInts
    stops: UInts
    height: int = 1
    grain: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The widths of the axes."""
        return self.widths

    @property
    def tops(self) -> NDArray[Any]:
        """The height of every box that is not empty."""
        return fitted(np.where((self.stops > self.starts).all(axis=1), self.highest, 0), self.largest)

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
        """The height where a point lies in a box."""
        inside = np.ones((len(self), len(places)), bool)
        for axis, at in enumerate(places.astype(np.uint64, copy=False).T):
            inside &= (self.starts[:, axis, None] <= at) & (at < self.stops[:, axis, None])
        return fitted(inside, self.largest) * self.height

    def column_sums(self) -> NDArray[Any]:
        """How many boxes lie over each cell, times the height."""
        covers = replace(self, height=1).backward(np.ones((len(self), 1), np.int64))[:, 0]
        return np.asarray(fitted(covers, len(self) * self.largest) * abs(self.height))

    def _with(self, **changed: Any) -> Boxes:
        return replace(self, **changed)

    @cached_property
    def _corners(self) -> Sparse:
        """The corners in a table of cumulative sums, which has a position more on each axis."""
        widths = tuple(width + 1 for width in self.widths)
        corners = list(product((False, True), repeat=len(widths)))
        ends = [np.where(corner, self.stops, self.starts).astype(np.int64) for corner in corners]
        spots = np.concatenate([np.ravel_multi_index(tuple(each.T), widths) for each in ends])
        signs = [self.height * (-1) ** corner.count(False) for corner in corners]
        rows = np.tile(np.arange(len(self)), len(corners))
        return Sparse(widths, len(self), rows, spots, np.repeat(np.array(signs, object), len(self)))
