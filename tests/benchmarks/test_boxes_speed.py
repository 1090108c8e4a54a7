"""What the speed of boxes is measured on: the same people at every width, all leaves, fresh processes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.speed import boxes, boxes_paper


def test_people_keep_their_high_bits_in_narrow_axes() -> None:
    """The points in 2^16 cells are those in 2^32 cells without their low bits."""
    wide, narrow = (boxes.drawn("uniform", bits, True) for bits in (32, 16))

    assert wide.total == narrow.total == boxes.POINTS // 100
    assert set(map(tuple, wide.places >> np.uint64(16))) == set(map(tuple, narrow.places))


@pytest.mark.parametrize("kind", boxes.KINDS)
def test_the_baseline_looks_at_every_leaf(kind: str) -> None:
    """The leaves of a release make up all cells, and hold as much as it says there is in all."""
    release = boxes.KINDS[kind](True)
    everything = np.array([release.everything.low], np.uint64), np.array([release.everything.high], np.uint64)

    tiles = boxes.leaves(release)

    volume = math.prod(float(axis.width) for axis in release.axes)
    assert (tiles.stops - tiles.lows).prod(axis=1).sum() == pytest.approx(volume)
    assert tiles.held.sum() == pytest.approx(release.counts(*everything)[0])


def test_asked_boxes_are_boxes() -> None:
    """Low corners are never above high ones, and none is outside."""
    release = boxes.KINDS["rank"](True)

    lows, highs = boxes.boxes(release, True)

    assert lows.shape == highs.shape == (boxes.ASKED // 100, 3)
    assert (lows <= highs).all()
    assert all(int(highs[:, axis].max()) < each.width for axis, each in enumerate(release.axes))


@pytest.mark.faults
def test_a_fresh_process_reports_what_it_took() -> None:
    """Memory only grows, both clocks ran, and a root at least is kept where epsilon is large."""
    cost = boxes_paper.measured(2_000, 200, 2)

    assert 0 < cost.points_memory <= cost.memory < 4
    assert cost.points_seconds > 0
    assert cost.seconds > 0
    assert cost.nodes > 1
