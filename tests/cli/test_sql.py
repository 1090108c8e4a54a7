"""`partita sql`, `synthesize` and `export`: a release for those who expect tables and arrays."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from partita.public.file import load
from partita.public.measurements import NoisyMeasurements
from tests.table_releases import table_release

from .conftest import Run


@pytest.fixture
def release_file(folder: Path) -> Path:
    """A table release in a file."""
    path = folder / "table.release.parquet"
    table_release().save(path)
    return path


def test_a_statement_is_answered(run: Run, release_file: Path) -> None:
    """In print and in JSON, with an interval, and the questions that were asked."""
    text = "select count(*) as n from release where town = 'Rome'"
    done = run("sql", release_file, text)
    [record] = run("sql", release_file, text, "--json").records

    count = table_release().count(town="Rome")
    assert done.out.split()[:4] == ["n", "low", "high", "basis"]
    assert record["questions"] == ["count where town = Rome"]
    low, high = count.interval()
    assert record["rows"] == [{"n": count.value, "low": low, "high": high, "basis": "measured"}]


def test_other_sql_is_refused(run: Run, release_file: Path) -> None:
    """As a usage error with the part that is not there; nothing is printed."""
    done = run("sql", release_file, "select count(*) from release where exists (select 1)")

    assert (done.code, done.out) == (2, "")
    assert "sql must do without exists at character 36" in done.err


def test_made_up_rows_go_to_a_file(run: Run, release_file: Path) -> None:
    """They are those of the library, and a file is never overwritten without --force."""
    done = run("synthesize", release_file, "--rows", 50, "-o", "rows.parquet")
    again = run("synthesize", release_file, "--rows", 60, "-o", "rows.parquet")
    [forced] = run(
        "synthesize", release_file, "--rows", 60, "-o", "rows.parquet", "--force", "--json"
    ).records

    assert done.out == "wrote 50 made-up rows of 4 columns to rows.parquet\n"
    assert (again.code, "--force" in again.err) == (1, True)
    assert forced == {"path": "rows.parquet", "rows": 60, "columns": ["age", "pay", "town", "rooms"]}
    assert pq.read_table("rows.parquet").to_pydict() == load(release_file).synthesize(60)


def test_noisy_counts_go_to_a_file(run: Run, release_file: Path) -> None:
    """As NPZ or Parquet, listed in print and in JSON; columns say which views."""
    done = run("export", release_file, "-o", "all.npz")
    [record] = run("export", release_file, "-o", "all.parquet", "--json").records

    measured = load(release_file).measurements()
    read = NoisyMeasurements.read("all.npz"), NoisyMeasurements.from_arrow(pq.read_table("all.parquet"))
    assert [[each.noisy.tolist() for each in some] for some in read] == 2 * [
        [each.noisy.tolist() for each in measured]
    ]
    assert done.out.splitlines()[0].split() == ["columns", "bins", "numbers", "law", "of", "noise", "stddev"]
    assert len(done.out.splitlines()) == len(record["measurements"]) + 1 == len(measured) + 1
    assert record["measurements"][0]["scale"] == str(measured[0].scale)


def test_other_files_and_columns_are_refused(run: Run, release_file: Path) -> None:
    """A suffix that says nothing is a usage error, and nothing is written."""
    suffix, column = (
        run("export", release_file, "-o", "all.csv"),
        run("export", release_file, "x", "-o", "x.npz"),
    )

    assert (suffix.code, "must end in .npz or .parquet" in suffix.err) == (2, True)
    assert (column.code, "columns must be one of" in column.err) == (1, True)
    assert not Path("all.csv").exists()
