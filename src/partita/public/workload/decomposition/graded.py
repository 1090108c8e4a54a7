"""Numerical queries as linear ones: each is divided by a public weight of its own, so that none exceeds 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.queries.operator.namespace import is_integer, like
from partita.public.queries.operator.operator import Operator
from partita.public.queries.operator.structured import Structured, all_places

GRADE: Final = 1 << 20
"""How fine graded answers are, where a row has mass 1; coarser where masses are finer themselves."""

_FEW: Final = 1 << 17


@final
@dataclass(frozen=True, eq=False)
class Graded(Operator):
    """The queries w / top for a public top of each query, in units of 1 / `grade`.

    Integer answers are exact sums first, and then floor(sum grade / top). A row of weight at most top moves
    the sum by at most top, hence its floor by at most the grade: rounding costs no privacy. Floats are
    scaled and not rounded.
    """

    inner: Structured
    tops: NDArray[Any]
    """A positive whole number for each query, in units of the inner operator: no weight of it is above."""

    grade: int = GRADE

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the inner operator."""
        return self.inner.shape

    @property
    def granularity(self) -> int:
        """Weights are counted in units of 1 / grade."""
        return self.grade

    @property
    def lowest(self) -> int:
        """No weight is negative."""
        return 0

    @property
    def highest(self) -> int:
        """No weight is above 1."""
        return self.grade

    @property
    def column_norm(self) -> int:
        """At most so much in all: every query at its top."""
        return self.grade * len(self)

    def __len__(self) -> int:
        return len(self.inner)

    def answers(self, x: Any) -> Any:
        """Graded answers: whole numbers for whole numbers, else floats."""
        if self._matrix is not None and _floats(x):
            return self._matrix @ x.reshape(-1)
        return self._graded(self.inner.answers(x))

    def combine(self, y: Any) -> Any:
        """The adjoint, in floats."""
        if self._matrix is not None and _floats(y):
            return (y @ self._matrix).reshape(self.shape)
        return self.inner.combine(y * like(self._factors, y))

    def row(self, index: int, like: Any) -> Any:
        """The weights of one query over the universe, as an array like another."""
        weights, top = self.inner.row(index, like), int(self.tops[index])
        if _whole(weights):
            return np.asarray(weights).astype(object) * self.grade // top
        return weights * (self.grade / top)

    @cached_property
    def _matrix(self) -> NDArray[np.float64] | None:
        """All weights as floats, where they are so few that one product is faster than their structure."""
        if len(self) * math.prod(self.shape) > _FEW:
            return None
        places = np.concatenate(list(all_places(self.shape)))
        weights = self.inner.weights_at(places).astype(np.float64)
        return np.asarray(weights * self._factors[:, np.newaxis])

    @cached_property
    def _factors(self) -> NDArray[np.float64]:
        return self.grade / self.tops.astype(np.float64)

    def _graded(self, sums: Any) -> Any:
        if _whole(sums):
            return np.asarray(sums).astype(object) * self.grade // self.tops.astype(object)
        return sums * like(self._factors, sums)


def _floats(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.float64


def _whole(x: Any) -> bool:
    """Whether an array holds integers, of a fixed width or Python's."""
    return (isinstance(x, np.ndarray) and x.dtype == object) or is_integer(x)
