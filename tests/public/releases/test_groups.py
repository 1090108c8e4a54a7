"""Statistics by groups are those of the same questions about each group alone."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import partita as pt
from partita.answer import Answer
from partita.domain import Special
from partita.errors import InvalidParameter
from partita.public.conditions import OneOf
from partita.public.groups import Groups, order_groups
from partita.public.keys import GroupKey, GroupOrder
from partita.public.release import Release
from tests.table_releases import table_release

from .conftest import Publish

NEW_YORK = ZoneInfo("America/New_York")
HOURS = pt.Timestamp("2013-01-01", "2013-12-31T23:00", "1h", zone="America/New_York")
SEEN = [
    datetime.datetime(2013, 1, 1, tzinfo=NEW_YORK) + datetime.timedelta(hours=7 * n) for n in range(1_250)
]
TOWNS = ["Rome", "Bari", "Turin"]


def _same(one: Any, other: Any) -> None:
    """Two answers with the same value, error and interval."""
    found, expected = ((each.value, each.error, *each.interval()) for each in (one, other))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.fixture(scope="module")
def visits(together: Publish) -> Release:
    """Rows in a zone whose clocks change, in three towns, one unknown and one missing now and then."""
    towns = [None if n % 50 == 0 else "Oslo" if n % 30 == 0 else TOWNS[n % 3] for n in range(len(SEEN))]
    ages = [n % 90 for n in range(len(SEEN))]
    return together(
        seen=(HOURS, SEEN),
        town=(pt.Category(TOWNS), towns),
        age=(pt.Integer(0, 80), ages),
        views=[("seen",), ("town",), ("age",), ("town", "age")],
    )


# --- groups are questions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "group", "where"),
    [
        (["town"], ("Rome",), {"town": "Rome"}),
        (["town"], (Special.NULL,), {"town": pt.NULL}),
        (["town"], (Special.OTHER,), {"town": pt.OTHER}),
        (["rooms"], (3,), {"rooms": 3}),
        ([pt.bins("pay", 4)], ("1500 to 2999",), {"pay": (1500, 2999)}),
        ([pt.breaks("age", [20, 40])], ("up to 19",), {"age": (None, 19)}),
        ([pt.breaks("age", [20, 40])], ("40 and more",), {"age": (40, None)}),
        (["town", pt.bins("pay", 4)], ("Bari", "0 to 1499"), {"town": "Bari", "pay": (0, 1499)}),
        (
            ["town", "rooms", pt.bins("age", 3)],
            ("Bari", 4, "20 to 39"),
            {"town": "Bari", "rooms": 4, "age": (20, 39)},
        ),
    ],
)
def test_a_group_of_a_table_release_is_a_question(
    keys: list[Any], group: tuple[object, ...], where: dict[str, object]
) -> None:
    """Value, error, interval and basis of each count are those of the count of this group alone."""
    release = table_release()

    groups, others = release.group(*keys).count(), release.group(*keys).count(pay=(100, 3_000))
    expected = release.count(where)

    _same(groups[group], expected)
    assert groups[group].basis == expected.basis
    place = groups.entries.index(group)
    assert groups.values[place] == pytest.approx(expected.value)
    assert groups.errors is not None
    assert groups.errors[place] == pytest.approx(expected.error)
    assert groups.frame()["low"][place] == pytest.approx(expected.interval()[0])
    if "pay" not in where:
        _same(others[group], release.count(where, pay=(100, 3_000)))


def test_other_statistics_of_groups_are_questions() -> None:
    """Sums, means, quantiles and shares by town, each as it is by itself."""
    release = table_release()
    by_town = release.group("town")

    for town in TOWNS:
        _same(by_town.sum("pay", age=(10, 39))[town], release.sum("pay", town=town, age=(10, 39)))
        _same(by_town.mean("pay")[town], release.mean("pay", town=town))
        found, expected = by_town.quantile("pay", 0.25)[town], release.quantile("pay", 0.25, town=town)
        assert (found.value, found.interval()) == (expected.value, expected.interval())
    basis = by_town.mean("pay").frame()["basis"]
    assert set(basis) == {release.count(town="Rome", pay=(0, 99)).basis}


def test_a_share_of_a_group_is_a_ratio_whose_noises_partly_cancel() -> None:
    """The share of each town is part over whole; its error knows that the part is in the whole."""
    release = table_release()
    shares = release.group("town").share(age=(0, 29))
    older = release.group("town").share(age=(0, 29), among={"rooms": (0, 4)})

    for name in TOWNS:
        part, whole = release.count(age=(0, 29), town=name), release.count(town=name)
        low, high = shares[name].interval()
        apart = math.hypot(part.error / whole.value, part.value * whole.error / whole.value**2)
        assert shares[name].value == pytest.approx(part.value / whole.value)
        assert 0.0 <= low <= 0.5 <= high <= 1.0
        assert shares[name].error < apart
        assert older[name].value == pytest.approx(shares[name].value, abs=0.2)
    with pytest.raises(InvalidParameter, match="where must have a condition"):
        release.group("town").share()


@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day", "weekday", "hour"])
def test_units_of_the_calendar_are_those_of_the_columns_zone(visits: Release, unit: Any) -> None:
    """Every row counts in the year, ..., hour that its clock showed, also where clocks change."""

    def name_of(seen: datetime.datetime) -> object:
        year, week, _ = seen.isocalendar()
        return {
            "year": seen.year,
            "quarter": f"{seen.year}-Q{(seen.month + 2) // 3}",
            "month": f"{seen:%Y-%m}",
            "week": f"{year}-W{week:02}",
            "day": seen.date(),
            "weekday": f"{seen:%A}",
            "hour": seen.hour,
        }[unit]

    groups = visits.group(GroupKey("seen", unit=unit)).count()

    expected = Counter(map(name_of, SEEN))
    assert {
        names[0]: value for names, value in zip(groups.entries, groups.values, strict=True)
    } == pytest.approx({names[0]: expected[names[0]] for names in groups.entries})
    assert sum(groups.values) == pytest.approx(len(SEEN))
    for names, answer in zip(groups.entries, groups, strict=True):
        if unit in ("quarter", "month", "week", "day"):
            _same(answer, visits.count(seen=names[0]))


def test_a_unit_that_lies_all_over_the_column_has_the_error_of_all_its_cells(visits: Release) -> None:
    """A weekday is a union of days: in these releases a count of w cells has the variance w."""
    groups = visits.group(pt.weekday("seen")).count()

    assert groups.errors is not None
    assert groups.errors[0] == pytest.approx(math.sqrt(24 * 52))


def test_weekdays_together_with_another_column(together: Publish) -> None:
    """Boxes of several pieces are one question: counts and errors of weekday by town are exact."""
    days = pt.Date("2024-01-01", "2024-03-31")
    rows = [datetime.date(2024, 1, 1) + datetime.timedelta(days=n % 91) for n in range(500)]
    towns = [TOWNS[n % 3] for n in range(500)]
    release = together(day=(days, rows), town=(pt.Category(TOWNS), towns))

    groups = release.group(pt.weekday("day"), "town").count()

    truth: Counter[tuple[object, ...]] = Counter(
        (f"{day:%A}", town) for day, town in zip(rows, towns, strict=True)
    )
    assert groups["Sunday", "Bari"].value == truth["Sunday", "Bari"]
    assert [names[:2] for names in groups.entries][:2] == [("Monday", "Rome"), ("Monday", "Bari")]
    for names, value in zip(groups.entries, groups.values, strict=True):
        assert value == truth[names]
    assert groups.errors is not None
    assert groups.errors.tolist() == pytest.approx([math.sqrt(13)] * 35)
    _same(groups["Sunday", "Bari"], release.count(groups_where(release, "Sunday"), town="Bari"))


def groups_where(release: Release, weekday: str) -> dict[str, object]:
    """All days of a weekday as a set of values."""
    days = release.domain_of("day").decode(list(range(release.domain_of("day").size)))
    return {"day": OneOf(tuple(day for day in days if f"{day:%A}" == weekday))}


def test_two_keys_of_one_column_meet(visits: Release) -> None:
    """Month by weekday counts days that are both, ordered by the keys; what cannot be is left out."""
    groups = visits.group(pt.weekday("seen"), pt.quarter("seen")).count()
    never = visits.group(pt.month("seen"), pt.quarter("seen")).count()

    assert groups.entries[:5] == [
        ("Monday", "2013-Q1"),
        ("Monday", "2013-Q2"),
        ("Monday", "2013-Q3"),
        ("Monday", "2013-Q4"),
        ("Tuesday", "2013-Q1"),
    ]
    truth: Counter[tuple[object, ...]] = Counter(
        (f"{seen:%A}", f"{seen.year}-Q{(seen.month + 2) // 3}") for seen in SEEN
    )
    assert list(groups.values) == pytest.approx([truth[names] for names in groups.entries])
    assert len(never) == 12


def test_conditions_on_a_key_leave_fewer_groups(visits: Release) -> None:
    """Groups without a cell that meets the conditions are not there, and others count what does."""
    months = visits.group(pt.month("seen")).count(seen=("2013-11-15", None))
    towns = visits.group("town").count(town=["Rome", "Turin"], age=(0, 9))

    assert [names[0] for names in months.entries] == ["2013-11", "2013-12"]
    _same(months["2013-11"], visits.count(seen=("2013-11-15", "2013-11-30")))
    assert [names[0] for names in towns.entries] == ["Rome", "Turin"]
    _same(towns["Turin"], visits.count(town="Turin", age=(0, 9)))


def test_conditions_with_or_on_a_key(visits: Release) -> None:
    """Where conditions join the key's column with others by `or`, groups are asked one by one."""
    groups = visits.group("town").count("town = Rome or age < 10")

    assert groups["Rome"].value == visits.count(town="Rome").value
    assert groups["Bari"].value == visits.count(town="Bari", age=(0, 9)).value


def test_what_is_in_no_group_is_said(visits: Release) -> None:
    """Labels have groups of others and of none; of ordered columns a note says what is left out."""
    by_town, by_age = visits.group("town").count(), visits.group(pt.bins("age", 3)).count()

    assert [names[0] for names in by_town.entries[-2:]] == [Special.OTHER, Special.NULL]
    assert sum(by_town.values) == pytest.approx(len(SEEN))
    assert by_town.about == ""
    assert "rows without a value of age, or with one out of bounds, are in no group" in str(by_age)
    assert sum(by_age.values) < len(SEEN)


# --- order ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranked(publish: Publish) -> Release:
    """Towns of 100, 60, 59, 58, 20 and 5 rows; a count has the variance 1."""
    counts = {"a": 60, "b": 100, "c": 5, "d": 59, "e": 20, "f": 58}
    rows = [town for town, number in counts.items() for _ in range(number)]
    return publish(town=(pt.Category(sorted(counts)), rows))


def test_the_largest_groups_come_first(ranked: Release) -> None:
    """`top` takes those with the largest values, and says which neighbours noise could have swapped."""
    groups = ranked.group("town").count()

    assert groups.top(3).frame()["town"] == ["b", "a", "d"]
    assert groups.top(3).ranking.startswith(
        "not to be told apart: places 2 and 3; place 3 is not clear of place 4, which is not shown"
    )
    assert groups.top(4).ranking.startswith(
        "not to be told apart: places 2 to 4; place 4 is clear of place 5"
    )
    assert groups.top(1).ranking.startswith("place 1 is clear of place 2, which is not shown (95%")
    assert (len(groups.top(3)), groups.top(3).total, len(groups)) == (3, 8, 8)
    assert groups.ranking == ""


def test_groups_are_ordered_by_key_or_value(ranked: Release) -> None:
    """By the name of a key, or by the statistic; another order is refused."""
    groups = ranked.group("town").count()

    assert groups.ordered("town", descending=True).frame()["town"][:3] == [None, "(other)", "f"]
    assert groups.ordered("count").frame()["town"][2:4] == ["c", "e"]
    assert order_groups(groups, GroupOrder(GroupKey("count"), descending=True), 1).frame()["town"] == ["b"]
    with pytest.raises(
        InvalidParameter, match=r"^order must be one of town, count, got 'age'; order by count"
    ):
        groups.ordered("age")


def test_groups_without_a_value_come_last() -> None:
    """Of means that are not determinable nothing is known, in any order."""
    groups = table_release().group("town").mean("pay")

    for descending in (True, False):
        values = groups.ordered(descending=descending).frame()["mean"]
        assert [math.isnan(value) for value in values] == [False, False, False, True, True]


# --- what a result is -------------------------------------------------------------------------


def test_groups_are_a_table(visits: Release) -> None:
    """A frame has the keys, the statistic, both ends of an interval of 95%, and what it rests on."""
    groups = visits.group("town", pt.breaks("age", [40])).count()

    first = groups.to_dicts()[0]
    assert list(first) == ["town", "age", "count", "low", "high", "basis"]
    assert (first["town"], first["age"], first["basis"]) == ("Rome", "up to 39", "measured")
    assert groups.to_dicts()[-1]["town"] is None
    assert groups.to_arrow().num_rows == len(groups) == 10
    assert repr(groups) == "Groups(count by town, age; 10 groups)"
    assert all(isinstance(answer, Answer) for answer in groups)
    assert groups[0].value == groups["Rome", "up to 39"].value


def test_groups_are_printed_with_their_intervals(visits: Release) -> None:
    """A few rows as text and as HTML; of many the first and the last."""
    groups = visits.group(pt.day("seen")).count()

    lines = str(groups).splitlines()
    assert lines[0].split() == ["day(seen)", "count", "low", "high", "basis"]
    assert [lines[1].split()[0], len(lines)] == ["2013-01-01", 13]
    assert "2013-01-01" in groups._repr_html_()


def test_no_groups_are_shown_as_none(visits: Release) -> None:
    """Conditions may leave none."""
    groups = visits.group(pt.month("seen")).count(seen=pt.NULL)

    assert (len(groups), str(groups), groups.to_dicts()) == (0, "no groups", [])


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([], "group must be by 1 to 6 keys, got 0"),
        (["town", "town"], "group must name each key once, got 'town'"),
        ([3], "group must be by names of columns"),
        (["twon"], "column must be one of .*; did you mean 'town'?"),
        (["seen"], r"group must be by a column of at most 1,000 values, .*bins\(seen, 12\).*month\(seen\)"),
        ([pt.month("age")], "group must be a column of dates or times to have a month, got 'age'"),
        ([pt.breaks("age", [30, 20])], "breaks of age must rise"),
        ([pt.breaks("age", [30, 200])], "breaks of age must lie within the declared bounds"),
        (["town", pt.month("seen")], "where must name columns that were released together"),
    ],
)
def test_groups_that_cannot_be_are_refused(visits: Release, keys: list[Any], said: str) -> None:
    """A typed error says what can be grouped by."""
    with pytest.raises(InvalidParameter, match=said):
        visits.group(*keys).count()


def test_slots_that_do_not_divide_a_unit_are_refused(publish: Publish) -> None:
    """Days of 24 hours drift from those of a clock that changes; months of such slots would be wrong."""
    release = publish(day=(pt.Timestamp("2013-01-01", "2013-12-31", "1d", zone="America/New_York"), []))

    with pytest.raises(InvalidParameter, match="must have slots that begin and end where each month does"):
        release.group(pt.month("day")).count()
    with pytest.raises(InvalidParameter, match="day must begin and end with slots of 1d"):
        release.count(day="2013-07-04")
    assert release.count(day="2013-02-01").value == 0.0


def test_too_many_groups_and_pieces_are_refused(together: Publish) -> None:
    """By their number alone, before any of them is made."""
    release = together(x=(pt.Integer(0, 500), [1]), y=(pt.Integer(0, 500), [2]))

    with pytest.raises(InvalidParameter, match="must make up at most 131,072 groups, got 251001"):
        release.group("x", "y").count()
    with pytest.raises(InvalidParameter, match="must make up at most 4,096 groups"):
        release.group("x", "y").quantile("y")
    with pytest.raises(InvalidParameter, match="group must be a group"):
        release.group("x").count()["nowhere"]


def test_a_share_that_was_wanted_is_that_of_the_release() -> None:
    """A release that was made for a share by groups answers by these."""
    rows = {"late": [n % 3 for n in range(900)], "town": [TOWNS[n % 2] for n in range(900)]}
    schema: dict[str, Any] = {"late": pt.Integer(0, 9), "town": pt.Category(TOWNS)}
    release = pt.publish(rows, schema, epsilon=4, wants=[pt.share(late=(1, None), by="town")])

    groups = release.group("town").share(late=(1, None))

    assert isinstance(groups, Groups)
    assert groups["Rome"].value == release.share(late=(1, None), among={"town": "Rome"}).value
    assert np.isnan(groups["Turin"].value) == (
        not release.share(late=(1, None), among={"town": "Turin"}).determinable
    )


def test_a_share_is_not_wanted_with_or() -> None:
    """A share counts column by column, so that none of its conditions is one on several of them."""
    assert str(pt.share(town=pt.Not("Rome"))) == "share where town != Rome"
    with pytest.raises(InvalidParameter, match="must not join conditions on several columns with `or`"):
        pt.share("town = Rome or late = 1")  # type: ignore[arg-type]


def test_sums_by_keys_take_unions() -> None:
    """The sum over a union of boxes is that over its parts, each once."""
    rows = {"late": [n % 3 for n in range(900)], "town": [TOWNS[n % 2] for n in range(900)], "pay": [5] * 900}
    schema: dict[str, Any] = {"late": pt.Integer(0, 9), "town": pt.Category(TOWNS), "pay": pt.Integer(0, 9)}
    release = pt.publish(rows, schema, epsilon=4, by=["late", "town"], sums=["pay"])

    found = release.sum("pay", "town = Rome or late = 1")
    low, high = found.worst(1e-9)
    assert abs(found.value - 5 * 600) < 8 * found.error + 100
    assert low <= 5 * 600 <= high


def test_a_misspelt_group_gets_a_suggestion(publish: Publish) -> None:
    """Names of groups are public; numbers print with the digits that their intervals support."""
    release = publish(town=(pt.Category(["Rome", "Bari"]), ["Rome"] * 40 + ["Bari"] * 20))
    counted = release.group("town").count()

    with pytest.raises(InvalidParameter, match="did you mean Rome"):
        counted["rome"]
    shares = release.group("town").share(town="Rome")
    low, _ = shares["Rome"].interval()
    assert f"{low:.6g}" not in str(shares)
