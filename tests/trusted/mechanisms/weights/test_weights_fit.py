"""The synthetic mass: what it minimises, that it is the same however sums are taken, and its error bars."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.public.queries.product import Product
from partita.public.queries.ranges import SpanOperator
from partita.public.workload.release import Change
from partita.public.workload.weights import (
    MOST_ROUNDS,
    Margin,
    Measurements,
    WeightsBudget,
    WeightsFit,
    margin_block,
    query_block,
)
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.mechanisms.weights import weigh

from .weights_tools import explicit

ROWS, COLUMNS = SpanOperator(6, [0, 2, 1], [3, 6, 4]), SpanOperator(5, [0, 1], [2, 5])
PLANE = Product((6, 5), [((0,), ROWS), ((1,), COLUMNS)])


def _data(seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    words = EndlessTape(seed).take(30)
    return (words % np.uint64(500)).astype(np.int64).reshape(6, 5)


def _weighed(**given: object) -> Measurements:
    budget = WeightsBudget(epsilon=1, **{"rounds": 5, **given})  # type: ignore[arg-type]
    session = tape_noise(EndlessTape("weights")).session()
    return weigh(_data(), operator=PLANE, unit=1, change=Change(1), budget=budget, session=session)


def test_bins_cover_every_position_once() -> None:
    """Sums of bins add up to everything, and the adjoint gives each position its bin."""
    x = _data()
    for axis, bins in ((0, 4), (1, 3), (0, 6)):
        margin = Margin((6, 5), axis, bins)
        y = np.arange(bins, dtype=np.float64)

        assert margin.sums(x).sum() == x.sum()
        assert (margin.spread(y) * x).sum() == y @ margin.sums(x)


def test_the_fit_minimises_what_it_says() -> None:
    """At the end the gradient of the dual vanishes: all numbers are what their residuals ask for."""
    operator, x = explicit([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]), np.array([5.0, 1.0, 30.0, 64.0])
    truth = operator.answers(x)
    blocks = [
        query_block(operator, [0, 2], [truth[0] + 3, truth[2] - 2], 400.0),
        margin_block(Margin((4,), 0, 2), np.array([8.0, 90.0]), 200.0),
    ]

    fit = WeightsFit((4,), 100.0, blocks).climb(1500)

    for block, dual in zip(blocks, fit._duals, strict=True):
        expected = 100.0 * block.precision * (block.values - block.sums(fit.x))
        assert dual == pytest.approx(expected, abs=1e-7)
    assert fit.x.sum() == pytest.approx(100.0)
    exponent = sum(block.spread(dual) for block, dual in zip(blocks, fit._duals, strict=True))
    assert fit.x / np.exp(exponent) == pytest.approx(np.full(4, (fit.x / np.exp(exponent))[0]))


def test_negative_weights_are_fitted() -> None:
    """Signed queries take a safe step too: residuals shrink to what noise explains."""
    operator = explicit([[1, -1, 0], [0, 1, -1]])
    block = query_block(operator, [0, 1], [40.0, -20.0], 1.0)

    fit = WeightsFit((3,), 100.0, [block]).climb(500)

    assert block.sums(fit.x) == pytest.approx([40.0, -20.0], abs=0.2)


def test_several_answers_to_one_query_count_together() -> None:
    """Their mean is taken, with one over the sum of their precisions as variance."""
    block = query_block(PLANE, [1, 1, 4], [10.0, 20.0, 7.0], 2.0)

    assert block.values.tolist() == [0, 15, 0, 0, 7, 0]
    assert block.precision.tolist() == [0, 1, 0, 0, 0.5, 0]


def test_the_order_of_sums_does_not_matter() -> None:
    """With the axes the other way round, the same measurements give the same answers to nine digits."""
    weighed = _weighed()
    turned = Product((5, 6), [((0,), COLUMNS), ((1,), ROWS)])
    queries = np.arange(6).reshape(3, 2).T.ravel()
    bins = [margin.bins for margin in weighed.margins]
    swapped = Measurements(
        operator=turned,
        unit=1,
        grain=1,
        total=weighed.total,
        margins=(Margin((5, 6), 1, bins[0]), Margin((5, 6), 0, bins[1])),
        marginals=weighed.marginals,
        indices=np.argsort(queries)[weighed.indices],
        noisy=weighed.noisy,
        scales=weighed.scales,
    )

    assert np.abs(swapped.x.T / weighed.x - 1).max() < 1e-9
    assert swapped.answers == pytest.approx(weighed.answers[queries], rel=1e-9)


def test_replaying_is_deterministic() -> None:
    """The same measurements give exactly the same answers."""
    one, other = _weighed(), _weighed()

    assert one.answers.tolist() == other.answers.tolist()
    assert one.x.sum() == pytest.approx(one.mass)


def test_much_signal_is_learnt() -> None:
    """With little noise, all answers come near the truth, and far nearer than an even guess."""
    data = _data() * 1000
    weighed = weigh(
        data,
        operator=PLANE,
        unit=1,
        change=Change(1),
        budget=WeightsBudget(epsilon=1),
        session=tape_noise(EndlessTape("signal")).session(),
    )
    truth = PLANE.answers(data)
    even = PLANE.answers(np.full((6, 5), data.mean()))

    assert np.abs(weighed.answers - truth).max() < np.abs(even - truth).max() / 20


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold(seed: int) -> None:
    """No answer misses by more than its bound at one in a thousand."""
    weighed = weigh(
        _data(seed),
        operator=PLANE,
        unit=1,
        change=Change(1),
        budget=WeightsBudget(epsilon=1),
        session=tape_noise(EndlessTape(seed)).session(),
    )
    off = np.abs(weighed.answers - PLANE.answers(_data(seed)))

    assert (off <= weighed.bounds(0.001)).all()
    assert weighed.error(0.001) == weighed.bounds(0.001).max() > weighed.spread > 0
    assert (weighed.bounds(0.2) < weighed.bounds(0.001)).all()


def test_a_misled_bound_is_caught() -> None:
    """Had the last query been answered by another guess, the bound would say so: it follows the residual."""
    weighed = _weighed()
    noisy = weighed.noisy.copy()
    noisy[-1] += 10_000
    lied = replace(weighed, noisy=noisy)

    assert lied.error(0.05) > weighed.error(0.05) + 5_000


def test_more_rows_have_more_rounds() -> None:
    """The number of rounds grows with the rows, and with delta; it never exceeds the queries or its limit."""
    pure, approximate = WeightsBudget(epsilon=1), WeightsBudget(epsilon=1, delta="1e-6")

    rounds = [pure.rounds_for(10.0**power, 10_000, 2) for power in range(1, 9)]

    assert rounds == sorted(rounds)
    assert rounds[-1] == MOST_ROUNDS
    assert approximate.rounds_for(1e5, 10_000, 2) > pure.rounds_for(1e5, 10_000, 2)
    assert pure.rounds_for(1e8, 3, 2) == 3
    assert WeightsBudget(epsilon=1, rounds=7).rounds_for(1e8, 3, 2) == 7


@pytest.mark.parametrize("delta", [0, "1e-9"])
@pytest.mark.parametrize(("rounds", "axes"), [(1, 1), (17, 3), (200, 6), (5, 0)])
def test_shares_never_exceed_the_budget(delta: object, rounds: int, axes: int) -> None:
    """All looks together cost at most the budget: their sum, or with delta the sum of their squares."""
    budget = WeightsBudget(epsilon="3/7", delta=delta)
    rates = budget.rates(rounds, axes)
    pure = rates.total + axes * rates.marginal + rounds * (rates.selection + rates.answer)
    squares = rates.total**2 + axes * rates.marginal**2 + rounds * (rates.selection**2 / 4 + rates.answer**2)

    if rates.rule == "pure":
        assert Fraction(9, 10) * budget.epsilon < pure <= budget.epsilon
    else:
        assert Fraction(9, 10) * budget._rho < squares / 2 <= budget._rho


def test_many_units_are_counted_in_grains() -> None:
    """Weights of any size have noise that can be drawn, and answers in their own units."""
    operator = explicit([[3 * 2**60, 0], [2**60, 2**61]])
    data = np.array([700, 900], np.int64)

    weighed = weigh(
        data,
        operator=operator,
        unit=1,
        change=Change(1),
        budget=WeightsBudget(epsilon=1, rounds=2),
        session=ZeroNoise(),
    )

    assert weighed.scales.answer < 2**40
    assert weighed.answers == pytest.approx(operator.answers(data).astype(float), rel=0.2)
    assert weighed.noisy[-1] == int(operator.answers(data)[weighed.indices[-1]]) // weighed.grain


def test_wrong_changes_are_refused() -> None:
    """A change has mass, on one side or two."""
    for mass, sides in ((0, 1), (1, 3), (1, 0)):
        with pytest.raises(InvalidParameter):
            Change(mass, sides)
