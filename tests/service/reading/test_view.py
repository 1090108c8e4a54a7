"""What the page sees: all of it from one address, and equal to what the release says."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.public.records import to_plain
from partita.public.release import Release
from partita.public.window import find_window
from partita.service.reading.questions import deviations

from .conftest import Client

VIEW = "/releases/people/view.json"


def view(client: Client, **asked: Any) -> Any:
    """What is seen."""
    answer = client.get(VIEW, **asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_column_is_shown_in_even_bins(client: Client, release: Release) -> None:
    """With bars at the confidence; of a hundred ages, fifty pairs."""
    shown = view(client, x="age", bins=60, confidence=0.9)
    expected = release.histogram("age", 50)

    [axis] = shown["axes"]
    assert (axis["column"], axis["kind"], axis["size"]) == ("age", "integer", "100")
    assert list(map(int, axis["lows"])) == list(expected.lows)
    assert shown["values"] == expected.counts.values.tolist()
    assert shown["half"] == (deviations(0.9) * expected.counts.error).tolist()
    assert shown["small"] == [
        half >= value for half, value in zip(shown["half"], shown["values"], strict=True)
    ]


def test_the_distribution_and_its_quantiles_are_shown(client: Client, release: Release) -> None:
    """Shares at the last value of each bin, within a band; quantiles with their intervals."""
    shown = view(client, x="seen", bins=30)

    cdf, at = shown["cdf"], shown["cdf"]["at"]
    assert at == shown["axes"][0]["highs"]
    assert cdf["share"] == release.cdf("seen", at).fractions.tolist()
    assert all(
        low <= share <= high for low, share, high in zip(cdf["low"], cdf["share"], cdf["high"], strict=True)
    )
    assert [each["q"] for each in shown["quantiles"]] == [0.05, 0.25, 0.5, 0.75, 0.95]
    assert shown["quantiles"][2]["value"] == str(release.quantile("seen", 0.5).value)


def test_conditions_on_what_is_shown_are_the_selection(client: Client, release: Release) -> None:
    """They are counted and take nothing from the picture; conditions on other columns do."""
    shown = view(client, x="age", where="age between 30 and 39 and town = Rome")

    seen = release.counts({"age": ([0], [1]), "town": "Rome"})
    assert shown["selection"]["ranges"] == {"age": {"low": "30", "high": "39"}}
    assert shown["selection"]["count"]["value"] == release.count(age=(30, 39), town="Rome").value
    assert shown["total"]["value"] == release.count(town="Rome").value
    assert shown["filter"] == "town = Rome"
    assert shown["values"][0] == seen.values[0]


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("", {}),
        ("town = Rome", {"town": ["Rome"]}),
        ("town in (Rome, Bari)", {"town": ["Rome", "Bari"]}),
        ("age = 30", {}),
        ("town is other", {}),
    ],
)
def test_single_values_are_selected(client: Client, where: str, values: dict[str, list[str]]) -> None:
    """Of the columns that are shown; those of others filter, and special cells are no values."""
    assert view(client, x="town", where=where)["selection"]["values"] == values


def test_a_column_says_where_its_rows_lie(client: Client, release: Release) -> None:
    """By the window of its pictures, as text that questions read; null is the whole axis."""
    columns = {each["name"]: each for each in client.get("/releases/people.json").json()["columns"]}

    for name, column in columns.items():
        line = release.slice(name)
        window = find_window(line)
        ends = [str(to_plain(end)) for end in line.domain.decode([window.first, window.last])]
        assert column["window"] == (None if window.whole else ends)


def test_special_cells_stand_beside(client: Client, release: Release) -> None:
    """Each with its error, of the rows that are seen."""
    shown = view(client, x="age", where="town = Rome")

    assert [each["name"] for each in shown["specials"]] == ["below", "above", "invalid", "null"]
    assert shown["specials"][3]["value"] == release.count({"age": special(), "town": "Rome"}).value


def special() -> object:
    """The cell of those who have no value."""
    from partita import NULL

    return NULL


def test_two_columns_are_shown_together(client: Client, release: Release) -> None:
    """A row for each bin of the first; beside it each column given what is selected of the other."""
    shown = view(client, x="age", y="town", bins=20, where="town in (Rome, Bari) and age < 50")
    expected = release.histogram("age", "town", (20, 3))

    np.testing.assert_allclose(shown["values"], expected.counts.values)
    np.testing.assert_allclose(shown["error"], expected.counts.error)
    given = release.counts({"town": ["Rome", "Bari", "L'Aquila"], "age": (None, 50)}, closed={"age": "left"})
    assert shown["conditional"]["y"]["values"] == pytest.approx(given.values.tolist())
    assert len(shown["conditional"]["x"]["values"]) == 20
    assert shown["selection"]["count"]["question"] == "count where town in (Rome, Bari) and age < 50"


def test_a_window_shows_a_part_of_an_axis(client: Client, release: Release) -> None:
    """Its bins lie between two values; an end beyond the declared bounds is that of the axis."""
    shown = view(client, x="salary", bins=4, **{"from": "100", "to": "199.5"})
    wide = view(client, x="salary", **{"from": "-5", "to": "1e6"})

    assert (shown["axes"][0]["low"], shown["axes"][0]["high"]) == ("100.0", "199.5")
    assert sum(shown["values"]) == pytest.approx(release.count(salary=("100", "199.5")).value)
    assert wide["axes"] == view(client, x="salary")["axes"]


def test_a_table_of_what_is_seen(client: Client) -> None:
    """The same numbers, a line for each bin or pair of bins."""
    shown = view(client, x="age", y="town", bins=4)

    text = client.get("/releases/people/view.csv", x="age", y="town", bins=4).text

    heads, *rows = csv.reader(io.StringIO(text))
    assert heads == ["age from", "age to", "town from", "town to", "count", "error", "half"]
    assert [float(row[4]) for row in rows] == [count for line in shown["values"] for count in line]
    assert rows[1][:4] == ["0", "24", "Bari", "Bari"]


def test_what_can_be_copied_asks_the_same(client: Client, shelf: Path) -> None:
    """The Python runs in the folder of the file; the text is a question; the links lead to the same view."""
    shown = view(client, x="age", where="age >= 30 and age < 40 and town in ('L''Aquila', Bari)")
    snippets, value = shown["snippets"], shown["selection"]["count"]["value"]

    ran = subprocess.run(
        [sys.executable, "-c", snippets["python"]], cwd=shelf, capture_output=True, text=True, check=True
    )

    assert ran.stdout.startswith(f"Answer({value:,.0f} ± ")
    assert client.get("/releases/people/ask", q=snippets["text"]).json()["value"] == value
    assert client.send("GET", shown["links"]["json"]).json()["selection"] == shown["selection"]
    assert snippets["curl"].startswith(
        "curl -G http://localhost/releases/people/count --data-urlencode 'where="
    )


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({}, 422),
        ({"x": "nowhere"}, 400),
        ({"x": "age", "y": "age"}, 400),
        ({"x": "age", "y": "salary"}, 400),
        ({"x": "age", "bins": 0}, 422),
        ({"x": "age", "bins": 1_025}, 400),
        ({"x": "age", "y": "town", "bins": 33}, 400),
        ({"x": "age", "from": "50", "to": "40"}, 400),
        ({"x": "age", "from": "old"}, 400),
        ({"x": "age", "where": "age between"}, 400),
        ({"x": "age", "where": "salary < 3"}, 400),
        ({"x": "age", "where": "a" * 5_000}, 400),
        ({"x": "age", "confidence": "nan"}, 422),
        ({"x": "age", "colour": "red"}, 422),
    ],
)
def test_what_cannot_be_shown_is_refused(client: Client, asked: dict[str, Any], status: int) -> None:
    """With a typed error, as JSON and as a table."""
    answers = [client.get(path, **asked) for path in (VIEW, "/releases/people/view.csv")]

    assert [answer.status_code for answer in answers] == [status, status]
    assert all(answer.json()["error"]["message"] for answer in answers)
