"""Zero-concentrated differential privacy: rho as (epsilon, delta), and what mechanisms cost in rho.

A mechanism is rho-zCDP [BS16] if between any two neighbours its Renyi divergence of every order alpha > 1 is
at most alpha rho. Amounts of rho add up. Everything here is exact arithmetic, rounded to the side of privacy:
floats only guess the order of a divergence, and any order is valid. Proofs: docs/proofs/concentrated.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import Final, Literal, TypeAlias

from partita.errors import check
from partita.numbers import integer, rational

DEFAULT_DELTA: Final = Fraction(1, 10**9)
"""The delta at which an amount of rho is stated as epsilon where nobody chose another."""

Selection: TypeAlias = Literal["exponential", "permute-and-flip"]

_BITS: Final = 32  # of results: precision against the length of numbers in files
_DIGITS: Final = 60  # of logarithms and exponentials: their error is far below `_SLACK`
_SHOWN_DIGITS: Final = 9  # of an epsilon that follows from rho, which people read
_ROOT_BITS: Final = 128  # of square roots, behind the point
_SLACK: Final = Fraction(1, 10**50)
_LEAST_EPSILON: Final = Fraction(1, 2**32)  # epsilon is positive, even where rho and delta would allow 0
_ORDERS: Final = (-30.0, 45.0)  # logarithms of alpha - 1 among which the best is looked for
_STEPS: Final = 90  # of that search: 0.618^90 is below the precision of floats
_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_LARGEST_RATE: Final = 1000  # above it the last digits of a divergence are not worth an exponential
_LARGEST_LOSS: Final = 10_000


def positive(value: object, name: str, *, example: str = "1") -> Fraction:
    """`value` as an exact positive number."""
    exact = rational(value, name)
    check(exact > 0, name, "must be positive", given=value, fix=f"pass for example {example}")
    return exact


# --- rho as (epsilon, delta), and back --------------------------------------------------------------


def epsilon_of_rho(rho: object, delta: object) -> Fraction:
    """An epsilon, rounded up, such that rho-zCDP is (epsilon, delta)-DP [CKS20, Proposition 12].

    About the least that follows from the divergences, never above rho + 2 sqrt(rho ln 1/delta) [BS16].

    >>> float(epsilon_of_rho("1/2", "1e-9"))
    6.47407003
    """
    exact, log = positive(rho, "rho", example='"1/2"'), log_of_inverse(delta)
    plain = exact + 2 * root_above(exact * log)
    order = _best_order(lambda over: _epsilon_at(over, float(exact), float(log)))
    if order is not None:
        best = order * exact + (log - log_below(order)) / (order - 1) - log_below(order / (order - 1))
        plain = min(plain, max(best, _LEAST_EPSILON))
    return _decimal_above(plain)


def rho_within(epsilon: object, delta: object) -> Fraction:
    """The largest rho that is (epsilon, delta)-DP by the same theorems, rounded down.

    >>> round(float(rho_within(1, "1e-9")), 6)
    0.014973
    """
    whole, log = positive(epsilon, "epsilon"), log_of_inverse(delta)
    found = _largest_of_bs16(whole, log)
    order = _best_order(lambda over: -_rho_at(over, float(whole), float(log)))
    if order is not None:
        spare = whole + log_below(order / (order - 1)) - (log - log_below(order)) / (order - 1)
        found = max(found, round_down(spare / order)) if spare > 0 else found
    return found


def _epsilon_at(over: float, rho: float, log: float) -> float:
    """The epsilon of order alpha = 1 + over, in floats."""
    alpha = 1 + over
    return alpha * rho + (log - math.log1p(over)) / over - math.log1p(1 / over)


def _rho_at(over: float, epsilon: float, log: float) -> float:
    """The rho of order alpha = 1 + over, in floats."""
    alpha = 1 + over
    return (epsilon + math.log1p(1 / over) - (log - math.log1p(over)) / over) / alpha


def _best_order(cost: Callable[[float], float]) -> Fraction | None:
    """An order alpha > 1 where the cost of alpha - 1 is about least; None where floats cannot tell."""

    def of(power: float) -> float:
        return cost(math.exp(power))

    try:
        low, high = _ORDERS
        first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        left, right = of(first), of(second)
        for _ in range(_STEPS):
            if left <= right:
                high, second, right = second, first, left
                first = high - _GOLDEN * (high - low)
                left = of(first)
            else:
                low, first, left = first, second, right
                second = low + _GOLDEN * (high - low)
                right = of(second)
        over = Fraction(math.exp((low + high) / 2)).limit_denominator(2**40)
    except (OverflowError, ValueError):
        return None
    return 1 + over if over > 0 else None


def follows(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether rho-zCDP is (epsilon, delta)-DP, as far as the two functions above tell."""
    return 0 < delta < 1 and (rho <= rho_within(epsilon, delta) or epsilon_of_rho(rho, delta) <= epsilon)


def _largest_of_bs16(epsilon: Fraction, log: Fraction) -> Fraction:
    """The largest rho with rho + 2 sqrt(rho ln 1/delta) <= epsilon."""
    return largest(lambda rho: converts(rho, epsilon, log))


def converts(rho: Fraction, epsilon: Fraction, log: Fraction) -> bool:
    """Whether rho + 2 sqrt(rho log) <= epsilon."""
    return rho <= epsilon and 4 * rho * log <= (epsilon - rho) ** 2


# --- what mechanisms cost in rho --------------------------------------------------------------------


def rho_of_pure(epsilon: object) -> Fraction:
    """epsilon^2 / 2: every epsilon-DP mechanism is that much zCDP [BS16, Proposition 1.4].

    >>> rho_of_pure(1)
    Fraction(1, 2)
    """
    return positive(epsilon, "epsilon") ** 2 / 2


def pure_within(rho: object) -> Fraction:
    """The largest epsilon of a pure mechanism that costs rho at most, rounded down.

    >>> pure_within("1/2")
    Fraction(1, 1)
    """
    exact = 2 * positive(rho, "rho", example='"1/2"')
    above, below = isqrt(exact.numerator), isqrt(exact.denominator)
    if above**2 == exact.numerator and below**2 == exact.denominator:
        return Fraction(above, below)
    return largest(lambda epsilon: epsilon**2 <= exact)


def rho_of_laplace(epsilon: object, sensitivity: object = 1) -> Fraction:
    """What discrete Laplace noise of scale D / epsilon costs on integers that differ by D together.

    (epsilon / D) (D - 2 a (1 - a^D) / (1 - a^2)) with a = e^(-epsilon / D), rounded up: the divergence of
    order 1, which bounds those of all orders. It is below epsilon^2 / 2; for D = 1 it is
    epsilon tanh(epsilon / 2).

    >>> round(float(rho_of_laplace(1)), 6), round(float(rho_of_laplace(1, 1000)), 6)
    (0.462117, 0.36788)
    """
    whole = positive(epsilon, "epsilon")
    distance = integer(sensitivity, "sensitivity", low=1)
    rate = whole / distance
    plain = min(whole, whole**2 / 2)
    if rate > _LARGEST_RATE:
        return round_up(plain)
    # epsilon - rate (1 - e^-epsilon) / sinh(rate), where what is taken away is rounded down
    kept = 1 - _exp(-min(whole, Fraction(_LARGEST_LOSS)), ROUND_CEILING)
    spread = (_exp(rate, ROUND_CEILING) - _exp(-rate, ROUND_FLOOR)) / 2
    return round_up(min(plain, whole - rate * max(kept, Fraction(0)) / spread))


def rho_of_selection(epsilon: object, law: Selection = "exponential") -> Fraction:
    """What an epsilon-DP selection costs: epsilon^2 / 8 by the exponential mechanism [CR21].

    The losses of its outcomes have a range of epsilon. Permute-and-flip costs epsilon^2 / 2: only epsilon-DP
    is known of it.

    >>> rho_of_selection(1), rho_of_selection(1, "permute-and-flip")
    (Fraction(1, 8), Fraction(1, 2))
    """
    rule, fix = "must be 'exponential' or 'permute-and-flip'", "name the law of the selection"
    check(law in ("exponential", "permute-and-flip"), "law", rule, given=law, fix=fix)
    return positive(epsilon, "epsilon") ** 2 / (8 if law == "exponential" else 2)


# --- certified arithmetic ---------------------------------------------------------------------------


def largest(allowed: Callable[[Fraction], bool]) -> Fraction:
    """The largest number of 32 significant bits that is allowed, where all smaller ones are."""
    top = Fraction(1)
    while allowed(top):
        top *= 2
    while not allowed(top / 2):
        top /= 2
    step, low, high = top / (1 << _BITS), 1 << (_BITS - 1), 1 << _BITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(step * middle) else (low, middle)
    return step * low


def round_up(x: Fraction) -> Fraction:
    """A positive number of 32 significant bits, at least x; x itself where it is that short.

    >>> round_up(Fraction(3, 8)), 0 < round_up(Fraction(1, 3)) - Fraction(1, 3) < Fraction(1, 2**32)
    (Fraction(3, 8), True)
    """
    return -_rounded_down(-x, x)


def round_down(x: Fraction) -> Fraction:
    """A positive number of 32 significant bits, at most x."""
    return _rounded_down(x, x)


def _rounded_down(x: Fraction, size: Fraction) -> Fraction:
    """x to the grid on which a number of this size has 32 bits, towards minus infinity."""
    power = size.numerator.bit_length() - size.denominator.bit_length() - _BITS + 1
    step = Fraction(2) ** power
    return math.floor(x / step) * step


def _decimal_above(x: Fraction) -> Fraction:
    """A decimal of nine significant digits, at least x."""
    context = Context(prec=_SHOWN_DIGITS, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return Fraction(context.divide(Decimal(x.numerator), Decimal(x.denominator)))


def log_of_inverse(delta: object) -> Fraction:
    """ln(1/delta), rounded up."""
    exact = rational(delta, "delta")
    check(0 < exact < 1, "delta", "must lie between 0 and 1", given=delta, fix='pass for example "1e-6"')
    return log_above(1 / exact)


def log_above(x: Fraction) -> Fraction:
    """ln x for x >= 1, rounded up."""
    return _log(x, ROUND_CEILING)


def log_below(x: Fraction) -> Fraction:
    """ln x for x >= 1, rounded down."""
    return _log(x, ROUND_FLOOR)


def _log(x: Fraction, rounding: str) -> Fraction:
    """ln x for x >= 1, rounded to the side that is named: the slack exceeds the error of sixty digits."""
    context = _context(rounding)
    quotient = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    return Fraction(context.ln(quotient)) * _slack(rounding)


def _exp(x: Fraction, rounding: str) -> Fraction:
    """e^x, rounded to the side that is named."""
    context = _context(rounding)
    quotient = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    return Fraction(context.exp(quotient)) * _slack(rounding)


def _context(rounding: str) -> Context:
    return Context(prec=_DIGITS, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)


def _slack(rounding: str) -> Fraction:
    return 1 + (_SLACK if rounding == ROUND_CEILING else -_SLACK)


def root_above(x: Fraction) -> Fraction:
    """The square root of x, rounded up."""
    return Fraction(isqrt((x.numerator << 2 * _ROOT_BITS) // x.denominator) + 1, 1 << _ROOT_BITS)
