"""Means and deviations over ranges of a key, against three trees at a third of epsilon each."""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.accuracy.score import Json
from benchmarks.accuracy.sums_ranges import OCTAVES, SEEDS, VALUE, Floats, Ranges, asked, averaged
from benchmarks.accuracy.sums_sets import SETS, Ints
from partita.domain.axis import Axis
from partita.public.sums.parts import PartTree
from partita.trusted.mechanisms.sums import LevelTrees
from partita.trusted.secret import Points

BRANCHINGS = (8, 12, 16)
NOISES = 10


def moments(name: str, n: int, trials: int) -> Json:
    """By how much errors of means and deviations are below those of the three trees."""
    rows = [_of_seed(name, n, trials, seed) for seed in SEEDS]
    return {
        "row": "sums",
        "kind": "moments",
        "set": name,
        "n": n,
        **averaged(rows, "mean_ratio", "std_ratio"),
    }


def _of_seed(name: str, n: int, trials: int, seed: int) -> Json:
    rng = np.random.default_rng([n, list(SETS).index(name), seed, 3])
    chosen = SETS[name]
    keys, values = chosen.draw(n, rng)
    ranges = asked(keys, chosen.cells, rng)
    truth = spread(*(ranges.sums(values.astype(np.float64) ** power) for power in range(3)))
    ours = np.mean([_errors(each, truth) for each in released(ranges, values, trials)], axis=0)
    peers = three_trees(ranges, values, truth, rng)
    return {"mean_ratio": float(peers[0] / ours[0]), "std_ratio": float(peers[1] / ours[1])}


def released(ranges: Ranges, values: Ints, trials: int) -> list[Floats]:
    """Means and deviations of every range, of fresh releases; not numbers where not determinable."""
    axis = Axis(size=ranges.cells)
    points = Points.from_rows(np.stack([ranges.keys, values + 1], axis=1), axes=[axis, Axis.of(VALUE)])
    mechanism = LevelTrees(keys=[axis], value=VALUE, epsilon=1, moments=True)
    made = [mechanism.release(points) for _ in range(trials)]
    return [
        np.array([[ask(term).value for term in ranges.terms] for ask in (release.mean, release.std)])
        for release in made
    ]


def _errors(found: Floats, truth: Floats) -> Floats:
    """Mean errors; what is not determinable is as wrong as the best constant guess."""
    guess = np.median(truth, axis=1, keepdims=True)
    return np.asarray(np.abs(np.where(np.isnan(found), guess, found) - truth).mean(axis=1))


def spread(count: Floats, total: Floats, squares: Floats) -> Floats:
    """Means and standard deviations."""
    rows = np.maximum(count, 1.0)
    mean = total / rows
    return np.array([mean, np.sqrt(np.maximum(squares / rows - mean**2, 0.0))])


def three_trees(ranges: Ranges, values: Ints, truth: Floats, rng: np.random.Generator) -> Floats:
    """The least mean errors of trees of counts, values and squares: each with its best cap and branching."""
    found = []
    for cap in OCTAVES:
        capped = np.minimum(values, cap)
        exact = [ranges.sums(capped**power) for power in range(3)]
        errors = [
            np.abs(np.clip(spread(*noisy), 0.0, cap) - truth).mean(axis=1)
            for branching, _ in product(BRANCHINGS, range(NOISES))
            for noisy in [_noisy(ranges, branching, exact, cap, rng)]
        ]
        found += np.mean(np.reshape(errors, (len(BRANCHINGS), NOISES, 2)), axis=1).tolist()
    return np.asarray(np.min(found, axis=0))


def _noisy(
    ranges: Ranges, branching: int, exact: list[Floats], cap: float, rng: np.random.Generator
) -> list[Floats]:
    tree = PartTree(ranges.cells, branching)
    nodes = tree.plain(ranges.weights).nodes.T
    return [
        sums + rng.laplace(0, 3 * tree.levels * cap**power, tree.nodes) @ nodes
        for power, sums in enumerate(exact)
    ]
