"""Published mechanisms over several columns that others are measured against.

Written for the benchmark, with float noise: good baselines, and no protection for anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import log, prod
from typing import Protocol

import numpy as np

from benchmarks.accuracy import peers
from benchmarks.accuracy.queries import Counts, Ints
from partita import Histogram, Points
from partita.arrays import Floats, UInts

Generator = np.random.Generator

MOST_TILES = 1e6


@dataclass(frozen=True)
class Tiles:
    """Boxes from low to below stop, with what each of them holds, spread evenly."""

    lows: Floats
    stops: Floats
    held: Floats

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """One box after another: the share of every tile that it covers."""
        corners = zip(lows.astype(np.float64), highs + 1.0, strict=True)
        return np.array([shares(self.lows, self.stops, *box).prod(axis=1) @ self.held for box in corners])


@dataclass(frozen=True)
class Grid:
    """The products of stretches between edges, with what each of them holds, spread evenly."""

    edges: list[Floats]
    held: Floats

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """One box after another: a share for each stretch of an axis, axis by axis."""
        return np.array([self.count(*box) for box in zip(lows.astype(np.float64), highs + 1.0, strict=True)])

    def count(self, low: Floats, stop: Floats) -> float:
        left = self.held
        for edges, start, end in reversed(list(zip(self.edges, low, stop, strict=True))):
            left = left @ shares(edges[:-1], edges[1:], start, end)
        return float(left)


def shares(lows: Floats, stops: Floats, low: Floats, stop: Floats) -> Floats:
    """The share of every stretch that lies between two places."""
    return np.asarray(np.maximum(np.minimum(stops, stop) - np.maximum(lows, low), 0.0) / (stops - lows))


def uniform(points: Points, epsilon: str, rng: Generator | None = None) -> Counts:
    """One noisy total, spread evenly."""
    total = points.total + np.random.default_rng(rng).laplace(0, 1 / float(epsilon))
    return Tiles(np.zeros((1, len(points.axes))), widths(points)[None], np.array([total])).counts


def ugrid(points: Points, epsilon: str, rng: Generator | None = None) -> Counts:
    """A grid of equal tiles, as many as suit the number of rows [QYL13b, and for more columns alike]."""
    sides = zip(widths(points), grid_shape(points, float(epsilon)), strict=True)
    edges = [np.unique(np.linspace(0, size, number + 1).round()) for size, number in sides]
    columns = zip(edges, points.places.T, strict=True)
    tiles = tuple(np.searchsorted(cut, column, "right") - 1 for cut, column in columns)
    held = np.zeros([cut.size - 1 for cut in edges])
    np.add.at(held, tiles, points.counts)
    return Grid(edges, held + np.random.default_rng(rng).laplace(0, 1 / float(epsilon), held.shape)).counts


def grid_shape(points: Points, epsilon: float) -> list[int]:
    """(n epsilon / 10)^(2c/(c+2)) tiles on c axes, equally many along each that has so many cells."""
    c = len(points.axes)
    tiles = min(max(1.0, points.total * epsilon / 10) ** (2 * c / (c + 2)), MOST_TILES)
    shape: dict[int, int] = {}
    for axis in sorted(range(c), key=lambda axis: points.axes[axis].width):
        even = (tiles / prod(shape.values())) ** (1 / (c - len(shape)))
        shape[axis] = min(points.axes[axis].width, max(1, round(even)))
    return [shape[axis] for axis in range(c)]


def privtree(points: Points, epsilon: str, rng: Generator | None = None) -> Counts:
    """PrivTree that halves every axis at once: half of epsilon on the tree, half on the leaves [ZXX16]."""
    rng, half = np.random.default_rng(rng), float(epsilon) / 2
    lows, stops, held = (np.concatenate(parts) for parts in zip(*leaves(points, half, rng), strict=True))
    return Tiles(lows, stops, held + rng.laplace(0, 1 / half, held.size)).counts


def leaves(points: Points, epsilon: float, rng: Generator) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Lows, stops, counts of leaves, level by level: lambda = (2b-1)/((b-1) epsilon), delta = lambda ln b."""
    bits = np.array([(axis.width - 1).bit_length() for axis in points.axes])
    b = 2**bits.size
    scale = (2 * b - 1) / (b - 1) / epsilon
    delta = scale * log(b)
    nodes, owners = np.zeros((1, bits.size), np.int64), np.zeros(points.counts.size, np.int64)
    places, rows = points.places.astype(np.int64), points.counts
    for depth in range(int(bits.max(initial=0)) + 1):
        shift = np.maximum(bits - depth, 0)
        held = np.bincount(owners, weights=rows, minlength=len(nodes))
        biased = np.maximum(held - depth * delta, -delta)
        split = (biased + rng.laplace(0, scale, len(nodes)) > 0) & bool(shift.any())
        lows = np.ldexp(nodes[~split].astype(np.float64), shift)
        yield lows, np.minimum(lows + np.ldexp(1.0, shift), widths(points)), held[~split]
        alive = split[owners]
        places, rows, owners = places[alive], rows[alive], (np.cumsum(split) - 1)[owners[alive]]
        nodes, owners = halved(nodes[split], places, owners, shift, points)


def halved(nodes: Ints, places: Ints, owners: Ints, shift: Ints, points: Points) -> tuple[Ints, Ints]:
    """The halves of nodes along every axis that can be halved, and those in which the points lie."""
    can, finer = (shift > 0).astype(np.int64), np.maximum(shift - 1, 0)
    offsets = np.array(list(product(*(range(1 + one) for one in can))))
    children = ((nodes << can)[:, None] + offsets).reshape(-1, can.size)
    inside = (np.ldexp(children.astype(np.float64), finer) < widths(points)).all(axis=1)
    steps = np.append(np.cumprod((1 + can)[:0:-1])[::-1], 1)
    child = owners * len(offsets) + (((places >> finer) & can) * steps).sum(axis=1)
    return children[inside], (np.cumsum(inside) - 1)[child]


def independent(points: Points, epsilon: str, rng: Generator | None = None) -> Counts:
    """Every column alone by PrivTree, and products of their shares."""
    rng, share = np.random.default_rng(rng), str(float(epsilon) / len(points.axes))
    alone = [peers.privtree(along(points, axis), share, rng) for axis in range(len(points.axes))]
    ends = [np.array([axis.width - 1], np.uint64) for axis in points.axes]
    totals = np.array([count(np.zeros(1, np.uint64), end)[0] for count, end in zip(alone, ends, strict=True)])

    def counts(lows: UInts, highs: UInts) -> Floats:
        columns = zip(alone, lows.T.copy(), highs.T.copy(), np.maximum(totals, 1.0), strict=True)
        shares = [count(low, high) / total for count, low, high, total in columns]
        return np.asarray(np.prod(shares, axis=0) * totals.mean())

    return counts


def along(points: Points, axis: int) -> Histogram:
    """How many rows each cell of one axis holds."""
    cells, place = np.unique(points.places[:, axis], return_inverse=True)
    counts = np.bincount(place, weights=points.counts, minlength=cells.size).astype(np.int64)
    return Histogram(points.axes[axis].width, cells, counts)


def widths(points: Points) -> Floats:
    """The number of positions along each axis."""
    return np.array([float(axis.width) for axis in points.axes])


class BoxPeer(Protocol):
    """A method whose noise can be repeated."""

    def __call__(self, points: Points, epsilon: str, rng: Generator | None = None) -> Counts: ...


ANCHORED: dict[str, BoxPeer] = {"Uniform": uniform, "UGrid": ugrid, "PrivTree": privtree}
PEERS: dict[str, BoxPeer] = {**ANCHORED, "Independent": independent}
