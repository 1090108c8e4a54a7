"""Sums and means of the columns of a table release: values, bars, what they cover, and refusals."""

from __future__ import annotations

import hashlib
import math
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from partita.domain import Category, Domain, Integer
from partita.domain.base import NULL
from partita.errors import InvalidParameter
from partita.public.file import load
from partita.public.grammar import parse_question
from partita.public.questions import QueryRunner
from partita.public.release import Release
from partita.publish.publish import publish
from partita.trusted.noise import kernel

ROWS = 6_000
TURN = np.arange(ROWS)
TOWNS = ("Rome", "Bari", "Turin")
SCHEMA: dict[str, Domain] = {
    "town": Category(TOWNS),
    "age": Integer(0, 99),
    "change": Integer(-50, 50),
    "salary": Integer(0, 2**32 - 1),
    **{f"q{number}": Integer(0, 3) for number in range(2)},
}
LARGE = 5
"""An epsilon so large that noise is a part of what bars are about, and not most of it."""


@cache
def data() -> dict[str, Any]:
    """Ages and salaries that differ by town; 60 ages are missing, 40 lie above the bounds."""
    town, age = TURN % 3, (TURN * 31 % 60).astype(object)
    age[:60], age[60:100] = None, 150
    return {
        "town": np.array(TOWNS)[town],
        "age": age,
        "change": TURN * 17 % 81 - 50,
        "salary": 20_000 + 10_000 * town + TURN * 7919 % 5_000,
        **{f"q{number}": (TURN * (3 + number) // 7) % 4 for number in range(2)},
    }


@cache
def released(epsilon: int = LARGE) -> Release:
    """A table release of all columns, by the shipped code on top of fixed bytes."""
    blocks = (f"table sums {epsilon} {number}".encode() for number in count())
    drawn = SimpleNamespace(urandom=lambda size: hashlib.shake_256(next(blocks)).digest(size))
    with patch.object(kernel, "os", drawn):
        return publish(data(), SCHEMA, epsilon=epsilon)


def total(column: str, held: Any = slice(None)) -> float:
    """The sum of the values within bounds."""
    values = [value for value in data()[column][held] if value is not None and value <= 99 * 10**6]
    return float(sum(value for value in values if column != "age" or value <= 99))


def test_every_column_of_numbers_has_sums_without_asking_for_them() -> None:
    """Values below or above the bounds, and missing ones, are not in the sum, which says so."""
    release = released()
    answer = release.sum("age")

    assert answer.value == pytest.approx(total("age"), rel=0.02)
    assert answer.covers.text == "values from 0 to 99 in full, none below, none above"
    assert answer.beyond.value == pytest.approx(40, abs=25)
    assert release.mean("age").value == pytest.approx(total("age") / (ROWS - 100), rel=0.02)
    assert release.sum("change").value == pytest.approx(total("change"), abs=3 * release.sum("change").error)
    with pytest.raises(InvalidParameter, match=r"a Category has no sum, mean or variance.*ask for counts"):
        release.sum("town")
    with pytest.raises(InvalidParameter, match="must be one of 'age', 'change', 'salary'"):
        release.sum("rent")


def test_sums_and_means_are_asked_for_by_any_columns() -> None:
    """By a label, a label and a range, and a range of the summed column; intervals hold the truth."""
    release, town, age = released(), data()["town"], data()["age"]
    thirties = np.array([value is not None and 30 <= value <= 39 for value in age])

    for held, where in (
        (town == "Turin", {"town": "Turin"}),
        ((town == "Turin") & thirties, {"town": "Turin", "age": (30, 39)}),
        ((town != "Bari") & thirties, {"town": ["Rome", "Turin"], "age": (30, 39)}),
    ):
        answer, mean = release.sum("salary", where), release.mean("salary", where)
        low, high = answer.interval()
        assert low <= total("salary", held) <= high
        assert answer.value == pytest.approx(total("salary", held), rel=0.1)
        assert mean.interval()[0] <= total("salary", held) / held.sum() <= mean.interval()[1]
    own = release.sum("age", age=(30, 39), town="Rome")
    assert own.value == pytest.approx(total("age", thirties & (town == "Rome")), rel=0.1)
    assert own.covers.text == "all values"
    assert own.beyond.value == 0.0


def test_noise_hides_values_far_from_zero() -> None:
    """A sum over 2^32 cells covers the values that are known, and its 99.9% interval holds their sum."""
    answer = released(1).sum("salary")
    low, high = answer.interval(0.999)

    assert not answer.covers.everything
    assert answer.covers.high < 2**32 - 1
    assert low <= answer.covers.counted(data()["salary"]).sum() <= high
    assert 0.0 < answer.error < answer.value / 2
    assert released(1).sum("salary", salary=(2**31, 2**31 + 10)).covers.everything
    assert answer.worst()[0] <= low
    assert high <= answer.worst()[1]


def test_a_mean_of_hardly_any_row_is_not_determinable() -> None:
    """Where there may be no row at all, the interval has every value that is covered."""
    mean = released(1).mean("age", q0=0, q1=1, town="Rome", change=-50)

    assert math.isnan(mean.value)
    assert not mean.determinable
    assert mean.interval() == (0.0, 99.0)


def test_questions_that_no_value_answers_are_refused() -> None:
    """A condition that leaves no value, and a variance, which needs squares."""
    release = released(1)

    with pytest.raises(InvalidParameter, match="where must leave values that can be summed"):
        release.sum("age", age=NULL)
    with pytest.raises(InvalidParameter, match=r"must have moments.*views=\[\('age',\)"):
        release.std("age")
    with pytest.raises(InvalidParameter, match=r"moments must be of columns in a view of few columns"):
        publish(data(), SCHEMA, epsilon=1, moments=["age"])


def test_a_group_that_noise_hides_may_hold_the_largest_values() -> None:
    """Ten rows of a label have all values that there are: intervals of their sum hold it, 990."""
    rows = 1_000
    schema: dict[str, Domain] = {
        "kind": Category(["a", "b", "c"]),
        "size": Integer(0, 99),
        "q": Integer(0, 3),
        "r": Integer(0, 3),
    }
    given = {
        "kind": np.array(["a"] * 10 + [""] * (rows - 10)),
        "size": np.array([99.0] * 10 + [math.nan] * (rows - 10)),
        **{name: np.zeros(rows, int) for name in "qr"},
    }
    blocks = (f"hidden group {number}".encode() for number in count())
    drawn = SimpleNamespace(urandom=lambda size: hashlib.shake_256(next(blocks)).digest(size))
    held = []
    with patch.object(kernel, "os", drawn):
        for _ in range(12):
            answer = publish(given, schema, epsilon=1).sum("size", kind="a")
            held.append(answer.interval()[0] <= 990 <= answer.interval()[1])

    assert np.mean(held) >= 0.7


def test_sums_of_a_table_cost_nothing_and_a_summed_column_joins_it() -> None:
    """There is no view of sums, and a column that `by` leaves out becomes one of the table."""
    release = publish(data(), SCHEMA, epsilon=1, by=["town", "age", "q0", "q1"], sums=["salary"])

    assert release.sums == ()
    assert release.columns == ("town", "age", "q0", "q1", "salary")
    assert [view.guarantee.epsilon for view in release.published if view.guarantee] == [1]


def test_a_loaded_table_answers_written_questions_as_before(tmp_path: Path) -> None:
    """Nothing about sums is stored: a file answers as the release did, also in the words of the grammar."""
    release, path = released(1), tmp_path / "people.release.parquet"
    release.save(path)
    loaded = load(path)
    record = QueryRunner(release=loaded, confidence=0.95, beta=0.05).answer(
        parse_question("sum of salary where town = Rome and age between 30 and 39")
    )

    expected = release.sum("salary", town="Rome", age=(30, 39))
    assert (record["value"], record["error"]) == pytest.approx((expected.value, expected.error))
