"""How a table release turns parts of its budget into noise: parts of epsilon, or parts of rho.

All of it is public arithmetic: `TableGraph` draws what these say, and plans predict errors with them. A part
is an exact fraction of the whole. Proofs: docs/proofs/graph.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias, final

from partita.guarantee import Neighbors, measurement_rate, rows_changed, selection_rate, squares_changed
from partita.public.bounds import Gaussian, NoiseLaw

TREE_SHARE: Final = 0.45  # of the epsilon of pairs, for the spanning tree if more pairs follow
_TOTAL, _TOTAL_OF_RHO = Fraction(1, 100), Fraction(1, 500)
_PAIR_CELLS: Final = 1000  # no pair weighs more than one of so many cells
_FINEST: Final = 2**20  # variances are rounded up to multiples of one over this: short numbers are fast
_CARRIED: Final = 1.5
"""Tables are worth a part while their noise is below so many misfits. At epsilon .1 pairs of Adult erred
.083, with 1 .086 and with 2.5 .088 (three releases each). At 1 and 10 they were alike."""
_LIKE_TABLES: Final = 40  # that a release under rho is taken to measure where it is compared with a pure one


@final
@dataclass(frozen=True)
class EpsilonSpending:
    """Parts of epsilon; `row` is epsilon for each row by which neighbours differ. All noise is Laplace."""

    row: Fraction

    total_share = _TOTAL

    @property
    def rate(self) -> float:
        """Epsilon for each row, as a float."""
        return float(self.row)

    def cell(self, part: Fraction) -> Fraction:
        """The noise of a cell of a table, of which a row changes one by one."""
        return 1 / (part * self.row)

    def sum(self, part: Fraction, number: int) -> Fraction:
        """The noise of a sum of `number` misfits, each of which a row changes by one."""
        return number / (part * self.row)

    def choice_scale(self, part: Fraction) -> Fraction:
        """The scale of the exponential mechanism: a row changes each score by one, up or down."""
        return 2 / (part * self.row)

    def choice_cost(self, part: Fraction) -> Fraction:
        """What a choice costs for each row."""
        return part * self.row

    def told(self, part: Fraction) -> float:
        """One over the noise scale of a cell."""
        return float(part * self.row)

    def told_by_view(self, part: Fraction) -> Fraction:
        """The same exactly: the epsilon for each row of a view."""
        return part * self.row

    def tree_rate(self, part: Fraction) -> Fraction:
        """The epsilon for each row of a tree with this part."""
        return part * self.row

    def grown(self, growth: float) -> EpsilonSpending:
        """As many times the epsilon."""
        return EpsilonSpending(self.row * Fraction(growth))

    def told_by_pair(self, part: Fraction, columns: int) -> float:
        """About the same for a pair of the spanning tree, before it is known how many pairs there are."""
        return float(part * self.row) * TREE_SHARE / max(1, columns - 1)

    def weigh(self, cells: int) -> float:
        """The weight of a table where a part is divided: the sum of all errors is least by the root."""
        return math.sqrt(min(cells, _PAIR_CELLS))

    def carried(self, misfit: float, cells: float, part: Fraction) -> int:
        """How many tables are worth a part: then the noise of each is about the misfit."""
        return max(1, round(self.told(part) * max(0.0, misfit) / max(1.0, cells)))


@final
@dataclass(frozen=True)
class RhoSpending:
    """Parts of rho, for neighbours that differ by one unit of at most `contributions` rows.

    Noise of cells and sums is Gaussian. By as much a unit changes a table in L2 norm: k rows may share a
    cell, and if they change, they leave one for another.
    """

    rho: Fraction
    neighbors: Neighbors = "add-remove"
    contributions: int = 1

    total_share = _TOTAL_OF_RHO

    @property
    def square(self) -> int:
        """The squared L2 norm of the largest change of a table."""
        return squares_changed(self.neighbors, self.contributions)

    @property
    def rows(self) -> int:
        """By how many rows neighbours differ: as much a misfit changes."""
        return rows_changed(self.neighbors, self.contributions)

    @property
    def rate(self) -> float:
        """The epsilon for each row of a pure release with as many tables as usual that err as much."""
        return _LIKE_TABLES * self.told(Fraction(1, _LIKE_TABLES))

    def cell(self, part: Fraction) -> Gaussian:
        """The noise of a cell of a table: its variance is the squared change over twice the part of rho."""
        return _gaussian(self.square / (2 * part * self.rho))

    def sum(self, part: Fraction, number: int) -> Gaussian:
        """The noise of a sum of `number` misfits."""
        return _gaussian((number * self.rows) ** 2 / (2 * part * self.rho))

    def choice_scale(self, part: Fraction) -> Fraction:
        """The scale of the exponential mechanism of the largest e with e^2 / 8 at most this part of rho."""
        return 2 * self.rows / selection_rate(part * self.rho)

    def choice_cost(self, part: Fraction) -> Fraction:
        """What a choice costs for one row: w rows cost w^2 as much."""
        return part * self.rho / self.rows**2

    def tree_rate(self, part: Fraction) -> Fraction:
        """The epsilon for each row of a tree with this part: the largest e with e^2 / 2 at most it."""
        return measurement_rate(part * self.rho) / self.rows

    def told(self, part: Fraction | float) -> float:
        """One over the scale of Laplace noise with the variance of a cell."""
        return 2 * math.sqrt(float(part) * float(self.rho) / self.square)

    def told_by_view(self, part: Fraction) -> Fraction:
        """The same as a fraction."""
        return Fraction(self.told(part))

    def grown(self, growth: float) -> RhoSpending:
        """The rho of as many times the epsilon, if delta stays and epsilon is small."""
        return replace(self, rho=self.rho * Fraction(growth) ** 2)

    def told_by_pair(self, part: Fraction, columns: int) -> float:
        """About the same for a pair, before it is known how many pairs there are."""
        return self.told(float(part) * TREE_SHARE / max(1, columns - 1))

    def weigh(self, cells: int) -> float:
        """The weight of a table: noise falls as the root of its part, so it grows faster with the cells."""
        return float(min(cells, _PAIR_CELLS) ** (2 / 3))

    def carried(self, misfit: float, cells: float, part: Fraction) -> int:
        """How many tables are worth a part: twice as many have 1.4 times the noise each, not twice."""
        ratio = _CARRIED * self.told(part) * max(0.0, misfit) / max(1.0, cells)
        return max(1, round(ratio**2))


Spending: TypeAlias = EpsilonSpending | RhoSpending


def total_noise(law: NoiseLaw) -> float:
    """One over the `rate` of a release, by the noise of its total."""
    if isinstance(law, Gaussian):
        return math.sqrt(float(_TOTAL_OF_RHO * law.variance) / (2 * _LIKE_TABLES))
    return float(_TOTAL * law)


def row_cost(law: NoiseLaw, change: int = 1) -> Fraction:
    """What a row costs that changes a number by so much: of epsilon, or of rho if its noise is Gaussian."""
    return change**2 / (2 * law.variance) if isinstance(law, Gaussian) else change / law


def _gaussian(variance: Fraction) -> Gaussian:
    return Gaussian(Fraction(-(-variance.numerator * _FINEST // variance.denominator), _FINEST))
