"""Exact privacy curves: the delta at each epsilon of composed noise, rounded up, and the least noise.

What many theorems bound by a moment is computed here from the law of the loss itself: on a lattice for
discrete Laplace noise; by the normal law for discrete Gaussian noise, where what sets the two apart is paid
for. Everything is integers and 130 digits, rounded to the side of privacy. Proofs: docs/proofs/curves.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cache, wraps
from typing import Final, ParamSpec, TypeVar

from partita.concentrated import largest, positive, pure_within, rho_within, round_up
from partita.errors import check
from partita.guarantee import pure_rate, zcdp_budget
from partita.numbers import integer, rational

Given = ParamSpec("Given")
Result = TypeVar("Result")

_BITS: Final = 192  # of a probability: what is rounded up stays far below `LEAST_CURVE_DELTA`
_DIGITS: Final = 130
_SLACK: Final = Decimal(10) ** -110  # above every error of some thousand operations of `_DIGITS` digits
LEAST_CURVE_DELTA: Final = Fraction(1, 10**40)
LARGEST_CURVE_EPSILON: Final = 100  # e^100 times the slack is still far below `LEAST_CURVE_DELTA`
_MOST_LOSSES: Final = 2**16  # values of a loss that are held at once
_FAR: Final = 40  # the normal law has less than 10^-347 beyond so many deviations
_APART: Final = Fraction(1, 10**12)
"""How far a discrete Gaussian and a rounded normal law may be apart, for each unit of rho: against noise."""
_TWO_PI_SQUARED: Final = Fraction("19.7392088021")  # rounded down
_LARGEST_DIRECT: Final = 2**16  # the largest variance of one discrete Gaussian whose tails are summed up


def _precise(compute: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decimals in a function have `_DIGITS` digits."""

    @wraps(compute)
    def computed(*given: Given.args, **named: Given.kwargs) -> Result:
        with localcontext(Context(prec=_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)):
            return compute(*given, **named)

    return computed


# --- discrete Laplace noise -------------------------------------------------------------------------


@_precise
def laplace_delta(rate: object, epsilon: object, k: int = 1, *, distance: int = 1) -> Fraction:
    """The least delta of k counts with discrete Laplace noise of scale 1 / rate, rounded up.

    Each count differs by `distance` between neighbours. Its loss is rate (distance - 2 j) with
    j = 0, ..., distance: the losses of k counts lie on a lattice, and their law is a convolution.

    >>> float(laplace_delta(1, 1)), round(float(laplace_delta("1/10", 1, 100)), 6)
    (0.0, 0.125688)
    """
    exact, whole, count = positive(rate, "rate"), _epsilon(epsilon), integer(k, "k", low=1)
    steps = integer(distance, "distance", low=1)
    rule, fix = f"must be at most {_MOST_LOSSES} together with distance", "lower it"
    check(count * steps <= _MOST_LOSSES, "k", rule, given=k, fix=fix)
    masses = _power(_laplace_losses(exact, steps), count)
    total = sum(mass * part for mass, part in zip(masses, _beyond(exact, whole, count * steps), strict=False))
    return min(Fraction(1), Fraction(total, 1 << 2 * _BITS))


def laplace_rate_within(epsilon: object, delta: object, k: int, *, distance: int = 1) -> Fraction:
    """The largest rate at which k counts are (epsilon, delta)-DP together, by the exact law of their loss.

    >>> round(float(laplace_rate_within(1, "1e-6", 91)), 6)
    0.02519
    """
    most = _delta(delta)
    return largest(lambda rate: laplace_delta(rate, epsilon, k, distance=distance) <= most)


def _laplace_losses(rate: Fraction, steps: int) -> list[int]:
    """The probability of each loss rate (steps - 2 j), j = 0, ..., steps, in units of 2^-192, rounded up."""
    a = _exp(-rate)
    middle = (1 - a) / (1 + a)
    masses = [1 / (1 + a), *(middle * _exp(-rate * y) for y in range(1, steps))]
    masses.append(_exp(-rate * steps) / (1 + a))
    return [_units(mass) for mass in masses]


def _beyond(rate: Fraction, epsilon: Fraction, steps: int) -> list[int]:
    """1 - e^(epsilon - loss) for losses rate (steps - 2 j) above epsilon, in the same units, rounded up."""
    found = []
    for j in range(steps + 1):
        loss = rate * (steps - 2 * j)
        if loss <= epsilon:
            break
        found.append(_units(1 - _exp(epsilon - loss)))
    return found


def _power(masses: Sequence[int], k: int) -> list[int]:
    """The k-fold convolution, rounded up."""
    result: list[int] = []
    square = list(masses)
    while True:
        if k & 1:
            result = _convolve(result, square) if result else square
        k >>= 1
        if not k:
            return result
        square = _convolve(square, square)


def _convolve(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """By one product of two long integers; every coefficient is rounded up to a unit."""
    width = (2 * _BITS + 32) // 8  # sums of masses stay below 2, so coefficients below 2^(2 bits + 2)
    left, right = (
        int.from_bytes(b"".join(mass.to_bytes(width, "little") for mass in masses), "little")
        for masses in (one, other)
    )
    size = len(one) + len(other) - 1
    product = (left * right).to_bytes(width * (size + 1), "little")
    found = (int.from_bytes(product[i * width : (i + 1) * width], "little") for i in range(size))
    return [(each >> _BITS) + 1 for each in found]


# --- Gaussian noise ---------------------------------------------------------------------------------


@_precise
def normal_delta(rho: object, epsilon: object) -> Fraction:
    """The least delta of normal noise that is rho-zCDP, rounded up [BW18, Theorem 8].

    Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m) with m^2 = 2 rho. Noise of this kind composes to
    noise of this kind, whose rho is the sum.

    >>> round(float(normal_delta("1/2", 1)), 6)
    0.126937
    """
    exact, whole = positive(rho, "rho"), _epsilon(epsilon)
    m = _decimal(2 * exact).sqrt()
    far = _decimal(whole) / m
    if m / 2 - far >= _FAR:
        return Fraction(1)
    taken = max(Decimal(0), _normal_tail(far + m / 2) - 2 * _SLACK)
    found = _normal_tail(far - m / 2) + _exp(whole) * (_SLACK - taken)
    return min(Fraction(1), max(Fraction(0), Fraction(found)))


@_precise
def gaussian_delta(rho: object, epsilon: object, *, least_variance: object = None) -> Fraction:
    """A delta of discrete Gaussian noise on integers that is rho-zCDP in all, rounded up.

    It holds for any number of draws: the squares of the differences over twice the variances add up to rho at
    most. Every variance is at least `least_variance`; without it, at least 1 / (2 rho), which is always so.
    """
    exact, whole = positive(rho, "rho"), _epsilon(epsilon)
    least = (
        1 / (2 * exact)
        if least_variance is None
        else max(positive(least_variance, "least_variance"), 1 / (2 * exact))
    )
    kappa = _widening(max(least, 1 / (2 * exact)))
    if kappa is None:
        return Fraction(1)
    apart = _APART * exact
    if whole <= 2 * apart:
        return Fraction(1)
    return min(Fraction(1), normal_delta(exact * kappa, whole - 2 * apart) * (1 + 2 * apart))


def gaussian_rho_within(
    epsilon: object, delta: object, *, squares: int = 1, least_variance: object = None
) -> Fraction:
    """The largest rho such that discrete Gaussian noise that adds up to rho is (epsilon, delta)-DP.

    Every variance is at least `least_variance`, or squares / (2 rho): that is so where each draw has the
    noise for squared differences of at least `squares` and a share of rho. By the normal curve, and never
    less than follows from rho alone, `rho_within`.

    >>> float(gaussian_rho_within(1, "1e-6", least_variance=1000)) > float(rho_within(1, "1e-6"))
    True
    """
    most, each = _delta(delta), integer(squares, "squares", low=1)
    known = Fraction(0) if least_variance is None else positive(least_variance, "least_variance")

    def allowed(rho: Fraction) -> bool:
        return gaussian_delta(rho, epsilon, least_variance=max(known, each / (2 * rho))) <= most

    return max(largest(allowed), rho_within(epsilon, delta))


def follows_by_curve(
    rho: Fraction, epsilon: Fraction, delta: Fraction, least_variance: Fraction, *, single: bool = False
) -> bool:
    """Whether discrete Gaussian noise of such variances that is rho-zCDP is (epsilon, delta)-DP.

    `single` says that neighbours differ in one integer only, by one.
    """
    if epsilon > LARGEST_CURVE_EPSILON or not LEAST_CURVE_DELTA <= delta < 1:
        return False
    if gaussian_delta(rho, epsilon, least_variance=least_variance) <= delta:
        return True
    direct = single and least_variance <= _LARGEST_DIRECT
    return direct and single_gaussian_delta(least_variance, epsilon) <= delta


def gaussian_variance_within(epsilon: object, delta: object, squares: object = 1) -> Fraction:
    """The least variance that makes integers (epsilon, delta)-DP together, rounded up.

    `squares` is the sum of the squared differences: k for k counts that differ by one each.
    """
    whole, most, total = _epsilon(epsilon), _delta(delta), positive(squares, "squares")

    def allowed(rho: Fraction) -> bool:
        return gaussian_delta(rho, whole, least_variance=total / (2 * rho)) <= most

    rho = max(largest(allowed), rho_within(whole, most))
    variance = total / (2 * rho)
    if total == 1 and variance <= _LARGEST_DIRECT:
        single = largest(lambda rate: single_gaussian_delta(1 / rate, whole) <= most)
        variance = min(variance, 1 / single)
    return round_up(variance)


@_precise
def single_gaussian_delta(variance: object, epsilon: object, *, distance: int = 1) -> Fraction:
    """The least delta of one integer that differs by `distance`, with Gaussian noise [CKS20, Theorem 7].

    P[X > epsilon v / d - d/2] - e^epsilon P[X > epsilon v / d + d/2], rounded up.

    >>> round(float(single_gaussian_delta(1, 1)), 6)
    0.141351
    """
    v, whole = positive(variance, "variance"), _epsilon(epsilon)
    d = integer(distance, "distance", low=1)
    rule, fix = f"must be at most {_LARGEST_DIRECT}", "use gaussian_delta"
    check(v <= _LARGEST_DIRECT, "variance", rule, given=variance, fix=fix)
    middle = whole * v / d
    first, second = math.floor(middle - Fraction(d, 2)) + 1, math.floor(middle + Fraction(d, 2)) + 1
    reach = max(abs(first), abs(second)) + math.isqrt(math.ceil(6 * v * _DIGITS)) + 2
    weights = _gaussian_weights(v, reach)
    total = weights[0] + 2 * sum(weights[1:])

    def tail(start: int) -> Decimal:
        """The weight from `start` on; what is cut off weighs less than the slack."""
        if start >= 0:
            return sum(weights[start:], Decimal(0))
        return total - sum(weights[1 - start :], Decimal(0))

    found = (tail(first) - _exp(whole) * (tail(second) - 2 * _SLACK) + 2 * _SLACK) / total
    return min(Fraction(1), max(Fraction(0), Fraction(found)))


def _gaussian_weights(variance: Fraction, reach: int) -> list[Decimal]:
    """exp(-k^2 / (2 variance)) for k = 0, ..., reach, each from the one before."""
    step, ratio = _exp(-1 / variance), _exp(-1 / (2 * variance))
    found = [Decimal(1)]
    for _ in range(reach):
        found.append(found[-1] * ratio)
        ratio *= step
    return found


def _widening(variance: Fraction) -> Fraction | None:
    """v / (v - r^2), where a normal law is rounded with a variance r^2 that hides how; None if v is small.

    4.2 e^(-2 pi^2 r^2) <= `_APART` / (2 v), in ln for each draw: docs/proofs/curves.md.
    """
    need = Fraction(_decimal(16 * variance / _APART + 16).ln())
    rounding = need / _TWO_PI_SQUARED + Fraction(1, 10**6)
    return None if variance <= 2 * rounding else variance / (variance - rounding)


def _normal_tail(x: Decimal) -> Decimal:
    """P[Z > x] for the standard normal law, within the slack.

    1/2 - phi(x) (x + x^3/3 + x^5/15 + ...): terms of one sign, each x^2 / (2n + 1) of the one before.
    """
    if abs(x) >= _FAR:
        return Decimal(0) if x > 0 else Decimal(1)
    square, n = x * x, 0
    term = total = x
    while 2 * n < 2 * square or abs(term) > abs(total) * Decimal(10) ** -_DIGITS:
        n += 1
        term *= square / (2 * n + 1)
        total += term
    return Decimal("0.5") - (-square / 2).exp() / (2 * _pi()).sqrt() * total


@cache
def _pi() -> Decimal:
    """16 arctan(1/5) - 4 arctan(1/239) [Machin]."""
    return 16 * _arctan_of_inverse(5) - 4 * _arctan_of_inverse(239)


def _arctan_of_inverse(n: int) -> Decimal:
    power, total, k = Decimal(1) / n, Decimal(0), 0
    while power > Decimal(10) ** -(_DIGITS + 5):
        total += power / (2 * k + 1) * (-1) ** k
        power, k = power / (n * n), k + 1
    return total


# --- the least noise --------------------------------------------------------------------------------


def deviations(epsilon: object, delta: object, k: int) -> dict[str, float]:
    """The standard error of each of k counts at (epsilon, delta), by the theorem that allows it.

    Each count changes by at most one between neighbours.

    >>> [round(error) for error in deviations(1, "1e-6", 91).values()]
    [129, 72, 61, 56, 43, 40]
    """
    count = integer(k, "k", low=1)
    rates = {
        "pure": pure_rate(epsilon, count),
        "zCDP [BS16]": pure_within(zcdp_budget(epsilon, delta) / count),
        "zCDP [CKS20]": pure_within(rho_within(epsilon, delta) / count),
        "exact, Laplace": laplace_rate_within(epsilon, delta, count),
    }
    found = {name: _laplace_deviation(rate) for name, rate in rates.items()}
    found["Gaussian, zCDP"] = math.sqrt(count / (2 * rho_within(epsilon, delta)))
    found["Gaussian, exact"] = math.sqrt(gaussian_variance_within(epsilon, delta, count))
    return found


def _laplace_deviation(rate: Fraction) -> float:
    """The standard deviation of discrete Laplace noise of scale 1 / rate."""
    return 1 / (math.sqrt(2) * math.sinh(float(rate) / 2))


def _epsilon(epsilon: object) -> Fraction:
    exact = positive(epsilon, "epsilon")
    rule, fix = f"must be at most {LARGEST_CURVE_EPSILON}", "use a value such as 1"
    check(exact <= LARGEST_CURVE_EPSILON, "epsilon", rule, given=epsilon, fix=fix)
    return exact


def _delta(delta: object) -> Fraction:
    exact = rational(delta, "delta")
    inside = LEAST_CURVE_DELTA <= exact < 1
    check(inside, "delta", "must lie between 1e-40 and 1", given=delta, fix='pass for example "1e-9"')
    return exact


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _exp(x: Fraction) -> Decimal:
    return _decimal(x).exp()


def _units(probability: Decimal) -> int:
    """A probability in units of 2^-192, rounded up beyond its error."""
    return math.ceil(Fraction(probability + _SLACK) * (1 << _BITS))
