"""The shared data: histograms, records, ranges and the errors of peers, from the folder in PARTITA_DATA.

The folder is described in its own README; nothing of it is part of the project.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.queries import Ints, Queries, Work
from partita import Histogram

Peers = dict[str, dict[str, float]]
"""For each list of questions, each peer's mean error."""

CELLS = 4096
SCORED = ("Uniform", "Identity", "H2", "Hb", "PrivTree", "DAWA")
"""The peers whose best is the baseline in a cell of one dimension."""
SCORED_HUGE = ("Bins4096+Hb", "Bins65536+Hb", "PrivTree")
"""The same for the universe of 2^32 cells."""
LITERAL = "DNRR_literal"


class NoData(Exception):
    """The folder with the work is not there."""


def shapes() -> list[tuple[str, int, str]]:
    """Every (dataset, n, epsilon) of the one-dimensional work."""
    return list(anchors_1d())


def shape_work(dataset: str, n: int, epsilon: str) -> Work[Histogram]:
    """A histogram exactly as the peers saw it, the 2,000 ranges and every prefix."""
    histogram = Histogram.dense(work_1d()[f"{dataset}:{n}"])
    return Work(dataset, n, epsilon, histogram, fixed_queries())


def fixed_queries() -> dict[str, Queries]:
    """The 2,000 ranges of the work (half-open in the file) and all prefixes of 4,096 cells."""
    ranges = work_1d()["ranges"]
    prefixes = Queries.prefixes(np.arange(CELLS, dtype=np.uint64))
    return {"range": Queries.half_open(ranges[:, 0], ranges[:, 1]), "prefix": prefixes}


def peers_1d(dataset: str, n: int, epsilon: str, names: tuple[str, ...] = SCORED) -> Peers:
    """The mean errors of the named peers in a cell."""
    rows = anchors_1d()[dataset, n, epsilon]
    return {query: {name: rows[name][f"{query}_L1"] for name in names} for query in ("range", "prefix")}


def peers_huge(dataset: str, n: int, epsilon: str) -> Peers:
    """The mean errors of the peers at 2^32 cells: uniform ranges, ends at data values, prefixes."""
    rows = anchors_huge()[dataset, n, epsilon]
    columns = {"uniform": "uniform_L1", "data": "dataq_L1", "prefix": "prefix_L1"}
    return {query: {name: rows[name][column] for name in SCORED_HUGE} for query, column in columns.items()}


def columns() -> list[tuple[str, str]]:
    """Every (table, column) of raw records."""
    return [(entry["name"], column) for entry in index() for column in entry.get("columns", ())]


def column_bounds(table: str, column: str) -> tuple[int, int]:
    """The public bounds of a column, both included."""
    entry = next(entry for entry in index() if entry["name"] == table)
    low, high = entry["public_bounds"][column]
    return low, high


@cache
def column_values(table: str, column: str) -> Ints:
    """The records of a column, as integers above its public lower bound."""
    import pyarrow.parquet as pq

    (values,) = pq.read_table(folder() / f"{table}.parquet", columns=[column]).columns
    return np.asarray(values.to_numpy(), dtype=np.int64) - column_bounds(table, column)[0]


@cache
def work_1d() -> dict[str, Ints]:
    """The arrays of work_1d.npz."""
    with np.load(folder() / "work_1d.npz") as work:
        return {name: work[name].astype(np.int64) for name in work.files}


@cache
def index() -> list[dict[str, Any]]:
    """What index.json says about each set."""
    return list(json.loads((folder() / "index.json").read_text()))


@cache
def anchors_1d() -> dict[tuple[str, int, str], dict[str, dict[str, float]]]:
    return dict(anchors("anchors_1d.csv"))


@cache
def anchors_huge() -> dict[tuple[str, int, str], dict[str, dict[str, float]]]:
    return dict(anchors("anchors_huge.csv"))


def anchors(name: str) -> Iterator[tuple[tuple[str, int, str], dict[str, dict[str, float]]]]:
    """For each (dataset, n, epsilon) each peer's figures by column."""
    found: dict[tuple[str, int, str], dict[str, dict[str, float]]] = {}
    with (folder() / name).open() as stream:
        for row in csv.DictReader(stream):
            key, peer = (row.pop("dataset"), int(row.pop("n")), row.pop("eps")), row.pop("alg")
            found.setdefault(key, {})[peer] = {column: float(figure) for column, figure in row.items()}
    yield from found.items()


def folder() -> Path:
    """The folder in PARTITA_DATA."""
    named = os.environ.get("PARTITA_DATA", "")
    if not Path(named, "work_1d.npz").is_file():
        raise NoData("set PARTITA_DATA to the folder that holds work_1d.npz, index.json and anchors_1d.csv")
    return Path(named)
