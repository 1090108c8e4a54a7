"""Lists of queries, one behind the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, cast, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.queries.operator.namespace import namespace
from partita.public.queries.operator.structured import DENSE, FITTING, Structured, common_shape, fitted
from partita.public.queries.product.product import Product
from partita.public.queries.ranges.boxes import LARGEST_TABLE, Boxes
from partita.public.queries.ranges.spans import Spans

_MOST_SUMS: Final = 2**26


@final
@frozen(eq=False)
class Stack(Structured):
    """The queries of several operators over one universe, in units that suit all of them."""

    operators: Converted[Sequence[Structured], tuple[Structured, ...]] = parameter()

    def __post_init__(self) -> None:
        given = tuple(self.operators)
        common_shape(given)
        fine = math.lcm(*(each.granularity for each in given))
        freeze(self, operators=tuple(_refined(each, fine // each.granularity) for each in given))

    @property
    def shape(self) -> tuple[int, ...]:
        """The widths of the axes."""
        return self.operators[0].shape

    @property
    def granularity(self) -> int:
        """The common denominator."""
        return self.operators[0].granularity

    @property
    def lowest(self) -> int:
        """The lowest of all."""
        return min(each.lowest for each in self.operators)

    @property
    def highest(self) -> int:
        """The highest of all."""
        return max(each.highest for each in self.operators)

    @cached_property
    def tops(self) -> NDArray[Any]:
        """Those of all operators."""
        return np.concatenate([fitted(each.tops, self.largest) for each in self.operators])

    def norm(self, limit: int) -> int:
        """The largest sum of absolute weights of one cell.

        Operators over different axes have their heaviest cells together. Those that share axes are added up
        cell by cell over these axes; where that is too much to look at, norms are added up.
        """
        share = limit // len(self.operators)
        return sum(_joint_norm(group, share) for group in _connected(self.operators))

    def __len__(self) -> int:
        return self._ends[-1]

    def forward(self, x: Any) -> Any:
        """The answers of all operators."""
        return namespace(x).concat([each.forward(x) for each in self.operators], axis=0)

    def backward(self, y: Any) -> Any:
        """The sum of the adjoints."""
        found = 0
        for each, first, stop in zip(self.operators, (0, *self._ends), self._ends, strict=False):
            found = found + each.backward(y[first:stop, ...])
        return found

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        """The weights of all operators."""
        return np.concatenate([fitted(each.weights_at(places), self.largest) for each in self.operators])

    def answers_at(self, places: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        """The answers of all operators."""
        return np.concatenate([each.answers_at(places, counts) for each in self.operators])

    def column_sums(self) -> NDArray[Any]:
        """The sum of those of all operators."""
        most = sum(each.column_norm for each in self.operators)
        return np.asarray(sum(fitted(each.column_sums(), most) for each in self.operators))

    def single(self, index: int) -> Structured:
        """One query of the operator that has it."""
        place = self.checked(index)
        number = int(np.searchsorted(self._ends, place, side="right"))
        return self.operators[number].single(place - (0, *self._ends)[number])

    def multiplied(self, units: int, granularity: int = 1) -> Stack:
        """All operators times `units`."""
        return Stack([each.multiplied(units, granularity) for each in self.operators])

    def truncated(self, tau: int) -> Stack:
        """All operators truncated."""
        return Stack([each.truncated(tau) for each in self.operators])

    def above(self, tau: int) -> Stack:
        """All operators compared with tau."""
        return Stack([each.above(tau) for each in self.operators])

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(int(end) for end in np.cumsum([len(each) for each in self.operators]))


def stacked(operators: Sequence[Structured]) -> Structured:
    """The operators one behind the other; neighbours that are a box each, over the same axes, become one."""
    runs = [list(run) for _, run in groupby(operators, key=_box_axes)]
    found = [each for run in runs for each in (_boxes(run) if len(run) > 1 else run)]
    return found[0] if len(found) == 1 else Stack(found)


def _box_axes(operator: Structured) -> object:
    """The axes that one box constrains; where it is none, something that equals nothing else."""
    if isinstance(operator, Product) and operator.used and all(_is_box(each) for _, each in operator.factors):
        axes = tuple(sorted(operator.used))
        if math.prod(operator.shape[axis] + 1 for axis in axes) < LARGEST_TABLE:
            return axes
    return object()


def _is_box(operator: Structured) -> bool:
    plain = isinstance(operator, Spans) and (operator.height, operator.granularity) == (1, 1)
    return plain and len(operator) == 1


def _boxes(operators: Sequence[Structured]) -> list[Structured]:
    """Products of single ranges as one operator."""
    first = cast(Product, operators[0])
    axes = tuple(sorted(first.used))
    sides = [_sides(cast(Product, each), axes) for each in operators]
    starts, stops = (np.array([[side[end] for side in box] for box in sides], np.uint64) for end in (0, 1))
    return [Product(first.shape, [(axes, Boxes(tuple(first.shape[a] for a in axes), starts, stops))])]


def _sides(box: Product, axes: tuple[int, ...]) -> list[tuple[int, int]]:
    spans = {mine[0]: cast(Spans, each) for mine, each in box.factors}
    return [(int(spans[axis].starts[0]), int(spans[axis].stops[0])) for axis in axes]


def _refined(operator: Structured, finer: int) -> Structured:
    return operator if finer == 1 else operator.multiplied(finer, finer)


def _used(operator: Structured) -> frozenset[int]:
    """The axes along which weights differ."""
    return operator.used if isinstance(operator, Product) else frozenset(range(len(operator.shape)))


def _connected(operators: Sequence[Structured]) -> list[list[Structured]]:
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
    if len(operators) == 1 or math.prod(shape) > DENSE or math.prod(shape) * len(operators) > _MOST_SUMS:
        return most
    sums = np.zeros(shape, np.int64 if most < FITTING else object)
    for each in operators:
        sums += _sums_over(each, axes)
    return int(sums.max())


def _sums_over(operator: Structured, axes: tuple[int, ...]) -> NDArray[Any]:
    if isinstance(operator, Product):
        return operator.sums_over(axes)
    return operator.column_sums().reshape(operator.shape)
