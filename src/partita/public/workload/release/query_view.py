"""Answers to a list of linear queries as a part of a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from partita.answer import Answer
from partita.domain.base.base import Domain
from partita.errors.errors import InvalidRelease
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.base.html import view_card
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.release.workload import WorkloadRelease


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class QueryView:
    """Columns, their public domains, the queries that were asked of them, and the released answers.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how
    it was chosen, a function of public facts.
    """

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]
    queries: Queries
    answers: WorkloadRelease
    mechanism: str
    why: str = ""

    def __post_init__(self) -> None:
        if self.answers.universe != self.universe or self.answers.queries != self.queries:
            raise InvalidRelease("answers", "must be those to the queries", fix="get the file again")

    def __repr__(self) -> str:
        return f"QueryView({', '.join(self.columns)}; {len(self)} queries; {self.mechanism})"

    def _repr_html_(self) -> str:
        return view_card(self, dict(zip(self.columns, self.domains, strict=True)), queries=f"{len(self):,}")

    def __len__(self) -> int:
        return len(self.answers)

    @cached_property
    def universe(self) -> Universe:
        """The cells that the queries weigh."""
        return Universe(self.columns, self.domains)

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.answers.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the answers have the noise that the guarantee asks for."""
        return self.guarantee is None or self.guarantee.epsilon >= self.answers.spent

    def label(self, index: int) -> str:
        """One query as text, which reads back as that query."""
        return self.queries.label(self.universe, index)

    def answer(self, index: int) -> Answer:
        """The answer to one query."""
        return self.answers.answer(index)

    @cached_property
    def total(self) -> Answer | None:
        """How many rows there are, if one of the queries asks for that; else None."""
        index = self.queries.total_at(self.universe)
        return None if index is None else self.answers.answer(index)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer misses the truth by more."""
        return self.answers.error(beta)
