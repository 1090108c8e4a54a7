"""A histogram over two columns: equal shares of their public cells, counted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answers
from partita.domain.base.base import Domain
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import Guarantee
from partita.html import Html, card, field, grid
from partita.numbers import integer
from partita.public.axis.curve.curve import UInts
from partita.public.base.figures import figure, shortened, table
from partita.public.conditions import Where
from partita.public.results.bins import MOST_BINS, cells_of_bins
from partita.public.views.box_many import ManyBoxes
from partita.public.views.box_view import BoxView
from partita.public.views.box_where import box_terms, described

Pair: TypeAlias = tuple[Sequence[object], Sequence[object]]

_EACH_END: Final = 4
_LONGEST: Final = 12
_BETWEEN: Final = -1


@final
@dataclass(frozen=True, eq=False, repr=False)
class Heat:
    """Bins of two columns, and how many rows each pair of bins holds.

    `lows` and `highs` have the first and the last value of each bin, both in it, of the first column and
    of the second. `counts` has a row for each bin of the first and a column for each of the
    second: `counts.values[i, j]`, `counts.error[i, j]`. `print` shows a table, of many bins the first
    and the last.
    """

    columns: tuple[str, str]
    domains: tuple[Domain, Domain]
    lows: Pair
    highs: Pair
    counts: Answers
    guarantee: Guarantee | None
    within: str = ""

    def __len__(self) -> int:
        """The number of pairs of bins."""
        return int(self.counts.values.size)

    def __repr__(self) -> str:
        rows, across = self.counts.values.shape
        return f"Heat({rows} bins of {self.columns[0]} by {across} of {self.columns[1]})"

    def __str__(self) -> str:
        down, across = map(_excerpt, self.counts.values.shape)
        name = " / ".join(self.columns)
        head = [name, *(self._label(1, number) for number in across)]
        body = [[self._label(0, i), *(self._count(i, j) for j in across)] for i in down]
        return f"{table([head, *body])}\n{self._note}"

    def _repr_html_(self) -> str:
        down, across = map(_excerpt, self.counts.values.shape)
        heads = [" / ".join(self.columns), *(self._label(1, number) for number in across)]
        rows = [[self._label(0, i), *(self._field(i, j) for j in across)] for i in down]
        return card(repr(self), [], below=[grid(heads, rows, note=self._note)])

    @property
    def errors(self) -> str:
        """The standard errors in words: from the least to the largest."""
        least, most = figure(self.counts.error.min()), figure(self.counts.error.max())
        return least if least == most else f"{least} to {most}"

    @property
    def _note(self) -> str:
        return f"first values of the bins, and rows to a standard error of {self.errors}"

    def _field(self, row: int, column: int) -> Html | str:
        if _BETWEEN in (row, column):
            return "..."
        most = max(1.0, float(self.counts.values.max()))
        return field(self._count(row, column), float(self.counts.values[row, column]) / most)

    def _label(self, side: int, number: int) -> str:
        return "..." if number == _BETWEEN else shortened(str(self.lows[side][number]), _LONGEST)

    def _count(self, row: int, column: int) -> str:
        return "..." if _BETWEEN in (row, column) else figure(self.counts.values[row, column])


def heat_of(view: BoxView, columns: tuple[str, str], bins: object, asked: Where) -> Heat:
    """The cells of two columns in bins, of the rows that are in the cells asked for of the others.

    `bins` is a number for both, or a pair. Where bins lie follows from the domains alone.
    """
    numbers = view.columns.index(columns[0]), view.columns.index(columns[1])
    domains = view.domains[numbers[0]], view.domains[numbers[1]]
    cells = _cells(domains, bins)
    terms = box_terms(view.declared, asked)
    shape = len(cells[0][0]), len(cells[1][0])
    places = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    along = {
        number: _taken(ends, np.uint64(view.boxes.axes[number].before), place)
        for number, ends, place in zip(numbers, cells, places, strict=True)
    }
    many = ManyBoxes(terms, along, np.ones(shape[0] * shape[1], bool))
    counts = Answers(many.counts(view.boxes).reshape(shape), lambda: many.errors(view.boxes).reshape(shape))
    lows, highs = ((domains[0].decode(cells[0][end]), domains[1].decode(cells[1][end])) for end in (0, 1))
    return Heat(columns, domains, lows, highs, counts, view.guarantee, described(asked))


def bins_of_two(bins: object) -> tuple[int, int]:
    """A number of bins for each of two columns, from one number or from a pair."""
    pair = bins if isinstance(bins, tuple) else (bins, bins)
    fix = "pass (12, 20)"
    check(len(pair) == 2, "bins", "must be one number or two", given=f"a tuple of {len(pair)}", fix=fix)
    first, second = (integer(number, "bins", low=1, high=MOST_BINS) for number in pair)
    return first, second


def _cells(domains: tuple[Domain, Domain], bins: object) -> list[tuple[UInts, UInts]]:
    checked = bins_of_two(bins)
    cells = [cells_of_bins(domain.size, number) for domain, number in zip(domains, checked, strict=True)]
    if len(cells[0][0]) * len(cells[1][0]) > MOST_BINS:
        rule = "must make at most 2^20 pairs"
        raise InvalidParameter("bins", rule, given=" by ".join(map(str, checked)), fix="pass fewer bins")
    return cells


def _taken(ends: tuple[UInts, UInts], shift: np.uint64, places: NDArray[np.int64]) -> tuple[UInts, UInts]:
    low, high = ends
    return low[places] + shift, high[places] + shift


def _excerpt(length: int) -> list[int]:
    """The numbers of all bins, or of the first and the last, with a gap between them."""
    if length <= 2 * _EACH_END + 1:
        return list(range(length))
    return [*range(_EACH_END), _BETWEEN, *range(length - _EACH_END, length)]
