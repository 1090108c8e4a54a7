"""The reliability page says what the recorded campaign found, and the campaign can find something."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from campaign import page
from campaign.__main__ import PARTS
from campaign.inputs import Canary
from campaign.overheard import overheard
from campaign.part import Outcome
from partita.errors import InvalidData

RECORD: dict[str, Any] = json.loads(page.RECORD.read_text())


@pytest.mark.parametrize("part", PARTS)
def test_the_recorded_run_reached_its_goal(part: str) -> None:
    """As many cases as the part asks for, and no violation."""
    asked = import_module(f"campaign.{part}").PART

    assert RECORD[part]["goal"] == asked.goal
    assert RECORD[part]["cases"] >= asked.goal
    assert RECORD[part]["violations"] == []


def test_the_page_has_the_figures_of_the_record() -> None:
    """`python -m campaign.page` would change nothing, and would change the page if a figure were another."""
    text, other = page.PAGE.read_text(), {**RECORD, "files": {**RECORD["files"], "cases": 17}}

    assert page.written(text, RECORD) == text
    assert page.written(text, other) != text


def test_faults_are_counted() -> None:
    """An outcome keeps what was wrong, and where."""
    outcome = Outcome.of([("a", None), ("b", "lost"), ("a", None)])

    assert (outcome.cases, outcome.violations, dict(outcome.spread)) == (3, ("b: lost",), {"a": 2, "b": 1})


def _in_the_message(canary: Canary, folder: Path) -> None:
    raise InvalidData(canary.word, "must be so", fix="do it")


def _in_the_context(canary: Canary, folder: Path) -> None:
    try:
        int(canary.word)
    except ValueError:
        raise InvalidData("x", "must be so", fix="do it") from None


def _printed(canary: Canary, folder: Path) -> None:
    print(f"{canary.whole:,}")


def _in_a_file(canary: Canary, folder: Path) -> None:
    (folder / "left.bin").write_bytes(canary.whole.to_bytes(8, "little"))


@pytest.mark.parametrize("leaks", [_in_the_message, _in_the_context, _printed, _in_a_file])
def test_a_canary_that_is_seen_is_found(leaks: Any, tmp_path: Path) -> None:
    """In a message, behind an error, on the screen with separators, and as bytes of a file."""
    canary = Canary(4)

    assert overheard(lambda: leaks(canary, tmp_path), tmp_path).leaks(canary.signs, given=[]) != []


def test_an_error_that_is_not_ours_is_a_surprise(tmp_path: Path) -> None:
    """Even if it says nothing."""
    assert overheard(lambda: 1 // 0, tmp_path).surprise is not None
    assert overheard(lambda: None, tmp_path).surprise is None
