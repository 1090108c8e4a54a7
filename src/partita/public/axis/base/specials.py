"""The special cells of a column, released beside its axis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from partita.answer import Answer, least_sum
from partita.public.base.released import LARGEST_NUMBER, damaged, noise_scale
from partita.public.bounds.tails import laplace_sum_reach, laplace_variance


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Specials:
    """Noisy counts of below, above, invalid, null or other, each with noise of one scale."""

    counts: Mapping[str, int]
    scale: Fraction

    def __post_init__(self) -> None:
        if not all(_plausible(count) for count in self.counts.values()):
            raise damaged("special cells", "must hold integer counts")
        noise_scale(self.scale, "scale of the special cells")

    def answer(self, *names: str) -> Answer:
        """How many rows are in these special cells together."""
        return self.sum(dict.fromkeys(names, 1))

    def sum(self, signs: Mapping[str, int]) -> Answer:
        """The special cells of these names, each added (+1) or taken away (-1).

        The value of a cell is its noisy count, or 0 if that is negative; a guaranteed bound is that of
        the sum of the noisy counts as they were drawn.
        """
        used = {name: sign for name, sign in signs.items() if sign}
        drawn = sum(sign * self.counts[name] for name, sign in used.items())
        value = sum(sign * max(0, self.counts[name]) for name, sign in used.items())
        least = least_sum(used.values())

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(self.scale, len(used), beta)
            return max(least, drawn - reach), max(least, drawn + reach)

        return Answer(float(value), lambda: math.sqrt(len(used)) * self.deviation, bounds, least)

    def value(self, name: str) -> float:
        """The count of one special cell: as drawn, but never negative; none if there is no such cell."""
        return float(max(0, self.counts.get(name, 0)))

    @property
    def deviation(self) -> float:
        """The standard error of one special cell."""
        return math.sqrt(laplace_variance(self.scale))

    def error(self, beta: float) -> float:
        """With probability 1 - beta no sum of some of the cells misses the truth by more.

        For k cells there are 2^k - 1 such sums, and each takes that share of beta. Raising a negative
        count to 0 never takes a sum beyond the bound: an error that shrinks keeps its sign, and the
        errors of one sign belong to a sum of their own.
        """
        cells = len(self.counts)
        return laplace_sum_reach(self.scale, cells, beta / max(1, 2**cells - 1))


def _plausible(count: object) -> bool:
    return isinstance(count, int) and not isinstance(count, bool) and abs(count) <= LARGEST_NUMBER
