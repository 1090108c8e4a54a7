"""Guaranteed bounds from trees of boxes on fresh noise: they fail as rarely as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.trusted.mechanisms.boxes import SpendingBoxes
from partita.trusted.secret import Points

pytestmark = pytest.mark.statistics

RELEASES = 200
BETA = 0.2
WIDTH = 32

BOXES = [
    BoxTerm((0, 0), (31, 31)),
    BoxTerm((3, 5), (20, 9)),
    BoxTerm((8, 8), (8, 8)),
    BoxTerm((0, 1), (31, 30)),
    BoxTerm((16, 0), (31, 15)),
]


def _threshold_cells() -> NDArray[np.int64]:
    """Counts just where a node may or may not be cut, so that looks decide most."""
    cells = np.zeros((WIDTH, WIDTH), np.int64)
    cells[::8, ::8] = 14
    return cells


def _mixed_cells() -> NDArray[np.int64]:
    """A hump, an atom and quiet corners."""
    at = np.arange(WIDTH)
    hump = 20 * np.exp(-((at[:, None] - 10) ** 2 + (at - 18) ** 2) / 30)
    cells: NDArray[np.int64] = np.rint(hump).astype(np.int64)
    cells[8, 8] += 400
    return cells


def _most_failures(rate: float, trials: int) -> float:
    """Exceeded with probability below 1e-8 if each of `trials` fails with this probability, by Hoeffding."""
    return trials * rate + math.sqrt(trials * math.log(1e8) / 2)


@pytest.mark.parametrize("cells", [_threshold_cells(), _mixed_cells()], ids=["threshold", "mixed"])
def test_guaranteed_bounds_fail_as_rarely_as_they_say(cells: NDArray[np.int64]) -> None:
    """`worst(beta)` of boxes and of a difference, and `error(beta)` over all boxes, fail in at most beta."""
    places = np.argwhere(cells)
    axes = (Axis(size=WIDTH), Axis(size=WIDTH))
    points = Points.from_rows(places, axes=axes, counts=cells[tuple(places.T)])
    mechanism = SpendingBoxes(axes=axes, epsilon=1)
    questions = [[box] for box in BOXES] + [[BOXES[3], BOXES[1]._replace(sign=-1)]]
    missed, far = np.zeros(len(questions)), 0
    for _ in range(RELEASES):
        release = mechanism.release(points)
        for at, terms in enumerate(questions):
            low, high = release.answer(*terms).bounds(BETA)
            missed[at] += not low <= sum(term.sign * _count(cells, term) for term in terms) <= high
        far += _widest(release.counts, cells) > release.error(BETA)

    assert missed.max() <= _most_failures(BETA, RELEASES)
    assert far <= _most_failures(BETA, RELEASES)


def _count(cells: NDArray[np.int64], box: BoxTerm) -> int:
    return int(cells[tuple(slice(a, b + 1) for a, b in zip(box.low, box.high, strict=True))].sum())


def _widest(counts: object, cells: NDArray[np.int64]) -> float:
    """The largest error over all boxes: over pairs of rows, the largest run of columns."""
    assert callable(counts)
    places = np.argwhere(np.ones_like(cells)).astype(np.uint64)
    off = counts(places, places).reshape(cells.shape) - cells
    sums = np.concatenate([np.zeros((1, WIDTH)), np.cumsum(off, axis=0)])
    slabs = np.concatenate([sums[end] - sums[:end] for end in range(1, WIDTH + 1)])
    runs = np.concatenate([np.zeros((len(slabs), 1)), np.cumsum(slabs, axis=1)], axis=1)
    up = runs - np.minimum.accumulate(runs, axis=1)
    down = np.maximum.accumulate(runs, axis=1) - runs
    return float(max(up.max(), down.max()))
