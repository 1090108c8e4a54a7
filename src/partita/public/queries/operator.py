"""Many linear queries over the cells of a universe, as an operator: the matrix of weights is never built.

Arrays may be of any library that follows the array API: NumPy in the core, others if the caller passes them.
Sums of integers are exact. Factors are cut into limbs that are short enough for sums of 64 bits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final, Literal, Self, cast, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import UInts
from partita.errors import check
from partita.lazy import cached_property
from partita.numbers import integer

_WIDE: Final = 64  # numbers in a row from which adding whole rows is faster than `np.cumsum` down columns

MOST_TERMS: Final = 2**22
"""The sum of at most so many products of two limbs fits in 64 bits."""

MOST_DENSE: Final = 2**24
"""Up to so many cells are visited one by one to make a property exact."""

MOST_STEPS: Final = 2**26
"""Up to so many sums every two cells are compared: a part of a second."""

INT64_LIMIT: Final = 2**62
"""Integers whose absolute values stay below this are stored in 64 bits."""

_BITS: Final = 20  # bits of a limb: 2 * 20 bits of a product, and 22 of `MOST_TERMS`, are less than 63
_SHORTEST: Final = 8  # shorter limbs need so many passes that Python integers are used instead
_LARGEST_COUNT: Final = 2**62
_ALL_BITS: Final = 2**63 - 1
_BLOCK_NUMBERS: Final = 2**22  # weights that `Pointwise` holds at a time: trades memory for calls


# Arrays of any library.


def namespace(x: Any) -> Any:
    """The library of an array: its own, or that of array-api-compat for one which needs it, as torch does."""
    if isinstance(x, np.ndarray):
        return np
    if hasattr(x, "__array_namespace__"):
        return x.__array_namespace__()
    return import_module("array_api_compat").array_namespace(x)


def convert_like(values: NDArray[Any], x: Any) -> Any:
    """Public numbers as an array of the library of x, where x is: floats of its type if it has floats."""
    if isinstance(x, np.ndarray):
        return values.astype(x.dtype, copy=False) if x.dtype.kind == "f" else values
    xp = namespace(x)
    dtype = x.dtype if xp.isdtype(x.dtype, "real floating") else None
    return xp.asarray(values, dtype=dtype, device=x.device)


def convert_places(places: NDArray[Any], x: Any) -> Any:
    """Public positions as an array of the library of x, where x is."""
    if isinstance(x, np.ndarray):
        return places
    return namespace(x).asarray(places.astype(np.int64), device=x.device)


def is_integer(x: Any) -> bool:
    """Whether an array holds integers of a fixed width."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "iu"
    return bool(namespace(x).isdtype(x.dtype, "integral"))


def cumulative(x: Any) -> Any:
    """Sums along the first axis: of nothing, of the first entry, of the first two, and so on."""
    xp = namespace(x)
    if isinstance(x, np.ndarray):
        sums = np.empty((len(x) + 1, *x.shape[1:]), x.dtype)
        sums[0] = 0
        _accumulate(x, sums)
        return sums
    return xp.cumulative_sum(x, axis=0, include_initial=True)


def _accumulate(x: NDArray[Any], sums: NDArray[Any]) -> None:
    """Cumulative sums behind a first entry of zeros. NumPy's go down columns; wide rows are added as rows.

    The order of additions is the same, and so are the sums; a million cells take a seventh of the time.
    """
    if x[:1].size < _WIDE:
        np.cumsum(x, axis=0, out=sums[1:])
        return
    for row, before, after in zip(x, sums, sums[1:], strict=False):
        np.add(before, row, out=after)


# Exact sums of products of integers.


def exact_product(weights: NDArray[Any], counts: NDArray[np.int64], largest: int) -> NDArray[Any]:
    """weights @ counts as Python ints, of at most `MOST_TERMS` columns.

    No weight is further from zero than `largest`, and counts add up to less than 2^62: how many limbs there
    are depends on these only.

    >>> exact_product(np.array([[2**40, -1]]), np.array([2**60, 5]), 2**40).tolist() == [2**100 - 5]
    True
    """
    if largest <= 1 or weights.dtype == object:
        return np.asarray((weights @ counts).astype(object))
    total = np.zeros(len(weights), object)
    for shift, weight, count in _limb_pairs(weights, counts, largest):
        total += (weight @ count).astype(object) * (1 << shift)
    return total


def exact_sums(
    weights: NDArray[Any], counts: NDArray[np.int64], groups: NDArray[np.int64], largest: int, number: int
) -> NDArray[Any]:
    """The sums of weights[i] counts[i] of each of `number` groups, as Python ints where weights are large."""
    whole = np.int64 if largest <= 1 else object
    total = np.zeros(number, whole)
    if weights.dtype == object:
        np.add.at(total, groups, weights * counts)
        return total
    pairs = [(0, weights, counts)] if largest <= 1 else _limb_pairs(weights, counts, largest)
    for shift, weight, count in pairs:
        sums = np.zeros(number, np.int64)
        np.add.at(sums, groups, weight * count)
        total += sums.astype(whole) * (1 << shift)
    return total


def apply_exactly(apply: Callable[[Any], Any], x: Any, *, largest: int, terms: int) -> Any:
    """apply(x) for a linear map that adds up at most `terms` entries, times weights of at most `largest`.

    Floats and Python ints are handed over as they are. Integers of 64 bits whose absolute values add up to
    less than 2^62 are exact: in 64 bits where weights are at most one, else by limbs, as Python ints. How
    long limbs are depends on the public weights only.
    """
    if not is_integer(x):
        return apply(x)
    if largest <= 1:
        return apply(x.astype(np.int64, copy=False) if isinstance(x, np.ndarray) else x)
    whole, bits = np.asarray(x).astype(np.int64), 62 - largest.bit_length() - terms.bit_length()
    if bits < _SHORTEST:
        return apply(whole.astype(object))
    return sum(
        apply(limb).astype(object) * (1 << shift) for shift, limb in split_limbs(whole, _ALL_BITS, bits)
    )


def _limb_pairs(
    weights: NDArray[Any], counts: NDArray[np.int64], largest: int
) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    """Every limb of the weights with every limb of the counts, and the shift of their product."""
    for high, weight in split_limbs(weights, largest):
        for low, count in split_limbs(counts, _LARGEST_COUNT):
            yield high + low, weight, count


def split_limbs(values: NDArray[Any], largest: int, bits: int = _BITS) -> Iterator[tuple[int, NDArray[Any]]]:
    """Values as sums of limbs times 2^shift; the last one carries the sign."""
    last = bits * (-(-largest.bit_length() // bits) - 1)
    for shift in range(0, last, bits):
        yield shift, (values >> shift) & ((1 << bits) - 1)
    yield last, values >> last


class Operator(ABC):
    """k linear queries, each a weight for every cell of a universe of `shape`.

    Weights are integers in units of 1/`granularity`. Arrays may be of any array-API library; integers in,
    integers out, so that answers about people are exact whatever the order of sums.
    """

    shape: tuple[int, ...]
    """The widths of the universe's axes."""

    granularity: int
    """Weights are integers over this number."""

    lowest: int
    """No weight is below this, in units."""

    highest: int
    """No weight is above this, in units."""

    @property
    @abstractmethod
    def column_norm(self) -> int:
        """The largest sum over queries of the absolute weights of one cell, in units, exactly."""

    @property
    def column_distance(self) -> int:
        """No two cells have weights further apart, summed up over queries, in units."""
        return 2 * self.column_norm

    @abstractmethod
    def __len__(self) -> int:
        """The number of queries."""

    @abstractmethod
    def answers(self, x: Any) -> Any:
        """The answer to every query, in units, where x[cell] rows are in each cell."""

    @abstractmethod
    def combine(self, y: Any) -> Any:
        """For each cell the sum over queries of y[query] times its weight there, in units (the adjoint)."""

    @abstractmethod
    def row(self, index: int, like: Any) -> Any:
        """The weights of one query over the universe, in units, as an array like another."""


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

        Exact if that takes at most 2^24 cells to visit; otherwise an upper bound.
        """
        return self.norm(MOST_DENSE)

    @cached_property
    def column_distance(self) -> int:
        """The largest L1 distance of the weights of two cells, in units.

        Exact if that takes at most 2^26 sums, and twice the norm otherwise. Weights of functions are those
        that answers use: each cell is evaluated once.
        """
        steps = self.cells**2 * (self.cells + len(self))
        if steps > MOST_STEPS or 2 * self.largest * len(self) >= INT64_LIMIT:
            return 2 * self.column_norm
        weights = np.asarray(self.forward(np.eye(self.cells, dtype=np.int64))).astype(np.int64)
        return max(int(np.abs(weights - weights[:, [cell]]).sum(axis=0).max()) for cell in range(self.cells))

    @abstractmethod
    def norm(self, limit: int) -> int:
        """The column norm, exact if that takes at most `limit` cells to visit; never too small."""

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
    def multiply(self, units: int, granularity: int = 1) -> Self:
        """All weights times `units`, in units that are `granularity` times as fine."""

    @abstractmethod
    def truncate(self, tau: int) -> Structured:
        """Weights min(w, tau), tau in units."""

    @abstractmethod
    def above(self, tau: int) -> Structured:
        """Weights 1 where w > tau, else 0, tau in units."""

    def answers(self, x: Any) -> Any:
        """The answer to every query, in units; exact for integers whose absolute values add up to less
        than 2^62. Where weights are larger than one unit, those answers are Python ints.
        """
        return apply_exactly(self._answers, x, largest=self.largest, terms=self.cells)

    def combine(self, y: Any) -> Any:
        """For each cell the sum over queries of y[query] times its weight; as exact as `answers`."""
        return apply_exactly(self._combine, y, largest=self.largest, terms=len(self))

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

    def check_index(self, index: int) -> int:
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


def as_integers(values: Any, largest: int) -> NDArray[Any]:
    """Integers in 64 bits if none is further from zero than `largest` and that fits, else Python ints."""
    return np.asarray(values).astype(np.int64 if largest < INT64_LIMIT else object)


def check_threshold(tau: int) -> int:
    """A threshold in units."""
    return integer(tau, "tau", low=0)


def common_shape(operators: tuple[Structured, ...]) -> tuple[int, ...]:
    """The shape that all operators have."""
    same = operators and all(each.shape == operators[0].shape for each in operators)
    check(same, "operators", "must be over one universe", given=len(operators), fix="pass at least one")
    return operators[0].shape


class OperatorWrapper(Structured):
    """Queries that change the weights of another operator over the same universe, one to one."""

    operator: Structured

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return self.operator.shape

    def __len__(self) -> int:
        return len(self.operator)


@final
@dataclass(frozen=True, eq=False)
class Pointwise(OperatorWrapper):
    """min(w, tau) ("truncated") or 1 where w > tau, else 0 ("above"), times a public factor.

    No structure is left to use: all cells are visited block by block, each with all queries. This is slow,
    and the last resort.
    """

    operator: Structured
    change: Literal["truncated", "above"]
    tau: int
    height: int = 1
    grain: int = 1

    @cached_property
    def granularity(self) -> int:
        """That of the operator, or one for a comparison."""
        return self.grain * (self.operator.granularity if self.change == "truncated" else 1)

    @cached_property
    def lowest(self) -> int:
        return min(self._ends)

    @cached_property
    def highest(self) -> int:
        return max(self._ends)

    @property
    def tops(self) -> NDArray[Any]:
        if self.height < 0:
            return as_integers(np.full(len(self), self.highest, object), self.largest)
        return as_integers(self._apply_change(self.operator.tops), self.largest)

    def norm(self, limit: int) -> int:
        """The largest sum of absolute weights of one cell; with too many cells, an upper bound."""
        if len(self) * self.cells > limit:
            return len(self) * self.largest
        return int(self.column_sums().max())

    def forward(self, x: Any) -> Any:
        xp, first, total = namespace(x), 0, 0
        for weights in self._blocks():
            stop = first + weights.shape[1]
            total = total + xp.matmul(convert_like(weights, x), x[first:stop, ...])
            first = stop
        return total

    def backward(self, y: Any) -> Any:
        xp = namespace(y)
        return xp.concat([xp.matmul(convert_like(weights.T, y), y) for weights in self._blocks()], axis=0)

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        return as_integers(self._apply_change(self.operator.weights_at(places)), self.largest)

    def column_sums(self) -> NDArray[Any]:
        return np.concatenate([np.abs(weights.astype(object)).sum(axis=0) for weights in self._blocks()])

    def single(self, index: int) -> Pointwise:
        return replace(self, operator=self.operator.single(index))

    def multiply(self, units: int, granularity: int = 1) -> Pointwise:
        return replace(self, height=self.height * units, grain=self.grain * granularity)

    def truncate(self, tau: int) -> Structured:
        return Pointwise(self, "truncated", check_threshold(tau))

    def above(self, tau: int) -> Structured:
        return Pointwise(self, "above", check_threshold(tau))

    def _apply_change(self, weights: NDArray[Any]) -> NDArray[Any]:
        exact = weights.astype(object)
        changed = np.minimum(exact, self.tau) if self.change == "truncated" else (exact > self.tau) * 1
        return changed.astype(object) * self.height

    @property
    def _ends(self) -> tuple[int, int]:
        ends = self._apply_change(np.array([self.operator.lowest, self.operator.highest], object))
        return int(ends[0]), int(ends[1])

    def _blocks(self) -> Iterator[NDArray[Any]]:
        """The changed weights of all cells in order, some cells at a time."""
        size = max(1, _BLOCK_NUMBERS // len(self))
        for places in all_places(self.shape):
            for first in range(0, len(places), size):
                yield self.weights_at(places[first : first + size])


class StretchQueries(Structured):
    """Query i weighs what lies from starts[i] up to stops[i] with `height` units, and all else with zero."""

    starts: UInts
    stops: UInts
    height: int

    @cached_property
    def lowest(self) -> int:
        return min(0, self.height)

    @cached_property
    def highest(self) -> int:
        return max(0, self.height)

    def __len__(self) -> int:
        return len(self.starts)

    def single(self, index: int) -> Self:
        place = self.check_index(index)
        return self._with(starts=self.starts[place : place + 1], stops=self.stops[place : place + 1])

    def multiply(self, units: int, granularity: int = 1) -> Self:
        return self._with(height=self.height * units, granularity=self.granularity * granularity)

    def truncate(self, tau: int) -> Self:
        return self._with(height=min(self.height, check_threshold(tau)))

    def above(self, tau: int) -> Self:
        return self._with(height=int(self.height > check_threshold(tau)), granularity=1)

    def _with(self, **changed: Any) -> Self:
        """The same queries with other fields: every subclass is a dataclass."""
        return cast(Self, replace(cast(Any, self), **changed))
