"""How many people lie in any range: one report each about one level of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self, final

from partita.local.frequency.mixture import Mixture, ViewKind
from partita.local.frequency.view_question import ViewQuestion
from partita.local.question.cells import CellQuestion, column_size
from partita.local.question.hierarchy import Line, line_views
from partita.local.randomizer.law import Json
from partita.local.randomizer.randomizer import Randomizer
from partita.numbers import freeze

if TYPE_CHECKING:
    from collections.abc import Sequence

    from partita.domain.base.base import Domain
    from partita.local.ranges.range_estimate import RangeAggregator


@final
@dataclass(frozen=True, init=False)
class Range(ViewQuestion, CellQuestion):
    """Where on a public line is a person, roughly or exactly?

    The cells are the leaves of a tree. A device draws a level, and reports which node of that level its
    value is under. The domain is as that of `Frequency`; special cells come last and are in no range.
    `branching` is the number of children of a node: 2 is best, or 4 near epsilon 1.

    Guarantee: epsilon-DP of each report, the level included, pure, local.
    Error:     variance O(log^2 size e^epsilon / (n (e^epsilon - 1)^2)) of the share of any range.
    Proof:     docs/proofs/local_ranges.md

    >>> question = Range(1024, epsilon=1)
    >>> len(question.randomizer.views), question.epsilon
    (10, Fraction(1, 1))
    """

    asks: ClassVar[str] = "range"
    branching: int

    def __init__(
        self, domain: int | Domain, *, epsilon: object, branching: int = 2, kind: ViewKind = "auto"
    ) -> None:
        line = Line(column_size(domain), branching)
        mixture = Mixture.of(line_views(line), epsilon=epsilon, kind=kind)
        freeze(self, domain=domain, branching=line.branching, randomizer=mixture)

    @classmethod
    def of(cls, domain: int | Domain, branching: int, parts: Sequence[Randomizer]) -> Self:
        """The question about a domain with given randomizers, one for each level from the top."""
        line = Line(column_size(domain), branching)
        made = object.__new__(cls)
        mixture = Mixture.read(line_views(line), parts)
        freeze(made, domain=domain, branching=line.branching, randomizer=mixture)
        return made

    @property
    def ordinary(self) -> int:
        """The number of cells in order, without the special ones."""
        return self.domain if isinstance(self.domain, int) else self.domain.size

    def aggregator(self) -> RangeAggregator:
        """A new aggregator of reports."""
        from partita.local.ranges.range_estimate import RangeAggregator

        return RangeAggregator(self)

    def _asked(self) -> Json:
        return {**super()._asked(), "branching": self.branching}
