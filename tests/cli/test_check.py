"""`partita check`: for the steward alone, and the same outcome for `publish` whatever it found."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from partita.publish import check as module

from .conftest import CANARY, Run


@pytest.fixture
def checked() -> None:
    """Here it is looked up whether a check was run."""


def test_a_check_is_marked_secret_in_its_first_line(run: Run, people: Path, spec: Path) -> None:
    """On stdout; stderr is silent, and the exit code is 0 whatever was found."""
    done = run("check", people, "--spec", spec)

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0].startswith("SECRET: ")
    assert re.search(r"^region +399 \(99\.75%\) +1 \(0\.25%\) +0$", done.out, re.MULTILINE)
    assert CANARY not in done.out


def test_json_says_first_that_it_is_secret(run: Run, people: Path, spec: Path) -> None:
    """And has the exact numbers of each column and of each file."""
    [record] = run("check", people, "--spec", spec, "--json").records

    assert next(iter(record.items())) == ("secret", True)
    assert [each["other"] for each in record["columns"] if each["column"] == "region"] == [1]
    assert record["files"][0]["file"] == str(people)
    assert record["columns"][0]["shares"]["null"] == 8 / 400


def test_columns_and_delimiter_may_be_options(run: Run, folder: Path) -> None:
    """Without a spec; a wrong delimiter is found, and named in the fix."""
    Path("a.csv").write_text("age;city\n30;Rome\n")
    column = ("--column", "age:integer(0,120)")

    wrong, right = run("check", "a.csv", *column), run("check", "a.csv", *column, "--delimiter", ";")

    assert (wrong.code, right.code) == (0, 0)
    assert "separated by a semicolon" in wrong.out
    assert "1 rows" not in wrong.out
    assert "No format looks wrong." in right.out
    assert run("check", "a.csv").code == 2


def test_publish_notes_that_no_check_was_run(run: Run, people: Path, spec: Path) -> None:
    """Once on stderr, until a check of this spec and these files was run; of other columns it is another."""
    other = ("--column", "age:integer(0,99)")

    before = run("publish", people, "--spec", spec, "-o", "a.parquet")
    run("check", people, "--spec", spec)
    after = run("publish", people, "--spec", spec, "-o", "b.parquet")
    changed = run("publish", people, "--spec", spec, *other, "-o", "c.parquet")

    assert before.err.count("no check of this spec and these files was run") == 1
    assert after.err == ""
    assert "no check of this spec" in changed.err
    assert [done.code for done in (before, after, changed)] == [0, 0, 0]


@pytest.mark.parametrize("rows", ["age\n30\n", "age\nwhat\n", "age\n", "age\n\xe0\n"])
def test_publish_behaves_alike_whatever_the_rows_are(run: Run, folder: Path, rows: str) -> None:
    """What a check found changes neither its exit code nor what `publish` says, but for noisy numbers."""
    Path("a.csv").write_bytes(rows.encode("latin-1"))
    column = ("--column", "age:integer(0,120)")

    checked = run("check", "a.csv", *column)
    done = run("publish", "a.csv", *column, "--epsilon", 1, "-o", "a.parquet")

    assert checked.code == 0
    assert (done.code, done.err) == (0, "")
    words = [line.split()[0] for line in done.out.splitlines()]
    assert [word for word in words if word != "hint"] == [
        *("unread", "release", "guarantee", "stated", "view", "column", "beside", "paid")
    ]


def test_an_interrupt_is_told(run: Run, people: Path, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was spent, so there is nothing else to say; no check is noted."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "check", interrupt)

    done = run("check", people, "--spec", spec)

    assert (done.code, done.out, done.err) == (130, "", "partita: interrupted\n")


def test_the_receipt_begins_with_what_could_not_be_read(run: Run, folder: Path) -> None:
    """As noisy shares of released numbers, each with an interval; in JSON, too."""
    rows = [f"{number},Rome" for number in range(100)] + ["what,Paris"] * 100
    Path("a.csv").write_text("\n".join(["age,city", *rows, ""]))
    columns = ("--column", "age:integer(0,120)", "--column", "city:category(Rome,Bari)")
    run("check", "a.csv", *columns)

    done = run(
        "publish", "a.csv", *columns, "--view", "age", "--view", "city", "--epsilon", 4, "-o", "a.parquet"
    )
    again = ("--view", "age", "--view", "city", "--epsilon", 4, "-o", "b.parquet", "--json")
    [record] = run("publish", "a.csv", *columns, *again).records

    first, second = done.out.splitlines()[:2]
    assert first.startswith("unread     age is invalid: ")
    assert second.startswith("unread     city is other: ")
    assert next(iter(record)) == "unread"
    for share in record["unread"]:
        assert share["low"] <= share["share"] <= share["high"]
        assert abs(share["share"] - 0.5) < 0.25


def test_a_release_that_cannot_tell_says_so(run: Run, people: Path, spec: Path) -> None:
    """One of wants has no counts of special cells; of few rows noise hides the shares."""
    column = ("--column", "age:integer(0,120)", "--epsilon", 1)
    Path("few.csv").write_text("age\n1\n")

    wants = run("publish", people, *column, "--want", "median of age", "-o", "a.parquet")
    few = run("publish", "few.csv", *column, "--epsilon", "0.001", "-o", "b.parquet")

    assert wants.out.startswith("unread     this release does not say how many rows are invalid or other")
    assert "unread     age is invalid: " in few.out
    assert "95% from 0.00% to 100.00%" in few.out or "not determinable" in few.out


@pytest.mark.faults
def test_a_check_writes_nothing_beside_the_data(people: Path, spec: Path, tmp_path: Path) -> None:
    """In a process of its own: only the note in the user's state folder is new."""
    before = sorted(path.name for path in people.parent.iterdir())
    command = [sys.executable, "-m", "partita", "check", str(people), "--spec", str(spec)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0
    assert sorted(path.name for path in people.parent.iterdir()) == before
