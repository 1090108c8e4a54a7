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

from partita.public.queries.operator import Operator
from partita.public.workload import projection as module
from partita.public.workload.projection import (
    Hull,
    Point,
    Projection,
    allowed_gap,
    find_closest,
    project,
    project_on_simplex,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRM = 1e5


class Dense(Operator):
    """A table of weights in units: every operator in its plainest form."""

    shape, granularity = (0,), 1

    def __init__(self, weights: Any, granularity: int = 1) -> None:
        self.weights = np.asarray(weights, np.int64)
        self.shape, self.granularity = self.weights.shape[1:], granularity
        self.lowest, self.highest = int(self.weights.min()), int(self.weights.max())

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


def _best(weights: Any, noisy: Ints, rows: float) -> Floats:
    """The closest answers by the Lawson-Hanson method; the bound on rows is a firm equation with slack."""
    table = np.asarray(weights, np.float64)
    firm = np.full((1, table.shape[1] + 1), FIRM)
    system = np.vstack([np.hstack([table, np.zeros((len(table), 1))]), firm])
    x, _ = nnls(system, np.append(noisy, FIRM * rows), maxiter=10_000)
    return np.asarray(table @ x[:-1])


def _workload(seed: int, queries: int, cells: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(-1, 3, (queries, cells))


def _noisy(seed: int, weights: Any, rows: int, deviation: float) -> Ints:
    random = np.random.default_rng(seed)
    spread = random.multinomial(rows, np.full(weights.shape[1], 1 / weights.shape[1]))
    noise = np.rint(random.laplace(0, deviation / np.sqrt(2), len(weights)))
    return np.asarray(weights @ spread + noise.astype(np.int64))


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
    noisy = _noisy(seed, weights, 12, 5.0).astype(np.float64)
    here = hull.at(np.random.default_rng(seed).uniform(0, 3, 9))
    there = hull.at(12.0 * np.array(shares))

    assert here.distance(noisy) - there.distance(noisy) <= hull.gap(here, noisy) + 1e-9


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

    found = project_on_simplex(given_x, most)

    assert found.min() >= 0.0
    assert found.sum() <= most * (1 + 1e-9) + 1e-9
    assert float((given_x - found) @ (other - found)) <= 1e-6 * (1 + most) * 50


def test_no_rows_have_one_projection() -> None:
    """Where the number of rows is zero, all answers are, and the certificate says so."""
    found = project(Dense([[1, 0], [1, 1]]), np.array([5, -3]), rows=0, deviation=1.0)

    assert found is not None
    assert found.values.tolist() == [0.0, 0.0]


def test_cells_that_count_alike_share_one_weight() -> None:
    """Of a thousand cells of three kinds, three have weights, and the projection is that of three cells."""
    kinds = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0]])
    weights = kinds[:, np.arange(999) % 3]
    noisy = np.array([9, 2, 4])

    many = project(Dense(weights), noisy, rows=8, deviation=1.0)
    few = project(Dense(kinds), noisy, rows=8, deviation=1.0)

    assert Hull.of(Dense(weights), 8.0).cells.size == 3
    assert many is not None
    assert few is not None
    assert many.values == pytest.approx(few.values, abs=2 * few.distance)


def test_kinds_taken_for_one_are_seen_by_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """If hashes told no cells apart, the best of the smaller hull would not be certified for the whole."""
    monkeypatch.setattr(module, "_MOST_STEPS", 100)
    monkeypatch.setattr("partita.public.workload.projection._hashes", lambda count: np.zeros(count, np.int64))

    assert project(Dense([[1, 0], [0, 1]]), np.array([0, 9]), rows=9, deviation=1.0) is None


def test_granularity_divides_the_answers() -> None:
    """Weights in halves give half the answers: everything scales together."""
    weights, noisy = _workload(1, 12, 5), _noisy(1, _workload(1, 12, 5), 9, 4.0)

    whole = project(Dense(weights), noisy, rows=9, deviation=4.0)
    halves = project(Dense(weights, 2), noisy, rows=9, deviation=2.0)

    assert whole is not None
    assert halves is not None
    assert 2 * halves.values == pytest.approx(whole.values, abs=2 * whole.distance)


@pytest.mark.parametrize("rows", [2**62, 2**126])
def test_rows_beyond_all_bounds_are_not_projected(rows: int) -> None:
    """Where weights do not fit in 62 bits there is no projection, and no error."""
    assert project(Dense([[1, 1]]), np.array([10**30], object), rows=rows, deviation=1.0) is None


LAZY: dict[str, Any] = {
    "the middle": lambda hull, noisy, **_: hull.middle(),
    "no weights": lambda hull, noisy, **_: hull.at(np.zeros(hull.cells.size)),
    "one step": lambda hull, noisy, **_: find_closest(hull, noisy, gap=1e300, steps=1),
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
    monkeypatch.setattr(module, "find_closest", LAZY[solver])

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
    assert not found.holds(noisy + 3, 1.0)
    assert not found.holds(noisy.astype(object) * 10**30, 1.0)
    assert found.gap_to(noisy) <= found.gap
    assert not replace(found, gap=found.gap_to(noisy) - Fraction(1, 2**200)).holds(noisy, 1.0)


def _fraction_gap(found: Projection, weights: Any, noisy: Any) -> Fraction:
    """The gap from its definition, one fraction after the other."""
    units, part = found.operator.granularity, 1 << found.bits
    rows = [[Fraction(int(weight), units) for weight in row] for row in weights]
    x = dict(zip(found.cells.tolist(), (Fraction(int(each), part) for each in found.amounts), strict=True))
    off = [
        sum(row[cell] * weight for cell, weight in x.items()) - Fraction(int(answer), units)
        for row, answer in zip(rows, noisy, strict=True)
    ]
    slopes: list[Fraction] = [
        sum((each * row[cell] for each, row in zip(off, rows, strict=True)), Fraction(0))
        for cell in range(len(rows[0]))
    ]
    along = sum((slopes[cell] * weight for cell, weight in x.items()), Fraction(0))
    return along - found.rows * min(Fraction(0), *slopes)


@pytest.mark.parametrize("units", [1, 3])
@pytest.mark.parametrize(("rows", "deviation"), [(20, 10.0), (10**5, 300.0), (10**8, 1e4), (10**9, 1e5)])
def test_gaps_are_exact(rows: int, deviation: float, units: int) -> None:
    """The gap is that of its definition in fractions, for few rows and many, and no less is stated."""
    weights = _workload(rows % 7, 25, 8)
    noisy = _noisy(5, weights, rows, deviation)

    found = project(Dense(weights, units), noisy, rows=rows, deviation=deviation / units)

    assert found is not None
    assert found.gap_to(noisy) == _fraction_gap(found, weights, noisy)
    assert found.gap_to(noisy) <= found.gap <= found.gap_to(noisy) + Fraction(1, 2**20)


def test_gaps_of_vast_numbers_are_exact() -> None:
    """Noisy answers of 126 bits, as a file may have them, are cut into several limbs and put together."""
    weights = _workload(2, 6, 5)
    noisy = np.array([(-1) ** at * (2**126 - 3**at) for at in range(6)], object)
    found = Projection(
        operator=Dense(weights),
        rows=7,
        bits=50,
        cells=np.array([1, 3]),
        amounts=np.array([2**50 + 1, 3 * 2**49 + 5]),
        gap=Fraction(0),
    )

    assert found.gap_to(noisy) == _fraction_gap(found, weights, noisy)


def test_blocks_of_cells_have_one_least_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever blocks slopes are looked at, the gap is the same."""
    weights = _workload(6, 9, 11)
    noisy = _noisy(6, weights, 40, 5.0)
    found = project(Dense(weights), noisy, rows=40, deviation=5.0)
    assert found is not None
    expected = found.gap_to(noisy)

    monkeypatch.setattr("partita.public.workload.projection._BLOCK", 4)

    assert found.gap_to(noisy) == expected


@pytest.mark.parametrize("seed", range(4))
def test_a_search_for_more_than_floats_can_tell_ends(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no certificate is possible the steps run out, and there is no projection."""
    monkeypatch.setattr(module, "_MOST_STEPS", 500)
    weights = _workload(seed, 20, 8)

    assert project(Dense(weights), _noisy(seed, weights, 30, 5.0), rows=30, deviation=1e-9) is None
