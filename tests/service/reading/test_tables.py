"""What is downloaded as a table or as a file."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import partita as pt
from partita.service.reading.catalogue import format_csv

from .conftest import Client, served

TOWNS = ['=HYPERLINK("http://example.org")', "+39", "@home", "-town", "\tBari"]


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A release whose labels are formulas to a spreadsheet."""
    folder = tmp_path_factory.mktemp("towns")
    schema = {"=town": pt.Category(TOWNS)}
    pt.publish({"=town": TOWNS * 400}, schema, epsilon=4, path=folder / "towns.release.parquet")
    client = Client(served(folder))
    yield client
    client.close()


@pytest.mark.parametrize("address", ["view.csv?x=%3Dtown", "synthesize.csv?rows=100"])
def test_no_cell_is_a_formula(towns: Client, address: str) -> None:
    """Neither a label nor the name of a column: a spreadsheet shows all of them as text."""
    text = towns.send("GET", f"/releases/towns/{address}").text

    rows = list(csv.reader(io.StringIO(text)))
    shown = {cell for row in rows for cell in row}
    assert {f"'{town}" for town in TOWNS if town != "+39"} <= shown
    assert not [cell for cell in shown if cell.startswith(("=", "@", "\t", "-t"))]


def test_numbers_stay_numbers() -> None:
    """Also where they are text, and below zero."""
    assert format_csv([(-1, -2.5, "-3", "+4.5e-6", "-1-1", None)]) == "-1,-2.5,-3,+4.5e-6,'-1-1,\n"


def test_the_tag_of_a_file_is_that_of_its_bytes(fresh: Client, folder: Path) -> None:
    """It says what is in the file and not when it was put there."""
    path = folder / "people.release.parquet"
    before = fresh.get("/releases/people/file")
    os.utime(path, ns=(1, 1))
    after = fresh.get("/releases/people/file")

    assert before.headers["etag"] == after.headers["etag"]
    assert after.headers["etag"] == f'"{hashlib.sha256(path.read_bytes()).hexdigest()}"'
    assert after.content == path.read_bytes()
