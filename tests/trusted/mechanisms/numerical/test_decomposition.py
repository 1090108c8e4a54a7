"""Values laid on knots: masses that add up, sums that are linear in them, and how much one row moves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from partita.domain import Category, Integer
from partita.errors import InvalidParameter
from partita.public.queries.language import marginal, power, prefixes, ranges, total, value, weights
from partita.public.queries.queries import Queries, Universe
from partita.public.queries.ranges import Sparse
from partita.public.workload.decomposition import (
    Binary,
    ClassesAndValue,
    DecomposedSpace,
    Decomposition,
    GradedQueries,
    Hat,
    Method,
    build_space,
    find_octaves,
    spread_masses,
)
from partita.testing import ZeroNoise
from partita.trusted.mechanisms.numerical import Normalization, decomposed
from partita.trusted.secret import Points

PEOPLE = Universe(["age", "income"], [Integer(30, 39), Integer(0, 4095)])
EXACT = [Binary(2**32), Hat(2**32), Binary(2560), Hat(2560), Binary(1), Hat(1), Hat(5), Binary(5)]


def _laid(decomposition: Decomposition, values: Any) -> Any:
    cells = np.arange(len(values))
    return spread_masses(decomposition, cells, np.array(values), np.ones(len(values), int), len(values))


def _tricky(top: int) -> list[int]:
    """Values next to powers of two, and some between, up to a top."""
    near = {(1 << e) + d for e in range(top.bit_length()) for d in (-1, 0, 1)} | {3 << e for e in range(30)}
    return sorted(v for v in near | {0, top, top // 3, top // 7} if 0 <= v <= top)


@pytest.mark.parametrize("decomposition", EXACT, ids=repr)
def test_masses_give_the_value_exactly(decomposition: Any) -> None:
    """The knots weighted by the masses are the value, at all boundary values up to 2^32."""
    values = _tricky(decomposition.top)
    table = _laid(decomposition, values)

    sums = table @ np.array(decomposition.knots, object)

    assert sums.tolist() == [v * decomposition.unit for v in values]
    assert decomposition.rounding == 0.0


@pytest.mark.parametrize("decomposition", EXACT, ids=repr)
def test_rows_have_the_mass_that_is_accounted_for(decomposition: Any) -> None:
    """In binary a value has as many tuples as ones, at most `most`; as a hat it has exactly the unit."""
    values = _tricky(decomposition.top)
    masses = _laid(decomposition, values).sum(axis=1).tolist()

    if isinstance(decomposition, Binary):
        assert masses == [v.bit_count() for v in values]
        assert max(masses) == decomposition.most
        assert Binary(decomposition.top, by_tuple=True).most == decomposition.top.bit_length()
    else:
        assert set(masses) == {decomposition.unit} == {decomposition.most}


@given(st.integers(1, 70), st.lists(st.integers(0, 50), min_size=7, max_size=7))
def test_the_largest_sum_is_that_of_some_value(top: int, weights: list[int]) -> None:
    """Of all values up to the top none has ones with a larger sum of weights, and one has that sum."""
    binary = Binary(top)
    along = weights[: len(binary.knots)]

    sums = [sum(w for digit, w in enumerate(along) if v >> digit & 1) for v in range(top + 1)]

    assert binary.largest_sum(along) == max(sums)
    assert binary.most == max(v.bit_count() for v in range(top + 1))


@pytest.mark.parametrize("top", [2**32, 2**32 - 1, 2560, 1])
def test_digits_add_up_to_one_row(top: int) -> None:
    """A sum over its largest value moves by one row at most, however many ones a value has."""
    space = DecomposedSpace(ranges("age", CLASSES).over(Universe(["age"], [Integer(30, 39)])), Binary(top))

    assert space.whole.tops.tolist() == [top] * len(CLASSES)
    assert space.moved == space.unit == 1


def test_files_of_version_0_1_are_graded_by_tuples() -> None:
    """What such a file calls binary has one tuple of the largest knot as its top; a row costs its digits."""
    operator = (ranges("age", CLASSES) * value("income")).over(PEOPLE)

    space = build_space(operator, "binary")

    assert space.whole.tops.tolist() == [2048] * len(CLASSES)
    assert set(space.levels(space.joint.tops)[0].ravel().tolist()) == {1}
    assert space.most == space.moved == 12
    assert Normalization(
        queries=ranges("age", CLASSES) * value("income"), universe=PEOPLE, epsilon=1, decomposition="binary"
    ).space.whole.tops.tolist() == [4095] * len(CLASSES)


@pytest.mark.parametrize("method", ["binary", "hat", "none"])
@pytest.mark.parametrize("top", [4, 5, 7])
def test_no_row_moves_a_graded_answer_by_more_than_is_paid_for(method: Method, top: int) -> None:
    """Over all rows that come, go or change, counts and sums cut at any threshold move by `of_answer`,
    masses by `of_cells` and the total by `of_total`, and each of these is reached for some row.
    """
    universe = Universe(["age", "income"], [Integer(30, 32), Integer(0, top)])
    for neighbors in ("add-remove", "change-one"):
        mechanism = Normalization(
            queries=ranges("age", [(30, 31), (31, 31)]) * value("income"),
            universe=universe,
            epsilon=1,
            decomposition=method,
            neighbors=neighbors,
        )
        people = [[(age, v)] for age in (30, 31) for v in range(top + 1)]
        pairs = (
            [(a, b) for a in people for b in people]
            if neighbors == "change-one"
            else [(a, []) for a in people]
        )
        moved: dict[str, set[int]] = {"answer": set(), "cells": set(), "total": set()}
        for one, other in pairs:
            here, there = (mechanism.masses(_points([*rows, (32, 3)], universe)) for rows in (one, other))
            space = mechanism.space
            for graded in (space.whole, space.joint, *(space.cut(cut) for cut in space.tops[1:])):
                moved["answer"].add(int(abs(graded.answers(here) - graded.answers(there)).max()))
            moved["cells"].add(int(abs(here - there).sum()))
            moved["total"].add(abs(int(here.sum()) - int(there.sum())))

        change = mechanism.change
        assert max(moved["answer"]) == change.of_answer(mechanism.space.joint)
        assert max(moved["cells"]) <= change.of_cells
        assert max(moved["total"]) <= change.of_total
        if neighbors == "add-remove":
            assert (max(moved["cells"]), max(moved["total"])) == (change.of_cells, change.of_total)


@pytest.mark.parametrize("top", [5, 9, 12, 16])
def test_what_a_threshold_cuts_off_is_allowed_for(top: int) -> None:
    """Of the digits of a value no threshold cuts off more than the largest value of its octave has above."""
    space = DecomposedSpace(ranges("age", CLASSES).over(Universe(["age"], [Integer(30, 39)])), Binary(top))
    octave = find_octaves(np.arange(top + 1), space.tops)

    for at, cut in enumerate(space.tops[1:], start=1):
        for v in range(top + 1):
            lost = v - sum(min(1 << e, cut) * (v >> e & 1) for e in range(5))
            assert lost <= (max(0, space.largest[octave[v]] - cut) if octave[v] > at else 0)


def test_the_decomposition_of_the_slides() -> None:
    """(35, 2560) becomes (35, 2048) and (35, 512)."""
    table = _laid(Binary(4095), [2560])

    assert [knot for knot, mass in zip(Binary(4095).knots, table[0], strict=True) if mass] == [512, 2048]


@pytest.mark.parametrize("top", [2**33, 2**40, 2**63])
def test_rounded_masses_say_by_how_much(top: int) -> None:
    """Above 2^32 hats are rounded down, by less than they say."""
    hat = Hat(top)
    values = [v for v in _tricky(top) if v < 2**63]
    sums = _laid(hat, values) @ np.array(hat.knots, object)

    off = [Fraction(v) - Fraction(int(s), hat.unit) for v, s in zip(values, sums, strict=True)]

    assert all(0 <= gap <= hat.rounding for gap in off)


def _truth(rows: list[tuple[int, int]], classes: list[tuple[int, int]], weigh: Any) -> list[int]:
    return [sum(weigh(v) for age, v in rows if low <= age <= high) for low, high in classes]


def _points(rows: list[tuple[int, int]], universe: Universe = PEOPLE) -> Points:
    before = np.array([axis.before for axis in universe.axes])
    first = np.array([getattr(domain, "low", 0) for domain in universe.domains])
    return Points.from_rows(np.array(rows).reshape(-1, 2) - first + before, axes=universe.axes)


CLASSES = [(30, 39), (33, 35), (35, 35)]
ROWS = [(30, 0), (31, 17), (35, 2560), (35, 1), (39, 4095), (34, 999), (34, 999)]


@pytest.mark.parametrize("method", ["hat", "binary", "none"])
def test_cut_sums_are_linear_in_the_masses(method: Method) -> None:
    """Sums of min(v, knot), and of tuples cut at it, follow from the masses exactly, for every knot."""
    queries = decomposed(ranges("age", CLASSES), g="income")
    mechanism = Normalization(queries=queries, universe=PEOPLE, epsilon=1, decomposition=method)
    space, masses = mechanism.space, mechanism.masses(_points(ROWS))
    digits = isinstance(space, DecomposedSpace) and isinstance(space.decomposition, Binary)

    for top in space.tops[1:]:
        answers = np.asarray(space.cut(top).inner.answers(masses))

        def cut(v: int, top: int = top) -> int:
            return sum(min(1 << e, top) * (v >> e & 1) for e in range(12)) if digits else min(v, top)

        assert answers.tolist() == [space.unit * s for s in _truth(ROWS, CLASSES, cut)]


@pytest.mark.parametrize("method", ["hat", "none"])
def test_counts_and_cut_queries_are_weighed_together(method: Method) -> None:
    """The joint operator has C(Q) and L(Q): rows above every threshold, and every query cut at every one."""
    mechanism = Normalization(
        queries=ranges("age", CLASSES) * value("income"), universe=PEOPLE, epsilon=1, decomposition=method
    )
    space, masses = mechanism.space, mechanism.masses(_points([(a, v) for a, v in ROWS if v in (0, 1, 4095)]))
    above, cut = space.levels(np.asarray(space.joint.inner.answers(masses)))
    rows = [(a, v) for a, v in ROWS if v in (0, 1, 4095)]

    assert above.shape == cut.shape == (len(space.tops) - 1, len(CLASSES))
    for number, top in enumerate(space.tops[1:]):
        assert cut[number].tolist() == [space.unit * s for s in _truth(rows, CLASSES, lambda v: min(v, top))]  # noqa: B023
    if method == "none":
        for number, top in enumerate(space.tops[:-1]):
            assert above[number].tolist() == _truth(rows, CLASSES, lambda v: v > top)  # noqa: B023


class _Watching(ZeroNoise):
    """Remembers what noise is added to."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def session(self) -> _Watching:
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        self.seen.append(np.array(x, dtype=object).reshape(-1))
        return super().add(x, scale, parts=parts)


@pytest.mark.parametrize("method", ["hat", "binary"])
def test_what_a_row_moves_at_the_sampler(method: Method) -> None:
    """A row moves the masses along the knots by 1 as a hat, by its binary digits in binary, never by more."""
    queries = ranges("age", CLASSES) * value("income")
    mechanism = Normalization(queries=queries, universe=PEOPLE, epsilon=1, decomposition=method, rounds=1)
    crowd = [(30 + n % 10, n * 41) for n in range(100)] * 200

    for income in (0, 1, 17, 255, 2560, 4095):
        watches = [_Watching(), _Watching()]
        for watch, rows in zip(watches, (crowd, [*crowd, (35, income)]), strict=True):
            mechanism.release(_points(rows), noise=watch)
        one, other = (next(x for x in w.seen if x.size == mechanism.space.shape[-1]) for w in watches)
        moved = Fraction(int(np.abs(one - other).sum()), mechanism.space.unit)
        assert moved == (1 if method == "hat" else income.bit_count())
        assert moved * mechanism.space.unit <= mechanism.change.of_cells


def test_products_are_taken_apart() -> None:
    """Classes and value are found wherever they stand, unions of classes and several columns included."""
    universe = Universe(["income", "sex", "age"], [Integer(0, 100), Category(["f", "m"]), Integer(0, 9)])
    for queries, classes in [
        (value("income") * ranges("age"), 55),
        ((marginal("sex") + prefixes("age")) * value("income"), 4 + 10),
        (marginal("sex") * value("income") * prefixes("age"), 4 * 10),
        (power("income", 2), 1),
        (weights("income", lambda v: v % 7, bound=6) * ranges("age"), 55),
    ]:
        operator = queries.over(universe)
        found = ClassesAndValue.of(operator)
        assert found is not None
        assert len(found.classes) == len(operator) == classes
        assert found.value_axes == (0,)


def test_taken_apart_they_are_the_same_queries() -> None:
    """f_w of the class times g of the row is the weight of the row, query by query."""
    universe = Universe(["income", "sex", "age"], [Integer(0, 9), Category(["f", "m"]), Integer(0, 4)])
    operator = (marginal("sex") * power("income", 2) * prefixes("age") * Fraction(1, 2)).over(universe)
    found = ClassesAndValue.of(operator)
    assert found is not None
    places = np.stack(np.unravel_index(np.arange(universe.size), universe.shape), axis=1).astype(np.uint64)

    classes = found.classes.weights_at(places[:, list(found.class_axes)])
    table = classes * found.values(places)

    assert table.tolist() == operator.weights_at(places).tolist()
    assert found.classes.granularity * found.value.granularity == operator.granularity


def test_what_is_no_product_is_refused_by_name_or_weighed_as_it_is() -> None:
    """Two values in one list, or classes of the value itself, have no common g."""
    universe = Universe(["t", "u"], [Integer(0, 9), Integer(0, 9)])
    for queries in (value("t") + value("u"), ranges("t") * value("t"), total()):
        operator = queries.over(universe)
        assert not isinstance(build_space(operator, "auto"), DecomposedSpace)
        with pytest.raises(InvalidParameter) as refused:
            build_space(operator, "hat")
        assert refused.value.parameter == "decomposition"


@pytest.mark.parametrize(
    ("classes", "g"), [("age", "income"), (ranges("age"), 7), (ranges("t"), "t")], ids=str
)
def test_wrong_declarations_are_refused(classes: Any, g: Any) -> None:
    """Classes are queries, and the value is over other columns."""
    with pytest.raises(InvalidParameter) as refused:
        decomposed(classes, g=g)

    assert refused.value.parameter in ("classes", "g")


def test_declared_queries_are_products() -> None:
    """A column or a query may be the value that all share."""
    assert str(decomposed(ranges("age"), g="income")) == str(ranges("age") * value("income"))
    declared: Queries = decomposed(total(), g=power("income", 2))
    assert declared.over(PEOPLE).highest == 4095**2


@given(
    st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.integers(0, 1000), min_size=3, max_size=3),
    st.integers(0, 2),
    st.sampled_from([1, 7, 1 << 20]),
)
def test_grading_costs_no_privacy(table: list[list[int]], counts: list[int], cell: int, grade: int) -> None:
    """A row more moves no graded answer down, and none up by more than the grade."""
    rows, spots = np.indices((len(table), 3)).reshape(2, -1)
    inner = Sparse((3,), len(table), rows, spots, np.array(table, object).reshape(-1))
    graded = GradedQueries(inner, np.maximum(inner.tops.astype(object), 1), grade)
    more = [n + (c == cell) for c, n in enumerate(counts)]

    moved = graded.answers(np.array(more)) - graded.answers(np.array(counts))

    assert all(0 <= change <= graded.highest for change in moved)


def test_graded_operators_are_linear_in_floats() -> None:
    """Answers and their adjoint agree with the rows, in units of the grade."""
    inner = (ranges("age", CLASSES) * value("income")).over(PEOPLE)
    graded = GradedQueries(inner, inner.tops.astype(object))
    x = np.random.default_rng(1).random(inner.shape)
    y = np.array([1.0, -2.0, 0.5])
    rows = np.stack([graded.row(index, x).reshape(-1) for index in range(3)])

    assert graded.answers(x) == pytest.approx(rows @ x.reshape(-1))
    assert graded.combine(y).reshape(-1) == pytest.approx(y @ rows)
    assert rows.max() == graded.highest
    assert graded.column_norm >= rows.sum(axis=0).max()
