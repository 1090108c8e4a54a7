"""Numerical queries as linear ones over cells that are few enough to hold.

Each query is divided by a public weight, so that no weight exceeds 1 (`GradedQueries`). The cells are those
of the universe, or the classes of rows by a few knots: a value is a mass on each knot, and its sum is linear
in these masses. Queries are cut at one of the thresholds 0, 1, 2, 4, ..., chosen from released numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, Ints
from partita.errors import check
from partita.lazy import cached_property
from partita.numbers import check_choice
from partita.public.queries.operator import Operator, Structured, all_places, convert_like, is_integer
from partita.public.queries.product import Factor, Product, Stack, product_of
from partita.public.queries.ranges import SpanOperator, Sparse
from partita.public.sums.knots import Hats, Knots, clear_level, highest_clear, near_level
from partita.public.workload.weights import Measurements


class Piece(NamedTuple):
    """For each value a knot, and the mass that it gets there."""

    knot: NDArray[np.int64]
    mass: NDArray[Any]


class Decomposition(ABC):
    """Whole values 0, ..., top as masses on knots: v = sum over knots of knot mass / unit."""

    top: int
    """The largest value."""

    knots: tuple[int, ...]
    """Whole numbers, increasing; the last is at least half of the top."""

    unit: int
    """The mass that counts as one row."""

    most: int
    """The largest mass of a row in all."""

    moved: int
    """The largest mass of a row, weighed by the weights of knots over their `largest_sum`."""

    rounding: float = 0.0
    """By how much at most a value differs from the sum of its masses times knots."""

    @abstractmethod
    def largest_sum(self, weights: Sequence[int]) -> int:
        """The largest sum of masses times weights of knots, none of them negative, over `moved`."""

    @abstractmethod
    def pieces(self, values: NDArray[Any]) -> Iterator[Piece]:
        """The masses of whole values from 0 to the top, a few pieces for all of them."""


def spread_masses(
    decomposition: Decomposition,
    cells: NDArray[Any],
    values: NDArray[Any],
    counts: NDArray[Any],
    size: int,
) -> NDArray[Any]:
    """How much mass lies in each of `size` cells on each knot, as Python ints: a table (cell, knot)."""
    table = np.zeros((size, len(decomposition.knots)), dtype=object)
    times = counts.astype(object)
    for knot, mass in decomposition.pieces(values):
        np.add.at(table, (cells, knot), mass * times)
    return table


@final
@dataclass(frozen=True)
class Binary(Decomposition):
    """Knots 1, 2, 4, ...: a value becomes one tuple for each of its binary digits, 2560 becomes 2048 and 512.

    This is the decomposition of the slides. A row has up to as many tuples as a value up to `top` has ones,
    but they add up to the value: a sum over its largest value moves by one row. `by_tuple` grades queries
    by the largest weight of one tuple, as files of version 0.1 do.

    >>> Binary(2560).knots[-2:], Binary(2560).most, Binary(2560).largest_sum(Binary(2560).knots)
    ((1024, 2048), 11, 2560)
    """

    top: int
    by_tuple: bool = False
    unit = 1

    @cached_property
    def knots(self) -> tuple[int, ...]:
        return tuple(1 << digit for digit in range(self.top.bit_length()))

    @cached_property
    def most(self) -> int:
        """The largest number of ones of a value; by tuples, the number of digits."""
        return len(self.knots) if self.by_tuple else self.largest_sum([1] * len(self.knots))

    @cached_property
    def moved(self) -> int:
        """One row; by tuples, all of them at the largest weight."""
        return self.most if self.by_tuple else 1

    def largest_sum(self, weights: Sequence[int]) -> int:
        """The largest sum of the weights of the ones of a value up to the top.

        It is that of the top, or of a value that has the digits of the top above some one of it, a zero in
        its place, and ones below it.
        """
        if self.by_tuple:
            return max(weights)
        best = below = 0  # the largest sum of digits up to here that are no more than those of the top; any
        for digit, weight in enumerate(weights):
            if self.top >> digit & 1:
                best = max(best + weight, below)
            below += weight
        return best

    def pieces(self, values: NDArray[Any]) -> Iterator[Piece]:
        for digit in range(len(self.knots)):
            yield Piece(np.full(values.shape, digit), values >> digit & 1)


# Thresholds and the octaves between them.


FINEST: Final = 1 << 30
"""A sum cut at a threshold is released in units of the threshold over this, or in units of 1."""

_WORD: Final = 1 << 63


def octave_tops(highest: int) -> tuple[int, ...]:
    """0, 1, 2, 4, ... up to the first that is at least `highest`: no weight lies above the last.

    >>> octave_tops(5), octave_tops(0)
    ((0, 1, 2, 4, 8), (0,))
    """
    if highest <= 0:
        return (0,)
    return (0, *(1 << power for power in range((highest - 1).bit_length() + 1)))


def find_octaves(weights: NDArray[Any], tops: tuple[int, ...]) -> Ints:
    """The number of the first top that is at least each weight; what lies above the last is cut to it.

    >>> find_octaves(np.array([0, 1, 2, 3, 4, 5, 9]), (0, 1, 2, 4, 8)).tolist()
    [0, 1, 2, 3, 3, 4, 4]
    """
    edges = np.array(tops, dtype=np.uint64 if tops[-1] <= _WORD else object)
    cut = np.minimum(weights.astype(edges.dtype), edges[-1])
    return np.asarray(np.searchsorted(edges, cut.ravel(), side="left").reshape(cut.shape), np.int64)


def choose_octaves(noisy: NDArray[Any], scale: Fraction) -> Ints:
    """The octave to cut at, from noisy counts along the last axis: the highest that is clear, or the next.

    The first octave, of weights 0, is taken where no other is clear. Counts of empty octaves seem clear with
    chance at most 1/1000 in each row.
    """
    above = noisy[..., 1:]
    if not above.shape[-1]:
        return np.zeros(noisy.shape[:-1], np.int64)
    return highest_clear(above, clear=clear_level(scale, above.shape[-1]), near=near_level(scale)) + 1


def choose_shared_top(noisy: NDArray[Any], scale: Fraction, tops: tuple[int, ...]) -> int:
    """One threshold for all queries, from noisy counts of rows by their largest weight; never 0."""
    return tops[max(1, int(choose_octaves(noisy[np.newaxis], scale)[0]))]


def choose_grid(top: int) -> int:
    """The unit in which a sum cut at `top`, a power of two, is released.

    >>> choose_grid(1024), choose_grid(2**40)
    (1, 1024)
    """
    return max(1, top // FINEST)


@final
@dataclass(frozen=True)
class Hat(Decomposition):
    """Knots 0, ..., c/16, c/4, c, with c the first power of two that is at least `top`.

    A value becomes two masses on the knots around it. A row has the mass `unit` whatever its value, so that
    sums over knots have the sensitivity of a count.

    >>> Hat(2560).knots[-3:], Hat(2560).most == Hat(2560).unit
    ((256, 1024, 4096), True)
    """

    top: int

    @cached_property
    def knots(self) -> tuple[int, ...]:
        """Zero, and a power of two for every factor of four."""
        return self._hats.knots.offsets

    @cached_property
    def unit(self) -> int:
        return self._hats.unit

    @cached_property
    def most(self) -> int:
        """Exactly this, for every value."""
        return self._hats.unit

    @cached_property
    def moved(self) -> int:
        """All of it: the masses of a row add up to it."""
        return self._hats.unit

    def largest_sum(self, weights: Sequence[int]) -> int:
        """The largest weight, which a row between two knots has in part."""
        return max(weights)

    @cached_property
    def rounding(self) -> float:
        """Nothing for knots up to 2^32; above that masses are rounded down."""
        return self._hats.rounding

    def pieces(self, values: NDArray[Any]) -> Iterator[Piece]:
        """The lower knot of each value, then the upper one."""
        first, mass = self._hats.laid(values)
        for side in range(2):
            yield Piece(first + side, mass[:, side])

    @cached_property
    def _hats(self) -> Hats:
        return Hats(Knots(octave_tops(self.top)[-1]))


# Numerical queries divided by public weights.


GRADE: Final = 1 << 20
"""How fine graded answers are, where a row has mass 1; coarser where masses are finer themselves."""

_FEW: Final = 1 << 17  # numbers in a dense matrix up to which one product is faster than structure


@final
@dataclass(frozen=True, eq=False)
class GradedQueries(Operator):
    """The queries w / top for a public top of each query, in units of 1 / `granularity`.

    Integer answers are exact sums first, and then floor(sum granularity / top). A row of weight at most top
    moves the sum by at most top, hence its floor by at most the granularity: rounding costs no privacy.
    Floats are scaled and not rounded.
    """

    inner: Structured
    tops: NDArray[Any]
    """A positive whole number for each query, in units of the inner operator: no weight of it is above."""

    granularity: int = GRADE
    lowest = 0

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return self.inner.shape

    @cached_property
    def highest(self) -> int:
        """The weight 1."""
        return self.granularity

    @property
    def column_norm(self) -> int:
        """An upper bound: every query at its top."""
        return self.granularity * len(self)

    def __len__(self) -> int:
        return len(self.inner)

    def answers(self, x: Any) -> Any:
        """GradedQueries answers: whole numbers for whole numbers, else floats."""
        if self._matrix is not None and _floats(x):
            return self._matrix @ x.reshape(-1)
        sums = self.inner.answers(x)
        if _whole(sums):
            return np.asarray(sums).astype(object) * self.granularity // self.tops.astype(object)
        return sums * convert_like(self._factors, sums)

    def combine(self, y: Any) -> Any:
        """The adjoint, in floats."""
        if self._matrix is not None and _floats(y):
            return (y @ self._matrix).reshape(self.shape)
        return self.inner.combine(y * convert_like(self._factors, y))

    def row(self, index: int, like: Any) -> Any:
        """The weights of one query over the universe, as an array like another."""
        weights, top = self.inner.row(index, like), int(self.tops[index])
        if _whole(weights):
            return np.asarray(weights).astype(object) * self.granularity // top
        return weights * (self.granularity / top)

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
        return self.granularity / self.tops.astype(np.float64)


def _floats(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.float64


def _whole(x: Any) -> bool:
    """Whether an array holds integers, of a fixed width or Python's."""
    return (isinstance(x, np.ndarray) and x.dtype == object) or is_integer(x)


# What multiplicative weights see of numerical queries.


class Space(ABC):
    """k numerical queries over cells that are few enough to hold, each with a whole mass.

    The counts C(Q) and the cut queries L(Q) of the slides are one operator, `joint`, so that one run of
    multiplicative weights answers both.
    """

    number: int
    """How many numerical queries there are."""

    shape: tuple[int, ...]
    """The widths of the axes of the cells."""

    granularity: int
    """Thresholds are integers over this number."""

    unit: int
    """The mass that counts as one row."""

    most: int
    """The largest mass of a row in all."""

    moved: int
    """By how much mass at most a row moves the answer to a graded query."""

    rounding: float = 0.0
    """By how much at most the masses of a row are off, as a share of the last threshold."""

    tops: tuple[int, ...]
    """Thresholds 0 < ... in units of the weights; nothing lies above the last."""

    largest: tuple[int, ...]
    """The largest weights up to each threshold: the thresholds, but for the last one."""

    worth: Floats
    """What a unit of weight is worth for each query."""

    counted: Floats
    """What a graded count of one is worth in mass over its unit, for every threshold but the last."""

    knots: tuple[int, ...] | None = None
    """The thresholds along the last axis, if it is one of thresholds."""

    whole: GradedQueries
    """Each query over its largest weight in the universe."""

    joint: GradedQueries
    """The counts above every threshold but the last, and each query cut at every threshold but 0."""

    @abstractmethod
    def cut(self, top: int) -> GradedQueries:
        """Each query cut at a threshold, over that threshold."""

    @property
    def graded(self) -> int:
        """How many queries `joint` has."""
        return 2 * (len(self.tops) - 1) * self.number

    def _grade(self, operator: Structured, tops: NDArray[Any]) -> GradedQueries:
        """Queries over their tops, at least as fine as a millionth of a row; a top of zero becomes one."""
        return GradedQueries(operator, np.maximum(tops.astype(object), 1), max(1, GRADE // self.unit))

    @abstractmethod
    def levels(self, answers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Numbers for the queries of `joint` as two tables, counts and cut queries: thresholds by queries."""


def grade_factors(graded: GradedQueries) -> Floats:
    """What a graded answer of one is worth: the top of each query."""
    return np.asarray(graded.tops.astype(np.float64) / graded.inner.granularity)


@final
@dataclass(frozen=True, eq=False)
class PlainSpace(Space):
    """The cells of the universe themselves: a row has mass 1 in its cell."""

    operator: Structured
    unit = most = moved = 1

    @cached_property
    def number(self) -> int:
        return len(self.operator)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return self.operator.shape

    @cached_property
    def granularity(self) -> int:
        return self.operator.granularity

    @cached_property
    def tops(self) -> tuple[int, ...]:
        return octave_tops(self.operator.highest)

    @cached_property
    def largest(self) -> tuple[int, ...]:
        return self.tops

    @cached_property
    def worth(self) -> Floats:
        """The same for all queries."""
        return np.full(len(self.operator), 1.0 / self.granularity)

    @cached_property
    def counted(self) -> Floats:
        """A row."""
        return np.ones(len(self.tops) - 1)

    @cached_property
    def whole(self) -> GradedQueries:
        return self._grade(self.operator, self.operator.tops)

    def cut(self, top: int) -> GradedQueries:
        """min(w, top) / top."""
        return self._grade(self.operator.truncate(top), np.full(len(self.operator), top, object))

    @cached_property
    def joint(self) -> GradedQueries:
        """Counts first, all queries for each threshold; then cut queries in the same way."""
        counts = [self.operator.above(top) for top in self.tops[:-1]]
        cut = [self.operator.truncate(top) for top in self.tops[1:]]
        grades = [self.operator.granularity] * len(counts) + list(self.tops[1:])
        return self._grade(Stack([*counts, *cut]), np.repeat(np.array(grades, object), len(self.operator)))

    def levels(self, answers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Two tables, one below the other."""
        counts, cut = answers.reshape(2, len(self.tops) - 1, len(self.operator))
        return counts, cut


@final
@dataclass(frozen=True, eq=False)
class DecomposedSpace(Space):
    """The classes of rows by the knots on which a value is laid: weights are f_w(class) times the knot.

    Thresholds cut the value, not the product, and the counts are of mass above them.
    """

    classes: Structured
    decomposition: Decomposition
    granularity: int = 1
    """Values are integers over this number."""

    @cached_property
    def number(self) -> int:
        return len(self.classes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The axes of the classes, then the knots."""
        return (*self.classes.shape, len(self.knots))

    @cached_property
    def unit(self) -> int:
        return self.decomposition.unit

    @cached_property
    def most(self) -> int:
        return self.decomposition.most

    @cached_property
    def moved(self) -> int:
        return self.decomposition.moved

    @cached_property
    def rounding(self) -> float:
        return self.decomposition.rounding / self.tops[-1]

    @cached_property
    def knots(self) -> tuple[int, ...]:
        return self.decomposition.knots

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """Zero and the knots above it."""
        return (0, *(knot for knot in self.knots if knot))

    @cached_property
    def largest(self) -> tuple[int, ...]:
        """Binary digits of values above the last knot end with it."""
        return (*self.tops[:-1], max(self.tops[-1], self.decomposition.top))

    @cached_property
    def worth(self) -> Floats:
        """The largest weight of the classes."""
        return np.asarray(self.classes.tops.astype(np.float64) / self._grains)

    @cached_property
    def counted(self) -> Floats:
        """The largest mass of a row above the threshold, over what it moves."""
        return np.array([float(self.decomposition.largest_sum(row)) for row in self._above])

    @cached_property
    def whole(self) -> GradedQueries:
        """Values over the largest sum of a row."""
        return self.cut(self.tops[-1])

    def cut(self, top: int) -> GradedQueries:
        """min(value, top) over the largest of a row, linear in the masses if the threshold is a knot."""
        return self._along([self._cut(top)])

    @cached_property
    def joint(self) -> GradedQueries:
        """For each query all counts, then all cut values."""
        return self._along([*self._above, *(self._cut(top) for top in self.tops[1:])])

    def levels(self, answers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Two tables side by side."""
        counts, cut = np.moveaxis(answers.reshape(len(self.classes), 2, -1), 0, -1)
        return counts, cut

    @property
    def _above(self) -> list[list[int]]:
        return [[int(knot > top) for knot in self.knots] for top in self.tops[:-1]]

    def _cut(self, top: int) -> list[int]:
        return [min(knot, top) for knot in self.knots]

    @property
    def _grains(self) -> int:
        return self.classes.granularity * self.granularity

    def _along(self, rows: Sequence[Sequence[int]]) -> GradedQueries:
        """Every query of the classes with every row of weights of the knots, over its `largest_sum`."""
        grades = [self.decomposition.largest_sum(row) for row in rows]
        width = len(self.knots)
        queries, spots = np.indices((len(rows), width)).reshape(2, -1)
        weights = np.array(rows, object).reshape(-1)
        along = Sparse((width,), len(rows), queries, spots, weights, self.granularity)
        tops = np.multiply.outer(self.classes.tops.astype(object), np.array(grades, object))
        return self._grade(product_of([self.classes, along]), tops.reshape(-1))


# Queries that are a product of classes and one value.


Method: TypeAlias = Literal["auto", "none", "hat", "binary"]

StoredMethod: TypeAlias = Literal["auto", "none", "hat", "binary-rows", "binary"]
"""The same in files, where "binary" is that of version 0.1: graded by tuples, not by rows."""

_LARGEST_VALUE: Final = 1 << 63  # larger values have no octave in 64 bits


@final
@dataclass(frozen=True, eq=False)
class ClassesAndValue:
    """Queries with weights f_w(class) g(row): which axes tell the class of a row, which its value."""

    class_axes: tuple[int, ...]
    classes: Structured
    value_axes: tuple[int, ...]
    value: Structured

    @staticmethod
    def of(operator: Structured) -> ClassesAndValue | None:
        """The parts of a product of queries, else None; its single query with the largest weights is g."""
        if not isinstance(operator, Product) or operator.lowest < 0:
            return None
        factors = [factor for factor in operator.factors if not _free(factor)]
        single = [factor for factor in factors if len(factor[1]) == 1]
        values = [factor for factor in single if 1 < factor[1].highest <= _LARGEST_VALUE]
        if not values:
            return None
        value = max(values, key=lambda factor: factor[1].highest)
        rest = [factor for factor in factors if factor is not value] or [((), SpanOperator.everything(1))]
        axes = tuple(axis for mine, _ in rest for axis in mine)
        classes = rest[0][1] if len(rest) == 1 else product_of([each for _, each in rest])
        return ClassesAndValue(axes, classes, *value)

    def cells(self, places: NDArray[Any]) -> Ints:
        """The class of each point, counted in the order of the axes."""
        if not self.class_axes:
            return np.zeros(len(places), np.int64)
        along = places[:, list(self.class_axes)].T.astype(np.int64)
        return np.asarray(np.ravel_multi_index(tuple(along), self.classes.shape))

    def weighs(self, places: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether any query of the classes has a weight at each point."""
        weighed = self.classes.combine(np.ones(len(self.classes)))
        return np.asarray(weighed.reshape(-1)[self.cells(places)] > 0)

    def values(self, places: NDArray[Any]) -> NDArray[Any]:
        """The value of each point, in units."""
        return np.asarray(self.value.weights_at(places[:, list(self.value_axes)])[0])


def check_method(method: Method) -> Method:
    """One of the ways to decompose values."""
    return check_choice(method, "decomposition", get_args(Method))


def stored_method(method: Method) -> StoredMethod:
    """The name of a method in files."""
    return "binary-rows" if method == "binary" else method


def check_stored_method(method: object) -> StoredMethod:
    """One of the names that files have."""
    return check_choice(cast(StoredMethod, method), "decomposition", get_args(StoredMethod))


def build_space(operator: Structured, method: StoredMethod) -> Space:
    """The cells that the method asks for: classes by knots, or the universe itself.

    "auto" is "hat" for queries that are a product of classes and one value, else "none".
    """
    if method == "none":
        return PlainSpace(operator)
    decomposed = ClassesAndValue.of(operator)
    if decomposed is not None:
        value = decomposed.value
        return DecomposedSpace(decomposed.classes, _decompose(value.highest, method), value.granularity)
    rule = "must be of queries that are a product of classes and one value of at most 2^63"
    fix = 'pass "none", or ask for example ranges("age") * value("income")'
    given = "binary" if method == "binary-rows" else method
    check(method == "auto", "decomposition", rule, given=given, fix=fix)
    return PlainSpace(operator)


def _decompose(top: int, method: StoredMethod) -> Decomposition:
    return Binary(top, by_tuple=method == "binary") if method.startswith("binary") else Hat(top)


def _free(factor: Factor) -> bool:
    """Whether a factor counts everything along its axes."""
    each = factor[1]
    return isinstance(each, SpanOperator) and each.constant and each.height == each.granularity == 1


# Where to cut each query: functions of released numbers, so they cost nothing. Rows of the arrays are
# thresholds 0 = tops[0] < tops[1] < ..., columns are queries.


STEADY: Final = 0.125
"""How much of its own noise a larger threshold may add before it is worth taking, among those below the
last clear one; measured."""

CAUTIOUS: Final = 0.5
"""The same where it is not known which thresholds are clear; measured."""


def first_quiet(above: Floats, alpha: float) -> Ints:
    """The first threshold above which at most `alpha` rows seem to lie; none lies above the last.

    This is the rule of the slides. With error at most alpha in every count, at most 2 alpha rows lie above
    it, and the threshold before it is below the largest weight in the data.

    >>> first_quiet(np.array([[90.0, 5.0], [20.0, 1.0]]), 9.0).tolist()
    [2, 0]
    """
    quiet = np.vstack([above <= alpha, np.ones((1, above.shape[1]), np.bool_)])
    return np.asarray(quiet.argmax(axis=0))


def first_steady(sums: Floats, noise: Floats, share: float) -> Ints:
    """The first threshold from which no larger one adds more than a share of its own noise [Lepski 1991].

    `sums` are the released sums of min(w, top), zero for the first threshold, and `noise` is about the
    standard error of each.

    >>> sums, noise = np.array([[0.0], [50.0], [90.0], [91.0]]), np.array([[0.0], [3.0], [6.0], [12.0]])
    >>> first_steady(sums, noise, 0.5).tolist()
    [2]
    """
    surely_ahead = np.maximum.accumulate((sums - share * noise)[::-1], axis=0)[::-1]
    return np.asarray((surely_ahead <= sums).argmax(axis=0))


def last_clear(weighed: Measurements, axis: int) -> int | None:
    """The last position along an axis whose noisy mass is clear; None where masses along it are not known."""
    first = 0
    for margin in weighed.margins:
        noisy = weighed.marginals[first : first + margin.bins]
        if margin.axis == axis and margin.bins == margin.shape[axis]:
            level = clear_level(weighed.scales.marginal, margin.bins)
            return max(0, int(highest_clear(noisy[np.newaxis], clear=level, near=level)[0]))
        first += margin.bins
    return None
