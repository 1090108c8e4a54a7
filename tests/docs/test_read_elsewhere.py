"""What the page on other tools says in R, run by R, and the R program that answers ranges."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import partita as pt
from partita.public.release import Release
from partita.testing import EndlessTape, tape_noise
from partita.trusted.secret import Histogram
from tests.docs.fences import RUN, fences
from tests.docs.run import BIN, ROOT, Typed

PAGE = ROOT / "docs/how-to/read-elsewhere.md"
PROGRAM: Final = ROOT / "examples/read_release.R"

# DuckDB's command line in two lines: the tests have its Python package, and not the program.
DUCKDB: Final = f"""#!{sys.executable}
import csv, sys, duckdb

assert sys.argv[1:] == ["-csv"]
found = duckdb.sql(sys.stdin.read())
out = csv.writer(sys.stdout, lineterminator="\\n")
out.writerow(found.columns)
out.writerows(found.fetchall())
"""

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


# --- examples/read_release.R -------------------------------------------------------------------

DATES: Final = [("2024-02-01", "2024-03-31"), ("2024-02-28", "2024-03-01")]
LABELS: Final = [("label 0", "label 29"), ("label 3", "label 4")]
DOMAINS: Final[Mapping[str, tuple[pt.Domain, list[tuple[Any, Any]]]]] = {
    "integer": (pt.Integer(-7, 60), [(-7, 60), (0, 17), (18, 18), (19, 59)]),
    "real": (pt.Real(0, 5, step="0.1"), [(0, 5), ("0.3", "1.7"), ("4.9", 5)]),
    "date": (pt.Date("2024-02-01", "2024-03-31"), DATES),
    "category": (pt.Category([f"label {number}" for number in range(30)]), LABELS),
}
MECHANISMS: Final[Mapping[str, Callable[..., Any]]] = {
    "histogram": pt.HistogramCounts,
    "tree": pt.Tree,
    "raw tree": lambda **given: pt.Tree(**given, branching=3, consistent=False),
    "flat tree": lambda **given: pt.Tree(**given, branching=16),
}
READ: Final = [(each, "integer") for each in MECHANISMS] + [("tree", each) for each in [*DOMAINS][1:]]


def made(mechanism: str, domain: pt.Domain) -> Release:
    """Made-up rows of a column, with the noise of a tape."""
    size = domain.size
    cells = np.sort(np.arange(900, dtype=np.uint64) ** np.uint64(2) % np.uint64(size))
    noise = tape_noise(EndlessTape((mechanism, size)))
    axis = MECHANISMS[mechanism](size=size, epsilon="3/7").release(
        Histogram.from_cells(cells, size=size), noise=noise
    )
    return pt.as_release(axis, {"the column": domain})


def run_program(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """The program under R, with a DuckDB that is that of the tests."""
    duckdb = folder / "duckdb"
    duckdb.write_text(DUCKDB)
    duckdb.chmod(0o755)
    return subprocess.run(
        ["Rscript", "--vanilla", PROGRAM, *map(str, words)],
        env={**os.environ, "DUCKDB": str(duckdb)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("mechanism", "domain"), READ)
def test_the_program_answers_what_the_release_does(mechanism: str, domain: str, tmp_path: Path) -> None:
    """Value and 95% interval of each range, to the last digit that is printed."""
    column, ranges = DOMAINS[domain]
    release = made(mechanism, column)
    release.save(tmp_path / "release.parquet")

    ends = [end for each in ranges for end in each]
    done = run_program(tmp_path, tmp_path / "release.parquet", "the column", *ends)

    expected = ["low,high,value,from,to"]
    for low, high in ranges:
        answer = release.count({"the column": (low, high)})
        numbers = (answer.value, *answer.interval())
        expected.append(",".join([str(low), str(high), *(f"{number:.4f}" for number in numbers)]))
    assert done.stdout.splitlines() == expected, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("age", 5, 3), "a range goes from low to high"),
        (("age", 5, 300), "300 does not lie within the declared bounds"),
        (("age", "1.5", 3), "1.5 lies between two cells"),
        (("town", 5, 8), "this release is about the column age"),
        (("age", 5), "usage:"),
    ],
)
def test_the_program_refuses_what_it_cannot_answer(
    words: tuple[object, ...], said: str, tmp_path: Path
) -> None:
    """It prints no number then."""
    published = pt.publish({"age": [3]}, {"age": pt.Integer(0, 9)}, epsilon=1, mechanism="histogram")
    published.save(tmp_path / "release.parquet")

    done = run_program(tmp_path, tmp_path / "release.parquet", *words)

    assert done.returncode != 0
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mechanism": "spending-tree"}, "releases of kind spending-tree are not read here"),
        ({"mechanism": "tents"}, "releases of kind tents are not read here"),
        ({"views": [("age",), ("pay",)]}, "only a release with one view, of one column"),
        ({"mechanism": "grid"}, "file of version 2 is not read here"),
    ],
)
def test_the_program_refuses_what_it_does_not_know(
    options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """Other kinds, several views, several columns."""
    both = {"age": pt.Integer(0, 9), "pay": pt.Integer(0, 9)}
    domains = {name: both[name] for name in (both if options.get("mechanism", "grid") == "grid" else ["age"])}
    rows = {name: [3, 4] for name in domains}
    pt.publish(rows, domains, epsilon=1, path=tmp_path / "release.parquet", **options)

    done = run_program(tmp_path, tmp_path / "release.parquet", "age", 0, 3)

    assert (done.returncode, done.stdout) != (0, "")
    assert said in done.stderr


def test_the_program_refuses_other_files(tmp_path: Path) -> None:
    """A file that DuckDB cannot read, and a Parquet file of something else."""
    (tmp_path / "text.parquet").write_text("no Parquet")

    done = run_program(tmp_path, tmp_path / "text.parquet", "age", 0, 3)

    assert done.returncode != 0
    assert "DuckDB could not read the file" in done.stderr
