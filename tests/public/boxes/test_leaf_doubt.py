"""What errors of trees leave out, where one value has nearly all rows: intervals that hold it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.public.axis.curve import Curve
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.leaf_doubt import BoxDoubt, LeafDoubt, _cut_stretches
from partita.public.boxes.plan import Recipe
from partita.public.boxes.spending_boxes import SpendingBoxesRelease
from partita.public.boxes.viewed_boxes import ViewedBoxesRelease
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


LABELLED = (Axis(size=6, labels=True), Axis(size=100_001))


def _labelled(values: np.ndarray, tape: int) -> ViewedBoxesRelease:
    """A release of these values beside labels that say nothing about them, at epsilon 1/20."""
    labels = np.random.default_rng(2).integers(0, 6, ROWS)
    points = Points.from_rows(np.stack([labels, values], axis=1).astype(np.uint64), axes=LABELLED)
    made = ViewedBoxes(axes=LABELLED, epsilon=Fraction(1, 20))
    return made.release(points, noise=tape_noise(EndlessTape(tape)))


def _heaped() -> np.ndarray:
    """Doses: none for three in ten, and for most others a few tablets of four sizes."""
    drawn = np.random.default_rng(7)
    tablets = drawn.choice(np.array([500, 1_000, 2_500, 10_000]), ROWS) * (1 + drawn.binomial(3, 0.5, ROWS))
    doses = np.where(drawn.random(ROWS) < 0.8, tablets, drawn.integers(1, 50_000, ROWS))
    return np.where(drawn.random(ROWS) < 0.3, 0, doses)


def _covered(release: ViewedBoxesRelease, values: np.ndarray) -> float:
    """The share of ranges between two rows that 95% intervals hold."""
    ends = np.sort(np.random.default_rng(8).choice(values, (60, 2)), axis=1).tolist()
    found = [release.answer(BoxTerm((0, low), (5, high))).interval(0.95) for low, high in ends]
    truth = [int(((values >= low) & (values <= high)).sum()) for low, high in ends]
    return float(np.mean([low <= true <= high for (low, high), true in zip(found, truth, strict=True)]))


def test_ranges_between_heaps_are_covered() -> None:
    """Where most leaves have heaps few are fuller than others, and the audit says that rows share values."""
    values = _heaped()
    release = _labelled(values, 1)

    assert _covered(release, values) >= 0.9


def test_without_the_audit_heaps_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: errors that take no account of what the audit found are too small."""
    monkeypatch.setattr(BoxDoubt, "_heaped", property(lambda doubt: doubt._excess))
    values = _heaped()

    assert _covered(_labelled(values, 1), values) < 0.8


def test_values_that_nobody_shares_are_hardly_doubted() -> None:
    """The audit of smooth values finds few heaps, and that of heaps finds what most rows have."""
    smooth = np.clip(np.random.default_rng(9).normal(50_000, 12_000, ROWS), 0, 100_000).astype(np.int64)
    few, many = (_labelled(values, 2)._doubt for values in (smooth, _heaped()))

    assert few is not None
    assert few.heaps is not None
    assert few.heaps.share < 0.25
    assert many is not None
    assert many.heaps is not None
    assert many.heaps.share > 0.5


@pytest.mark.parametrize(("top", "pieces"), [(7, 4), (30, 7), (2**64 - 1, 8)])
def test_pieces_cover_every_stretch_once(top: int, pieces: int) -> None:
    """They follow one another without gaps, also up to the last position that there can be."""
    curve = Curve(np.array([top], np.uint64), np.ones(1))
    grid = _cut_stretches(1, np.array([0, 3, 4], np.uint64), np.array([2, 3, top], np.uint64), curve)
    firsts, lasts = (each[0].tolist() for each in (grid.firsts, grid.lasts))

    assert (firsts[0], lasts[-1]) == (0, top)
    assert [after for before, after in zip(lasts, firsts[1:], strict=False) if after != before + 1] == [4]
    assert len(firsts) == 3 + pieces
    assert all(first <= last for first, last in zip(firsts, lasts, strict=True))


def test_a_wide_leaf_of_one_label_is_cut_where_those_of_others_end() -> None:
    """Leaves of another label tell positions 0 and 1, but those of this one do not: both are pieces."""
    curve = Curve(np.array([5], np.uint64), np.ones(1))
    lows, highs = np.array([0, 0, 1, 2, 2], np.uint64), np.array([1, 0, 1, 5, 5], np.uint64)
    grid = _cut_stretches(0, lows, highs, curve)

    assert (grid.firsts[0].tolist(), grid.lasts[0].tolist()) == ([0, 1, 2, 3, 4, 5],) * 2


def test_where_leaves_tell_every_position_all_are_one_piece() -> None:
    """Then nothing is cut, and the audit has a box to count."""
    curve = Curve(np.array([2], np.uint64), np.ones(1))
    grid = _cut_stretches(0, np.arange(3, dtype=np.uint64), np.arange(3, dtype=np.uint64), curve)

    assert (grid.firsts[0].tolist(), grid.lasts[0].tolist()) == ([0], [2])
