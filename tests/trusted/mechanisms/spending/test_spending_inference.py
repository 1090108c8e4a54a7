"""Inference for spending trees: shrinkage, smoothing, exact tails, projections, intervals of nodes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.public.axis.shrinkage import project_on_totals, shrink, sibling_variances
from partita.public.axis.tree_solver import Families
from partita.public.bounds import half_width
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.spending_tree import SpendingTree
from partita.trusted.secret import Histogram


def _laplace(count: int, seed: object) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Continuous Laplace noise of scale 1 from a fixed tape."""
    uniform = (EndlessTape(seed).take(count) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return np.where(uniform < 0.5, np.log(2 * uniform + 1e-300), -np.log(2 * (1 - uniform) + 1e-300))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_shrinking_helps_where_most_counts_are_zero(share: float) -> None:
    """The mean square error falls, to next to nothing if all counts are zero, and is no more than told."""
    present = np.arange(2000) < 2000 * share
    truth = np.where(present, 5.0 + np.arange(2000) % 9, 0.0)
    noisy = truth + _laplace(2000, "shrink")
    ones = np.ones(2000)

    mean, variance = shrink(noisy, ones, 3.0 * ones)

    error = ((mean - truth) ** 2).mean()
    assert error < 0.95 * ((noisy - truth) ** 2).mean()
    assert error < 1.3 * variance.mean()
    assert share or error < 0.05


def test_shrinking_leaves_smooth_counts_alone() -> None:
    """Where no count is near zero the spike at zero fades, and the mean of the values is kept."""
    truth = np.full(300, 5.0)
    noisy = truth + _laplace(300, "smooth")

    mean, _ = shrink(noisy, np.ones(300), truth)

    assert mean.mean() == pytest.approx(noisy.mean(), abs=0.25)


def test_shrinking_knows_units_and_large_values() -> None:
    """Multiplying values, scales and expectations multiplies the result; far values stay as they are."""
    noisy, ones = 3 * _laplace(200, "units"), np.ones(200)
    mean, variance = shrink(noisy, ones, ones)
    wide_mean, wide_variance = shrink(64 * noisy, 64 * ones, 64 * ones)

    assert wide_mean == pytest.approx(64 * mean)
    assert wide_variance == pytest.approx(64**2 * variance)
    assert [each.tolist() for each in shrink(np.array([500.0]), ones[:1], ones[:1])] == [[500.0], [2.0]]
    assert [each.size for each in shrink(ones[:0], ones[:0], ones[:0])] == [0, 0]


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 3.0])
@pytest.mark.parametrize("beta", [0.5, 0.01, 1e-9])
def test_half_widths_are_the_least_that_are_certain(rate: float, beta: float) -> None:
    """P[|noise| > h] = 2 a^(h+1) / (1+a) is at most beta, and for h-1 it is not."""
    h = half_width(np.array([rate]), np.log([beta])).item()

    def tail(reach: float) -> float:
        return 2 * float(np.exp(-rate * (reach + 1))) / (1 + float(np.exp(-rate)))

    assert tail(h) <= beta
    assert h == 0 or tail(h - 1 - 1e-6 * h) > beta


@given(
    st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=5), min_size=1, max_size=4), st.integers(0, 20)
)
def test_projections_are_the_nearest_counts(groups: list[list[int]], total: int) -> None:
    """They add up, are not negative, and where positive differ from the values by the same amount."""
    sizes = np.array([len(group) for group in groups])
    starts = np.cumsum(sizes) - sizes
    values = np.array([float(value) for group in groups for value in group])
    family = Families(slice(0, values.size), np.arange(sizes.size), starts, sizes)
    places, there = family.table()
    rows = np.where(there, values[places], -np.inf)

    found = project_on_totals(rows, np.full(sizes.size, float(total)))[there]

    assert found.min() >= 0
    assert family.sum(found) == pytest.approx(np.full(sizes.size, total))
    for start, size in zip(starts, sizes, strict=True):
        shift = (values - found)[start : start + size]
        kept = found[start : start + size] > 1e-9
        assert not kept.any() or float(np.ptp(shift[kept])) < 1e-9
        assert not kept.any() or shift.max() < shift[kept].max() + 1e-9


def test_flat_groups_are_told_from_others() -> None:
    """Equal children look flat; one that stands out by far does not, nor a group within its noise of zero."""
    flat, peak, empty = np.full(8, 100.0), np.array([800.0] + [0.0] * 7), np.zeros(8)

    between = sibling_variances(np.array([flat, peak, empty]), np.full((3, 8), 200.0))

    assert between[0] == 100.0
    assert between[1:].tolist() == [np.inf, np.inf]


def test_intervals_of_nodes_hold_together() -> None:
    """Where all looks are right, every range of cells has its count within what the nodes allow."""
    counts = np.array([0, 7, 0, 0, 30, 1, 1, 90, 0, 0, 4, 0, 2])
    before = np.concatenate([[0], np.cumsum(counts)])
    tree = SpendingTree(
        size=13, epsilon=2, total=135, total_scale=Fraction(20), branching=2, growth=1, worth=4
    )
    for seed in range(10):
        nodes = tree.release(Histogram.dense(counts), noise=tape_noise(EndlessTape(seed)))._intervals(1e-6)
        lower, upper = nodes.prefixes()
        edges = np.concatenate([nodes.shape.first[nodes.shape.leaves].astype(int), [13]])

        assert (lower <= before[edges]).all()
        assert (before[edges] <= upper).all()
        for low in range(13):
            for high in range(low, 13):
                bottom, top = nodes.between(low, high)
                assert bottom <= before[high + 1] - before[low] <= top
