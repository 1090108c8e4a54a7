"""`partita pan`: a sketch from the command line, which says nothing about who came."""

from __future__ import annotations

import argparse
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from partita.cli import pan
from partita.cli.common import CommandParser, Outcome
from partita.errors import BudgetExceeded, InvalidParameter, PartitaError, SourceError
from partita.public.records import to_plain

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "pan.md").read_text()

Run = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs an act in an empty folder; what is given as `lines` comes from stdin."""
    monkeypatch.chdir(tmp_path)
    root = CommandParser()
    pan.declare(root.add_subparsers())

    def ran(line: str, lines: str = "") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        options = root.parse_args(["pan", *line.split()])
        done: Outcome = options.run(options)
        assert json.loads(json.dumps([to_plain(record) for record in done.records]))
        return done

    return ran


def test_a_sketch_is_made_fed_and_asked(run: Run) -> None:
    """The answer comes with its error and its bounds, and with how many are left."""
    run("create clinic.pan --kind density --universe 5000 --epsilon 4 --releases 2")
    run("update clinic.pan", "\n".join(map(str, range(2500))))
    first = run("release clinic.pan density")
    [record] = first.records

    assert 0.3 < record["value"] < 0.7  # type: ignore[operator]
    assert record["releases_left"] == 1
    assert record["low"] <= record["value"] <= record["high"]  # type: ignore[operator]
    run("release clinic.pan density")
    with pytest.raises(BudgetExceeded):
        run("release clinic.pan density")


def test_a_release_says_what_is_left(run: Run) -> None:
    """Which epoch, how many outputs, and when the last one was: of the epoch, and of the sketch."""
    run("create clinic.pan --kind density --universe 500 --epsilon 4 --releases 2 --epochs 2")
    said = [run("release clinic.pan density") for _ in range(4)]

    assert [each.text.split("\n")[1] for each in said] == [
        "epoch 1 of 2, 1 of 2 releases left",
        "the last output of epoch 1 of 2: its table is erased, epoch 2 begins",
        "epoch 2 of 2, 1 of 2 releases left",
        "the last output of epoch 2 of 2: its table is erased, the sketch is over",
    ]
    assert [each.records[0]["epoch"] for each in said] == [1, 1, 2, 2]
    assert [each.records[0]["epoch_over"] for each in said] == [False, True, False, True]


@pytest.mark.parametrize(
    "options", ["density --universe 500", "distinct --most 100000", "registers --universe 500 --most 9"]
)
def test_all_numbers_of_a_release_have_as_many_decimals(run: Run, options: str) -> None:
    """Those of two figures of the half-width of the interval, which is 95% as ± says."""
    run(f"create s.pan --epsilon 4 --kind {options}")
    name = "distinct" if "distinct" in options else "density"
    text = run(f"release s.pan {name}").text.split("\n")[0]
    numbers = re.findall(r"-?\d[\d,]*(?:\.\d+)?", text.partition(", for any data")[0])

    assert 2 <= len(numbers) <= 3
    assert len({len(number.partition(".")[2]) for number in numbers}) == 1
    assert text.endswith("but for 5%")


def test_a_universe_is_for_all_but_distinct(run: Run) -> None:
    """The message says which of the two it is."""
    with pytest.raises(InvalidParameter, match="universe must be left out for distinct"):
        run("create c.pan --kind distinct --epsilon 1 --universe 5")
    with pytest.raises(InvalidParameter, match="universe must be given for density"):
        run("create c.pan --kind density --epsilon 1")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ("--kind distinct --buckets 64 --most 1000 --salt x", "distinct"),
        ("--kind registers --universe 50 --most 5 --lowest -2 --epochs 2", "heavy-2"),
        ("--kind ramp-registers --universe 50 --tops 1,2", "heavy-2"),
        ("--kind density --universe 50 --variant book", "density"),
    ],
)
def test_every_kind_has_its_options(run: Run, options: str, name: str) -> None:
    """And can be asked what it promises, before and after a look was announced."""
    run(f"create s.pan --epsilon 1 {options}")
    run("update s.pan", "1\n2\n2\n")
    said = run("info s.pan")

    assert "one user with any number of events" in said.text
    assert name.partition("-")[0] in said.text
    assert run(f"release s.pan {name}").records[0]["name"] == name
    assert run("announce s.pan").records[0]["kind"] == said.records[0]["kind"]


def test_events_are_taken_back(run: Run) -> None:
    """By registers only."""
    run("create r.pan --kind registers --universe 30 --epsilon 4 --most 3")
    run("create d.pan --kind density --universe 30 --epsilon 1")
    run("update r.pan --by -1", "3\n")
    with pytest.raises(InvalidParameter, match="by is for registers"):
        run("update d.pan --by -1", "3\n")


def test_a_universe_of_names_lies_in_a_public_file(run: Run) -> None:
    """It is given with every update; ids come from a file or from stdin, with any line ends."""
    Path("people.txt").write_text("ann\nbob\neve\n")
    Path("today.txt").write_bytes(b"bob\r\nnobody\r\n\xff\xfe\r\n")
    run("create clinic.pan --kind density --universe people.txt --epsilon 1")
    run("update clinic.pan --universe people.txt --file today.txt")
    with pytest.raises(InvalidParameter, match="universe"):
        run("update clinic.pan", "bob\n")


def test_nothing_is_said_about_those_who_came(run: Run) -> None:
    """Not even how many, or whether they are known."""
    run("create clinic.pan --kind density --universe 40 --epsilon 1")
    said = [
        run("update clinic.pan", lines) for lines in ("", "3\n", "3\n" * 500, "Quetzalcoatlus\n-1\n1.5\n")
    ]

    assert all(each == said[0] for each in said)


@pytest.mark.parametrize(
    "line",
    [
        "create c.pan --kind density --epsilon 1",
        "create c.pan --kind distinct --epsilon 1 --universe 5",
        "create c.pan --kind density --epsilon 1 --universe 5 --tops 3",
        "create c.pan --kind density --epsilon 1 --universe none.txt",
        "create old.pan --kind density --epsilon 1 --universe 5",
        "update none.pan",
        "release old.pan mean-3",
        "update old.pan --file none.txt",
    ],
)
def test_what_cannot_be_is_refused(run: Run, line: str) -> None:
    """With an error of ours."""
    run("create old.pan --kind density --epsilon 1 --universe 5")
    with pytest.raises(PartitaError):
        run(line)


def test_a_missing_file_is_named(run: Run) -> None:
    """The path is public."""
    run("create old.pan --kind density --epsilon 1 --universe 5")
    with pytest.raises(SourceError, match=r"none\.txt"):
        run("update old.pan --file none.txt")


# The page and the example; what stands in fences there is run by tests/docs.


def test_the_commands_on_the_page_run(run: Run) -> None:
    """In order, with ids on stdin where they are read."""
    lines = re.findall(r"^(?:.*\| )?partita pan (.*)$", PAGE, re.MULTILINE)
    for line in lines:
        run(line.partition(" <")[0], "17\n4711\n")

    assert {line.split()[0] for line in lines} == {"create", "update", "release", "announce", "info"}


def test_every_option_is_on_the_page() -> None:
    """Nothing is left to be found by chance."""
    root = CommandParser()
    pan.declare(root.add_subparsers())
    [group] = [action for action in root._actions if isinstance(action, argparse._SubParsersAction)]
    [acts] = [each for each in group.choices["pan"]._actions if isinstance(each, argparse._SubParsersAction)]
    options = {
        option
        for act in acts.choices.values()
        for action in act._actions
        for option in action.option_strings
        if option.startswith("--")
    }

    assert sorted(option for option in options - {"--help"} if f"`{option}" not in PAGE) == []
