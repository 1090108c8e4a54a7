"""How far the columns of a table release depend on each other, and which pairs were measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, NamedTuple, final

from partita.answer import add_basis
from partita.arrays import Floats
from partita.frames import Tabular
from partita.html import Html, card, grid, triangle
from partita.public.base import format_excerpt, shorten
from partita.public.boxes.base import BoxRelease

STRONG: Final = 0.5
"""A pair that depends this much, or more, has the darkest shade: few pairs of real tables exceed it."""

_MOST_DRAWN: Final = 30  # columns in a picture: more would fill the page
_LONGEST_NAME: Final = 24
_HEADS: Final = ("column", "column", "dependence", "basis")
_NOTE: Final = (
    "Shade: the share of rows that would have to change for two columns to be independent, by the model. "
    "A dot: the pair was measured together. Others are inferred."
)


class ColumnPair(NamedTuple):
    """Two columns, how far they are from independence, and what answers about both rest on."""

    first: str
    second: str
    dependence: float
    basis: str


@final
@dataclass(frozen=True, eq=False, repr=False)
class Dependence(Tabular):
    """How far each pair of columns is from independence, by the model of a table release.

    `values[i, j]` is the share of rows that would have to change for columns i and j to be independent, from
    0 to 1: the total variation distance between the model's table of both and the product of its sides. The
    diagonal is 0. `bases[i][j]` says what answers about just these two rest on: "measured" or "inferred".
    `print` shows the pairs, the strongest first. It is a function of the release, so it costs nothing.
    """

    columns: tuple[str, ...]
    values: Floats
    bases: tuple[tuple[str, ...], ...]

    @property
    def pairs(self) -> list[ColumnPair]:
        """Every pair once, the strongest first."""
        return sorted(self._pairs(), key=lambda pair: -pair.dependence)

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """A row for each pair, the strongest first; the dependence is the model's, without an interval."""
        pairs = self.pairs
        return {name: [getattr(pair, name) for pair in pairs] for name in ColumnPair._fields}

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        measured = sum(pair.basis == "measured" for pair in self._pairs())
        number = len(self) * (len(self) - 1) // 2
        return f"Dependence({len(self)} columns, {measured} of {number} pairs measured)"

    def __str__(self) -> str:
        pairs = self.pairs
        return format_excerpt(_HEADS, len(pairs), lambda number: _row(pairs[number]))

    def _repr_html_(self) -> str:
        return card(repr(self), [], below=[self.picture(), grid(_HEADS, map(_row, self.pairs[:5]), left=2)])

    def picture(self) -> Html:
        """The lower half of the matrix, darker where columns depend on each other; of many columns some."""
        names = [shorten(column, _LONGEST_NAME) for column in self.columns[:_MOST_DRAWN]]
        beyond = len(self) - len(names)
        note = f"{_NOTE} And {beyond} more columns." if beyond else _NOTE
        return triangle(names, self._shade, self._is_measured, self._describe, label=repr(self), note=note)

    def _pairs(self) -> Iterator[ColumnPair]:
        for i, j in combinations(range(len(self)), 2):
            yield ColumnPair(self.columns[i], self.columns[j], float(self.values[i, j]), self.bases[i][j])

    def _shade(self, row: int, column: int) -> float:
        return float(self.values[row, column]) / STRONG

    def _is_measured(self, row: int, column: int) -> bool:
        return self.bases[row][column] == "measured"

    def _describe(self, row: int, column: int) -> str:
        value, basis = self.values[row, column], self.bases[row][column]
        return f"{self.columns[column]} and {self.columns[row]}: {value:.2f}{add_basis(basis)}"


def find_dependence(
    columns: Sequence[str], boxes: BoxRelease, basis: Callable[[str, str], str] | None = None
) -> Dependence | None:
    """The dependence of the columns of a release; None if it has no model of them.

    `basis` says what answers about a pair rest on, where another release may answer these.
    """
    if not boxes.has_model or boxes.dependence is None:
        return None
    number = {column: place for place, column in enumerate(columns)}
    found = basis or (lambda one, other: boxes.basis({number[one], number[other]}))
    bases = tuple(tuple(found(one, other) for other in columns) for one in columns)
    return Dependence(tuple(columns), boxes.dependence, bases)


def _row(pair: ColumnPair) -> tuple[str, str, str, str]:
    return pair.first, pair.second, f"{pair.dependence:.2f}", pair.basis
