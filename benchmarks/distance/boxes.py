"""Distances of the mechanisms over several axes, all at epsilon 1."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.distance.row import Distance, Measured, largest_bound, linear_bound, noises
from partita import (
    Axis,
    GridCounts,
    PaperRectangles,
    Points,
    RankBoxes,
    Rectangles,
    SpendingBoxes,
    TableGraph,
    ViewedBoxes,
)

_PEOPLE = 20_000
_SLOW = 5
"""Where a release takes half a second there are so many times fewer trials."""

_ANY = "any pure mechanism, for the worst data: packing, after [DNPR10]"


def rectangles(trials: int) -> Distance:
    """The default for three columns, which chooses its structure by a noisy total."""
    return _largest("rectangles", Rectangles(axes=_axes(8, 3), epsilon=1), trials // _SLOW)


def spending_boxes(trials: int) -> Distance:
    """The tree over boxes of two columns."""
    return _largest("spending_boxes", SpendingBoxes(axes=_axes(16, 2), epsilon=1), trials)


def rank_boxes(trials: int) -> Distance:
    """Views and a tree in ranks, on the columns of the default: so few cells do not suit it."""
    return _largest("rank_boxes", RankBoxes(axes=_axes(8, 3), epsilon=1), trials // _SLOW)


def viewed_boxes(trials: int) -> Distance:
    """A category with a view beside the tree over boxes, on cells like those of the tree."""
    axes = [Axis(size=16, labels=True), Axis(size=16)]
    return _largest("viewed_boxes", ViewedBoxes(axes=axes, epsilon=1), trials)


def graph(trials: int) -> Distance:
    """Views, pairs and a model, on cells like those of the default; it is made for more columns."""
    axes = [Axis(size=8, labels=True), Axis(size=8), Axis(size=8)]
    return _largest("graph", TableGraph(axes=axes, epsilon=1), trials // _SLOW)


def paper_rectangles(trials: int) -> Distance:
    """The tree of trees of the paper, on the columns of the tree over boxes."""
    return _largest("paper_rectangles", PaperRectangles(axes=_axes(16, 2), epsilon=1), trials // _SLOW)


def grid_counts(trials: int) -> Distance:
    """Boxes as sums of cells, against others of its class."""
    mechanism, side = GridCounts(axes=_axes(16, 2), epsilon=1), np.arange(16)
    ranges = (np.minimum.outer(side, side) + 1.0) * (16 - np.maximum.outer(side, side))
    squares = [np.mean(errors**2) for errors in _errors(mechanism, trials)]
    return Distance(
        mechanism="grid_counts",
        setting="16 x 16 cells, epsilon 1",
        what="root mean square error of a box, over all boxes",
        measured=Measured.root(squares),
        bound=linear_bound(np.kron(ranges, ranges), (16 * 17 // 2) ** 2, 1),
        source="unbiased linear answers from Laplace noise: nuclear norm, after [LM13]",
    )


def _largest(name: str, mechanism: Any, trials: int) -> Distance:
    """The largest error over all boxes, against what nobody can avoid on so many cells."""
    errors = list(_errors(mechanism, max(2, trials)))
    typical = Measured.root([np.mean(each**2) for each in errors])
    widths = [axis.width for axis in mechanism.axes]
    return Distance(
        mechanism=name,
        setting=f"{_PEOPLE:,} people in {' x '.join(map(str, widths))} cells, epsilon 1",
        what="expected largest error over all boxes",
        measured=Measured.mean([np.abs(each).max() for each in errors]),
        bound=largest_bound(int(np.prod(widths)), 1),
        source=_ANY,
        note=f"root mean square over all boxes: {typical.value:.3g}; {len(errors)} trials",
    )


def _errors(mechanism: Any, trials: int) -> Any:
    """The errors of all boxes, trial by trial."""
    people = _people(mechanism.axes)
    lows, highs = _all_boxes(mechanism.axes)
    truth = _sums(people.spread(), lows, highs)
    for noise in noises(trials):
        yield _answers(mechanism.release(people, noise=noise), lows, highs) - truth


def _answers(released: Any, lows: NDArray[np.uint64], highs: NDArray[np.uint64]) -> NDArray[np.float64]:
    """What the release says. Answers of a pruned tree of trees, or of views beside boxes, do not add up."""
    if released.kind in ("graph", "rectangles-paper", "viewed-boxes"):
        return np.asarray(released.counts(lows, highs))
    widths = [axis.width for axis in released.axes]
    cells = np.indices(widths).reshape(len(widths), -1).T.astype(np.uint64)
    return _sums(released.counts(cells, cells).reshape(widths), lows, highs)


def _sums(cells: Any, lows: NDArray[np.uint64], highs: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Boxes of a table, as signed sums of its running sums."""
    before = np.zeros([width + 1 for width in cells.shape])
    running = np.asarray(cells, dtype=float)
    for axis in range(running.ndim):
        running = running.cumsum(axis)
    before[(slice(1, None),) * running.ndim] = running
    corners = (lows.astype(np.int64), highs.astype(np.int64) + 1)
    found = np.zeros(len(lows))
    for ends in product((0, 1), repeat=running.ndim):
        corner = tuple(corners[end][:, axis] for axis, end in enumerate(ends))
        found += (-1) ** (running.ndim - sum(ends)) * before[corner]
    return found


@cache
def _all_boxes(axes: tuple[Axis, ...]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Every range of every axis with every range of the others."""
    ranges = [np.triu_indices(axis.width) for axis in axes]
    taken = np.indices([low.size for low, _ in ranges]).reshape(len(axes), -1)
    low, high = (
        np.stack([each[end][chosen] for each, chosen in zip(ranges, taken, strict=True)], axis=1)
        for end in (0, 1)
    )
    return low.astype(np.uint64), high.astype(np.uint64)


def _axes(size: int, number: int) -> list[Axis]:
    return [Axis(size=size)] * number


def _people(axes: tuple[Axis, ...]) -> Points:
    """A cloud along the diagonal."""
    rng = np.random.default_rng(0)
    common, own = rng.normal(size=(_PEOPLE, 1)), rng.normal(size=(_PEOPLE, len(axes)))
    size = axes[0].size
    places = np.clip((0.7 * (common + own) + 3) / 6 * size, 0, size - 1).astype(np.uint64)
    return Points.from_rows(places, axes=axes)
