"""Certified bounds: tails of mixtures of noise, and one band for all intervals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.public.bounds import (
    laplace_mix_reach,
    laplace_sum_reach,
    laplace_variance,
    log_moments,
    repeated_reach,
    widest_miss,
)

REACH = 400


def masses(rate: float, factor: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The law of factor * X on -REACH..REACH, X discrete Laplace; what lies beyond is negligible."""
    a = math.exp(-rate)
    law = np.zeros(2 * REACH + 1)
    for k in range(-(REACH // factor), REACH // factor + 1):
        law[REACH + k * factor] = (1 - a) / (1 + a) * a ** abs(k)
    return law


@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-3, 1e-6])
@pytest.mark.parametrize(
    ("factors", "rates"), [((1,), (1.0,)), ((1, 1, 2), (1.0, 0.5, 1.0)), ((3, 1, 1, 1), (2.0, 0.3, 0.3, 1.0))]
)
def test_mixtures_exceed_their_reach_with_at_most_beta(
    factors: tuple[int, ...], rates: tuple[float, ...], beta: float
) -> None:
    """The exact tail, by convolution, is at most beta, and the reach is not absurdly wide."""
    law = np.ones(1)
    for factor, rate in zip(factors, rates, strict=True):
        law = np.convolve(law, masses(rate, factor))
    support = np.arange(law.size) - law.size // 2

    reach = laplace_mix_reach(np.array(factors, float), np.array(rates), beta)

    assert law[support > reach].sum() <= beta
    deviation = math.sqrt(float((law * support**2).sum()))
    assert reach <= 3.0 * deviation * math.sqrt(2 * math.log(1 / beta)) * (1 + math.log(1 / beta) / 6)


def test_signs_and_zeros_do_not_matter() -> None:
    """The law is symmetric, and noise with factor zero is no noise."""
    rates = np.array([1.0, 1.0, 0.2])

    assert laplace_mix_reach(np.array([1.0, -2.0, 0.0]), rates, 0.01) == laplace_mix_reach(
        np.array([-1.0, 2.0, 0.0]), rates, 0.01
    )
    assert laplace_mix_reach(np.zeros(3), rates, 0.01) == 0.0


def test_equal_terms_agree_with_the_two_sided_bound() -> None:
    """m equal terms: one side at beta/2 is what two sides are at beta, up to rounding."""
    one_side = laplace_mix_reach(np.ones(7), np.full(7, 0.5), 0.025)

    assert one_side == pytest.approx(laplace_sum_reach(Fraction(2), 7, 0.05), rel=1e-9)


steps = st.lists(st.tuples(*[st.integers(0, 9)] * 2, st.integers(1, 3)), min_size=1, max_size=5)


@given(steps, st.data())
def test_no_interval_misses_by_more_than_the_band(
    given_steps: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """For every pair of rising curves within the bounds at the edges, all intervals of cells obey it."""
    widths = [width for _, _, width in given_steps]
    values = np.concatenate([[0.0], np.cumsum([value for value, _, _ in given_steps])])
    truth_cells = [data.draw(st.lists(st.integers(0, 5), min_size=w, max_size=w)) for w in widths]
    truth = np.concatenate([[0], np.cumsum([sum(cells) for cells in truth_cells])]).astype(float)
    slack = data.draw(st.integers(0, 4))

    most = widest_miss(values, truth - slack, truth + slack, np.array(widths) > 1)

    value_cells = [
        value / width for (value, _, _), width in zip(given_steps, widths, strict=True) for _ in range(width)
    ]
    gaps = np.concatenate([[0], np.cumsum(np.array(value_cells) - np.concatenate(truth_cells))])
    assert gaps.max() - gaps.min() <= most + 1e-9


def test_many_equal_terms_come_near_the_normal_law() -> None:
    """For 10,000 noises of scale 2 the reach at 2.5% is near 1.96 deviations, as Chernoff bounds go."""
    reach = laplace_mix_reach(np.ones(10_000), np.full(10_000, 0.5), 0.025)

    assert 1.96 < reach / math.sqrt(10_000 * laplace_variance(Fraction(2))) < 1.4 * 1.96


@pytest.mark.parametrize("rate", [1e-12, 0.1, 1.0, 9.0])
@pytest.mark.parametrize("times", [1.0, 12.0, 500.0, 1e7])
@pytest.mark.parametrize("beta", [0.5, 0.01, 1e-9, 1e-100])
def test_no_grid_would_do_better_by_one_percent(rate: float, times: float, beta: float) -> None:
    """The best of 20,000 points is within one percent of what two short grids find."""
    shares = np.concatenate([np.geomspace(1e-6, 0.5, 10_000), 1.0 - np.geomspace(0.5, 1e-7, 10_000)])
    moments = times * log_moments(rate * shares, np.full(shares.size, rate))
    best = ((moments + math.log(1 / beta)) / (rate * shares)).min()

    found = repeated_reach(np.ones(1), np.array([rate]), np.array([times]), beta)

    assert best * (1 - 1e-6) <= found <= 1.01 * best


def test_repeated_noises_count_as_often_as_they_occur() -> None:
    """Three noises of one kind and two of another have the reach of the five, one by one."""
    sizes, rates, times = np.array([1.0, 4.0]), np.array([0.5, 3.0]), np.array([3.0, 2.0])

    found = repeated_reach(sizes, rates, times, 0.01)

    factors, each = np.array([1.0, 4.0, 1.0, -4.0, 1.0]), np.array([0.5, 3.0, 0.5, 3.0, 0.5])
    assert found == pytest.approx(laplace_mix_reach(factors, each, 0.01), rel=1e-9)
