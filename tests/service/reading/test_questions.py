"""What the service answers is what the release answers."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any, cast

import numpy as np
import pytest

from partita.answer import Answers
from partita.public.file import load
from partita.public.grammar import parse_question
from partita.public.questions import COUNT, QueryRunner
from partita.public.records import to_plain
from partita.public.release import Release
from partita.service.reading.catalogue import encode_json
from partita.service.reading.questions import Answerer, Bars, add_bars, deviations

from .conftest import LIMITS, Client

WHERE: dict[str, tuple[Any, dict[str, object], Any]] = {
    "age between 30 and 39": ({"age": [30, 39]}, {"age": (30, 39)}, "both"),
    "age >= 30 and age < 40": ({"age": {"low": 30, "high": 40, "closed": "left"}}, {"age": (30, 40)}, "left"),
    "age > 64": ({"age": {"low": 64, "closed": "right"}}, {"age": (64, None)}, "right"),
    "age = 42": ({"age": 42}, {"age": 42}, "both"),
    "age is null": ({"age": {"is": "null"}}, {"age": "null"}, "both"),
    "town in (Rome, 'L''Aquila')": (
        {"town": {"in": ["Rome", "L'Aquila"]}},
        {"town": {"Rome", "L'Aquila"}},
        "both",
    ),
    "salary <= 12.5": ({"salary": [None, 12.5]}, {"salary": (None, "12.5")}, "both"),
    "seen between 2024-01-05 and 2024-02-01": (
        {"seen": ["2024-01-05", "2024-02-01"]},
        {"seen": (date(2024, 1, 5), date(2024, 2, 1))},
        "both",
    ),
    "age between 10 and 19 and town = Rome": (
        {"age": [10, 19], "town": "Rome"},
        {"age": (10, 19), "town": "Rome"},
        "both",
    ),
    "": ({}, {}, "both"),
}
"""Conditions as text, in JSON and in Python, and which ends belong to them."""
ALONE = ["age is null", "town in (Rome, 'L''Aquila')", ""]
"""Conditions that batches of counts do not have."""


def special(where: dict[str, object]) -> dict[str, object]:
    """The same, with special cells for the name of one."""
    from partita import NULL

    return {column: NULL if value == "null" else value for column, value in where.items()}


@pytest.mark.parametrize("text", WHERE)
def test_a_count_is_that_of_the_release_however_it_is_asked(
    client: Client, release: Release, text: str
) -> None:
    """By an address, by text in a body, and in JSON; with guaranteed bounds, to the last digit."""
    _, where, closed = WHERE[text]
    expected = release.count(special(where), closed=closed)

    for shown in asked(client, text, confidence=0.9, beta=0.1):
        assert (shown["value"], shown["error"]) == (expected.value, expected.error)
        assert shown["interval"] == ends(expected.interval(0.9), confidence=0.9)
        assert shown["worst"] == ends(expected.worst(0.1), beta=0.1)
        assert shown["half"] == deviations(0.9) * expected.error
        assert shown["small"] == (shown["half"] >= expected.value)


@pytest.mark.parametrize("text", [text for text in WHERE if text not in ALONE])
def test_a_count_without_guaranteed_bounds_is_a_batch_of_one(
    client: Client, release: Release, text: str
) -> None:
    """Its value and its error are those of the count, and its interval is that of its bar."""
    _, where, closed = WHERE[text]
    many = release.counts(where, closed=closed)
    value, half = float(many.values[0]), deviations(0.9) * float(many.error[0])

    for shown in asked(client, text, confidence=0.9):
        assert (shown["value"], shown["error"], shown["half"]) == (value, many.error[0], half)
        assert shown["interval"] == ends((max(0.0, value - half), value + half), confidence=0.9)
        assert shown["small"] == (half >= value)
        assert "worst" not in shown
    count = release.count(where, closed=closed)
    assert value == pytest.approx(count.value, rel=1e-12)
    assert many.error[0] == count.error


@pytest.mark.parametrize("text", ALONE)
def test_a_count_of_other_conditions_is_asked_for_alone(client: Client, release: Release, text: str) -> None:
    """Sets of values, special cells and all rows have the error and the interval of the release."""
    _, where, closed = WHERE[text]
    expected = release.count(special(where), closed=closed)

    for shown in asked(client, text, confidence=0.9):
        assert (shown["value"], shown["error"]) == (expected.value, expected.error)
        assert shown["interval"] == ends(expected.interval(0.9), confidence=0.9)


class Sparse:
    """Says of anything that about one row is there, give or take two."""

    def counts(self, where: object) -> Answers:
        return Answers(np.array([1.0]), lambda: np.array([2.0]))


def test_an_interval_of_a_count_does_not_go_below_zero() -> None:
    """Where there is hardly anybody, the bar alone would."""
    nobody = COUNT(where={"age": "99"})

    shown = Answerer(LIMITS).answer(cast(Release, Sparse()), nobody, Bars(confidence=0.9))

    half = 2.0 * deviations(0.9)
    assert shown["half"] == half > 1.0
    assert shown["interval"] == {"confidence": 0.9, "low": 0.0, "high": 1.0 + half}


def asked(client: Client, text: str, **bars: float) -> list[Any]:
    """The answers to a count asked by an address, by text in a body, and in JSON."""
    body, _, _ = WHERE[text]
    found = [
        client.get("/releases/people/count", where=text, **bars),
        client.post("/releases/people/count", json={"where": text, **bars}),
        client.post("/releases/people/count", json={"where": body, **bars}),
    ]
    return [answer.json() for answer in found]


def ends(pair: tuple[object, object], **level: float) -> dict[str, object]:
    """Bounds as they are shown."""
    return {**level, "low": pair[0], "high": pair[1]}


def test_guaranteed_bounds_are_given_where_they_are_asked_for(client: Client) -> None:
    """They take a failure probability, and nobody is told one that was not asked for."""
    assert "worst" not in client.get("/releases/people/count").json()


@pytest.mark.parametrize(
    ("value", "error", "small"),
    [(100.0, 1.0, False), (-100.0, 1.0, False), (1.9, 1.0, True), (0.0, 0.0, True)],
)
def test_noise_that_dominates_is_flagged(value: float, error: float, small: bool) -> None:
    """A bar that is as wide as its value is large says so."""
    assert add_bars({"value": value, "error": error}, 2.0)["small"] is small


@pytest.mark.parametrize("what", ["sum", "mean", "variance", "std"])
def test_sums_and_means_are_those_of_the_release(client: Client, release: Release, what: str) -> None:
    """With what values they cover."""
    expected = getattr(release, what)("salary", {"age": (20, 49)})

    by_address = client.get(f"/releases/people/{what}", column="salary", where="age between 20 and 49").json()
    by_body = client.post(
        f"/releases/people/{what}", json={"column": "salary", "where": {"age": [20, 49]}}
    ).json()

    assert by_address == by_body
    assert (by_address["value"], by_address["error"]) == (expected.value, expected.error)
    assert by_address["covers"]["text"] == expected.covers.text


def test_what_is_not_determinable_is_null_and_small() -> None:
    """JSON has no numbers that are none, and no infinite ones."""
    shown = encode_json(add_bars({"value": math.nan, "error": math.inf}, 2.0))

    assert json.loads(shown) == {"value": None, "error": None, "half": None, "small": True}


def test_a_quantile_is_that_of_the_release(client: Client, release: Release) -> None:
    """At the share as it is written, with an interval of values and of ranks."""
    expected = release.quantile("salary", 0.9)

    shown = client.get("/releases/people/quantile", column="salary", q="0.9").json()

    assert shown["value"] == str(expected.value)
    assert shown["interval"] == ends(tuple(map(str, expected.interval(0.95))), confidence=0.95)  # type: ignore[arg-type]
    assert client.post("/releases/people/quantile", json={"column": "salary", "q": 0.9}).json() == shown


def test_a_distribution_is_that_of_the_release(client: Client, release: Release) -> None:
    """At the values asked for, repeated in an address and listed in a body."""
    expected = release.cdf("age", [10, 50])

    rows = client.get("/releases/people/cdf", column="age", at=[10, 50]).json()["cdf"]

    assert [row["share"] for row in rows] == expected.fractions.tolist()
    assert [row["count"] for row in rows] == expected.counts.values.tolist()
    assert client.post("/releases/people/cdf", json={"column": "age", "at": [10, 50]}).json()["cdf"] == rows


def test_histograms_are_those_of_the_release(client: Client, release: Release) -> None:
    """Of one column and of two."""
    line, plane = release.histogram("age", 7), release.histogram("age", "town", (4, 3))

    bins = client.get("/releases/people/histogram", column="age", bins=7).json()["histogram"]
    tiles = client.get("/releases/people/histogram2d", x="age", y="town", x_bins=4, y_bins=3).json()[
        "histogram"
    ]

    assert [(row["low"], row["high"]) for row in bins] == list(zip(line.lows, line.highs, strict=True))
    assert [row["count"] for row in bins] == line.counts.values.tolist()
    assert [row["error"] for row in tiles] == plane.counts.error.ravel().tolist()


def test_a_difference_has_the_error_of_just_that(client: Client, release: Release) -> None:
    """Conditions may be JSON on one side and text on the other."""
    expected = release.difference({"age": (60, None)}, {"age": (None, 29)})

    shown = client.post(
        "/releases/people/difference", json={"first": {"age": [60, None]}, "second": "age <= 29"}
    ).json()

    assert (shown["value"], shown["error"]) == (expected.value, expected.error)


def test_all_published_queries_are_answered(client: Client, shelf: Any) -> None:
    """In their order, with their labels."""
    expected = load(shelf / "asked.release.parquet")

    rows = client.get("/releases/asked/answers").json()["answers"]

    assert [row["query"] for row in rows][:3] == expected.labels()[:3]
    assert [row["value"] for row in rows] == expected.answers().values.tolist()


@pytest.mark.parametrize("where", ["2*age <= 30", "2*age <= 30 and age < 5", "age < 5"])
def test_conditions_on_a_release_without_counts_are_refused(client: Client, where: str) -> None:
    """A range or a half-space gets a typed error, by an address and by a body."""
    replies = [
        client.get("/releases/asked/count", where=where),
        client.post("/releases/asked/count", json={"where": where}),
    ]

    for reply in replies:
        assert reply.status_code == 400
        assert reply.json()["error"]["kind"] == "InvalidParameter"
        assert "whose counts were released" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    "text",
    [
        "count where age >= 30 and town = Rome",
        "count where 2*age <= 100 and town = Bari",
        "median of age",
        "cdf of seen",
        "histogram of town",
        "difference between (age < 30) and (age >= 60)",
        "std of salary",
    ],
)
def test_the_language_is_that_of_the_command_line(client: Client, release: Release, text: str) -> None:
    """Every record has all that `partita query` says, and bars beside."""
    expected = to_plain(QueryRunner(release=release, confidence=0.8, beta=0.2).answer(parse_question(text)))

    shown = client.get("/releases/people/ask", q=text, confidence=0.8, beta=0.2).json()

    assert without_bars(shown) == expected


def without_bars(shown: Any) -> Any:
    """An answer without what the service adds to it."""
    if isinstance(shown, dict):
        return {key: without_bars(value) for key, value in shown.items() if key not in ("half", "small")}
    return list(map(without_bars, shown)) if isinstance(shown, list) else shown


GROUPED: list[tuple[str, dict[str, Any], str]] = [
    (
        "count",
        {"by": ["town"], "order": "count desc", "limit": 2},
        "count by town order by count desc limit 2",
    ),
    (
        "count",
        {"by": ["month(seen)"], "where": "seen >= 2024-02"},
        "count by month(seen) where seen >= 2024-02",
    ),
    ("count", {"by": ["town", "bins(age, 4)"]}, "count by town, bins(age, 4)"),
    ("quantile", {"by": ["town"], "column": "age"}, "median of age by town"),
    ("mean", {"by": ["town"], "column": "salary"}, "mean of salary by town"),
    ("sum", {"by": ["town"], "column": "salary"}, "sum of salary by town"),
]


@pytest.mark.parametrize(("kind", "asked", "text"), GROUPED)
def test_groups_are_those_of_the_release(
    client: Client, release: Release, kind: str, asked: dict[str, Any], text: str
) -> None:
    """By an address, by a body and as text; with beta the record is that of the command line."""
    runner = QueryRunner(release=release, confidence=0.95, beta=0.1)
    expected: Any = to_plain(runner.answer(parse_question(text)))

    for answer in (
        client.get(f"/releases/people/{kind}_by", **asked, beta=0.1),
        client.post(f"/releases/people/{kind}_by", json={**asked, "beta": 0.1}),
        client.get("/releases/people/ask", q=text, beta=0.1),
    ):
        shown = answer.json()
        assert {name: shown[name] for name in expected if name != "groups"} == {
            name: each for name, each in expected.items() if name != "groups"
        }
        for row, wanted in zip(shown["groups"], expected["groups"], strict=True):
            assert {name: row[name] for name in wanted} == wanted


def test_a_group_without_beta_is_a_count_of_a_batch(client: Client, release: Release) -> None:
    """As it is with a single count: so many errors to either side, and never below zero."""
    groups = client.get("/releases/people/count_by", by=["town", "bins(age, 50)"]).json()["groups"]
    alone = client.get("/releases/people/count", where="town = Rome and age between 0 and 1").json()

    assert groups[0]["key"] == ["Rome", "0 to 1"]
    assert groups[0]["value"] == pytest.approx(alone["value"])
    assert (groups[0]["low"], groups[0]["high"]) == pytest.approx(
        (alone["interval"]["low"], alone["interval"]["high"])
    )
    assert groups[0]["half"] == pytest.approx(alone["half"])


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"by": ["town"], "limit": 0}, 422),
        ({}, 422),
        ({"by": ["week(town)"]}, 400),
        ({"by": ["bins(salary, 2000)"]}, 400),
        ({"by": ["town", "town"]}, 400),
        ({"by": ["town"], "order": "age"}, 400),
        ({"by": ["town"], "where": "salary = 0.25"}, 400),
    ],
)
def test_groups_that_cannot_be_answered(client: Client, asked: dict[str, Any], status: int) -> None:
    """Refused with the status of any wrong question."""
    assert client.get("/releases/people/count_by", **asked).status_code == status


def test_ends_between_two_cells_are_refused(client: Client) -> None:
    """As text, in JSON and in batches, with the nearest that there are."""
    for answer in (
        client.get("/releases/people/count", where="salary between 4.1 and 4.4"),
        client.post("/releases/people/count", json={"where": {"salary": [4.1, 4.4]}}),
    ):
        assert answer.status_code == 400
        assert "pass 4.0 or 4.5" in answer.text
    batch = client.post("/releases/people/counts", json={"where": {"salary": {"low": [4.1], "high": [4.4]}}})
    assert batch.status_code == 400


def test_opposites_in_json(client: Client, release: Release) -> None:
    """`not` stands around any other condition."""
    for where, expected in (
        ({"town": {"not": "Rome"}}, "town != Rome"),
        ({"town": {"not": {"in": ["Rome", "Bari"]}}}, "town not in (Rome, Bari)"),
        ({"age": {"not": [30, 39]}}, "age not between 30 and 39"),
        ({"age": {"not": {"is": "null"}}}, "age is not null"),
    ):
        shown = client.post("/releases/people/count", json={"where": where}).json()
        assert shown["question"] == f"count where {expected}"
        assert shown["value"] == release.count(expected).value
