"""The papers' tree in use: its levels, its exact variance, sums of the fewest nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.public.bounds import laplace_variance
from partita.public.stream_trees import CounterTree
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.testing.laws import columns, noises_of
from partita.trusted.streams.tree_counter import TreeCounter

SHAPES = [(1, 2), (2, 2), (7, 2), (16, 2), (9, 3), (20, 3), (64, 8), (5, 64)]
shapes = pytest.mark.parametrize(("horizon", "branching"), SHAPES)


def _outputs(horizon: int, branching: int, refine: bool) -> Callable[[Any], list[Fraction]]:
    def run(noise: Any) -> list[Fraction]:
        counter = TreeCounter(epsilon=1, horizon=horizon, branching=branching, refine=refine, noise=noise)
        outputs = []
        for _ in range(horizon):
            counter.update(0)
            outputs.append(counter.exact)
        return outputs

    return run


@shapes
def test_a_period_lies_in_one_node_of_each_level(horizon: int, branching: int) -> None:
    """The levels are those of Figure 12.1 without the root, whose noise would never be used."""
    counter = TreeCounter(epsilon=1, horizon=horizon, branching=branching)

    assert branching ** (counter.levels - 1) < horizon <= branching**counter.levels or horizon == 1
    assert counter.scale == counter.levels
    assert set(noises_of(_outputs(horizon, branching, refine=False))) == {counter.scale}


@pytest.mark.parametrize("horizon", [2**10, 2**16])
def test_the_mean_variance_is_that_of_the_papers(horizon: int) -> None:
    """2 levels^2 for each of levels/2 nodes; less the sixth by which integers are below the reals."""
    levels = horizon.bit_length() - 1
    counter = TreeCounter(epsilon=1, horizon=horizon)

    mean = counter.variances(np.arange(1, horizon + 1)).mean()

    nodes = levels / 2 + 2 / horizon  # the last sum has the two nodes of the highest level
    assert mean == pytest.approx(nodes * laplace_variance(Fraction(levels)))


@pytest.mark.parametrize(("horizon", "published"), [(2**10, 580), (2**16, 2254), (2**20, 4321)])
def test_the_refined_tree_is_the_published_one(horizon: int, published: float) -> None:
    """Honaker's online estimate, to the digits that were published."""
    counter = TreeCounter(epsilon=1, horizon=horizon, refine=True)

    assert counter.variances(np.arange(1, horizon + 1)).mean() == pytest.approx(published, abs=1.2)


@shapes
@pytest.mark.parametrize("refine", [False, True])
def test_the_variance_of_each_output_is_that_of_the_linear_map(
    horizon: int, branching: int, refine: bool
) -> None:
    """By the noises one by one, up to rounded weights, and by the formula."""
    map_ = columns(_outputs(horizon, branching, refine))
    counter = TreeCounter(epsilon=1, horizon=horizon, branching=branching, refine=refine)
    variances = counter.variances(np.arange(1, horizon + 1))
    for t in range(horizon):
        counter.update(0)
        expected = sum(float(effect[t]) ** 2 * laplace_variance(scale) for scale, effect in map_)
        assert variances[t] == pytest.approx(counter.variance())
        assert variances[t] == pytest.approx(expected, rel=1e-3)


@shapes
def test_plain_outputs_are_sums_of_the_fewest_nodes(horizon: int, branching: int) -> None:
    """Every output is a sum of as many single noises as its number has in its digits."""
    map_ = columns(_outputs(horizon, branching, refine=False))
    shape = CounterTree(horizon=horizon, branching=branching, refine=False)
    for t in range(horizon):
        effects = [effect[t] for _, effect in map_]
        assert set(effects) <= {0, 1}
        assert sum(effects) == sum(shape.digits(t + 1))


@shapes
@pytest.mark.parametrize("refine", [False, True])
def test_advancing_leaves_the_law_of_what_is_published(horizon: int, branching: int, refine: bool) -> None:
    """Periods that are skipped change nothing about the covariance of the outputs before and after."""
    if horizon < 5:
        return
    first, last = horizon // 3, horizon - 1

    def run(noise: Any) -> list[Fraction]:
        counter = TreeCounter(epsilon=1, horizon=horizon, branching=branching, refine=refine, noise=noise)
        outputs = []
        for periods in (first, last - first):
            counter.advance(periods)
            outputs.append(counter.exact)
        counter.update(0)
        return [*outputs, counter.exact]

    whole = columns(_outputs(horizon, branching, refine))
    seen = [(scale, [effect[t - 1] for t in (first, last, horizon)]) for scale, effect in whole]
    assert _covariance(columns(run)) == _covariance(seen)


def _covariance(map_: Any) -> list[list[Fraction]]:
    """Per unit of the one variance that all noises have."""
    effects = np.array([effect for _, effect in map_], dtype=object)
    covariance: list[list[Fraction]] = (effects.T @ effects).tolist()
    return covariance


@pytest.mark.parametrize("refine", [False, True])
def test_the_simultaneous_bound_covers_every_output(refine: bool) -> None:
    """It is at least the bound of any one output for its share of the failures."""
    counter = TreeCounter(epsilon=1, horizon=37, branching=3, refine=refine)
    everywhere = counter.answer(0.05).everywhere
    for _ in range(37):
        counter.update(0)
        answer = counter.answer(0.05 / 37)
        assert answer.high - answer.value <= everywhere


@shapes
@pytest.mark.parametrize("refine", [False, True])
def test_any_past_periods_are_counted_without_noise(horizon: int, branching: int, refine: bool) -> None:
    """All ranges of closed periods, while periods are closed one by one, at once, and skipped."""
    made: dict[str, Any] = {
        "epsilon": 1,
        "horizon": horizon,
        "branching": branching,
        "refine": refine,
        "intervals": True,
    }
    xs = [period * 7 % 5 - 1 for period in range(horizon)]
    stop = horizon // 2
    counter = TreeCounter(**made, noise=ZeroNoise())
    for x in xs[:stop]:
        counter.update(x)
    counter.update_many(xs[stop : stop + 2])
    counter.advance(horizon - counter.periods)
    truth = [*xs[: stop + 2], *[0] * horizon][:horizon]

    for first in range(1, horizon + 1, 1 + horizon // 9):
        for last in range(first, horizon + 1):
            assert counter.count(first, last).value == sum(truth[first - 1 : last])


@shapes
@pytest.mark.parametrize("refine", [False, True])
def test_an_interval_count_has_the_error_of_its_linear_map(
    horizon: int, branching: int, refine: bool
) -> None:
    """The standard error of every range is that of the noises in it, up to rounded weights."""
    ranges = [(i + 1, j + 1) for i in range(0, horizon, 1 + horizon // 9) for j in range(i, horizon, 5)]
    made: dict[str, Any] = {
        "epsilon": 1,
        "horizon": horizon,
        "branching": branching,
        "refine": refine,
        "intervals": True,
    }

    def run(noise: Any) -> list[Fraction]:
        counter = TreeCounter(**made, noise=noise)
        counter.advance(horizon)
        return [Fraction(counter.count(first, last).value) for first, last in ranges]

    map_ = columns(run)
    counter = TreeCounter(**made)
    counter.advance(horizon)
    for place, (first, last) in enumerate(ranges):
        expected = sum(float(effect[place]) ** 2 * laplace_variance(scale) for scale, effect in map_)
        answer = counter.count(first, last)
        assert answer.error**2 == pytest.approx(expected, rel=1e-3)
        assert answer.worst(0.01)[0] < answer.interval(0.9)[0] < answer.value


@shapes
def test_running_sums_with_intervals_are_those_of_the_fewest_nodes(horizon: int, branching: int) -> None:
    """An output is the count of the periods up to it, and its variance that of the counter without them."""
    counter = TreeCounter(
        epsilon=1, horizon=horizon, branching=branching, intervals=True, noise=tape_noise(EndlessTape(3))
    )
    plain = TreeCounter(epsilon=1, horizon=horizon, branching=branching)
    for period in range(1, horizon + 1):
        output = counter.update(period % 3)
        assert counter.count(1, period).value == output
        assert counter.variance() == plain.variances([period])[0]


@pytest.mark.parametrize("refine", [False, True])
def test_interval_counts_go_through_a_state(refine: bool) -> None:
    """After any number of periods, with the same answers for what is past and for what comes."""
    made: dict[str, Any] = {"epsilon": 1, "horizon": 21, "branching": 3, "refine": refine, "intervals": True}
    sizes = set()
    for stop in range(22):
        noise = tape_noise(EndlessTape(8))
        counter = TreeCounter(**made, noise=noise)
        counter.update_many(range(stop))
        state = counter.state()
        sizes.add(len(state))
        again = TreeCounter.from_state(state, noise=noise)
        again.update_many(range(stop, 21))
        whole = TreeCounter(**made, noise=tape_noise(EndlessTape(8)))
        whole.update_many(range(21))
        assert [again.count(i, 20) for i in range(1, 21)] == [whole.count(i, 20) for i in range(1, 21)]
    assert len(sizes) == 1


def test_an_odd_leaf_has_one_noise_of_its_own() -> None:
    """Figure 12.1 outputs the count of a leaf as it ends; two running sums would have ten noises in it."""
    counter = TreeCounter(epsilon=1, horizon=1024, intervals=True)
    counter.advance(512)

    assert counter.count(512, 512).error ** 2 == pytest.approx(laplace_variance(Fraction(10)))


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("horizon", [2, 4, 8, 1024])
def test_the_interval_of_a_single_noise_holds_at_its_rate(horizon: int, confidence: float) -> None:
    """By the exact law of the one noise in the count of a leaf, whose tails are heavier than normal ones."""
    counter = TreeCounter(epsilon=1, horizon=horizon, intervals=True)
    counter.update(0)
    answer = counter.count(1, 1)
    reach = math.floor(answer.interval(confidence)[1] - answer.value)
    ratio = math.exp(-1 / counter.scale)

    assert 1 - 2 * ratio ** (reach + 1) / (1 + ratio) >= confidence


@pytest.mark.parametrize(
    ("ask", "parameter"), [((0, 1), "first"), ((2, 1), "last"), ((1, 4), "last"), ((4, 4), "first")]
)
def test_periods_that_are_not_closed_are_refused_by_name(ask: tuple[int, int], parameter: str) -> None:
    """Three periods are closed; nothing was published for others."""
    counter = TreeCounter(epsilon=1, horizon=9, intervals=True)
    with pytest.raises(InvalidParameter, match="last"):
        counter.count(1, 1)
    counter.advance(3)

    with pytest.raises(InvalidParameter) as refused:
        counter.count(*ask)
    assert refused.value.parameter == parameter


def test_a_counter_of_running_sums_says_why_it_cannot_count_intervals() -> None:
    """The noise of nodes that no sum needs is never drawn."""
    with pytest.raises(InvalidParameter, match="make the counter with it") as refused:
        TreeCounter(epsilon=1, horizon=9).count(1, 1)
    assert refused.value.parameter == "intervals"


def test_intervals_over_very_many_periods_are_refused_before_any_noise() -> None:
    """A state that long could not be read again."""
    with pytest.raises(InvalidParameter) as refused:
        TreeCounter(epsilon=1, horizon=2**20 + 1, intervals=True, noise=ForbiddenNoise())
    assert refused.value.parameter == "horizon"


@pytest.mark.parametrize(
    ("given", "parameter"),
    [({"branching": 1}, "branching"), ({"horizon": 0}, "horizon"), ({"epsilon": "1e-25"}, "epsilon")],
)
def test_bad_parameters_are_refused_by_name(given: dict[str, Any], parameter: str) -> None:
    """Before anything is drawn."""
    with pytest.raises(InvalidParameter) as refused:
        TreeCounter(**{"epsilon": 1, "horizon": 10, **given})

    assert refused.value.parameter == parameter
