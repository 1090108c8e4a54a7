"""The views of all axes of a release in rank space, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.domain.axis import Axis
from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Curve, Floats, Ints, UInts
from partita.public.boxes.base.boxes import BoxTerm
from partita.public.boxes.cover.rake import prefix_variance
from partita.public.boxes.density.dependence import TOP_BITS, expected_counts
from partita.public.boxes.density.ranks import distribution, rank_edges, ranks_of
from partita.public.boxes.spending_boxes.spending_boxes import SpendingBoxesRelease

MOST_ROWS: Final = 2**61
"""No number of rows is taken to be larger, so that scores fit in 64 bits."""


class Estimate(NamedTuple):
    """A number and its variance."""

    value: float
    variance: float


@final
@dataclass(frozen=True, eq=False)
class RankViews:
    """A released tree for each axis alone. All else here is a function of what was released."""

    trees: tuple[SpendingBoxesRelease, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes, in order."""
        return tuple(tree.axes[0] for tree in self.trees)

    @cached_property
    def distributions(self) -> tuple[Curve, ...]:
        """How rows are distributed along each axis."""
        return tuple(distribution(tree.along(0, tree.everything)) for tree in self.trees)

    @cached_property
    def total(self) -> Estimate:
        """The number of rows: a mean over the views by inverse variance."""
        roots = [tree.solution.estimates for tree in self.trees]
        variance = 1.0 / sum(1.0 / float(each.variances[0]) for each in roots)
        return Estimate(variance * sum(float(each.values[0] / each.variances[0]) for each in roots), variance)

    @property
    def rows(self) -> int:
        """The number of rows as a whole number, from 0 to 2^61."""
        return min(MOST_ROWS, round(self.total.value))

    def edges(self, bits: int) -> tuple[UInts, ...]:
        """The edges of 2^bits slots along each axis that hold about equally many rows."""
        return tuple(rank_edges(each, bits) for each in self.distributions)

    @cached_property
    def top_edges(self) -> tuple[UInts, ...]:
        """The edges of the top ranks."""
        return self.edges(TOP_BITS)

    @cached_property
    def top_shares(self) -> tuple[Floats, ...]:
        """The share of the rows in each of the top ranks."""
        both = zip(self.distributions, self.top_edges, strict=True)
        return tuple(np.maximum(np.diff(ranks_of(shares, edges)), 0.0) for shares, edges in both)

    @cached_property
    def variances(self) -> Floats:
        """The mean variance of prefixes along each axis, by its own view."""
        both = zip(self.trees, self.distributions, strict=True)
        return np.array([prefix_variance(tree.engine.density, 0, shares) for tree, shares in both])

    @cached_property
    def specials(self) -> tuple[tuple[UInts, Floats], ...]:
        """Where the special cells of each axis lie, and the variances of the looks at them."""
        return tuple(map(_specials, self.trees))

    def bounds(self, box: BoxTerm, beta: float) -> tuple[float, float]:
        """Guaranteed bounds on a box by its sides.

        It lies in the range of each of its sides, so it has no more rows than the least of them; and
        of all rows it lacks no more than those outside of some side.
        """
        sides = self._sides(box)
        share = beta / (len(sides) + 1)
        lows, highs = zip(*(self._side(axis, box, share) for axis in sides), strict=True)
        return sum(lows) - (len(sides) - 1) * self.most(share), min(highs)

    def most(self, beta: float) -> float:
        """Guaranteed: there are no more rows."""
        share = beta / len(self.trees)
        return min(tree.answer(tree.everything).bounds(share)[1] for tree in self.trees)

    def _sides(self, box: BoxTerm) -> list[int]:
        """The axes along which the box is not everything; one axis if there is none."""
        ends = enumerate(zip(self.axes, box.low, box.high, strict=True))
        return [at for at, (axis, low, high) in ends if high - low + 1 < axis.width] or [0]

    def _side(self, axis: int, box: BoxTerm, beta: float) -> tuple[float, float]:
        """Guaranteed bounds on the rows between the ends of a box along one axis."""
        side = BoxTerm(box.low[axis : axis + 1], box.high[axis : axis + 1])
        return self.trees[axis].answer(side).bounds(beta)

    def expected(self, one: int, other: int) -> Ints:
        """What the cells of the top ranks of two axes hold if these are independent."""
        return expected_counts(self.rows, self.top_shares[one], self.top_shares[other])


def _specials(tree: SpendingBoxesRelease) -> tuple[UInts, Floats]:
    """The positions of special cells along the one axis of a tree, and the variance of the leaf of each."""
    (axis,), nodes = tree.axes, tree.shape.nodes
    places = np.array([*range(axis.before), *range(axis.before + axis.size, axis.width)], np.uint64)
    leaves = np.flatnonzero(nodes.leaves)
    ordered = leaves[np.argsort(nodes.lows[leaves, 0])]
    holding = ordered[np.searchsorted(nodes.lows[ordered, 0], places, side="right") - 1]
    return places, tree.solution.variances[holding]
