"""Queries whose weights are multiplied cell by cell with one other query over the same axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.queries.operator.pointwise import Pointwise
from partita.public.queries.operator.structured import DENSE, Structured, all_places, cap, fitted
from partita.public.queries.ranges.vector import Vector


@final
@dataclass(frozen=True, eq=False)
class Weighted(Structured):
    """Query i has the weights of query i of the operator times those of the vector."""

    operator: Structured
    vector: Vector

    @property
    def shape(self) -> tuple[int, ...]:
        """The widths of the axes."""
        return self.operator.shape

    @property
    def granularity(self) -> int:
        """The product of both."""
        return self.operator.granularity * self.vector.granularity

    @property
    def lowest(self) -> int:
        """No product is below this."""
        return min(self._corners)

    @property
    def highest(self) -> int:
        """No product is above this."""
        return max(self._corners)

    @cached_property
    def tops(self) -> NDArray[Any]:
        """The highest weight of each query; where that is too much to look at, of all."""
        if len(self) * self.cells > DENSE:
            return fitted(np.full(len(self), self.highest, object), self.largest)
        tops = [self.weights_at(places).max(axis=1) for places in all_places(self.shape)]
        return np.asarray(np.max(tops, axis=0))

    def norm(self, limit: int) -> int:
        """The largest sum of absolute weights of one cell; over more cells than the limit, at most."""
        if self.cells > limit:
            return self.operator.norm(limit) * self.vector.largest
        return int(self.column_sums().max())

    def __len__(self) -> int:
        return len(self.operator)

    def forward(self, x: Any) -> Any:
        """The operator's answers about weighted cells."""
        return self.operator.forward(self.vector.column(x) * x)

    def backward(self, y: Any) -> Any:
        """Weighted cells of the operator's adjoint."""
        return self.vector.column(y) * self.operator.backward(y)

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        """Products of weights."""
        return fitted(
            fitted(self.operator.weights_at(places), self.largest) * self.vector.weights_at(places),
            self.largest,
        )

    def column_sums(self) -> NDArray[Any]:
        """The operator's sums times the absolute weights."""
        most = self.operator.column_norm * self.vector.largest
        return np.asarray(fitted(self.operator.column_sums(), most) * self.vector.column_sums())

    def single(self, index: int) -> Weighted:
        """One query."""
        return replace(self, operator=self.operator.single(index))

    def multiplied(self, units: int, granularity: int = 1) -> Weighted:
        """The vector times `units`."""
        return replace(self, vector=self.vector.multiplied(units, granularity))

    def truncated(self, tau: int) -> Structured:
        """Weights up to tau; where the operator's are zero and one, the vector is truncated."""
        if self.operator.binary:
            return replace(self, vector=self.vector.truncated(tau))
        return Pointwise(self, "truncated", cap(tau))

    def above(self, tau: int) -> Structured:
        """One where the weight is above tau; where the operator's are zero and one, the vector decides."""
        if self.operator.binary:
            return Weighted(self.operator.above(0), self.vector.above(tau))
        return Pointwise(self, "above", cap(tau))

    @property
    def _corners(self) -> list[int]:
        ours = (self.operator.lowest, self.operator.highest)
        return [one * other for one in ours for other in (self.vector.lowest, self.vector.highest)]
