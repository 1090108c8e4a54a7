"""Predictions: what a plan says before any data is touched, against releases of made-up columns."""

from __future__ import annotations

import numpy as np
import pytest

from partita import Histogram, Intervals
from partita.testing import EndlessTape, tape_noise


def column(size: int, rows: int) -> Histogram:
    """A skewed column with heaps at every 32nd of its range, the same whenever asked."""
    places = (np.arange(rows) + 0.5) / rows
    values = size * places**2
    values[::4] = np.round(values[::4] * 32 / size) * size / 32
    return Histogram.from_cells(np.minimum(values.astype(np.uint64), np.uint64(size - 1)), size=size)


def error_of(size: int, rows: int, epsilon: str) -> float:
    """The root-mean-square error of 500 ranges, over three releases on fixed tapes."""
    data = column(size, rows)
    steps = np.arange(1_000, dtype=np.uint64) ** 2 * np.uint64(2_654_435_761)
    ends = np.sort((steps % np.uint64(size)).reshape(-1, 2), axis=1)
    truth = [int(data.counts[(data.cells >= low) & (data.cells <= high)].sum()) for low, high in ends]
    mechanism = Intervals(size=size, epsilon=epsilon)
    released = (mechanism.release(data, noise=tape_noise(EndlessTape((size, rows, i)))) for i in range(3))
    return float(np.sqrt(np.mean([(each.counts(ends[:, 0], ends[:, 1]) - truth) ** 2 for each in released])))


@pytest.mark.parametrize(
    ("size", "rows", "epsilon"),
    [(121, 10**4, "1"), (1_000, 10**5, "1"), (4_096, 10**5, "0.1"), (2**20, 10**5, "1"), (2**32, 10**4, "1")],
)
def test_the_predicted_error_is_about_right(size: int, rows: int, epsilon: str) -> None:
    """Within a factor of three of what releases of a skewed and heaped column show."""
    predicted = Intervals(size=size, epsilon=epsilon).predicted_error(rows)

    assert predicted / 3 < error_of(size, rows, epsilon) < 3 * predicted


@pytest.mark.parametrize(("size", "rows"), [(121, 10**4), (4_096, 10**5), (2**32, 10**5)])
def test_the_predicted_size_is_about_right(size: int, rows: int) -> None:
    """Within a factor of three of the numbers in a release."""
    mechanism = Intervals(size=size, epsilon=1)
    release = mechanism.release(column(size, rows), noise=tape_noise(EndlessTape(size)))

    held = sum(series.size for series in release.parts().series.values())

    assert mechanism.predicted_numbers(rows) / 3 < held < 3 * mechanism.predicted_numbers(rows)


def test_more_people_cells_and_epsilon_change_the_prediction_the_right_way() -> None:
    """More epsilon is less error; more rows are never less of it, in rows; more cells neither."""
    errors = [Intervals(size=4_096, epsilon=epsilon).predicted_error(10**5) for epsilon in ("0.1", "1")]
    rows = [Intervals(size=4_096, epsilon=1).predicted_error(n) for n in (0, 10**3, 10**5, 10**7)]
    cells = [Intervals(size=size, epsilon=1).predicted_error(10**5) for size in (1, 2, 100, 2**14, 2**64)]

    assert errors[0] > errors[1]
    assert rows == sorted(rows)
    assert cells == sorted(cells)
