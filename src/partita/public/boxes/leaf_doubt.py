"""What the errors of trees leave out: one value in a wide leaf, and leaves in which noise hides the rows.

A tree spreads its leaves evenly, and its errors are right where the ends of a range may be anywhere. But
people ask for values that rows have. If a leaf that is fuller than its surroundings is full because of one
value, then a range with that value has all of its rows, however little of the leaf it takes. And leaves in
which noise hides the rows hold a little each that may not be there; others then lack all of that together.
Everything here is a function of released numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, UInts
from partita.domain.axis import Axis
from partita.lazy import cached_property
from partita.public.boxes.cover import NodeSurroundings, cover, sum_boxes
from partita.public.boxes.density import BoxDensity, Stretches
from partita.public.boxes.engine import BoxEngine
from partita.public.boxes.plan import Corners
from partita.public.boxes.spending_boxes import SpendingBoxesRelease

_TINY: Final = 1e-9

# Chosen on made-up columns of 2,000 to 10^9 cells, some with one value in 97% or half of the rows: 95%
# intervals of ranges between two random rows covered .04 to 1 of those before, and with this .76 to 1, .98 in
# the mean. Other shapes had .99 before and after, 4.2 and 4.5 mean errors wide.
_ONE_VALUE: Final = math.sqrt(0.2)  # times what a cut leaf has beyond its surroundings
_LEANING: Final = 0.8  # times what leaves hold in which noise hides the rows
_HIDDEN: Final = 0.6  # noise scales: a leaf of less is such a leaf
_WIDENED: Final = 1.3  # of errors of trees: what is added to them is widened alike


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
    questions about an ordered column alone: audits see the others. `scales` are the noise scales of leaves.
    """

    axes: tuple[Axis, ...]
    tree: BoxEngine
    scales: Floats

    def widen(self, errors: Floats, lows: Corners, highs: Corners, parts: int = 1) -> Floats:
        """The standard errors of boxes, or of the sums of some, with what they lack."""
        least = np.maximum(errors, self._one_value(lows, highs, parts))
        return np.hypot(least, self._leaning(lows, highs, parts))

    def _one_value(self, lows: Corners, highs: Corners, parts: int) -> Floats:
        """By how much boxes err if each cut leaf is full because of one value."""
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
            found += np.bincount(at, inside * self._excess[leaves], minlength=found.size)
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
    def _excess(self) -> Floats:
        """What each leaf has beyond its surroundings."""
        density = self.tree.density
        leaves, found = np.flatnonzero(density.nodes.leaves), np.zeros(density.nodes.children.size)
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
