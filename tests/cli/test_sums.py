"""Sums and answers to queries from a shell: published, planned, asked and shown."""

from __future__ import annotations

import re
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from partita.public.file import load

from .conftest import CANARY, SPEC, Run, table

TABLE = table()
WAGES = [
    wage for age, wage in zip(TABLE["age"], TABLE["wage"], strict=True) if age is not None and 30 <= age <= 39
]


@pytest.fixture(scope="module")
def made(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of wages by age, one of answers, with so large an epsilon that there is hardly any noise."""
    from partita.cli import main

    folder = tmp_path_factory.mktemp("sums")
    (folder / "release.toml").write_text(
        SPEC.split("[release]")[0] + '[release]\nepsilon = "10000"\nby = ["age"]\nmoments = ["wage"]\n'
    )
    publish = ["publish", str(shelf / "people.parquet"), "--spec", str(folder / "release.toml"), "-o"]
    assert main([*publish, str(folder / "sums.release.parquet")]) == 0
    (folder / "queries.toml").write_text(
        SPEC.split("[release]")[0]
        + '[release]\nepsilon = "10000"\nqueries = ["between(age, 30, 39) * value(wage)", "total()"]\n'
        + 'mechanism = "linear"\n'
    )
    publish[3] = str(folder / "queries.toml")
    assert main([*publish, str(folder / "answers.release.parquet")]) == 0
    return folder


@pytest.fixture
def sums(made: Path, folder: Path) -> Path:
    """The release of sums, in the working directory."""
    return Path(shutil.copy(made / "sums.release.parquet", folder))


@pytest.fixture
def answers(made: Path, folder: Path) -> Path:
    """The release of answers, in the working directory."""
    return Path(shutil.copy(made / "answers.release.parquet", folder))


def test_sums_are_asked_by_their_keys(run: Run, sums: Path) -> None:
    """A value, its error, two kinds of bounds, and what values it covers."""
    where = "where age between 30 and 39"
    done = run("query", sums, *(f"{what} of wage {where}" for what in ("sum", "mean", "variance", "std")))

    assert done.code == 0
    assert "covers" in done.out.splitlines()[1]
    mean = sum(WAGES) / len(WAGES)
    said = run("query", sums, f"sum of wage {where}", f"mean of wage {where}", "--json").records
    assert said[0]["value"] == pytest.approx(sum(WAGES), abs=2)
    assert said[1]["value"] == pytest.approx(mean, abs=0.2)
    assert said[0]["covers"]["low"] <= 0 < said[0]["covers"]["high"]
    assert said[0]["covers"]["text"]
    assert {"none_below", "none_above"} <= set(said[0]["covers"])
    assert said[0]["interval"]["low"] <= said[0]["value"] <= said[0]["interval"]["high"]
    assert said[0]["worst"]["low"] <= said[0]["value"] <= said[0]["worst"]["high"]


def test_a_mean_of_nobody_is_not_determinable(run: Run, folder: Path, people: Path) -> None:
    """The text says so, and JSON has null."""
    (folder / "spec.toml").write_text(SPEC)
    publish = [
        "publish",
        people,
        "--spec",
        "spec.toml",
        "--by",
        "age",
        "--sum",
        "wage",
        "--mechanism",
        "auto",
    ]
    assert run(*publish, "-o", "r.parquet").code == 0
    done = run("query", "r.parquet", "mean of wage where age = 119")

    assert "not determinable" in done.out
    [record] = run("query", "r.parquet", "mean of wage where age = 119", "--json").records
    assert record["value"] is None


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("sum of wages", "did you mean 'wage'?"),
        ("sum of hired", "publish with sums=['hired']"),
        ("mean of wage where hired >= 2021-01-01", "keys by which 'wage' was summed"),
        ("answers", "publish with queries="),
    ],
)
def test_what_was_not_published_is_refused(run: Run, sums: Path, question: str, said: str) -> None:
    """With what to publish instead."""
    done = run("query", sums, question)

    assert (done.code, done.out) == (1, "")
    assert said in done.err


def test_answers_are_listed(run: Run, answers: Path) -> None:
    """Every query in its text form, with its answer and its error."""
    done = run("query", answers, "answers")
    [record] = run("query", answers, "answers", "--json").records

    assert "between(age, 30, 39) * value(wage)" in done.out
    assert [each["query"] for each in record["answers"]] == ["between(age, 30, 39) * value(wage)", "total()"]
    assert record["answers"][0]["value"] == pytest.approx(sum(WAGES), abs=5)
    assert record["answers"][1]["value"] == pytest.approx(400, abs=1)
    assert run("query", answers, "count").code == 0


@pytest.mark.parametrize("name", ["sums", "answers"])
def test_info_and_receipts_tell_of_sums_and_answers(
    run: Run, name: str, request: pytest.FixtureRequest
) -> None:
    """As text and as JSON, and no message holds a value of the data."""
    path = request.getfixturevalue(name)
    done = run("info", path)
    [record] = run("info", path, "--json").records

    assert done.code == 0
    assert CANARY not in done.out + done.err
    if name == "sums":
        assert "Sums of wage" in done.out
        assert "Special cells of wage: below " in " ".join(done.out.split())
        assert set(record["sums"][0]["specials"]) == {"below", "above", "invalid", "null"}
        assert (record["sums"][0]["column"], record["sums"][0]["keys"]) == ("wage", ["age"])
        assert record["sums"][0]["moments"] is True
        assert [view["view"] for view in record["views"]] == ["age", "sum of wage by age"]
    else:
        assert "Answers to 2 queries about age, wage" in done.out
        assert (record["queries"]["number"], record["error"]["bound"]) == (2, None)


def test_receipts_tell_of_the_special_cells_of_sums(run: Run, folder: Path, people: Path, spec: Path) -> None:
    """A summed column that was not counted has its rows below, above, invalid and null in the receipt."""
    common = ["publish", people, "--spec", spec, "--mechanism", "auto", "--by", "", "--sum", "wage"]
    done = run(*common, "--epsilon", "10000", "-o", "text.parquet")
    [record] = run(*common, "--epsilon", "10000", "-o", "json.parquet", "--json").records
    [beside] = [line for line in done.out.splitlines() if line.startswith("beside")]
    [summed] = record["sums"]

    assert re.findall(r"(\w+) [-\d.,]+ (?:± |\()", beside) == ["below", "above", "invalid", "null"]
    missing = sum(wage is None for wage in TABLE["wage"])
    assert summed["specials"]["null"]["value"] == pytest.approx(missing, abs=1)


def test_flags_say_what_a_spec_says(run: Run, folder: Path, people: Path, spec: Path) -> None:
    """--sum, --moment, --queries and --delta reach the release, and count for more than the spec."""
    common = ["publish", people, "--spec", spec, "--mechanism", "auto"]

    assert run(*common, "--by", "", "--sum", "wage", "--moment", "age", "-o", "whole.parquet").code == 0
    asked = ["--queries", "value(wage)", "--queries", "total()", "--delta", "1e-6"]
    done = run(*common[:-1], "instance-specific", *asked, "-o", "answers.parquet")
    assert done.code == 0, done.err
    whole = load("whole.parquet")
    assert [(view.column, view.keys, view.moments) for view in whole.sums] == [
        ("wage", (), False),
        ("age", (), True),
    ]
    answers = load("answers.parquet")
    assert answers.labels() == ["value(wage)", "total()"]
    assert len(answers.views) == 4
    assert answers.guarantee is not None
    assert answers.guarantee.delta == Fraction(1, 10**6)


def test_plans_show_the_split(run: Run, spec: Path) -> None:
    """Every view with its part of epsilon, as text and as JSON."""
    done = run("plan", "--spec", spec, "--by", "age", "--sum", "wage", "--mechanism", "auto")
    [record] = run(
        "plan", "--spec", spec, "--by", "age", "--sum", "wage", "--mechanism", "auto", "--json"
    ).records

    assert "sum of wage by age" in done.out
    assert [view["view"] for view in record["request"]["views"]] == ["age", "sum of wage by age"]
    assert "of epsilon" in record["why"]["sum of wage by age"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('sums = "wage"', "release.sums must be a list"),
        ("sums = [5]", "release.sums must be text"),
        ('queries = "total()"', "release.queries must be a list"),
        ('delta = "much"', "release.delta must be"),
    ],
)
def test_a_spec_is_read_strictly(run: Run, folder: Path, entry: str, said: str) -> None:
    """What is no list of names is refused at its place."""
    (folder / "wrong.toml").write_text(SPEC + entry + "\n")

    done = run("plan", "--spec", "wrong.toml")
    assert done.code == 1
    assert said in done.err
