"""`partita query` of a table release: each answer says what it rests on, in text and in JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table_releases import find_pair, table_release

from .conftest import Run

ONE, OTHER = "count where age between 10 and 39", "count where town = Rome and age between 10 and 39"


@pytest.fixture
def table(folder: Path) -> Path:
    """A table release in the working directory."""
    table_release().save(folder / "table.release.parquet")
    return folder / "table.release.parquet"


def test_records_have_a_basis(run: Run, table: Path) -> None:
    """It stands behind value and error, in answers of one number and in tables."""
    asked = [ONE, OTHER, "median of age where town = Rome", "histogram of age in 3 bins", "cdf of age at 30"]
    records = run("query", table, *asked, "--json").records

    assert find_pair("inferred") == ("age", "town")
    assert [record["basis"] for record in records] == ["measured", "inferred", "inferred", *["measured"] * 2]
    assert list(records[0])[:5] == ["asked", "question", "value", "error", "basis"]


def test_text_has_a_column_for_it(run: Run, table: Path) -> None:
    """Answers of one line have it in the last column, and tables below."""
    out = run("query", table, ONE, OTHER, "histogram of age, town in 2 by 3 bins").out
    head, one, other, words = out.splitlines()[:4]

    assert head.endswith("  basis")
    assert one.endswith("  measured")
    assert other.endswith("  inferred")
    assert words.startswith("inferred: by a model")
    assert words.endswith("guaranteed bounds follow from counts of something else, and are wide")
    assert out.rstrip().endswith("\nbasis: inferred")


def test_other_releases_have_none(run: Run, exact: Path) -> None:
    """Where every answer is measured there is no such entry and no such column."""
    asked = ["count where age <= 50", "histogram of age in 3 bins"]

    assert all("basis" not in record for record in run("query", exact, *asked, "--json").records)
    assert "basis" not in run("query", exact, *asked).out
