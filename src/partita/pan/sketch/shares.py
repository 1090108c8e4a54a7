"""How the epsilon of an epoch is divided: a part hides the state, the rest is shared by all outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self, final

from partita.errors.checks import check
from partita.numbers import rational
from partita.trusted.noise.system.system import LARGEST_SCALE, SMALLEST_SCALE

_OFFERED: Final = tuple(Fraction(percent, 100) for percent in (*range(2, 21), 25, 30, 35, 40, 45, 50))
"""For the outputs, where that is not given: the larger ones are for small universes and many outputs."""


@final
@dataclass(frozen=True)
class Shares:
    """`output` is the epsilon of each of `releases` outputs, `state` what is left for the state."""

    share: Fraction
    state: Fraction
    output: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, releases: int, share: object) -> Self:
        """With this share for all outputs together."""
        exact = rational(share, "output_share")
        check(0 < exact < 1, "output_share", "must lie between 0 and 1", given=share, fix='pass "0.1"')
        return cls(share=exact, state=epsilon * (1 - exact), output=epsilon * exact / releases)

    @classmethod
    def chosen(
        cls, epsilon: Fraction, releases: int, share: object | None, error: Callable[[Shares], float]
    ) -> Shares:
        """With the given share, or the one with the least error that public facts predict."""
        if share is not None:
            return cls.of(epsilon, releases, share)
        return min((cls.of(epsilon, releases, offered) for offered in _OFFERED), key=error)

    def check(self, spread: int) -> None:
        """Refuse an epsilon whose noise, for statistics of this spread, nobody can draw."""
        fits = 1 / self.output >= SMALLEST_SCALE and spread / self.output <= LARGEST_SCALE
        rule = "must give noise of a scale between 2^-20 and 2^62"
        fix = "choose a usual one, like 1"
        check(fits, "epsilon", rule, given=self.state + self.output, fix=fix)
