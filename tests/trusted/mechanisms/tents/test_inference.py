"""From noisy tents to answers: non-negative counts, bent curves, questions about pieces, bands."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.public.axis.curve import Curve, refine
from partita.public.axis.shrinkage import project_nonnegative, project_on_totals
from partita.public.axis.tent_solver import (
    TentCounts,
    TentStrategy,
    plan_levels,
    prefix_bounds,
    split_last_cells,
)
from partita.public.bounds import RangeCombination, laplace_mix_reach

counts = st.lists(st.floats(-50, 100), min_size=1, max_size=40)


def cells(*values: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


@given(counts)
def test_counts_become_non_negative_and_keep_their_total(values: list[float]) -> None:
    """No count is negative, and the total stays if it is not negative."""
    kept = project_nonnegative(np.array(values))

    assert kept.min() >= 0.0
    assert kept.sum() == pytest.approx(max(sum(values), 0.0), abs=1e-9)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40))
def test_non_negative_counts_stay_as_they_are(values: list[float]) -> None:
    """There is nothing to mend."""
    assert project_nonnegative(np.array(values)) == pytest.approx(np.array(values), abs=1e-9)


@given(st.tuples(*[st.floats(-9, 9)] * 3), st.floats(0, 9), st.tuples(*[st.floats(0, 1)] * 2))
def test_shares_are_the_nearest_ones(
    row: tuple[float, float, float], total: float, other: tuple[float, float]
) -> None:
    """No other way to share a total out is nearer."""
    members = np.array([row])
    first, second = sorted(other)
    rival = total * np.array([first, second - first, 1 - second])

    shared = project_on_totals(members, np.array([total]))

    assert shared.sum() == pytest.approx(total, abs=1e-9)
    assert ((shared - members) ** 2).sum() <= ((rival - members) ** 2).sum() + 1e-6


@given(st.lists(st.tuples(st.integers(1, 2**58), st.floats(0, 1e6)), min_size=1, max_size=30))
def test_bent_curves_stay_monotone_and_keep_every_edge(pieces: list[tuple[int, float]]) -> None:
    """Counts of parts are not negative and add up to the pieces', on widths up to the largest."""
    ends = cells(*np.cumsum([width for width, _ in pieces], dtype=object) - 1)
    curve = Curve(ends, np.array([count for _, count in pieces]))

    bent = refine(curve)

    assert bool((bent.counts >= 0.0).all())
    assert bool((bent.ends[1:] > bent.ends[:-1]).all())
    assert bent.upto(ends) == pytest.approx(curve.upto(ends), rel=1e-9, abs=1e-6)


def test_a_bent_curve_follows_its_neighbours() -> None:
    """Between a low and a high density the middle piece rises; beside a gap or a heavy cell it is flat."""
    rising = refine(Curve(cells(99, 199, 299), np.array([100.0, 200.0, 300.0])))
    lonely = refine(Curve(cells(99, 199, 200), np.array([0.0, 200.0, 1e6])))

    assert rising.between(cells(100), cells(149))[0] < 100.0
    assert lonely.between(cells(100), cells(149))[0] == pytest.approx(100.0)


def test_a_universe_of_2_to_the_64_cells_can_be_bent() -> None:
    """Offsets do not overflow."""
    bent = refine(Curve(cells(2**63 - 1, 2**64 - 1), np.array([10.0, 20.0])))

    assert bent.ends.size == 16
    assert bent.total == pytest.approx(30.0)
    assert int(bent.ends[-1]) == 2**64 - 1


terms = st.lists(
    st.tuples(st.integers(0, 19), st.integers(0, 19), st.sampled_from([1, -1])).map(
        lambda t: (min(t[:2]), max(t[:2]), t[2])
    ),
    min_size=1,
    max_size=4,
)


@given(terms, st.sets(st.integers(0, 18), max_size=8))
def test_questions_are_summed_up_cell_by_cell(asked: list[tuple[int, int, int]], edges: set[int]) -> None:
    """Mean, variance, least and most of the cells' coefficients in every piece, as counted one by one."""
    ends = sorted(edges | {19})
    pieces = Curve(cells(*ends), np.zeros(len(ends)))
    coefficient = np.zeros(20)
    for low, high, sign in asked:
        coefficient[low : high + 1] += sign
    groups = np.split(coefficient, [end + 1 for end in ends[:-1]])

    question = RangeCombination.about(pieces, asked)

    assert question.mean == pytest.approx([group.mean() for group in groups])
    assert question.variance == pytest.approx([group.var() for group in groups], abs=1e-9)
    assert question.least.tolist() == [group.min() for group in groups]
    assert question.most.tolist() == [group.max() for group in groups]


@pytest.mark.parametrize("units", [1, 7, 20, 21, 300, 450, 12_500])
def test_without_noise_the_band_holds_every_prefix_in_its_middle(units: int) -> None:
    """The structured estimate of every prefix is unbiased."""
    sizes, shares = plan_levels(units)
    rows = (np.arange(units, dtype=np.int64) * 13) % 7
    exact = TentStrategy.over(sizes, shares).exact(rows)

    lower, upper = prefix_bounds(TentCounts(levels=tuple(exact), shares=shares, rate=Fraction(1)), 0.05)

    assert (lower + upper) / 2 == pytest.approx(np.concatenate([[0], np.cumsum(rows)]), abs=1e-6)
    assert bool((upper[1:] > lower[1:]).all())


def test_the_band_is_as_wide_as_the_noise_of_its_own_sums() -> None:
    """The reach of one prefix is a Chernoff bound on the very factors of its estimate."""
    units, beta = 60, 0.1
    sizes, shares = plan_levels(units)
    zeros = [np.zeros(size, np.int64) for size in sizes]
    silent = TentCounts(levels=tuple(zeros), shares=shares, rate=Fraction(1))
    factors = []
    for level, size in enumerate(sizes):
        for index in range(size):
            bumped = [values.copy() for values in zeros]
            bumped[level][index] = 1
            lower, upper = prefix_bounds(
                TentCounts(levels=tuple(bumped), shares=shares, rate=Fraction(1)), beta
            )
            factors.append((lower[25] + upper[25]) / 2)
    rates = np.repeat([float(rate) for rate in silent.rates], sizes)

    lower, upper = prefix_bounds(silent, beta)

    expected = laplace_mix_reach(np.round(np.array(factors), 12), rates, beta / (2 * units))
    assert (upper[25] - lower[25]) / 2 == pytest.approx(expected, rel=0.02)


def test_many_factors_are_bounded_as_tightly_as_few() -> None:
    """Factors rounded up to 64 an octave give a reach that is larger, and by at most two percent."""
    factors = np.exp(-np.linspace(0, 9, 4_000))
    rates = np.where(np.arange(4_000) % 2, 0.3, 0.001)
    scaled = factors * rates
    halves = [laplace_mix_reach(part, rate, 0.01) for part, rate in ((scaled[:2_000], rates[:2_000]),)]

    many = laplace_mix_reach(np.concatenate([scaled[:2_000], np.full(2_000, 1e-30)]), rates, 0.01)

    assert halves[0] <= many <= 1.02 * halves[0]


@given(st.sets(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_last_cells_are_cut_off_where_there_are_others(edges: set[int]) -> None:
    """Every end stays, and the cell before it is an end too, if there is one."""
    ends = cells(*sorted(edges))

    pieces = set(split_last_cells(ends).tolist())

    assert pieces == edges | {edge - 1 for edge in edges if edge}
