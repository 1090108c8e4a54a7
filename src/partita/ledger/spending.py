"""How charges compose: what anybody may have lost so far, and what room is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import final

from partita.ledger.amount import Amount
from partita.ledger.names import Part

__all__ = ["Spending"]

_NOTHING = Amount()


@final
@dataclass(frozen=True)
class Spending:
    """The sum of charges for each part; under None what was charged about everybody.

    A unit lies in one part of each column. So it has lost what was charged about everybody, and
    for each column what its own part was charged, which is the column's largest sum at most.

    >>> from fractions import Fraction
    >>> north, south = ("region", "north"), ("region", "south")
    >>> one = Amount(Fraction(1))
    >>> spending = Spending({None: one, north: one * 2, south: one * 3})
    >>> print(spending.spent)
    epsilon 4
    >>> print(spending.before(north))
    epsilon 3
    """

    sums: Mapping[Part | None, Amount]

    @property
    def spent(self) -> Amount:
        return self._total(self._peaks())

    def before(self, part: Part | None) -> Amount:
        """The most that anybody in `part` has lost, to which a charge on `part` adds."""
        if part is None:
            return self.spent
        return self._total({**self._peaks(), part[0]: self.sums.get(part, _NOTHING)})

    def _peaks(self) -> dict[str, Amount]:
        """For each column the largest sum of a part."""
        columns = {part[0] for part in self.sums if part}
        return {
            column: reduce(or_, (amount for part, amount in self.sums.items() if part and part[0] == column))
            for column in columns
        }

    def _total(self, columns: Mapping[str, Amount]) -> Amount:
        return sum(columns.values(), start=self.sums.get(None, _NOTHING))
