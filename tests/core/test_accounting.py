"""Rates of many mechanisms: what the theorems allow, recomputed by a second library, and what is true."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from typing import Any

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita import concentrated
from partita.errors import InvalidParameter
from partita.guarantee import (
    advanced_rate,
    best_composition,
    best_rate,
    composed_epsilon,
    measurement_rate,
    pure_rate,
    selection_rate,
    zcdp_budget,
    zcdp_rate,
)

STEP = Fraction(1, 2**31)
EPSILONS = st.fractions(Fraction(1, 1000), 20, max_denominator=10**6)
DELTAS = st.integers(1, 40).map(lambda zeros: Fraction(1, 10**zeros)) | st.fractions(
    Fraction(1, 100), Fraction(99, 100), max_denominator=10**4
)
COUNTS = st.integers(1, 10**9)


@contextmanager
def _precise() -> Iterator[None]:
    before, flint.ctx.prec = flint.ctx.prec, 400
    try:
        yield
    finally:
        flint.ctx.prec = before


def _real(x: Fraction | int) -> Any:
    return flint.arb(flint.fmpq(Fraction(x).numerator, Fraction(x).denominator))


def _zcdp(rate: Fraction, delta: Fraction, weight: Fraction | int) -> Any:
    rho = _real(weight * rate**2 / 2)
    return rho + 2 * (rho * -_real(delta).log()).sqrt()


def _advanced(rate: Fraction, delta: Fraction, k: int) -> Any:
    return _real(rate) * ((-2 * k * _real(delta).log()).sqrt() + k * _real(rate).expm1())


Theorem = tuple[Callable[..., Fraction], Callable[..., Any]]


@pytest.mark.parametrize(
    "theorem", [(zcdp_rate, _zcdp), (advanced_rate, _advanced)], ids=["zCDP", "advanced"]
)
@given(epsilon=EPSILONS, delta=DELTAS, k=COUNTS)
def test_rates_are_the_largest_that_the_theorem_allows(
    theorem: Theorem, epsilon: Fraction, delta: Fraction, k: int
) -> None:
    """At 400 bits, the rate stays within epsilon and the next number of 32 bits does not."""
    rate_of, together = theorem
    with _precise():
        rate = rate_of(epsilon, delta, k)

        assert together(rate, delta, k) <= _real(epsilon)
        assert together(rate * (1 + STEP), delta, k) > _real(epsilon)


@settings(max_examples=30)
@given(epsilon=EPSILONS, delta=DELTAS, k=COUNTS, more=st.integers(1, 5))
def test_rates_are_monotone(epsilon: Fraction, delta: Fraction, k: int, more: int) -> None:
    """More epsilon or delta never lowers a rate; more mechanisms or selections never raise it."""
    for rate in (zcdp_rate, advanced_rate, best_rate):
        here = rate(epsilon, delta, k)

        assert rate(epsilon * more, delta, k) >= here
        assert rate(epsilon, delta / more, k) <= here
        assert rate(epsilon, delta, k + more) <= here
    assert zcdp_rate(epsilon, delta, k, selections=more) <= zcdp_rate(epsilon, delta, k)


@settings(max_examples=50)
@given(epsilon=EPSILONS, delta=DELTAS, k=COUNTS)
def test_the_best_rate_is_the_best(epsilon: Fraction, delta: Fraction, k: int) -> None:
    """It is the largest of the three, so never below epsilon / k, and zCDP never falls behind the book."""
    three = (pure_rate(epsilon, k), zcdp_rate(epsilon, delta, k), advanced_rate(epsilon, delta, k))

    assert best_rate(epsilon, delta, k) == max(three)
    assert three[1] >= three[2]


@given(
    epsilon=st.fractions(Fraction(1, 100), 1), delta=DELTAS.filter(lambda d: d <= Fraction(1, 10)), k=COUNTS
)
def test_advanced_composition_is_no_worse_than_the_corollary(
    epsilon: Fraction, delta: Fraction, k: int
) -> None:
    """For epsilon up to 1 it allows the epsilon / sqrt(8 k ln 1/delta) of Algorithm 18."""
    with _precise():
        corollary = _real(epsilon) / (-8 * k * _real(delta).log()).sqrt()

        assert corollary <= _real(advanced_rate(epsilon, delta, k) * (1 + STEP))


def _excess(losses: Iterator[tuple[Any, Any]], epsilon: Fraction) -> Any:
    """The smallest delta of a law of losses: the sum of p (1 - e^(epsilon - loss)) where that is positive."""
    total = flint.arb(0)
    for probability, loss in losses:
        if loss > _real(epsilon):
            total += probability * -(_real(epsilon) - loss).expm1()
    return total


def _binomial(k: int, p: Any, high: Any, low: Any) -> Iterator[tuple[Any, Any]]:
    """The law of k losses, each `high` with probability p, else `low`."""
    for i in range(k + 1):
        yield math.comb(k, i) * p**i * (1 - p) ** (k - i), i * high + (k - i) * low


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"), [("1", "1e-3", 50), ("0.5", "1e-6", 300), ("3", "0.1", 9)]
)
@pytest.mark.parametrize("rate_of", [zcdp_rate, advanced_rate, best_rate])
def test_randomized_response_composes_within_delta(
    rate_of: Callable[..., Fraction], epsilon: str, delta: str, k: int
) -> None:
    """k randomized responses, the worst of all pure mechanisms, keep (epsilon, delta) by their exact law."""
    with _precise():
        rate = _real(rate_of(epsilon, delta, k))
        law = _binomial(k, rate.exp() / (1 + rate.exp()), rate, -rate)

        assert _excess(law, Fraction(epsilon)) <= _real(Fraction(delta))


@pytest.mark.parametrize("twelfths", range(1, 12))
def test_selections_compose_within_delta(twelfths: int) -> None:
    """k choices of two outcomes whose losses differ by the rate, as those of selections do, keep delta."""
    epsilon, delta, k = Fraction(1), Fraction(1, 1000), 200
    with _precise():
        rate = _real(selection_rate(zcdp_budget(epsilon, delta), k))
        high = rate * twelfths / 12
        p = -(rate - high).expm1() / -rate.expm1()

        assert _excess(_binomial(k, p, high, high - rate), epsilon) <= _real(delta)


def test_a_doubled_rate_breaks_delta() -> None:
    """The exact law of randomized response tells twice the rate from the right one: the oracle has teeth."""
    with _precise():
        rate = 2 * _real(zcdp_rate(1, "1e-3", 50))
        law = _binomial(50, rate.exp() / (1 + rate.exp()), rate, -rate)

        assert _excess(law, Fraction(1)) > _real(Fraction(1, 1000))


@given(rho=st.fractions(Fraction(1, 10**9), 100), k=COUNTS)
def test_parts_of_a_budget_are_measured_and_selected(rho: Fraction, k: int) -> None:
    """k rate^2 / 2 for measurements and k rate^2 / 8 for selections stay within rho, barely."""
    for rate, share in ((measurement_rate(rho, k), 2), (selection_rate(rho, k), 8)):
        assert k * rate**2 / share <= rho < k * (rate * (1 + STEP)) ** 2 / share


@given(epsilon=EPSILONS, delta=DELTAS, k=COUNTS, selections=st.integers(0, 1000))
def test_a_split_budget_is_within_the_whole(
    epsilon: Fraction, delta: Fraction, k: int, selections: int
) -> None:
    """Measurements and selections at one rate spend no more than the budget of (epsilon, delta)."""
    rate = zcdp_rate(epsilon, delta, k, selections=selections)

    assert k * rate**2 / 2 + selections * rate**2 / 8 <= zcdp_budget(epsilon, delta) * (1 + STEP)


@given(epsilon=EPSILONS, delta=DELTAS | st.just(Fraction(0)), k=COUNTS)
def test_what_rates_cost_is_what_they_were_made_from(epsilon: Fraction, delta: Fraction, k: int) -> None:
    """The epsilon of the best rate is the one that was asked for, rounding apart, and never more."""
    cost = composed_epsilon(best_rate(epsilon, delta, k), delta, k)

    assert epsilon * (1 - 2 * STEP) <= cost <= epsilon


@settings(max_examples=40)
@given(epsilon=EPSILONS, delta=DELTAS, k=st.integers(1, 50), selections=st.integers(0, 10**6))
def test_the_theorem_that_is_named_allows_mechanisms_and_selections(
    epsilon: Fraction, delta: Fraction, k: int, selections: int
) -> None:
    """At 400 bits, all mechanisms and all selections at the best rate are within epsilon by that theorem."""
    rule, rate = astuple(best_composition(epsilon, delta, k, selections=selections))
    with _precise():
        if rule == "pure":
            assert (k + selections) * rate <= epsilon
        elif rule == "zCDP":
            assert _zcdp(rate, delta, k + Fraction(selections, 4)) <= _real(epsilon)
        else:
            assert _advanced(rate, delta, k + selections) <= _real(epsilon)


@pytest.mark.parametrize("selections", [10, 1000, 10**6])
def test_many_selections_lower_the_best_rate(selections: int) -> None:
    """One mechanism with many selections has no more than as many selections alone."""
    rate = best_rate(1, "1e-6", 1, selections=selections)

    assert rate <= selection_rate(zcdp_budget(1, "1e-6"), selections)
    assert rate < best_rate(1, "1e-6", 1, selections=selections // 5)


@settings(max_examples=50)
@given(rate=st.fractions(Fraction(1, 10**6), Fraction(1, 4)), delta=DELTAS, exponent=st.integers(0, 60))
def test_a_cost_is_never_rounded_down(rate: Fraction, delta: Fraction, exponent: int) -> None:
    """At 400 bits, what mechanisms cost is at most what is charged, and nearly all of it."""
    k = 10**exponent
    cost = composed_epsilon(rate, delta, k)
    with _precise():
        exact = _zcdp(rate, delta, k)

        assert cost == k * rate or exact <= _real(cost)
        assert cost <= k * rate
        assert _real(cost) <= exact * (1 + _real(Fraction(1, 10**45))) + _real(Fraction(1, 2**120))


@given(delta=DELTAS)
def test_the_logarithm_of_delta_is_rounded_up(delta: Fraction) -> None:
    """At 400 bits, ln(1/delta) is below the number that rates are computed with, by less than 1e-45 of it."""
    with _precise():
        exact = -_real(delta).log()

        assert exact < _real(concentrated.log_of_inverse(delta)) < exact * (1 + _real(Fraction(1, 10**45)))


@given(x=st.fractions(1, 10**30), side=st.sampled_from([ROUND_FLOOR, ROUND_CEILING]))
def test_logarithms_are_rounded_to_the_side_that_is_named(x: Fraction, side: str) -> None:
    """At 400 bits, a logarithm that is rounded down is not above the exact one, one rounded up not below."""
    with _precise():
        exact, rounded = _real(x).log(), _real(concentrated._log(x, side))

        assert x == 1 or (rounded < exact if side == ROUND_FLOOR else rounded > exact)


def test_each_logarithm_is_rounded_to_the_side_of_privacy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only ln(1/delta), which costs, is rounded up; what a rate is compared with is rounded down."""
    asked: list[tuple[Fraction, str]] = []
    right = concentrated._log

    def watched(x: Fraction, side: str) -> Fraction:
        asked.append((x, side))
        return right(x, side)

    monkeypatch.setattr(concentrated, "_log", watched)

    advanced_rate(1, "1e-6", 30)

    assert {side for x, side in asked if x == 10**6} == {ROUND_CEILING}
    assert {side for x, side in asked if x != 10**6} == {ROUND_FLOOR}


@given(x=st.fractions(0, 10**30) | st.integers(0, 10**9).map(lambda root: Fraction(root**2)))
def test_roots_are_rounded_up(x: Fraction) -> None:
    """The square of a root is above the number, and that of the next smaller one of 128 bits is not."""
    root = concentrated.root_above(x)

    assert root**2 > x >= (root - Fraction(1, 2**128)) ** 2


def test_few_losses_count_as_few_mechanisms() -> None:
    """Where a unit takes part in 3 of 1000 mechanisms at most, the rates are those of three."""
    few = best_composition(1, "1e-6", 1000, losses=3)

    assert few == best_composition(1, "1e-6", 3)
    assert few.rule == "pure"
    assert best_composition(1, "1e-6", 1000).rule == "zCDP"


def test_pure_composition_is_exact_and_needs_no_delta() -> None:
    """With delta = 0 the rate is epsilon / k, selections counted, as a fraction and not a float."""
    assert best_rate("0.1", 0, 7) == Fraction(1, 70)
    assert best_rate("0.1", 0, 4, selections=3) == Fraction(1, 70)


@pytest.mark.parametrize(
    ("parameter", "call"),
    [
        ("epsilon", lambda: zcdp_rate(0, "1e-6", 3)),
        ("delta", lambda: zcdp_rate(1, 0, 3)),
        ("delta", lambda: advanced_rate(1, 1, 3)),
        ("delta", lambda: best_rate(1, 2, 3)),
        ("delta", lambda: zcdp_budget(1, "-0.1")),
        ("k", lambda: pure_rate(1, 0)),
        ("k", lambda: advanced_rate(1, "1e-6", 2.5)),  # type: ignore[arg-type]
        ("selections", lambda: zcdp_rate(1, "1e-6", 3, selections=-1)),
    ],
)
def test_bad_parameters_are_named(parameter: str, call: Callable[[], object]) -> None:
    """What is no epsilon, delta or count is refused by name."""
    with pytest.raises(InvalidParameter) as error:
        call()

    assert error.value.parameter == parameter


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"), [("1e300", "0.999999999999", 1), ("1e-300", "1e-300", 10**300)]
)
def test_extreme_parameters_have_rates(epsilon: str, delta: str, k: int) -> None:
    """Rates are found quickly and are positive far from where anybody should be."""
    assert zcdp_rate(epsilon, delta, k) > 0
    assert pure_rate(epsilon, k) <= best_rate(epsilon, delta, k)
