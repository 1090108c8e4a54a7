"""What each of many mechanisms may spend so that all of them together stay within (epsilon, delta).

A rate is the epsilon of one mechanism among many. Every rate here is exact arithmetic rounded down: the
theorem that allows it is checked in rational numbers, with logarithms rounded to the side of privacy.
Proofs: docs/proofs/composition_of_losses.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import Final, Literal, TypeAlias, final

from partita.errors.checks import check
from partita.guarantee.guarantee import positive_epsilon
from partita.numbers import integer, rational

Rule: TypeAlias = Literal["pure", "advanced", "zCDP"]

_BITS: Final = 32
_DIGITS: Final = 60
_ROOT_BITS: Final = 128
_LOG_SLACK: Final = Fraction(1, 10**50)


@final
@dataclass(frozen=True)
class Composition:
    """The rate of each mechanism, and the theorem that allows it."""

    rule: Rule
    rate: Fraction


def pure_rate(epsilon: object, k: object) -> Fraction:
    """epsilon / k: k mechanisms of this rate are epsilon-DP together.

    >>> pure_rate(1, 20)
    Fraction(1, 20)
    """
    return positive_epsilon(epsilon) / _losses(k)


def zcdp_rate(epsilon: object, delta: object, k: object, *, selections: int = 0) -> Fraction:
    """The largest rate at which k mechanisms and `selections` are (epsilon, delta)-DP by zCDP [BS16].

    A mechanism of pure rate r is r^2/2-zCDP, a selection by the exponential mechanism r^2/8 [CR21], and
    these add up. k need not be whole: it bounds the sum of the squared losses over the largest square.

    >>> float(zcdp_rate(1, "1e-6", 100)) > float(pure_rate(1, 100))
    True
    """
    weight = _losses(k) + Fraction(integer(selections, "selections", low=0), 4)
    whole, log = positive_epsilon(epsilon), _log_of_inverse(delta)
    return _largest(lambda rate: _converts(weight * rate**2 / 2, whole, log))


def zcdp_budget(epsilon: object, delta: object) -> Fraction:
    """The largest rho such that rho-zCDP is (epsilon, delta)-DP: rho + 2 sqrt(rho ln 1/delta) <= epsilon."""
    whole, log = positive_epsilon(epsilon), _log_of_inverse(delta)
    return _largest(lambda rho: _converts(rho, whole, log))


def measurement_rate(rho: Fraction, k: object = 1) -> Fraction:
    """The largest rate at which k mechanisms are rho-zCDP: k rate^2 / 2 <= rho."""
    weight = _losses(k)
    return _largest(lambda rate: weight * rate**2 <= 2 * rho)


def selection_rate(rho: Fraction, k: object = 1) -> Fraction:
    """The largest rate at which k exponential mechanisms are rho-zCDP together: k rate^2 / 8 <= rho."""
    return measurement_rate(rho, _losses(k) / 4)


def advanced_rate(epsilon: object, delta: object, k: int) -> Fraction:
    """The largest rate that advanced composition allows to k mechanisms [DR14, Theorem 3.20].

    rate sqrt(2 k ln 1/delta) + k rate (e^rate - 1) <= epsilon. At least the epsilon / sqrt(8 k ln 1/delta)
    of Corollary 3.21 and Algorithm 18 wherever epsilon is at most 1.
    """
    whole, count = positive_epsilon(epsilon), integer(k, "k", low=1)
    slope = _root_above(2 * count * _log_of_inverse(delta))

    def allowed(rate: Fraction) -> bool:
        spare = whole - slope * rate
        return spare > 0 and rate <= _log(1 + spare / (count * rate), ROUND_FLOOR)

    return _largest(allowed)


def best_composition(
    epsilon: object, delta: object, k: int, *, selections: int = 0, losses: object = None
) -> Composition:
    """The theorem with the largest rate: a public choice. With delta = 0, pure composition.

    `losses` bounds the sum of what the k mechanisms lose between any two neighbours, over the largest loss
    of one: less than k where no unit takes part in all of them.
    """
    count = integer(k, "k", low=1)
    spent = Fraction(count) if losses is None else _losses(losses)
    found = [Composition("pure", pure_rate(epsilon, spent + selections))]
    if rational(delta, "delta") != 0:
        found.append(Composition("zCDP", zcdp_rate(epsilon, delta, spent, selections=selections)))
        found.append(Composition("advanced", advanced_rate(epsilon, delta, count + selections)))
    return max(found, key=lambda composition: composition.rate)


def best_rate(
    epsilon: object, delta: object, k: int, *, selections: int = 0, losses: object = None
) -> Fraction:
    """The largest rate that any of the theorems allows; never below epsilon / k.

    >>> best_rate(1, 0, 20), best_rate(1, "1e-6", 1)
    (Fraction(1, 20), Fraction(1, 1))
    """
    return best_composition(epsilon, delta, k, selections=selections, losses=losses).rate


def composed_epsilon(rate: Fraction, delta: object, k: object) -> Fraction:
    """The least epsilon, rounded up, at which k mechanisms of this rate are (epsilon, delta)-DP together.

    By pure composition or by zCDP, which never falls behind the advanced theorem.
    """
    count = _losses(k)
    pure = count * rate
    if rational(delta, "delta") == 0:
        return pure
    rho = count * rate**2 / 2
    return min(pure, rho + 2 * _root_above(rho * _log_of_inverse(delta)))


def _converts(rho: Fraction, epsilon: Fraction, log: Fraction) -> bool:
    """Whether rho + 2 sqrt(rho log) <= epsilon."""
    return rho <= epsilon and 4 * rho * log <= (epsilon - rho) ** 2


def _largest(allowed: Callable[[Fraction], bool]) -> Fraction:
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


def _log_of_inverse(delta: object) -> Fraction:
    """ln(1/delta), rounded up."""
    exact = rational(delta, "delta")
    check(0 < exact < 1, "delta", "must lie between 0 and 1", given=delta, fix='pass for example "1e-6"')
    return _log(1 / exact, ROUND_CEILING)


def _log(x: Fraction, rounding: str) -> Fraction:
    """ln x for x >= 1, rounded to the side that is named: the slack exceeds the error of sixty digits."""
    context = Context(prec=_DIGITS, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
    quotient = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    slack = _LOG_SLACK if rounding == ROUND_CEILING else -_LOG_SLACK
    return Fraction(context.ln(quotient)) * (1 + slack)


def _root_above(x: Fraction) -> Fraction:
    """The square root of x, rounded up."""
    return Fraction(isqrt((x.numerator << 2 * _ROOT_BITS) // x.denominator) + 1, 1 << _ROOT_BITS)


def _losses(k: object) -> Fraction:
    exact = rational(k, "k")
    check(exact > 0, "k", "must be positive", given=k, fix="count the mechanisms")
    return exact
