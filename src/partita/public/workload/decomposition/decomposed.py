"""Decomposable queries: weights f_w(class) g(row), classes along some axes and one value along others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.errors.errors import InvalidParameter
from partita.numbers import one_of
from partita.public.axis.curve.curve import Ints
from partita.public.queries.operator.structured import Structured
from partita.public.queries.product.product import Factor, Product
from partita.public.queries.ranges.spans import Spans
from partita.public.workload.decomposition.binary import Binary
from partita.public.workload.decomposition.decomposition import Decomposition
from partita.public.workload.decomposition.hat import Hat
from partita.public.workload.decomposition.space import DecomposedSpace, PlainSpace, Space

Method: TypeAlias = Literal["auto", "none", "hat", "binary"]

_LARGEST_VALUE: Final = 1 << 63


@final
@dataclass(frozen=True, eq=False)
class Decomposed:
    """Which axes tell the class of a row, which its value, and the queries over each."""

    class_axes: tuple[int, ...]
    classes: Structured
    value_axes: tuple[int, ...]
    value: Structured

    @staticmethod
    def of(operator: Structured) -> Decomposed | None:
        """The queries taken apart, if they are a product; its single query with the largest weights is g."""
        if not isinstance(operator, Product) or operator.lowest < 0:
            return None
        factors = [factor for factor in operator.factors if not _free(factor)]
        values = [
            factor for factor in factors if len(factor[1]) == 1 and 1 < factor[1].highest <= _LARGEST_VALUE
        ]
        if not values:
            return None
        value = max(values, key=lambda factor: factor[1].highest)
        rest = [factor for factor in factors if factor is not value] or [((), Spans.everything(1))]
        axes = tuple(axis for mine, _ in rest for axis in mine)
        return Decomposed(axes, _over_own_axes(rest), *value)

    def space(self, method: Method) -> DecomposedSpace:
        """Classes by knots."""
        top = self.value.highest
        decomposition: Decomposition = Binary(top) if method == "binary" else Hat(top)
        return DecomposedSpace(self.classes, decomposition, self.value.granularity)

    def cells(self, places: NDArray[Any]) -> Ints:
        """The class of each point, counted in the order of the axes."""
        if not self.class_axes:
            return np.zeros(len(places), np.int64)
        along = places[:, list(self.class_axes)].T.astype(np.int64)
        return np.asarray(np.ravel_multi_index(tuple(along), self.classes.shape))

    def asked(self, places: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether any query of the classes has a weight at each point."""
        weighed = self.classes.combine(np.ones(len(self.classes)))
        return np.asarray(weighed.reshape(-1)[self.cells(places)] > 0)

    def values(self, places: NDArray[Any]) -> NDArray[Any]:
        """The value of each point, in units."""
        return np.asarray(self.value.weights_at(places[:, list(self.value_axes)])[0])


def checked_method(method: Method) -> Method:
    """One of the ways to decompose values."""
    return one_of(method, "decomposition", get_args(Method))


def space_of(operator: Structured, method: Method) -> Space:
    """The cells that the method asks for: classes by knots, or the universe itself.

    "auto" is "hat" for queries that are a product of classes and one value, else "none".
    """
    if method == "none":
        return PlainSpace(operator)
    decomposed = Decomposed.of(operator)
    if decomposed is not None:
        return decomposed.space(method)
    if method == "auto":
        return PlainSpace(operator)
    rule = "must be of queries that are a product of classes and one value of at most 2^63"
    fix = 'pass "none", or ask for example ranges("age") * value("income")'
    raise InvalidParameter("decomposition", rule, given=method, fix=fix)


def _free(factor: Factor) -> bool:
    """Whether a factor counts everything along its axes."""
    each = factor[1]
    return isinstance(each, Spans) and each.constant and each.height == each.granularity == 1


def _over_own_axes(factors: list[Factor]) -> Structured:
    """Factors over some axes of a universe as queries over these axes alone, in the same order."""
    if len(factors) == 1:
        return factors[0][1]
    widths = [width for _, each in factors for width in each.shape]
    firsts = np.cumsum([0, *(len(each.shape) for _, each in factors)])
    own = [
        (tuple(range(first, first + len(each.shape))), each)
        for first, (_, each) in zip(firsts.tolist(), factors, strict=False)
    ]
    return Product(widths, own)
