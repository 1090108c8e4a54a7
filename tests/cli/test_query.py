"""`partita query`: answers with their bars, in text and in JSON."""

from __future__ import annotations

import datetime
import io
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import partita as pt
from partita.errors import PrivacyWarning

from .conftest import CANARY, Run


@pytest.mark.parametrize(
    ("question", "truth"),
    [
        ("count", 400),
        ("count where age between 30 and 39", 49),
        ("count where age is null", 8),
        ("count where wage > 50 and wage <= 75", 100),
        ("count where hired >= 2021-01-01", 34),
        ("count where region in (north, south)", 399),
        ("count where region = 'north'", 200),
        ("count where region is other", 1),
        ("difference between (age < 30) and (age < 40)", -49),
        ("count where age between 200 and 300", 0),
    ],
)
def test_a_count_has_two_bars(run: Run, exact: Path, question: str, truth: int) -> None:
    """Value, error, interval and guaranteed bounds; without noise all of them are at the truth."""
    [record] = run("query", exact, question, "--json").records
    worst, interval = record["worst"], record["interval"]

    assert record["value"] == pytest.approx(truth, abs=0.01)
    assert 0 <= record["error"] < 2
    assert worst["low"] <= record["value"] <= worst["high"]
    assert interval["low"] <= record["value"] <= interval["high"]
    assert worst["low"] <= truth <= worst["high"]


def test_bars_follow_their_options(run: Run, exact: Path) -> None:
    """A higher confidence widens the interval, a smaller beta the guaranteed bounds."""
    wide, narrow = (
        run("query", exact, "count where age <= 50", "--confidence", c, "--beta", b, "--json").records[0]
        for c, b in ((0.99, 0.001), (0.5, 0.2))
    )

    for bar in ("interval", "worst"):
        assert wide[bar]["low"] <= narrow[bar]["low"] <= narrow[bar]["high"] <= wide[bar]["high"]
        assert wide[bar] != narrow[bar]
    assert (wide["interval"]["confidence"], wide["worst"]["beta"]) == (0.99, 0.001)


@pytest.mark.parametrize(
    ("question", "read", "last"),
    [
        ("median of hired", datetime.date.fromisoformat, datetime.date(2023, 12, 31)),
        ("quantile 0.9 of wage", Decimal, 1000),
        ("median of age", int, 120),
    ],
)
def test_a_quantile_is_a_value_of_the_column(
    run: Run, release: Path, question: str, read: Callable[[Any], Any], last: Any
) -> None:
    """It lies between its bounds, and these in the domain; dates and exact numbers are text."""
    [record] = run("query", release, question, "--json").records

    assert 0 <= record["ranks"]["low"] <= record["ranks"]["high"] <= 1
    assert read(record["worst"]["low"]) <= read(record["value"]) <= read(record["worst"]["high"]) <= last
    assert read(record["interval"]["low"]) <= read(record["interval"]["high"]) <= last


def test_many_questions_in_one_call(run: Run, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From arguments and from stdin, answered in their order, one JSON object for each."""
    monkeypatch.setattr("sys.stdin", io.StringIO("count where age < 30\n\nmedian of wage\n"))
    done = run("query", release, "count", "-", "histogram of age in 3 bins", "--json")

    asked = [record["question"] for record in done.records]
    assert asked == ["count", "count where age < 30", "median of wage", "histogram of age in 3 bins"]


def test_a_record_has_the_question_as_it_was_asked(run: Run, release: Path) -> None:
    """Beside the question as it was understood."""
    text = "COUNT where age>=30 and age<=39"

    [record] = run("query", release, text, "--json").records

    assert (record["asked"], record["question"]) == (text, "count where age between 30 and 39")


@pytest.mark.parametrize("stdin", [None, "\n\n"])
def test_no_question_has_no_answer(
    run: Run, release: Path, monkeypatch: pytest.MonkeyPatch, stdin: str | None
) -> None:
    """An empty or missing stdin is answered with nothing."""
    monkeypatch.setattr("sys.stdin", None if stdin is None else io.StringIO(stdin))

    assert run("query", release, "-") == (0, "", "")


def test_a_mistake_on_stdin_is_a_usage_error(
    run: Run, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is on the command line; the others are answered."""
    monkeypatch.setattr("sys.stdin", io.StringIO("count\ncuont\n"))

    done = run("query", release, "-")

    assert done.code == 2
    assert done.out.splitlines()[1].split()[0] == "count"
    assert "'cuont': " in done.err
    assert "did you mean count?" in done.err


def test_answers_in_text_are_aligned(run: Run, release: Path) -> None:
    """Answers of one line share a table; a longer one has its own, under its question."""
    done = run(
        "query", release, "count", "median of hired", "cdf of age at 10, 20", "histogram of region", "count"
    )

    blocks = [block.splitlines() for block in done.out.rstrip("\n").split("\n\n")]
    assert [block[0].split()[0] for block in blocks] == ["question", "cdf", "histogram", "question"]
    assert [len(block) for block in blocks] == [3, 4, 4, 2]
    assert len({len(line) for line in blocks[0]}) == 1


def test_a_cdf_without_values_is_shown_at_twentieths(run: Run, exact: Path) -> None:
    """Shares and counts never fall."""
    [record] = run("query", exact, "cdf of wage", "--json").records

    assert 1 < len(record["cdf"]) < 20
    for name in ("share", "count"):
        shown = [line[name] for line in record["cdf"]]
        assert shown == sorted(shown)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("count where aeg = 3", "did you mean 'age'?"),
        ("count where age = young", "age must be a finite number"),
        ("count where age between 39 and 30", "swap the two ends"),
        ("count where region = west", "choose among 'north', 'south'"),
        ("count where age = 1 and wage = 1", "age"),
        ("count where age is other", "age"),
        ("count where age = 1e999999999", "age must be a finite number"),
        (
            "difference between (age < 3) and (age <= 5)",
            "got 'age < 3 beside age <= 5'; write <= and >= in all of them",
        ),
        ("median of aeg", "did you mean 'age'?"),
        ("cdf of hired at yesterday", "values must be a date or a time"),
        ("sum of wage", "this release has counts only, got 'wage'; publish with sums=['wage']"),
        ("mean of wage where age < 30", "publish with sums=['wage']"),
    ],
)
def test_a_question_that_has_no_answer(run: Run, release: Path, question: str, said: str) -> None:
    """Exit code 1 and a typed error; the others of the call are answered all the same."""
    done = run("query", release, "count", question, "median of age")

    assert done.code == 1
    assert [line.split("  ")[0] for line in done.out.splitlines()] == ["question", "count", "median of age"]
    assert said in done.err
    assert repr(question) in done.err
    assert "unexpected" not in done.err


def test_an_error_has_an_entry_of_its_own(run: Run, release: Path) -> None:
    """In the order of the questions; the exit code says that one was not answered, and how it failed."""
    done = run("query", release, "count", "count where aeg = 3", "count by region limit 1", "--json")

    assert done.code == 1
    assert [sorted(record)[:2] for record in done.records][1] == ["asked", "error"]
    assert done.records[1]["asked"] == "count where aeg = 3"
    assert "did you mean 'age'?" in done.records[1]["error"]
    assert [record.get("question") for record in done.records] == ["count", None, "count by region limit 1"]
    assert run("query", release, "cuont").code == 2
    assert "'cuont':" not in run("query", release, "cuont").err


def test_groups_are_rows_of_a_table(run: Run, exact: Path) -> None:
    """Names, counts and intervals, in the order that is asked for, with what the order can support."""
    done = run("query", exact, "count by region order by count desc limit 2", "count by year(hired)")

    first, second = done.out.rstrip("\n").split("\n\n")
    heads, north, south, *notes = first.splitlines()[1:]
    assert heads.split()[:3] == ["region", "count", "±"]
    assert [line.split()[:2] for line in (north, south)] == [["north", "200"], ["south", "199"]]
    assert notes[0] == "2 more groups"
    assert "all neighbours can be told apart; place 2 is clear of place 3" in notes[1]
    assert [line.split()[0] for line in second.splitlines()[2:4]] == ["2020", "2021"]
    assert "are in no group" in second


def test_groups_in_json(run: Run, exact: Path) -> None:
    """A record has the keys, and each group its names, value, error and interval."""
    [record] = run("query", exact, "count by month(hired) where hired >= 2020-12", "--json").records

    assert (record["by"], record["statistic"], record["number"]) == (
        ["month(hired)"],
        "count",
        len(record["groups"]),
    )
    assert record["groups"][0]["key"] == ["2020-12"]
    assert record["groups"][0]["value"] == pytest.approx(31, abs=0.01)
    assert record["groups"][0]["low"] <= record["groups"][0]["value"] <= record["groups"][0]["high"]


def test_numbers_beyond_any_float_are_compared_exactly(run: Run, exact: Path) -> None:
    """A bound of a hundred digits is just a bound."""
    [record] = run("query", exact, f"count where age between 0 and 1{'0' * 100}", "--json").records

    assert record["value"] > 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty", b""),
        ("text", b"no release"),
        ("magic", b"PAR1PAR1"),
        ("people.parquet", None),
        (".", None),
        ("x", None),
    ],
)
@pytest.mark.parametrize("command", [("query", "count"), ("info",)])
def test_what_is_no_release_is_refused(
    run: Run, people: Path, name: str, content: bytes | None, command: tuple[str, ...]
) -> None:
    """Empty, foreign and missing files, folders, and the secret table itself, of which nothing is shown."""
    if content is not None:
        Path(name).write_bytes(content)

    done = run(command[0], name, *command[1:])

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("partita: error: ")
    assert "unexpected" not in done.err
    assert CANARY not in done.err


def test_correlation_and_regression_have_words(run: Run, joint: Path) -> None:
    """They say over which rows they are, in text and in JSON."""
    outcome = run("query", joint, "correlation of age, wage", "regression of wage on age")
    [found] = run("query", joint, "correlation of age, wage", "--json").records
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        release = pt.load(joint)

    assert "is no guarantee" in outcome.out
    assert "intercept" in outcome.out
    assert found["value"] == pytest.approx(release.correlation("age", "wage").value, nan_ok=True)
    assert found["note"] in outcome.out
    assert found["worst"] == {"beta": 0.05, "low": -1.0, "high": 1.0}


def test_a_share_is_written_as_a_decimal(run: Run, joint: Path) -> None:
    """0.9 stays 0.9, and a third stays 1/3."""
    out = run("query", joint, "quantile 0.9 of age", "quantile 1/3 of age").out

    assert "quantile 0.9 of age" in out
    assert "quantile 1/3 of age" in out
