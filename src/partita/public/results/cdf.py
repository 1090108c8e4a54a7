"""The distribution of a column: how many rows, and which share, do not exceed a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from partita.answer import Answers
from partita.domain.base.base import Encoded, Special
from partita.html import card, grid, shortlist
from partita.public.axis.curve.curve import Floats, UInts
from partita.public.base.excerpt import excerpt
from partita.public.base.figures import figure
from partita.public.views.slice import Line
from partita.public.where import cells_of, is_single

_HEADS: Final = ("value", "rows up to it", "error", "share")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Cdf:
    """For each value, how many rows with a value do not exceed it, and the share of all that they are.

    Counts and shares never fall from a value to a larger one. Rows in special cells have no value.
    If nobody was counted, all shares are 0. `print` shows a table, of many values the first and the last.
    """

    values: Sequence[object]
    counts: Answers
    fractions: Floats

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Cdf({len(self)} values)"

    def __str__(self) -> str:
        return excerpt(_HEADS, len(self), self._row)

    def _repr_html_(self) -> str:
        return card(repr(self), [], below=[grid(_HEADS, shortlist(len(self), self._row), left=0)])

    def _row(self, number: int) -> Sequence[object]:
        counted = self.counts.values[number], self.counts.error[number]
        return self.values[number], *map(figure, counted), f"{self.fractions[number]:.4f}"


def cdf(line: Line, values: Any = None) -> Cdf:
    """The distribution at the values given, or at the last value of every piece of the release."""
    if values is None:
        ends = line.axis.curve.ends
        return _at(line, line.domain.decode(ends), Encoded(ends, np.zeros(ends.size, np.uint8)))
    where = cells_of(line.domain, values, name="values")
    return _at(line, [values] if is_single(values) else list(values), where)


def _at(line: Line, values: Sequence[object], where: Encoded) -> Cdf:
    curve = line.axis.curve
    cells = np.where(where.special == Special.ABOVE, np.uint64(line.axis.size - 1), where.cells)
    inside = where.special != Special.BELOW
    counts = np.where(inside, curve.upto(cells), 0.0)
    fractions = counts / curve.total if curve.total else np.zeros_like(counts)
    return Cdf(values, Answers(counts, lambda: _errors(line, cells) * inside), fractions)


def _errors(line: Line, cells: UInts) -> Floats:
    return line.axis.errors(np.zeros_like(cells), cells)
