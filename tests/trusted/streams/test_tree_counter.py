"""The papers' tree in use: its levels, its exact variance, sums of the fewest nodes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.public.bounds import laplace_variance
from partita.public.stream_trees import CounterTree
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


@pytest.mark.parametrize(
    ("given", "parameter"),
    [({"branching": 1}, "branching"), ({"horizon": 0}, "horizon"), ({"epsilon": "1e-25"}, "epsilon")],
)
def test_bad_parameters_are_refused_by_name(given: dict[str, Any], parameter: str) -> None:
    """Before anything is drawn."""
    with pytest.raises(InvalidParameter) as refused:
        TreeCounter(**{"epsilon": 1, "horizon": 10, **given})

    assert refused.value.parameter == parameter
