"""Sums over ranges of the summed value itself, against a tree over equal cells below the best cap."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.score import Json
from benchmarks.accuracy.sums_ranges import RANGES, SEEDS, VALUE, Floats, Ranges, averaged
from benchmarks.accuracy.sums_sets import SETS, Ints
from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.public.sums.parts import PartTree
from partita.trusted.mechanisms.sums import LogTree
from partita.trusted.secret import Points

CELLS = 4096
NOISES = 10


def own_sums(n: int, trials: int) -> Json:
    """By how much the median error is below that of global truncation; ends are values of the data."""
    rows = [_of_seed(n, trials, seed) for seed in SEEDS]
    return {"row": "sums", "kind": "own", "set": "lognormal", "n": n, **averaged(rows, "median_ratio")}


def _of_seed(n: int, trials: int, seed: int) -> Json:
    rng = np.random.default_rng([n, seed, 2])
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
    ours = float(np.median(misses))
    return {"median": ours, "median_ratio": capped_own(values, ends, truth, rng) / ours}


def capped_own(values: Ints, ends: Ints, truth: Floats, rng: np.random.Generator) -> float:
    """The least median error of a tree over equal cells of [0, cap), values divided by the cap."""
    found = []
    tree = PartTree(CELLS, 16)
    for cap in (2.0**power for power in range(14, 33)):
        keys = np.minimum(values / cap * CELLS, CELLS - 1).astype(np.int64)
        lows, highs = np.minimum(ends / cap * CELLS, CELLS - 1).astype(np.int64)
        ranges = Ranges(keys, CELLS, lows, highs)
        noise = rng.laplace(0, tree.levels * cap, (NOISES, tree.nodes)) @ tree.plain(ranges.weights).nodes.T
        misses = np.abs(ranges.sums(np.minimum(values, cap)) - truth + noise)
        found.append(float(np.median(misses)))
    return min(found)
