"""Sums over ranges of a key, against a tree of truncated values that was tuned in hindsight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json
from benchmarks.accuracy.sums_sets import LARGEST, SETS, Ints
from partita.domain import Integer
from partita.inference.boxes.axis import Axis
from partita.inference.sums.part_tree import PartTree
from partita.mechanisms.level_trees import LevelTrees
from partita.mechanisms.log_tree import LogTree
from partita.points import Points
from partita.releases.boxes import BoxTerm

Floats = NDArray[np.float64]

ROWS = (20_000, 200_000)
REAL = ("wages", "diamonds")
RANGES = 100
NOISES = 100
BRANCHINGS = (2, 4, 8, 12, 16, 24, 32)
VALUE = Integer(0, LARGEST)


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


def asked(keys: Ints, cells: int, rng: np.random.Generator) -> Ranges:
    """Ranges with uniform ends."""
    ends = np.sort(rng.integers(0, cells, (2, RANGES)), axis=0)
    return Ranges(keys, cells, *ends)


def truncated(ranges: Ranges, values: Ints, rng: np.random.Generator) -> tuple[float, float, float]:
    """Mean and median errors of the best cap and branching in hindsight, and the mean error of no cap."""
    truth = ranges.sums(values.astype(np.float64))
    found, uncapped = [], []
    for branching in BRANCHINGS:
        tree = PartTree(ranges.cells, branching)
        noise = rng.laplace(0, tree.levels, (NOISES, tree.nodes)) @ tree.plain(ranges.weights).nodes.T
        uncapped.append(float(np.abs(noise).mean()) * LARGEST)
        for cap in (factor * 2.0**power for power in range(6, 29) for factor in (1.0, 1.5)):
            misses = np.abs(ranges.sums(np.minimum(values, cap)) - truth + noise * cap)
            found.append((float(misses.mean()), float(np.median(misses))))
    return *min(found), min(uncapped)


def cells(plan: Plan) -> Sequence[Cell]:
    synthetic = [name for name in SETS if name not in REAL]
    work = [*product(synthetic, ROWS), *((name, 0) for name in REAL)]
    return [
        *(partial(range_sums, name, n, plan.trials) for name, n in work),
        *(partial(own_sums, n, plan.trials) for n in ROWS),
        *(partial(moments, name, ROWS[-1], plan.trials) for name in ("lognormal", "exponential")),
    ]


def range_sums(name: str, n: int, trials: int) -> Json:
    """Errors of sums over ranges of the key at epsilon 1."""
    chosen = SETS[name]
    rng = np.random.default_rng([n, list(SETS).index(name), 77])
    keys, values = chosen.draw(n, rng)
    ranges = asked(keys, chosen.cells, rng)
    truth = ranges.sums(values.astype(np.float64))
    axis = Axis(size=chosen.cells)
    points = Points.from_rows(np.stack([keys, values + 1], axis=1), axes=[axis, Axis.of(VALUE)])
    mechanism = LevelTrees(keys=[axis], value=VALUE, epsilon=1)
    misses = []
    for _ in range(trials):
        release = mechanism.release(points)
        terms = [BoxTerm((int(a),), (int(b),)) for a, b in zip(ranges.lows, ranges.highs, strict=True)]
        misses += [abs(release.sum([t]).value - true) for t, true in zip(terms, truth, strict=True)]
    best, best_median, uncapped = truncated(ranges, values, rng)
    return {
        "row": "sums",
        "kind": "constant" if chosen.constant else "varying",
        "set": name,
        "n": len(values),
        "mean": float(np.mean(misses)),
        "ratio": float(np.mean(misses)) / best,
        "median_ratio": float(np.median(misses)) / best_median,
        "normalization_ratio": uncapped / float(np.mean(misses)),
    }


def own_sums(n: int, trials: int) -> Json:
    """Errors of sums over ranges of the value itself: ends at values of the data."""
    rng = np.random.default_rng([n, 78])
    _, values = SETS["lognormal"].draw(n, rng)
    ends = np.sort(rng.choice(values, (2, RANGES)), axis=0)
    truth = np.array([float(values[(values >= a) & (values <= b)].sum()) for a, b in ends.T])
    points = Points.from_rows((values + 1)[:, None], axes=[Axis.of(VALUE)])
    mechanism = LogTree(value=VALUE, epsilon=1)
    misses = []
    for _ in range(trials):
        release = mechanism.release(points)
        found = [release.sum([BoxTerm((int(a) + 1,), (int(b) + 1,))]).value for a, b in ends.T]
        misses += np.abs(np.array(found) - truth).tolist()
    best = capped_own(values, ends, truth, rng)
    return {
        "row": "sums",
        "kind": "own",
        "set": "lognormal",
        "n": n,
        "median": float(np.median(misses)),
        "median_ratio": best / float(np.median(misses)),
    }


def capped_own(values: Ints, ends: Ints, truth: Floats, rng: np.random.Generator) -> float:
    """The least median error of a tree over 2^12 equal cells of [0, cap), values divided by the cap."""
    found = []
    for cap in (2.0**power for power in range(14, 33)):
        keys = np.minimum(values / cap * 4096, 4095).astype(np.int64)
        lows, highs = np.minimum(ends / cap * 4096, 4095).astype(np.int64)
        ranges, tree = Ranges(keys, 4096, lows, highs), PartTree(4096, 16)
        noise = rng.laplace(0, tree.levels * cap, (10, tree.nodes)) @ tree.plain(ranges.weights).nodes.T
        misses = np.abs(ranges.sums(np.minimum(values, cap)) - truth + noise)
        found.append(float(np.median(misses)))
    return min(found)


def moments(name: str, n: int, trials: int) -> Json:
    """Errors of means and deviations, against trees of counts, values and squares at epsilon / 3 each.

    Those trees are given the best cap in hindsight, one for all three.
    """
    rng = np.random.default_rng([n, list(SETS).index(name), 79])
    keys, values = SETS[name].draw(n, rng)
    ranges = asked(keys, 128, rng)
    truth = spread(*(ranges.sums(values.astype(np.float64) ** power) for power in range(3)))
    axis = Axis(size=128)
    points = Points.from_rows(np.stack([keys, values + 1], axis=1), axes=[axis, Axis.of(VALUE)])
    mechanism = LevelTrees(keys=[axis], value=VALUE, epsilon=1, moments=True)
    found = []
    for _ in range(trials):
        release = mechanism.release(points)
        terms = [[BoxTerm((int(a),), (int(b),))] for a, b in zip(ranges.lows, ranges.highs, strict=True)]
        found.append(
            [
                [release.mean(t).value for t in terms],
                [release.std(t).value for t in terms],
            ]
        )
    ours = np.nanmean(np.abs(np.array(found) - truth), axis=(0, 2))
    peers = three_trees(ranges, values, truth, rng)
    return {
        "row": "sums",
        "kind": "moments",
        "set": name,
        "n": n,
        "mean_ratio": float(peers[0] / ours[0]),
        "std_ratio": float(peers[1] / ours[1]),
    }


def spread(count: Floats, total: Floats, squares: Floats) -> Floats:
    """Means and standard deviations."""
    rows = np.maximum(count, 1.0)
    mean = total / rows
    return np.array([mean, np.sqrt(np.maximum(squares / rows - mean**2, 0.0))])


def three_trees(ranges: Ranges, values: Ints, truth: Floats, rng: np.random.Generator) -> Floats:
    """The least mean error over caps, for means and for deviations."""
    tree, found = PartTree(ranges.cells, 12), []
    nodes = tree.plain(ranges.weights).nodes.T
    for cap in (2.0**power for power in range(10, 29)):
        errors = []
        for _ in range(10):
            noisy = [
                ranges.sums(np.minimum(values, cap) ** power)
                + rng.laplace(0, 3 * tree.levels * cap**power, tree.nodes) @ nodes
                for power in range(3)
            ]
            errors.append(np.abs(spread(*noisy) - truth).mean(axis=1))
        found.append(np.mean(errors, axis=0))
    return np.asarray(np.min(found, axis=0))


def summary(rows: list[Json]) -> Iterator[Json]:
    """The worst ratio of each kind."""
    for kind, name in (("constant", "ratio"), ("varying", "ratio")):
        worst = max(row[name] for row in rows if row["kind"] == kind)
        yield {"row": "sums", "total": kind, "worst_ratio": worst}
    for kind, name in (("own", "median_ratio"), ("moments", "mean_ratio"), ("moments", "std_ratio")):
        least = min(row[name] for row in rows if row["kind"] == kind)
        yield {"row": "sums", "total": f"{kind}: {name}", "least_ratio": least}


SUMS = Row(cells, summary)
