"""What all our operators can do, given how each applies its structure to a batch of columns."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from partita.errors.errors import InvalidParameter
from partita.lazy.cached import cached_property
from partita.numbers import integer
from partita.public.queries.operator.limbs import MOST_TERMS, exact_product, exactly
from partita.public.queries.operator.namespace import namespace
from partita.public.queries.operator.operator import Operator

DENSE: Final = 2**24
"""Up to so many cells are looked at one by one where a property is to be exact."""

FITTING: Final = 2**62
"""Integers whose absolute values stay below this are kept in 64 bits."""


class Structured(Operator):
    """An operator that knows its structure: it is evaluated on arrays, on points, and query by query."""

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def largest(self) -> int:
        """No weight is further from zero, in units."""
        return max(abs(self.lowest), abs(self.highest))

    @property
    def binary(self) -> bool:
        """Whether all weights are zero or one unit."""
        return self.lowest >= 0 and self.highest <= 1

    @cached_property
    def column_norm(self) -> int:
        """The largest sum over queries of the absolute weights of one cell, in units.

        Exact wherever at most 2^24 cells have to be looked at for it; else it is that at most.
        """
        return self.norm(DENSE)

    @abstractmethod
    def norm(self, limit: int) -> int:
        """The column norm, exact if at most `limit` cells have to be looked at for it; never too small."""

    @property
    @abstractmethod
    def tops(self) -> NDArray[Any]:
        """No weight of query i is above tops[i], in units."""

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """The answers for each column of x, which has a row for each cell; integers may wrap."""

    @abstractmethod
    def backward(self, y: Any) -> Any:
        """The adjoint for each column of y, which has a row for each query; integers may wrap."""

    @abstractmethod
    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        """The weights of points, in units: a row for each query, a column for each row of positions."""

    @abstractmethod
    def column_sums(self) -> NDArray[Any]:
        """For each cell the sum over queries of its absolute weights, in units."""

    @abstractmethod
    def single(self, index: int) -> Structured:
        """The operator of one query alone."""

    @abstractmethod
    def multiplied(self, units: int, granularity: int = 1) -> Self:
        """All weights times `units`, in units that are `granularity` times as fine."""

    @abstractmethod
    def truncated(self, tau: int) -> Structured:
        """Weights min(w, tau), tau in units."""

    @abstractmethod
    def above(self, tau: int) -> Structured:
        """Weights 1 where w > tau, else 0, tau in units."""

    def answers(self, x: Any) -> Any:
        """The answer to every query, in units; exact for integers whose absolute values add up to less
        than 2^62. Where weights are larger than one unit, those answers are Python ints.
        """
        return exactly(self._answers, x, largest=self.largest, terms=self.cells)

    def combine(self, y: Any) -> Any:
        """For each cell the sum over queries of y[query] times its weight; as exact as `answers`."""
        return exactly(self._combine, y, largest=self.largest, terms=len(self))

    def row(self, index: int, like: Any) -> Any:
        """The weights of one query over the universe, in units, as an array like another."""
        xp = namespace(like)
        kwargs = {} if xp is np else {"device": like.device}
        return self.single(index).combine(xp.ones((1,), dtype=like.dtype, **kwargs))

    def answers_at(self, places: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        """The exact answers about points, counts[i] rows at positions places[i], as Python ints."""
        total = np.zeros(len(self), object)
        for first in range(0, len(places), self._block):
            block = slice(first, first + self._block)
            total += exact_product(self.weights_at(places[block]), counts[block], self.largest)
        return total

    def checked(self, index: int) -> int:
        """The number of a query, if there is one."""
        return integer(index, "index", low=0, high=len(self) - 1)

    def _answers(self, x: Any) -> Any:
        xp = namespace(x)
        return xp.reshape(self.forward(xp.reshape(x, (self.cells, 1))), (len(self),))

    def _combine(self, y: Any) -> Any:
        xp = namespace(y)
        return xp.reshape(self.backward(xp.reshape(y, (len(self), 1))), self.shape)

    @cached_property
    def _block(self) -> int:
        return max(1, MOST_TERMS // len(self))


def all_places(shape: tuple[int, ...]) -> Iterator[NDArray[np.uint64]]:
    """The positions of all cells in order, block by block."""
    cells = math.prod(shape)
    for first in range(0, cells, MOST_TERMS):
        index = np.arange(first, min(cells, first + MOST_TERMS))
        yield np.stack(np.unravel_index(index, shape), axis=1).astype(np.uint64)


def fitted(values: Any, largest: int) -> NDArray[Any]:
    """Integers in 64 bits if none is further from zero than `largest` and that fits, else Python ints."""
    return np.asarray(values).astype(np.int64 if largest < FITTING else object)


def cap(tau: int) -> int:
    """A threshold in units."""
    return integer(tau, "tau", low=0)


def common_shape(operators: tuple[Structured, ...]) -> tuple[int, ...]:
    """The shape that all operators have."""
    if not operators or any(each.shape != operators[0].shape for each in operators):
        fix = "pass at least one"
        raise InvalidParameter("operators", "must be over one universe", given=len(operators), fix=fix)
    return operators[0].shape
