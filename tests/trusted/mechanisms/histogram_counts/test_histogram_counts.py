"""The noisy histogram: cells, sums of cells, and one bound for all ranges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from partita import Histogram, HistogramCounts, InvalidParameter
from partita.testing import EndlessTape, ZeroNoise, tape_noise


def test_empty_cells_are_counted_too() -> None:
    """The release has a number for every cell, whether or not there is a row in it."""
    release = HistogramCounts(size=6, epsilon=1).release(
        Histogram.from_cells([1, 1, 4], size=6), noise=ZeroNoise()
    )

    assert release.noisy.tolist() == [0, 2, 0, 0, 1, 0]


@pytest.mark.parametrize("size", [2**24 + 1, 2**40])
def test_large_universes_are_refused(size: int) -> None:
    """More than 2^24 cells are too many to count one by one."""
    with pytest.raises(InvalidParameter) as refused:
        HistogramCounts(size=size, epsilon=1)

    assert refused.value.parameter == "size"


def test_the_bound_for_all_ranges_is_the_smaller_of_two() -> None:
    """Few cells: every range at its share of beta; many: all prefixes together, by Lévy's inequality."""
    few = HistogramCounts(size=1, epsilon=1).release(Histogram.dense([3]), noise=ZeroNoise())
    many = HistogramCounts(size=10_000, epsilon=1).release(
        Histogram.from_cells([], size=10_000), noise=ZeroNoise()
    )

    assert few.error(0.05) == few.line.reach(1, 0.05)
    assert many.error(0.05) == 2 * many.line.reach(10_000, 0.025)


def test_curves_of_empty_data_stay_low() -> None:
    """The total of the curve of nobody is no larger than the noise of the running sums."""
    size = 4096
    mechanism, nobody = HistogramCounts(size=size, epsilon=1), Histogram.from_cells([], size=size)

    totals = [mechanism.release(nobody, noise=tape_noise(EndlessTape(s))).curve.total for s in range(20)]

    assert float(np.mean(totals)) < math.sqrt(2 * size)


def test_the_expected_largest_error_of_a_cell_is_bounded() -> None:
    """From the law, E max |X| over the cells is at most (ln size + 1) / epsilon."""
    falling, size = math.exp(-1.0), 1000
    steps = np.arange(1, 60)
    exact = float((1 - (1 - 2 * falling**steps / (1 + falling)) ** size).sum())

    assert exact <= HistogramCounts(size=size, epsilon=1).largest_error < 1.5 * exact
