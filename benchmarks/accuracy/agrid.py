"""AGrid [QYL13b]: a coarse grid whose tiles are cut again, each as its own noisy count says.

Written for the benchmark, with float noise: a good baseline, and no protection for anybody.
"""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np

from benchmarks.accuracy.boxes_peers import Generator, Tiles, widths
from benchmarks.accuracy.queries import Counts
from partita import Points
from partita.arrays import Floats

ROWS_FOR_A_TILE, FINE_ROWS_FOR_A_TILE = 10, 5
LEAST_TILES = 10


def agrid(points: Points, epsilon: str, rng: Generator | None = None) -> Counts:
    """Two axes, half of epsilon on each of the two grids, tiles that agree with what they were cut from."""
    rng, whole = np.random.default_rng(rng), float(epsilon)
    number = max(LEAST_TILES, ceil(sqrt(points.total * whole / ROWS_FOR_A_TILE) / 4))
    edges = [cut(0, size, number) for size in widths(points)]
    parts = []
    for (left, right), x in zip(pairs(edges[0]), along(points.places[:, 0], edges[0]), strict=True):
        for (bottom, top), y in zip(pairs(edges[1]), along(points.places[x, 1], edges[1]), strict=True):
            rows = points.places[x][y].astype(np.float64), points.counts[x][y]
            parts.append(tile(np.array([left, bottom]), np.array([right, top]), *rows, whole / 2, rng))
    lows, stops, held = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Tiles(lows, stops, held).counts


def tile(
    low: Floats, stop: Floats, places: Floats, counts: Floats, epsilon: float, rng: Generator
) -> tuple[Floats, Floats, Floats]:
    """The fine tiles of a coarse one: lows, stops, and counts by least squares over both grids."""
    coarse = counts.sum() + rng.laplace(0, 1 / epsilon)
    number = max(1, ceil(sqrt(max(coarse, 0.0) * epsilon / FINE_ROWS_FOR_A_TILE)))
    edges = [cut(start, end, number) for start, end in zip(low, stop, strict=True)]
    fine = np.histogramdd(places, bins=edges, weights=counts)[0]
    noisy = fine + rng.laplace(0, 1 / epsilon, fine.shape)
    noisy += (coarse - noisy.sum()) / (1 + noisy.size)
    return corners(edges, 0), corners(edges, 1), noisy.ravel()


def corners(edges: list[Floats], end: int) -> Floats:
    """The lower (0) or upper (1) corners of all products of stretches."""
    ends = [each[1:] if end else each[:-1] for each in edges]
    return np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, len(ends))


def cut(start: float, end: float, number: int) -> Floats:
    """Whole edges of so many equal stretches, or of fewer where cells are too few."""
    return np.unique(np.linspace(start, end, number + 1).round())


def pairs(edges: Floats) -> list[tuple[float, float]]:
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def along(column: np.ndarray, edges: Floats) -> list[np.ndarray]:
    """For each stretch between edges, where its points are."""
    owners = np.searchsorted(edges, column, "right") - 1
    order = np.argsort(owners, kind="stable")
    return np.split(order, np.searchsorted(owners[order], np.arange(1, edges.size - 1)))
