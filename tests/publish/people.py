"""A table of people in several containers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from partita.domain import Category, Date, Domain, Integer, Real
from partita.public.release import Release
from partita.public.views import View

CANARY = "CANARY-93ab"
NUMBER = 987_654_321

SCHEMA: dict[str, Domain] = {
    "age": Integer(0, 120),
    "salary": Real(0, 1000, step="0.5"),
    "born": Date("1990-01-01", "1990-12-31"),
    "region": Category(["north", "south"]),
}
AGE: dict[str, Domain] = {"age": SCHEMA["age"]}


def people(count: int = 400) -> Any:
    """A table with ordinary values, nulls and values outside of every domain."""
    turn = np.arange(count)
    day = np.datetime64("1990-01-01") + (turn * 7 % 500)
    regions = np.array(["north", "south", "west", None], object)[turn % 4]
    return pa.table(
        {
            "id": turn // 4,
            "age": pa.array(turn * 31 % 130, mask=turn % 11 == 0),
            "salary": (turn * 17 % 2100) / 2.0,
            "born": pa.array(day.astype("M8[D]")),
            "region": pa.array(regions.tolist()),
        }
    )


def single(release: Release) -> list[View]:
    """The views of a release in which each has one column."""
    views = [view for view in release.views if isinstance(view, View)]
    assert len(views) == len(release.views)
    return views


def parquet(folder: Path) -> Path:
    path = folder / "people.parquet"
    pq.write_table(people(), path)
    return path


def csv(folder: Path) -> Path:
    path = folder / "people.csv"
    rows = people().to_pylist()
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
    path.write_text("\n".join([",".join(rows[0]), *lines, ""]))
    return path


CONTAINERS: dict[str, Callable[[Path], Any]] = {
    "mapping": lambda folder: {name: people()[name] for name in people().column_names},
    "table": lambda folder: people(),
    "parquet": parquet,
    "csv": csv,
}
