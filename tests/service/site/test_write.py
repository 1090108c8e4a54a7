"""The folder of a page without a server: what is in it, what it takes the place of, and what it refuses."""

from __future__ import annotations

import base64
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidParameter, InvalidRelease
from partita.public.estimates import ColumnEstimate, PairEstimate, Span
from partita.public.release import Release
from partita.service.site import files
from partita.service.site.write import CONFIDENCES, MARK, write_site
from tests.public.file import specimens
from tests.table_releases import table_release

KINDS = [*specimens.MECHANISMS, *specimens.BOX_MECHANISMS]
MODELS = {
    "histogram": "cells",
    "partition-tents": "pieces",
    "spending-tree": "pieces",
    "tents": "pieces",
}


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    """A folder with one release."""
    folder = tmp_path / "releases"
    folder.mkdir()
    specimens.release("spending-tree").save(folder / "tree.release.parquet")
    return folder


def record_in(path: Path) -> Any:
    """What a data file hands to the page."""
    found = re.fullmatch(r'partita\("([\w./-]+)",(.*)\);\n', path.read_text("ascii"), re.DOTALL)
    assert found is not None
    return json.loads(found.group(2))


def test_a_folder_has_the_page_the_data_and_the_releases(releases: Path, tmp_path: Path) -> None:
    """One script, one style, one document, data that are scripts, and files to download."""
    site = write_site(releases, tmp_path / "site")
    found = {str(path.relative_to(site.folder)) for path in site.folder.rglob("*") if path.is_file()}

    assert found == {
        *("index.html", "page.js", "style.css", MARK),
        *("data/index.js", "data/tree/about.js", "data/tree/column-0.js"),
        *("files/tree.release.parquet", "files/tree.report.txt"),
        *("files/tree.citation.bib", "files/tree.synthesize.csv"),
    }
    release = pt.load(site.folder / "files" / "tree.release.parquet")
    assert release.is_same(pt.load(releases / "tree.release.parquet"))
    assert site.size == sum((site.folder / path).stat().st_size for path in found)


def test_the_script_is_small() -> None:
    """All modules of the page together are under 150 KB of script."""
    assert 50_000 < len(files.script().encode()) < files.MOST_SCRIPT


def test_the_script_has_every_module_once_and_imports_none() -> None:
    """Modules are functions, each after those that it needs, and none asks a server."""
    text = files.script()
    names = re.findall(r'^modules\["([\w.]+)"\] = ', text, re.MULTILINE)
    used = [text.index(f'modules["{name}"] = ') for name in names]

    assert {"app.js", "api.js", "place.js", "ranges.js", "view.js"} <= set(names)
    assert len(names) == len(set(names))
    assert used == sorted(used)
    for name in names:
        first = min(found.start() for found in re.finditer(re.escape(f'modules["{name}"]'), text))
        assert first == text.index(f'modules["{name}"] = '), f"{name} is needed before it is there"
    assert re.findall(r"^(?:import|export)\b|\bfetch\(|XMLHttpRequest|WebSocket", text, re.MULTILINE) == []


def test_the_page_asks_nobody_else(releases: Path, tmp_path: Path) -> None:
    """No file but the citation names another host; scripts come from the folder, and no style is inline."""
    folder = write_site(releases, tmp_path / "site").folder
    page = (folder / "index.html").read_text()
    hosts = {
        host
        for name in ("index.html", "page.js", "style.css")
        for host in re.findall(r"(?:https?:)?//\w[\w.-]*\.\w+", (folder / name).read_text())
    }

    assert hosts <= {"http://www.w3.org"}
    assert "default-src 'none'" in page
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", page) == []
    assert re.findall(r'(?:src|href)="(?!data:,|#)/', page) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.spread(5)
def test_what_is_written_of_a_column_is_what_the_library_says(kind: str) -> None:
    """Every range in a table has the count and the error of the library, and the model fits the mechanism."""
    release = specimens.release(kind)
    for column in release.columns:
        estimate = ColumnEstimate(release, column)
        model = estimate.record()["model"]
        assert model["kind"] == MODELS.get(kind, "ranges")
        if model["kind"] == "ranges":
            spans = _tabulated(estimate)
            found = _counts(release, estimate, spans)
            assert (model["values"].size, model["errors"].size) == (len(spans), len(spans))
            np.testing.assert_allclose(model["values"], found.values, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(model["errors"], found.error, rtol=1e-9, atol=1e-9)


def test_a_long_column_has_public_ranges_that_make_up_its_axis() -> None:
    """They depend on the domain and on released numbers, follow each other, and hold every cell once."""
    estimate = ColumnEstimate(table_release(), "pay")
    units = estimate.units
    assert units is not None

    assert (units[0].low, units[-1].high) == (0, 5_999)
    assert all(after.low == before.high + 1 for before, after in pairwise(units))
    assert {group.low for group in estimate.groups} <= {unit.low for unit in units}
    assert {group.high for group in estimate.groups} <= {unit.high for unit in units}


def test_what_is_written_of_a_pair_is_what_the_library_says() -> None:
    """Fields, rectangles and groups of two columns have the counts and errors of the library."""
    release = table_release()
    pair = PairEstimate(ColumnEstimate(release, "age"), ColumnEstimate(release, "pay"))
    found = pair.map((pair.x.window, pair.y.window), (32, 32))
    units = [[Span(*map(int, unit)) for unit in side] for side in found["units"]]
    low, high = units[0][2].low, units[0][5].high
    bottom, top = units[1][1].low, units[1][1].high
    answer = release.counts(age=([low], [high]), pay=([bottom], [top]))

    n, m = (len(side) for side in units)
    across = [(i, j) for i in range(n) for j in range(i, n)].index((2, 5))
    up = [(i, j) for i in range(m) for j in range(i, m)].index((1, 1))
    place = across * (m * (m + 1) // 2) + up
    assert found["rectangles"]["values"][place] == pytest.approx(answer.values[0], rel=1e-12)
    assert found["rectangles"]["errors"][place] == pytest.approx(answer.error[0], rel=1e-12)

    split = pair.split()
    assert split is not None
    (first, last), group = split["bins"][3], pair.y.groups[2]
    answer = release.counts(age=([int(first)], [int(last)]), pay=([group.low], [group.high]))
    assert split["values"][2 * len(split["bins"]) + 3] == pytest.approx(answer.values[0], rel=1e-12)


def test_the_facts_are_those_of_the_library(releases: Path, tmp_path: Path) -> None:
    """The number of rows at each confidence, the columns, and the index."""
    folder = write_site(releases, tmp_path / "site").folder / "data"
    about, release = record_in(folder / "tree" / "about.js"), pt.load(releases / "tree.release.parquet")

    assert list(about["totals"]) == [str(each) for each in CONFIDENCES]
    for each in CONFIDENCES:
        low, high = release.count().interval(each)
        assert about["totals"][str(each)]["interval"] == {"confidence": each, "low": low, "high": high}
    assert [column["name"] for column in about["about"]["columns"]] == list(release.columns)
    assert [entry["name"] for entry in record_in(folder / "index.js")["releases"]] == ["tree"]


def test_arrays_are_bytes(tmp_path: Path) -> None:
    """Floats, cells of 64 bits and places come back as they were; what is no number is null."""
    cells = np.array([0, 2**64 - 1], np.uint64)
    record = {"floats": np.array([0.1, -2.5]), "cells": cells, "places": np.array([3, -1]), "none": np.nan}
    path = tmp_path / "some.js"
    path.write_bytes(files.data_script("some", record))
    found = record_in(path)

    assert np.frombuffer(base64.b64decode(found["floats"]["f8"]), "<f8").tolist() == [0.1, -2.5]
    assert np.frombuffer(base64.b64decode(found["cells"]["u8"]), "<u8").tolist() == cells.tolist()
    assert np.frombuffer(base64.b64decode(found["places"]["i4"]), "<i4").tolist() == [3, -1]
    assert found["none"] is None


def test_the_same_releases_give_the_same_bytes(releases: Path, tmp_path: Path) -> None:
    """Nothing is random, and no time is written."""
    one, other = (write_site(releases, tmp_path / name).folder for name in ("one", "other"))
    paths = [path.relative_to(one) for path in one.rglob("*") if path.is_file()]

    assert [path for path in paths if (one / path).read_bytes() != (other / path).read_bytes()] == []


def test_a_folder_is_replaced_only_if_it_was_written_here(releases: Path, tmp_path: Path) -> None:
    """And then as a whole: a file that a release no longer needs is gone. An empty folder is taken."""
    output, other = tmp_path / "site", tmp_path / "other"
    output.mkdir()
    write_site(releases, output)
    with pytest.raises(InvalidParameter, match="output must not exist yet"):
        write_site(releases, output)
    (releases / "tree.release.parquet").rename(releases / "again.release.parquet")
    write_site(releases, output, overwrite=True)

    assert not (output / "data" / "tree").exists()
    assert (output / "data" / "again").exists()
    other.mkdir()
    (other / "letter.txt").write_text("mine")
    with pytest.raises(InvalidParameter, match="output must not exist yet, or be a folder that this wrote"):
        write_site(releases, other, overwrite=True)
    assert (other / "letter.txt").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "releases", "site"]


def test_the_folder_of_the_releases_is_not_replaced(releases: Path) -> None:
    """Nor one above it; a folder in it may be written."""
    (releases / MARK).write_text("{}")
    for output in (releases, releases.parent):
        with pytest.raises(InvalidParameter, match="output must be another folder"):
            write_site(releases, output, overwrite=True)

    assert (write_site(releases, releases / "site").folder / "index.html").is_file()


@pytest.mark.parametrize("content", [b"PAR1 and no more", b""])
def test_a_damaged_release_is_named(releases: Path, tmp_path: Path, content: bytes) -> None:
    """Nothing is written then."""
    (releases / "bad.release.parquet").write_bytes(content)
    with pytest.raises(InvalidRelease, match=r"bad\.release\.parquet"):
        write_site(releases, tmp_path / "site")

    assert not (tmp_path / "site").exists()


def test_a_folder_without_releases_is_refused(tmp_path: Path) -> None:
    """Whether it is there or not."""
    for source in (tmp_path, tmp_path / "none"):
        with pytest.raises(InvalidParameter, match="releases must hold releases"):
            write_site(source, tmp_path / "site")


def test_an_interrupted_site_leaves_nothing(
    releases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there before stays, and no half-written folder is left beside it."""
    output = tmp_path / "site"
    write_site(releases, output)
    before = (output / "page.js").read_bytes()
    monkeypatch.setattr(Release, "citation", _fail)
    with pytest.raises(RuntimeError, match="power"):
        write_site(releases, output, overwrite=True)

    assert (output / "page.js").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["releases", "site"]


def _fail(_: Release) -> str:
    raise RuntimeError("power cut")


def _tabulated(estimate: ColumnEstimate) -> list[Span]:
    """All ranges of units in a row; every cell is one where there are no others."""
    units = estimate.units or [Span(cell, cell) for cell in range(estimate.size)]
    return [Span(one.low, other.high) for place, one in enumerate(units) for other in units[place:]]


def _counts(release: Release, estimate: ColumnEstimate, spans: list[Span]) -> pt.Answers:
    lows, highs = np.array(spans, np.uint64).T
    decode = estimate.line.domain.decode
    return release.counts({estimate.column: (list(decode(lows)), list(decode(highs)))})
