"""`partita site`: a folder with a page, said in print and in JSON, and refusals with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import partita as pt

from .conftest import Run


@pytest.fixture
def releases(folder: Path) -> Path:
    """A folder with one release of one column."""
    (folder / "releases").mkdir()
    ages = {"age": [place % 90 for place in range(900)]}
    release = pt.publish(ages, {"age": pt.Integer(0, 120)}, epsilon=1)
    release.save(folder / "releases" / "table.release.parquet")
    return folder / "releases"


def test_a_folder_is_written(run: Run, releases: Path) -> None:
    """In print its size and where to open it, in JSON the same as numbers; one release needs no progress."""
    done = run("site", releases, "-o", "site")
    [record] = run("site", releases, "-o", "again", "--json").records

    size = sum(path.stat().st_size for path in Path("site").rglob("*") if path.is_file())
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"wrote 1 release to site, {size / 1e6:.1f} MB with a script of ")
    assert record["releases"] == ["table"]
    assert record["bytes"] == size
    assert record["script_bytes"] == Path("again/page.js").stat().st_size
    assert Path(record["page"]).is_file()


def test_progress_goes_to_stderr(run: Run, releases: Path) -> None:
    """Of several releases each is named when it is begun."""
    (releases / "again.release.parquet").write_bytes((releases / "table.release.parquet").read_bytes())
    done = run("site", releases, "-o", "site", "--json")

    assert done.err.splitlines() == [
        "partita: again, release 1 of 2",
        "partita: table, release 2 of 2",
    ]
    assert done.records[0]["releases"] == ["again", "table"]


def test_a_folder_is_replaced_with_force(run: Run, releases: Path) -> None:
    """Without it the command says what to do, and with it a folder of somebody else is still refused."""
    Path("other").mkdir()
    Path("other/letter.txt").write_text("mine")
    first, again = (run("site", releases, "-o", "site") for _ in range(2))
    forced, other = (run("site", releases, "-o", name, "--force") for name in ("site", "other"))

    assert (first.code, again.code, forced.code, other.code) == (0, 1, 0, 1)
    assert "output must not exist yet, got 'site'; choose another, or pass --force" in again.err
    assert "output must not exist yet, or be a folder that this wrote, got 'other'" in other.err


def test_what_is_no_release_is_refused(run: Run, releases: Path) -> None:
    """A damaged file by its name, and a folder without releases."""
    (releases / "bad.release.parquet").write_bytes(b"PAR1 and no more")
    damaged, empty = run("site", releases, "-o", "site"), run("site", releases.parent, "-o", "site")

    assert (damaged.code, empty.code) == (1, 1)
    assert "bad.release.parquet" in damaged.err
    assert "releases must hold releases" in empty.err
    assert not Path("site").exists()
