"""What errors of trees leave out, where one value has nearly all rows: intervals that hold it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.leaf_doubt import LeafDoubt
from partita.public.boxes.plan import Recipe
from partita.public.boxes.spending_boxes import SpendingBoxesRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.boxes import SpendingBoxes
from partita.trusted.mechanisms.viewed_boxes import ViewedBoxes
from partita.trusted.secret import Points

RECIPE = Recipe(growth="3/2", worth=5, depth_power=1)
ROWS = 30_000


def _tree(values: np.ndarray, size: int, tape: int) -> SpendingBoxesRelease:
    axis = Axis(size=size)
    points = Points.from_rows(values[:, None].astype(np.uint64), axes=(axis,))
    tree = SpendingBoxes(axes=[axis], epsilon=Fraction(1, 100), bits=3, recipe=RECIPE)
    return tree.release(points, noise=tape_noise(EndlessTape(tape))).as_column_view()


def _mostly_zero(size: int) -> np.ndarray:
    drawn = np.random.default_rng(4)
    return np.where(drawn.random(ROWS) < 0.97, 0, drawn.integers(1, size, ROWS))


@pytest.mark.parametrize("size", [2_000, 200_000, 10**9])
def test_an_interval_holds_one_value_of_nearly_all_rows(size: int) -> None:
    """Also where the tree cannot come down to it, and tells a wide leaf only: two tapes of each size."""
    zeros, values = np.zeros(1, np.uint64), _mostly_zero(size)
    for tape in (1, 2):
        tree = _tree(values, size, tape)
        value, error = (float(of(zeros[:, None], zeros[:, None])[0]) for of in (tree.counts, tree.errors))
        doubt = float(LeafDoubt.of(tree).variances(zeros, zeros)[0])

        assert abs(value - float((values == 0).sum())) <= 2.2 * (error**2 + doubt) ** 0.5
        if size == 10**9:
            assert abs(value - float((values == 0).sum())) > 20 * error


def test_ranges_of_smooth_columns_are_hardly_doubted() -> None:
    """A leaf as full as those around it is no single value: errors of wide ranges grow by a tenth at most."""
    values = np.clip(np.random.default_rng(1).normal(1_000, 250, ROWS), 0, 1_999).astype(np.int64)
    tree, ends = _tree(values, 2_000, 3), np.arange(500, 900, 50, dtype=np.uint64)
    errors = tree.errors(ends[:, None], (ends + np.uint64(500))[:, None])
    doubts = LeafDoubt.of(tree).variances(ends, ends + np.uint64(500))

    assert float(np.sqrt((errors**2 + doubts) / errors**2).mean()) < 1.1


def test_everything_has_no_doubt_and_runs_add_up() -> None:
    """Leaves that lean one way are made up for by others, so that their sum does not move."""
    tree = _tree(_mostly_zero(2_000), 2_000, 1)
    doubt = LeafDoubt.of(tree)
    first, last = (np.array([end], np.uint64) for end in (0, 1_999))
    half = np.array([999], np.uint64)
    both = np.concatenate([first, half + np.uint64(1)]), np.concatenate([half, last])

    assert float(doubt.variances(first, last)[0]) == pytest.approx(0.0, abs=1e-6)
    assert doubt.variance(first, half, np.ones(1)) == pytest.approx(float(doubt.variances(first, half)[0]))
    assert doubt.variance(*both, np.ones(2)) <= float(doubt.variances(*both).sum()) + 1e-6


def test_boxes_beside_labels_hold_one_value_of_nearly_all_rows() -> None:
    """The error of one answer is that of many, and the interval reaches the rows with this value."""
    axes = (Axis(size=6, labels=True), Axis(size=200_000))
    values, labels = _mostly_zero(200_000), np.random.default_rng(2).integers(0, 6, ROWS)
    rows = np.stack([labels, values], axis=1).astype(np.uint64)
    points = Points.from_rows(rows, axes=axes)
    release = ViewedBoxes(axes=axes, epsilon=Fraction(1, 20)).release(
        points, noise=tape_noise(EndlessTape(6))
    )
    lows, highs = np.zeros((1, 2), np.uint64), np.array([[5, 0]], np.uint64)
    answer = release.answer(BoxTerm((0, 0), (5, 0)))
    low, high = answer.interval(0.95)

    assert answer.error == pytest.approx(float(release.errors(lows, highs)[0]))
    assert low <= float((values == 0).sum()) <= high
