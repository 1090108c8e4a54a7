"""How a partition with tents divides epsilon: a function of public and released numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from partita.lazy.cached import cached_property

BUDGET_UNITS: Final = 2**20
LEAST_COUNTING: Final = BUDGET_UNITS // 4
"""Counts get at least so many units, whatever the size and the total."""
LEAST_LOOK: Final = BUDGET_UNITS // 2_000
"""And so do pairs, the partition, and the question whether cells are full."""
LARGEST_FULL: Final = 2**22
"""Of more cells it is not asked whether they are full."""
LITTLE: Final = 400
"""Where less is known, a curve bent inside of pieces is better than a straight one."""

_FEWEST: Final = 30
_FULL_SHARE: Final = round(0.003 * BUDGET_UNITS)
_FULL_PER_CELL: Final = Fraction(7, 2)
_MANY: Final = 30_000
_FEW_SEGMENTS: Final = 2_500
_LEAST_LEVEL: Final = 3.0
_MOST_EMPTY: Final = 13.5
_SPLIT_REACH: Final = 2.5
_USUAL_LEVEL: Final = 20.0
_USUAL_FRACTION: Final = 0.2
_LARGEST_FRACTION: Final = 0.4


def informed(total: int, rate: Fraction) -> Fraction:
    """How much can be known: the public total in units of the noise, and at least 30."""
    return max(total * rate, Fraction(_FEWEST))


@final
@dataclass(frozen=True)
class TentBudget:
    """Shares of epsilon in units of 2^-20, and the choices that depend on the same numbers.

    N = `informed`, L = ln size. The constants were chosen on data that nobody needs to protect.
    """

    size: int
    informed: Fraction

    @cached_property
    def asks_if_full(self) -> bool:
        """Whether there may be so many people that every cell is worth counting."""
        return self.size <= LARGEST_FULL and self.informed >= _FULL_PER_CELL * self.size

    @cached_property
    def fullness(self) -> int:
        """Units for the question whether most cells are well filled."""
        return _FULL_SHARE if self.asks_if_full else 0

    @cached_property
    def partition(self) -> int:
        """Units for the partition: f of what is left, f = max(.28 / sqrt L, .2 sqrt r (N/1000)^-1/4).

        r = max(1, c/20), c the `level`. At most .2, and up to .4 as c exceeds 20 in wide universes: segments
        hold about c/f rows in units of the noise, and where there are few that must be less than all.
        """
        return round(self._fraction * (BUDGET_UNITS - self.fullness))

    @cached_property
    def level(self) -> float:
        """The partition's threshold in units of its noise: max(3, L + 2.4 - .65 ln N).

        And at least L - 13.5, so that fewer than a million empty segments are to be expected.
        """
        return max(
            _LEAST_LEVEL, self._log_size + 2.4 - 0.65 * self._log_informed, self._log_size - _MOST_EMPTY
        )

    def counting(self, *, full: bool) -> int:
        """Units for all counts: what is left."""
        return BUDGET_UNITS - self.fullness - (0 if full else self.partition)

    def cuts_off_last_cells(self, segments: int) -> bool:
        """Whether last cells become units of their own, rather than a second look at pairs."""
        return self.informed > _MANY and segments <= _FEW_SEGMENTS

    @cached_property
    def pairs(self) -> int:
        """Units for second looks at pairs: 2.5 f / (c (1 - f)) of the counts', c the level."""
        fraction = _SPLIT_REACH * self._fraction / (self.level * (1.0 - self._fraction))
        return max(1, round(fraction * self.counting(full=False)))

    @cached_property
    def _fraction(self) -> float:
        wide = max(1.0, self.level / _USUAL_LEVEL)
        few = _USUAL_FRACTION * math.sqrt(wide) * math.exp((math.log(1_000) - self._log_informed) / 4)
        most = min(_LARGEST_FRACTION, _USUAL_FRACTION * wide**2)
        return min(most, max(0.28 / math.sqrt(self._log_size), few))

    @cached_property
    def _log_size(self) -> float:
        return math.log(max(self.size, 2))

    @cached_property
    def _log_informed(self) -> float:
        return math.log(self.informed.numerator) - math.log(self.informed.denominator)
