"""Questions that a report answers for one of several views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partita.errors.errors import InvalidParameter
from partita.local.frequency.mixture import Mixture
from partita.local.question.hierarchy import Line
from partita.local.question.question import Question
from partita.local.randomizer.draws import Draws, KernelDraws
from partita.numbers import integer

if TYPE_CHECKING:
    from partita.trusted.noise.laws.words import WordSource


@dataclass(frozen=True, init=False)
class ViewQuestion(Question):
    """Every report is about one view, drawn on the device, or assigned by a public coin.

    Whoever assigns views must not look at values: then estimates stay unbiased, and equal groups make
    them a little better.
    """

    randomizer: Mixture

    @property
    def lines(self) -> tuple[Line, ...]:
        """The columns, as trees."""
        return self.randomizer.views[0].lines

    def randomize(self, value: object, *, draws: Draws | None = None, view: int | None = None) -> int:
        """One person's report, with entropy from the kernel; about the view assigned, if one is."""
        if view is None:
            return super().randomize(value, draws=draws)
        number = integer(view, "view", low=0, high=len(self.randomizer.views) - 1)
        drawn: int = self.randomizer.sample_view(number, self.cell(value), draws or KernelDraws())
        return drawn

    def randomize_many(self, values: object, *, words: WordSource | None = None, views: Any = None) -> Any:
        """One report for every value of a column; about the views assigned, if they are."""
        if views is None:
            return super().randomize_many(values, words=words)
        return self._assigned(self.cells(values), views, words)

    def _assigned(self, cells: Any, views: Any, words: WordSource | None) -> Any:
        import numpy as np

        from partita.trusted.noise.laws.words import Words

        mixture, chosen, source = self.randomizer, np.asarray(views), words or Words()
        if chosen.shape != cells.shape or not np.isin(chosen, np.arange(len(mixture.views))).all():
            rule = "must hold the number of a view for each value"
            raise InvalidParameter("views", rule, given=views, fix="leave them out")
        reports = np.empty_like(cells)
        for number, (view, part) in enumerate(zip(mixture.views, mixture.parts, strict=True)):
            people = np.flatnonzero(chosen == number)
            made = part.randomize_many(view.node(cells[people]), words=source)
            reports[people] = mixture.starts[number] + made
        return reports
