"""The README is short, and its ten lines print what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from partita.testing import EndlessTape, system_noise, tape_noise
from tests.docs.fences import fences
from tests.docs.run import ROOT

README = (ROOT / "README.md").read_text()
LONGEST = 150
SEED = 1


def block(language: str) -> str:
    """The first fence in a language."""
    return next(fence.text for fence in fences(README) if fence.language == language)


def numbers(text: str) -> Iterator[float]:
    """The first number of each line."""
    for line in text.splitlines():
        yield float(re.findall(r"\d[\d,.]*", line)[0].replace(",", ""))


def test_the_readme_is_short() -> None:
    """It has at most 150 lines, and ten lines of code."""
    code = [line for line in block("python").splitlines() if line]

    assert len(README.splitlines()) <= LONGEST
    assert len(code) == 10


def test_the_ten_lines_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a fixed tape, to the letter."""
    monkeypatch.chdir(tmp_path)
    with system_noise(tape_noise(EndlessTape(SEED))):
        exec(compile(block("python"), "README.md", "exec"), {})

    assert capsys.readouterr().out == block("text")


def test_the_answers_shown_are_near_the_truth() -> None:
    """Which is computed here from the rows of the README."""
    rows = [(18 + i % 60, 20_000 + 300 * (i % 60) + 7_919 * i % 15_000) for i in range(6_000)]
    pay = sorted(salary for age, salary in rows if 30 <= age <= 39)
    truth = [sum(salary >= 35_000 for salary in pay), pay[len(pay) // 2 - 1], sum(pay) / len(pay)]

    assert "The true answers are {:,}, {:,} and {:,.1f}.".format(*truth) in README
    assert all(
        abs(shown - true) < 0.1 * true for shown, true in zip(numbers(block("text")), truth, strict=True)
    )
