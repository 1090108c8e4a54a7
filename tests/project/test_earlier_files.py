"""Files written by an earlier version open and answer as they did then."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from scripts.fixtures import ANSWERS, FIXTURES, READERS, copy_files

EXPECTED: dict[str, Any] = json.loads((FIXTURES / ANSWERS).read_text(encoding="utf-8"))


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """The files in a folder of their own, since some change when they are read."""
    return copy_files(FIXTURES, tmp_path / "copies")


def test_every_file_has_answers() -> None:
    """No reader without recorded answers, and none recorded that nobody reads."""
    assert list(READERS) == list(EXPECTED)


NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


def differences(expected: Any, found: Any, place: str = "") -> Iterator[str]:
    """Where two answers differ; decimal numbers, also in texts, may differ by rounding: 1 in 10^9."""
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        for key in expected:
            yield from differences(expected[key], found[key], f"{place}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{place}/{number}")
    elif (
        isinstance(expected, str) and isinstance(found, str) and NUMBER.split(expected) == NUMBER.split(found)
    ):
        texts = zip(NUMBER.findall(expected), NUMBER.findall(found), strict=True)
        if not all(isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-9) for one, other in texts):
            yield f"{place}: {expected} != {found}"
    elif isinstance(expected, float) and isinstance(found, float):
        if not isclose(expected, found, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{place}: {expected} != {found}"
    elif expected != found:
        yield f"{place}: {expected} != {found}"


def test_differences_are_found() -> None:
    """A last bit is no difference; another digit, word or key is one."""
    assert list(differences({"a": ["1.5 of 2"]}, {"a": ["1.500000000000001 of 2"]})) == []
    assert list(differences(["1.5 of 2"], ["1.6 of 2"])) == ["/0: 1.5 of 2 != 1.6 of 2"]
    assert len(list(differences({"a": 1}, {"b": 1}))) == 1
    assert len(list(differences(["one"], ["two"]))) == 1


@pytest.mark.parametrize("name", READERS)
def test_an_earlier_file_answers_as_it_did(copies: Path, name: str) -> None:
    """Values, errors, intervals, bounds and texts are the same, but for the rounding of another processor."""
    assert list(differences(EXPECTED[name], READERS[name](copies))) == []
