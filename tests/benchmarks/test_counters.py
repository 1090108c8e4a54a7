"""The counters that ours are measured against are what their papers say, and so is the measuring."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp
from typing import Any

import numpy as np
import pytest

from benchmarks.speed.counters import Meter, binary
from benchmarks.streams import packing, sparse
from benchmarks.streams.measure import Effort, Found, counter_mse, exact, nothing, run, simulated, stepped
from benchmarks.streams.peers import (
    LAPLACE,
    Digits,
    Direct,
    Floats,
    Ints,
    Peer,
    PerStep,
    best_subtraction,
    published,
)
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.noise.system import SYSTEM
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.tree_counter import TreeCounter


@pytest.mark.parametrize(
    ("name", "horizon", "figure"),
    [
        ("per-step", 2**10, 1025),
        ("per-step", 2**16, 65_537),
        ("binary", 2**10, 1000),
        ("binary", 2**16, 4096),
        ("Honaker", 2**10, 580),
        ("Honaker", 2**16, 2254),
        ("subtraction", 2**10, 170.5),
        ("subtraction", 2**16, 608.1),
    ],
)
def test_published_counters_have_their_published_errors(name: str, horizon: int, figure: float) -> None:
    """The mean variances are those of the papers, to three digits."""
    mse = published(horizon)[name].variances(horizon).mean()

    assert mse == pytest.approx(figure, rel=1e-3)


def impulses(peer: Peer, horizon: int) -> Floats:
    """The sum of squares of what each noise alone does to each output."""
    drawn: list[int] = []

    def counting(size: int) -> Floats:
        drawn.append(size)
        return np.zeros(size)

    peer.errors(horizon, counting)
    total = np.zeros(horizon)
    for place in range(sum(drawn)):
        unit = np.arange(sum(drawn)) == place
        pieces = iter(np.split(unit.astype(np.float64), np.cumsum(drawn)[:-1]))
        total += peer.errors(horizon, lambda size, pieces=pieces: next(pieces)) ** 2  # type: ignore[misc]
    return total


@pytest.mark.parametrize("horizon", [1, 2, 7, 13, 16, 27])
@pytest.mark.parametrize(
    "peer",
    [
        PerStep(),
        Direct(),
        Digits(base=2, levels=5),
        Digits(base=2, levels=5, refined=True),
        Digits(base=3, levels=3, refined=True),
        Digits(base=3, levels=4, balanced=True),
        Digits(base=5, levels=2, balanced=True),
    ],
    ids=repr,
)
def test_variances_are_those_of_the_errors(peer: Peer, horizon: int) -> None:
    """What is simulated has exactly the variance that the formula says: errors are linear in the noise."""
    assert LAPLACE * impulses(peer, horizon) == pytest.approx(peer.variances(horizon), rel=1e-12)


@pytest.mark.parametrize("horizon", [5, 64, 100, 1000])
def test_the_tree_counter_is_the_binary_one(horizon: int) -> None:
    """Its exact variances are those of the formula, but for what integers save of continuous noise."""
    for refine, name in ((False, "binary"), (True, "Honaker")):
        ours = exact(partial(TreeCounter, epsilon=1, horizon=horizon, refine=refine), horizon)

        assert ours == pytest.approx(published(horizon)[name].variances(horizon).mean(), rel=0.02)


@pytest.mark.parametrize(
    "make",
    [
        partial(TreeCounter, epsilon=1, horizon=300),
        partial(TreeCounter, epsilon=1, horizon=300, refine=True),
        partial(Counter, epsilon=1, horizon=300),
        partial(Counter, epsilon=1),
    ],
)
def test_variances_are_those_of_each_output(make: Callable[[], Counter | TreeCounter]) -> None:
    """All at once or one period after another: the mean is the same."""
    assert exact(make, 300) == pytest.approx(stepped(make, 300), rel=1e-9)


def test_the_best_subtraction_is_the_best_of_all() -> None:
    """No odd base up to 59 does better."""
    best = best_subtraction(300).variances(300).mean()
    others = [Digits(base, levels, balanced=True) for base in range(3, 60, 2) for levels in (1, 2, 3, 4)]

    assert best <= min(peer.variances(300).mean() for peer in others if (peer.base**peer.levels) // 2 >= 300)


def test_a_run_is_judged_by_its_squared_errors() -> None:
    """Errors of 3 and -4 on top of any count make 12.5."""

    class Off:
        def update_many(self, xs: Ints) -> Floats:
            outputs: Floats = np.cumsum(xs) + np.array([3.0, -4.0])
            return outputs

    assert run(Off(), np.array([5, 7])) == 12.5
    assert simulated(Off, nothing(2), 3) == Found(12.5, 0.0)


def test_without_noise_there_is_no_error() -> None:
    """What is measured is noise, not the stream."""
    make = partial(Counter, epsilon=1, horizon=64, noise=ZeroNoise())

    assert run(make(), np.arange(64)) == 0


def test_counter_beats_the_best_published_one() -> None:
    """By the variance formula, over 2^10 periods, by more than a quarter."""
    best = best_subtraction(2**10).variances(2**10).mean()

    assert counter_mse(2**10) <= 0.74 * best


@pytest.mark.parametrize("stream", [sparse.uniform, sparse.bursts])
@pytest.mark.parametrize("weight", [1, 100, 3001])
def test_streams_have_their_weight(stream: Callable[..., Floats], weight: int) -> None:
    """All events lie within the horizon."""
    counts = stream(np.random.default_rng(1), horizon=2**14, weight=weight)

    assert (counts.size, counts.sum(), counts.min()) == (2**14, weight, 0)


def test_bursts_are_close_together() -> None:
    """Uniform arrivals fill more stretches of 1,024 periods than bursts do."""
    filled = {
        kind: np.count_nonzero(stream(np.random.default_rng(2)).reshape(-1, 1024).sum(axis=1))
        for kind, stream in sparse.streams(2**20, 400).items()
    }

    assert filled["bursts"] <= 40 < 200 < filled["uniform"]


@pytest.mark.parametrize("horizon", [2**6, 2**10, 2**20])
def test_the_lower_bound_is_that_of_the_packing(horizon: int) -> None:
    """Bursts of this size would be found with probabilities that add up to more than one; longer ones not."""
    k = round(2 * packing.least_error(horizon))

    assert packing.SURE * (1 + horizon // k * exp(-k)) > 1
    assert packing.SURE * (1 + horizon // (k + 1) * exp(-k - 1)) <= 1


def test_the_lower_bound_grows_with_the_logarithm() -> None:
    """From 2^10 to 2^40 periods, by about half a natural logarithm of the factor, and with 1/epsilon."""
    bounds = [packing.least_error(2**bits) for bits in (10, 20)]

    assert bounds[1] - bounds[0] == pytest.approx(np.log(2**10) / 2, abs=1)
    assert packing.least_error(2**10, epsilon=0.5) >= 1.5 * bounds[0]


def test_an_accurate_run_finds_the_burst() -> None:
    """Without noise every phase is found, and nothing where nothing is."""
    make = partial(Counter, epsilon=1, horizon=50, noise=ZeroNoise())
    runs = [make().update_many(packing.burst(50, 5, phase)) for phase in range(10)]

    assert [packing.found(outputs, 5) for outputs in runs] == list(range(10))
    assert packing.found(make().update_many(packing.burst(50, 5, 50)), 5) is None


def test_a_run_finds_one_phase_at_most() -> None:
    """The first at whose end the output is large enough, whatever comes later."""
    assert packing.found(np.array([0.0, 3, 0, 9, 9, 9]), 2) == 0
    assert packing.found(np.array([0.0, 0, 9, 0, 9, 9]), 2) == 2


def test_the_baseline_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, the binary mechanism in plain Python is a sum."""
    monkeypatch.setattr("benchmarks.speed.counters.laplace", lambda scale: 0.0)

    assert [binary([1, 0, 2, 1, 1][:n], 4) for n in range(1, 6)] == [1, 1, 3, 4, 5]


def test_skipping_takes_few_draws() -> None:
    """2^40 periods need no more than fifty draws, and a meter sees every one of them."""
    meter = Meter(SYSTEM.session())
    counter = Counter(epsilon=1, horizon=2**40, noise=meter)

    counter.advance(2**40 - 1)

    assert 0 < meter.draws <= 50
    assert meter.numbers >= 16 * meter.draws / 2


def test_a_quick_run_has_no_verdict() -> None:
    """Short streams prove nothing."""
    assert [Effort(quick=quick).verdict(0.1, 0.5) for quick in (True, False)] == [None, True]
    assert Effort().verdict(0.6, 0.5) is False
    assert Effort().verdict(0.6, None) is None


@pytest.mark.parametrize("kind", [Counter, TreeCounter])
def test_no_counter_is_below_the_packing_bound(kind: Callable[..., Any]) -> None:
    """Theorem 12.6, run: on fixed noise, the error that two thirds of runs keep within is above the bound.

    And a burst as long as twice the bound is not found as often as a counter below the bound would find it.
    """
    horizon, noise = 2**8, tape_noise(EndlessTape(12))
    make: Callable[[], Any] = partial(kind, epsilon=1, horizon=horizon, noise=noise)
    bound = packing.least_error(horizon)
    k = round(2 * bound)
    found = [packing.found(make().update_many(packing.burst(horizon, k, 3)), k) == 3 for _ in range(40)]

    assert bound >= 2
    assert packing.largest_error(make, horizon, trials=40) > bound
    assert sum(found) < packing.SURE * 40
