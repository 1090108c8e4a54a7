"""Answers projected on what some table could have, with a certificate that anybody can check.

A projection is a weight for some cells, in whole parts of a row. It is believed because of its gap, which is
recomputed from the noisy answers and the weights alone, in integers, and never because of how it was found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.queries.operator.operator import Operator
from partita.public.workload.projection.projection_descent import closest
from partita.public.workload.projection.projection_gap import exact_gap
from partita.public.workload.projection.projection_hull import Hull

MOST_CELLS: Final = 2**24
LARGEST_BITS: Final = 62
"""All weights together stay below two to this, in parts of a row."""

_CLOSE: Final = 0.01
_SOLVED: Final = 0.7
_ROUNDED: Final = 0.1
_LESS: Final = 1.0 - 2.0**-50
_FRACTION: Final = 2**20
_WORK: Final = 200_000_000
_MOST_STEPS: Final = 20_000
_FEWEST_STEPS: Final = 500


def allowed_gap(queries: int, deviation: float) -> float:
    """The gap that leaves answers within a hundredth of the noise of the closest, in the mean square."""
    return queries * (_CLOSE * deviation) ** 2 / 2


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Projection:
    """Weights of cells, in units of 2^-bits rows, and a bound on how much closer any others come.

    `gap` bounds ||A x - y||^2 / 2 less its minimum over all x >= 0 of sum at most `rows`. So the answers A x
    are within sqrt(2 gap) of the closest ones.
    """

    operator: Operator
    rows: int
    bits: int
    cells: Ints
    amounts: Ints
    gap: Fraction

    @cached_property
    def values(self) -> Floats:
        """The projected answers: exact sums, divided at the end."""
        parts = self.operator.granularity << self.bits
        return np.asarray(self._sums.astype(object) / parts, np.float64)

    @property
    def distance(self) -> float:
        """The answers are at most so far from the closest ones, in the Euclidean norm."""
        return math.sqrt(2 * self.gap)

    def holds(self, noisy: NDArray[Any], deviation: float) -> bool:
        """Whether the weights are a table's, and their gap is no more than stated, which is small enough."""
        within = int(self.amounts.astype(object).sum()) <= self.rows << self.bits
        return within and self.gap_to(noisy) <= self.gap <= allowed_gap(len(self.operator), deviation)

    def gap_to(self, noisy: NDArray[Any]) -> Fraction:
        """The gap, exactly, from the noisy answers in units and these weights alone."""
        return exact_gap(self.operator, self._sums, noisy, rows=self.rows, bits=self.bits)

    @cached_property
    def _sums(self) -> NDArray[Any]:
        """The projected answers in units of 2^-bits."""
        x = np.zeros(self.operator.shape, np.int64)
        x.flat[self.cells] = self.amounts
        return np.asarray(self.operator.answers(x))


def project(operator: Operator, noisy: NDArray[Any], *, rows: int, deviation: float) -> Projection | None:
    """The projection of noisy answers on those of tables of at most `rows` rows; None if none is certain.

    `noisy` are integers in units of the operator, and the deviation of their noise is in rows times weight.
    A function of released numbers: no more is known after it than before.
    """
    if rows.bit_length() > LARGEST_BITS:
        return None
    hull = Hull.of(operator, float(rows))
    enough = allowed_gap(len(operator), deviation)
    steps = min(_MOST_STEPS, max(_FEWEST_STEPS, _WORK // math.prod(operator.shape)))
    floats = np.asarray(noisy / operator.granularity, np.float64)
    point = closest(hull, floats, gap=_SOLVED * enough, steps=steps)
    found = _stated(_rounded(hull, point.x, rows, enough), noisy)
    return found if found.holds(noisy, deviation) else None


def _stated(found: Projection, noisy: NDArray[Any]) -> Projection:
    """The same weights with their gap, rounded up to a number that is quickly written."""
    return replace(found, gap=Fraction(math.ceil(found.gap_to(noisy) * _FRACTION), _FRACTION))


def _rounded(hull: Hull, x: Floats, rows: int, enough: float) -> Projection:
    """The weights in whole parts of a row, rounded down: parts so small that the gap hardly grows."""
    bits = _bits(hull, int((x > 0.0).sum()), rows, enough)
    amounts = np.floor(np.ldexp(x * _LESS, bits)).astype(np.int64)
    there = amounts > 0
    order = np.argsort(hull.cells[there])
    return Projection(
        operator=hull.operator,
        rows=rows,
        bits=bits,
        cells=hull.cells[there][order],
        amounts=amounts[there][order],
        gap=Fraction(0),
    )


def _bits(hull: Hull, support: int, rows: int, enough: float) -> int:
    """How fine the parts of a row are.

    Rounding changes an answer by less than support w 2^-bits, w the largest weight of a query. That changes
    every slope by at most k w times as much and the gap by about 2 rows times this.
    """
    weight = max(abs(hull.operator.lowest), abs(hull.operator.highest)) / hull.operator.granularity
    growth = 2.0 * max(1, rows) * len(hull.operator) * weight * max(1, support) * weight
    wanted = math.ceil(math.log2(max(1.0, growth / (_ROUNDED * enough))))
    return max(0, min(wanted, LARGEST_BITS - rows.bit_length()))
