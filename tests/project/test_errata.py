"""The numbers of docs/errata.md, worked out from the words of the papers, mostly without our code."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from partita.testing.laws import RationalNoise, law
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.secret import Histogram


def _laplace_tail(level: float) -> float:
    """P[Y > level] for Laplace noise of scale one."""
    return math.exp(-level) / 2 if level >= 0 else 1 - math.exp(level) / 2


@pytest.mark.parametrize("epsilon", [0.1, 0.25, 0.4])
def test_entry_1_the_printed_bias_loses_more_than_twice_epsilon(epsilon: float) -> None:
    """A bit of 1/2 and one of 1/2 + epsilon: the odds of a zero, and the bias that is right."""
    assert math.log(0.5 / (0.5 - epsilon)) > 2 * epsilon
    right = (1 - math.exp(-epsilon)) / 2
    assert math.log(0.5 / (0.5 - right)) == pytest.approx(epsilon)
    assert math.log((0.5 + right) / 0.5) < epsilon


def test_entry_2_the_printed_estimate_is_two_epsilon_of_the_share() -> None:
    """The mean of z, from the chance of a one for ids that came and for ids that did not."""
    size, came, epsilon = 1000, 300, 0.1
    ones = came * (0.5 + epsilon) + (size - came) * 0.5

    assert 2 * (ones - size / 2) / size == pytest.approx(2 * epsilon * came / size)


def test_entry_4_the_theorem_fails_for_one_query() -> None:
    """k = 1, two kinds of rows, a = 0: the error exceeds the bound with a chance above beta."""
    ln_beta, scale = 30.0, 1.0
    n = ln_beta * scale
    # scale = sqrt(8 k ln(1/delta)) / epsilon, so sqrt(192 ln(1/delta)) / epsilon = sqrt(24 / k) scale
    bound = n * scale * math.sqrt(24 * (ln_beta + math.log(2 * 2)))

    assert n**2 == 900
    assert round(bound) == 823
    assert 2 * _laplace_tail(math.sqrt(bound) / scale) > math.exp(-ln_beta)


@pytest.mark.parametrize("ratio", [0.001, 0.01, 0.1, 0.3, 0.6, 1.0, 1.2])
def test_entry_4_the_constant_holds_for_enough_queries(ratio: float) -> None:
    """With L = ln(2|X|/beta) = ratio k, a sum of k noises passes sqrt(6 k L) scales with chance e^-L at most.

    ln P <= -h t - k ln(1 - h^2) for every h below one; and 2n sqrt(6 k L) b is the bound as printed.
    """
    h = np.linspace(0, 0.9999, 20_001)
    exponent = math.sqrt(6 * ratio) * h + np.log1p(-(h**2))

    assert exponent.max() >= ratio
    assert 2 * math.sqrt(6) * math.sqrt(8) == pytest.approx(math.sqrt(192))


def test_entry_4_the_proof_has_other_factors_than_the_theorem() -> None:
    """8k from Lemma 12.2 for each column, 2n from the triangle inequality, 2 from Lemma 12.9."""
    per_column = math.sqrt(8) * math.sqrt(8)

    assert per_column == pytest.approx(8)
    assert 2 * 2 * per_column == pytest.approx(32)
    assert math.sqrt(192) < 16


def test_entry_5_the_largest_error_grows_with_the_square_of_the_logarithm() -> None:
    """Half of the largest leaf from below, the union bound from above: neither is (log T)^(5/3)."""
    for levels in (10, 20, 40, 80):
        below = (levels - 1) * math.log(2) / 2  # half of ln(T/2), in units of the scale of a node
        above = 2 * (levels * math.log(4 / 3) + math.log(2) * (levels + 1)) + 2  # of the mean, by integration
        assert below * levels > 0.3 * levels**2
        assert above * levels < 3 * levels**2
        assert math.sqrt(2 * levels) * levels == pytest.approx(math.sqrt(2) * levels**1.5)


def test_entry_6_a_smaller_lambda_is_exceeded_more_often() -> None:
    """k = 4, b = 1, alpha = 4: lambda = 0 fits the condition, and half of the mass lies above it."""
    k, b, alpha, small = 4, 1.0, 4.0, 0.0

    assert small < alpha * math.sqrt(k) * b < 2 * math.sqrt(2) * k * b
    assert math.exp(-(alpha**2) / 8) < 0.5


def test_entry_7_a_constant_is_accurate_and_matches_nothing() -> None:
    """The output k has error k on every stream of the proof; an output that swings matches all phases."""
    k, phases = 4, 8
    for phase in range(phases):
        truth = np.minimum(np.maximum(np.arange(1, k * phases + 1) - k * phase, 0), k)
        assert np.abs(k - truth).max() <= k

    def matches(outputs: list[float], phase: int) -> bool:
        before = outputs[phase * k - 1] if phase else 0.0
        return before < k / 2 <= outputs[phase * k + k - 1]

    swinging = [float(k if period % k == k - 1 else 0) for period in range(k * phases)]
    swinging = [0.0 if period % (2 * k) == 2 * k - 1 else value for period, value in enumerate(swinging)]
    assert not any(matches([float(k)] * (k * phases), phase) for phase in range(1, phases))
    assert sum(matches(swinging, phase) for phase in range(phases)) == phases / 2


def test_entry_7_the_power_of_t_is_not_a_half() -> None:
    """2k epsilon = log2(T) / 2 is 0.72 ln T."""
    assert math.exp(-math.log2(2**20) / 2) == pytest.approx((2**20) ** -0.7213, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "beta", "size"), [(0.1, 0.05, 100), (1.0, 0.5, 20), (5.0, 0.05, 2**20)])
def test_entry_8_at_most_n_segments_for_an_epsilon_of_use(epsilon: float, beta: float, size: int) -> None:
    """In the event of the proof a sealed segment has two items: n/2 of them and the last are at most n."""
    total = math.log(size / beta)
    threshold, largest = 3 * total / epsilon, (total + math.log(2)) / epsilon
    least = math.floor(threshold - 2 * largest) + 1

    assert epsilon <= total - 2 * math.log(2)
    assert least >= 2
    assert all(items // least + 1 <= items for items in range(1, 50))


def test_entry_8_single_items_are_sealed_at_a_large_epsilon() -> None:
    """At four times ln(D/beta) the paper's threshold is below one, and each of five items is sealed."""
    size, beta, items = 1000, 0.05, 5
    epsilon = 4 * math.log(size / beta)
    missing = (3 * math.log(size / beta) / epsilon - 1) * epsilon  # how far the threshold is above one item
    sealed = 1 - (1 + abs(missing) / 2) * math.exp(-abs(missing)) / 2

    assert missing < 0
    assert sealed**items > 1 - beta


def test_entry_9_a_row_that_moves_costs_nearly_twice_epsilon() -> None:
    """The shipped code with the paper's noise, enumerated: more than was promised from three cells on."""

    def cuts(*counts: int, noise: Any = "laplace") -> dict[Any, Fraction]:
        partition = Partition(size=len(counts), epsilon=1, threshold=0, law=noise)
        people = Histogram.dense(counts)
        return law(
            lambda noise: tuple(partition.cut(people, noise=noise).edges.tolist()),
            RationalNoise(Fraction(1, 2)),
        )

    def factor(one: dict[Any, Fraction], other: dict[Any, Fraction]) -> float:
        return float(max(max(one[cut] / other[cut], other[cut] / one[cut]) for cut in one))

    def moved(size: int, to: int) -> float:
        one, other = ([int(cell == place) for cell in range(size)] for place in (0, to))
        return factor(cuts(*one), cuts(*other))

    assert round(factor(cuts(0, 1, 0), cuts(0, 0, 0)), 2) == 1.73
    assert [round(moved(*to), 2) for to in ((3, 1), (4, 2))] == [2.12, 2.54]
    one_sided = [cuts(*counts, noise="geometric") for counts in ((0, 1, 0), (1, 0, 0))]
    assert factor(*one_sided) == 4


def test_entry_10_both_scales_are_right_for_their_own_tree() -> None:
    """Nodes over a position with the root and without, and the prefix that needs two nodes of one level."""
    for levels in range(1, 8):
        nodes = [(level, place) for level in range(levels) for place in range(2 ** (levels - level))]
        over = [sum(t >> level == place for level, place in nodes) for t in range(2**levels)]
        assert set(over) == {levels}
        most = max(
            [*((t + 1).bit_count() for t in range(2**levels - 1)), 2]
        )  # the last prefix is both halves
        assert (most <= levels) == (levels >= 2)


def _over_a_point(axes: int, levels: int, *, root: bool) -> int:
    nodes = levels + root
    return sum(nodes**axis for axis in range(1, axes + 1))


def test_entry_11_nodes_over_a_point() -> None:
    """Counted for trees with their roots and without them."""
    assert _over_a_point(2, 2, root=True) == 12 > 2 * 2**2
    for axes in (2, 3):
        assert all(_over_a_point(axes, levels, root=False) <= 2 * levels**axes for levels in range(2, 40))
        fits = [
            levels for levels in range(2, 40) if _over_a_point(axes, levels, root=True) <= 2 * levels**axes
        ]
        assert 2 ** fits[0] == {2: 16, 3: 64}[axes]
        assert fits == list(range(fits[0], 40))
    assert _over_a_point(3, 1, root=False) > 2
    assert Fraction(1, 2) + Fraction(12, 16) == Fraction(5, 4)


def test_entry_12_the_list_of_intervals() -> None:
    """Equation (8) as printed, and with j from 0."""
    for bits in range(1, 7):
        size = 2**bits
        printed = [
            (j * 2**low + 1, (j + 1) * 2**low) for low in range(bits) for j in range(1, size // 2**low + 1)
        ]
        right = [
            (low - 2**each, high - 2**each)
            for each in range(bits)
            for low, high in [pair for pair in printed if pair[1] - pair[0] + 1 == 2**each]
        ]
        assert any(high > size for _, high in printed)
        assert (1, 1) not in printed
        assert len(right) == 2 * size - 2
        assert {sum(low <= t <= high for low, high in right) for t in range(1, size + 1)} == {bits}
        prefixes = [max(1, t.bit_count()) if t < size else 2 for t in range(1, size + 1)]
        assert (max(prefixes) <= bits) == (size > 2)


def test_entry_17_the_loss_of_many_queries_at_a_large_epsilon() -> None:
    """Nearly normal, with the mean and variance that k noises of this scale have."""
    epsilon, delta, k = 50.0, 0.1, 10**6
    each = epsilon / math.sqrt(8 * k * math.log(1 / delta))
    mean = k * (each - 1 + math.exp(-each))  # of the loss of Laplace noise that is shifted by one
    m = epsilon**2 / (16 * math.log(1 / delta))
    normal = NormalDist().cdf
    spent = normal((m - epsilon) / math.sqrt(2 * m)) - math.exp(epsilon) * normal(
        -(m + epsilon) / math.sqrt(2 * m)
    )

    assert mean == pytest.approx(m, rel=0.01)
    assert round(spent, 2) == 0.94


@pytest.mark.parametrize("size", [1, 2, 10, 10**6])
@pytest.mark.parametrize("beta", [1e-6, 0.05, 0.5, 0.999])
def test_entry_21_the_theorem_on_weights_holds(size: int, beta: float) -> None:
    """The expected number of segments that are not sealed at 5A, or sealed while empty, is at most beta."""
    total = math.log(size / beta)

    def exceeds(x: float) -> float:
        return (1 + x / 2) * math.exp(-x) / 2

    assert size * exceeds(2 * total) <= beta / 2 * (1 + 1e-12)
    assert size * exceeds(3 * total) <= size * exceeds(2 * total)
    assert 3 * total + 2 * (total + math.log(2)) > 5 * total


def test_the_bound_on_naive_counters_is_right_as_printed() -> None:
    """sqrt(T) / epsilon and T / epsilon are at least sqrt(T / epsilon) as long as epsilon is at most one."""
    for periods, epsilon in product((1, 10, 10**6), (0.01, 0.5, 1.0)):
        assert math.sqrt(periods) / epsilon >= math.sqrt(periods / epsilon)
        assert periods / epsilon >= math.sqrt(periods / epsilon)
