"""`partita local`: from a question to an estimate, in a shell."""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.cli import local
from partita.cli.common import CommandParser, Outcome
from partita.domain import Category
from partita.errors import BudgetExceeded, InvalidParameter, InvalidState, SourceError
from partita.local.question import Frequency, parse_question


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Outcome:
    """The command as declared, run in this process."""
    root = CommandParser()
    local.declare(root.add_subparsers(required=True))
    options = root.parse_args(["local", *words])
    found: Outcome = options.run(options)
    return found


def asked(*words: str) -> Outcome:
    return run("spec", *words, "--epsilon", "4", "--force", "-o", "question.json")


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


def test_a_question_takes_the_place_of_none() -> None:
    """Devices may be answering it: it is overwritten by force only."""
    words = ("spec", "--epsilon", "1", "-o", "question.json", "--size")
    run(*words, "10")
    before = Path("question.json").read_bytes()

    with pytest.raises(InvalidParameter, match=r"output .*--force"):
        run(*words, "20")
    assert Path("question.json").read_bytes() == before
    run(*words, "20", "--force")
    assert Path("question.json").read_bytes() != before


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["report", "none.json", "1"], r"question 'none\.json' could not be read"),
        (["estimate", "question.json", "none.state"], r"state 'none\.state' could not be read"),
        (["collect", "question.json", "none.jsonl", "-o", "state"], r"reports 'none\.jsonl' could not"),
        (["collect", "question.json", "--merge", "none", "-o", "state"], "state 'none' could not"),
    ],
)
def test_a_missing_file_is_named(words: list[str], named: str) -> None:
    """The path is public, and the command says what it wanted there."""
    asked("--size", "10")
    with pytest.raises(SourceError, match=named):
        run(*words)


def test_one_thing_is_no_plural() -> None:
    """A byte, a line, a report; and a mean is of numbers, not of cells."""
    said = asked("--mean", "0", "24")
    reported(["6"])
    Path("bad.jsonl").write_text("{\n")
    counted = run("collect", "question.json", "reports.jsonl", "bad.jsonl", "--skip", "-o", "state")

    assert re.search("mean of numbers from 0 to 24 by .* bytes? a report", said.text)
    assert "1 byte a report" in asked("--labels", "yes", "no").text
    assert "counted 1 report into state, skipped 1 line\n" in counted.text


def test_six_reports_say_next_to_nothing() -> None:
    """No interval is a point, whatever the estimates are, and none leaves [0, 1]."""
    asked("--size", "1000")
    reported(["5"] * 6)
    run("collect", "question.json", "reports.jsonl", "-o", "state")
    found: Any = estimated().records

    assert all(0 <= each["low"] < each["high"] <= 1 for each in found)


def test_a_device_repeats_itself_and_keeps_its_budget() -> None:
    """The same question gets the same report; a second round of it is more than the budget allows."""
    asked("--size", "1000")
    device = ("--device", "me.json", "--budget", "5")

    first = run("report", "question.json", "17", *device)

    assert run("report", "question.json", "18", *device).records == first.records
    asked("--size", "1000", "--round", "two")
    with pytest.raises(BudgetExceeded):
        run("report", "question.json", "17", *device)
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

    with pytest.raises(SourceError, match=r"line 1 of reports\.jsonl holds no new report.*counted before"):
        run("collect", "question.json", "reports.jsonl", "reports.jsonl", "-o", "state")
    Path("bad.jsonl").write_text("\n{")
    with pytest.raises(SourceError, match=r"line 2 of bad\.jsonl .*one JSON object.*--skip"):
        run("collect", "question.json", "reports.jsonl", "bad.jsonl", "-o", "state")
    assert not Path("state").exists()


def test_lines_that_are_no_reports_can_be_skipped() -> None:
    """Malformed, of another round, out of range, repeated in a file or merged before: counted as skipped."""
    asked("--size", "10", "--round", "one")
    reported(["1"], "other.jsonl")
    asked("--size", "10")
    reported(["1", "2", "3"])
    first, second, third = Path("reports.jsonl").read_text().split("\n")[:3]
    Path("before.jsonl").write_text(first)
    run("collect", "question.json", "before.jsonl", "-o", "before")
    beyond = json.dumps({**json.loads(third), "report": "ffff", "id": "0" * 32})
    Path("mixed.jsonl").write_text("\n".join([first, second, "[]", "{", second, "", beyond, third]))

    mixed = ("collect", "question.json", "mixed.jsonl", "other.jsonl", "--merge", "before", "-o", "state")
    [counted] = run(*mixed, "--skip").records

    assert (counted["reports"], counted["skipped"]) == (3, 6)
    with pytest.raises(SourceError, match=r"line 1 of mixed\.jsonl"):
        run(*mixed)


@pytest.mark.parametrize("label", ["007", "nan", "1e5", "1.0", "-0"])
def test_a_label_that_looks_like_a_number_is_kept(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the command line and from stdin: at epsilon 32 the report is the cell of the label."""
    question = Frequency(Category(["7", "0", "1", label]), epsilon=32)
    Path("question.json").write_text(json.dumps(question.to_json()))

    for given in (label, "-"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{label}\n"))
        [said] = run("report", "question.json", "--", given).records
        assert said["report"] == "3"


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


def test_a_range_question_says_quantiles_and_shares() -> None:
    """Quantiles are cells inside of their intervals, and all cells together hold everybody."""
    asked("--range", "16")
    reported(["5"] * 40)
    run("collect", "question.json", "reports.jsonl", "-o", "state")

    said: Any = estimated().records
    [share] = estimated("--between", "0", "15").records

    assert [each["quantile"] for each in said] == [0.1, 0.25, 0.5, 0.75, 0.9]
    assert all(0 <= each["low"] <= each["value"] <= each["high"] < 16 for each in said)
    assert share["share"] == pytest.approx(1.0)
    assert share["reports"] == 40


def test_a_share_of_a_range_needs_a_range_question() -> None:
    """--between is refused where people were asked for one of some cells."""
    asked("--size", "16")
    reported(["5"])
    run("collect", "question.json", "reports.jsonl", "-o", "state")

    with pytest.raises(InvalidParameter, match="range question"):
        estimated("--between", "4", "7")


def test_every_state_that_is_named_is_merged() -> None:
    """`--merge` counts all states, whether they are listed after one option or each after its own."""
    asked("--size", "4")
    for name in ("a", "b", "c"):
        reported(["1"] * 3, f"{name}.jsonl")
        run("collect", "question.json", f"{name}.jsonl", "-o", name)

    for merged in (["--merge", "a", "--merge", "b", "c"], ["--merge", "a", "b", "c"]):
        [counted] = run("collect", "question.json", *merged, "-o", "state").records
        assert counted["reports"] == 9
    [alone] = run("collect", "question.json", "--merge", "a", "-o", "state").records
    assert alone["reports"] == 3


def test_every_label_that_is_named_is_asked_for() -> None:
    """`--labels` takes all labels, whether they are listed after one option or each after its own."""
    for words in (["--labels", "a", "b", "--labels", "c"], ["--labels", "a", "b", "c"]):
        asked(*words)
        domain = json.loads(Path("question.json").read_text())["domain"]
        assert domain == Category(["a", "b", "c"]).to_spec()


def test_an_estimate_of_forged_reports_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the estimate, and a warning beside it."""
    from partita.cli.main import main

    asked("--size", "64")
    question = parse_question(Path("question.json").read_bytes())
    collected: Any = question.aggregator()
    collected.add_many(np.zeros(400, dtype=np.int64))
    Path("state").write_bytes(collected.to_bytes())

    assert main(["local", "estimate", "question.json", "state", "--top", "1"]) == 0
    said = capsys.readouterr()
    assert "400 reports" in said.out
    assert "warning: estimates leave [0, 1] by more than noise explains" in said.err
