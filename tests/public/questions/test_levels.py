"""Nodes above labels as questions: counts, groups by level, text, SQL, several columns, and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidParameter
from partita.public.grammar import parse_key, parse_question
from partita.public.questions import QueryRunner
from partita.testing import ZeroNoise

PLACES = pt.Category(
    {
        "Kent": {"Tract 1": ["b1", "b2"], "Tract 2": ["b3"]},
        "City": None,
        "Essex": {"Tract 1": ["b4"], "b5": None},
    },
    levels=["county", "tract", "block"],
)
COUNTS = (50, 30, 7, 40, 5, 12)


@pytest.fixture(scope="module")
def release() -> pt.Release:
    """A release without noise, so that what is counted shows."""
    assert PLACES.tree is not None
    made = pt.HierarchyCounts(size=6, nodes=PLACES.tree.ranges, epsilon=1)
    return pt.as_release(made.release(pt.Histogram.dense(COUNTS), noise=ZeroNoise()), {"place": PLACES})


@pytest.mark.parametrize(
    ("place", "count"),
    [
        ("Kent", 87),
        ("Kent > Tract 1", 80),
        ("b3", 7),
        ("City", 40),
        (["Kent", "b4"], 92),
        (["Kent", "b1"], 87),
        (("Kent", "City"), 127),
        (("b2", "Essex"), 94),
        (pt.Not("Kent"), 57),
        (pt.Not(["Essex", "b1"]), 77),
    ],
)
def test_a_node_is_a_question(release: pt.Release, place: Any, count: int) -> None:
    """Wherever a label may stand, a node may: alone, in lists, in ranges and behind Not."""
    assert release.count(place=place).value == pytest.approx(count)


def test_many_nodes_are_counted_at_once(release: pt.Release) -> None:
    """Arrays may hold labels and nodes, also as ends of ranges."""
    assert release.counts(place=np.array(["Kent", "b1", "Essex"])).values.tolist() == pytest.approx(
        [87, 50, 17]
    )
    assert release.counts(place=(["Kent", "b3"], ["City", "Essex"])).values.tolist() == pytest.approx(
        [127, 64]
    )
    with pytest.raises(InvalidParameter, match="did you mean 'Kent'"):
        release.counts(place=["kent"])


@pytest.mark.parametrize(
    ("level", "groups"),
    [
        ("county", {"Kent": 87, "City": 40, "Essex": 17}),
        (1, {"Kent > Tract 1": 80, "Tract 2": 7, "City": 40, "Essex > Tract 1": 5, "b5": 12}),
        ("block", dict(zip(PLACES.labels, COUNTS, strict=True))),
    ],
)
def test_groups_of_a_level_make_up_all_rows(release: pt.Release, level: Any, groups: dict[str, int]) -> None:
    """Labels above a level stand for themselves in it."""
    found = release.group(pt.level("place", level)).count()

    assert {
        name: round(answer.value, 6) for (name,), answer in zip(found.entries, found, strict=True)
    } == groups


def test_groups_within_a_node(release: pt.Release) -> None:
    """Conditions on the column of the key are met by groups or by parts of them."""
    found = release.group(pt.level("place", "tract")).count(place="Kent")

    assert found.to_dicts()[0]["tract(place)"] == "Kent > Tract 1"
    assert [round(answer.value, 6) for answer in found] == [80, 7]


def test_two_levels_of_one_column(release: pt.Release) -> None:
    """A tract is in the row of its county."""
    found = release.group(pt.level("place", 0), pt.level("place", 1)).count()

    assert found["Kent", "Tract 2"].value == pytest.approx(7)
    assert len(found) == 5


@pytest.mark.parametrize(
    "text", ["count by level(place, county)", "count by level(place, 0)", "count by level(place, 'county')"]
)
def test_levels_in_text(release: pt.Release, text: str) -> None:
    """By name, by number, in quotes; as text again it is the same question."""
    question = parse_question(text)
    found = QueryRunner(release=release, confidence=0.95, beta=None).answer(question)

    assert [round(each["value"]) for each in found["groups"]] == [87, 40, 17]  # type: ignore[attr-defined]
    assert str(parse_question(str(question))) == str(question)


def test_keys_are_written_as_they_are_read() -> None:
    """A key's text means the same key."""
    for key in (pt.level("place", "county"), pt.level("a place", 2), pt.level("place", "by county")):
        assert parse_key(key.text(lambda word: f"'{word}'")) == key


def test_levels_in_sql(release: pt.Release) -> None:
    """A level is a function of the column, and a node a value."""
    found = release.sql(
        "select level(place, 'county') as county, count(*) from release group by 1 order by 2 desc"
    )

    assert [round(row["count"]) for row in found.to_dicts()] == [87, 40, 17]
    asked = release.sql("select count(*) from release where place in ('Kent', 'b5')").to_dicts()
    assert round(asked[0]["count"]) == 99


@pytest.mark.parametrize("level", ["state", 3, "7", "Kent"])
def test_unknown_levels_are_refused(release: pt.Release, level: Any) -> None:
    """The error lists the levels."""
    with pytest.raises(InvalidParameter, match="county, tract, block"):
        release.group(pt.level("place", level)).count()


@pytest.mark.parametrize("level", [-1, None, True, "", 1.0])
def test_a_level_is_a_name_or_a_number(level: Any) -> None:
    """Nothing else."""
    with pytest.raises(InvalidParameter):
        pt.level("place", level)


def test_levels_are_of_labels_below_nodes() -> None:
    """Other columns have none."""
    made = pt.HistogramCounts(size=2, epsilon=1).release(pt.Histogram.dense((1, 2)), noise=ZeroNoise())
    with pytest.raises(InvalidParameter, match="labels lie below nodes"):
        pt.as_release(made, {"sex": pt.Category(["f", "m"])}).group(pt.level("sex", 0)).count()


@pytest.mark.filterwarnings("ignore::partita.PrivacyWarning")
def test_several_columns_and_files(tmp_path: Path) -> None:
    """In a view of several columns nodes are sums of labels; a file keeps nodes and levels."""
    rows = {"place": np.repeat(PLACES.labels, COUNTS).tolist(), "age": [30] * 100 + [50] * 44}
    release = pt.publish(rows, {"place": PLACES, "age": pt.Integer(0, 99)}, epsilon=1000)
    release.save(tmp_path / "x.release.parquet")
    again = pt.load(tmp_path / "x.release.parquet")

    for each in (release, again):
        assert each.count(place="Kent", age=(0, 40)).value == pytest.approx(87, abs=1)
        assert each.group(pt.level("place", "county")).count()["Essex"].value == pytest.approx(17, abs=1)
    assert again.domain_of("place") == PLACES


def test_intervals_with_special_cells_hold_their_value() -> None:
    """Of empty labels in many places and null the interval is about the unbiased sum, and holds the value."""
    domain = pt.Category({f"c{c}": [f"{c} {b}" for b in range(40)] for c in range(10)})
    release = pt.publish({"place": ["0 0"] * 300 + [None] * 20}, {"place": domain}, epsilon="1/10")
    answer = release.count(place=[*domain.labels[1::3], pt.NULL])
    low, high = answer.interval()

    assert 0 <= low <= answer.value <= high
    assert high - low < 2 * (answer.value + 4 * answer.error)
