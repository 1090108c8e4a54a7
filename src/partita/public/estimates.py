"""The solved estimate of a release and its error model, for a page that has no server to ask.

What is written here is read by a script that only looks up and sums: values along a column, the numbers that
standard errors of ranges are made of, and tables of answers where errors do not add up. Everything is a
function of the release, and the arithmetic is that of the library.

A column has one of three models. `cells` are independent noisy counts, so values and variances add up.
`pieces` are the pieces of a solved tree or of solved tents: any range can be summed. Every other mechanism
has a `ranges` table: the answers for all ranges that some of a hundred public
ranges make up in a row, and a range of other ends is not offered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from partita.domain.category import Category
from partita.lazy import cached_property
from partita.public.axis.base import CellSet, Term
from partita.public.axis.flat import HistogramRelease
from partita.public.axis.spending_tree import SpendingTreeRelease
from partita.public.axis.tent_solver import PairEvidence, TentEvidence
from partita.public.axis.tents import TentRanges
from partita.public.axis.tree_solver import TreeSolution
from partita.public.bounds import LinearRanges, part_weights
from partita.public.conditions import OneOf
from partita.public.records import to_plain
from partita.public.release import Release
from partita.public.results import even_bins, find_bin_cells
from partita.public.views import OrderedColumn, ScaledView, View, find_view
from partita.public.window import Window, find_window

Written: TypeAlias = Any
"""Records of text, numbers and flat arrays, for a file."""

_MOST_CELLS: Final = 2**17  # of independent counts: a file of a megabyte
_MOST_PIECES: Final = 2**17  # and nodes of a tree: about ten megabytes
_MOST_PLACES: Final = 513  # tents: their table of covariances has two megabytes
_ALL_RANGES: Final = 160  # cells of a column of which every range has an answer: 200 kB
_POINTS: Final = 60  # public ranges in the window of a longer column, and as many on all of it
_SIDE: Final = 12  # public ranges on each side of a map (6,084 rectangles), and groups of a column of numbers
_MOST_GROUPS: Final = 500  # labels that rows are split by
_SMALL: Final = 30  # bins of the small charts of groups
_MOST_FIELDS: Final = 20_000  # bins of all small charts together
_MOST_SETS: Final = 6  # labels of which every set has an answer: 57 of them
MOST_TOGETHER: Final = 200  # labels that are summed up together
MOST_GROUP_SUMS: Final = 50  # groups of which a column has its sums and means: a few milliseconds each


class Span(NamedTuple):
    """The first and the last cell of a range."""

    low: int
    high: int


def join_spans(units: Sequence[Span]) -> list[Span]:
    """Every range that some neighbours make up, in the order of the first and then of the last of them.

    >>> join_spans([Span(0, 2), Span(3, 8)])
    [Span(low=0, high=2), Span(low=0, high=8), Span(low=3, high=8)]
    """
    return [Span(one.low, other.high) for place, one in enumerate(units) for other in units[place:]]


def _starts(window: Window, bins: int) -> list[int]:
    """The first cells of even bins of a window."""
    lows, _ = find_bin_cells(window.cells, even_bins(window.cells, bins))
    return [window.first + int(low) for low in lows]


def _spans(spans: Sequence[Span]) -> list[list[str]]:
    """Ranges of cells in text: cells may need all 64 bits."""
    return [list(map(str, span)) for span in spans]


@final
@dataclass(frozen=True, eq=False)
class ColumnEstimate:
    """One column of a release: its windows, its groups, and the model of its ranges."""

    release: Release
    column: str

    @cached_property
    def line(self) -> OrderedColumn:
        """The column with the counts along its cells."""
        return self.release.slice(self.column)

    @cached_property
    def window(self) -> Window:
        """Where nearly all rows lie."""
        return find_window(self.line)

    @property
    def size(self) -> int:
        """How many cells the column has."""
        return self.line.axis.size

    @cached_property
    def groups(self) -> list[Span]:
        """What rows are split into: each label, or some ranges of the window."""
        if isinstance(self.line.domain, Category):
            return [Span(cell, cell) for cell in range(min(self.size, _MOST_GROUPS))]
        return _units(self.window)

    @cached_property
    def units(self) -> list[Span] | None:
        """The public ranges that questions are about, one or several in a row; None where all ranges are."""
        return None if self._summed is not None or self.size <= _ALL_RANGES else self._all_units

    def counts(self, spans: Sequence[Span]) -> Written:
        """The counts of some ranges."""
        lows, highs = np.array(spans, np.uint64).T
        return {"values": self.line.axis.counts(lows, highs), "errors": self.line.axis.errors(lows, highs)}

    def record(self) -> Written:
        """The estimate and its errors."""
        model = self._summed or self._ranges()
        curve = self.line.axis.curve
        return {
            "column": self.column,
            "size": str(self.size),
            "basis": self.line.basis or None,
            "total": curve.total,
            "groups": _spans(self.groups),
            "units": None if self.units is None else _spans(self.units),
            "charts": [_spans(_bins(window, _POINTS)) for window in self._windows],
            "model": model,
        }

    @cached_property
    def _scaled(self) -> ScaledView:
        return find_view(self.release.scaled_views, (self.column,))

    @cached_property
    def _summed(self) -> Written | None:
        """The model of a column whose errors the script can sum; None for any other."""
        view = self._scaled.view
        if not isinstance(view, View):
            return None
        found = _sum_pieces(view.axis) or _sum_cells(view.axis, self.line)
        return None if found is None else {**found, "factor": self._scaled.factor}

    @property
    def _windows(self) -> tuple[Window, Window]:
        return self.window, Window(0, self.size - 1, self.size)

    @property
    def _all_units(self) -> list[Span]:
        whole = Window(0, self.size - 1, self.size)
        if self.size <= _ALL_RANGES:
            return [Span(cell, cell) for cell in range(self.size)]
        starts = {start for window in self._windows for start in _starts(window, _POINTS)}
        return _join(sorted({*starts, self.window.last + 1} - {self.size}), whole)

    def _ranges(self) -> Written:
        """The answers for all ranges of units in a row, and the curve up to each unit."""
        units = self._all_units
        return {
            "kind": "ranges",
            **self.counts(join_spans(units)),
            "starts": np.array([unit.low for unit in units], np.uint64),
            "upto": self.line.axis.curve.upto(np.array([unit.high for unit in units], np.uint64)),
        }

    @property
    def adds_up(self) -> bool:
        """Whether labels have independent counts, so that those of any set add up."""
        view = self._scaled.view
        return isinstance(view, View) and isinstance(view.axis, HistogramRelease) and self._labelled

    @property
    def sets(self) -> list[tuple[int, ...]]:
        """The sets of labels to ask for where counts do not add up; none where there are too many."""
        if self.adds_up or not self._labelled or self.size > _MOST_SETS:
            return []
        return [
            cells for number in range(2, self.size + 1) for cells in combinations(range(self.size), number)
        ]

    def set_question(self, cells: Sequence[int]) -> Mapping[str, OneOf]:
        """The condition that asks for some labels."""
        labels = self.line.domain.decode(list(cells))
        return {self.column: OneOf(tuple(str(to_plain(label)) for label in labels))}

    def reach(self, number: int, beta: float) -> float:
        """The noise of so many independent counts is larger with probability at most beta."""
        view = self._scaled.view
        assert isinstance(view, View)
        assert isinstance(view.axis, HistogramRelease)
        return view.axis.line.reach(number, beta)

    @property
    def _labelled(self) -> bool:
        return isinstance(self.line.domain, Category)


def _sum_cells(axis: object, line: OrderedColumn) -> Written | None:
    """Independent counts: the released sums of the first 0, 1, 2, ... cells, and the curve up to each."""
    if not isinstance(axis, HistogramRelease) or axis.size > _MOST_CELLS:
        return None
    cells = np.arange(axis.size, dtype=np.uint64)
    return {
        "kind": "cells",
        "sums": axis.line.running.astype(np.float64),
        "variance": axis.line.variance,
        "upto": line.axis.curve.upto(cells),
    }


def _sum_pieces(axis: object) -> Written | None:
    """A solved tree or solved tents, if they are no larger than a page should load."""
    if not isinstance(axis, SpendingTreeRelease | TentRanges):
        return None
    model = _describe_model(axis.linear)
    return None if model is None else {**_describe_pieces(axis.linear), "model": model}


def _describe_model(linear: LinearRanges) -> Written | None:
    """How the noise of pieces is correlated."""
    model = linear.model
    if isinstance(model, TreeSolution) and model.shape.first.size <= _MOST_PIECES:
        return {"kind": "tree", **model.error_tables()}
    if isinstance(model, TentEvidence | PairEvidence) and linear.pieces.ends.size <= _MOST_PIECES:
        return {"kind": "tents", **model.error_tables()} if model.places <= _MOST_PLACES else None
    return None


def _describe_pieces(linear: LinearRanges) -> Written:
    """The curve, the pieces of which errors are made, and what these may hold where a range cuts them."""
    curve, pieces = linear.curve, linear.pieces
    return {
        "kind": "pieces",
        "ends": curve.ends,
        "counts": curve.counts,
        "pieces": pieces.ends,
        "shares": part_weights(curve, pieces),
        "held": linear.held,
        "clustering": linear.clustering,
        "widening": linear.widening,
        "least_variance": linear.least_variance,
        "doubted": linear.doubts.cells,
        "doubts": linear.doubts.variances,
    }


# Two columns.


@final
@dataclass(frozen=True, eq=False)
class PairEstimate:
    """Two columns of one view: rectangles of a map, and small charts of one for each group of the other."""

    x: ColumnEstimate
    y: ColumnEstimate

    @property
    def release(self) -> Release:
        """The release of both."""
        return self.x.release

    def map(self, windows: tuple[Window, Window], bins: tuple[int, int]) -> Written:
        """The fields of a map, and the counts of all rectangles of a few public ranges in its windows.

        Beside it: the bins of each column alone, given each range of the other.
        """
        units = [_units(window) for window in windows]
        sides = list(map(join_spans, units))
        fine = [_bins(window, number) for window, number in zip(windows, bins, strict=True)]
        return {
            "bins": list(map(_spans, fine)),
            "fields": self._counts(*fine),
            "units": list(map(_spans, units)),
            "rectangles": self._counts(*sides),
            "alone": [each.counts(spans) for each, spans in zip((self.x, self.y), fine, strict=True)],
            "beside": [self._counts(fine[0], sides[1]), self._counts(sides[0], fine[1])],
        }

    def split(self) -> Written | None:
        """Small charts of the first column, in its window, for each group of the second."""
        bins = (
            [Span(cell, cell) for cell in range(self.x.size)]
            if isinstance(self.x.line.domain, Category)
            else _bins(self.x.window, _SMALL)
        )
        groups = self.y.groups
        whole = not isinstance(self.y.line.domain, Category) or len(groups) == self.y.size
        if not whole or len(bins) * len(groups) > _MOST_FIELDS:
            return None
        return {"bins": _spans(bins), **self._counts(groups, bins, swapped=True)}

    def _counts(self, one: Sequence[Span], other: Sequence[Span], *, swapped: bool = False) -> Written:
        """The counts of all pairs of ranges, those of the first in rows; `swapped` if these are of y."""
        first, second = (self.y, self.x) if swapped else (self.x, self.y)
        rows = np.indices((len(one), len(other))).reshape(2, -1).T
        groups = {
            each.column: [CellSet((Term(*span),)) for span in spans]
            for each, spans in zip((first, second), (one, other), strict=True)
        }
        found = self.release.count_cells(groups, rows, {})
        assert found is not None
        return {"values": found.values, "errors": found.error, "basis": found.basis or None}


def _bins(window: Window, number: int) -> list[Span]:
    return _join(_starts(window, number), window)


def _join(starts: Sequence[int], window: Window) -> list[Span]:
    """The ranges of a window that begin at these cells."""
    return list(map(Span, starts, [*(start - 1 for start in starts[1:]), window.last]))


def _units(window: Window) -> list[Span]:
    """The public ranges of one side of a map: each is one or several of those of the column."""
    starts = _starts(window, _POINTS)
    starts = starts[:: -(-len(starts) // _SIDE)]
    return _join(starts, window)
