"""Fresh noise: guaranteed bounds hold, and intervals are about what they say."""

from __future__ import annotations

import numpy as np
import pytest

from partita.domain import Integer
from partita.inference.boxes.axis import Axis
from partita.mechanisms.level_trees import LevelTrees
from partita.mechanisms.log_tree import LogTree
from partita.points import Points
from partita.releases.boxes import BoxTerm

pytestmark = pytest.mark.statistics

VALUE = Integer(-200, 1000)
RELEASES = 60
RANGES = [(0, 11), (2, 5), (7, 7), (3, 10)]


def test_bounds_and_intervals_of_sums_hold() -> None:
    """Values that are all covered: guaranteed bounds fail in at most 5%, intervals of 95% in at most 12%.

    The bounds are wide: in fact nearly none of the 240 fails.
    """
    random = np.random.default_rng(8)
    axis = Axis(size=12)
    keys, cells = random.integers(0, 12, 8000), random.integers(0, VALUE.size, 8000)
    values = cells + VALUE.low
    points = Points.from_rows(np.stack([keys, cells + 1], axis=1), axes=[axis, Axis.of(VALUE)])
    mechanism = LevelTrees(keys=[axis], value=VALUE, epsilon=1, moments=True)
    certain, likely, means, spreads = [], [], [], []
    for _ in range(RELEASES):
        release = mechanism.release(points)
        for low, high in RANGES:
            chosen, term = values[(keys >= low) & (keys <= high)], [BoxTerm((low,), (high,))]
            found = release.sum(term)
            certain.append(_in(chosen.sum(), found.worst(0.05)))
            likely.append(_in(chosen.sum(), found.interval(0.95)))
            means.append(_in(chosen.mean(), release.mean(term).interval(0.95)))
            spreads.append(_in(chosen.std(), release.std(term).interval(0.95)))
    assert np.mean(certain) >= 0.95
    assert min(np.mean(likely), np.mean(means), np.mean(spreads)) >= 0.85


def test_bounds_of_the_log_tree_hold() -> None:
    """Guaranteed bounds of sums, and intervals of means, over ranges of the value itself."""
    cells = np.random.default_rng(9).integers(0, VALUE.size, 8000)
    values = cells + VALUE.low
    points = Points.from_rows((cells + 1)[:, None], axes=[Axis.of(VALUE)])
    mechanism = LogTree(value=VALUE, epsilon=1)
    certain, likely = [], []
    for _ in range(RELEASES):
        release = mechanism.release(points)
        for low, high in ((-200, 1000), (100, 700), (-50, 300)):
            chosen = values[(values >= low) & (values <= high)]
            term = [BoxTerm((low - VALUE.low + 1,), (high - VALUE.low + 1,))]
            certain.append(_in(chosen.sum(), release.sum(term).worst(0.05)))
            likely.append(_in(chosen.mean(), release.mean(term).interval(0.95)))
    assert np.mean(certain) >= 0.95
    assert np.mean(likely) >= 0.85


def _in(truth: float, ends: tuple[float, float]) -> bool:
    return bool(ends[0] <= truth <= ends[1])
