"""Hadamard response: one bit about a random parity of the cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, final

from partita.local.randomizer.draws import Draws, Numbers
from partita.local.randomizer.law import Pmf
from partita.local.randomizer.randomizer import FrequencyRandomizer

_FOLDS: Final = (16, 8, 4, 2, 1)


@final
@dataclass(frozen=True, kw_only=True)
class HadamardResponse(FrequencyRandomizer):
    """Choose a row of a Hadamard matrix, and tell its sign at the column of the cell, or not [ASZ19].

    The row is uniform and has nothing to do with the cell; a report is twice the row, plus the bit. The
    columns 1, ..., size are used: column 0 has the same sign in every row.

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     n variance 4 e^epsilon / (e^epsilon - 1)^2 + 1 of any frequency.
    Proof:     docs/proofs/local_randomizers.md

    >>> HadamardResponse(size=1000, epsilon=Fraction(1)).reports
    2048
    """

    kind: ClassVar[str] = "hadamard"

    @property
    def rows(self) -> int:
        """The order of the matrix: the least power of two above size."""
        return 1 << self.size.bit_length()

    @property
    def odds(self) -> tuple[int, int]:
        """Two signs."""
        return 1, 1

    @property
    def reports(self) -> int:
        """A row and a bit."""
        return 2 * self.rows

    @property
    def hit(self) -> Fraction:
        """The sign told is that of the cell."""
        return self.chance

    @property
    def miss(self) -> Fraction:
        """Two columns agree in half of the rows."""
        return Fraction(1, 2)

    @property
    def forged_report_cells(self) -> int:
        """The signs of row 0 are the same everywhere."""
        return self.size

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A row, and its sign at column x + 1, flipped unless the truth is told."""
        row = draws.below(self.rows)
        lie = 1 - draws.chance(self.threshold)
        return 2 * row + (parity(row & (x + 1)) ^ lie)

    def pmf(self, x: int) -> Pmf:
        """In every row one probability for the true sign and one for the other."""
        true, other = (chance / self.rows for chance in self._branches())
        return {
            report: true if report & 1 == parity((report >> 1) & (x + 1)) else other
            for report in self._enumerable()
        }


def parity(number: Numbers) -> Numbers:
    """The number of ones among the 32 lowest bits, modulo two.

    >>> [parity(number) for number in range(8)]
    [0, 1, 1, 0, 1, 0, 0, 1]
    """
    for fold in _FOLDS:
        number = number ^ (number >> fold)
    return number & 1
