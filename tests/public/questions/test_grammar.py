"""Questions are read as they are documented, and mistakes are found where they are."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Special
from partita.errors import InvalidParameter
from partita.public.conditions import AllOf, Either, Not, OneOf, Range
from partita.public.grammar import parse_question, parse_where
from partita.public.keys import UNITS, GroupKey, GroupOrder
from partita.public.questions import SPECIALS, HalfSpaceText, Question
from tests.questions import answers, cdf, count, difference, grouped, heat_map, histogram, quantile, summary

# --- what is understood -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count", count({})),
        ("count where age between 30 and 39", count({"age": Range(low="30", high="39")})),
        ("COUNT WHERE age BETWEEN 30 AND 39", count({"age": Range(low="30", high="39")})),
        ("count where age>=30", count({"age": Range(low="30")})),
        ("count where age > -1.5e3", count({"age": Range(low="-1.5e3", closed="right")})),
        ("count where age <= 30", count({"age": Range(high="30")})),
        ("count where age<30", count({"age": Range(high="30", closed="left")})),
        (
            "count where age < 40 and age >= 30",
            count({"age": Range("30", "40", "left")}),
        ),
        ("count where region = north", count({"region": "north"})),
        ("count where region = 'it''s, (north)'", count({"region": "it's, (north)"})),
        ('count where "the age" = 3', count({"the age": "3"})),
        ("count where 'where' = 3", count({"where": "3"})),
        ("count where region in (north, 'far south')", count({"region": OneOf(("north", "far south"))})),
        ("count where age is NULL", count({"age": Special.NULL})),
        (
            "count where age = 1 and region = north",
            count({"age": "1", "region": "north"}),
        ),
        ("quantile 0.25 of salary", quantile(Fraction(1, 4), "salary")),
        ("quantile 1/3 of salary", quantile(Fraction(1, 3), "salary")),
        ("median of salary", quantile(Fraction(1, 2), "salary")),
        ("cdf of salary", cdf("salary")),
        ("cdf of hired at 2020-01-31, '2021-01-31'", cdf("hired", ("2020-01-31", "2021-01-31"))),
        ("histogram of age", histogram("age")),
        ("histogram of age in 12 bins", histogram("age", 12)),
        (
            "difference between (age >= 30 and age < 40) and (region = north)",
            difference({"age": Range("30", "40", "left")}, {"region": "north"}),
        ),
        (
            "sum of salary where age < 30",
            summary("sum", "salary", {"age": Range(high="30", closed="left")}),
        ),
        ("mean of salary", summary("mean", "salary", {})),
        ("VARIANCE of 'a b'", summary("variance", "a b", {})),
        ("std of salary where age = 3", summary("std", "salary", {"age": "3"})),
        ("answers", answers()),
        (
            "count where age between 30 and 39 and salary >= 50000 and region in ('north', south)",
            count(
                {
                    "age": Range(low="30", high="39"),
                    "salary": Range(low="50000"),
                    "region": OneOf(("north", "south")),
                }
            ),
        ),
        (
            "median of salary where age between 30 and 39",
            quantile(Fraction(1, 2), "salary", {"age": Range(low="30", high="39")}),
        ),
        (
            "quantile .9 of salary where region = north",
            quantile(Fraction(9, 10), "salary", {"region": "north"}),
        ),
        ("cdf of salary where age = 3", cdf("salary", (), {"age": "3"})),
        ("cdf of salary at 1, 2 WHERE age = 3", cdf("salary", ("1", "2"), {"age": "3"})),
        ("histogram of salary where age = 3", histogram("salary", None, {"age": "3"})),
        ("histogram of salary in 5 bins where age = 3", histogram("salary", 5, {"age": "3"})),
        ("histogram of age, salary", heat_map(("age", "salary"))),
        ("histogram of age, 'the salary' in 8 by 5 bins", heat_map(("age", "the salary"), (8, 5))),
        ("histogram of age, salary in 1048576 bins", heat_map(("age", "salary"), (1048576, 1048576))),
        (
            "histogram of age,salary where region=north",
            heat_map(("age", "salary"), None, {"region": "north"}),
        ),
        (
            "count where 2*age - 0.001*salary <= 10",
            count({}, HalfSpaceText({"age": Fraction(2), "salary": Fraction(-1, 1000)}, Fraction(10))),
        ),
        (
            "count where region = north and - age + 'the salary' >= -1/3 and age > 3",
            count(
                {"region": "north", "age": Range(low="3", closed="right")},
                HalfSpaceText({"age": Fraction(-1), "the salary": Fraction(1)}, Fraction(-1, 3), ">="),
            ),
        ),
        ("count where -2 * age <= 1e3", count({}, HalfSpaceText({"age": Fraction(-2)}, Fraction(1000)))),
        ("count where age = - and '-' = '*'", count({"age": "-", "-": "*"})),
        ("count where age != 3", count({"age": Not("3")})),
        ("count where age!=3 and age <> 4", count({"age": AllOf((Not("3"), Not("4")))})),
        ("count where age not in (3, 4)", count({"age": Not(OneOf(("3", "4")))})),
        ("count where age not between 3 and 4", count({"age": Not(Range("3", "4"))})),
        ("count where not age >= 3", count({"age": Not(Range("3"))})),
        ("count where not not age = 3", count({"age": "3"})),
        ("count where age is not null", count({"age": Not(Special.NULL)})),
        ("count where age = 3 or age = 4", count({"age": OneOf(("3", "4"))})),
        (
            "count where age < 3 or age > 5",
            count({"age": OneOf((Range(None, "3", "left"), Range("5", closed="right")))}),
        ),
        (
            "count where age > 1 and age > 2",
            count({"age": AllOf((Range("1", closed="right"), Range("2", closed="right")))}),
        ),
        (
            "count where (age = 3 or age is null) and region = north",
            count({"age": OneOf(("3", Special.NULL)), "region": "north"}),
        ),
        (
            "count where age = 3 and region = north or age = 4 and region = north",
            count({"age": OneOf(("3", "4")), "region": "north"}),
        ),
        ("count where age = 3 or region = north", count(Either(({"age": "3"}, {"region": "north"})))),
        (
            "count where not (age = 3 and region = north)",
            count(Either(({"age": Not("3")}, {"region": Not("north")}))),
        ),
        ("count where not (age = 3 or region = north)", count({"age": Not("3"), "region": Not("north")})),
        ("count where 'or' = 'not'", count({"or": "not"})),
        ("count where when = 2013-03", count({"when": "2013-03"})),
        ("count by dest", grouped("count", "dest")),
        ("COUNT BY month(when), dest", grouped("count", GroupKey("when", unit="month"), "dest")),
        ("count by month, bins", grouped("count", "month", "bins")),
        (
            "count by dest where delay > 15 order by count desc limit 10",
            grouped(
                "count",
                "dest",
                where={"delay": Range("15", closed="right")},
                order=GroupOrder(GroupKey("count"), descending=True),
                limit=10,
            ),
        ),
        ("sum of delay by weekday(when)", grouped("sum", GroupKey("when", unit="weekday"), column="delay")),
        ("mean of delay by bins(age, 12)", grouped("mean", GroupKey("age", bins=12), column="delay")),
        (
            "median of delay by breaks('the age', 18, 65) order by 'the age' asc",
            grouped(
                "quantile",
                GroupKey("the age", breaks=("18", "65")),
                column="delay",
                order=GroupOrder(GroupKey("the age")),
            ),
        ),
        (
            "share where delay > 15 among age = 3 by dest",
            grouped("share", "dest", where={"delay": Range("15", closed="right")}, among={"age": "3"}),
        ),
    ],
)
def test_a_question_is_read(text: str, expected: Question) -> None:
    """Each form of the grammar gives its question."""
    assert parse_question(text) == expected


names = st.text(min_size=1, max_size=12)
values = st.text(max_size=12)
conditions: st.SearchStrategy[object] = st.one_of(
    st.builds(Range, values, values, st.sampled_from(["both", "left", "right", "neither"])),
    st.builds(Range, values, st.none(), st.sampled_from(["both", "right"])),
    st.builds(Range, st.none(), values, st.sampled_from(["both", "left"])),
    values,
    st.builds(OneOf, st.lists(values, min_size=1, max_size=4).map(tuple)),
    st.sampled_from(SPECIALS).map(Special.named),
    values.map(Not),
    st.builds(Range, values, values, st.sampled_from(["both", "left"])).map(Not),
    st.lists(values, min_size=1, max_size=3).map(tuple).map(OneOf).map(Not),
    st.sampled_from(SPECIALS).map(Special.named).map(Not),
)
keys = st.one_of(
    st.builds(GroupKey, names),
    st.builds(GroupKey, names, unit=st.sampled_from(UNITS)),
    st.builds(GroupKey, names, bins=st.integers(1, 1000)),
    st.builds(GroupKey, names, breaks=st.lists(values, min_size=1, max_size=3).map(tuple)),
)
somewhere = st.dictionaries(names, conditions, min_size=1, max_size=3)
anywhere: st.SearchStrategy[dict[str, object]] = st.just({}) | somewhere
shares = st.fractions(0, 1, max_denominator=10**6).filter(lambda share: 0 < share < 1)
bins = st.integers(1, 10_000)
numbers = st.fractions(max_denominator=10**6)
half_spaces = st.builds(
    HalfSpaceText,
    st.dictionaries(names, numbers, min_size=1, max_size=3),
    numbers,
    st.sampled_from(["<=", ">="]),
)
questions: st.SearchStrategy[Question] = st.one_of(
    st.builds(count, anywhere),
    st.builds(count, anywhere, half_spaces),
    st.builds(quantile, shares, names, anywhere),
    st.builds(cdf, names, st.lists(values, max_size=4).map(tuple), anywhere),
    st.builds(histogram, names, st.none() | bins, anywhere),
    st.builds(heat_map, st.tuples(names, names), st.none() | st.tuples(bins, bins), anywhere),
    st.builds(difference, somewhere, somewhere),
    st.builds(summary, st.sampled_from(["sum", "mean", "variance", "std"]), names, anywhere),
    st.just(answers()),
    st.builds(
        lambda key, where, order, limit: grouped("count", key, where=where, order=order, limit=limit),
        keys,
        anywhere,
        st.none() | st.builds(GroupOrder, keys, st.booleans()),
        st.none() | st.integers(1, 1000),
    ),
)


@given(questions)
def test_a_question_survives_being_written(asked: Question) -> None:
    """What `str` writes is read as the same question, whatever its columns and values are called."""
    assert parse_question(str(asked)) == asked


@pytest.mark.parametrize(
    "text",
    [
        "count where age != 5 and (age >= 3 and age < 9)",
        "count where age = 1 or age > 3 and age <= 5 or age is not null",
        "count where (age > 1 and age < 2 or region = x) and (wage = 3 or region != y)",
        "count where not (age > 1 and age < 2) or not (age = 3 or age is null)",
        "count where (age = 3 or region = x) and 2*wage <= 3",
        "difference between (age = 3 or region = x) and (not region in (x, y))",
    ],
)
def test_compound_conditions_survive_being_written(text: str) -> None:
    """Conditions with `or` and `not` are read again as they were."""
    asked = parse_question(text)

    assert parse_question(str(asked)) == asked


# --- what is not ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", 1),
        ("   ", 4),
        ("cuont", 1),
        ("count wher age = 3", 7),
        ("count where", 12),
        ("count where age", 16),
        ("count where age ! 3", 17),
        ("count where age between 30", 27),
        ("count where age between 30 und 39", 28),
        ("count where age = 'open", 19),
        ("count where age in 3", 20),
        ("count where age in (3", 22),
        ("count where age in (3,)", 23),
        ("count where age is lost", 20),
        ("count where age = 1 and age = 2", 25),
        ("count where age = 3 or", 23),
        ("count where age = 3 or 2*age <= 3", 25),
        ("count where 2*age <= 3 or age = 3", 13),
        ("count where not 2*age <= 3", 18),
        ("count where (age = 3", 21),
        ("count where age not 3", 21),
        ("count where age not in 3", 24),
        ("count where age is not lost", 24),
        ("count where age !> 3", 17),
        ("count where " + 41 * "not " + "age = 3", 173),
        ("count by", 9),
        ("count by dest,", 15),
        ("count by month(when", 20),
        ("count by bins(age)", 18),
        ("count by bins(age, 0)", 20),
        ("count by breaks(age)", 20),
        ("count by dest order count", 21),
        ("count by dest order by", 23),
        ("count by dest limit 0", 21),
        ("count by dest limit 3 order by count", 23),
        ("variance of age by dest", 17),
        ("count where and = 3", 13),
        ("quantile 2 of age", 10),
        ("quantile x of age", 10),
        ("quantile of age", 10),
        ("median age", 8),
        ("median of age in 3", 15),
        ("histogram of age in many bins", 21),
        ("histogram of age in 0 bins", 21),
        ("histogram of age in 99999999999999999999 bins", 21),
        ("histogram of age in 3", 22),
        ("cdf of age at", 14),
        ("cdf of age at 1 2", 17),
        ("difference between age = 1 and age = 2", 20),
        ("difference between (age = 1)", 29),
        ("count; drop table", 1),
        ("count end", 7),
        ("count where age = 3 and", 24),
        ("count where age between 30 and 39 and salary", 45),
        ("count where age = 3 and region in ('north', 'south)", 45),
        ('count where age = 3 and "region = north', 25),
        ("median of salary where", 23),
        ("median of salary were age = 3", 18),
        ("cdf of salary where age = 3 at 5", 29),
        ("histogram of salary where age = 3 in 5 bins", 35),
        ("histogram of age, salary, region", 25),
        ("histogram of age,", 18),
        ("histogram of age, salary in 5", 30),
        ("histogram of age, salary in 1048577 by 1 bins", 29),
        ("histogram of age, salary in 5 by bins", 34),
        ("histogram of age, salary in 5 by 0 bins", 34),
        ("histogram of age in 5 by 5 bins", 23),
        ("count where 2*age", 18),
        ("count where 2*age <= ", 22),
        ("count where 2*age <= x", 22),
        ("count where x*age <= 3", 13),
        ("count where 2*age < 3", 19),
        ("count where 2* <= 3", 16),
        ("count where age - <= 3", 19),
        ("count where - ", 15),
        ("count where age + age <= 3", 19),
        ("count where 2*age <= 3 and 3*age <= 2", 28),
        ("median of salary where 2*age <= 3", 25),
        ("difference between (2*age <= 3) and (age = 3)", 22),
    ],
)
def test_a_mistake_is_found_where_it_is(text: str, place: int) -> None:
    """The error names the character, counted from 1, at which the question stops making sense."""
    with pytest.raises(InvalidParameter, match=rf"at character {place}\b"):
        parse_question(text)


def test_conditions_are_read_by_themselves() -> None:
    """As behind `where`, to the end of the text."""
    assert parse_where("age >= 3 and region = north") == {"age": Range(low="3"), "region": "north"}
    with pytest.raises(InvalidParameter, match="at character 9"):
        parse_where("age = 3 by age")


def test_the_nearest_word_is_suggested() -> None:
    """A slip of the finger gets a hint."""
    with pytest.raises(InvalidParameter, match=r"did you mean between\?"):
        parse_question("count where age betwen 3 and 4")


@pytest.mark.parametrize(
    "kind", ["count", "quantile", "median", "cdf", "histogram", "difference", "sum", "mean"]
)
def test_the_example_is_a_question_of_the_same_kind(kind: str) -> None:
    """Where no near word can be suggested, a question that is understood is shown, of the kind begun."""
    with pytest.raises(InvalidParameter) as caught:
        parse_question(f"{kind} (")

    example = caught.value.fix.removeprefix('for example "').removesuffix('"')
    assert example.startswith(f"{kind} ")
    assert parse_question(example)


def test_an_example_of_conditions_is_one() -> None:
    """Where only conditions are read, the example has nothing else."""
    with pytest.raises(InvalidParameter) as caught:
        parse_where("age ???")

    assert parse_where(caught.value.fix.removeprefix('for example "').removesuffix('"'))


def test_a_reserved_word_is_no_column_without_quotes() -> None:
    """The hint says how to name such a column all the same."""
    with pytest.raises(InvalidParameter, match="put quotes around it"):
        parse_question("count where at = 3")


def test_a_question_has_an_end() -> None:
    """Endless text is refused before it is read."""
    with pytest.raises(InvalidParameter, match="at most 10000 characters"):
        parse_question("count where age in (" + "1," * 10_000 + "1)")


fragments = st.sampled_from(
    [
        *"()<>=,'\"*+-",
        "<=",
        ">=",
        *("count", "where", "and", "between", "in", "is", "of", "at", "bins", "difference", "quantile"),
        *("histogram", "median", "by", "end", "or", "not", "!=", "null", "order", "limit", "desc", "sum"),
        *("month", "bins", "breaks", "region", "(age = 3 or region = x)", "not in (3, 4)"),
        *("0.5", "age"),
    ]
)


@given(st.text(max_size=60) | st.lists(fragments, max_size=12).map(" ".join))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Any text is a question or a typed error."""
    try:
        asked = parse_question(text)
    except InvalidParameter:
        return
    assert parse_question(str(asked)) == asked
