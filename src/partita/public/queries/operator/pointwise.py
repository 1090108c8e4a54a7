"""Weights of an operator, each changed by itself: where no structure is left to use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from partita.public.queries.operator.namespace import like, namespace
from partita.public.queries.operator.structured import Structured, all_places, cap, fitted


@final
@dataclass(frozen=True, eq=False)
class Pointwise(Structured):
    """min(w, tau) ("truncated") or 1 where w > tau, else 0 ("above"), times a public factor.

    All cells are visited block by block, each with all queries: slow, and the last resort.
    """

    operator: Structured
    change: Literal["truncated", "above"]
    tau: int
    height: int = 1
    grain: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The widths of the axes."""
        return self.operator.shape

    @property
    def granularity(self) -> int:
        """That of the operator, or one for a comparison."""
        return self.grain * (self.operator.granularity if self.change == "truncated" else 1)

    @property
    def lowest(self) -> int:
        """No weight is below this."""
        return min(self._ends)

    @property
    def highest(self) -> int:
        """No weight is above this."""
        return max(self._ends)

    @property
    def tops(self) -> NDArray[Any]:
        """The changed tops."""
        if self.height < 0:
            return fitted(np.full(len(self), self.highest, object), self.largest)
        return fitted(self._applied(self.operator.tops), self.largest)

    def norm(self, limit: int) -> int:
        """The largest sum of absolute weights of one cell; at most all tops, where it is too much to look."""
        if len(self) * self.cells > limit:
            return len(self) * self.largest
        return int(self.column_sums().max())

    def __len__(self) -> int:
        return len(self.operator)

    def forward(self, x: Any) -> Any:
        """Block by block."""
        xp, first, total = namespace(x), 0, 0
        for weights in self._blocks():
            stop = first + weights.shape[1]
            total = total + xp.matmul(like(weights, x), x[first:stop, ...])
            first = stop
        return total

    def backward(self, y: Any) -> Any:
        """Block by block."""
        xp = namespace(y)
        return xp.concat([xp.matmul(like(weights.T, y), y) for weights in self._blocks()], axis=0)

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        """The changed weights."""
        return fitted(self._applied(self.operator.weights_at(places)), self.largest)

    def column_sums(self) -> NDArray[Any]:
        """The sums of absolute changed weights."""
        return np.concatenate([np.abs(weights.astype(object)).sum(axis=0) for weights in self._blocks()])

    def single(self, index: int) -> Pointwise:
        """One query."""
        return Pointwise(self.operator.single(index), self.change, self.tau, self.height, self.grain)

    def multiplied(self, units: int, granularity: int = 1) -> Pointwise:
        """All weights times `units`."""
        return Pointwise(self.operator, self.change, self.tau, self.height * units, self.grain * granularity)

    def truncated(self, tau: int) -> Structured:
        """Weights up to another tau."""
        return Pointwise(self, "truncated", cap(tau))

    def above(self, tau: int) -> Structured:
        """One where the changed weight is above tau."""
        return Pointwise(self, "above", cap(tau))

    def _applied(self, weights: NDArray[Any]) -> NDArray[Any]:
        exact = weights.astype(object)
        changed = np.minimum(exact, self.tau) if self.change == "truncated" else (exact > self.tau) * 1
        return changed.astype(object) * self.height

    @property
    def _ends(self) -> tuple[int, int]:
        ends = self._applied(np.array([self.operator.lowest, self.operator.highest], object))
        return int(ends[0]), int(ends[1])

    def _blocks(self) -> Any:
        size = max(1, 2**22 // len(self))
        for places in all_places(self.shape):
            for first in range(0, len(places), size):
                yield self.weights_at(places[first : first + size])
