"""The tree of intervals that a spending tree may grow: a function of public numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Ints, UInts
from partita.public.axis.tree_solver.spending_rule import MOST_NODES, Evidence, SpendingRule


class Boxes(NamedTuple):
    """Boxes of cells first, ..., last, and which box above each is a part of."""

    first: UInts
    last: UInts
    parent: Ints


class Step(NamedTuple):
    """One level: each box above is cut into `children` boxes of `width` cells.

    `left` is the number of levels from this one on.
    """

    children: int
    width: int
    left: int

    def cut(self, first: UInts, size: int) -> Boxes:
        """The children of the boxes that begin at `first`, but for those without a cell below `size`."""
        starts = first[:, None] + np.arange(self.children, dtype=np.uint64) * np.uint64(self.width)
        parent, child = np.nonzero(starts < np.uint64(size))
        begin = starts[parent, child]
        return Boxes(begin, np.minimum(begin + np.uint64(self.width - 1), np.uint64(size - 1)), parent)


@final
@dataclass(frozen=True, kw_only=True)
class SpendingPlan(SpendingRule):
    """The rule over the cells 0, ..., size-1, where each node has up to `branching` children."""

    size: int
    branching: int

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The levels of a full tree: as many bits each as the branching has, the last one what remains."""
        each, bits = self.branching.bit_length() - 1, max(1, (self.size - 1).bit_length())
        levels = -(-bits // each)
        after = [max(0, bits - each * level) for level in range(levels + 1)]
        return tuple(
            Step(1 << (after[i] - after[i + 1]), 1 << after[i + 1], levels - i) for i in range(levels)
        )

    def expanded(self, step: Step, evidence: Evidence) -> Bools:
        """The nodes that are cut further; if their children were too many, those with the largest counts."""
        return self.cut(evidence, most=MOST_NODES // min(self.branching, step.width))
