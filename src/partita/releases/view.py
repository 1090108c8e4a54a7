"""One column of a release: its axis of cells and the special cells beside it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import final

import numpy as np

from partita.answer import Answer, Answers
from partita.domain import Domain
from partita.errors import InvalidRelease
from partita.inference.curve import Floats
from partita.releases.ranges import Ranges, Term
from partita.releases.spans import Spans
from partita.releases.specials import Specials
from partita.releases.where import Question

__all__ = ["View"]

_NOTHING = Question()


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class View:
    """A column, its public domain, and what was released about it.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how
    it was chosen, a function of public facts.
    """

    column: str
    domain: Domain
    axis: Ranges
    specials: Specials
    mechanism: str
    why: str = ""

    def __post_init__(self) -> None:
        if self.axis.size != self.domain.size:
            raise InvalidRelease("axis", "must have the cells of its domain", fix="get the file again")
        if set(self.specials.counts) != set(self.domain.specials):
            raise InvalidRelease(
                "special cells", "must be those of the domain", fix="release every special cell once"
            )

    @property
    def everybody(self) -> Question:
        """All rows: the whole axis and every special cell."""
        return Question((Term(0, self.axis.size - 1),), self.domain.specials)

    def answer(self, added: Question, taken: Question = _NOTHING) -> Answer:
        """How many rows are in the cells of one question, less those of another, as one linear question."""
        terms = (*added.terms, *(Term(low, high, -1) for low, high, _ in taken.terms))
        signs = Counter(added.specials)
        signs.subtract(taken.specials)
        beside = self.specials.sum(signs) if any(signs.values()) else None
        if not terms:
            return beside or Answer.exact(0.0)
        return self.axis.answer(*terms) + beside if beside else self.axis.answer(*terms)

    def answers(self, spans: Spans) -> Answers:
        """How many rows are in each of many ranges."""
        values = np.where(spans.empty, 0.0, self.axis.counts(spans.lows, spans.highs))
        values += self.specials.value("below") * spans.below + self.specials.value("above") * spans.above
        return Answers(values, lambda: self._errors(spans))

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range, with open ends or without, misses the truth by more."""
        return self.axis.error(beta / 2) + self.specials.error(beta / 2)

    def _errors(self, spans: Spans) -> Floats:
        axis = np.where(spans.empty, 0.0, self.axis.errors(spans.lows, spans.highs))
        opened = ("below" in self.specials.counts) * (spans.below.astype(np.float64) + spans.above)
        return np.asarray(np.sqrt(axis**2 + opened * self.specials.deviation**2))
