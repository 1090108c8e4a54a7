"""What the errors of trees leave out: values that many rows share, and leaves in which noise hides the rows.

A tree spreads its leaves evenly, and its errors are right where the ends of a range may be anywhere. But
people ask for values that rows have. If a leaf that is fuller than its surroundings is full because of one
value, then a range with that value has all of its rows, however little of the leaf it takes. Where every leaf
has such a value, none is fuller than the others: beside labels an audit measures how many rows share values.
And leaves in which noise hides the rows hold a little each that may not be there; others then lack all of it.
Everything here is a function of released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, UInts
from partita.domain.axis import Axis
from partita.lazy import cached_property
from partita.public.axis.curve import Curve
from partita.public.boxes.cover import NodeSurroundings, cover, sum_boxes
from partita.public.boxes.density import BoxDensity, Stretches
from partita.public.boxes.engine import BoxEngine
from partita.public.boxes.plan import Corners
from partita.public.boxes.spending_boxes import SpendingBoxesRelease
from partita.public.boxes.view_audits import AuditGrid

_TINY: Final = 1e-9
_ONE: Final = np.uint64(1)

# Chosen on made-up columns of 2,000 to 10^9 cells, some with one value in 97% or half of the rows: 95%
# intervals of ranges between two random rows covered .04 to 1 of those before, and with this .76 to 1, .98 in
# the mean. Other shapes had .99 before and after, 4.2 and 4.5 mean errors wide.
_ONE_VALUE: Final = math.sqrt(0.2)  # times what a cut leaf has beyond its surroundings
_LEANING: Final = 0.8  # times what leaves hold in which noise hides the rows
_HIDDEN: Final = 0.6  # noise scales: a leaf of less is such a leaf
_WIDENED: Final = 1.3  # of errors of trees: what is added to them is widened alike

_PIECES: Final = 8  # of a stretch between two ends of leaves: values that rows share fill one of them
_MOST_STRETCHES: Final = 512  # of an axis: more take time
_MEAN_TO_SD: Final = 0.8  # the mean of |x| of a normal law of deviation one
# What may be heaped: of every leaf so many times the share of all rows that is; of what a leaf has beyond
# its surroundings the root of so many times the part of all of that. Chosen on half of some made-up
# families: there ranges between two rows were covered .70 to 1 at epsilon .1 without the audit and .97 to 1
# with it. With 2 in place of the second, those of one family were covered .88 at 1; with the root of the
# first and all that is beyond, single values of a smooth one had intervals of 9 mean errors in place of 5.
_HEAPED, _HEAPED_BEYOND = 2.0, 4.0


class Heaps(NamedTuple):
    """How many rows of leaves share a value with others, by an audit: a share, and a number at most."""

    share: float
    rows: float


def list_pieces(axes: Sequence[Axis], tree: BoxEngine, curves: Mapping[int, Curve]) -> list[AuditGrid]:
    """For each ordered axis pieces of what lies between ends of leaves: the grids of one audit.

    No leaf ends inside of a stretch, so that its pieces are told apart by nothing but how rows are spread.
    The stretches are those that seem to hold most rows, of all that lie in a leaf of several positions, be it
    of one label only. Where leaves tell every position, all are one piece.
    """
    lows, highs = (ends[tree.nodes.leaves] for ends in (tree.nodes.lows, tree.nodes.highs))
    return [
        _cut_stretches(axis, lows[:, axis], highs[:, axis], curves[axis])
        for axis, line in enumerate(axes)
        if not line.labels
    ]


def _cut_stretches(axis: int, lows: UInts, highs: UInts, curve: Curve) -> AuditGrid:
    """The pieces along an axis on which leaves have these ends."""
    firsts, lasts = np.unique(lows), np.unique(highs)
    wide = highs > lows
    if not wide.any():
        return AuditGrid((axis,), (firsts[:1],), (lasts[-1:],))
    starts, stops = (
        np.bincount(np.searchsorted(firsts, lows[wide]), minlength=firsts.size),
        np.bincount(np.searchsorted(lasts, highs[wide]) + 1, minlength=firsts.size + 1)[:-1],
    )
    inside = np.cumsum(starts - stops) > 0
    firsts, lasts = firsts[inside], lasts[inside]
    fullest = np.sort(np.argsort(-curve.between(firsts, lasts), kind="stable")[:_MOST_STRETCHES])
    first, span = firsts[fullest, np.newaxis], (lasts - firsts)[fullest, np.newaxis]
    step = span // np.uint64(_PIECES) + _ONE
    offsets = np.arange(_PIECES, dtype=np.uint64) * step
    there = offsets <= span
    offsets = np.where(there, offsets, span)
    ends = np.where(span - offsets < step, span, offsets + step - _ONE)
    return AuditGrid((axis,), ((first + offsets)[there],), ((first + ends)[there],))


def find_heaps(tree: BoxEngine, grids: Sequence[AuditGrid], misfit: float, widths: Sequence[int]) -> Heaps:
    """What the misfit of pieces says about values that rows share: all beyond noise and chance.

    A heap of x rows in a leaf of which f lies in a piece is missed by (1 - f) x with chance f, and by f x
    otherwise: by 2 f (1 - f) x on average.
    """
    corners = zip(*(grid.boxes(widths) for grid in grids), strict=True)
    lows, highs = (np.concatenate(each) for each in corners)
    variances, heaped = np.zeros(len(lows)), np.zeros(len(lows))
    held, boxes = tree.density.held, Stretches.along(tree.density.measures, lows, highs)
    for box, node, share in cover(tree.density, boxes):
        rows = np.maximum(held.values[node], 0.0)
        variances += np.bincount(box, share**2 * held.variances[node] + share * rows, minlength=len(lows))
        heaped += np.bincount(box, 2.0 * share * (1.0 - share) * rows, minlength=len(lows))
    beyond = max(0.0, misfit - _MEAN_TO_SD * float(np.sqrt(variances).sum()))
    return Heaps(min(1.0, beyond / max(float(heaped.sum()), _TINY)), beyond * _PIECES / (2 * (_PIECES - 1)))


@final
@dataclass(frozen=True, eq=False)
class LeafDoubt:
    """What the errors of the tree of one column lack."""

    lows: UInts
    cells: Floats
    squares: Floats
    one_value: Floats
    hidden: Floats
    others: Floats

    @staticmethod
    def of(tree: SpendingBoxesRelease) -> LeafDoubt:
        """The doubt about the tree of one column."""
        nodes, held = tree.engine.nodes, tree.engine.density.held
        leaves = np.flatnonzero(nodes.leaves)
        leaves = leaves[np.argsort(nodes.lows[leaves, 0])]
        values, variances = held.values[leaves], held.variances[leaves]
        lows, highs = nodes.lows[leaves, 0], nodes.highs[leaves, 0]
        around = tree.solution.expected
        alike = np.zeros(leaves.size) if around is None else np.nan_to_num(around[leaves])
        hides = values < _HIDDEN * np.sqrt(tree.solution.variances[leaves] / 2)
        others = np.where(hides, 0.0, variances)
        return LeafDoubt(
            lows,
            (highs - lows).astype(np.float64) + 1.0,
            held.squares[leaves],
            (_ONE_VALUE * np.maximum(values - alike, 0.0)) ** 2,
            np.where(hides, values, 0.0),
            others / max(float(others.sum()), _TINY),
        )

    def variances(self, lows: UInts, highs: UInts) -> Floats:
        """What the variance of each of many single runs lacks."""
        ends, leaning = self._measure(lows, highs)
        return _WIDENED**2 * (ends + leaning**2)

    def variance(self, lows: UInts, highs: UInts, signs: Floats) -> float:
        """What the variance of a signed sum of runs lacks."""
        ends, leaning = self._measure(lows, highs)
        return float(_WIDENED**2 * (ends.sum() + float(signs @ leaning) ** 2))

    def _measure(self, lows: UInts, highs: UInts) -> tuple[Floats, Floats]:
        """For each run the variance at its ends, and by how much hidden leaves may lean in it."""
        (first, below), (last, upto) = self._place(lows), self._place(highs, behind=1.0)
        alone = first == last
        ends = self._cut(first, np.where(alone, upto - below, 1.0 - below))
        ends += np.where(alone, 0.0, self._cut(last, upto))
        held, share = (
            np.cumsum(each)[last]
            - (1.0 - upto) * each[last]
            - np.cumsum(each)[first]
            + (1.0 - below) * each[first]
            for each in (self.hidden, self.others)
        )
        return ends, _LEANING * (held - share * float(self.hidden.sum()))

    def _place(self, positions: UInts, behind: float = 0.0) -> tuple[NDArray[np.intp], Floats]:
        """The leaf of each position, and the part of it before that, or up to it."""
        leaf = np.searchsorted(self.lows, positions, side="right") - 1
        return leaf, ((positions - self.lows[leaf]).astype(np.float64) + behind) / self.cells[leaf]

    def _cut(self, leaf: NDArray[np.intp], part: Floats) -> Floats:
        """What the errors of the tree lack where a part of a leaf is taken."""
        lacking = self.one_value[leaf] - part * (1.0 - part) * self.squares[leaf]
        return np.where(part < 1.0, np.maximum(lacking, 0.0), 0.0)


@final
@dataclass(frozen=True, eq=False)
class BoxDoubt:
    """What the errors of a tree of boxes that was drawn towards views lack.

    Leaves of many labels may have the same value, so that they are taken to err alike. Leaning is added to
    questions about an ordered column alone: audits see the others. `scales` are the noise scales of leaves,
    and `heaps` what an audit says about values that rows share, None in files of old versions.
    """

    axes: tuple[Axis, ...]
    tree: BoxEngine
    scales: Floats
    heaps: Heaps | None = None

    def widen(self, errors: Floats, lows: Corners, highs: Corners, parts: int = 1) -> Floats:
        """The standard errors of boxes, or of the sums of some, with what they lack."""
        least = np.maximum(errors, self._one_value(lows, highs, parts))
        return np.hypot(least, self._leaning(lows, highs, parts))

    def _one_value(self, lows: Corners, highs: Corners, parts: int) -> Floats:
        """By how much boxes err if one value has what each cut leaf may have of such rows."""
        density, found = self.tree.density, np.zeros(len(lows))
        boxes = Stretches.along(density.measures, lows, highs)
        for box, node, share in cover(density, boxes):
            cut = np.flatnonzero(share < 1.0)
            at, leaves = box[cut], node[cut]
            along = np.ones(cut.size)
            for axis, line in enumerate(self.axes):
                if not line.labels:
                    own = density.stretches[axis].at(leaves)
                    along *= own.shares(own.within(boxes[axis].at(at)))
            inside = np.where(along < 1.0, share[cut] / np.maximum(along, _TINY), 0.0)
            found += np.bincount(at, inside * self._heaped[leaves], minlength=found.size)
        return np.asarray(_WIDENED * _ONE_VALUE * found.reshape(-1, parts).sum(axis=1))

    def _leaning(self, lows: Corners, highs: Corners, parts: int) -> Floats:
        last = np.array([axis.width - 1 for axis in self.axes], np.uint64)
        each = np.asarray((lows > 0) | (highs < last)).reshape(-1, parts, len(self.axes))
        bounded = np.asarray(each.any(axis=1))
        labels = np.array([line.labels for line in self.axes])
        alone = (bounded.sum(axis=1) == 1) & ~bounded[:, labels].any(axis=1)
        found = np.zeros(len(bounded))
        if alone.any():
            rows = np.repeat(alone, parts)
            boxes = Stretches.along(self.tree.measures, lows[rows], highs[rows])
            hidden, others = (
                sum_boxes(each, boxes).values.reshape(-1, parts).sum(axis=1) for each in self._apart
            )
            (all_hidden, all_others) = (float(each.held.values[0]) for each in self._apart)
            found[alone] = _WIDENED * _LEANING * (hidden - others / max(all_others, _TINY) * all_hidden)
        return found

    @cached_property
    def _heaped(self) -> Floats:
        """The rows of each leaf that may share a value: what it has beyond its surroundings, or as others.

        Few leaves may have all heaps, so that the share of one counts for more than that of all.
        """
        if self.heaps is None:
            return self._excess
        usual = min(1.0, _HEAPED * self.heaps.share) * self.tree.density.held.values
        share = self.heaps.rows / max(float(self._excess.sum()), _TINY)
        return np.asarray(np.maximum(min(1.0, math.sqrt(_HEAPED_BEYOND * share)) * self._excess, usual))

    @cached_property
    def _excess(self) -> Floats:
        """What each leaf has beyond its surroundings, if a range can cut it."""
        density = self.tree.density
        nodes, ordered = density.nodes, [number for number, axis in enumerate(self.axes) if not axis.labels]
        wide = (nodes.highs[:, ordered] > nodes.lows[:, ordered]).any(axis=1)
        leaves, found = np.flatnonzero(nodes.leaves & wide), np.zeros(nodes.children.size)
        around = np.nan_to_num(NodeSurroundings(density, self.axes, leaves).expected())
        found[leaves] = np.maximum(density.held.values[leaves] - around, 0.0)
        return found

    @cached_property
    def _apart(self) -> tuple[BoxDensity, BoxDensity]:
        """Rows of leaves in which noise hides them, and variances of the others."""
        density = self.tree.density
        values, leaves = density.held.values, density.nodes.leaves
        hides = values < _HIDDEN * self.scales
        parts = (np.where(leaves & hides, values, 0.0), np.where(leaves & ~hides, self.tree.variances, 0.0))
        hidden, others = (
            BoxDensity.of(density.nodes, density.measures, each, np.zeros_like(each)) for each in parts
        )
        return hidden, others
