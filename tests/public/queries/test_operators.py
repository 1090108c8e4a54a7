"""Operators mean what expressions say, cell by cell, and compute it without the matrix of weights."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from partita.domain import Integer
from partita.errors import InvalidParameter
from partita.public.queries.language import between, power, prefixes, ranges, total, value
from partita.public.queries.operator import Pointwise, Structured, cumulative
from partita.public.queries.product import Product, Stack
from partita.public.queries.queries import Concatenation, Universe
from partita.public.queries.ranges import BoxOperator, SpanOperator, Sparse

from .expressions import EVERY, EXPRESSIONS, LEAVES, PLACES, UNIVERSE, Written
from .foreign import Foreign

COUNTS = st.lists(st.integers(0, 2**40), min_size=len(EVERY), max_size=len(EVERY)).map(np.array)


def _units(written: Written) -> tuple[Structured, NDArray[Any]]:
    operator = written.queries.over(UNIVERSE)
    return operator, written.units(operator)


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: str(leaf)[:40])
def test_every_word_means_what_it_says(leaf: Written) -> None:
    """The weights of all cells, special ones included, are those written down by hand."""
    operator, weights = _units(leaf)

    assert operator.weights_at(PLACES).tolist() == weights.tolist()


@given(EXPRESSIONS, COUNTS)
@settings(max_examples=25)
def test_answers_are_exact(written: Written, counts: NDArray[np.int64]) -> None:
    """Products, lists and multiples give weighted sums to the last unit, from an array or from points."""
    operator, weights = _units(written)
    there = counts % 3 > 0

    assert operator.weights_at(PLACES).tolist() == weights.tolist()
    assert operator.answers(counts.reshape(UNIVERSE.shape)).tolist() == (weights @ counts).tolist()
    assert (
        operator.answers_at(PLACES[there], counts[there]).tolist()
        == (weights[:, there] @ counts[there]).tolist()
    )
    assert operator.answers(counts.astype(np.float64)).tolist() == pytest.approx(
        (weights @ counts).astype(float).tolist()
    )


@given(EXPRESSIONS, st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_combine_is_the_adjoint(written: Written, seed: int) -> None:
    """<A x, y> is <x, A' y>, and A' y is the transposed matrix times y."""
    operator, weights = _units(written)
    y = np.random.default_rng(seed).integers(-(2**30), 2**30, len(operator))

    assert operator.combine(y).shape == UNIVERSE.shape
    assert operator.combine(y).reshape(-1).tolist() == (weights.T @ y).tolist()
    assert operator.combine(y.astype(float)).reshape(-1) == pytest.approx((weights.T @ y).astype(float))


@given(EXPRESSIONS)
@settings(max_examples=25)
def test_norms_and_ends_are_exact(written: Written) -> None:
    """The column norm is the largest column sum; no weight lies beyond the ends or above the tops."""
    operator, weights = _units(written)
    sums = np.abs(weights).sum(axis=0)

    assert operator.column_norm == max(sums)
    assert operator.column_sums().reshape(-1).tolist() == sums.tolist()
    assert operator.lowest <= weights.min()
    assert operator.highest >= weights.max()
    assert bool((operator.tops >= weights.max(axis=1)).all())


@given(EXPRESSIONS, st.integers(0, 12))
@settings(max_examples=25)
def test_truncation_and_comparison_are_exact(written: Written, tau: int) -> None:
    """`truncated` is min(w, tau) and `above` is 1[w > tau], in units, and answers follow."""
    operator, weights = _units(written)
    lower, over = operator.truncate(tau), operator.above(tau)
    counts = np.arange(len(EVERY)) % 7

    assert lower.granularity == operator.granularity
    assert lower.weights_at(PLACES).tolist() == np.minimum(weights, tau).tolist()
    assert lower.answers(counts).tolist() == (np.minimum(weights, tau) @ counts).tolist()
    assert over.granularity == 1
    assert over.weights_at(PLACES).tolist() == (weights > tau).astype(int).tolist()
    assert over.answers(counts).tolist() == ((weights > tau).astype(object) @ counts).tolist()


@given(EXPRESSIONS, st.data())
@settings(max_examples=25)
def test_single_queries_are_rows(written: Written, data: st.DataObject) -> None:
    """`single` and `row` give one row of the matrix, in the same units."""
    operator, weights = _units(written)
    index = data.draw(st.integers(0, len(operator) - 1))

    assert operator.single(index).granularity == operator.granularity
    assert operator.single(index).weights_at(PLACES).tolist() == [weights[index].tolist()]
    assert operator.row(index, np.zeros(1)).reshape(-1).tolist() == weights[index].astype(float).tolist()


def test_numeric_factors_of_several_queries_are_truncated_too() -> None:
    """Where two factors have weights of their own and one is a list, products are changed cell by cell."""
    both = (value("age") + power("age", 2)) * value("income")
    operator = both.over(UNIVERSE)

    assert isinstance(operator.truncate(1), Pointwise)
    assert operator.truncate(1).truncate(0).highest == 0


@pytest.mark.parametrize("weight", [1, 2, 2**31, 2**62])
def test_sums_at_the_edge_of_64_bits_are_exact(weight: int) -> None:
    """Counts that add up to just below 2^62 and weights up to 2^62 give exact answers, dense or by points."""
    operator = Sparse((3,), 2, [0, 0, 1], [0, 2, 1], [weight, weight, -weight])
    counts = np.array([2**61 - 1, 3, 2**61 - 3])
    expected = [weight * (2**62 - 4), -3 * weight]

    assert operator.answers(counts).tolist() == expected
    assert operator.answers_at(np.arange(3, dtype=np.uint64)[:, None], counts).tolist() == expected


def test_a_value_of_63_bits_is_added_up_exactly() -> None:
    """A huge universe is never an array: points are weighed where they are."""
    universe = Universe(["age", "income"], [Integer(0, 9), Integer(-(2**62), 2**62 - 1)])
    operator = (prefixes("age") * value("income") + power("income", 2)).over(universe)
    places = np.array([[1, 0], [3, 2**63 + 1], [13, 2**62 + 1]], np.uint64)

    found = operator.answers_at(places, np.array([5, 7, 1])).tolist()

    assert found[0] == -5 * 2**62
    assert found[9] == -5 * 2**62 + 7 * (2**62 - 1)
    assert found[10] == 5 * 2**124 + 7 * (2**62 - 1) ** 2


def test_ranges_over_a_million_cells_touch_each_cell_once() -> None:
    """10^4 ranges over 10^6 cells agree with direct sums where these are asked for."""
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(0, 10**6, (10**4, 2)), axis=1)
    counts = rng.integers(0, 9, 10**6)

    found = SpanOperator(10**6, *ends.T.astype(np.uint64)).answers(counts)

    assert all(found[i] == counts[ends[i, 0] : ends[i, 1]].sum() for i in range(0, 10**4, 997))


@pytest.mark.parametrize("height", [1, 3])
def test_lists_of_boxes_are_one_operator(height: int) -> None:
    """Boxes over two of three axes are answered at their corners, empty ones and all queries at once."""
    rng = np.random.default_rng(3)
    ages, incomes = np.sort(rng.integers(-2, 4, (2, 30, 2)), axis=2)
    asked = [
        between("age", *map(int, a)) * between("income", *map(int, i))
        for a, i in zip(ages, incomes, strict=True)
    ]
    listed = Concatenation.of(asked).over(UNIVERSE).multiply(height)
    apart = Stack([each.over(UNIVERSE) for each in asked]).multiply(height)
    counts, y = rng.integers(0, 9, UNIVERSE.shape), rng.integers(-9, 9, 30)

    assert isinstance(listed, Product)
    assert [type(each) for _, each in listed.factors[:1]] == [BoxOperator]
    assert listed.answers(counts).tolist() == apart.answers(counts).tolist()
    assert listed.combine(y).tolist() == apart.combine(y).tolist()
    assert listed.weights_at(PLACES).tolist() == apart.weights_at(PLACES).tolist()
    assert listed.column_norm == apart.column_norm
    assert listed.tops.tolist() == apart.tops.tolist()
    assert listed.single(7).truncate(2).answers(counts) == apart.single(7).truncate(2).answers(counts)
    assert listed.above(1).answers(counts).tolist() == apart.above(1).answers(counts).tolist()


def test_coverage_is_counted_without_an_array_of_the_axis() -> None:
    """The norm of ranges of 2^63 cells follows from their ends."""
    spans = SpanOperator(2**63, [0, 10, 2**62], [2**63, 2**62 + 1, 2**62 + 5])

    assert spans.column_norm == 3
    assert spans.answers_at(np.array([[5], [2**62]], np.uint64), np.array([1, 2])).tolist() == [3, 2, 2]


def test_heaviest_cells_of_lists_over_different_axes_meet() -> None:
    """Norms add up over axes that are not shared, and are joint over those that are."""
    ages, incomes = ranges("age").over(UNIVERSE), ranges("income").over(UNIVERSE)
    joint = Stack([ages, incomes, (2 * total()).over(UNIVERSE)])

    assert joint.column_norm == ages.column_norm + incomes.column_norm + 2


def test_norms_that_are_too_large_to_look_at_are_never_too_small() -> None:
    """Over a universe that is no array, norms of overlapping lists are added up."""
    universe = Universe(["income"], [Integer(0, 2**40)])
    low, high = ranges("income", [(0, 5)]), ranges("income", [(9, 2**40)])

    assert low.over(universe).column_norm == 1
    assert (low + high * value("income")).over(universe).column_norm >= 2**40


def test_units_of_lists_are_common() -> None:
    """Thirds and halves together are counted in sixths."""
    operator = (Fraction(1, 3) * total() + Fraction(1, 2) * value("age")).over(UNIVERSE)

    assert operator.granularity == 6
    assert operator.weights_at(PLACES)[0].tolist() == [2] * len(EVERY)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Product((3, 2), [((0,), SpanOperator.each(3)), ((0,), SpanOperator.each(3))]),
        lambda: Product((3, 2), [((0,), SpanOperator.each(2))]),
        lambda: Stack([]),
        lambda: Stack([SpanOperator.each(2), SpanOperator.each(3)]),
        lambda: SpanOperator.each(2).single(2),
        lambda: SpanOperator.each(2).truncate(-1),
        lambda: value("age").over(UNIVERSE).above(0.5),  # type: ignore[arg-type]
    ],
)
def test_operators_that_do_not_fit_are_refused(made: Any) -> None:
    """Axes twice, other widths, nothing at all, and thresholds that are no units."""
    with pytest.raises(InvalidParameter):
        made()


@given(EXPRESSIONS, st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_arrays_of_other_libraries_work(written: Written, seed: int) -> None:
    """Floats of any array library give what NumPy gives, by that library's functions alone."""
    operator = written.queries.over(UNIVERSE)
    rng = np.random.default_rng(seed)
    x, y = rng.random(UNIVERSE.shape), rng.random(len(operator))

    assert operator.answers(Foreign(x)).held == pytest.approx(operator.answers(x))
    assert operator.combine(Foreign(y)).held == pytest.approx(operator.combine(y))
    assert operator.row(0, Foreign(x)).held == pytest.approx(operator.row(0, x))
    assert operator.truncate(1).answers(Foreign(x)).held == pytest.approx(operator.truncate(1).answers(x))


@pytest.mark.parametrize("shape", [(0, 100), (1, 70), (4, 5, 40), (5,), (7, 63), (90, 64)])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, object])
def test_cumulative_sums_are_those_of_numpy(shape: tuple[int, ...], dtype: Any) -> None:
    """Added up row by row or down columns, wide or narrow, sums are the same to the last bit."""
    x = np.random.default_rng(0).normal(scale=1e9, size=shape).astype(dtype)

    sums = cumulative(x)

    assert sums.dtype == dtype
    assert not np.any(sums[0])
    assert (sums[1:] == np.cumsum(x, axis=0)).all()
