"""The two biases of a bit that says whether somebody came, and what they give away, exactly.

A bit starts as 1 with probability q0 and is drawn again, as 1 with probability q1, whenever its user comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, final

from flint import arb

from partita.errors.checks import check
from partita.pan.sketch.draws import WORD
from partita.trusted.noise.laws.reals import Real, enclose, precision

Variant: TypeAlias = Literal["default", "book"]

_HALF: Final = WORD // 2
_FIRST_PRECISION: Final = 192


@final
@dataclass(frozen=True)
class Coin:
    """Both biases in units of 1 / 2^64."""

    start: int
    redraw: int

    @property
    def q0(self) -> Fraction:
        """The probability of a 1 before anybody came."""
        return Fraction(self.start, WORD)

    @property
    def q1(self) -> Fraction:
        """The probability of a 1 after somebody came."""
        return Fraction(self.redraw, WORD)

    @property
    def gap(self) -> Fraction:
        """How much more likely a 1 is if somebody came."""
        return self.q1 - self.q0


def state_ratios(q0: Any, q1: Any) -> tuple[Any, ...]:
    """How much the law of a bit changes when its user comes: the greatest ratio is e^loss."""
    return q1 / q0, (1 - q0) / (1 - q1)


def joint_ratios(q0: Any, q1: Any, growth: Any) -> tuple[Any, ...]:
    """The same for the state at one time and one later sum of all bits with noise, growth = e^output.

    The user comes before and after the look: it shows a 1 and the sum is low, or it shows a 0 and the sum
    is high. The user comes after the look only: it shows a 0 and the sum is high.
    """
    more, less = state_ratios(q0, q1)
    return more * (q1 + (1 - q1) * growth), less / (q1 / growth + (1 - q1)), q1 * growth + (1 - q1)


@lru_cache(maxsize=512)
def joint_coin(epsilon: Fraction, output: Fraction, variant: Variant) -> Coin:
    """The most telling coin whose state and one output together lose at most epsilon.

    The output is the sum of all bits with discrete Laplace noise of scale 1 / output.
    """
    return _most_telling(epsilon, variant, lambda q0, q1: joint_ratios(q0, q1, enclose(output).exp()))


@lru_cache(maxsize=512)
def state_coin(epsilon: Fraction, variant: Variant = "default") -> Coin:
    """The most telling coin whose state loses at most epsilon."""
    return _most_telling(epsilon, variant, state_ratios)


def _most_telling(epsilon: Fraction, variant: Variant, ratios: Callable[[arb, arb], tuple[arb, ...]]) -> Coin:
    """By bisection: the ratios grow with the second bias, and the last one that fits is kept."""
    fitting, wrong = _HALF, WORD
    while wrong - fitting > 1:
        middle = (fitting + wrong) // 2
        if _loses_at_most(epsilon, _coin(middle, variant), ratios):
            fitting = middle
        else:
            wrong = middle
    rule = "must give biases between 2^-64 and 1/2"
    check(_HALF < fitting < WORD - 1, "epsilon", rule, given=epsilon, fix="choose a usual one, like 1")
    return _coin(fitting, variant)


def _coin(redraw: int, variant: Variant) -> Coin:
    """The book starts with fair bits [DR14, section 12.2]; ours are as biased before as they are after."""
    return Coin(start=_HALF if variant == "book" else WORD - redraw, redraw=redraw)


def _loses_at_most(epsilon: Fraction, coin: Coin, ratios: Callable[[arb, arb], tuple[arb, ...]]) -> bool:
    """Whether no ratio exceeds e^epsilon, certified."""

    def room(which: int) -> Real:
        return lambda: enclose(epsilon).exp() - ratios(enclose(coin.q0), enclose(coin.q1))[which]

    with precision(_FIRST_PRECISION):
        number = len(ratios(enclose(coin.q0), enclose(coin.q1)))
    return all(_positive(room(which)) for which in range(number))


def _positive(value: Real) -> bool:
    """The sign of a number that is not zero: sums of exponentials of different rationals never are."""
    bits = _FIRST_PRECISION
    while True:
        with precision(bits):
            found = value()
            if found > 0 or found < 0:
                return bool(found > 0)
        bits *= 2
