"""The part of an axis that a picture shows: where nearly all rows lie, by the released distribution.

Declared bounds are public, so they are often much wider than the data, and a picture from bound to bound is
one tall bar. A window is a function of released numbers only. What it leaves out is counted beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

import numpy as np

from partita.answer import Answers
from partita.domain.category import Category
from partita.public.conditions import Where
from partita.public.results import Bins, Heat, even_bins, find_bin_cells, find_least_cells
from partita.public.views import OrderedColumn

if TYPE_CHECKING:
    from partita.public.release import Release

_SHARES: Final = (0.001, 0.01, 0.025)
"""Shares of the rows that may be left out at each end, the smallest first."""

_NARROWER: Final = 3
"""A larger share is left out only where the picture becomes so many times narrower for it."""

_MOST_NOISE: Final = 0.1
"""A window needs ends whose error is at most this share of the rows; else nobody knows where rows lie."""

_ERRORS: Final = 2
"""What is left out is at least so many standard errors of a count: less would be noise."""

CONFIDENT: Final = 1.96
"""Standard errors from a value to the end of its 95% bar, by the normal law."""

_MARGIN: Final = 20  # a window reaches beyond the quantiles by so small a part of its width
_LEAST: Final = 12  # cells of a window: fewer are no picture


@final
@dataclass(frozen=True)
class Window:
    """The first and the last cell that are shown, and how many cells the axis has."""

    first: int
    last: int
    size: int

    @property
    def cells(self) -> int:
        """How many cells are shown; more than `len` could say, of the longest axes."""
        return self.last - self.first + 1

    @property
    def whole(self) -> bool:
        """Whether all cells are shown."""
        return self.cells == self.size


def choose_window(line: OrderedColumn, *, full: bool = False) -> Window:
    """Where nearly all rows of a column lie, or with `full` the whole axis."""
    return Window(0, line.axis.size - 1, line.axis.size) if full else find_window(line)


def find_window(line: OrderedColumn) -> Window:
    """Where nearly all rows of a column lie; the whole axis of labels, and where that makes no difference."""
    size = line.axis.size
    whole = Window(0, size - 1, size)
    total = line.axis.curve.total
    if isinstance(line.domain, Category) or size <= _LEAST or total <= 0:
        return whole
    middle = find_least_cells(line.axis.curve.upto, np.array([total / 2]), last=size - 1)
    noise = _ERRORS * float(line.axis.errors(np.zeros_like(middle), middle)[0]) / total
    if not noise <= _MOST_NOISE:
        return whole
    chosen = whole
    for share in _SHARES:
        found = _between(line, max(share, noise / 2))
        if found.cells * _NARROWER <= chosen.cells:
            chosen = found
    return chosen


def _between(line: OrderedColumn, share: float) -> Window:
    """The cells between two quantiles, and a margin on both sides."""
    size, total = line.axis.size, line.axis.curve.total
    targets = np.array([share, 1 - share]) * total
    low, high = map(int, find_least_cells(line.axis.curve.upto, targets, last=size - 1))
    margin = max((high - low + 1) // _MARGIN, -(-(_LEAST - (high - low + 1)) // 2), 0)
    return Window(max(0, low - margin), min(size - 1, high + margin), size)


def window_bins(line: OrderedColumn, bins: int, window: Window, *, even: bool = True) -> Bins:
    """The cells of a window in at most `bins` bins; all of one size, but for one cell, if not `even`.

    Of more labels than that those with the most rows, one by one: labels that lie side by side have nothing
    in common.
    """
    size = window.cells
    if has_more_labels(line, bins):
        return _top_labels(line, bins)
    lows, highs = (
        each + np.uint64(window.first)
        for each in find_bin_cells(size, even_bins(size, bins) if even else bins)
    )
    counts = Answers(line.axis.counts(lows, highs), lambda: line.axis.errors(lows, highs), line.basis)
    return Bins(line.column, line.domain.decode(lows), line.domain.decode(highs), counts)


def has_more_labels(line: OrderedColumn, bins: int) -> bool:
    """Whether a column has more labels than a picture has room for."""
    return isinstance(line.domain, Category) and line.axis.size > bins


def _top_labels(line: OrderedColumn, number: int) -> Bins:
    """The labels with the most rows by the release, so many."""
    every = np.arange(line.axis.size, dtype=np.uint64)
    cells = np.argsort(-line.axis.counts(every, every), kind="stable")[:number].astype(np.uint64)
    counts = Answers(line.axis.counts(cells, cells), lambda: line.axis.errors(cells, cells), line.basis)
    labels = line.domain.decode(cells)
    return Bins(line.column, labels, labels, counts)


def window_heat(release: Release, heat: Heat, bins: tuple[int, int], where: Where) -> Heat:
    """The heat map of the same columns and rows, in bins of where nearly all rows lie."""
    lines = [release.slice(column) for column in heat.columns]
    windows = [find_window(line) for line in lines]
    if all(window.whole for window in windows):
        return heat
    tables = [window_bins(*each) for each in zip(lines, bins, windows, strict=True)]
    shape = len(tables[0]), len(tables[1])
    places = np.indices(shape).reshape(2, -1).tolist()
    boxes = {
        column: ([table.lows[i] for i in place], [table.highs[i] for i in place])
        for column, table, place in zip(heat.columns, tables, places, strict=True)
    }
    found = release.counts({**where, **boxes})
    counts = Answers(found.values.reshape(shape), lambda: found.error.reshape(shape), found.basis)
    lows, highs = (tables[0].lows, tables[1].lows), (tables[0].highs, tables[1].highs)
    return replace(heat, lows=lows, highs=highs, counts=counts)


def rows_beyond(line: OrderedColumn, window: Window, bins: int) -> str:
    """What is on the axis beside a picture of so many bins, in words; nothing if all of it is in a bin."""
    if has_more_labels(line, bins):
        return f"the most frequent by their estimates; {line.axis.size - bins:,} more labels are not shown"
    if window.whole:
        return ""
    sides = [(0, window.first - 1), (window.last + 1, window.size - 1)]
    sides = [(low, high) for low, high in sides if low <= high]
    lows, highs = (np.array([side[end] for side in sides], np.uint64) for end in (0, 1))
    counts, errors = line.axis.counts(lows, highs), line.axis.errors(lows, highs)
    low, high = line.domain.decode([0, window.size - 1])
    half = CONFIDENT * math.hypot(*errors.tolist())
    return (
        f"the axis goes from {low} to {high}; {max(0.0, float(counts.sum())):,.0f} rows, "
        f"± {half:,.0f} with 95% confidence, lie on it beside the picture"
    )
