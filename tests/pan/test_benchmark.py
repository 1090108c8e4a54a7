"""The benchmark of sketches runs, and knows its target."""

from __future__ import annotations

import pytest

from benchmarks.pan.__main__ import ROWS, main
from benchmarks.pan.density import TARGET, density
from benchmarks.pan.speed import SKETCHES, update


def test_rows_say_what_was_measured() -> None:
    """Both baselines and every sketch; a quick run proves nothing about the target."""
    rows = list(density(trials=2, quick=True))

    assert all({"ours", "book", "book, our accounting"} <= row.keys() for row in rows)
    assert all(row["predicted"] < row["predicted for that"] < 1 for row in rows)
    assert {row["target"] for row in rows} == {TARGET}
    assert all(row["met"] is None for row in rows)
    assert [row["sketch"] for row in update(trials=1, quick=True)] == list(SKETCHES)


@pytest.mark.parametrize("form", [[], ["--table"]])
def test_rows_are_printed(form: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As JSON or as Markdown."""
    assert main(["--quick", "--trials", "1", "--only", "density", *form]) == 0
    assert "density" in capsys.readouterr().out
    assert set(ROWS) == {"density", "update"}
