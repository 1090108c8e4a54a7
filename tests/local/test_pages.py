"""The page about the local model, the example and the benchmark: what they say runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.local import accuracy, growth
from partita.local import __all__ as exported
from partita.local.question import KINDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "local.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_the_code_on_the_page_runs(code: str) -> None:
    """Every block by itself."""
    exec(compile(code, "docs/local.md", "exec"), {})


def test_the_page_names_every_kind() -> None:
    """And every public class that is not a base or an estimate."""
    assert all(f"`{kind}`" in PAGE for kind in KINDS)
    assert {"Device", "Frequency", "Mean"} <= set(exported)


def test_every_exported_name_is_there() -> None:
    """The lazy package has what it lists, and nothing else by accident."""
    import partita.local

    assert all(getattr(partita.local, name).__name__ == name for name in exported)
    assert dir(partita.local) == sorted(exported)
    with pytest.raises(AttributeError, match="nothing"):
        _ = partita.local.nothing  # type: ignore[attr-defined]


def test_the_benchmark_measures_errors(tmp_path: Path) -> None:
    """A quick run has a row for every epsilon and for both models, no verdict, and a picture."""
    rows: list[Any] = [*accuracy.mse(quick=True), *growth.growth(True, str(tmp_path / "growth.png"))]

    assert [row["row"] for row in rows] == ["mse"] * 3 + ["growth"] * 2
    assert {row["met"] for row in rows} == {None}
    assert (tmp_path / "growth.png").stat().st_size > 10_000


def test_the_benchmark_compares_like_with_like() -> None:
    """pure-ldp gets cells from 1 on and estimates all of them; skipped where it is not installed."""
    pytest.importorskip("pure_ldp")
    from benchmarks.local.peers import peer

    for kind in ("response", "unary", "hadamard"):
        other = peer(kind, 8, 2.0)
        estimate = other.collect(other.randomize([0] * 3_000), 8)
        assert estimate.argmax() == 0
