"""Projection on what tables can answer: against a second solver, and never without a certificate."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from partita.inference import projection as module
from partita.inference.projection import Projection, allowed_gap, project
from partita.inference.projection_descent import closest
from partita.inference.projection_hull import Hull, Point, simplex
from partita.queries.operator import Operator

Floats = NDArray[np.float64]

FIRM = 1e5


class Dense(Operator):
    """A table of weights in units: every operator in its plainest form."""

    shape, granularity = (0,), 1

    def __init__(self, weights: Any, granularity: int = 1) -> None:
        self.weights = np.asarray(weights, np.int64)
        self.shape, self.granularity = self.weights.shape[1:], granularity

    @property
    def lowest(self) -> int:
        return int(self.weights.min())

    @property
    def highest(self) -> int:
        return int(self.weights.max())

    @property
    def column_norm(self) -> int:
        return int(np.abs(self.weights).sum(axis=0).max())

    def __len__(self) -> int:
        return len(self.weights)

    def answers(self, x: Any) -> Any:
        return self.weights @ x

    def combine(self, y: Any) -> Any:
        return y @ self.weights

    def row(self, index: int, like: Any) -> Any:
        return self.weights[index].astype(like.dtype)


def _best(weights: Any, noisy: Floats, rows: float) -> Floats:
    """The closest answers by the Lawson-Hanson method; the bound on rows is a firm equation with slack."""
    table = np.asarray(weights, np.float64)
    firm = np.full((1, table.shape[1] + 1), FIRM)
    system = np.vstack([np.hstack([table, np.zeros((len(table), 1))]), firm])
    x, _ = nnls(system, np.append(noisy, FIRM * rows), maxiter=10_000)
    return np.asarray(table @ x[:-1])


def _workload(seed: int, queries: int, cells: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(-1, 3, (queries, cells))


def _noisy(seed: int, weights: Any, rows: int, deviation: float) -> Floats:
    random = np.random.default_rng(seed)
    spread = random.multinomial(rows, np.full(weights.shape[1], 1 / weights.shape[1]))
    return np.asarray(weights @ spread + random.laplace(0, deviation / np.sqrt(2), len(weights)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("queries", "cells", "rows"), [(30, 7, 20), (8, 40, 50), (60, 30, 5)])
def test_projections_are_as_close_as_they_say(seed: int, queries: int, cells: int, rows: int) -> None:
    """A second solver finds its closest answers within the certified distance of ours."""
    weights = _workload(seed, queries, cells)
    noisy = _noisy(seed, weights, rows, 10.0)

    found = project(Dense(weights), noisy, rows=rows, deviation=10.0)

    assert found is not None
    assert np.linalg.norm(found.values - _best(weights, noisy, rows)) <= found.distance + 1e-3
    assert found.distance <= 0.01 * 10.0 * np.sqrt(queries)


@pytest.mark.parametrize("seed", range(4))
def test_weights_satisfy_the_conditions_of_optimality(seed: int) -> None:
    """Where a cell has weight its slope is the least of all, and that is no more than zero, nearly."""
    weights = _workload(seed, 30, 12)
    noisy = _noisy(seed, weights, 20, 10.0)

    found = project(Dense(weights), noisy, rows=20, deviation=0.1)

    assert found is not None
    x = found.amounts / 2.0**found.bits
    slopes = weights.T @ (weights @ _spread(found, 12) - noisy)
    floor = min(0.0, slopes.min())
    excess = float(x @ (slopes[found.cells] - floor)) - (found.rows - x.sum()) * floor
    assert excess <= float(found.gap)
    assert excess >= -1e-6


def _spread(found: Projection, cells: int) -> Floats:
    x = np.zeros(cells)
    x[found.cells] = found.amounts / 2.0**found.bits
    return x


@given(seed=st.integers(0, 2**20), shares=st.lists(st.floats(0, 1), min_size=9, max_size=9))
def test_no_point_is_lower_than_the_gap_allows(seed: int, shares: list[float]) -> None:
    """Between any two points of a hull f falls by at most the gap of the first, optimal or not."""
    weights = _workload(seed, 5, 9)
    hull = Hull(Dense(weights), 12.0, np.arange(9))
    noisy = _noisy(seed, weights, 12, 5.0)
    here = hull.at(np.random.default_rng(seed).uniform(0, 3, 9))
    there = hull.at(12.0 * np.array(shares))

    assert here.distance(noisy) - there.distance(noisy) <= hull.gap(here, noisy)


@given(
    x=st.lists(st.floats(-50, 50), min_size=1, max_size=8),
    y=st.lists(st.floats(0, 50), min_size=8, max_size=8),
    most=st.floats(0.01, 60),
)
def test_simplex_projections_make_obtuse_angles(x: list[float], y: list[float], most: float) -> None:
    """The projection is in the set, and from there no point of the set lies towards what was projected."""
    given_x = np.array(x)
    other = np.array(y[: len(x)])
    other *= min(1.0, most / max(other.sum(), 1e-9))

    found = simplex(given_x, most)

    assert found.min() >= 0.0
    assert found.sum() <= most * (1 + 1e-9) + 1e-9
    assert float((given_x - found) @ (other - found)) <= 1e-6 * (1 + most) * 50


def test_no_rows_have_one_projection() -> None:
    """Where the number of rows is zero, all answers are, and the certificate says so."""
    found = project(Dense([[1, 0], [1, 1]]), np.array([5.0, -3.0]), rows=0, deviation=1.0)

    assert found is not None
    assert found.values.tolist() == [0.0, 0.0]


def test_cells_that_count_alike_share_one_weight() -> None:
    """Of a thousand cells of three kinds, three have weights, and the projection is that of three cells."""
    kinds = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0]])
    weights = kinds[:, np.arange(999) % 3]
    noisy = np.array([9.0, 2.0, 4.0])

    many = project(Dense(weights), noisy, rows=8, deviation=1.0)
    few = project(Dense(kinds), noisy, rows=8, deviation=1.0)

    assert Hull.of(Dense(weights), 8.0).cells.size == 3
    assert many is not None
    assert few is not None
    assert many.values == pytest.approx(few.values, abs=2 * few.distance)


def test_kinds_taken_for_one_are_seen_by_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """If hashes told no cells apart, the best of the smaller hull would not be certified for the whole."""
    monkeypatch.setattr(module, "_MOST_STEPS", 100)
    monkeypatch.setattr("partita.inference.projection_hull._hashes", lambda count: np.zeros(count, np.int64))

    assert project(Dense([[1, 0], [0, 1]]), np.array([0.0, 9.0]), rows=9, deviation=1.0) is None


def test_granularity_divides_the_answers() -> None:
    """Weights in halves give half the answers: everything scales together."""
    weights, noisy = _workload(1, 12, 5), _noisy(1, _workload(1, 12, 5), 9, 4.0)

    whole = project(Dense(weights), noisy, rows=9, deviation=4.0)
    halves = project(Dense(weights, 2), noisy / 2, rows=9, deviation=2.0)

    assert whole is not None
    assert halves is not None
    assert 2 * halves.values == pytest.approx(whole.values, abs=2 * whole.distance)


@pytest.mark.parametrize("rows", [2**62, 2**126])
def test_rows_beyond_all_bounds_are_not_projected(rows: int) -> None:
    """Where weights do not fit in 62 bits there is no projection, and no error."""
    assert project(Dense([[1, 1]]), np.array([1e30]), rows=rows, deviation=1.0) is None


LAZY: dict[str, Any] = {
    "the middle": lambda hull, noisy, **_: hull.middle(),
    "no weights": lambda hull, noisy, **_: hull.at(np.zeros(hull.cells.size)),
    "one step": lambda hull, noisy, **_: closest(hull, noisy, gap=1e300, steps=1),
    "more rows than there are": lambda hull, noisy, **_: Point(
        np.full(hull.cells.size, hull.rows), hull.answers(np.full(hull.cells.size, hull.rows))
    ),
    "not a number": lambda hull, noisy, **_: hull.at(np.full(hull.cells.size, np.nan)),
}


@pytest.mark.parametrize("solver", LAZY)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_uncertified_points_are_refused(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a solver returns, a point whose gap is too large never becomes a projection."""
    weights = _workload(3, 20, 8)
    noisy = _noisy(3, weights, 30, 5.0)
    assert project(Dense(weights), noisy, rows=30, deviation=0.1) is not None
    monkeypatch.setattr(module, "closest", LAZY[solver])

    assert project(Dense(weights), noisy, rows=30, deviation=0.1) is None


def test_certificates_are_of_their_own_point_and_answers() -> None:
    """Weights of another point, other noisy answers, fewer rows or a smaller gap do not hold."""
    weights = _workload(4, 20, 8)
    noisy = _noisy(4, weights, 30, 5.0)
    found = project(Dense(weights), noisy, rows=30, deviation=1.0)
    assert found is not None

    assert found.holds(noisy, 1.0)
    assert not replace(found, amounts=found.amounts[::-1].copy()).holds(noisy, 1.0)
    assert not replace(found, rows=15).holds(noisy, 1.0)
    assert not replace(found, gap=Fraction(found.gap) / 8).holds(noisy, 1.0)
    assert not replace(found, gap=Fraction(allowed_gap(20, 1.0)) * 2).holds(noisy, 1.0)
    assert not found.holds(noisy + 3.0, 1.0)
    assert not found.holds(np.full(20, np.nan), 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_search_for_more_than_floats_can_tell_ends(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no certificate is possible the steps run out, and there is no projection."""
    monkeypatch.setattr(module, "_MOST_STEPS", 500)
    weights = _workload(seed, 20, 8)

    assert project(Dense(weights), _noisy(seed, weights, 30, 5.0), rows=30, deviation=1e-9) is None
