"""The sums along one axis in bins: what the first guess is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.numbers import freeze, integer
from partita.public.queries.operator.namespace import cumulative, namespace, places_like


@final
@dataclass(frozen=True)
class Margin:
    """The positions along one axis of a universe, cut into bins of about one width.

    >>> Margin((4, 3), axis=0, bins=2).sums(np.arange(12).reshape(4, 3)).tolist()
    [15, 51]
    """

    shape: tuple[int, ...]
    axis: int
    bins: int

    def __post_init__(self) -> None:
        axis = integer(self.axis, "axis", low=0, high=len(self.shape) - 1)
        freeze(self, axis=axis, bins=integer(self.bins, "bins", low=1, high=self.shape[axis]))

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """Where bins begin, and the end of the last one."""
        return np.arange(self.bins + 1) * self.shape[self.axis] // self.bins

    def sums(self, x: Any) -> Any:
        """The sum of x over each bin."""
        xp = namespace(x)
        others = tuple(axis for axis in range(len(self.shape)) if axis != self.axis)
        ends = xp.take(cumulative(xp.sum(x, axis=others)), places_like(self.edges, x), axis=0)
        return ends[1:] - ends[:-1]

    def spread(self, y: Any) -> Any:
        """For each position the number of its bin, in a shape that fits the universe."""
        xp = namespace(y)
        along = [1] * len(self.shape)
        along[self.axis] = self.shape[self.axis]
        bins = np.repeat(np.arange(self.bins), np.diff(self.edges))
        return xp.reshape(xp.take(y, places_like(bins, y), axis=0), tuple(along))
