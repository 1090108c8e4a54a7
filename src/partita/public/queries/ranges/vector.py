"""One query whose weights are a function of positions, over one axis or several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.queries.operator.namespace import like, namespace
from partita.public.queries.operator.structured import Structured, all_places, cap, fitted

Weigh: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]
"""The weights in units of given points, a row of positions for each."""


@final
@dataclass(frozen=True, eq=False)
class Vector(Structured):
    """One query. Its weights are evaluated where they are needed: on given points, or on all cells once.

    What `weigh` gives is brought between the ends. A function that changes its mind about a cell cannot make
    a query weigh more than its norm says: once all cells were looked at, they are not evaluated again.
    `sharp` says that both ends are weights of some cell.
    """

    widths: tuple[int, ...]
    weigh: Weigh
    least: int
    most: int
    grain: int = 1
    sharp: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The widths of the axes."""
        return self.widths

    @property
    def granularity(self) -> int:
        """Weights are integers over this number."""
        return self.grain

    @property
    def lowest(self) -> int:
        """No weight is below this."""
        return self.least

    @property
    def highest(self) -> int:
        """No weight is above this."""
        return self.most

    @property
    def tops(self) -> NDArray[Any]:
        """The highest weight."""
        return fitted([self.highest], self.largest)

    def norm(self, limit: int) -> int:
        """The largest absolute weight; over more cells than the limit, what it is at most."""
        looked_at = not self.sharp and self.cells <= limit
        return int(np.abs(self.dense).max()) if looked_at else self.largest

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
        """The weighted sum."""
        return namespace(x).sum(x * self.column(x), axis=0, keepdims=True)

    def backward(self, y: Any) -> Any:
        """The weights times y."""
        return self.column(y) * y

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        """The weights of points."""
        return self._weights(places)[None]

    def column_sums(self) -> NDArray[Any]:
        """The absolute weights."""
        return np.asarray(np.abs(self.dense))

    def single(self, index: int) -> Vector:
        """Itself."""
        self.checked(index)
        return self

    def multiplied(self, units: int, granularity: int = 1) -> Vector:
        """All weights times `units`."""
        ends = sorted((self.least * units, self.most * units))
        return self._changed(lambda weights: weights * units, *ends, grain=self.grain * granularity)

    def truncated(self, tau: int) -> Vector:
        """Weights up to tau."""
        most = cap(tau)
        return self._changed(
            lambda weights: np.minimum(weights, most),
            min(self.least, most),
            min(self.most, most),
            grain=self.grain,
        )

    def above(self, tau: int) -> Vector:
        """One where the weight is above tau."""
        least = cap(tau)
        return self._changed(lambda weights: weights > least, 0, int(self.most > least), grain=1)

    def _changed(self, change: Weigh, least: int, most: int, *, grain: int) -> Vector:
        wide = max(abs(least), abs(most), self.largest)

        def weigh(places: NDArray[Any]) -> NDArray[Any]:
            return change(fitted(self._weights(places), wide))

        return replace(self, weigh=weigh, least=least, most=most, grain=grain)

    def _weights(self, places: NDArray[Any]) -> NDArray[Any]:
        """The weights of points, never beyond the ends: those of the cells, once these were looked at."""
        if "dense" in self.__dict__:
            cells = np.ravel_multi_index(tuple(places.T.astype(np.int64)), self.shape)
            return np.asarray(self.dense[cells])
        return fitted(np.clip(self.weigh(places), self.least, self.most), self.largest)

    def column(self, x: Any) -> Any:
        """The weights of all cells as a column like x."""
        exact = isinstance(x, np.ndarray) and x.dtype.kind != "f"
        return like(self.dense if exact else self.floats, x)[:, None]


def as_vector(operator: Structured) -> Vector:
    """An operator of one query as a function of positions."""
    if isinstance(operator, Vector):
        return operator
    return Vector(
        operator.shape,
        lambda places: operator.weights_at(places)[0],
        operator.lowest,
        operator.highest,
        operator.granularity,
    )
