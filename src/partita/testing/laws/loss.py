"""Privacy loss, exactly: the largest ratio between two output laws."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering


@total_ordering
@dataclass(frozen=True)
class Loss:
    """A privacy loss ln(ratio), where exp(-unit) is represented by the rational `base`.

    Compared with a number of epsilon exactly: ln(ratio) <= epsilon means ratio <= base^(-epsilon/unit).
    An infinite loss (an outcome that only one law can produce) has ratio None.

    >>> Loss(Fraction(4), base=Fraction(1, 2), unit=Fraction(1)) <= 2
    True
    >>> Loss(Fraction(5), base=Fraction(1, 2), unit=Fraction(1)) <= 2
    False
    """

    ratio: Fraction | None
    base: Fraction
    unit: Fraction

    def __eq__(self, epsilon: object) -> bool:
        if isinstance(epsilon, Loss):
            return (self.ratio, self.base, self.unit) == (epsilon.ratio, epsilon.base, epsilon.unit)
        return self.ratio is not None and isinstance(epsilon, int | Fraction) and self._sign(epsilon) == 0

    def __lt__(self, epsilon: Loss | Fraction | int) -> bool:
        if isinstance(epsilon, Loss):
            return epsilon.ratio is None or (self.ratio is not None and self.ratio < epsilon.ratio)
        return self.ratio is not None and self._sign(epsilon) < 0

    def __hash__(self) -> int:
        return hash((self.ratio, self.base, self.unit))

    def __float__(self) -> float:
        if self.ratio is None:
            return math.inf
        log_ratio = math.log(self.ratio.numerator) - math.log(self.ratio.denominator)
        return log_ratio / -math.log(self.base) * float(self.unit)

    def _sign(self, epsilon: Fraction | int) -> int:
        """The sign of ln(ratio) - epsilon."""
        units = Fraction(epsilon) / self.unit
        ratio = self.ratio if self.ratio is not None else Fraction(0)
        left, right = ratio**units.denominator, (1 / self.base) ** units.numerator
        return (left > right) - (left < right)


def privacy_loss(
    one: Mapping[Hashable, Fraction], other: Mapping[Hashable, Fraction], *, base: Fraction, unit: Fraction
) -> Loss:
    """The largest loss over all outcomes, in both directions."""
    worst = Fraction(1)
    for outcome in one.keys() | other.keys():
        p, q = one.get(outcome, Fraction(0)), other.get(outcome, Fraction(0))
        if p == q:
            continue
        if not p or not q:
            return Loss(None, base, unit)
        worst = max(worst, p / q, q / p)
    return Loss(worst, base, unit)
