"""Tents count everybody once on every level, exactly; their least squares is as good as it is said to be."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.public.axis.tent_solver import GRAIN, TentCounts, TentLevel, TentStrategy, plan_levels
from partita.public.bounds import Posterior, RangePosition

SIZES = (1, 2, 3, 20, 21, 57, 400, 401, 12_000, 12_001, 300_000, 300_001)


def strategy(units: int) -> TentStrategy:
    return TentStrategy.over(*plan_levels(units))


def silent(units: int) -> TentCounts:
    """Tents that counted nobody, without noise, at epsilon = 1."""
    sizes, shares = plan_levels(units)
    levels = tuple(np.zeros(size, np.int64) for size in sizes)
    return TentCounts(levels=levels, shares=shares, rate=Fraction(1))


@pytest.mark.parametrize("units", SIZES)
def test_shares_add_up_to_one(units: int) -> None:
    """Every level has a positive share, and together they are exactly one."""
    _, shares = plan_levels(units)

    assert min(shares) > 0
    assert sum(shares) == 1


@given(st.integers(2, 500), st.integers(0, 500))
def test_every_level_is_a_partition_of_unity(tents: int, more: int) -> None:
    """A node gives parts of 2^-8 each, 2^8 together, to two neighbouring tents."""
    level = TentLevel.over(tents + more, tents)

    assert level.left.min() >= 0
    assert level.left.max() <= tents - 2
    assert level.right.min() >= 0
    assert level.right.max() <= GRAIN
    assert np.unique(level.left).size == tents - 1
    assert bool((np.diff(level.left * GRAIN + level.right) >= 0).all())


@pytest.mark.parametrize("units", [21, 401, 12_001])
def test_one_row_changes_every_level_by_one(units: int) -> None:
    """One row more in a unit adds exactly 2^8l to level l, in L1 norm."""
    plan = strategy(units)
    rows = np.arange(units, dtype=np.int64) % 5
    more = rows.copy()
    more[units // 3] += 1

    for level, (before, after) in enumerate(zip(plan.exact(rows), plan.exact(more), strict=True)):
        assert sum(abs(int(a) - int(b)) for a, b in zip(before, after, strict=True)) == GRAIN**level


def test_sums_are_exact_where_64_bits_are_not_enough() -> None:
    """Counts up to 2^62 keep their sum on every level, in units of 2^-8l."""
    counts = np.full(401, 2**62 // 401, dtype=np.int64)
    counts[200] += 12_345

    totals = [sum(int(value) for value in level) for level in strategy(401).exact(counts)]

    assert totals == [int(counts.sum()) * GRAIN**level for level in range(3)]


@pytest.mark.parametrize("units", [21, 401, 12_001])
def test_floats_and_integers_are_the_same_matrix(units: int) -> None:
    """`down` is `exact` in units of one row, and `up` is its transpose, also for many vectors at once."""
    plan = strategy(units)
    rows = (np.arange(units, dtype=np.int64) * 7) % 11
    exact = plan.exact(rows)[1:]

    down = plan.down(np.stack([rows, rows[::-1]]).astype(np.float64))
    weights = np.cos(np.arange(down.shape[1]))

    scaled = [values.astype(np.float64) / GRAIN ** (level + 1) for level, values in enumerate(exact)]
    assert down[0] == pytest.approx(np.concatenate(scaled))
    assert weights @ down[1] == pytest.approx(plan.up(weights) @ rows[::-1])


def covariance_of_prefixes(units: int) -> Any:
    """The covariance of the estimates of all prefixes, by one solve for each."""
    posterior = silent(units).posterior
    prefixes = np.tri(units)
    return np.pad(prefixes @ posterior.solve(prefixes).T, ((1, 0), (1, 0)))


@pytest.mark.parametrize(("units", "ranges", "prefixes"), [(256, 69.4, 63.5), (1024, 130.0, 111.0)])
def test_variances_are_those_of_the_plan(units: int, ranges: float, prefixes: float) -> None:
    """The mean variance over all ranges and over all prefixes at epsilon = 1, up to integer noise."""
    covariance = covariance_of_prefixes(units)
    variances = np.diag(covariance)
    pairs = units * (units + 1) / 2

    over_ranges = ((units + 1) * variances.sum() - covariance.sum()) / pairs

    assert over_ranges == pytest.approx(ranges, rel=0.02)
    assert variances[1:].mean() == pytest.approx(prefixes, rel=0.02)


@pytest.mark.parametrize("units", [21, 450, 13_000])
def test_the_reduced_solver_solves_the_normal_equations(units: int) -> None:
    """S x is the right side again, for equal and for very unequal precisions of the units."""
    counts = silent(units)
    right = np.sin(np.arange(units))
    for precision in (np.full(units, 0.1), np.where(np.arange(units) % 3, 0.05, 5.0)):
        posterior = counts.posterior_with(precision)

        solved = posterior.solve(right)

        measured = posterior.measured[0]
        image = precision * solved + measured.adjoint(measured.precision * measured.apply(solved))
        assert image == pytest.approx(right, abs=1e-6)


def test_the_reduced_solver_agrees_with_plain_conjugate_gradients() -> None:
    """Both ways to the same least squares."""
    posterior = silent(450).posterior
    right = np.cos(np.arange(450))

    plain = Posterior(posterior.precision, posterior.measured).solve(right)

    assert posterior.solve(right) == pytest.approx(plain, abs=1e-5)


@pytest.mark.parametrize("units", [15, 300, 450])
def test_ranges_have_the_covariance_of_the_estimate(units: int) -> None:
    """The variance of every range of whole units is that of the difference of two prefixes."""
    exact = covariance_of_prefixes(units)
    low, high = np.triu_indices(units)
    first, last = RangePosition(low, np.zeros(low.size)), RangePosition(high, np.ones(low.size))

    found = silent(units).range_variances(first, last)

    prefixes = np.diag(exact)
    expected = prefixes[low] + prefixes[high + 1] - 2.0 * exact[low, high + 1]
    assert found == pytest.approx(expected, rel=1e-5)
