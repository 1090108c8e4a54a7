"""Estimates are right on average, exactly; and their bounds hold."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita import Answer
from partita.errors import InvalidParameter
from partita.pan import registers as registers_module
from partita.pan.bits import Density, Distinct
from partita.pan.registers import RampRegisters, Registers, difference_set, make_law
from partita.pan.sketch import shard_of, whole
from partita.testing import EndlessTape, RationalNoise, ZeroNoise, law, tape_noise


class FairOutputs(RationalNoise):
    """Branches for the state, and outputs without noise, whose mean is zero anyway."""

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return np.asarray(x).copy() if np.ndim(x) else int(x)


def _mean(make: Any, stream: Iterable[tuple[int, int]], name: str) -> float:
    """The exact mean of a release over all states."""

    def run(noise: Any) -> float:
        sketch = make(noise)
        for user, by in stream:
            sketch.update_many([user], **({} if by == 1 else {"by": by}))
        value: float = sketch.release(name).value
        return value

    found: dict[Any, Fraction] = dict(law(run, FairOutputs(Fraction(1, 2))))
    return float(sum(Fraction(value) * mass for value, mass in found.items()))


@pytest.mark.parametrize("variant", ["default", "book"])
def test_a_density_is_right_on_average(variant: str) -> None:
    """Two of three users came, one of them twice."""

    def make(noise: Any) -> Density:
        return Density(universe=3, epsilon=1, variant=variant, output_share="0.1", noise=noise)  # type: ignore[arg-type]

    assert _mean(make, [(0, 1), (2, 1), (0, 1)], "density") == pytest.approx(2 / 3, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("density", 0.5),
        ("exactly-0", 0.5),
        ("exactly-1", 0),
        ("exactly-2", 0.5),
        ("mean-1", 0.5),
        ("mean-2", 1.0),
        ("heavy-1", 0.5),
        ("heavy-2", 0.5),
    ],
)
def test_registers_are_right_on_average(name: str, truth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two users one came three times, and was taken back once."""
    monkeypatch.setattr(registers_module, "best_law", lambda e, least: make_law(difference_set(2, 2), e))

    def make(noise: Any) -> Registers:
        return Registers(universe=2, epsilon=1, most=2, output_share="0.1", noise=noise)

    assert _mean(make, [(1, 3), (1, -1)], name) == pytest.approx(truth, abs=1e-12)


def test_net_numbers_may_be_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `lowest` below zero: one user stands at -1, the other one at 0."""
    monkeypatch.setattr(registers_module, "best_law", lambda e, least: make_law(difference_set(2, 2), e))

    def make(noise: Any) -> Registers:
        return Registers(universe=2, epsilon=1, most=1, lowest=-1, output_share="0.1", noise=noise)

    means = {name: _mean(make, [(1, -1)], name) for name in ("density", "exactly-0", "mean-1", "heavy-1")}
    assert means == pytest.approx({"density": 0.5, "exactly-0": 0.5, "mean-1": -0.5, "heavy-1": 0}, abs=1e-12)


@pytest.mark.parametrize(
    ("times", "name", "truth"),
    [
        (2, "mean-2", 2),
        (1, "mean-2", 1),
        (3, "heavy-2", 1),
        (1, "heavy-2", 0),
        (1, "exactly-1", 1),
        (2, "exactly-1", 0),
        (0, "exactly-0", 1),
        (1, "density", 1),
    ],
)
def test_ramp_registers_are_right_on_average(times: int, name: str, truth: float) -> None:
    """One user, who came that often."""

    def make(noise: Any) -> RampRegisters:
        return RampRegisters(universe=1, epsilon=1, tops=[1, 2], output_share="0.1", noise=noise)

    assert _mean(make, [(0, 1)] * times, name) == pytest.approx(truth, abs=1e-12)


def test_ramp_registers_say_what_they_can_tell() -> None:
    """Tops that are missing make an error, and the names that are listed make none."""
    sketch = RampRegisters(universe=9, epsilon=1, tops=[4, 3], releases=9, noise=ZeroNoise())

    assert sketch.names == ("mean-3", "mean-4", "heavy-4")
    for name in sketch.names:
        sketch.release(name)
    for name in ("density", "exactly-3", "heavy-3", "mean-5"):
        with pytest.raises(InvalidParameter, match="name must be one of mean-3"):
            sketch.release(name)


@pytest.mark.parametrize(
    "name", ["", "exactly", "exactly--1", "mean-0", "heavy-0", "mean-21", "median-3", 3, None]
)
def test_names_that_mean_nothing_are_refused(name: Any) -> None:
    """And nothing is spent."""
    sketch = Registers(universe=9, epsilon=1, most=20, noise=ZeroNoise())

    with pytest.raises(InvalidParameter) as error:
        sketch.release(name)
    assert error.value.parameter == "name"
    assert sketch.releases_left == 1


def test_errors_are_those_of_the_formulas() -> None:
    """10,000 users at epsilon 1: about 1 / (2 sqrt(10,000) sinh(1/2)), and a little more for the output."""
    sketch = Density(universe=10_000, epsilon=1, noise=ZeroNoise())

    assert sketch.expected_error() == pytest.approx(1 / (200 * np.sinh(0.5)), rel=0.15)
    assert (
        sketch.release("density").error
        == Density(universe=10_000, epsilon=1, noise=ZeroNoise()).expected_error()
    )


def test_more_releases_and_more_epochs_cost_accuracy() -> None:
    """The prediction grows with both."""
    plans = [(1, 1), (2, 1), (20, 1), (1, 21)]
    errors = [
        Density(
            universe=1000, epsilon=1, releases=releases, epochs=epochs, noise=ZeroNoise()
        ).expected_error()
        for releases, epochs in plans
    ]

    assert errors == sorted(errors)


def test_bounds_hold_and_contain_the_interval() -> None:
    """On fixed tapes: the truth lies within the guaranteed bounds, which stay within what is possible."""
    for seed in range(4):
        sketch = Registers(universe=400, epsilon=2, most=6, releases=3, noise=tape_noise(EndlessTape(seed)))
        sketch.update_many(range(100))
        for name, truth in (("density", 0.25), ("mean-3", 0.25), ("heavy-2", 0.0)):
            answer = sketch.release(name)
            low, high = answer.worst(0.01)
            assert low <= truth <= high
            assert 0 <= low <= high <= max(answer.value, 3.0 if name == "mean-3" else 1.0)


@pytest.mark.parametrize("number", [0, 2000, 9000])
def test_distinct_finds_the_number(number: int) -> None:
    """On a fixed tape: within four standard errors of the truth, and within the guaranteed bounds."""
    sketch = Distinct(epsilon=2, buckets=256, most=10**5, noise=tape_noise(EndlessTape(number)))
    sketch.update_many(range(number))
    sketch.update_many(range(number // 4))

    answer = sketch.release("distinct")

    assert abs(answer.value - number) <= 4 * answer.error
    low, high = answer.worst(0.01)
    assert low <= number <= high


def test_levels_get_their_share_of_ids() -> None:
    """Half in the first level, a quarter in the second, and so on; the last one has what is left."""
    sketch = Distinct(epsilon=1, buckets=64, most=64 * 8, noise=ZeroNoise())
    levels = np.bincount(sketch._find(range(40_000)) // 64, minlength=sketch.levels) / 40_000

    assert sketch.levels == 5
    assert levels.tolist() == pytest.approx([1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16], abs=0.01)


def test_shards_make_a_whole() -> None:
    """Users are divided by their ids, the same way each time; the mean is weighted by their numbers."""
    shards = [shard_of(number, 3) for number in range(300)]
    assert shards == [shard_of(number, 3) for number in range(300)]
    assert shard_of(2.5, 3) == 0

    parts = [Answer(0.5, lambda: 0.03, lambda _: (0.4, 0.6)), Answer(0.2, lambda: 0.04, lambda _: (0.1, 0.3))]
    both = whole(parts, [300, 100])

    assert both.value == pytest.approx(0.425)
    assert both.error == pytest.approx(np.hypot(0.75 * 0.03, 0.25 * 0.04))
    assert both.worst() == pytest.approx((0.325, 0.525))
    with pytest.raises(InvalidParameter, match="sizes"):
        whole(parts, [300])


@pytest.mark.parametrize("name", ["density", "exactly-7", "mean-90", "heavy-90"])
def test_weights_are_sums_over_translates_of_the_set(name: str) -> None:
    """Added up one by one: a register counts as often as it lies in the set moved by each number."""
    sketch = Registers(universe=4, epsilon=1, most=90, lowest=-9, noise=ZeroNoise())
    statistic = sketch._statistic(name)
    member, period = sketch._law.set.member, sketch._law.set.period
    parts = sketch._parts(statistic)[1]

    expected = sum(factor * np.roll(member, number % period).astype(int) for number, factor in parts.items())

    assert sketch._weights(statistic).tolist() == expected.tolist()  # type: ignore[union-attr]
