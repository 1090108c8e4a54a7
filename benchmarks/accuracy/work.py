"""The shared work: histograms, ranges and the errors of peers, from the folder in PARTITA_DATA."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class NoData(Exception):
    """The folder with the work is not there."""


@dataclass(frozen=True)
class Cell:
    """One histogram with its ranges (half-open), at one epsilon, and the peers' mean range error."""

    dataset: str
    n: int
    epsilon: str
    counts: Ints
    ranges: Ints
    peers: dict[str, float]

    @property
    def truth(self) -> Ints:
        """The exact count of each range."""
        before = np.concatenate([[0], np.cumsum(self.counts)])
        return before[self.ranges[:, 1]] - before[self.ranges[:, 0]]


def cells_1d() -> Iterator[Cell]:
    """All cells of the one-dimensional work."""
    folder = _folder()
    work, peers = np.load(folder / "work_1d.npz"), _peers(folder / "anchors_1d.csv")
    ranges = work["ranges"].astype(np.int64)
    for (dataset, n, epsilon), errors in peers.items():
        counts = work[f"{dataset}:{n}"].astype(np.int64)
        yield Cell(dataset, n, epsilon, counts, ranges[ranges[:, 1] > ranges[:, 0]], errors)


def _folder() -> Path:
    named = os.environ.get("PARTITA_DATA", "")
    if not Path(named, "work_1d.npz").is_file():
        raise NoData("set PARTITA_DATA to the folder that holds work_1d.npz and anchors_1d.csv")
    return Path(named)


def _peers(file: Path) -> dict[tuple[str, int, str], dict[str, float]]:
    errors: dict[tuple[str, int, str], dict[str, float]] = {}
    with file.open() as stream:
        for row in csv.DictReader(stream):
            key = row["dataset"], int(row["n"]), row["eps"]
            errors.setdefault(key, {})[row["alg"]] = float(row["range_L1"])
    return errors
