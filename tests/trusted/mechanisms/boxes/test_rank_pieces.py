"""Rank coordinates, scores of dependence, schedules and raking: the pieces that rank boxes are made of."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.arrays import Floats
from partita.public.axis.curve import Curve
from partita.public.boxes.cover import RankBins, ThinSides, rake
from partita.public.boxes.density import distribution, expected_counts, importance, pairs, rank_edges, trimmed
from partita.public.boxes.rank_boxes import rank_schedule

WIDE = 2**63 + 4


def _curve(ends: list[int], counts: list[float]) -> Curve:
    return Curve(np.array(ends, np.uint64), np.array(counts))


curves = st.lists(
    st.tuples(st.integers(1, 2**61), st.sampled_from([0.0, 1e-300, 0.5, 3.0, 1e18])), min_size=1, max_size=4
).map(
    lambda parts: _curve((np.cumsum([p[0] for p in parts], dtype=object) - 1).tolist(), [p[1] for p in parts])
)


@given(curves, st.integers(0, 8))
def test_edges_are_positions_in_order(curve: Curve, bits: int) -> None:
    """Edges begin at 0, never decrease, end behind the last position, and are a power of two and one."""
    edges = rank_edges(distribution(curve), bits)

    assert edges.size == 2**bits + 1
    assert edges[0] == 0
    assert int(edges[-1]) == int(curve.ends[-1]) + 1
    assert bool((edges[1:] >= edges[:-1]).all())


@given(curves)
def test_a_distribution_has_no_empty_piece(curve: Curve) -> None:
    """Shares are positive and add up to one."""
    shares = distribution(curve)

    assert bool((shares.counts > 0).all())
    assert shares.total == pytest.approx(1.0)


def test_slots_between_edges_hold_equally_much() -> None:
    """Where no cell is heavy each slot holds its share of the rows, to the width of a cell."""
    curve = _curve([999, 9_999, 99_999], [700.0, 200.0, 100.0])
    edges = rank_edges(distribution(curve), 4)

    held = curve.between(edges[:-1], edges[1:] - np.uint64(1))

    assert held == pytest.approx(1000 / 16, abs=1)


def test_a_heavy_cell_is_a_slot_of_its_own() -> None:
    """Edges lie on both sides of a cell that holds most rows, and other slots there have no width."""
    edges = rank_edges(distribution(_curve([4, 5, 99], [1.0, 98.0, 1.0])), 5).tolist()

    assert {5, 6} <= set(edges)
    assert edges.count(5) + edges.count(6) >= 30


def test_edges_of_the_widest_axis_are_exact() -> None:
    """An even axis of 2^63 cells and four special ones is halved in its middle."""
    edges = rank_edges(distribution(_curve([WIDE - 1], [5.0])), 1)

    assert abs(int(edges[1]) - WIDE // 2) <= 2**11
    assert int(edges[2]) == WIDE


@pytest.mark.parametrize(
    ("edges", "kept"),
    [
        ([0, 0, 0, 1, 1], [0, 0, 1]),
        ([0, 0, 0, 0, 1], [0, 1]),
        ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
        ([0, 0, 1, 1, 3], [0, 1, 3]),
        ([0, 7], [0, 7]),
    ],
)
def test_edges_are_trimmed_to_those_that_cut(edges: list[int], kept: list[int]) -> None:
    """Halvings that never separate anything are left out, and no place of an edge is lost."""
    found = trimmed(np.array(edges, np.uint64)).tolist()

    assert set(found) == set(edges)
    assert (len(found) - 1).bit_count() == 1
    assert len(found) <= len(edges)
    assert set(kept) == set(found)


def test_expected_counts_are_whole_and_those_of_independent_columns() -> None:
    """What a cell should hold is the product of the shares, rounded; none of it is negative."""
    shares = np.array([0.5, 0.5, *[0.0] * 6])

    assert expected_counts(0, shares, shares).tolist() == [0] * 64
    assert expected_counts(2**61, shares, shares).sum() == 2**61
    assert expected_counts(10, shares, np.full(8, 0.125)).tolist() == [1] * 16 + [0] * 48


def test_an_axis_is_as_important_as_its_best_pair() -> None:
    """Chance and noise are taken away from the largest score of an axis; importance is limited both ways."""
    shares, chance = [np.full(8, 1 / 8)] * 3, 64 * np.sqrt(2 * 10_000 / 64 / np.pi)

    found = importance([10_000, 0, 900_000], Fraction(100), 10_000, shares)

    assert pairs(3) == [(0, 1), (0, 2), (1, 2)]
    assert found.tolist() == pytest.approx([((9_900 - chance) / 10_000) ** 0.7, 2**0.7, 2**0.7])
    assert importance([-5, 0, 0], Fraction(1), 0, shares).tolist() == [0.03**0.7] * 3


def test_a_column_of_one_value_tells_nothing() -> None:
    """Where a column has one value the cells hold what is expected of them, and a score is but noise."""
    one, other = np.eye(8)[0], np.full(8, 1 / 8)

    assert importance([0], Fraction(1), 8_000, [one, other]).tolist() == [0.03**0.7] * 2


@given(
    st.lists(st.tuples(st.floats(0.03, 2.0), st.integers(0, 12)), min_size=2, max_size=6),
)
def test_schedules_halve_every_axis_as_often_as_it_can_be(axes: list[tuple[float, int]]) -> None:
    """Each axis is halved as often as it can be, by levels of one to three axes, the best one first."""
    weights, bits = np.array([axis[0] for axis in axes]), [axis[1] for axis in axes]

    levels = rank_schedule(weights, bits)

    assert levels.sum(axis=0).tolist() == bits or not any(bits)
    if any(bits):
        assert set(levels.sum(axis=1).tolist()) <= {1, 2, 3}
        assert bool((levels <= 1).all())
        assert bool(levels[0, np.argmax(np.where(np.array(bits) > 0, weights, 0.0))])


def test_a_schedule_has_a_level_even_if_nothing_can_be_halved() -> None:
    """Axes of one cell each leave one level that halves none."""
    assert rank_schedule(np.ones(3), [0, 0, 0]).tolist() == [[0, 0, 0]]


def _leaves(count: int) -> tuple[Floats, Floats]:
    """Leaves of all widths from rank to rank."""
    words = np.linspace(0.0, 1.0, count) ** 2
    starts = np.concatenate([words[:-1], [0.0, 0.25, 0.999999]])
    ends = np.concatenate([words[1:], [1.0, 0.25 + 1e-14, 1.0]])
    return starts, ends


def test_marginals_are_those_of_even_leaves() -> None:
    """A bin holds of every leaf the share of its ranks that lies in the bin."""
    starts, ends = _leaves(9)
    values = np.arange(1.0, starts.size + 1)
    edges = np.arange(65) / 64
    inside = np.clip(np.minimum(ends[:, None], edges[1:]) - np.maximum(starts[:, None], edges[:-1]), 0, None)
    shares = inside / (ends - starts)[:, None]

    bins = RankBins.of(starts, ends)

    assert bins.marginal(values) == pytest.approx(values @ shares, abs=1e-9)
    assert bins.mean(np.sqrt(edges[1:])) == pytest.approx(shares @ np.sqrt(edges[1:]), rel=1e-2)


def test_raking_keeps_the_total_and_comes_nearer() -> None:
    """With all weight on the views the marginals of dependent leaves become even; the total stays."""
    side = (np.arange(8.0) / 8, (np.arange(8.0) + 1) / 8)
    starts = [side[0].repeat(8), np.tile(side[0], 8)]
    ends = [side[1].repeat(8), np.tile(side[1], 8)]
    values = (1.0 + np.abs(np.arange(8)[:, None] - np.arange(8)) + np.arange(8)).ravel()
    axes = [RankBins.of(start, end) for start, end in zip(starts, ends, strict=True)]

    even = rake(values, axes, np.ones(2))

    assert even.sum() == pytest.approx(values.sum())
    for axis in axes:
        assert axis.marginal(even) == pytest.approx(values.sum() / 64, rel=0.01)
    assert rake(values, axes, np.zeros(2)) == pytest.approx(values)


def test_leaves_beside_a_thin_side_hold_what_the_side_does() -> None:
    """Noise above zero in eight leaves beside a side of few rows does not add up; the total stays."""
    lows, highs = np.array([0, 1], np.uint64).repeat(8), np.array([0, 9], np.uint64).repeat(8)
    starts, ends = np.array([0.0, 1e-4]).repeat(8), np.array([1e-4, 1.0]).repeat(8)
    values = np.concatenate([np.full(8, 5.0), np.full(8, 120.0)])

    thin = ThinSides.of(lows, highs, ends - starts, lows == 0)
    bins = RankBins.of(starts, ends)
    drawn, plain = rake(values, [bins], np.ones(1), [thin]), rake(values, [bins], np.ones(1))

    assert drawn[:8].sum() == pytest.approx(0.1, rel=1e-6)
    assert plain[:8].sum() > 1
    assert drawn.sum() == pytest.approx(1000)
    nothing = ThinSides.of(lows, highs, ends - starts, lows > 9)
    assert rake(values, [bins], np.ones(1), [nothing]) == pytest.approx(plain)


@pytest.mark.parametrize("values", [[0.0, 0.0], [5.0, 0.0], [0.0, 1e-300], [1e300, 1.0]])
def test_raking_survives_what_is_nearly_empty(values: list[float]) -> None:
    """Counts stay finite and never negative, whatever is zero."""
    bins = RankBins.of(np.array([0.0, 0.5]), np.array([0.5, 1.0]))

    found = rake(np.array(values), [bins, bins], np.array([0.5, 1.0]))

    assert bool(np.isfinite(found).all())
    assert bool((found >= 0).all())
    assert found.sum() == pytest.approx(sum(values))
