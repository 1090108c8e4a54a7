"""By how much neighbours differ, in the masses that answers are sums of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from partita.guarantee.guarantee import CHANGE_ONE, Neighbors, rows_changed
from partita.numbers import freeze, integer
from partita.public.queries.operator.operator import Operator


@final
@dataclass(frozen=True)
class Change:
    """Neighbours differ by what one unit adds, at most `mass` spread over cells, on one side or on both.

    On one side (add-remove) it is present in one of them only; on both sides (change-one) it is there
    twice, with other values, so that one answer changes by the spread of weights at most.

    >>> Change.of("change-one", contributions=3)
    Change(mass=3, sides=2)
    """

    mass: int
    sides: int = 1

    def __post_init__(self) -> None:
        mass, sides = integer(self.mass, "mass", low=1), integer(self.sides, "sides", low=1, high=2)
        freeze(self, mass=mass, sides=sides)

    @staticmethod
    def of(neighbors: Neighbors, *, contributions: int = 1, row: int = 1) -> Change:
        """What neighbours differ by if a row has a mass of `row`."""
        rows_changed(neighbors, contributions)
        return Change(contributions * row, 2 if neighbors == CHANGE_ONE else 1)

    @property
    def of_total(self) -> int:
        """The largest change of the sum of all cells."""
        return self.mass

    @property
    def of_cells(self) -> int:
        """The largest sum of the changes of all cells, or of sums over disjoint sets of them."""
        return self.mass * self.sides

    def of_answer(self, operator: Operator) -> int:
        """The largest change of any one answer, in units of the operator times those of mass; at least 1."""
        low, high = min(operator.lowest, 0), max(operator.highest, 0)
        return max(1, self.mass * (max(high, -low) if self.sides == 1 else high - low))
