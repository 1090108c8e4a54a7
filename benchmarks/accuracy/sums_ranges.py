"""Ranges of a key, sums over them, and the trees of truncated values that are tuned in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.score import Json
from benchmarks.accuracy.sums_sets import LARGEST, Ints
from partita.domain import Integer
from partita.public.boxes.base import BoxTerm
from partita.public.sums.parts import PartTree

Floats = NDArray[np.float64]

VALUE = Integer(0, LARGEST)
SEEDS = (60_461, 91_813, 33_217, 75_029)
RANGES = 100
NOISES = 100
BRANCHINGS = (2, 4, 8, 12, 16, 24, 32)
OCTAVES = [2.0**power for power in range(6, 29)]
HALF_OCTAVES = [factor * cap for cap in OCTAVES for factor in (1.0, 1.5)]


class Ranges(NamedTuple):
    """First and last cells, and for each range the sum of any number per row."""

    keys: Ints
    cells: int
    lows: Ints
    highs: Ints

    def sums(self, values: Floats) -> Floats:
        before = np.concatenate([[0.0], np.cumsum(np.bincount(self.keys, values, self.cells))])
        return np.asarray(before[self.highs + 1] - before[self.lows])

    @property
    def weights(self) -> Floats:
        cells = np.arange(self.cells)
        return ((cells >= self.lows[:, None]) & (cells <= self.highs[:, None])).astype(np.float64)

    @property
    def terms(self) -> list[list[BoxTerm]]:
        ends = zip(self.lows.tolist(), self.highs.tolist(), strict=True)
        return [[BoxTerm((low,), (high,))] for low, high in ends]


def asked(keys: Ints, cells: int, rng: np.random.Generator) -> Ranges:
    """Ranges with uniform ends."""
    ends = np.sort(rng.integers(0, cells, (2, RANGES)), axis=0)
    return Ranges(keys, cells, *ends)


class Tuned(NamedTuple):
    """The least mean error over branchings: of caps at octaves, of half octaves too, and of no cap."""

    octaves: float
    half_octaves: float
    uncapped: float


def truncated(ranges: Ranges, values: Ints, rng: np.random.Generator) -> Tuned:
    """Trees of min(v, cap) / cap, with the best cap and branching in hindsight."""
    biases = {cap: ranges.sums(np.maximum(values - cap, 0.0)) for cap in HALF_OCTAVES}
    found: dict[float, float] = dict.fromkeys(biases, np.inf)
    uncapped = np.inf
    for branching in BRANCHINGS:
        tree = PartTree(ranges.cells, branching)
        noise = rng.laplace(0, tree.levels, (NOISES, tree.nodes)) @ tree.plain(ranges.weights).nodes.T
        uncapped = min(uncapped, float(np.abs(noise).mean()) * LARGEST)
        for cap, bias in biases.items():
            found[cap] = min(found[cap], float(np.abs(noise * cap - bias).mean()))
    return Tuned(min(found[cap] for cap in OCTAVES), min(found.values()), uncapped)


def averaged(rows: Sequence[Json], *ratios: str) -> Json:
    """The mean over seeds of every figure; of ratios its standard error, too."""
    merged: Json = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    for name in ratios:
        merged[f"{name}_error"] = float(np.std([row[name] for row in rows], ddof=1) / len(rows) ** 0.5)
    return merged
