"""The query language: expressions, their text, which reads back, and what they refuse."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.domain import Category, Date, Integer, Real, Special, Timestamp
from partita.errors import InvalidParameter
from partita.public.queries.language import (
    between,
    clipped,
    marginal,
    matrix,
    parse,
    power,
    prefixes,
    ranges,
    read_queries,
    total,
    value,
    weights,
)
from partita.public.queries.queries import Queries, Universe

from .expressions import EXPRESSIONS, PLACES, UNIVERSE, Written

PEOPLE = Universe(
    ["age", "income", "day", "region"],
    [
        Integer(0, 120),
        Integer(0, 2**32),
        Date("2026-01-01", "2026-12-31"),
        Category(["north", "null", 'the "east"']),
    ],
)


def _exact(queries: Queries) -> list[list[Fraction]]:
    operator = queries.over(UNIVERSE)
    return [[Fraction(int(w), operator.granularity) for w in row] for row in operator.weights_at(PLACES)]


@given(EXPRESSIONS)
@settings(max_examples=30)
def test_text_reads_back(written: Written) -> None:
    """The text form of queries is parsed to equal queries, and so is what goes to a file."""
    settled = written.queries.settled(UNIVERSE)

    assert parse(str(settled)) == settled
    assert read_queries(settled.to_json()) == settled


@given(EXPRESSIONS, st.data())
@settings(max_examples=20)
def test_labels_are_queries(written: Written, data: st.DataObject) -> None:
    """The label of a query is text that reads back as just this query."""
    queries = written.queries.settled(UNIVERSE)
    index = data.draw(st.integers(0, queries.number(UNIVERSE) - 1))

    assert queries.number(UNIVERSE) == len(queries.over(UNIVERSE))
    assert _exact(parse(queries.label(UNIVERSE, index))) == [_exact(queries)[index]]


@pytest.mark.parametrize(
    ("queries", "text"),
    [
        (ranges("age") * clipped("income", 100_000), "ranges(age) * clipped(income, 100000)"),
        (2 * (total() + value("income")) * Fraction(1, 2), "(total() + value(income))"),
        (0.5 * prefixes("age"), "0.5 * prefixes(age)"),
        (between("age", None, Decimal("3.50")), "between(age, none, 3.5)"),
        (between("day", datetime.date(2026, 1, 2), None), 'between(day, "2026-01-02", none)'),
        (between("day", np.datetime64("2026-01-02"), np.int64(3)), 'between(day, "2026-01-02", 3)'),
        (between("my column", "null", 'a "b"'), 'between("my column", "null", "a ""b""")'),
        (weights("age", {Special.NULL: 1, 3: "1/3"}), "weights(age, {null: 1, 3: 1/3})"),
        (marginal("none", "a.b"), 'marginal("none", "a.b")'),
        (ranges("age", step="0.5"), "ranges(age, step=0.5)"),
        (ranges("step", [("step", None)]), "between(step, step, none)"),
        (-1 * power("income", 2) + total(), "-1 * power(income, 2) + total()"),
    ],
)
def test_expressions_read_like_dataframes(queries: Queries, text: str) -> None:
    """What is printed is the text form, with quotes only where they are needed."""
    assert repr(queries) in (text, text.strip("()"), text.removeprefix("(").removesuffix(")"))
    assert parse(repr(queries)) == queries


def test_products_and_lists_are_flat() -> None:
    """However they are put together, products and lists are the same expressions."""
    a, b, c = total(), value("age"), prefixes("age")

    assert (a * b) * c == a * (b * c) == parse("(total() * value(age)) * prefixes(age)")
    assert (a + b) + c == a + (b + c)
    assert (a * (b + c)).columns == ("age",)


def test_the_slides_are_expressions() -> None:
    """Range counts, range sums, sums of squares for a variance, and weights by a function."""
    people = Universe(["age", "income"], [Integer(0, 120), Integer(0, 5000)])
    rows = np.array([(35, 2560), (36, 100), (70, 4000)])
    places = (rows + 1).astype(np.uint64)
    asked = between("age", 30, 39) * (total() + value("income") + power("income", 2))
    mine = weights(("age", "income"), lambda age, income: 2 * age if income > 1000 else 0, bound=100)

    counted, added, squared = asked.over(people).answers_at(places, np.ones(3, np.int64))
    weighed = mine.over(people)

    assert (counted, added, squared) == (2, 2660, 2560**2 + 100**2)
    assert squared / counted - (added / counted) ** 2 == pytest.approx(np.var([2560, 100]))
    assert weighed.answers_at(places, np.ones(3, np.int64))[0] == (70 + 100) * weighed.granularity


def test_times_and_labels_are_values_too() -> None:
    """Days, slots of time and labels are ends of ranges and names of cells."""
    slots = Universe(["at"], [Timestamp("2026-01-01", "2026-01-02", "1h")])
    hours = between("at", "2026-01-01T03:00:00", datetime.datetime(2026, 1, 1, 5)).over(slots)

    assert int(hours.column_sums().sum()) == 3
    assert len(prefixes("at").over(slots)) == 25
    for index in (0, 3, 24):
        label = prefixes("at").label(slots, index)
        assert parse(label).over(slots).column_sums().sum() == index + 2
    assert parse('weights(region, {"null": 1, null: 2, \'the "east"\': 3})').over(PEOPLE).column_norm == 3


def test_which_query_counts_all_rows_is_known() -> None:
    """A total among the lists is found, at its place."""
    people = Universe(["age"], [Integer(0, 9)])

    assert (prefixes("age") + value("age") + total()).total_at(people) == 11
    assert total().total_at(people) == 0
    assert (prefixes("age") + 2 * total()).total_at(people) is None


WEIRD: list[Any] = [float("nan"), float("-inf"), -1, None, "much", 1j, [], object(), 0]


@pytest.mark.parametrize("result", WEIRD)
def test_functions_never_make_a_query_fail(result: Any) -> None:
    """NaN, what is negative and what is no number is the weight zero."""
    assert weights("age", lambda age: result, bound=3).over(UNIVERSE).column_norm == 0


@pytest.mark.parametrize(
    "result", [True, np.True_, 1, 1.0, Fraction(1), Decimal(1), np.float32(1), np.int8(1)]
)
def test_functions_may_give_any_number(result: Any) -> None:
    """Truth counts one, and so do numbers of all kinds; infinity is brought to the bound."""
    operator = weights("age", lambda age: result, bound=3).over(UNIVERSE)
    infinite = weights("age", lambda age: float("inf"), bound=3).over(UNIVERSE)

    assert operator.column_norm == operator.granularity
    assert infinite.column_norm == 3 * infinite.granularity


def test_functions_see_bounds_and_none() -> None:
    """Below and above are the bounds, null and invalid are None, and exceptions are zero."""
    seen: list[Any] = []

    def failing(age: Any) -> Any:
        seen.append(age)
        raise LookupError(age)

    operator = weights("age", failing, bound=1).over(UNIVERSE)

    assert operator.column_norm == 0
    assert seen == [-1, -1, 0, 1, 2, 2, None, None]


@pytest.mark.parametrize("leaving", [SystemExit, GeneratorExit, RecursionError])
def test_functions_cannot_leave(leaving: type[BaseException]) -> None:
    """A function that exits for some values is told apart from one that weighs them zero by nobody."""

    def leave(age: Any) -> Any:
        if age == 1:
            raise leaving(age)
        return 1

    operator = weights("age", leave, bound=1).over(UNIVERSE)

    assert (operator.weights_at(PLACES)[0] / operator.granularity).tolist() == [
        int(place[0] != 3) for place in PLACES.tolist()
    ]


def test_functions_can_be_interrupted() -> None:
    """Whoever presses the keys wants the evaluation to stop."""

    def interrupted(age: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _ = weights("age", interrupted, bound=1).over(UNIVERSE).column_norm


@pytest.mark.parametrize("weight", [0.4, 0.99, 1.05, 1.0999, 1.1, 7])
def test_rounding_never_exceeds_the_bound(weight: float) -> None:
    """Where the bound is no multiple of the step, weights are rounded down to what is below it."""
    operator = weights("age", lambda age: weight, bound="1.1", step="0.4").over(UNIVERSE)

    assert operator.column_norm <= operator.highest == 4
    assert int(operator.weights_at(PLACES).max()) <= 4


def test_functions_are_asked_once_for_each_cell() -> None:
    """A function that changes its mind weighs points as it weighed the cells when the norm was taken."""
    calls = iter(range(10**6))
    operator = weights("age", lambda age: next(calls) % 5, bound=9).over(UNIVERSE)
    norm = operator.column_norm

    assert (
        int(operator.weights_at(PLACES).max())
        == int(operator.truncate(10**9).weights_at(PLACES).max())
        == norm
    )


def test_functions_are_written_out_for_files() -> None:
    """A function is no text: it is settled to explicit weights first, which are the same."""
    asked = weights(("age", "sex"), lambda age, sex: 0.5 * (sex == "f"), bound=1) * value("income") + total()

    with pytest.raises(InvalidParameter, match="settled"):
        asked.to_json()
    assert _exact(asked.settled(UNIVERSE)) == _exact(asked)
    assert read_queries(asked.settled(UNIVERSE).to_json()) == asked.settled(UNIVERSE)
    with pytest.raises(InvalidParameter, match="coarser"):
        weights("income", lambda income: 1, bound=1).settled(PEOPLE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "total",
        "total(",
        "total())",
        "total() +",
        "total() total()",
        "totals()",
        "between(age)",
        "between(age, 1)",
        "between(age, 1, 2, 3)",
        "between(null, 1, 2)",
        "between((age), 1, 2)",
        "between(age, (1, 2), 3)",
        "ranges(age, 1, 2)",
        "ranges(age, (1, 2, 3))",
        "ranges(age, step=ten)",
        "ranges(age, step=0)",
        "ranges(age, step=-1)",
        "ranges(age, (1, 2), step=3)",
        "ranges(age, step=1, step=2)",
        "marginal()",
        "marginal(age, age)",
        "clipped(age, none)",
        "clipped(age, {1: 2})",
        "power(age, 0)",
        "power(age, 5)",
        "power(age, 1.5)",
        "power(age, 1/0)",
        "weights(age)",
        "weights(age, {1: 2}, {3: 4}",
        "weights(age, {1: 2, 1: 3})",
        "weights(age, {1: two})",
        "weights(age, {(1, 2): 3})",
        "weights({1: 2})",
        "weights({1: 2}, age)",
        "matrix(age)",
        "value(age); import os",
        "__import__('os')",
        "total() * 1/0",
        "1e9 * total()",
        'value("age',
        "value(age\x00)",
        "(" * 100 + "total()" + ")" * 100,
        "total()" * 2**20,
        None,
        3,
        b"total()",
        ["total()"],
    ],
    ids=lambda text: repr(text)[:40],
)
def test_hostile_text_is_refused(text: Any) -> None:
    """Whatever a file holds in place of queries, it is refused by a typed error, soon."""
    with pytest.raises(InvalidParameter):
        read_queries(text)


@given(st.text(alphabet="()*+,{}:=\"' -/.01aegn", max_size=40) | st.text(max_size=20))
@settings(max_examples=100)
def test_any_text_is_queries_or_refused(text: str) -> None:
    """No text gives anything but queries that read back, or the typed error."""
    try:
        queries = parse(text)
    except InvalidParameter:
        return

    assert parse(str(queries)) == queries


@pytest.mark.parametrize(
    "made",
    [
        lambda: between("", 1, 2),
        lambda: between(3, 1, 2),  # type: ignore[arg-type]
        lambda: between("age", 1, object()),
        lambda: between("age", 1, Special.NULL),
        lambda: between("age", float("nan"), 1),
        lambda: ranges("age", []),
        lambda: ranges("age", [(1,)]),  # type: ignore[list-item]
        lambda: ranges("age", [(1, 2)], step=3),
        lambda: clipped("age", "much"),
        lambda: weights("age", lambda age: 1),
        lambda: weights("age", lambda age: 1, bound=0),
        lambda: weights("age", {1: None}),
        lambda: weights("age", {1: 1, "1": 2}),
        lambda: weights([], {}),
        lambda: matrix("age", {1: 2}),  # type: ignore[arg-type]
        lambda: matrix("age", [3]),  # type: ignore[list-item]
        lambda: total() * float("inf"),
        lambda: Universe([], []),
        lambda: Universe(["a", "a"], [Integer(0, 1)] * 2),
        lambda: Universe(["a"], []),
        lambda: Universe(["a"], [3]),  # type: ignore[list-item]
        lambda: Universe.of({"a": Integer(0, 1)}, ["b"]),
    ],
)
def test_bad_parameters_are_refused(made: Any) -> None:
    """Each is a typed error that says what to do."""
    with pytest.raises(InvalidParameter) as refused:
        made()

    assert refused.value.fix


@pytest.mark.parametrize(
    "queries",
    [
        value("city"),
        value("region"),
        clipped("day", 3),
        between("age", "old", None),
        between("age", 1.5, 2),
        between("age", 3, 1),
        ranges("age", [(0, 1), (2, 1)]),
        between("age", None, 5) * between("day", "2026-01-03", "2026-01-02"),
        between("region", "south", None),
        ranges("income"),
        ranges("age", step="1/2"),
        ranges("age", step=1000),
        prefixes("income"),
        marginal("income"),
        ranges("age") * ranges("day") * prefixes("age"),
        ranges("day") * prefixes("day"),
        weights("age", {121: 1}),
        weights("age", {Special.OTHER: 1}),
        weights("age", {0: "1/1000000000000000000003", 1: "1/7000000000000000000000007"}),
    ],
    ids=repr,
)
def test_queries_that_do_not_fit_a_universe_are_refused(queries: Queries) -> None:
    """Unknown columns, values and labels, ends out of order, sums of labels, and too many queries."""
    with pytest.raises(InvalidParameter):
        queries.over(PEOPLE)


@pytest.mark.parametrize("index", [-1, 3, 1.0, True, None])
def test_labels_of_no_query_are_refused(index: Any) -> None:
    """A label is asked for by the number of its query."""
    with pytest.raises(InvalidParameter):
        (total() + total() + value("age")).label(UNIVERSE, index)


def test_steps_are_values() -> None:
    """A step of a column of decimals is a number of its values, not of cells."""
    prices = Universe(["price"], [Real(0, 2, step="0.25")])

    assert len(ranges("price", step=1).over(prices)) == 3 * 4 // 2
    assert ranges("price", step=1).label(prices, 1) == "between(price, 0, 1.75)"


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("ranges(age, [(0, 17), (18, None)])", "ranges(age, (0, 17), (18, none))"),
        ("matrix(age, [{30: 1}, {40: 2}])", "matrix(age, {30: 1}, {40: 2})"),
    ],
)
def test_a_list_in_brackets_reads_as_python_writes_it(written: str, plain: str) -> None:
    """Square brackets around ranges or rows change nothing."""
    assert parse(written) == parse(plain)


@pytest.mark.parametrize("text", ["ranges(age, [])", "ranges(age, [(0, 1)", "ranges(age, [(0, 1) (2, 3)])"])
def test_a_broken_list_is_refused(text: str) -> None:
    """A list that is empty, open or without commas is no list."""
    with pytest.raises(InvalidParameter, match="queries"):
        parse(text)
