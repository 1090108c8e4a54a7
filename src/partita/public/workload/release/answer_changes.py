"""By how much neighbours differ in the answers to a workload, and what noise that calls for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from partita.guarantee.accounting import Composition, best_composition, composed_epsilon
from partita.guarantee.guarantee import Neighbors
from partita.public.queries.operator.operator import Operator
from partita.public.workload.release.change import Change


@final
@dataclass(frozen=True)
class AnswerChanges:
    """Neighbours differ by `each` units at most in any of `count` answers, by `losses` times that in all."""

    each: int
    losses: Fraction
    count: int

    @staticmethod
    def between(neighbors: Neighbors, *, contributions: int, operator: Operator) -> AnswerChanges:
        """Those of neighbours who differ in one unit of at most so many rows."""
        change = Change.of(neighbors, contributions=contributions)
        each, count = change.of_answer(operator), len(operator)
        together = Fraction(max(each, change.of_cells * operator.column_norm), each)
        return AnswerChanges(each, min(together, Fraction(count)), count)

    def composition(self, epsilon: Fraction, delta: Fraction) -> Composition:
        """The theorem that asks for the least noise, and what each answer may cost by it."""
        return best_composition(epsilon, delta, self.count, losses=self.losses)

    def cost(self, scale: Fraction, delta: Fraction) -> Fraction:
        """The epsilon at this delta of noise of the scale on every answer."""
        return composed_epsilon(self.each / scale, delta, self.losses)
