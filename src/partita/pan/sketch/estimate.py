"""From a noisy sum over registers to an answer with its error: public arithmetic on released numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from partita.answer import Answer
from partita.public.bounds.tails import half_width, laplace_variance


@final
@dataclass(frozen=True, kw_only=True)
class Readout:
    """What a sum of g(register) over `size` registers says: offset + factor * sum.

    `spread` is max g - min g, a public integer, and `variance` at least the variance of g(register) for any
    register. The truth lies between `low` and `high`.
    """

    size: int
    offset: float
    factor: float
    spread: int
    variance: float
    low: float
    high: float

    def scale(self, output: Fraction) -> Fraction:
        """One user moves one register, and the sum by at most `spread`: that is hidden at this scale."""
        return self.spread / output

    def error(self, output: Fraction) -> float:
        """At least the standard error of an answer whose output has this epsilon."""
        noise = laplace_variance(self.scale(output))
        return abs(self.factor) * math.sqrt(self.size * self.variance + noise)

    def answer(self, noisy: int, output: Fraction) -> Answer:
        """The estimate, which is unbiased, and bounds that hold for any stream."""
        value = self.offset + self.factor * noisy

        def bounds(beta: float) -> tuple[float, float]:
            reach = abs(self.factor) * self._reach(output, beta)
            return max(self.low, value - reach), min(self.high, value + reach)

        return Answer(value, lambda: self.error(output), bounds, self.low)

    def _reach(self, output: Fraction, beta: float) -> float:
        """Half of beta for the registers, half for the noise."""
        return self.spread * sum_reach(self.size, beta / 2) + laplace_reach(self.scale(output), beta / 2)


def sum_reach(size: int, beta: float) -> float:
    """How far a sum of `size` independent numbers in [0, 1] may be from its mean [Hoeffding]."""
    return math.sqrt(size * math.log(2 / beta) / 2)


def laplace_reach(scale: Fraction, beta: float) -> float:
    """How far discrete Laplace noise may be from zero."""
    return float(half_width(np.array(float(1 / scale)), np.array(math.log(beta))))
