"""The centred tree's linear map: its variance, its tails, the same law in any mixture of steps, its plans."""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.errors import InvalidParameter
from partita.public import stream_trees
from partita.public.bounds import laplace_variance, log_moments
from partita.public.stream_errors import centred_everywhere, centred_noise, centred_variances, noise_sum
from partita.public.stream_trees import SHARES, TAPERS, TreePlan
from partita.testing.laws import NumberedNoise, columns
from partita.trusted.streams.counter import BITS, CentredPath, Counter

Steps = Callable[[CentredPath], list[int]]

LARGE = 2**40
EXACT = [
    TreePlan(4, 2, 1, 1, (40, 30, 20, 10)),
    TreePlan(16, 4, 2, 500, (40, 30, 20, 10)),
    TreePlan(16, 2, 3, 300, (0, 0, 0, 0)),
    TreePlan(32, 2, 4, 200, (9, 7, 4, 1)),
    TreePlan(60, 4, 3, 300, (33, 27, 16, 3)),
]
ROUNDED = [
    TreePlan(27, 3, 3, 300, (33, 27, 16, 3)),
    TreePlan(50, 5, 2, 500, (0, 0, 0, 0)),
    stream_trees.plan(200),
]
plans = pytest.mark.parametrize("plan", EXACT, ids=str)


def _one_by_one(path: CentredPath) -> list[int]:
    return [path.step() for _ in range(path.plan.horizon)]


def _at_once(path: CentredPath) -> list[int]:
    return [int(error) for error in path.many(path.plan.horizon)]


def _outputs(plan: TreePlan, steps: Steps) -> Callable[[Any], list[Fraction]]:
    """Running sums of the errors."""

    def run(noise: Any) -> list[Fraction]:
        errors = steps(CentredPath(plan, Fraction(1), noise))
        return [Fraction(int(total), 1 << BITS) for total in np.cumsum(np.array(errors, dtype=object))]

    return run


@plans
def test_errors_are_linear_in_the_noise(plan: TreePlan) -> None:
    """With branching by a power of two and noise by large multiples of a unit, nothing is rounded."""
    run = _outputs(plan, _one_by_one)
    values = [((7 * i * i + i) % 19 - 9) * LARGE for i in range(10**4)]

    outputs = run(NumberedNoise(values.__getitem__))

    assert outputs == _combined(values, _map(plan, _one_by_one), plan)


def _map(plan: TreePlan, steps: Steps) -> list[Any]:
    return columns(_outputs(plan, steps), size=LARGE)


def _combined(values: list[int], map_: list[Any], plan: TreePlan) -> list[Fraction]:
    """The sums of noises with their effects, for each output."""
    return [
        sum((value * effect[t] for value, (_, effect) in zip(values, map_, strict=False)), Fraction(0))
        for t in range(plan.horizon)
    ]


@plans
def test_steps_one_by_one_and_at_once_have_one_law(plan: TreePlan) -> None:
    """The noises have the same scales and the same effects on all outputs; only their order differs."""
    one, other = (Tally(_used(_map(plan, steps))) for steps in (_one_by_one, _at_once))

    assert one == other


def test_blocks_with_the_noise_of_another_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise at once for blocks that do not give the same to the sum has another law."""

    def first_taper(path: CentredPath, shape: tuple[int, int]) -> Any:
        zeros = np.zeros(shape, dtype=np.int64)
        return path._noise.add(zeros, path._scale(path.plan.low, path.plan.tapers[0])).astype(object)

    plan = EXACT[3]
    right = Tally(_used(_map(plan, _at_once)))
    monkeypatch.setattr(CentredPath, "_drawn", first_taper)

    assert Tally(_used(_map(plan, _at_once))) != right


MIXTURES = [
    [("step", 1), ("many", 6), ("skip", 5), ("many", 4)],
    [("skip", 3), ("step", 1), ("skip", 4), ("step", 1), ("many", 7)],
    [("many", 2), ("skip", 8), ("skip", 1), ("step", 1), ("skip", 4)],
]


@pytest.mark.parametrize("plan", EXACT[1:4], ids=str)
@pytest.mark.parametrize("mixture", MIXTURES)
def test_any_mixture_of_steps_has_one_law(plan: TreePlan, mixture: list[tuple[str, int]]) -> None:
    """What is published has the covariance, scale by scale, of steps one by one, some of them not seen."""
    seen: list[int] = []
    end = 0
    for move, periods in mixture:
        end += periods
        seen += [end - 1] if move == "skip" else range(end - periods, end)
    part = [(scale, tuple(effect[t] for t in seen)) for scale, effect in _map(plan, _one_by_one)]

    mixed = _map(plan, lambda path: [error for move in mixture for error in _moved(path, *move)])

    assert _second_moments(mixed) == _second_moments(part)


def _moved(path: CentredPath, move: str, periods: int) -> list[int]:
    """The errors that a move adds to what is published."""
    if move == "many":
        return [int(error) for error in path.many(periods)]
    return [path.step() if move == "step" else path.skip(periods)]


def _used(map_: list[Any]) -> list[Any]:
    return [(scale, effect) for scale, effect in map_ if any(effect)]


def _second_moments(map_: list[Any]) -> dict[Fraction, Any]:
    """For each scale the exact covariance of outputs that its noises make."""
    found: dict[Fraction, Any] = {}
    for scale, effect in _used(map_):
        outer = np.multiply.outer(np.array(effect, dtype=object), np.array(effect, dtype=object))
        found[scale] = found.get(scale, 0) + outer
    return {scale: total.tolist() for scale, total in found.items()}


@plans
def test_the_variance_of_each_output_is_that_of_the_linear_map(plan: TreePlan) -> None:
    """By the noises one by one, by their groups, and by the formula."""
    map_ = _map(plan, _one_by_one)
    after = np.arange(1, plan.horizon + 1)

    expected = [
        sum(float(effect[t - 1]) ** 2 * laplace_variance(scale) for scale, effect in map_) for t in after
    ]

    assert [centred_noise(plan, Fraction(1), int(t)).variance for t in after] == pytest.approx(expected)
    assert centred_variances(plan, Fraction(1), after) == pytest.approx(expected)


@plans
def test_the_moments_of_each_output_are_those_of_the_linear_map(plan: TreePlan) -> None:
    """So tails are bounded by the law itself."""
    map_ = _used(_map(plan, _one_by_one))
    rates = np.array([float(1 / scale) for scale, _ in map_])
    for t in range(plan.horizon):
        sizes = np.array([abs(float(effect[t])) for _, effect in map_])
        x = 0.3 * float((rates[sizes > 0] / sizes[sizes > 0]).min())
        expected = float(log_moments(x * sizes, rates).sum())
        assert centred_noise(plan, Fraction(1), t + 1).log_moment(np.array([x])) == pytest.approx([expected])


@pytest.mark.parametrize("plan", [*EXACT, *ROUNDED], ids=str)
def test_rounding_moves_an_output_by_less_than_the_slack(plan: TreePlan) -> None:
    """Errors are at most a unit for each level below the sum of weighted noises."""
    values = [(7 * i * i + i) % 19 - 9 for i in range(10**4)]
    outputs = _outputs(plan, _one_by_one)(NumberedNoise(values.__getitem__))
    slack = centred_noise(plan, Fraction(1), 1).slack

    for output, linear in zip(outputs, _combined(values, _map(plan, _one_by_one), plan), strict=True):
        assert -slack <= output - linear <= slack


@pytest.mark.parametrize("plan", [*EXACT, *ROUNDED], ids=str)
def test_the_simultaneous_bound_covers_every_output(plan: TreePlan) -> None:
    """It is at least the bound of any one output for its share of the failures, and not many times that."""
    everywhere = centred_everywhere(plan, Fraction(1), noise_sum([]), 0.05)
    single = [
        centred_noise(plan, Fraction(1), t).reach(0.05 / plan.horizon) for t in range(1, plan.horizon + 1)
    ]

    assert max(single) <= everywhere <= 2 * max(single)


@given(st.integers(1, 2**62))
@settings(max_examples=25)
def test_every_plan_spends_epsilon_exactly(horizon: int) -> None:
    """The rows over a period and the tapered sum have shares that add up to one."""
    for plan in (stream_trees.plan(horizon), stream_trees.epoch_plan(horizon)):
        assert plan.blocks * plan.block >= plan.horizon == horizon
        for taper in set(plan.tapers):
            left = Fraction(TAPERS - taper, TAPERS)
            rows = sum(left * Fraction(plan.share(level), SHARES) for level in range(plan.levels))
            assert rows + Fraction(taper, TAPERS) == 1


@pytest.mark.parametrize(("horizon", "best_subtraction"), [(2**10, 170.5), (2**16, 608.0), (2**20, 1147.4)])
def test_the_mean_variance_is_far_below_the_best_published(horizon: int, best_subtraction: float) -> None:
    """At most 0.67 of the k-ary scheme with subtraction, with the best k for each horizon."""
    mean = centred_variances(stream_trees.plan(horizon), Fraction(1), np.arange(1, horizon + 1)).mean()

    assert mean <= 0.67 * best_subtraction


def test_no_horizon_costs_less_than_the_best_published_with_one() -> None:
    """Over the first 2^20 periods of trees that grow."""
    assert Counter(epsilon=1).variances(np.arange(1, 2**20 + 1)).mean() < 0.85 * 1147.4


def test_variances_go_on_from_tree_to_tree() -> None:
    """The vector of variances is what single answers say, over the end of the first trees."""
    counter = Counter(epsilon=1)
    after = [1, 200, 256, 257, 300, 4352, 4353, 5000]
    variances = counter.variances(after)

    for periods, variance in zip(after, variances, strict=True):
        counter.advance(periods - counter.periods)
        assert counter.variance() == pytest.approx(variance)
        assert counter.answer().error == pytest.approx(math.sqrt(variance))


@pytest.mark.parametrize(
    "numbers",
    [
        (0, 2, 1, 1),
        (5, 1, 1, 1),
        (5, 2, 0, 1),
        (5, 2, 3, 512),
        (5, 2, 3, 0),
        (10**6, 2, 2, 100),
        (5, 65, 1, 1),
    ],
)
def test_plans_that_are_no_trees_are_refused(numbers: tuple[int, int, int, int]) -> None:
    """Without periods, branches, levels or a share for each row, or with too many blocks."""
    with pytest.raises(InvalidParameter, match="plan"):
        TreePlan(*numbers, (0, 0, 0, 0))


@pytest.mark.parametrize("taper", [(), (0, 0, 0), (0, 0, 0, TAPERS), (-1, 0, 0, 0)])
def test_tapers_out_of_range_are_refused(taper: tuple[int, ...]) -> None:
    """A block keeps some of epsilon for itself."""
    with pytest.raises(InvalidParameter, match="plan"):
        TreePlan(4, 2, 2, 500, taper)


@pytest.mark.statistics
@pytest.mark.parametrize("horizon", [1000, None])
def test_intervals_hold_on_fresh_noise(horizon: int | None) -> None:
    """No more outputs leave their intervals than beta says; by Hoeffding with failure 1e-7."""
    runs, beta, outside, everywhere, squared = 2000, 0.1, 0, 0, 0.0
    slack = math.sqrt(math.log(1e7) / (2 * runs))
    asked = Counter(epsilon=1, horizon=horizon)
    asked.advance(700)
    _, error, low, high, far = asked.answer(beta)
    for _ in range(runs):
        outputs = Counter(epsilon=1, horizon=horizon).update_many(np.ones(700, dtype=np.int64))
        outside += bool(abs(outputs[-1] - 700) > (high - low) / 2)
        everywhere += bool(np.abs(outputs - np.arange(1, 701)).max() > far)
        squared += (outputs[-1] - 700) ** 2 / runs

    assert outside / runs <= beta + slack
    assert everywhere / runs <= beta + slack
    assert squared == pytest.approx(error**2, rel=0.25)
