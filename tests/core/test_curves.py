"""Exact privacy curves against brute force: laws that are summed up value by value, by MPFR and by arb."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest
from flint import arb, ctx
from gmpy2 import mpfr, mpq

from partita.concentrated import largest, rho_within
from partita.curves import (
    deviations,
    gaussian_delta,
    gaussian_rho_within,
    gaussian_variance_within,
    laplace_delta,
    laplace_rate_within,
    normal_delta,
    single_gaussian_delta,
)
from partita.errors import InvalidParameter

Law = Mapping[int, Any]


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with gmpy2.context(gmpy2.get_context(), precision=400):
        yield


def real(x: Fraction | int) -> Any:
    return mpfr(mpq(Fraction(x).numerator, Fraction(x).denominator))


def hockey_stick(one: Law, other: Law, epsilon: Fraction) -> Any:
    """The least delta for one pair of laws: the mass of one beyond e^epsilon times the other."""
    factor = gmpy2.exp(real(epsilon))
    return sum(max(mpfr(0), p - factor * other.get(x, mpfr(0))) for x, p in one.items())


def weighed(weight: Callable[[int], Any], reach: int) -> Law:
    """A symmetric law by its weights; nothing that matters lies beyond the reach."""
    weights = {x: weight(x) for x in range(-reach, reach + 1)}
    total = sum(weights.values())
    return {x: each / total for x, each in weights.items()}


def laplace(rate: Fraction, reach: int) -> Law:
    return weighed(lambda x: gmpy2.exp(-abs(x) * real(rate)), reach)


def gaussian(variance: Fraction, reach: int) -> Law:
    return weighed(lambda x: gmpy2.exp(-real(Fraction(x * x) / (2 * variance))), reach)


def shifted(law: Law, by: int) -> Law:
    return {x + by: p for x, p in law.items()}


def losses(one: Law, other: Law) -> list[tuple[Any, Any]]:
    """The loss and the probability of every outcome that both laws have."""
    return [(gmpy2.log(p / other[x]), p) for x, p in one.items() if x in other]


@pytest.mark.parametrize(("rate", "distance"), [("1", 1), ("1/2", 1), ("1/3", 3), ("2", 2), ("1/10", 7)])
def test_one_laplace_count_has_the_delta_of_its_law(rate: str, distance: int) -> None:
    """Summed up over all outcomes, the mass beyond e^epsilon is the delta that is computed."""
    law = laplace(Fraction(rate), int(300 / Fraction(rate)))
    for epsilon in (Fraction(1, 10), Fraction(1, 2), Fraction(3, 2)):
        expected = hockey_stick(law, shifted(law, distance), epsilon)
        found = laplace_delta(rate, epsilon, distance=distance)

        assert expected <= real(found) + mpfr(2) ** -300
        assert real(found) - expected < mpfr(2) ** -170


def test_laplace_counts_compose_as_their_laws_do() -> None:
    """Three counts: the losses of every triple of outcomes, one by one."""
    rate, epsilon = Fraction(1, 2), Fraction(4, 5)
    law = laplace(rate, 40)
    each = [pair for pair in losses(law, shifted(law, 1)) if pair[1] > mpfr(2) ** -60]
    grouped: dict[int, Any] = {}
    for loss, p in each:
        step = round(float(loss / real(rate)))
        grouped[step] = grouped.get(step, mpfr(0)) + p
    expected = mpfr(0)
    for a, p in grouped.items():
        for b, q in grouped.items():
            for c, r in grouped.items():
                gain = 1 - gmpy2.exp(real(epsilon) - (a + b + c) * real(rate))
                expected += p * q * r * max(mpfr(0), gain)

    assert sorted(grouped) == [-1, 1]
    assert abs(float(expected) - float(laplace_delta(rate, epsilon, 3))) < 1e-8


def test_the_curve_of_laplace_counts_reaches_what_pure_composition_allows() -> None:
    """At k times the rate nothing is left over, and just below it something is."""
    for k in (1, 2, 7):
        assert laplace_delta("1/4", Fraction(k, 4), k) <= Fraction(1, 2**180)
        assert laplace_delta("1/4", Fraction(k, 4) - Fraction(1, 100), k) > Fraction(1, 10**6)


@pytest.mark.parametrize("rho", ["1/1000", "1/40", "1/2", "8"])
@pytest.mark.parametrize("epsilon", ["1/100", "1", "6"])
def test_the_normal_curve_is_that_of_the_error_function(rho: str, epsilon: str) -> None:
    """By arb: Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m)."""
    before, ctx.prec = ctx.prec, 600
    try:
        m = (2 * arb(Fraction(rho).numerator) / Fraction(rho).denominator).sqrt()
        e = arb(Fraction(epsilon).numerator) / Fraction(epsilon).denominator
        root = arb(2).sqrt()
        above, below = ((e / m - m / 2) / root).erfc() / 2, ((e / m + m / 2) / root).erfc() / 2
        expected = above - e.exp() * below
        found = normal_delta(rho, epsilon)
        gap = arb(found.numerator) / found.denominator - expected
    finally:
        ctx.prec = before

    assert gap >= 0
    assert gap < arb(10) ** -60


@pytest.mark.parametrize(("variance", "distance"), [("1/2", 1), ("1", 1), ("9", 2), ("35/2", 1), ("100", 5)])
def test_one_gaussian_integer_has_the_delta_of_its_law(variance: str, distance: int) -> None:
    """Summed up over all outcomes, the mass beyond e^epsilon is the delta that is computed."""
    v = Fraction(variance)
    law = gaussian(v, 40 * (int(float(v) ** 0.5) + 1))
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        expected = hockey_stick(law, shifted(law, distance), epsilon)
        found = single_gaussian_delta(v, epsilon, distance=distance)

        assert abs(real(found) - expected) < mpfr(10) ** -60
        assert real(found) > expected - mpfr(10) ** -90


def test_small_discrete_gaussians_are_less_private_than_the_normal_law() -> None:
    """At variance 1 the normal curve would be too low: what widens the noise is needed."""
    assert single_gaussian_delta(1, 1) > normal_delta("1/2", 1)
    assert gaussian_delta("1/2", 1) >= single_gaussian_delta(1, 1)


@pytest.mark.parametrize("shifts", [(1,), (3,), (1, 1), (1, 2)])
@pytest.mark.parametrize("variance", [6, 20, 60])
def test_no_draws_of_gaussian_noise_exceed_their_curve(shifts: tuple[int, ...], variance: int) -> None:
    """The mass of all outcomes beyond e^epsilon, in floats, is below the curve, by a factor of 3 at most."""
    reach = int(9 * variance**0.5)
    x = np.arange(-reach, reach + 1).astype(np.float64)
    weights = np.exp(-(x**2) / (2 * variance))
    weights /= weights.sum()
    loss, mass = np.zeros(1), np.ones(1)
    for shift in shifts:
        own = (shift**2 - 2 * shift * x) / (2 * variance)
        loss, mass = np.add.outer(loss, own).ravel(), np.multiply.outer(mass, weights).ravel()
    rho = Fraction(sum(shift**2 for shift in shifts), 2 * variance)
    for epsilon in (0.1, 0.3, 1.0):
        true = float((mass * np.maximum(0.0, -np.expm1(epsilon - loss))).sum())
        bound = float(gaussian_delta(rho, Fraction(epsilon), least_variance=variance))

        assert true <= bound + 1e-12
        assert bound < 3 * true + 1e-9 or variance < 20


def test_the_least_noise_is_that_of_the_table() -> None:
    """91 counts at epsilon 1 and delta 10^-6: 129 by pure composition, and 40 at best."""
    assert [round(error) for error in deviations(1, "1e-6", 91).values()] == [129, 72, 61, 56, 43, 40]


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("1/10", "1e-9"), ("5", "1e-12")])
def test_what_is_found_keeps_the_promise(epsilon: str, delta: str) -> None:
    """Each rate, rho and variance that is found has a delta that is at most the one that was asked for."""
    most = Fraction(delta)
    for k in (1, 5):
        assert laplace_delta(laplace_rate_within(epsilon, delta, k), epsilon, k) <= most
        variance = gaussian_variance_within(epsilon, delta, k)
        rho = Fraction(k) / (2 * variance)
        by_curve = gaussian_delta(rho, epsilon, least_variance=variance) <= most
        assert (
            by_curve or rho <= rho_within(epsilon, delta) or single_gaussian_delta(variance, epsilon) <= most
        )
    for least in (None, 10**4):
        rho = gaussian_rho_within(epsilon, delta, least_variance=least)
        assert rho >= rho_within(epsilon, delta)
        assert rho == rho_within(epsilon, delta) or gaussian_delta(rho, epsilon, least_variance=least) <= most


def test_more_is_known_of_the_noise_if_its_variance_is_large() -> None:
    """A public bound of all variances brings nearly all that separates a discrete law from the normal one."""
    free, large = (gaussian_rho_within(1, "1e-6", least_variance=least) for least in (None, 10**6))
    normal = largest(lambda rho: normal_delta(rho, 1) <= Fraction(1, 10**6))

    assert rho_within(1, "1e-6") < free < large < normal
    assert large > normal * Fraction(9999, 10_000)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: laplace_delta(0, 1), "rate"),
        (lambda: laplace_delta(1, 0), "epsilon"),
        (lambda: laplace_delta(1, 101), "epsilon"),
        (lambda: laplace_delta(1, 1, 0), "k"),
        (lambda: laplace_delta(1, 1, 2**17), "k"),
        (lambda: laplace_delta(1, 1, distance=0), "distance"),
        (lambda: normal_delta(-1, 1), "rho"),
        (lambda: gaussian_delta(1, 1, least_variance=0), "least_variance"),
        (lambda: gaussian_rho_within(1, 0), "delta"),
        (lambda: gaussian_rho_within(1, 1), "delta"),
        (lambda: gaussian_variance_within(1, "1e-6", 0), "squares"),
        (lambda: single_gaussian_delta(2**17, 1), "variance"),
    ],
)
def test_bad_parameters_are_refused(call: Callable[[], object], name: str) -> None:
    """An error of ours names the parameter."""
    with pytest.raises(InvalidParameter, match=f"^{name} "):
        call()
