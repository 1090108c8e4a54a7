"""Public tail bounds of integer noise, certified: thresholds and quantiles are exact integers.

a = exp(-1/scale) throughout; N, N' are independent noises of one law.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from partita.trusted.noise.hazard.hazard import Law
from partita.trusted.noise.laws.reals import Real, enclose, floor


@dataclass(frozen=True)
class Bound:
    """A public real number, compared without rounding."""

    real: Real

    def reaches(self, limit: int) -> bool:
        """Whether the number is at least `limit`."""
        return floor(self.real) >= limit

    def __float__(self) -> float:
        return floor(self.real, 64) / 2**64

    def __repr__(self) -> str:
        return f"Bound({float(self):.6g})"


def scaled(real: Real, factor: int) -> Bound:
    """factor times a real."""
    return Bound(lambda: real() * factor)


def difference(law: Law, scale: Fraction, least: int) -> Real:
    """P[N - N' >= least], least >= 1.

    geometric: the difference is discrete Laplace, a^least / (1+a).
    laplace:   P[N - N' = s] = c^2 a^|s| (|s| + b) with c = (1-a)/(1+a), b = (1+a^2)/(1-a^2);
               summed from least on: c^2 a^least (least + b + a/(1-a)) / (1-a).
    """

    def tail() -> arb:
        a, power = enclose(-1 / scale).exp(), enclose(-least / scale).exp()
        if law == "geometric":
            return power / (1 + a)
        c, b = (1 - a) / (1 + a), (1 + a * a) / (1 - a * a)
        return c * c * power * (least + b + a / (1 - a)) / (1 - a)

    return tail


def difference_quantile(law: Law, scale: Fraction, failure: Fraction) -> int:
    """The least q >= 1 with P[N - N' >= q] <= failure."""
    low, high = 0, 1
    while not _at_most(difference(law, scale, high), failure):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _at_most(difference(law, scale, middle), failure):
            high = middle
        else:
            low = middle
    return high


def geometric_quantile(scale: Fraction, failure: Fraction) -> int:
    """The least q with a^q <= failure, for failure < 1: ceil(scale ln(1/failure))."""
    return floor_log(1 / failure, scale) + 1


def floor_log(value: Fraction, factor: Fraction) -> int:
    """floor(factor ln(value)), for value > 1."""
    return floor(lambda: enclose(value).log() * enclose(factor))


def _at_most(real: Real, limit: Fraction) -> bool:
    """Whether a real that is not rational is at most a rational."""
    return floor(lambda: real() / enclose(limit)) == 0
