"""`partita local`: from a question to an estimate, in a shell."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from partita.cli.commands import local
from partita.cli.output import Outcome
from partita.errors import BudgetExceeded, InvalidData, InvalidParameter, InvalidState


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Outcome:
    """The command as declared, run in this process."""
    root = argparse.ArgumentParser()
    local.declare(root.add_subparsers(required=True))
    options = root.parse_args(["local", *words])
    found: Outcome = options.run(options)
    return found


def asked(*words: str) -> Outcome:
    return run("spec", *words, "--epsilon", "4", "-o", "question.json")


def reported(values: list[str], path: str = "reports.jsonl") -> None:
    lines = [run("report", "question.json", "--", value).text for value in values]
    Path(path).write_text("\n".join(lines) + "\n\n")


def estimated(*words: str) -> Outcome:
    return run("estimate", "question.json", "state", *words)


def test_frequencies_from_end_to_end() -> None:
    """A question, sixty reports in two files, two states merged, and an estimate of every cell."""
    said = asked("--labels", "chrome", "firefox")
    reported(["chrome"] * 40, "one.jsonl")
    reported(["firefox"] * 15 + ["lynx"] * 5, "two.jsonl")
    run("collect", "question.json", "one.jsonl", "-o", "half")
    counted = run("collect", "question.json", "two.jsonl", "--merge", "half", "-o", "state")
    found = estimated()

    [spec], [count] = said.records, counted.records
    assert (spec["kind"], spec["size"], spec["epsilon"]) == ("response", 4, 4)
    assert count["reports"] == 60
    assert "any number of looks at the state" in str(count["guarantee"])
    assert [record["label"] for record in found.records] == ["chrome", "firefox", "null", "other"]
    assert "60 reports" in found.text
    assert estimated("--top", "1").records[0]["label"] == "chrome"


def test_a_mean_from_end_to_end() -> None:
    """Numbers, and one that is none."""
    asked("--mean", "-10", "10")
    reported(["2.5"] * 30 + ["-3"] * 30 + ["unknown"])
    run("collect", "question.json", "reports.jsonl", "-o", "state")
    [record] = estimated().records

    assert record["reports"] == 61
    assert set(record) == {"mean", "error", "low", "high", "reports"}


def test_a_device_repeats_itself_and_keeps_its_budget() -> None:
    """The same round gets the same report; a second round is more than the budget allows."""
    asked("--size", "1000")
    device = ("--device", "me.json", "--budget", "5")

    first = run("report", "question.json", "17", *device)

    assert run("report", "question.json", "18", *device).records == first.records
    with pytest.raises(BudgetExceeded):
        run("report", "question.json", "17", *device, "--round", "two")
    with pytest.raises(argparse.ArgumentTypeError, match="--budget"):
        run("report", "question.json", "17", "--device", "me.json")


def test_a_value_can_come_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read as it would be from the command line."""
    asked("--mean", "0", "10")
    monkeypatch.setattr(sys, "stdin", io.StringIO("2.5\n"))

    assert set(run("report", "question.json", "-").records[0]) == {"question", "report", "id"}
    assert sys.stdin.read() == ""


def test_a_report_counted_twice_writes_nothing() -> None:
    """Nor does a line that is no report."""
    asked("--size", "10")
    reported(["1", "2"])

    with pytest.raises(InvalidData, match="counted before"):
        run("collect", "question.json", "reports.jsonl", "reports.jsonl", "-o", "state")
    Path("reports.jsonl").write_text("{")
    with pytest.raises(InvalidData, match="one JSON object"):
        run("collect", "question.json", "reports.jsonl", "-o", "state")
    assert not Path("state").exists()


def test_damaged_files_are_named() -> None:
    """A question that lost its threshold, and a state that is none."""
    asked("--size", "10")
    Path("state").write_text("{}")
    with pytest.raises(InvalidState):
        estimated()

    question: dict[str, Any] = json.loads(Path("question.json").read_text())
    question["randomizer"]["threshold"] = str(2**64 - 1)
    Path("question.json").write_text(json.dumps(question))
    with pytest.raises(InvalidParameter, match="threshold"):
        run("report", "question.json", "1")
