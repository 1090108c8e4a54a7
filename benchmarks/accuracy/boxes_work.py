"""The shared data over several columns: shapes over 256 x 256 cells, raw tables at their own resolution."""

from __future__ import annotations

import csv
from functools import cache

import numpy as np

from benchmarks.accuracy.boxes_queries import BoxQueries, plain_axes
from benchmarks.accuracy.queries import Ints, Work
from benchmarks.accuracy.work import Peers, anchors, column_values, folder
from partita import Points

SCORED = ("Uniform", "Identity", "UGrid", "AGrid", "QuadTree", "Hb2D", "DAWA2D", "PrivTree")
"""The peers whose best is the baseline in a cell of 256 x 256."""

SETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "zip2": ("us_zipcodes", ("lat", "lon")),
    "dia2": ("diamonds", ("price", "carat")),
    "gss2": ("gss_wages", ("realrinc", "age")),
    "fl3": ("flights3m", ("minute", "delay", "distance")),
    "dia3": ("diamonds", ("price", "carat", "depth")),
    "xyz3": ("diamonds", ("x", "y", "z")),
    "gss3": ("gss_wages", ("realrinc", "age", "year")),
    "dia4": ("diamonds", ("price", "carat", "depth", "table")),
    "gss4": ("gss_wages", ("realrinc", "age", "year", "prestige")),
    "dia5": ("diamonds", ("price", "carat", "depth", "table", "x")),
    "dia6": ("diamonds", ("price", "carat", "depth", "table", "x", "y")),
}
"""Tables and columns of the raw sets; the digit is the number of columns."""

WORKLOADS = ("unif", "data", "marg", "small")
"""Uniform corners; corners at data values; those on one or two columns only; small boxes around rows."""

EPSILONS = ("0.1", "1.0")
SAMPLED = {"flights3m": 1_000_000}
"""Tables of which so many rows are used, drawn once for all."""


def flat_shapes() -> list[tuple[str, int, str]]:
    """Every (dataset, n, epsilon) over 256 x 256 cells."""
    return list(anchors_2d())


def flat_work(dataset: str, n: int, epsilon: str) -> Work[Points]:
    """A table of counts exactly as the peers saw it, and the 2,000 boxes."""
    counts = stored("work_2d.npz")[f"{dataset}:{n}"]
    points = Points.from_rows(np.argwhere(counts), axes=plain_axes(counts.shape), counts=counts[counts > 0])
    boxes = BoxQueries.half_open(stored("work_2d.npz")["lo"], stored("work_2d.npz")["hi"])
    return Work(dataset, n, epsilon, points, {"box": boxes})


def flat_peers(dataset: str, n: int, epsilon: str, names: tuple[str, ...] = SCORED) -> Peers:
    """The mean errors of the named peers in a cell."""
    rows = anchors_2d()[dataset, n, epsilon]
    return {"box": {name: rows[name]["L1"] for name in names}}


def raw_work(name: str, epsilon: str) -> Work[Points]:
    """A raw set at its own resolution, and its four lists of boxes."""
    boxes = {kind: BoxQueries.half_open(*raw_corners(name, kind)) for kind in WORKLOADS}
    points = raw_points(name)
    return Work(name, points.total, epsilon, points, boxes)


def raw_corners(name: str, kind: str) -> tuple[Ints, Ints]:
    """The corners of a list of boxes, half-open."""
    file = stored("work_boxes.npz")
    return file[f"{name}:{kind}:lo"], file[f"{name}:{kind}:hi"]


@cache
def raw_points(name: str) -> Points:
    """The records of a set, clipped to the public bounds."""
    table, columns = SETS[name]
    sizes = stored("work_boxes.npz")[f"{name}:dom"]
    rows = np.stack([column_values(table, column) for column in columns], axis=1)
    return Points.from_rows(np.clip(sampled(table, rows), 0, sizes - 1), axes=plain_axes(sizes.tolist()))


def sampled(table: str, rows: Ints) -> Ints:
    """Rows drawn without replacement as pandas draws them (`sample(n, random_state=1)`), or all."""
    if table not in SAMPLED:
        return rows
    return rows[np.random.RandomState(1).choice(len(rows), SAMPLED[table], replace=False)]


def raw_peers(name: str, epsilon: str) -> Peers:
    """The mean errors of all peers on each list of boxes."""
    return anchors_raw()[name, epsilon]


@cache
def stored(file: str) -> dict[str, Ints]:
    """The arrays of a file of the folder."""
    with np.load(folder() / file) as work:
        return {name: work[name].astype(np.int64) for name in work.files}


@cache
def anchors_2d() -> dict[tuple[str, int, str], dict[str, dict[str, float]]]:
    return dict(anchors("anchors_2d.csv"))


@cache
def anchors_raw() -> dict[tuple[str, str], Peers]:
    """For each (set, epsilon) each list's peers with their mean errors."""
    found: dict[tuple[str, str], Peers] = {}
    with (folder() / "anchors_boxes.csv").open() as stream:
        for row in csv.DictReader(stream):
            lists = found.setdefault((row["set"], row["eps"]), {})
            lists.setdefault(row["wl"], {})[row["alg"]] = float(row["L1"])
    return found
