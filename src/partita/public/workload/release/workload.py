"""What every release of answers to a list of linear queries can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from partita.answer import Answer, Answers
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.axis.base.ranges import Parts
from partita.public.axis.curve.curve import Floats
from partita.public.base.kinds import ReleaseKind
from partita.public.base.released import damaged
from partita.public.queries.operator.structured import Structured
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe


@dataclass(frozen=True, eq=False, kw_only=True)
class WorkloadRelease(ReleaseKind, ABC):
    """Released answers to all queries of a workload.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    queries: Queries
    universe: Universe
    guarantee: Guarantee | None = None

    @cached_property
    def operator(self) -> Structured:
        """The queries as an operator."""
        return self.queries.over(self.universe)

    @property
    @abstractmethod
    def values(self) -> Floats:
        """All answers, in the order of the queries."""

    @property
    @abstractmethod
    def spreads(self) -> Floats:
        """The standard errors of all answers."""

    @abstractmethod
    def answer(self, index: int) -> Answer:
        """The answer to one query, with its standard error and bounds."""

    @abstractmethod
    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the truth by more, whatever the data."""

    def answers(self) -> Answers:
        """All answers with their standard errors."""
        return Answers(self.values, lambda: self.spreads)

    @property
    def story(self) -> str:
        """Sentences about what was chosen on the way, from released numbers; empty where nothing was."""
        return ""

    @property
    @abstractmethod
    def spent(self) -> Fraction:
        """The epsilon that the noise of what was released costs between the neighbours of the guarantee,
        at its delta; zero if there is no guarantee.
        """

    @abstractmethod
    def parts(self) -> Parts:
        """Everything that was released, taken apart for a file that holds queries and universe, too."""

    @classmethod
    @abstractmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""

    @staticmethod
    def number_of(queries: Queries, universe: Universe) -> int:
        """How many answers there are to queries of a file; queries that make no sense are refused."""
        try:
            return len(queries.over(universe))
        except InvalidParameter:
            raise damaged("queries", "must be about the columns beside them") from None

    def __len__(self) -> int:
        return len(self.operator)
