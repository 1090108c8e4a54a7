"""What the page on other tools says in R, run by R."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.fences import RUN, fences
from tests.docs.run import BIN, ROOT, Typed

PAGE = ROOT / "docs/how-to/read-elsewhere.md"

pytestmark = [
    pytest.mark.docs,
    pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed"),
]


def test_r_counts_what_the_release_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the cells that DuckDB has written, plain R finds the value and the error that the release has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    typed = Typed(PAGE.name, show=False)
    blocks = list(fences(PAGE.read_text()))
    for block in blocks:
        if block.language in RUN:
            typed.run(block)

    [program] = [block.text for block in blocks if block.language == "r"]
    value, error = map(float, said_by_r(program).split())

    answer = typed.names["release"].count(hour=(8, 11))
    assert value == answer.value
    assert math.isclose(error, answer.error, rel_tol=1e-9)


def said_by_r(program: str) -> str:
    """What a program prints in a fresh R that reads no settings of its user."""
    done = subprocess.run(
        ["Rscript", "--vanilla", "-"], input=program, capture_output=True, text=True, check=True
    )
    return done.stdout
