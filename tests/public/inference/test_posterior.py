"""Least squares by conjugate gradients against plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from partita.public.bounds import LinearMeasurements, Posterior

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def measured(matrix: Floats, precision: Floats) -> LinearMeasurements:
    return LinearMeasurements(lambda x: matrix @ x, lambda y: matrix.T @ y, precision)


@pytest.fixture(params=[1, 2, 3])
def case(request: pytest.FixtureRequest) -> tuple[Posterior, Floats, Floats, Floats]:
    """A posterior, its matrix of all measurements, their precisions and values."""
    random = np.random.default_rng(request.param)
    first, second = random.normal(size=(4, 9)), np.tril(np.ones((9, 9)))
    precisions = [random.uniform(0.1, 4, size) for size in (9, 4, 9)]
    posterior = Posterior(precisions[0], [measured(first, precisions[1]), measured(second, precisions[2])])
    everything = np.vstack([np.eye(9), first, second])
    return posterior, everything, np.concatenate(precisions), random.normal(size=22)


def test_the_mean_solves_the_normal_equations(case: tuple[Posterior, Floats, Floats, Floats]) -> None:
    """It is the weighted least-squares solution."""
    posterior, matrix, precision, values = case
    root = np.sqrt(precision)[:, None]

    expected = np.linalg.lstsq(root * matrix, root[:, 0] * values, rcond=None)[0]

    assert posterior.mean(values[:9], [values[9:13], values[13:]]) == pytest.approx(expected, abs=1e-6)


def test_the_variance_is_that_of_the_inverse(case: tuple[Posterior, Floats, Floats, Floats]) -> None:
    """q' S^-1 q for a range of units."""
    posterior, matrix, precision, _ = case
    weights = np.array([0, 1, 1, 1, 0.5, 0, 0, 0, 0])

    covariance = np.linalg.inv(matrix.T @ (precision[:, None] * matrix))

    assert posterior.variance(weights) == pytest.approx(weights @ covariance @ weights, rel=1e-6)


def test_estimators_are_unbiased_and_best(case: tuple[Posterior, Floats, Floats, Floats]) -> None:
    """The factors recover the weighted sum from exact measurements, and attain the least variance."""
    posterior, matrix, precision, _ = case
    weights = np.array([1.0, 1, 0, 0, 0, 0, 0, 0, -1])

    units, rows = posterior.estimator(weights)
    factors = np.concatenate([units, *rows])

    assert factors @ matrix == pytest.approx(weights, abs=1e-12)
    assert factors @ (factors / precision) == pytest.approx(posterior.variance(weights), rel=1e-6)


def test_without_measurements_units_stand_alone() -> None:
    """The solution is the right side over the precision, exactly."""
    assert Posterior(np.array([2.0, 4.0])).solve(np.array([1.0, 1.0])).tolist() == [0.5, 0.25]
