"""One table in every container that a source can be."""

from __future__ import annotations

import datetime
import gzip
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partita.domain import Category, Date, Domain, Integer, Real, Timestamp
from partita.trusted.secret import Histogram
from partita.trusted.sources.tally import ColumnCounts

SCHEMA: dict[str, Domain] = {
    "age": Integer(0, 120),
    "salary": Real(0, 100_000, step="0.01"),
    "region": Category(["north", "south", "caffè"]),
    "born": Date("1900-01-01", "2020-12-31"),
    "seen": Timestamp("2024-01-01", "2024-12-31", "1h"),
}

TABLE: dict[str, list[Any]] = {
    "id": [1, 2, 1, None, 3, 3, None, 3],
    "age": [30, -5, 30, None, 999, 31, 30, 120],
    "salary": [0.5, -0.0, 0.0, 99_999.99, None, 0.5, 1e9, 1234.125],
    "region": ["north", "caffè", "north", None, "west", 'a, "b"', "south", "north"],
    "born": [datetime.date(1990, 1, day) if day < 8 else None for day in range(1, 9)],
    "seen": [None, *(datetime.datetime(2024, 2, day, 12, 30, 59, 250_000) for day in range(1, 8))],
}


def exact(column: ColumnCounts) -> Histogram:
    """The counts of a column that is counted here, and not on a cluster."""
    assert isinstance(column.histogram, Histogram)
    return column.histogram


def arrow() -> Any:
    return pa.table(TABLE)


def texts(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON and CSV write it."""
    return {name: str(value) if isinstance(value, datetime.date) else value for name, value in row.items()}


def csv_field(value: object) -> str:
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if any(char in text for char in ',"') else text


def csv_bytes() -> bytes:
    rows = [",".join(csv_field(value) for value in row.values()) for row in arrow().to_pylist()]
    return "\n".join([",".join(TABLE), *rows, ""]).encode()


def json_bytes() -> bytes:
    return "".join(json.dumps(texts(row)) + "\n" for row in arrow().to_pylist()).encode()


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def parquet(path: Path, table: Any) -> Path:
    pq.write_table(table, path)
    return path


def parts(folder: Path) -> str:
    """Three files, one of which has narrower numbers, and a link to one of them."""
    table = arrow()
    parquet(folder / "z.parquet", table.slice(0, 3))
    parquet(folder / "a.parquet", table.slice(3, 3))
    narrow = table.schema.set(1, pa.field("age", pa.int16()))
    parquet(folder / "m.parquet", table.slice(6).cast(narrow))
    (folder / "link.parquet").symlink_to(folder / "a.parquet")
    return str(folder / "*.parquet")


def numpy_columns() -> dict[str, Any]:
    table = arrow()
    masked = {
        name: np.ma.MaskedArray(table[name].fill_null(0).to_numpy(), mask=table[name].is_null().to_numpy())
        for name in ("id", "age", "salary")
    }
    return {
        **masked,
        "region": np.array(TABLE["region"], object),
        "born": np.array(TABLE["born"], "M8[D]"),
        "seen": np.array(TABLE["seen"], "M8[us]"),
    }


CONTAINERS: dict[str, Callable[[Path], Any]] = {
    "parquet": lambda folder: parquet(folder / "t.parquet", arrow()),
    "glob": parts,
    "list": lambda folder: [parts(folder), str(folder / "z.parquet")],
    "csv": lambda folder: written(folder / "t.csv", csv_bytes()),
    "csv.gz": lambda folder: written(folder / "t.csv.gz", gzip.compress(csv_bytes())),
    "csv with crlf": lambda folder: written(folder / "t.csv", csv_bytes().replace(b"\n", b"\r\n")),
    "csv with mark": lambda folder: written(folder / "t.csv", b"\xef\xbb\xbf" + csv_bytes()[:-1]),
    "jsonl": lambda folder: written(folder / "t.jsonl", json_bytes()),
    "ndjson.gz": lambda folder: written(folder / "t.ndjson.gz", gzip.compress(json_bytes())),
    "lists": lambda folder: TABLE,
    "numpy": lambda folder: numpy_columns(),
    "arrow table": lambda folder: arrow(),
    "arrow columns": lambda folder: {name: arrow()[name] for name in TABLE},
    "arrow reader": lambda folder: arrow().to_reader(max_chunksize=3),
    "dictionaries": lambda folder: arrow().set_column(3, "region", arrow()["region"].dictionary_encode()),
}


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for the temporary files of this test alone."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(params=[*CONTAINERS, "duckdb", "pandas", pytest.param("polars", marks=pytest.mark.thorough)])
def container(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The table in each of the containers in turn."""
    if request.param in CONTAINERS:
        yield CONTAINERS[request.param](tmp_path)
    elif request.param == "duckdb":
        with duckdb.connect(":memory:") as connection:
            yield connection.from_arrow(arrow())
    else:
        library = pytest.importorskip(request.param)
        yield arrow().to_pandas() if request.param == "pandas" else library.from_arrow(arrow())
