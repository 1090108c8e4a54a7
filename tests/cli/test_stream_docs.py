"""docs/streams.md tells the truth about counters."""

from __future__ import annotations

import re
from math import e
from pathlib import Path

import pytest

from partita.trusted.streams.counter import Counter

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "streams.md").read_text()


def test_the_snippets_on_the_page_run(folder: Path) -> None:
    """One after the other, in an empty folder."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}

    for block in blocks:
        exec(block, names)

    assert len(blocks) >= 5
    made = [f"{name}{end}" for name in ("towns", "visits") for end in (".db", ".db.lock", ".outputs")]
    assert sorted(path.name for path in folder.iterdir()) == made


@pytest.mark.parametrize(
    ("name", "variance"),
    [("RandomizedResponseCounter", e / (e - 1) ** 2), ("PerStepCounter", 2.0)],
)
def test_the_figures_of_the_naive_ways_are_right(name: str, variance: float) -> None:
    """Means over T periods of a variance that grows by the same amount in each, to three digits."""
    [line] = [line for line in PAGE.splitlines() if f"`{name}`" in line]
    figures = [float(cell.replace(",", "")) for cell in line.split("|")[4:7]]

    assert figures == pytest.approx([variance * (2**bits + 1) / 2 for bits in (10, 16, 20)], rel=2e-3)


def test_the_figures_of_the_counter_are_right() -> None:
    """Exact mean squared errors at epsilon 1, to three digits."""
    [line] = [line for line in PAGE.splitlines() if line.startswith("| ours |")]
    exact = [Counter(epsilon=1, horizon=2**bits).variances(range(1, 2**bits + 1)).mean() for bits in (10, 16)]

    assert [float(cell) for cell in line.split("|")[4:6]] == [round(mse) for mse in exact]


def test_the_proofs_on_the_page_exist() -> None:
    """Every link leads to a file."""
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)

    assert [link for link in links if not (DOCS / link).exists()] == []
