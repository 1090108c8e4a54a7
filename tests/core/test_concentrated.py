"""rho-zCDP: what it is in (epsilon, delta), and what discrete Laplace noise and selections cost."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from partita import Guarantee, concentrated
from partita.concentrated import (
    epsilon_of_rho,
    pure_within,
    rho_of_laplace,
    rho_of_pure,
    rho_of_selection,
    rho_within,
)
from partita.errors import IncompatibleGuarantees, InvalidParameter, PrivacyWarning
from partita.guarantee import short, zcdp_budget

RHOS = st.fractions(min_value=Fraction(1, 10**6), max_value=10, max_denominator=10**6)
DELTAS = st.integers(1, 30).map(lambda power: Fraction(1, 10**power))
EPSILONS = st.fractions(min_value=Fraction(1, 1000), max_value=8, max_denominator=1000)
ORDERS = [1 + Fraction(k**3, 1000) for k in (1, 2, 3, 5, 8, 12, 17, 25, 40, 100)]


def _real(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


_OVER = np.exp(np.arange(-10, 24, 0.002))  # alpha - 1, on a grid


def _least_delta(rho: Fraction, epsilon: Fraction) -> float:
    """The least delta of Proposition 12 of [CKS20], over a fine grid of orders."""
    order = 1 + _OVER
    exponent = _OVER * (order * float(rho) - float(epsilon)) - order * np.log1p(1 / _OVER) - np.log(_OVER)
    return float(np.exp(exponent.min()))


@given(rho=RHOS, delta=DELTAS)
def test_the_epsilon_of_rho_holds_and_is_never_above_the_plain_one(rho: Fraction, delta: Fraction) -> None:
    """Some order proves (epsilon, delta), and epsilon is at most rho + 2 sqrt(rho ln 1/delta), rounded up."""
    epsilon = epsilon_of_rho(rho, delta)

    plain = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / delta))
    assert _least_delta(rho, epsilon) <= float(delta) * (1 + 1e-3)
    assert epsilon <= plain * (1 + 1e-8)
    assert epsilon >= Fraction(1, 2**33)


@given(rho=RHOS, delta=DELTAS)
def test_a_hundredth_less_epsilon_is_proved_by_no_order(rho: Fraction, delta: Fraction) -> None:
    """The order that the search finds is about the best one."""
    epsilon = epsilon_of_rho(rho, delta)

    assert epsilon <= 2 * Fraction(1, 2**32) or _least_delta(rho, epsilon * Fraction(99, 100)) > float(delta)


@given(epsilon=EPSILONS, delta=DELTAS)
def test_rho_within_is_the_inverse(epsilon: Fraction, delta: Fraction) -> None:
    """What rho_within allows costs epsilon at most, to its last digit, and BS16 never allows more."""
    rho = rho_within(epsilon, delta)

    assert zcdp_budget(epsilon, delta) <= rho
    assert epsilon_of_rho(rho, delta) <= epsilon * (1 + Fraction(1, 10**8))
    assert epsilon_of_rho(rho * Fraction(1001, 1000), delta) > epsilon or rho > 13


@pytest.mark.parametrize("rho", ["1e-300", "1e-30", "1e9", Fraction(10) ** 400])
@pytest.mark.parametrize("delta", ["1e-1", "1e-300", "0.999999"])
def test_extreme_amounts_have_an_epsilon(rho: Any, delta: str) -> None:
    """Where floats find no order, the plain conversion stands."""
    assert epsilon_of_rho(rho, delta) > 0


@pytest.mark.parametrize("guess", [1e-9, 0.5, 7.0, 1e6])
def test_any_order_is_valid(guess: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad guess of the order costs accuracy, and never truth."""
    monkeypatch.setattr(concentrated, "_best_order", lambda cost: 1 + Fraction(guess))

    epsilon, rho = epsilon_of_rho("1/2", "1e-6"), rho_within(1, "1e-6")

    assert _least_delta(Fraction(1, 2), epsilon) <= 1e-6
    assert _least_delta(rho, Fraction(1)) <= 1e-6


# --- discrete Laplace noise -------------------------------------------------------------------------


def _divergence(epsilon: Fraction, distance: int, order: Fraction) -> arb:
    """The Renyi divergence of discrete Laplace noise of scale distance / epsilon, in closed form.

    The outcomes up to 0 and from the distance on have a constant loss; those between have one term each.
    """
    rate, alpha = _real(epsilon / distance), _real(order)
    a = (-rate).exp()
    ends = ((alpha - 1) * rate * distance).exp() + (-alpha * rate * distance).exp()
    inner = sum(
        ((-rate * (alpha * k - (alpha - 1) * (distance - k))).exp() for k in range(1, distance)), start=arb(0)
    )
    total = (1 - a) / (1 + a) * (ends / (1 - a) + inner)
    return total.log() / (alpha - 1)


def test_the_closed_form_is_the_sum_over_outcomes() -> None:
    """The divergence of order 2, added up outcome by outcome, is the closed form."""
    a = math.exp(-1 / 3)
    law = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-300, 304)}

    total = sum(law[k] ** 2 / law[k - 3] for k in range(-200, 203))

    assert math.isclose(float(_divergence(Fraction(1), 3, Fraction(2))), math.log(total), rel_tol=1e-12)


@pytest.mark.parametrize("distance", [1, 2, 3, 7, 30])
@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(4), Fraction(20)]
)
def test_no_order_costs_more_than_the_first(epsilon: Fraction, distance: int) -> None:
    """D_alpha / alpha is below the cost at every order, and falls as alpha grows."""
    ctx.prec = 200
    costs = [_divergence(epsilon, distance, order) / _real(order) for order in ORDERS]

    rho = rho_of_laplace(epsilon, distance)

    assert all(cost < _real(rho) for cost in costs)
    assert all(later < earlier for earlier, later in pairwise(costs))
    assert rho <= epsilon**2 / 2


@pytest.mark.parametrize("distance", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(4)])
def test_the_cost_is_tight(epsilon: Fraction, distance: int) -> None:
    """As the order falls to 1, the divergence reaches the cost: nothing smaller would be true."""
    ctx.prec = 200
    near = _divergence(epsilon, distance, 1 + Fraction(1, 10**9))

    assert _real(rho_of_laplace(epsilon, distance)) < near * (1 + _real(Fraction(1, 10**7)))


def test_one_count_costs_more_than_continuous_noise() -> None:
    """At epsilon 1 a count costs tanh(1/2) = .462, and only a sensitivity of many comes near 1/e = .368."""
    assert math.isclose(rho_of_laplace(1), math.tanh(1 / 2), rel_tol=1e-9)
    assert math.isclose(rho_of_laplace(1, 10**6), math.exp(-1), rel_tol=1e-6)
    assert rho_of_laplace(1) > Fraction(46, 100) > Fraction(368, 1000)


@given(
    first=st.integers(1, 40), second=st.integers(1, 40), rate=st.sampled_from([Fraction(1, 50), Fraction(1)])
)
def test_two_counts_cost_less_than_one_that_differs_by_as_much(
    first: int, second: int, rate: Fraction
) -> None:
    """At one noise scale, changes of several counts cost at most what one change of their sum does."""
    apart = rho_of_laplace(rate * first, first) + rho_of_laplace(rate * second, second)

    assert apart <= rho_of_laplace(rate * (first + second), first + second) * (1 + Fraction(1, 2**30))


def _halve(epsilon: Fraction, distance: int) -> Fraction:
    return rho_of_laplace(epsilon, distance) / 2


def _continuous(epsilon: Fraction, distance: int) -> Fraction:
    return Fraction(float(epsilon) + math.exp(-epsilon) - 1)


def _of_one(epsilon: Fraction, distance: int) -> Fraction:
    return rho_of_laplace(epsilon, distance + 1)


@pytest.mark.parametrize("wrong", [_halve, _continuous, _of_one])
def test_a_wrong_cost_is_seen(wrong: Callable[[Fraction, int], Fraction]) -> None:
    """Half the cost, that of continuous noise, or that of a larger sensitivity is below some divergence."""
    ctx.prec = 200
    cost = _real(wrong(Fraction(1), 1))

    assert any(_divergence(Fraction(1), 1, order) / _real(order) > cost for order in ORDERS)


# --- pure mechanisms and selections -----------------------------------------------------------------


@given(rho=RHOS)
def test_a_pure_mechanism_fits_into_its_rho(rho: Fraction) -> None:
    """The epsilon of a share is the largest of 32 bits that costs no more."""
    epsilon = pure_within(rho)

    assert rho_of_pure(epsilon) <= rho < rho_of_pure(epsilon * (1 + Fraction(1, 2**30)))


def test_only_the_exponential_mechanism_costs_an_eighth() -> None:
    """Permute-and-flip is charged what every pure mechanism is."""
    assert rho_of_selection(1) == Fraction(1, 8)
    assert rho_of_selection(1, "permute-and-flip") == rho_of_pure(1) == Fraction(1, 2)
    with pytest.raises(InvalidParameter, match="permute-and-flip"):
        rho_of_selection(1, "largest")  # type: ignore[arg-type]


# --- guarantees -------------------------------------------------------------------------------------


def test_rho_adds_up_and_its_point_follows() -> None:
    """Three releases of rho 1/8 are one of 3/8, at the delta of their points."""
    each = Guarantee.concentrated(rho="1/8")

    together = each + each + each

    assert together == Guarantee.concentrated(rho="3/8")
    assert together.epsilon < 3 * each.epsilon


def test_pure_guarantees_cost_half_their_square() -> None:
    """A pure guarantee joins one of rho; beside pure ones it stays pure, and states both."""
    pure = Guarantee(epsilon=1)

    assert (pure + Guarantee.concentrated(rho="1/8")).rho == Fraction(5, 8)
    assert pure.in_rho() + pure.in_rho() == Guarantee(epsilon=2, rho=1)
    assert (pure + pure).rho == 0


def test_a_smaller_rho_that_is_stated_is_what_a_pure_guarantee_costs() -> None:
    """Discrete Laplace noise states its own rho; a larger one than epsilon^2 / 2 says nothing."""
    assert Guarantee(epsilon=1, rho=rho_of_laplace(1)).cost_in_rho == rho_of_laplace(1) < Fraction(1, 2)
    assert Guarantee(epsilon=1, rho=2).cost_in_rho == Fraction(1, 2)


def test_an_approximate_guarantee_says_nothing_about_rho() -> None:
    """It has no cost in rho, and a sum with it adds epsilons and deltas."""
    approximate, exact = Guarantee(epsilon=1, delta="1e-6"), Guarantee.concentrated(rho="1/8", delta="1e-6")

    together = approximate + exact

    assert (together.rho, together.epsilon) == (Fraction(0), 1 + exact.epsilon)
    assert together.delta == Fraction(2, 10**6)
    with pytest.raises(IncompatibleGuarantees, match="says nothing about rho"):
        approximate.cost_in_rho  # noqa: B018


@given(rho=RHOS, rows=st.integers(1, 5))
def test_groups_cost_the_square(rho: Fraction, rows: int) -> None:
    """A person with k rows costs k^2, a change four times an addition."""
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        each = Guarantee.concentrated(rho=rho)

        assert each.to_unit("person", contributions=rows).rho == rows**2 * rho
        assert each.to_neighbors("change-one") == Guarantee.concentrated(rho=4 * rho, neighbors="change-one")
        assert each.beside(Guarantee.concentrated(rho=2 * rho)) == Guarantee.concentrated(rho=2 * rho)


def test_a_forgotten_square_is_seen() -> None:
    """Two rows of one person change a count by 2: its divergence exceeds twice the cost of a row."""
    ctx.prec = 200
    near = _divergence(Fraction(2, 10), 2, 1 + Fraction(1, 10**6))

    assert near > _real(2 * rho_of_laplace("1/10"))
    assert near < _real(Guarantee(epsilon="1/10", rho="1/200").to_unit("person", contributions=2).rho)


def test_epsilon_at_follows_from_rho_or_is_what_is_stated() -> None:
    """A smaller delta has a larger epsilon; without rho only the stated delta is known."""
    guarantee = Guarantee.concentrated(rho="1/8")

    assert guarantee.epsilon_at("1e-12") > guarantee.epsilon > guarantee.epsilon_at("1e-6")
    assert Guarantee(epsilon=1).epsilon_at("1e-9") == 1
    assert Guarantee(epsilon="1/100").epsilon_at(0) == Fraction(1, 100)
    with pytest.raises(InvalidParameter, match="must be at least"):
        Guarantee(epsilon=1, delta="1e-6").epsilon_at("1e-9")


@pytest.mark.parametrize("rho", [-1, "nothing", None, math.nan])
def test_bad_amounts_are_named(rho: object) -> None:
    """rho is a number that is not negative."""
    with pytest.raises(InvalidParameter) as error:
        Guarantee(epsilon=1, rho=rho)

    assert error.value.parameter == "rho"


def test_a_guarantee_says_what_it_promises() -> None:
    """rho first, then the point that follows; a pure one says both."""
    assert str(Guarantee.concentrated(rho="1/8")).startswith(
        "rho 1/8, zero-concentrated, so that epsilon is 3.05813 at delta 1e-9, for adding"
    )
    assert repr(Guarantee.concentrated(rho="1/8", delta="1e-6")).startswith("Guarantee(rho=1/8, epsilon=")
    assert str(Guarantee(epsilon=1, rho="0.4622")).startswith("epsilon 1, pure, and rho 2311/5000, zero-con")
    assert "3.05813" in Guarantee.concentrated(rho="1/8")._repr_html_()


@given(x=st.fractions(min_value=Fraction(1, 10**12), max_value=10**12))
def test_short_numbers_are_not_below_the_exact_ones(x: Fraction) -> None:
    """What is shown of a long number is rounded up by a hundred-thousandth of it at most."""
    assert x <= Fraction(short(x)) <= x * (1 + Fraction(1, 10**5))


def test_a_large_rho_warns() -> None:
    """Above 2, losses beyond 5 are no longer rare; an epsilon at a tiny delta warns nobody."""
    with pytest.warns(PrivacyWarning, match="rho 3 is above 2"):
        Guarantee.concentrated(rho=3)
    with warnings.catch_warnings(action="error"):
        Guarantee.concentrated(rho=1)
