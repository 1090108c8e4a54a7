"""Operators made of operators: the Kronecker product of queries over different axes, and lists of queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from typing import Any, Final, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray

from partita.errors import check
from partita.lazy import cached_property
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.queries.operator import (
    INT64_LIMIT,
    MOST_DENSE,
    MOST_TERMS,
    Pointwise,
    Structured,
    as_integers,
    check_threshold,
    common_shape,
    exact_sums,
    namespace,
)
from partita.public.queries.ranges import LARGEST_TABLE, BoxOperator, SpanOperator, as_vector

Factor: TypeAlias = tuple[tuple[int, ...], Structured]
"""The axes that an operator is over, and the operator."""


@final
@frozen(eq=False)
class Product(Structured):
    """Queries of each factor, combined in all ways, the last factor's fastest: weights multiply.

    Factors are over different axes; axes that none is over are summed over.

    >>> pairs = Product((3, 2), [((1,), SpanOperator.each(2)), ((0,), SpanOperator(3, [0], [2]))])
    >>> pairs.answers(np.array([[1, 2], [3, 4], [5, 6]])).tolist()
    [4, 6]
    """

    shape: Converted[Sequence[int], tuple[int, ...]] = parameter()
    factors: Converted[Sequence[Factor], tuple[Factor, ...]] = parameter()

    def __post_init__(self) -> None:
        shape, factors = tuple(self.shape), tuple(self.factors)
        taken = [axis for axes, _ in factors for axis in axes]
        fits = all(each.shape == tuple(shape[a] for a in axes) for axes, each in factors)
        rule, fix = "must be over different axes of the shape", "merge those of one axis"
        check(len(set(taken)) == len(taken) and fits, "factors", rule, given=len(taken), fix=fix)
        free = [axis for axis in range(len(shape)) if axis not in taken]
        rest = [((axis,), SpanOperator.everything(shape[axis])) for axis in free]
        freeze(self, shape=shape, factors=(*factors, *rest))

    @cached_property
    def granularity(self) -> int:
        return math.prod(each.granularity for each in self._operators)

    @cached_property
    def lowest(self) -> int:
        return self._ends[0]

    @cached_property
    def highest(self) -> int:
        return self._ends[1]

    @cached_property
    def tops(self) -> NDArray[Any]:
        """The products of the tops; where weights may be negative, the highest weight of all."""
        if any(each.lowest < 0 for each in self._operators):
            return as_integers(np.full(len(self), self.highest, object), self.largest)
        tops = reduce(np.multiply.outer, [each.tops.astype(object) for each in self._operators])
        return as_integers(tops, self.largest).reshape(-1)

    def norm(self, limit: int) -> int:
        """The product of those of the factors: columns are products."""
        return math.prod(each.norm(limit) for each in self._operators)

    @property
    def used(self) -> frozenset[int]:
        """The axes along which weights differ."""
        free = {axes for axes, each in self.factors if isinstance(each, SpanOperator) and each.constant}
        return frozenset(axis for axes, _ in self.factors if axes not in free for axis in axes)

    def __len__(self) -> int:
        return math.prod(len(each) for each in self._operators)

    def forward(self, x: Any) -> Any:
        """One factor after the other, those first that leave least."""
        xp = namespace(x)
        batch = x.shape[1]
        cells = [each.cells for each in self._operators]
        table = xp.permute_dims(xp.reshape(x, (*self.shape, batch)), (*self._order, len(self.shape)))
        table = xp.reshape(table, (*cells, batch))
        for number in self._by_gain:
            table = _along(table, number, self._operators[number].forward)
        return xp.reshape(table, (len(self), batch))

    def backward(self, y: Any) -> Any:
        """One factor after the other, those last that grow most."""
        xp = namespace(y)
        batch = y.shape[1]
        table = xp.reshape(y, (*(len(each) for each in self._operators), batch))
        for number in reversed(self._by_gain):
            table = _along(table, number, self._operators[number].backward)
        table = xp.reshape(table, (*(self.shape[axis] for axis in self._order), batch))
        back = tuple(int(place) for place in np.argsort(self._order))
        return xp.reshape(xp.permute_dims(table, (*back, len(self.shape))), (self.cells, batch))

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        found = np.ones((1, len(places)), np.int64 if self.largest < INT64_LIMIT else object)
        for axes, each in self.factors:
            weights = each.weights_at(places[:, list(axes)])
            found = (found[:, None] * weights[None]).reshape(-1, len(places))
        return as_integers(found, self.largest)

    def answers_at(self, places: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        """Points are gathered on the axes of small factors of many queries; the others weigh them first."""
        last = self._gathering
        if not last:
            return super().answers_at(places, counts)
        others = [number for number in range(len(self.factors)) if number not in last]
        (axes, dense), (rest_axes, rest) = self._extract(last), self._extract(others)
        groups = np.ravel_multi_index(tuple(places[:, list(axes)].T.astype(np.int64)), dense.shape)
        table = np.zeros((len(rest), len(dense)), object)
        for index in range(len(rest)):
            sums = _group_sums(rest.single(index), places[:, list(rest_axes)], counts, groups, dense.cells)
            table[index] = dense.answers(sums)
        # The table has the queries of other factors first: bring them into the order of all factors.
        order = [*others, *last]
        shaped = table.reshape([len(self._operators[number]) for number in order])
        return shaped.transpose(np.argsort(order)).reshape(-1)

    def column_sums(self) -> NDArray[Any]:
        return np.broadcast_to(self.sums_over(tuple(range(len(self.shape)))), self.shape).reshape(-1)

    def sums_over(self, axes: tuple[int, ...]) -> NDArray[Any]:
        """The sums of absolute weights, to be spread over some axes: all along which weights differ."""
        sums = np.ones((1,) * len(axes), np.int64 if self.column_norm < INT64_LIMIT else object)
        for mine, each in self.factors:
            if set(mine) <= set(axes):
                shape = [self.shape[axis] if axis in mine else 1 for axis in axes]
                by_axis = each.column_sums().reshape([self.shape[axis] for axis in mine])
                sums = sums * by_axis.transpose(np.argsort(mine)).reshape(shape)
            else:
                sums = sums * each.column_norm
        return sums

    def single(self, index: int) -> Product:
        numbers = np.unravel_index(self.check_index(index), [len(each) for each in self._operators])
        both = zip(self.factors, numbers, strict=True)
        return replace(self, factors=tuple((axes, each.single(int(i))) for (axes, each), i in both))

    def multiply(self, units: int, granularity: int = 1) -> Product:
        """One factor times `units`: one that has weights of its own, if there is any."""
        return self._with(self._numeric[:1], lambda each: each.multiply(units, granularity))

    def truncate(self, tau: int) -> Structured:
        """Factors of zeros and ones stay; the other factor is truncated."""
        tau = check_threshold(tau)
        return self._change_numeric(lambda each: each.truncate(tau)) or Pointwise(self, "truncated", tau)

    def above(self, tau: int) -> Structured:
        """Factors of zeros and ones stay; the other factor is compared with tau."""
        tau = check_threshold(tau)
        return self._change_numeric(lambda each: each.above(tau)) or Pointwise(self, "above", tau)

    def _change_numeric(self, change: Any) -> Product | None:
        """The change made to the one factor that is neither zero nor one; several of one query are merged.

        None if there are several of many queries: weights of products do not change factor by factor.
        """
        numeric = self._numeric
        if len(numeric) == 1:
            return self._with(numeric, change)
        if any(len(self._operators[number]) > 1 for number in numeric):
            return None
        others = [factor for number, factor in enumerate(self.factors) if number not in numeric]
        axes, inner = self._extract(numeric)
        merged = Product(self.shape, [*others, (axes, as_vector(inner))])
        return merged._with(merged._numeric[:1], change)

    @cached_property
    def _gathering(self) -> list[int]:
        """Factors with several queries over so few cells that their counts fit in an array."""
        found: list[int] = []
        for number in sorted(range(len(self.factors)), key=lambda n: -len(self._operators[n])):
            cells = math.prod(self._operators[n].cells for n in [*found, number])
            if len(self._operators[number]) > 1 and cells <= MOST_DENSE:
                found.append(number)
        return sorted(found)

    def _extract(self, numbers: list[int]) -> tuple[tuple[int, ...], Product]:
        """Some factors as a product over their own axes only, and these axes."""
        axes = tuple(axis for number in numbers for axis in self.factors[number][0])
        return axes, product_of([self._operators[number] for number in numbers])

    @property
    def _numeric(self) -> list[int]:
        """The factors with weights other than zero and one; the first, if there is none."""
        return [number for number, each in enumerate(self._operators) if not each.binary] or [0]

    def _with(self, numbers: list[int], change: Any) -> Product:
        """The product with some factors changed."""
        factors = enumerate(self.factors)
        changed = [(axes, change(each) if number in numbers else each) for number, (axes, each) in factors]
        return replace(self, factors=tuple(changed))

    @property
    def _operators(self) -> tuple[Structured, ...]:
        return tuple(each for _, each in self.factors)

    @property
    def _order(self) -> tuple[int, ...]:
        return tuple(axis for axes, _ in self.factors for axis in axes)

    @cached_property
    def _by_gain(self) -> list[int]:
        """The factors by how many numbers they leave of one."""
        return sorted(
            range(len(self.factors)), key=lambda n: len(self._operators[n]) / self._operators[n].cells
        )

    @cached_property
    def _ends(self) -> tuple[int, int]:
        low, high = 1, 1
        for each in self._operators:
            corners = [one * other for one in (low, high) for other in (each.lowest, each.highest)]
            low, high = min(corners), max(corners)
        return low, high


def product_of(operators: Sequence[Structured]) -> Product:
    """The product of operators, each over axes of its own, in order."""
    factors: list[Factor] = []
    first = 0
    for each in operators:
        factors.append((tuple(range(first, first + len(each.shape))), each))
        first += len(each.shape)
    return Product([width for each in operators for width in each.shape], factors)


def _group_sums(
    weigh: Structured, places: NDArray[Any], counts: NDArray[Any], groups: NDArray[Any], number: int
) -> NDArray[Any]:
    """The exact weighted sums of groups of points, block by block."""
    total = np.zeros(number, np.int64 if weigh.largest <= 1 else object)
    for first in range(0, len(places), MOST_TERMS):
        block = slice(first, first + MOST_TERMS)
        weights = weigh.weights_at(places[block])[0]
        total += exact_sums(weights, counts[block], groups[block], weigh.largest, number)
    return total


def _along(table: Any, number: int, apply: Any) -> Any:
    """A factor applied along one axis of a table."""
    xp = namespace(table)
    front = xp.moveaxis(table, number, 0)
    rest = front.shape[1:]
    done = apply(xp.reshape(front, (front.shape[0], math.prod(rest))))
    return xp.moveaxis(xp.reshape(done, (done.shape[0], *rest)), 0, number)


# Lists of queries.


_MOST_SUMS: Final = 2**26  # additions of cells that a joint norm may take: exact norms for time


@final
@frozen(eq=False)
class Stack(Structured):
    """The queries of several operators over one universe, in units that suit all of them."""

    operators: Converted[Sequence[Structured], tuple[Structured, ...]] = parameter()

    def __post_init__(self) -> None:
        given = tuple(self.operators)
        common_shape(given)
        fine = math.lcm(*(each.granularity for each in given))
        finer = [fine // each.granularity for each in given]
        refined = [
            each if factor == 1 else each.multiply(factor, factor)
            for each, factor in zip(given, finer, strict=True)
        ]
        freeze(self, operators=tuple(refined))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return self.operators[0].shape

    @cached_property
    def granularity(self) -> int:
        """The common denominator."""
        return self.operators[0].granularity

    @cached_property
    def lowest(self) -> int:
        return min(each.lowest for each in self.operators)

    @cached_property
    def highest(self) -> int:
        return max(each.highest for each in self.operators)

    @cached_property
    def tops(self) -> NDArray[Any]:
        return np.concatenate([as_integers(each.tops, self.largest) for each in self.operators])

    def norm(self, limit: int) -> int:
        """The largest sum of absolute weights of one cell.

        Operators over different axes have their heaviest cells together. Those that share axes are added up
        cell by cell over these axes; with too many cells, norms are added up.
        """
        share = limit // len(self.operators)
        return sum(_joint_norm(group, share) for group in _group_connected(self.operators))

    def __len__(self) -> int:
        return self._ends[-1]

    def forward(self, x: Any) -> Any:
        return namespace(x).concat([each.forward(x) for each in self.operators], axis=0)

    def backward(self, y: Any) -> Any:
        found = 0
        for each, first, stop in zip(self.operators, (0, *self._ends), self._ends, strict=False):
            found = found + each.backward(y[first:stop, ...])
        return found

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([as_integers(each.weights_at(places), self.largest) for each in self.operators])

    def answers_at(self, places: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([each.answers_at(places, counts) for each in self.operators])

    def column_sums(self) -> NDArray[Any]:
        most = sum(each.column_norm for each in self.operators)
        return np.asarray(sum(as_integers(each.column_sums(), most) for each in self.operators))

    def single(self, index: int) -> Structured:
        place = self.check_index(index)
        number = int(np.searchsorted(self._ends, place, side="right"))
        return self.operators[number].single(place - (0, *self._ends)[number])

    def multiply(self, units: int, granularity: int = 1) -> Stack:
        return Stack([each.multiply(units, granularity) for each in self.operators])

    def truncate(self, tau: int) -> Stack:
        return Stack([each.truncate(tau) for each in self.operators])

    def above(self, tau: int) -> Stack:
        return Stack([each.above(tau) for each in self.operators])

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(int(end) for end in np.cumsum([len(each) for each in self.operators]))


def stack_operators(operators: Sequence[Structured]) -> Structured:
    """The operators one behind the other; neighbours that are a box each, over the same axes, become one."""
    runs = [list(run) for _, run in groupby(operators, key=_box_axes)]
    found = [_merge_boxes(run) if len(run) > 1 else run[0] for run in runs]
    return found[0] if len(found) == 1 else Stack(found)


def _box_axes(operator: Structured) -> object:
    """The axes that a single box constrains; for other queries, an object that equals nothing else."""
    if (
        isinstance(operator, Product)
        and operator.used
        and all(_is_range(each) for _, each in operator.factors)
    ):
        axes = tuple(sorted(operator.used))
        if math.prod(operator.shape[axis] + 1 for axis in axes) < LARGEST_TABLE:
            return axes
    return object()


def _is_range(operator: Structured) -> bool:
    plain = isinstance(operator, SpanOperator) and (operator.height, operator.granularity) == (1, 1)
    return plain and len(operator) == 1


def _merge_boxes(operators: Sequence[Structured]) -> Product:
    """Products of single ranges as one operator."""
    first = cast(Product, operators[0])
    axes = tuple(sorted(first.used))
    sides = [_sides(cast(Product, each), axes) for each in operators]
    starts, stops = (np.array([[side[end] for side in box] for box in sides], np.uint64) for end in (0, 1))
    return Product(first.shape, [(axes, BoxOperator(tuple(first.shape[a] for a in axes), starts, stops))])


def _sides(box: Product, axes: tuple[int, ...]) -> list[tuple[int, int]]:
    spans = {mine[0]: cast(SpanOperator, each) for mine, each in box.factors}
    return [(int(spans[axis].starts[0]), int(spans[axis].stops[0])) for axis in axes]


def _used(operator: Structured) -> frozenset[int]:
    """The axes along which weights differ."""
    return operator.used if isinstance(operator, Product) else frozenset(range(len(operator.shape)))


def _group_connected(operators: Sequence[Structured]) -> list[list[Structured]]:
    """Groups of operators such that no two of different groups use an axis in common."""
    groups: list[tuple[set[int], list[Structured]]] = []
    for each in operators:
        used = _used(each)
        meeting = [group for group in groups if group[0] & used or not (group[0] or used)]
        axes, members = meeting[0] if meeting else (set(), [])
        axes |= used
        members.append(each)
        for others, more in meeting[1:]:
            axes |= others
            members += more
        groups = [group for group in groups if group not in meeting] + [(axes, members)]
    return [members for _, members in groups]


def _joint_norm(operators: list[Structured], limit: int) -> int:
    axes = tuple(sorted(frozenset().union(*map(_used, operators))))
    shape = [operators[0].shape[axis] for axis in axes]
    most = sum(each.norm(limit) for each in operators)
    if len(operators) == 1 or math.prod(shape) > MOST_DENSE or math.prod(shape) * len(operators) > _MOST_SUMS:
        return most
    sums = np.zeros(shape, np.int64 if most < INT64_LIMIT else object)
    for each in operators:
        dense = each.sums_over(axes) if isinstance(each, Product) else each.column_sums().reshape(each.shape)
        sums += dense
    return int(sums.max())
