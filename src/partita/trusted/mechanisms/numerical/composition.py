"""Composition of truncations: every query is cut at a threshold of its own, and all share the budget."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import ClassVar, final

from partita.guarantee.accounting import Composition, best_composition
from partita.numbers import frozen
from partita.trusted.mechanisms.numerical.single_truncation import TruncatingMechanism


@final
@frozen(kw_only=True)
class ComposedTruncation(TruncatingMechanism):
    """Publish once; the sum of every query, each cut at about its largest weight among the rows.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.  [HLY21; DR14, Thm 3.20]
    Error:     O(max_t w(t) |Q| / epsilon) pure, O(max_t w(t) sqrt(|Q| log 1/delta) / epsilon) with delta.
    Proof:     docs/proofs/composition.md (truncations side by side, the best of three theorems)

    Weights are only looked at where rows are, so that the universe may be of any size.
    """

    name: ClassVar[str] = "composition"

    @cached_property
    def composition(self) -> Composition:
        """The theorem that lets the octaves and the sums of all queries share the budget best."""
        return best_composition(self.epsilon, self.delta, 2 * len(self.operator))

    @property
    def uses_delta(self) -> bool:
        """Whether another theorem than the pure one allows the most."""
        return self.composition.rule != "pure"

    @property
    def rate(self) -> Fraction:
        """Epsilon for the octaves of one query, and again for its sum."""
        return self.composition.rate

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """How epsilon is shared out, and by which theorem."""
        return (
            *super().plan_lines(rows),
            f"Queries share the budget by {self.composition.rule} composition.",
        )
