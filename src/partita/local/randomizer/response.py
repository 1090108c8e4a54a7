"""Randomized response: the true cell, or any other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from partita.local.randomizer.draws import Draws, Numbers
from partita.local.randomizer.law import Pmf
from partita.local.randomizer.randomizer import FrequencyRandomizer


@final
@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(FrequencyRandomizer):
    """Say the true cell with probability e^epsilon / (e^epsilon + size - 1), else another one.

    With two cells this is Warner's randomized response [War65; Dwork-Roth, section 3.2].

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     n variance (size - 2 + e^epsilon) / (e^epsilon - 1)^2 of a frequency near 0.
    Proof:     docs/proofs/local_randomizers.md

    >>> float(RandomizedResponse(size=2, epsilon=Fraction(1)).hit)
    0.7310585786300049
    """

    kind: ClassVar[str] = "response"

    @property
    def odds(self) -> tuple[int, int]:
        """The true cell against all others."""
        return 1, self.size - 1

    @property
    def reports(self) -> int:
        """A report is a cell."""
        return self.size

    @property
    def hit(self) -> Fraction:
        """The truth is told."""
        return self.chance

    @property
    def miss(self) -> Fraction:
        """One of the others is told, and it is this one."""
        return (1 - self.chance) / (self.size - 1)

    @property
    def forged_report_cells(self) -> int:
        """A report supports the cell that it names."""
        return 1

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """The true cell, or the others counted without it."""
        truth = draws.chance(self.threshold)
        other = draws.below(self.size - 1)
        return draws.choose(truth, x, other + (other >= x))

    def pmf(self, x: int) -> Pmf:
        """One probability for the true cell and one for each other."""
        true, other = self._branches()
        return {report: true if report == x else other for report in self._enumerable()}
