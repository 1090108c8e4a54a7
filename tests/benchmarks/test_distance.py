"""Distances: rows are found by their names, and bounds are right where the truth is known."""

import json
from fractions import Fraction
from math import exp, isclose, sqrt
from pathlib import Path

import numpy as np
import pytest

from benchmarks.distance import rows
from benchmarks.distance.__main__ import main
from benchmarks.distance.axis import histogram_counts
from benchmarks.distance.row import Distance, Measured, count_bound, largest_bound, linear_bound
from partita.public.bounds import laplace_variance


def test_rows_are_found_in_every_group() -> None:
    """One for the page of each mechanism, and nothing else: helpers that give distances are no rows."""
    pages = Path(__file__).parents[2] / "docs" / "mechanisms"
    found = rows()

    assert set(found) == {page.stem for page in pages.glob("*.md")} - {"README"}
    assert found["histogram_counts"] is histogram_counts


def test_a_row_says_the_same_in_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Its noise comes from fixed tapes."""
    for _ in range(2):
        assert main(["--only", "histogram_counts", "--trials", "3"]) == 0
    one, other = map(json.loads, capsys.readouterr().out.splitlines())

    assert one == other
    assert one["mechanism"] == "histogram_counts"
    assert one["trials"] == 3


def test_a_row_without_a_bound_has_no_ratio() -> None:
    """And one with a bound has the measured error over it."""
    measured = Measured(value=6.0, error=0.5)
    said = {"mechanism": "m", "setting": "s", "what": "w", "measured": measured, "source": "nobody"}

    assert Distance(**said, bound=None).to_json()["ratio"] is None  # type: ignore[arg-type]
    assert Distance(**said, bound=2.0).to_json()["ratio"] == 3.0  # type: ignore[arg-type]


def test_the_noise_of_a_count_meets_the_bound_of_a_count() -> None:
    """Discrete Laplace noise of scale 1 has the least variance there is at epsilon 1."""
    assert isclose(count_bound(1.0), sqrt(laplace_variance(Fraction(1))), rel_tol=1e-9)


def test_nobody_is_below_the_bound_on_the_largest_error() -> None:
    """One count with discrete Laplace noise has an expected error of 1 / sinh(epsilon), and 64 have more."""
    ratio, reach = exp(-1), np.arange(400)
    inside = 1 - 2 * ratio ** (reach + 1) / (1 + ratio)

    for cells in (1, 64):
        expected = float((1 - inside**cells).sum())
        assert largest_bound(cells, 1.0) < expected < 3 * largest_bound(cells, 1.0)


def test_the_bound_of_linear_answers_is_met_by_cells_and_no_strategy_is_below() -> None:
    """Questions for single cells are optimal as they are; prefixes as sums of cells are not."""
    prefixes = np.tril(np.ones((8, 8)))
    by_cells = sqrt(np.square(prefixes).sum() / 8) * count_bound(1.0)

    assert isclose(linear_bound(np.eye(8), 8, 1.0), count_bound(1.0))
    assert linear_bound(prefixes.T @ prefixes, 8, 1.0) < by_cells
