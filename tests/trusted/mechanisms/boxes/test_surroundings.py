"""What lies around leaves, and the ramps that follow from it."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.cover import NodeSurroundings
from partita.public.boxes.density import BoxDensity
from partita.public.boxes.plan import BoxNodes
from partita.public.boxes.spending_boxes import SpendingBoxesRelease, add_ramps
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.boxes import SpendingBoxes
from partita.trusted.secret import Points

SIDE: Final = 8
PLAIN: Final = (Axis(size=SIDE), Axis(size=SIDE))


def _flat(values: np.ndarray, width: int, offset: int = 0) -> BoxDensity:
    """A root cut into equal squares of `width` cells with these values."""
    side = values.shape[0]
    starts = np.array(list(itertools.product(range(side), repeat=2)), np.uint64) * np.uint64(width)
    whole = np.array([[0, 0]], np.uint64)
    lows = np.concatenate([whole, starts + np.uint64(offset)])
    last = np.uint64(width - 1)
    highs = np.concatenate([whole + np.uint64(side * width - 1 + offset), lows[1:] + last])
    nodes = BoxNodes(
        np.array([1, side**2]),
        lows,
        highs,
        np.ones(side**2 + 1, np.int64),
        np.array([side**2] + [0] * side**2),
    )
    held = np.concatenate([[values.sum()], values.ravel()]).astype(np.float64)
    return BoxDensity.of(nodes, [None, None], held, np.ones(held.size))


def _dense(density: BoxDensity) -> np.ndarray:
    """The count of every cell."""
    table = np.zeros((SIDE, SIDE))
    for low, high, value in zip(
        *density.nodes.corners(density.nodes.leaves), density.held.values[density.nodes.leaves], strict=True
    ):
        box = tuple(slice(int(first), int(last) + 1) for first, last in zip(low, high, strict=True))
        table[box] += value / np.prod([each.stop - each.start for each in box])
    return table


@given(st.lists(st.integers(0, 9), min_size=16, max_size=16))
def test_a_leaf_is_expected_to_be_as_full_as_the_cells_around_it(counts: list[int]) -> None:
    """As many cells on every side as it is wide count, as far as there are any; the leaf itself does not."""
    values = np.array(counts, float).reshape(4, 4)
    density = _flat(values, 2)
    table = _dense(density)

    expected = NodeSurroundings(density, PLAIN, np.arange(1, 17)).expected()

    for at, (row, column) in enumerate(itertools.product(range(4), repeat=2)):
        rows, columns = (slice(max(0, 2 * each - 2), 2 * each + 4) for each in (row, column))
        around = table[rows, columns].sum() - values[row, column]
        assert expected[at] == pytest.approx(around / (table[rows, columns].size - 4) * 4)


def test_labels_and_special_cells_have_nothing_beside_them() -> None:
    """Their order means nothing; a leaf with no neighbours at all is told nothing."""
    density = _flat(np.arange(16.0).reshape(4, 4), 2)
    leaves = np.arange(1, 17)
    labels = Axis(size=SIDE, labels=True)
    specials = Axis(size=SIDE - 4, before=2, after=2)

    assert np.isnan(NodeSurroundings(density, (labels, labels), leaves).expected()).all()
    below, above = NodeSurroundings(density, (specials, PLAIN[1]), leaves).beside(0)
    outer = np.isin(np.arange(16) // 4, (0, 3))
    assert (below[outer] == np.arange(16.0)[outer]).all()
    assert above[4:8].tolist() == [8.0, 9.0, 10.0, 11.0]
    assert below[4:8].tolist() == [4.0, 5.0, 6.0, 7.0]


@given(st.lists(st.integers(0, 400), min_size=16, max_size=16))
def test_ramps_keep_the_count_of_every_leaf(counts: list[int]) -> None:
    """Pieces are inside of their leaf, never negative, and add up to it; so does every node."""
    values = np.array(counts, float).reshape(4, 4)

    shown = add_ramps(_flat(values, 2), PLAIN, noise=1.0)

    assert _dense(shown).min() >= 0.0
    sums = _dense(shown).reshape(4, 2, 4, 2).sum(axis=(1, 3))
    assert sums == pytest.approx(values, abs=1e-9)
    assert shown.total == pytest.approx(values.sum())


def test_a_ramp_rises_towards_the_fuller_side() -> None:
    """Between 10 and 1000 cells, a leaf leans by the middle of equal factors."""
    values = np.full((4, 4), 100.0)
    values[0], values[2:] = 10.0, 1000.0

    table = _dense(add_ramps(_flat(values, 2), PLAIN, noise=0.1))

    lower, upper = table[2, 0], table[3, 0]
    slope = np.tanh(np.log(100) / 4)
    assert upper / lower == pytest.approx((1 + slope / 2) / (1 - slope / 2), rel=0.01)


def test_what_noise_may_have_made_is_left_even() -> None:
    """A leaf that holds less than twice the noise is not cut."""
    density = _flat(np.arange(16.0).reshape(4, 4), 2)

    assert add_ramps(density, PLAIN, noise=8.0) is density


def test_ramps_are_exact_on_the_longest_axes() -> None:
    """Pieces of a leaf of 2^63 positions meet without a gap and end where the leaf does."""
    last = 2**63 - 1
    lows = np.array([[0, 0], [0, 0], [0, 1], [0, 2]], np.uint64)
    highs = np.array([[last, 2], [last, 0], [last, 1], [last, 2]], np.uint64)
    nodes = BoxNodes(np.array([1, 3]), lows, highs, np.ones(4, np.int64), np.array([3, 0, 0, 0]))
    density = BoxDensity.of(nodes, [None, None], np.array([0.0, 5.0, 50.0, 500.0]), np.ones(4))

    shown = add_ramps(density, (Axis(size=2**63), Axis(size=3)), noise=0.01)

    leaves = shown.nodes.leaves
    assert int(shown.nodes.highs[leaves][:, 0].max()) == last
    cells = (shown.nodes.highs[leaves] - shown.nodes.lows[leaves]).astype(object) + 1
    assert sum(int(a) * int(b) for a, b in cells) == 3 * 2**63


ODD: Final = (Axis(size=119, before=1, after=3), Axis(size=229, before=1, after=3))


def _odd_release(seed: str) -> SpendingBoxesRelease:
    """A tree over axes that no power of two fits, with leaves that lean."""
    words = np.array([int(word) for word in EndlessTape(seed).take(40_000)], dtype=object).reshape(-1, 2)
    rows = [[min(int(a) * 123 >> 64, int(b) * 123 >> 64), int(b) * 233 >> 64] for a, b in words]
    points = Points.from_rows(rows, axes=ODD)
    return SpendingBoxes(axes=ODD, epsilon="0.05").release(points, noise=tape_noise(EndlessTape(seed)))


@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_curves_of_leaning_leaves_agree_with_boxes(seed: str) -> None:
    """Along either axis, and for any stretch of the other, the curve passes through the counts of boxes."""
    release = _odd_release(seed)
    assert release.engine.shown is not release.engine.density

    for axis, (first, last) in itertools.product((0, 1), ((0, 42), (17, 60), (100, 122))):
        low, high = [0, 0], [ODD[0].width - 1, ODD[1].width - 1]
        low[1 - axis], high[1 - axis] = first, last
        ends = np.arange(ODD[axis].width, dtype=np.uint64)
        lows, highs = (np.tile(np.array(corner, np.uint64), (ends.size, 1)) for corner in (low, high))
        highs[:, axis] = ends
        curve = release.along(axis, BoxTerm(tuple(low), tuple(high)))
        assert curve.upto(ends) == pytest.approx(release.counts(lows, highs), abs=1e-6)
