"""Files written by an earlier version open and answer as they did then."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("name", READERS)
def test_an_earlier_file_answers_as_it_did(copies: Path, name: str) -> None:
    """Values, errors, intervals, bounds and texts are the same to the last bit."""
    assert READERS[name](copies) == EXPECTED[name]
