"""Optimized unary encoding: one bit for every cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log
from typing import ClassVar, Final, final

from partita.errors.checks import check_data
from partita.local.randomizer.draws import Draws, Numbers
from partita.local.randomizer.law import Pmf
from partita.local.randomizer.randomizer import FrequencyRandomizer
from partita.local.randomizer.thresholds import WHOLE
from partita.numbers import integer

_LARGEST_SIZE: Final = 1 << 16
"""A device draws a word for each bit, and sends them all: a hostile question must not keep it busy."""

_REFUSED: Final = 65 * log(2)
"""An honest report is refused with probability at most 2 exp(-this) = 2^-64."""


@final
@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(FrequencyRandomizer):
    """A fair coin in place of the bit of the true cell; every other bit is one with a small chance [WBLJ17].

    A baseline: its reports have `size` bits, at most 65,536. They are ints whose bit i speaks of cell i; a
    column of them is a matrix of bytes. Aggregators refuse reports with a number of ones that no honest
    device sends (`likely_ones`).

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     n variance 4 e^epsilon / (e^epsilon - 1)^2 of a frequency near 0.
    Proof:     docs/proofs/local_randomizers.md

    >>> float(UnaryEncoding(size=8, epsilon=Fraction(1)).miss)
    0.2689414213699951
    """

    kind: ClassVar[str] = "unary"

    def _settle(self) -> None:
        integer(self.size, "size", low=2, high=_LARGEST_SIZE)

    @property
    def odds(self) -> tuple[int, int]:
        """A bit stays zero, or becomes one."""
        return 1, 1

    @property
    def reports(self) -> int:
        """Any row of bits."""
        return 1 << self.size

    @property
    def hit(self) -> Fraction:
        """The coin."""
        return Fraction(1, 2)

    @property
    def miss(self) -> Fraction:
        """A zero bit that became one."""
        return 1 - self.chance

    @property
    def forged_report_cells(self) -> int:
        """As many as a report may have ones."""
        return self.likely_ones[1]

    @cached_property
    def likely_ones(self) -> tuple[int, int]:
        """How many ones a report has, at least and at most: reports with fewer or more are refused.

        An honest report falls outside with probability at most 2^-64. Its bits are D independent trials with
        mean chance p = (hit + (D - 1) miss) / D, so a share s of ones on either side of p or beyond has
        probability at most exp(-D KL(s, p)) [Hoeffding 1963, Theorem 1]; each side has 2^-65.
        """
        mean = float(self.hit + (self.size - 1) * self.miss) / self.size
        likely = [ones for ones in range(self.size + 1) if self._exponent(ones, mean) <= _REFUSED]
        return likely[0], likely[-1]

    def _exponent(self, ones: int, mean: float) -> float:
        """D KL(ones / D, mean)."""
        parts = ((ones, mean), (self.size - ones, 1 - mean))
        return sum(count * log(count / self.size / chance) for count, chance in parts if count)

    def check_report(self, report: object) -> int:
        """The report, if it is one that an honest device could have sent."""
        exact, (least, most) = super().check_report(report), self.likely_ones
        fix = "drop it"
        check_data(least <= exact.bit_count() <= most, "report", f"must have {least} to {most} ones", fix=fix)
        return exact

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A row of rare ones, with a fair coin at the place of the cell."""
        row = draws.row(WHOLE - self.threshold, self.size)
        return draws.with_bit(row, x, draws.below(2))

    def pmf(self, x: int) -> Pmf:
        """The coin, times the chances of all other bits; only how many of those are ones matters."""
        zero, one, others = self.chance, 1 - self.chance, self.size - 1
        chances = [one**ones * zero ** (others - ones) / 2 for ones in range(self.size)]
        return {report: chances[(report & ~(1 << x)).bit_count()] for report in self._enumerable()}
