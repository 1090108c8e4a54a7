"""Any question that can be read gets an answer or a typed error from any release."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Special
from partita.errors import InvalidParameter, PrivacyWarning
from partita.public.conditions import OneOf, Range
from partita.public.file import load
from partita.public.grammar import parse_question
from partita.public.questions import HalfSpaceText, QueryRunner, Question
from partita.public.records import to_plain
from tests.questions import cdf, count, difference, heat_map, histogram, quantile

columns = st.sampled_from(["age", "wage", "hired", "region", "nowhere"])
values = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.integers(0, 120).map(str),
    st.decimals(allow_nan=True, allow_infinity=True).map(str),
    st.dates().map(str),
    st.datetimes().map(str),
    st.sampled_from(["north", "south", "", "nan", "null", "1/3", "1e400", "٣", "0x10", "1_000"]),
    st.text(max_size=6),
)
ends = st.none() | values
conditions = st.one_of(
    st.builds(Range, ends, ends, st.sampled_from(["both", "left", "right", "neither"])),
    values,
    st.builds(OneOf, st.lists(values, min_size=1, max_size=3).map(tuple)),
    st.sampled_from(["null", "invalid", "below", "above", "other"]).map(Special.named),
)
wheres = st.dictionaries(columns, conditions, max_size=3)
numbers = st.fractions() | st.sampled_from([Fraction(0), Fraction(10**40), Fraction(1, 10**40)])
half_spaces = st.builds(
    HalfSpaceText,
    st.dictionaries(columns, numbers, min_size=1, max_size=3),
    numbers,
    st.sampled_from(["<=", ">="]),
)
questions: st.SearchStrategy[Question] = st.one_of(
    st.builds(count, wheres),
    st.builds(count, wheres, half_spaces),
    st.builds(difference, wheres, wheres),
    st.builds(quantile, st.fractions(0, 1), columns, wheres),
    st.builds(cdf, columns, st.lists(values, max_size=3).map(tuple), wheres),
    st.builds(histogram, columns, st.none() | st.integers(1, 50), wheres),
    st.builds(
        heat_map,
        st.tuples(columns, columns),
        st.none() | st.tuples(st.integers(1, 20), st.integers(1, 20)),
        wheres,
    ),
)


@pytest.fixture(scope="module")
def runner(shelf: Path) -> QueryRunner:
    """The release of the shelf, ready to be asked."""
    return QueryRunner(release=load(shelf / "people.release.parquet"), confidence=0.9, beta=0.1)


@pytest.fixture(scope="module")
def runners(shelf: Path) -> list[QueryRunner]:
    """A release of columns apart and one of columns together."""
    names = ("people.release.parquet", "joint.release.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return [QueryRunner(release=load(shelf / name), confidence=0.9, beta=0.1) for name in names]


@given(asked=questions, together=st.booleans())
def test_an_answer_or_a_typed_error(runners: list[QueryRunner], asked: Question, together: bool) -> None:
    """Whatever the columns and values are, the reply can be written as JSON and as a table."""
    try:
        record = runners[together].answer(asked)
    except InvalidParameter:
        return
    assert json.loads(json.dumps(to_plain(record), allow_nan=False))
    assert len({len(line) for line in asked.kind.result.text(asked, record).lines}) == 1


@pytest.mark.parametrize(
    ("text", "where", "closed"),
    [
        ("age between 30 and 39", (30, 39), "both"),
        ("age > 30 and age <= 39", (30, 39), "right"),
        ("age >= 30 and age < 39", (30, 39), "left"),
        ("age > 30 and age < 39", (30, 39), "neither"),
        ("age > 30", (30, None), "right"),
        ("age <= 30", (None, 30), "both"),
        ("age = 30", (30, 30), "both"),
    ],
)
def test_a_condition_means_what_it_says(
    runner: QueryRunner, text: str, where: tuple[int, int], closed: str
) -> None:
    """The same range, asked in Python, has the same answer."""
    record = runner.answer(parse_question(f"count where {text}"))

    expected = runner.release.count({"age": where}, closed=closed)  # type: ignore[arg-type]
    assert (record["value"], record["error"]) == (expected.value, expected.error)


def test_values_of_a_set_are_counted_together(runner: QueryRunner) -> None:
    """`in` is a set in Python: a value that is named twice counts once."""
    record = runner.answer(parse_question("count where region in (north, south, north)"))

    assert record["value"] == runner.release.count({"region": {"north", "south"}}).value


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("age < 30", "age >= 60"),
        ("age > 60", "age <= 30"),
        ("age >= 10 and age < 30", "age < 20"),
        ("age > 30 and age < 60", "age > 50"),
        ("wage < 10 and age < 30", "age >= 60"),
    ],
)
def test_an_open_end_agrees_with_any_other(runners: list[QueryRunner], first: str, second: str) -> None:
    """Ranges of a column differ by what each of them counts, if the ends that both have are of one kind."""
    runner = runners[True]
    counts = [runner.answer(parse_question(f"count where {where}"))["value"] for where in (first, second)]

    record = runner.answer(parse_question(f"difference between ({first}) and ({second})"))

    assert record["value"] == pytest.approx(counts[0] - counts[1])  # type: ignore[operator]


@pytest.mark.parametrize(("first", "second"), [("age < 30", "age <= 60"), ("age > 3", "age between 4 and 5")])
def test_ends_of_two_kinds_are_refused_in_the_words_of_the_question(
    runner: QueryRunner, first: str, second: str
) -> None:
    """The message repeats both ranges, and no sign that was not there."""
    with pytest.raises(InvalidParameter, match=f"got '{first} beside {second}'"):
        runner.answer(parse_question(f"difference between ({first}) and ({second})"))
