"""Correlation and regression line from counts of two columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.domain import Domain, Integer, Real
from partita.public.release import Release
from tests.public.releases.conftest import Publish


def _published(epsilon: object, mechanism: str = "auto", number: int = 20_000) -> tuple[Release, Any]:
    draw = np.random.default_rng(3)
    age = draw.integers(18, 90, number)
    pay = np.clip(20_000 + 300 * age + draw.normal(0, 8_000, number), 0, 2**17 - 1).astype(int)
    schema: dict[str, Domain] = {
        "age": pt.Integer(0, 120),
        "pay": pt.Integer(0, 2**17 - 1),
        "town": pt.Category(["a", "b"]),
    }
    rows = {"age": age, "pay": pay, "town": draw.choice(["a", "b"], number)}
    views = None if mechanism == "graph" else [("age", "pay"), ("town",)]
    return pt.publish(rows, schema, epsilon=epsilon, views=views, mechanism=mechanism), (age, pay)


@pytest.mark.parametrize("mechanism", ["auto", "graph"])
def test_intervals_hold_those_of_the_rows(mechanism: str) -> None:
    """Correlation, slope and intercept of the rows lie within their intervals, which are not wide."""
    release, (age, pay) = _published(2, mechanism, 5_000)

    found, line = release.correlation("age", "pay"), release.regression("pay", "age")
    slope, intercept = np.polyfit(age, pay, 1)
    for answer, truth in (
        (found, np.corrcoef(age, pay)[0, 1]),
        (line.slope, slope),
        (line.intercept, intercept),
    ):
        low, high = answer.interval()
        assert low <= truth <= high
    assert found.interval()[1] - found.interval()[0] < 0.4
    assert "rows with age" in str(found)


def test_too_few_rows_say_nothing() -> None:
    """Where noise hides how the rows are spread, nothing is determinable, and intervals hold everything."""
    release, _ = _published("0.1", number=50)

    found, line = release.correlation("age", "pay"), release.regression("pay", "age")
    assert (math.isnan(found.value), found.interval()) == (True, (-1.0, 1.0))
    assert line.slope.interval() == (-math.inf, math.inf)
    assert "not determinable" in repr(line)


def test_columns_are_two_different_ones_of_numbers_released_together() -> None:
    """Labels have no mean, a column does not go with itself, and views must have both."""
    rows = {"a": [1, 2], "b": [1, 2], "town": ["x", "y"]}
    schema: dict[str, Domain] = {
        "a": pt.Integer(0, 9),
        "b": pt.Integer(0, 9),
        "town": pt.Category(["x", "y"]),
    }
    release = pt.publish(rows, schema, epsilon=1, views=[("a", "town"), ("b",)])

    with pytest.raises(pt.InvalidParameter, match="must be a column of numbers: a Category has no mean"):
        release.correlation("a", "town")
    with pytest.raises(pt.InvalidParameter, match="must be asked about once"):
        release.correlation("a", "a")
    with pytest.raises(pt.InvalidParameter, match="released together"):
        release.regression("a", "b")


def test_exact_counts_give_exact_moments(together: Publish) -> None:
    """Without noise and with a bin for each cell, the correlation and the line are those of the rows."""
    x, y = [1, 2, 3, 4, 5, 5] * 200, [2, 1, 4, 3, 6, 8] * 200
    release = together(x=(Integer(0, 9), x), y=(Real(0, 9, step="0.5"), y))

    line = release.regression("y", "x")
    assert (line.slope.value, line.intercept.value) == pytest.approx(tuple(np.polyfit(x, y, 1)))
    assert release.correlation("x", "y").value == pytest.approx(np.corrcoef(x, y)[0, 1])
