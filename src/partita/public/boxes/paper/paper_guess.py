"""What to expect of a tree of trees before anything is counted, if rows lie evenly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import accumulate
from typing import Final, final

import numpy as np

from partita.public.axis.curve.curve import Bools, Floats
from partita.public.bounds.query_error import spread_ranges
from partita.public.bounds.tails import laplace_variance
from partita.public.boxes.tree_of_trees.tree_of_trees import SegmentTree

_SPREAD: Final = math.sqrt(3 / 2)
"""The root-mean-square length of a random range, sqrt(1/6), over its mean, 1/3."""


@final
@dataclass(frozen=True)
class Guess:
    """Rows spread evenly over so many segments on each axis; a box is a random range along each.

    The depth of a node is counted over all axes together; each step down halves what a node holds.
    """

    rows: int
    segments: tuple[int, ...]
    scale: Fraction
    floor: int

    @property
    def error(self) -> float:
        """About the root-mean-square error of a random box: noise, pruned nodes, and segments cut."""
        covers = reduce(np.convolve, [_cover(tree) for tree in self._trees])
        held, kept = self._nodes(covers.size)
        noise = math.sqrt(float(covers[kept].sum()) * laplace_variance(self.scale))
        pruned = float(covers[~kept] @ held[~kept]) * _SPREAD ** len(self.segments)
        cut = sum(self.rows / size for size in self.segments) / 3 ** (len(self.segments) - 1)
        return math.hypot(noise, pruned, cut)

    @property
    def numbers(self) -> int:
        """About how many integers are released: the edges, and three for each kept node."""
        levels = [np.array(tree.hierarchy.nodes[::-1], np.float64) for tree in self._trees]
        kept = sum(
            float(nodes[self._nodes(nodes.size)[1]].sum()) for nodes in accumulate(levels, np.convolve)
        )
        return sum(self.segments) + 3 * int(kept)

    @property
    def _trees(self) -> list[SegmentTree]:
        return [SegmentTree(size) for size in self.segments]

    def _nodes(self, depths: int) -> tuple[Floats, Bools]:
        """What a node holds at each depth, and whether it is kept. Trees are not full: nodes hold more."""
        full = math.prod(2 ** (tree.levels - 1) / tree.size for tree in self._trees)
        held = np.minimum(np.ldexp(self.rows * full, -np.arange(depths)), float(self.rows))
        return held, held >= self.floor


def _cover(tree: SegmentTree) -> Floats:
    """How many nodes of each depth are in the cover of a random run of segments, in the mean."""
    numbers = tree.hierarchy.numbers(*spread_ranges(tree.size))
    return np.array([float(number.mean()) for number in numbers[::-1]])
