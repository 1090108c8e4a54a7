"""Counts with Gaussian noise: what neighbours differ by in rho, planted bugs, special cells, and bounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np
import pytest

from partita import Axis, GaussianCounts, GaussianGrid, Histogram, HistogramCounts, InvalidParameter
from partita.concentrated import epsilon_of_rho, rho_within
from partita.curves import gaussian_delta, single_gaussian_delta
from partita.public.bounds import Gaussian, gaussian_reach, gaussian_variance
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    ReplayBroken,
    ZeroNoise,
    coupled,
    coupled_rho,
    replay,
    tape_noise,
)
from partita.trusted.mechanisms.base import WithSpecials
from partita.trusted.secret import Points

RHO = Fraction(1, 8)
Counts = tuple[int, ...]

PROTECTED: list[dict[str, Any]] = [
    {},
    {"contributions": 3},
    {"neighbors": "change-one"},
    {"neighbors": "change-one", "contributions": 2},
]


def units(cells: int, protected: dict[str, Any]) -> list[Counts]:
    """All that one unit may bring: up to so many rows, or one row where a row is changed."""
    most = protected.get("contributions", 1)
    rows = range(1 if most == 1 and "neighbors" in protected else 0, most + 1)
    chosen = (c for n in rows for c in combinations_with_replacement(range(cells), n))
    return [tuple(c.count(cell) for cell in range(cells)) for c in chosen]


def neighbours(cells: int, protected: dict[str, Any]) -> Iterator[tuple[Counts, Counts]]:
    """All pairs with one unit in one of them only, or with other rows of it."""
    others = tuple(range(cells))
    mine = units(cells, protected)
    absent = (0,) * cells
    pairs = product(mine, mine) if "neighbors" in protected else ((absent, each) for each in mine)
    for one, other in pairs:
        yield tuple(map(sum, zip(others, one, strict=True))), tuple(map(sum, zip(others, other, strict=True)))


def histogram(counts: Counts, protected: dict[str, Any]) -> Histogram:
    return Histogram.dense(counts, contributions=protected.get("contributions", 1))


def worst_rho(mechanism: Any, protected: dict[str, Any], cells: int = 3) -> Fraction:
    """The most that the coupling accounts for, over all neighbours."""
    noise = tape_noise(EndlessTape("worst"))

    def run(counts: Counts, noise: Any) -> Any:
        return mechanism.release(histogram(counts, protected), noise=noise).noisy.tolist()

    return max(coupled_rho(run, *pair, noise) for pair in neighbours(cells, protected))


@pytest.mark.parametrize("protected", PROTECTED, ids=repr)
def test_neighbours_cost_rho_and_the_worst_ones_all_of_it(protected: dict[str, Any]) -> None:
    """Over all tiny neighbours the squares of differences over twice the variance reach rho, and no more."""
    mechanism = GaussianCounts(size=3, rho=RHO, **protected)

    assert worst_rho(mechanism, protected) == RHO == mechanism.guarantee.rho


@pytest.mark.parametrize("protected", PROTECTED, ids=repr)
def test_cells_of_several_axes_cost_rho(protected: dict[str, Any]) -> None:
    """On a grid a row is in one cell, too, special cells included."""
    axes = [Axis(size=2, after=1), Axis(size=1)]
    mechanism, noise = GaussianGrid(axes=axes, rho=RHO, **protected), tape_noise(EndlessTape("grid"))

    def run(counts: Counts, noise: Any) -> Any:
        rows = [[cell, 0] for cell, count in enumerate(counts) for _ in range(count)]
        bound = protected.get("contributions", 1)
        points = Points.from_rows(rows, axes=axes, contributions=bound)
        return mechanism.release(points, noise=noise).noisy.tolist()

    assert max(coupled_rho(run, *pair, noise) for pair in neighbours(3, protected)) == RHO


@pytest.mark.parametrize("protected", PROTECTED, ids=repr)
def test_special_cells_beside_an_axis_cost_no_more(protected: dict[str, Any]) -> None:
    """With a count of each special cell, rows that leave the axis for one of them still cost rho."""
    counted = GaussianCounts(size=2, rho=RHO, **protected)
    column = WithSpecials(axis=counted, specials=("below", "null"))
    noise = tape_noise(EndlessTape("specials"))

    def run(counts: Counts, noise: Any) -> Any:
        beside = dict(zip(column.specials, counts[2:], strict=True))
        axis: Any
        axis, specials = column.release(histogram(counts[:2], protected), beside, noise=noise)
        return axis.noisy.tolist(), dict(specials.counts), specials.scale

    assert max(coupled_rho(run, *pair, noise) for pair in neighbours(4, protected)) == RHO
    assert run((0, 0, 0, 0), ZeroNoise())[2] == Gaussian(counted.variance)


def test_no_epsilon_bounds_the_loss() -> None:
    """Coupling and replay refuse Gaussian noise where a loss is asked for, and replay tells rho."""
    mechanism = GaussianCounts(size=2, rho=RHO)

    def run(counts: Counts, *noise: Any) -> Any:
        given = {"noise": noise[0]} if noise else {}
        return mechanism.release(Histogram.dense(counts), **given).noisy.tolist()

    loss = replay(run, (1, 0), (2, 0))

    assert loss.within_rho(RHO)
    assert not loss.within_rho(RHO - Fraction(1, 10**9))
    assert not loss <= 10**9
    assert math.isinf(float(loss))
    with pytest.raises(CouplingBroken, match="coupled_rho"):
        coupled(run, (1, 0), (2, 0), tape_noise(EndlessTape(1)))


def test_replay_adds_up_rho_of_both_kinds_of_noise() -> None:
    """Laplace noise costs half the square of its loss, Gaussian noise the square of what it hides."""
    laplace, gaussian = HistogramCounts(size=2, epsilon=Fraction(1, 2)), GaussianCounts(size=2, rho=RHO)

    def run(counts: Counts) -> Any:
        data = Histogram.dense(counts)
        return laplace.release(data).noisy.tolist(), gaussian.release(data).noisy.tolist()

    loss = replay(run, (1, 0), (2, 0))

    assert loss.rho == float(RHO + Fraction(1, 8))
    assert loss.within_rho(RHO + Fraction(1, 8))


# Planted bugs.
def planted(name: str, **protected: Any) -> Any:
    """A mechanism that is broken in one way."""
    made = GaussianCounts(size=3, rho=RHO, **protected)
    changes = {
        "half the variance": made.variance / 2,
        "deviation for variance": made.variance / 4,
        "rows not squared": Fraction(made.contributions, 1) / (2 * RHO),
        "change ignored": Fraction(made.contributions**2, 1) / (2 * RHO),
    }

    class Broken:
        def release(self, data: Any, *, noise: Any) -> Any:
            fresh = dataclasses.replace(made, rho=made.squares / (2 * changes[name]), epsilon=None)
            return fresh.release(data, noise=noise)

    return Broken()


@pytest.mark.parametrize(
    ("name", "protected"),
    [
        ("half the variance", {}),
        ("deviation for variance", {}),
        ("rows not squared", {"contributions": 3}),
        ("change ignored", {"neighbors": "change-one"}),
    ],
)
def test_too_little_noise_is_seen(name: str, protected: dict[str, Any]) -> None:
    """Each way to draw too little costs more than rho on some neighbours."""
    assert worst_rho(planted(name, **protected), protected) > RHO


class Sparse:
    """Noise only where there is something."""

    def release(self, data: Any, *, noise: Any) -> Any:
        counts = data.spread()
        noisy = counts.copy()
        for cell in np.flatnonzero(counts):
            noisy[cell] = noise.add_gaussian(int(counts[cell]), Fraction(4))
        return dataclasses.make_dataclass("Release", ["noisy"])(noisy)


class Reused:
    """One noise for all cells."""

    def release(self, data: Any, *, noise: Any) -> Any:
        counts = data.spread()
        shift = noise.add_gaussian(int(counts[0]), Fraction(4)) - int(counts[0])
        return dataclasses.make_dataclass("Release", ["noisy"])(counts + shift)


class ByData:
    """A variance that follows from the number of rows."""

    def release(self, data: Any, *, noise: Any) -> Any:
        noisy = noise.add_gaussian(data.spread(), Fraction(4 + int(data.spread().sum())))
        return dataclasses.make_dataclass("Release", ["noisy"])(noisy)


@pytest.mark.parametrize("broken", [Sparse, Reused, ByData])
def test_noise_that_follows_the_data_is_seen(broken: Any) -> None:
    """Coupling breaks where noise is missing, used twice, or scaled by a secret; so does replay."""
    with pytest.raises(CouplingBroken):
        worst_rho(broken(), {})

    def run(counts: Counts) -> Any:
        from partita.trusted.noise.system import SYSTEM

        return broken().release(Histogram.dense(counts), noise=SYSTEM).noisy.tolist()

    with pytest.raises(ReplayBroken):
        replay(run, (0, 1, 0), (0, 1, 1))


# Parameters.
def test_a_guarantee_by_epsilon_is_kept_by_the_exact_curve() -> None:
    """Made with epsilon and delta, the noise is the least that the curve proves, and rho is what it costs."""
    for contributions in (1, 5):
        made = GaussianCounts(size=9, epsilon=1, delta="1e-6", contributions=contributions)
        squares = contributions**2

        assert (made.guarantee.epsilon, made.guarantee.delta) == (Fraction(1), Fraction(1, 10**6))
        assert made.guarantee.rho == made.rho == squares / (2 * made.variance)
        assert made.rho > rho_within(1, "1e-6")
        proofs = [gaussian_delta(made.rho, 1, least_variance=made.variance)]
        proofs += [single_gaussian_delta(made.variance, 1)] if squares == 1 else []
        assert min(proofs) <= Fraction(1, 10**6)
        assert dataclasses.replace(made, size=5).rho == made.rho


def test_a_guarantee_by_rho_states_the_epsilon_that_follows() -> None:
    """Made with rho, epsilon is that of the conversion at delta, 10^-9 if left out."""
    made = GaussianCounts(size=9, rho="1/8")

    assert made.guarantee.rho == Fraction(1, 8)
    assert made.guarantee.delta == Fraction(1, 10**9)
    assert made.guarantee.epsilon == made.epsilon == epsilon_of_rho("1/8", "1e-9")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "epsilon"),
        ({"rho": 0}, "rho"),
        ({"rho": "much"}, "rho"),
        ({"rho": Fraction(1, 2**130)}, "rho"),
        ({"rho": Fraction(1, 8), "epsilon": Fraction(1, 100)}, "epsilon"),
        ({"rho": Fraction(1, 8), "delta": 0}, "delta"),
        ({"epsilon": 1, "delta": 2}, "delta"),
    ],
)
@pytest.mark.parametrize("kind", [GaussianCounts, GaussianGrid])
def test_bad_budgets_are_refused(kind: Any, given: dict[str, Any], name: str) -> None:
    """An error of ours names the parameter."""
    shape: dict[str, Any] = {"size": 4} if kind is GaussianCounts else {"axes": [Axis(size=4)]}
    with pytest.raises(InvalidParameter) as refused:
        kind(**shape, **given)

    assert refused.value.parameter == name


def test_too_many_cells_are_refused() -> None:
    """2^24 cells of an axis and 2^22 of a grid are the most."""
    for make in (
        lambda: GaussianCounts(size=2**24 + 1, rho=1),
        lambda: GaussianGrid(axes=[Axis(size=2**11), Axis(size=2**12)], rho=1),
    ):
        with pytest.raises(InvalidParameter):
            make()


# Bounds.
def exact_tail(variance: float, number: int) -> tuple[np.ndarray, int]:
    """P[S >= t] for t = 0, 1, ... of a sum of so many noises, by convolution."""
    reach = int(12 * math.sqrt(variance)) + 3
    law = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    law /= law.sum()
    total = np.ones(1)
    for _ in range(number):
        total = np.convolve(total, law)
    middle = total.size // 2
    return np.cumsum(total[::-1])[::-1][middle:], middle


@pytest.mark.parametrize("variance", ["1/4", "1", "3", "25", "400"])
@pytest.mark.parametrize("number", [1, 2, 9])
def test_a_sum_leaves_its_reach_as_rarely_as_it_may(variance: str, number: int) -> None:
    """By the exact law of the sum, P[S > t] is at most beta, and t is nearly the least such number."""
    tail, _ = exact_tail(float(Fraction(variance)), number)
    for beta in (0.4, 0.2, 0.1, 0.025, 1e-4, 1e-8):
        reach = gaussian_reach({(1, Gaussian(Fraction(variance))): number}, beta)
        beyond = math.floor(reach) + 1
        exceeded = tail[beyond] if beyond < tail.size else 0.0

        assert exceeded <= beta * (1 + 1e-9)
        if Fraction(variance) >= 3 and beta <= 0.1:
            assert tail[math.floor(reach) - 1] > 0.99 * beta


def test_sums_of_several_factors_are_bounded_by_moments() -> None:
    """Factors and laws that differ go into one sub-Gaussian bound."""
    noises = {(1, Gaussian(Fraction(4))): 3, (2, Gaussian(Fraction(1))): 1}

    assert gaussian_reach(noises, 0.01) == pytest.approx(math.sqrt(2 * 16 * math.log(100)))


def test_the_variance_of_small_noise_is_below_its_parameter() -> None:
    """At parameter 1/4 it is that of its law, and from 4 on the parameter itself."""
    weights = {k: math.exp(-2 * k * k) for k in range(-9, 10)}
    exact = sum(k * k * w for k, w in weights.items()) / sum(weights.values())

    assert gaussian_variance(Fraction(1, 4)) == pytest.approx(exact)
    assert gaussian_variance(Fraction(1, 4)) < 0.25
    assert [gaussian_variance(Fraction(v)) for v in (4, 100)] == [4.0, 100.0]
    assert gaussian_variance(Fraction(1, 2**20)) > 0


def test_guaranteed_intervals_hold_at_their_rate() -> None:
    """On 600 fixed tapes, ranges of 1 to 40 cells leave their 90% bounds in about a tenth of all."""
    made = GaussianCounts(size=40, rho=Fraction(1, 50))
    data = Histogram.dense(tuple(range(40)))
    missed = dict.fromkeys((1, 5, 40), 0)
    for seed in range(600):
        release = made.release(data, noise=tape_noise(EndlessTape(seed)))
        for width in missed:
            low, high = release.count(0, width - 1).bounds(0.1)
            missed[width] += not low <= sum(range(width)) <= high

    assert all(30 <= count <= 78 for count in missed.values()), missed


def test_error_bounds_all_ranges_at_once() -> None:
    """In 200 releases no range at all is off by more than error(beta), but for a share of beta at most."""
    made = GaussianCounts(size=30, rho=Fraction(1, 8))
    limit = made.bound(0.05)
    worst = []
    for seed in range(200):
        release = made.release(Histogram.dense((5,) * 30), noise=tape_noise(EndlessTape(("all", seed))))
        sums = np.concatenate([[0], np.cumsum(release.noisy - 5)])
        worst.append(max(abs(b - a) for k in range(1, 31) for a, b in zip(sums, sums[k:], strict=False)))

    assert limit == made.release(Histogram.dense((0,) * 30), noise=ZeroNoise()).error(0.05)
    assert sum(each > limit for each in worst) <= 10
    assert all(a <= b for a, b in pairwise(sorted(worst)))


def test_the_expected_largest_error_of_a_cell_is_bounded() -> None:
    """From the law, E max |X| over a thousand cells is below the bound, and not far below."""
    made = GaussianCounts(size=1000, rho=Fraction(1, 50))
    tail, _ = exact_tail(25.0, 1)
    exact = float((1 - (1 - 2 * tail[1:]) ** 1000).sum())

    assert exact <= made.largest_error < 1.3 * exact


def test_predicted_errors_are_those_of_the_releases() -> None:
    """The root of the mean square over all ranges, and over all boxes."""
    counts = GaussianCounts(size=12, rho=Fraction(1, 8))
    release = counts.release(Histogram.dense((0,) * 12), noise=ZeroNoise())
    lows, highs = np.triu_indices(12)
    errors = release.errors(lows.astype(np.uint64), highs.astype(np.uint64))

    assert counts.predicted_error(0) == pytest.approx(math.sqrt(float((errors**2).mean())))
    grid = GaussianGrid(axes=[Axis(size=4), Axis(size=3)], rho=Fraction(1, 8))
    assert grid.predicted_error(0) == pytest.approx(math.sqrt(2 * (5 / 3) * 4))
    assert grid.predicted_numbers(0) == grid.cells == 12
