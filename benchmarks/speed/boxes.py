"""Boxes over several columns: a million points to a release, and a release to many answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TypeAlias

import numpy as np

import partita as pt
from benchmarks.accuracy.boxes_peers import Tiles
from benchmarks.accuracy.boxes_work import sampled
from benchmarks.accuracy.draws import FAMILY_BITS, at_bits, lognormal
from benchmarks.accuracy.work import column_bounds, column_values
from benchmarks.speed.clock import Work, rates, times
from benchmarks.speed.row import Row, Target
from partita.arrays import UInts
from partita.public.boxes.base import BoxRelease
from partita.public.boxes.rank_boxes import RankBoxesRelease
from partita.public.boxes.spending_boxes import SpendingBoxesRelease
from partita.trusted.noise import SystemNoise
from partita.trusted.noise.system import Path

EPSILON = 1
POINTS, PEOPLE, ASKED = 10**6, 10**5, 10**5
TABLE, COLUMNS = "flights3m", ("delay", "distance")
NARROW_BITS = 16
Tree: TypeAlias = SpendingBoxesRelease | RankBoxesRelease

SECONDS, WIDE = Target("figure", "<=", 10), Target("ratio", "<=", 2)


def release_of(quick: bool, *, points: str) -> Row:
    """A million points on two axes of 2^32 cells, by compiled code, against the NumPy path."""
    held = drawn(points, FAMILY_BITS, quick)
    ours, theirs = released("path compiled", held, "compiled"), released("path numpy", held, "numpy")
    return times(quick, ours, theirs, target=SECONDS, size="2^32 x 2^32", epsilon=EPSILON)


def release_wide(quick: bool, *, points: str) -> Row:
    """The same on axes of 2^32 cells, against axes of 2^16."""
    wide, narrow = (drawn(points, bits, quick) for bits in (FAMILY_BITS, NARROW_BITS))
    ours, theirs = released("2^32 x 2^32", wide), released("2^16 x 2^16", narrow)
    return times(quick, ours, theirs, target=WIDE, size="2^32 x 2^32", epsilon=EPSILON)


def first_answer(quick: bool, *, points: str) -> Row:
    """From points to the first answer, for which the release is solved, against the release alone."""
    held = drawn(points, FAMILY_BITS, quick)
    build = released("release", held)
    corner = np.array([[axis.width // 2 for axis in held.axes]], np.uint64)

    def answered() -> object:
        return default(held).counts(np.zeros_like(corner), corner)

    ours = Work("release and first answer", answered, held.total)
    return times(quick, ours, build, target=SECONDS, size="2^32 x 2^32", epsilon=EPSILON)


def counts_of_boxes(quick: bool, *, kind: str) -> Row:
    """A hundred thousand boxes in one call, against a NumPy loop over the boxes that looks at every leaf."""
    release = KINDS[kind](quick)
    lows, highs = boxes(release, quick)
    baseline, few = leaves(release), max(1, ASKED // 1000)
    return rates(
        quick,
        Work(f"{type(release).__name__}.counts", lambda: release.counts(lows, highs), len(lows)),
        Work(f"every leaf, {few} boxes", lambda: baseline.counts(lows[:few], highs[:few]), few),
        size=" x ".join(f"2^{math.log2(axis.width):.3g}" for axis in release.axes),
        leaves=len(baseline.held),
    )


def tree_of_two(quick: bool) -> Tree:
    """A million points on two axes, as the default publishes them."""
    points = drawn("uniform", FAMILY_BITS, quick)
    return pt.SpendingBoxes(axes=points.axes, epsilon=EPSILON).release(points)


def ranks_of_three(quick: bool) -> Tree:
    """A hundred thousand points on three axes, as the default publishes them."""
    points = skewed(3, PEOPLE // (100 if quick else 1))
    return pt.RankBoxes(axes=points.axes, epsilon=EPSILON).release(points)


KINDS: dict[str, Callable[[bool], Tree]] = {"tree": tree_of_two, "rank": ranks_of_three}


def default(points: pt.Points, path: Path = "auto") -> BoxRelease:
    """A fresh release by the default mechanism."""
    noise = SystemNoise(path=path)
    return pt.Rectangles(axes=points.axes, epsilon=EPSILON).release(points, noise=noise)


def released(name: str, points: pt.Points, path: Path = "auto") -> Work:
    """The call that makes a release of the points, all checks included."""
    return Work(name, partial(default, points, path), points.total)


@cache
def drawn(name: str, bits: int, quick: bool) -> pt.Points:
    """A million points of a family on two axes of 2^bits cells: the same people at every width."""
    rng = np.random.default_rng(bits)
    rows = FAMILIES[name](np.random.default_rng(0))[:: 100 if quick else 1]
    return pt.Points.from_rows(at_bits(rows, bits, rng), axes=[pt.Axis(size=2**bits)] * 2)


def flights(rng: np.random.Generator) -> UInts:
    """Delay and distance of flights, stretched from their public bounds, with uniform low bits."""
    rows = sampled(TABLE, np.stack([column_values(TABLE, column) for column in COLUMNS], axis=1))
    bounds = np.array([column_bounds(TABLE, column) for column in COLUMNS])
    shares = (rows + rng.random(rows.shape)) / (bounds[:, 1] - bounds[:, 0] + 1)
    return np.asarray(shares.clip(0, 1 - 2.0**-FAMILY_BITS) * 2**FAMILY_BITS, dtype=np.uint64)


def uniform(rng: np.random.Generator) -> UInts:
    """All cells alike."""
    return rng.integers(0, 2**FAMILY_BITS, (POINTS, 2), dtype=np.uint64)


FAMILIES: dict[str, Callable[[np.random.Generator], UInts]] = {"flights": flights, "uniform": uniform}


def skewed(axes: int, n: int) -> pt.Points:
    """n points, lognormal along each axis of 2^32 cells; each column leans on the first."""
    rng = np.random.default_rng(axes)
    columns = [lognormal(n, rng) for _ in range(axes)]
    rows = np.stack([columns[0], *((columns[0] + column) // np.uint64(2) for column in columns[1:])], axis=1)
    return pt.Points.from_rows(rows, axes=[pt.Axis(size=2**FAMILY_BITS)] * axes)


def boxes(release: BoxRelease, quick: bool) -> tuple[UInts, UInts]:
    """Boxes with uniform corners."""
    rng, number = np.random.default_rng(0), ASKED // (100 if quick else 1)
    sides = [rng.integers(0, axis.width, (2, number), dtype=np.uint64) for axis in release.axes]
    lows, highs = np.sort(np.stack(sides, axis=2), axis=0)
    return lows, highs


def leaves(release: Tree) -> Tiles:
    """The leaves of the tree of a release, with what it says they hold."""
    nodes = release.shape.nodes
    lows, highs = nodes.corners(nodes.leaves)
    return Tiles(lows.astype(np.float64), highs.astype(np.float64) + 1, release.counts(lows, highs))
