"""Reports, made-up rows and pictures of columns that were released together."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Category, Date, Integer
from partita.domain.base import NULL
from partita.guarantee import Guarantee
from partita.public.base import Provenance
from partita.public.boxes.regions import HalfSpace, Polygon
from partita.public.conditions import OneOf, Range
from partita.public.release import Release
from partita.public.report import chart
from partita.public.results import even_bins, find_bin_cells
from partita.public.views import describe_conditions

Publish = Callable[..., Release]

AGE, TOWN = Integer(0, 120), Category(["Rome", "Bari", "Pisa"])


@pytest.fixture
def people(together: Publish) -> Release:
    """Ages and towns together, and towns alone."""
    columns = {
        "age": (AGE, [*range(-3, 130), None]),
        "town": (TOWN, [["Rome", "Bari", "Oslo"][age % 3] for age in range(134)]),
    }
    plain = together(20.0, views=[("age", "town"), ("town",)], **columns)
    return replace(
        plain, provenance=Provenance(version="1.2.3", day="2026-11-15", dataset="people", person="id")
    )


def test_the_report_tells_about_boxes(people: Release) -> None:
    """Columns, domains, mechanism, reason, story, special cells, the error of boxes, and the rules."""
    text = people.report()

    for said in (
        "with noisy counts along age, town, made on",
        "Columns together: age, declared as Integer(0, 120): 121 cells; town, declared as Category(",
        "mechanism 'shown-boxes', with epsilon 1/2. Boxes may be shown. Boxes are shown.",
        "Special cells of age: below 3.0 (0.0 .. 7.4), above 9.0 ± 4.4, invalid 0.0 (0.0 .. 4.4), null 1.0",
        "Special cells of town: null 0 (0 .. 20), other 44 ± 20 (95% intervals).",
        "Column town, declared as Category(",
        "no count of a range, in any column, and no count of a box, misses the truth by more than",
        "special cells of columns released together are positions on their axes",
        "at most 1 row of a column or of columns together is counted",
    ):
        assert said in text


def test_a_large_bound_points_to_the_answers(people: Release, together: Publish) -> None:
    """Where the bound on all boxes is much of all rows, the report says where to find better ones."""
    close = together(1.0, age=(AGE, [*range(121)]), town=(TOWN, ["Rome"] * 121))

    assert "`answer.worst(beta)`" in people.report()
    assert "`answer.worst(beta)`" not in close.report()


def test_boxes_are_part_of_the_promise(people: Release) -> None:
    """A release promises what all its views do, boxes included, and names each column once."""
    assert people.guarantee == Guarantee(epsilon=1)
    assert repr(people).startswith("Release(age, town; epsilon 1, pure,")


def test_what_a_release_is_made_of_is_shown_in_a_line(people: Release) -> None:
    """Columns and mechanisms, never the numbers; regions can be members of sets."""
    half = HalfSpace({"age": 1, "pay": "-0.25"}, at_most=7)
    triangle = Polygon("age", "pay", [(0, 0), (0, 9), (9, 0)])

    assert repr(people.views) == "(BoxView(age, town; shown-boxes), View(town; shown))"
    assert repr(people.slice("age")) == "Slice(age, all rows)"
    assert repr(people.slice("age", town="Rome")) == "Slice(age, town Rome)"
    assert repr(half) == "HalfSpace({'age': 1, 'pay': -0.25}, at_most=7)"
    assert repr(triangle) == "Polygon('age', 'pay', 3 corners)"
    assert {half, triangle, HalfSpace({"pay": "-1/4", "age": 1}, at_most=7)} == {half, triangle}


def test_papers_behind_boxes_are_cited(people: Release) -> None:
    """The mechanisms of boxes have their papers."""
    views = tuple(replace(view, mechanism="rectangles-paper") for view in people.views)

    assert "{DNRR15," in replace(people, views=views).citation()


@given(
    st.lists(
        st.tuples(st.integers(-1, 125) | st.none(), st.sampled_from(["Rome", "Pisa", "Oslo"])), max_size=30
    )
)
def test_made_up_rows_go_together(together: Publish, rows: list[tuple[int | None, str]]) -> None:
    """As many rows as were counted, each pair of values as often as counted; None in special cells."""
    release = together(age=(AGE, [age for age, _ in rows]), town=(TOWN, [town for _, town in rows]))

    made = release.synthesize()

    expected = Counter(
        (age if age is not None and 0 <= age <= 120 else None, town if town in TOWN.labels else None)
        for age, town in rows
    )
    assert Counter(zip(made["age"], made["town"], strict=True)) == expected
    assert made == release.synthesize()


def test_columns_are_made_by_the_widest_view(together: Publish) -> None:
    """A column of several views comes with those of the widest; rows of other views are shuffled apart."""
    rows = list(range(100))
    columns = {name: (Integer(0, 99), rows) for name in ("a", "b", "c")}
    release = together(views=[("a",), ("a", "b"), ("c",)], **columns)

    made = release.synthesize()

    assert list(made) == ["a", "b", "c"]
    assert made["a"] == made["b"]
    assert sorted(made["c"]) == rows != made["c"]  # type: ignore[type-var]
    together_by_chance = sum(a == c for a, c in zip(made["a"], made["c"], strict=True))
    assert together_by_chance < 20


def test_conditions_are_said_in_words() -> None:
    """Every form of condition has its words."""
    asked = {
        "a": Range(1, 2),
        "b": Range(None, 2),
        "c": Range(1, None),
        "d": Range(None, None),
        "e": OneOf(("y", "x")),
        "f": NULL,
        "g": 3,
    }

    words = "a 1 to 2, b up to 2, c from 1, d with any value, e x or y, f null, g 3"
    assert describe_conditions(asked) == words


def test_charts_of_slices(people: Release) -> None:
    """A chart of one column among the rows that fulfil a condition."""
    lines = chart(people.slice("age", town="Rome"), 60, 4)

    assert len(lines) == 4
    assert lines[0].lstrip().startswith("0 to 29")


@pytest.fixture
def pyplot() -> Iterator[Any]:
    matplotlib: Any = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_heat_maps_are_drawn(people: Release, pyplot: Any) -> None:
    """Both columns have scale and name, the counts a colour bar with their error, and the title the price."""
    axes, heat = people.plot("age", "town", bins=(11, 3)), people.histogram("age", "town", bins=(11, 3))
    axes.figure.canvas.draw()

    (field,) = axes.collections
    bar = field.colorbar.ax.get_ylabel()
    assert field.get_array().shape == (3, 11)
    assert field.get_array().sum() == heat.counts.values.sum()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "town")
    assert axes.get_title(loc="left") == "people, epsilon 1/2"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["Rome", "Bari", "Pisa"]
    assert axes.get_xlim() == (-0.5, 120.5)
    assert bar == f"rows in each field, ± {heat.margins} (95%)"


def test_an_empty_heat_map_is_pale(together: Publish, pyplot: Any) -> None:
    """Where nobody is, no field is darker than half of the scale, which reaches to the error of a field."""
    nobody = together(4.0, age=(AGE, []), town=(TOWN, []))

    (field,) = nobody.plot("age", "town", bins=(11, 3)).collections

    low, high = field.get_clim()
    assert low == 0.0
    assert high >= max(1.0, nobody.histogram("age", "town", bins=(11, 3)).counts.error.max())
    assert field.get_array().max() <= high / 2


def test_heat_maps_of_days(together: Publish, pyplot: Any) -> None:
    """Times lie on a calendar on either side of the picture."""
    days = Date("2024-01-01", "2024-12-31")
    release = together(day=(days, ["2024-03-01"]), town=(TOWN, ["Rome"]))
    first = (datetime.date(2024, 1, 1) - datetime.date(1970, 1, 1)).days

    axes = release.plot("town", "day", bins=(3, 12))
    axes.figure.canvas.draw()

    assert axes.get_ylim() == (first, first + 366)
    assert "2024" in axes.yaxis.get_offset_text().get_text() + "".join(
        text.get_text() for text in axes.get_yticklabels()
    )


def test_conditions_are_in_the_title_of_a_picture(people: Release) -> None:
    """A conditional histogram says which rows it counts, and a heat map draws none below zero."""
    axes = MagicMock()

    people.plot("age", town=["Rome", "Bari"], axes=axes, bins=4)
    people.plot("age", "town", axes=axes, bins=4)

    assert [call.args[0] for call in axes.set_title.call_args_list] == [
        "people, epsilon 1/2, town Bari or Rome",
        "people, epsilon 1/2",
    ]
    assert np.all(axes.pcolormesh.call_args.args[2] >= 0)


@pytest.mark.parametrize("size", [1, 59, 61, 119, 151, 2**32])
def test_pictures_have_bins_of_nearly_one_size(size: int) -> None:
    """Of bins of w cells, fewer than w have one cell more than the others."""
    number = even_bins(size, 60)
    lows, highs = find_bin_cells(size, number)

    widths = (highs - lows).astype(np.int64) + 1
    assert number <= 60
    assert (widths > widths.min()).sum() < widths.min() or np.ptp(widths) == 0
