"""Nodes that were cut because they looked full do not make the whole look fuller."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.public.boxes.spending_boxes import CutSelection
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.mechanisms.boxes import SpendingBoxes
from partita.trusted.secret import Points

WIDE = (Axis(size=2**20), Axis(size=1))


def _spread(count: int) -> Points:
    """Rows at about equal distances."""
    places = (np.arange(count, dtype=np.uint64) * np.uint64(2**20)) // np.uint64(count)
    return Points.from_rows(np.column_stack([places, np.zeros(count, np.uint64)]), axes=WIDE)


def _correct(release: Any) -> tuple[Any, Any]:
    """The noisy counts of all nodes as they were seen, and without what they lean."""
    unit = float(1 / release.scale)
    noisy, variances = release.looks.means(release.shape.expanded.size, unit)
    selection = CutSelection(release.shape.families, release.looks, unit, release.recipe)
    return noisy, selection.correct(noisy, variances)


def test_only_nodes_that_were_cut_are_corrected_and_only_downwards() -> None:
    """The root and all leaves stay as they were seen, and no count is raised."""
    tree = SpendingBoxes(axes=WIDE, epsilon=1)
    release = tree.release(_spread(20_000), noise=tape_noise(EndlessTape("s")))

    noisy, righted = _correct(release)

    moved = righted != noisy
    assert moved.any()
    assert not moved[0]
    assert not moved[~release.shape.expanded].any()
    assert (righted <= noisy).all()


def test_what_does_not_lean_is_not_correct() -> None:
    """Without noise children make up their parents, and nothing moves."""
    release = SpendingBoxes(axes=WIDE, epsilon=1).release(_spread(20_000), noise=ZeroNoise())

    noisy, righted = _correct(release)

    assert (righted == noisy).all()


@pytest.mark.statistics
def test_the_count_of_everything_leans_to_no_side() -> None:
    """Over 30 releases the mean misses by less than four standard errors of it (chance 1 in 10,000)."""
    points = _spread(100_000)
    tree = SpendingBoxes(axes=WIDE, epsilon=1)

    releases = [tree.release(points) for _ in range(30)]

    misses = np.array([each.answer(each.everything).value for each in releases]) - points.total
    assert abs(misses.mean()) < 4 * misses.std(ddof=1) / 30**0.5 + 20
