"""One column of a release: its axis of cells and the special cells beside it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import final

import numpy as np

from partita.answer import Answer, Answers
from partita.domain.base.base import Domain
from partita.errors.checks import check_release
from partita.guarantee.guarantee import Guarantee, rows_changed
from partita.public.axis.base.ranges import Ranges, Term
from partita.public.axis.base.specials import Specials
from partita.public.axis.curve.curve import Floats
from partita.public.base.html import view_card
from partita.public.conditions import Where
from partita.public.views.slice import Slice
from partita.public.where import CellSet, Spans, find_cells, ranges

_NOTHING = CellSet()


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class View:
    """A column, its public domain, and what was released about it.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how
    it was chosen, a function of public facts. What is asked of a view names its column and no other.
    """

    column: str
    domain: Domain
    axis: Ranges
    specials: Specials
    mechanism: str
    why: str = ""

    def __post_init__(self) -> None:
        rule = "must have the cells of its domain"
        check_release(self.axis.size == self.domain.size, "axis", rule, fix="get the file again")
        rule, fix = "must be those of the domain", "release every special cell once"
        check_release(set(self.specials.counts) == set(self.domain.specials), "special cells", rule, fix=fix)

    def __repr__(self) -> str:
        return f"View({self.column}; {self.mechanism})"

    def _repr_html_(self) -> str:
        return view_card(self, {self.column: self.domain})

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Its domain."""
        return (self.domain,)

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.axis.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the special cells have the noise that the guarantee asks for."""
        promise = self.guarantee
        return promise is None or self.specials.scale == (
            rows_changed(promise.neighbors, promise.contributions) / promise.epsilon
        )

    @property
    def total(self) -> Answer:
        """How many rows there are: on the axis and in every special cell."""
        return self.answer(CellSet((Term(0, self.axis.size - 1),), self.domain.specials))

    def count(self, asked: Where) -> Answer:
        """How many rows are in the cells asked for."""
        return self.answer(self._cells(asked))

    def difference(self, added: Where, taken: Where) -> Answer:
        """How many more rows one question counts than another, as one linear question."""
        return self.answer(self._cells(added), self._cells(taken))

    def counts(self, asked: Where) -> Answers:
        """How many rows are in each of many ranges."""
        spans = ranges(self.domain, asked[self.column], name=self.column)
        values = np.where(spans.empty, 0.0, self.axis.counts(spans.lows, spans.highs))
        values += self.specials.value("below") * spans.below + self.specials.value("above") * spans.above
        return Answers(values, lambda: self._errors(spans))

    def slice(self, column: str, asked: Where) -> Slice:
        """The axis: a view of one column has no other that could be asked for."""
        return Slice(self.column, self.domain, self.axis)

    def answer(self, added: CellSet, taken: CellSet = _NOTHING) -> Answer:
        """How many rows are in the cells of one question, less those of another, as one linear question."""
        terms = (*added.terms, *(Term(low, high, -1) for low, high, _ in taken.terms))
        signs = Counter(added.specials)
        signs.subtract(taken.specials)
        beside = self.specials.sum(signs) if any(signs.values()) else None
        if not terms:
            return beside or Answer.exact(0.0)
        return self.axis.answer(*terms) + beside if beside else self.axis.answer(*terms)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range, with open ends or without, misses the truth by more."""
        return self.axis.error(beta / 2) + self.specials.error(beta / 2)

    def _cells(self, asked: Where) -> CellSet:
        return find_cells(self.domain, asked[self.column], name=self.column)

    def _errors(self, spans: Spans) -> Floats:
        errors = np.where(spans.empty, 0.0, self.axis.errors(spans.lows, spans.highs))
        opened = ("below" in self.specials.counts) * (spans.below.astype(np.int64) + spans.above)
        for cells in (1, 2):
            beside = math.sqrt(cells) * self.specials.deviation
            errors[opened == cells] = [math.hypot(axis, beside) for axis in errors[opened == cells].tolist()]
        return np.asarray(errors)
