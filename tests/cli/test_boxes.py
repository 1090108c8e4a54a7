"""Columns that were published together are asked together, from a shell."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from partita.public.boxes.regions import HalfSpace
from partita.public.file import load
from partita.public.grammar import parse_question
from partita.public.questions import QueryRunner
from tests.seams import PIPELINE

from .conftest import CANARY, Run, table

Person = dict[str, Any]

PEOPLE: list[Person] = [
    dict(zip(table(), values, strict=True)) for values in zip(*table().values(), strict=True)
]


def aged(low: int, high: int) -> Callable[[Person], bool]:
    """Whether somebody's age is known and in this range."""
    return lambda person: person["age"] is not None and low <= person["age"] <= high


def counted(fulfils: Callable[[Person], bool]) -> int:
    """How many people fulfil it."""
    return sum(map(fulfils, PEOPLE))


# --- questions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "truth"),
    [
        ("count", lambda _: True),
        ("count where age between 30 and 39", aged(30, 39)),
        (
            "count where age between 30 and 39 and wage >= 50",
            lambda person: aged(30, 39)(person) and person["wage"] >= 50,
        ),
        (
            "count where age between 30 and 39 and wage >= 25 and wage <= 75 and region in ('north','south')",
            lambda person: aged(30, 39)(person) and 25 <= person["wage"] <= 75 and person["region"] != CANARY,
        ),
        (
            "count where age is null and region = south",
            lambda person: person["age"] is None and person["region"] == "south",
        ),
        ("count where region is other and age <= 7", lambda person: person["region"] == CANARY),
        (
            "count where age > 30 and wage <= 10",
            lambda person: aged(31, 120)(person) and person["wage"] <= 10,
        ),
        (
            "count where age between 30 and 39 and wage < 50",
            lambda person: aged(30, 39)(person) and person["wage"] < 50,
        ),
        ("count where age between 200 and 300 and wage >= 1", lambda _: False),
    ],
)
def test_a_box_is_counted(run: Run, joint: Path, question: str, truth: Callable[[Person], bool]) -> None:
    """Conditions on several columns hold together; columns without one are free, special cells included."""
    [record] = run("query", joint, question, "--json").records

    assert record["value"] == pytest.approx(counted(truth), abs=0.01)
    assert record["worst"]["low"] <= counted(truth) <= record["worst"]["high"]


def test_a_difference_of_boxes(run: Run, joint: Path) -> None:
    """Both sides may have conditions on several columns."""
    north, south = (
        counted(lambda person, region=region: aged(0, 39)(person) and person["region"] == region)  # type: ignore[misc]
        for region in ("north", "south")
    )
    asked = "difference between (age < 40 and region = north) and (age < 40 and region = south)"

    [record] = run("query", joint, asked, "--json").records

    assert record["value"] == pytest.approx(north - south, abs=0.01)


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(9, 10)])
def test_a_quantile_within_a_box(run: Run, joint: Path, share: Fraction) -> None:
    """It is that of the rows that fulfil the conditions."""
    wages = sorted(person["wage"] for person in filter(aged(30, 39), PEOPLE))

    [record] = run("query", joint, f"quantile {share} of wage where age between 30 and 39", "--json").records

    assert float(record["value"]) == wages[math.ceil(share * len(wages)) - 1]
    assert record["question"].endswith("of wage where age between 30 and 39")


def test_a_cdf_and_a_histogram_within_a_box(run: Run, joint: Path) -> None:
    """Counts of the rows that fulfil the conditions, in text and as records."""
    inside = "where region = north and age is null"
    truth = counted(lambda person: person["age"] is None and person["region"] == "north")

    [cdf] = run("query", joint, f"cdf of wage at 10, 99.75 {inside}", "--json").records
    [bins] = run("query", joint, f"histogram of wage in 4 bins {inside}", "--json").records
    shown = run("query", joint, f"cdf of wage {inside}", f"histogram of wage in 4 bins {inside}")

    assert cdf["cdf"][-1]["count"] == pytest.approx(truth, abs=0.01)
    assert sum(each["count"] for each in bins["histogram"]) == pytest.approx(truth, abs=0.01)
    assert (shown.code, shown.out.count(inside)) == (0, 2)


def test_a_heat_map_is_a_table(run: Run, joint: Path) -> None:
    """The first column goes down and the second across; each bin holds what its box counts."""
    [record] = run("query", joint, "histogram of age, wage in 3 by 2 bins", "--json").records
    lines = run("query", joint, "histogram of age, wage in 3 by 2 bins").out.splitlines()

    assert [len(record["histogram"]), len(lines)] == [6, 5]
    for tile in record["histogram"]:
        (low, wage_low), (high, wage_high) = tile["low"], tile["high"]
        truth = counted(
            lambda person: aged(low, high)(person) and float(wage_low) <= person["wage"] <= float(wage_high)  # noqa: B023
        )
        assert tile["count"] == pytest.approx(truth, abs=0.01)
    assert lines[1].split()[:3] == ["age", "\\", "wage"]


def test_a_heat_map_of_few_rows_has_conditions_too(run: Run, joint: Path) -> None:
    """Its bins add up to the count of its conditions, where nobody is beside the axes."""
    [record] = run("query", joint, "histogram of age, wage where region = south", "--json").records

    truth = counted(lambda person: person["region"] == "south" and person["age"] is not None)
    assert sum(tile["count"] for tile in record["histogram"]) == pytest.approx(truth, abs=0.01)
    assert len(record["histogram"]) == 60


@pytest.mark.filterwarnings("ignore::partita.errors.PrivacyWarning")
@pytest.mark.parametrize(
    ("text", "weights", "at_most"),
    [
        ("age + wage <= 60", {"age": 1, "wage": 1}, 60),
        ("2*age - 0.5*wage >= 10", {"age": -2, "wage": Fraction(1, 2)}, -10),
    ],
)
def test_a_half_space_means_what_it_says(
    joint: Path, text: str, weights: dict[str, Any], at_most: int
) -> None:
    """The same region, asked in Python, has the same answer, beside other conditions too."""
    runner = QueryRunner(release=load(joint), confidence=0.9, beta=0.1)

    record = runner.answer(parse_question(f"count where {text} and region = north"))

    expected = runner.release.count({"region": "north"}, region=HalfSpace(weights, at_most=at_most))
    assert (record["value"], record["error"]) == (expected.value, expected.error)
    assert 0 < expected.value < counted(lambda person: person["region"] == "north")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("count where aeg = 3 and wage = 5", "did you mean 'age'?"),
        ("count where age = 3 and hired >= 2020-01-01", "must be one of 'age', 'wage', 'region'"),
        ("count where age between 39 and 30 and wage >= 5", "swap the two ends"),
        ("count where age = 3 and region = west", "choose among 'north', 'south'"),
        ("count where age + region <= 3", "region"),
        ("count where age + height <= 3", "height"),
        ("median of wage where aeg = 3", "did you mean 'age'?"),
        ("median of wage where wage >= 3", "wage"),
        ("histogram of age, aeg", "did you mean 'age'?"),
        ("histogram of age, age", "age"),
        ("histogram of age, wage where age >= 3", "age"),
    ],
)
def test_a_box_that_has_no_answer(run: Run, joint: Path, question: str, said: str) -> None:
    """Exit code 1, a typed error that names what is wrong, and no traceback."""
    done = run("query", joint, question)

    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert "unexpected" not in done.err


def test_an_open_quote_is_a_usage_error(run: Run, joint: Path) -> None:
    """The place is said, and nothing is answered."""
    done = run("query", joint, "count where age = 3 and region in ('north, south)")

    assert (done.code, done.out) == (2, "")
    assert "close the quote that it opens at character 36" in done.err


@pytest.mark.parametrize(
    "question",
    [
        "count where age = 1 and wage = 1",
        "median of wage where age = 1",
        "histogram of age, wage",
        "count where age + wage <= 60",
    ],
)
def test_columns_that_were_published_apart(run: Run, release: Path, question: str) -> None:
    """The message says what was published together."""
    done = run("query", release, question)

    assert (done.code, done.out) == (1, "")
    assert "together" in done.err
    assert "age" in done.err


# --- publishing -------------------------------------------------------------------------------

COLUMNS = ("--column", "age:integer(0,120)", "--column", "region:category(north,south)")


def test_columns_are_published_together_by_default(run: Run, people: Path) -> None:
    """One view, one mechanism that is chosen for it, and the receipt says so."""
    done = run("publish", people, *COLUMNS, "--epsilon", 1, "-o", "out.parquet")
    [view] = load("out.parquet").views

    assert (done.code, done.err) == (0, "")
    assert view.columns == ("age", "region")
    assert f"age x region, by {view.mechanism}" in done.out
    assert "region, Category(['north', 'south'])" in done.out
    assert CANARY not in done.out


def test_the_receipt_of_a_box_as_json(run: Run, people: Path) -> None:
    """Its views, and every column with its domain and special cells."""
    [record] = run("publish", people, *COLUMNS, "--epsilon", 1, "-o", "out.parquet", "--json").records

    assert [view["columns"] for view in record["views"]] == [["age", "region"]]
    assert [set(column["specials"]) for column in record["columns"]] == [
        {"below", "above", "invalid", "null"},
        {"null", "other"},
    ]


@pytest.mark.parametrize(
    ("options", "views"),
    [
        (("--by", "age"), [("age",)]),
        (("--by", "age, region"), [("age", "region")]),
        (("--view", "region", "--view", "age,region"), [("region",), ("age", "region")]),
        (("--view", '"age",region', "--mechanism", "grid"), [("age", "region")]),
        (("--view", "age", "--view", "age,region", "--mechanism", "tree"), [("age",), ("age", "region")]),
    ],
)
def test_options_say_what_goes_together(
    run: Run, people: Path, options: tuple[str, ...], views: list[tuple[str, ...]]
) -> None:
    """`--by` makes one view, `--view` one each, and both count for more than the spec."""
    Path("r.toml").write_text('[release]\nviews = [["age"], ["region"]]\nshares = [1, 3]\n')

    done = run("publish", people, "--spec", "r.toml", *COLUMNS, *options, "--epsilon", 1, "-o", "out.parquet")

    assert (done.code, done.err) == (0, "")
    assert [view.columns for view in load("out.parquet").views] == views


def test_the_spec_says_what_goes_together(run: Run, people: Path) -> None:
    """`by` in place of views; a plan of it touches no data."""
    Path("r.toml").write_text('[release]\nby = ["region", "age"]\nepsilon = 1\n')

    [record] = run("plan", "--spec", "r.toml", *COLUMNS, "--rows", 1000, "--json").records
    done = run("plan", "--spec", "r.toml", *COLUMNS)

    assert [view["columns"] for view in record["request"]["views"]] == [["region", "age"]]
    assert "region x age" in done.out
    assert "No data was touched." in done.out


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--by", "age", "--view", "region"), 1, "must not come with views"),
        (("--by", "age,aeg"), 1, "did you mean 'age'?"),
        (("--by", "age,age"), 1, "age"),
        (("--view", "age,region", "--view", "region,age"), 1, "region"),
        (("--by", "age,region", "--mechanism", "tree"), 1, "one column"),
        (("--by", "age", "--mechanism", "grid"), 1, "several columns"),
        (("--by", "age,,region"), 2, "must be names between commas"),
        (("--by", ""), 1, "must have a column in each view"),
        (("--view", 'age,"region'), 2, "must be names between commas"),
        (("--view", "age\nregion"), 2, "must be names between commas"),
    ],
)
def test_what_cannot_go_together(
    run: Run, people: Path, options: tuple[str, ...], code: int, said: str
) -> None:
    """Nothing is written, and the message says which rule was broken."""
    done = run("publish", people, *COLUMNS, *options, "--epsilon", 1, "-o", "out.parquet")

    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert not Path("out.parquet").exists()


def test_too_many_columns_are_pointed_to_views(run: Run, folder: Path) -> None:
    """More than forty columns cannot be one release; the message says what can be."""
    columns = [part for number in range(41) for part in ("--column", f"c{number}:integer(0,9999)")]

    done = run("plan", *columns, "--epsilon", 1)

    assert done.code == 1
    assert "views" in done.err


def test_an_empty_table_has_a_release(run: Run, folder: Path) -> None:
    """Its boxes hold nobody, up to noise."""
    Path("empty.csv").write_text("age,region\n")

    done = run("publish", "empty.csv", *COLUMNS, "--epsilon", 1, "-o", "out.parquet")
    [record] = run("query", "out.parquet", "count where age >= 30 and region = north", "--json").records

    assert (done.code, done.err) == (0, "")
    assert record["worst"]["low"] <= 0 <= record["worst"]["high"]


def test_an_interrupted_box_release_leaves_nothing(
    run: Run, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is there after Ctrl-C while noise is drawn."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PIPELINE, "draw", interrupt)
    before = set(people.parent.iterdir())

    done = run("publish", people, *COLUMNS, "--epsilon", 1, "-o", "out.parquet")

    assert (done.code, done.err) == (130, "partita: interrupted\n")
    assert set(people.parent.iterdir()) == before


# --- looking ----------------------------------------------------------------------------------


def test_info_shows_views_of_several_columns(run: Run, joint: Path) -> None:
    """Every column is drawn, and the record has the views."""
    done = run("info", joint)
    [record] = run("info", joint, "--json").records

    assert done.code == 0
    assert [name for name in ("age", "wage", "region") if f"\n{name}\n" not in done.out] == []
    assert max(map(len, done.out.splitlines())) <= 100
    assert [view["columns"] for view in record["views"]] == [["age", "wage", "region"]]
    assert record["columns"][0]["specials"]["null"]["value"] == pytest.approx(8, abs=0.01)


def test_mechanisms_say_for_how_many_columns_they_are(run: Run) -> None:
    """Those for several columns are in the same list."""
    kinds = {each["mechanism"]: each["columns"] for each in run("mechanisms", "--json").records}

    assert (kinds["tree"], kinds["grid"], kinds["rectangles"]) == ("one", "several", "several")


def test_plot_draws_maps_and_slices(run: Run, joint: Path) -> None:
    """Two columns give a heat map; conditions draw a part of the rows; three columns are too many."""
    pytest.importorskip("matplotlib")

    heat = run("plot", joint, "age", "wage", "-o", "map.png", "--json")
    part = run("plot", joint, "wage", "--where", "age between 30 and 39 and region = north", "-o", "part.svg")

    assert heat.records == [{"path": "map.png", "columns": ["age", "wage"]}]
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    assert (part.code, Path("part.svg").exists()) == (0, True)
    assert run("plot", joint, "age", "wage", "region", "-o", "three.png").code == 2
    assert run("plot", joint, "age", "--where", "wage >", "-o", "bad.png").code == 2
    assert run("plot", joint, "age", "--where", "waeg > 3", "-o", "bad.png").code == 1
    assert not Path("bad.png").exists()
