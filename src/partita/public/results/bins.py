"""A histogram of a column: equal shares of its public cells, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.answer import Answers
from partita.html import bars, card, grid, shortlist
from partita.numbers import integer
from partita.public.axis.curve.curve import UInts
from partita.public.base.excerpt import excerpt
from partita.public.base.figures import figure
from partita.public.views.slice import Line

MOST_BINS: Final = 2**20
"""No table has more bins, also over two columns."""

_HEADS: Final = ("first", "last", "rows", "error")
_MOST_DRAWN: Final = 120


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
        return excerpt(_HEADS, len(self), self._row)

    def _repr_html_(self) -> str:
        below = [bars(self.counts.values.tolist())] if len(self) <= _MOST_DRAWN else []
        return card(repr(self), [], below=[*below, grid(_HEADS, shortlist(len(self), self._row), left=0)])

    def _row(self, number: int) -> Sequence[object]:
        counted = self.counts.values[number], self.counts.error[number]
        return self.lows[number], self.highs[number], *map(figure, counted)


def bins_of(line: Line, bins: int) -> Bins:
    """The cells of a column in `bins` bins whose sizes differ by one cell at most.

    There are no more bins than cells. Where they lie follows from the domain alone.
    """
    lows, highs = cells_of_bins(line.axis.size, bins)
    counts = Answers(line.axis.counts(lows, highs), lambda: line.axis.errors(lows, highs))
    return Bins(line.domain.decode(lows), line.domain.decode(highs), counts)


def cells_of_bins(size: int, bins: int) -> tuple[UInts, UInts]:
    """The first and the last cell of each bin of an axis of `size` cells."""
    number = min(integer(bins, "bins", low=1, high=MOST_BINS), size)
    edges = [size * i // number for i in range(number + 1)]
    return np.array(edges[:-1], np.uint64), np.array([edge - 1 for edge in edges[1:]], np.uint64)


def even_bins(size: int, bins: int) -> int:
    """At most as many bins, of sizes so nearly equal that a picture of even counts looks even.

    >>> even_bins(151, 60), even_bins(120, 60), even_bins(7, 60)
    (50, 60, 7)
    """
    width = -(-size // integer(bins, "bins", low=1, high=MOST_BINS))
    return size // width
