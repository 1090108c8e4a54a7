"""A histogram of a column: equal shares of its public cells, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.answer import Answers
from partita.exact import integer
from partita.releases.excerpt import excerpt
from partita.releases.figures import figure
from partita.releases.spans import Spans
from partita.releases.view import View

__all__ = ["Bins", "bins_of"]

_MOST: Final = 2**20


@final
@dataclass(frozen=True, eq=False, repr=False)
class Bins:
    """The first and the last value of each bin, both in it, and how many rows it holds.

    `print` shows a table, of many bins the first and the last.
    """

    lows: Sequence[object]
    highs: Sequence[object]
    counts: Answers

    def __len__(self) -> int:
        return len(self.lows)

    def __repr__(self) -> str:
        return f"Bins({len(self)} from {self.lows[0]} to {self.highs[-1]})"

    def __str__(self) -> str:
        return excerpt(("first", "last", "rows", "error"), len(self), self._row)

    def _row(self, number: int) -> Sequence[object]:
        counted = self.counts.values[number], self.counts.error[number]
        return self.lows[number], self.highs[number], *map(figure, counted)


def bins_of(view: View, bins: int) -> Bins:
    """The cells of a column in `bins` bins whose sizes differ by one cell at most.

    There are no more bins than cells. Where they lie follows from the domain alone.
    """
    number = min(integer(bins, "bins", low=1, high=_MOST), view.axis.size)
    edges = [view.axis.size * i // number for i in range(number + 1)]
    lows = np.array(edges[:-1], np.uint64)
    highs = np.array([edge - 1 for edge in edges[1:]], np.uint64)
    never = np.zeros(number, np.bool_)
    counts = view.answers(Spans(lows, highs, empty=never, below=never, above=never))
    return Bins(view.domain.decode(lows), view.domain.decode(highs), counts)
