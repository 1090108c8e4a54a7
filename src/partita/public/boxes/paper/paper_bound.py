"""How far the sum of the kept nodes of a cover can lie from the truth, for certain [DNRR15, Thm 3.3].

The proofs are in docs/proofs/paper_rectangles.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, final

import numpy as np

from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.bounds.query_error import largest_reach
from partita.public.bounds.tails import chernoff, laplace_sum_reach
from partita.public.boxes.tree_of_trees.tree_of_trees import Stage, TreeOfTrees, nodes_in_all

_SHARES: Final = np.concatenate([np.geomspace(1e-6, 0.5, 192), 1.0 - np.geomspace(0.5, 1e-4, 48)[1:]])


class _Margins(NamedTuple):
    """The truth lies between value - above and value + below; no noise of a node is beyond `node`."""

    above: float
    below: float
    node: float


class _Size(NamedTuple):
    """How many nodes a cover looks for in the last dimension, how many it does not find there, and how
    many it misses in all dimensions.
    """

    looked: int
    lost: int
    missed: int


@final
@dataclass(frozen=True, eq=False)
class PaperBounds:
    """What a tree of trees says for certain, if every node had noise of this scale."""

    trees: TreeOfTrees
    scale: Fraction

    def upper(self, firsts: Ints, lasts: Ints, beta: float) -> float:
        """No more lies in a box of segments, except with probability beta."""
        value, size = self._cover(firsts, lasts)
        margins = self._margins(size, beta)
        return min(value + margins.below, self._everything(margins.node))

    def lower(self, firsts: Ints, lasts: Ints, beta: float) -> float:
        """No less lies in a box of segments, except with probability beta."""
        value, size = self._cover(firsts, lasts)
        return max(0.0, value - self._margins(size, beta).above)

    def error(self, wide: Sequence[Bools], beta: float) -> float:
        """With probability 1 - beta no answer misses the truth by more; `wide` segments can be cut.

        An answer that is too large has noise in it, and what the segments that are cut hold outside;
        one that is too small has noise in it, and lacks what was pruned. Nor is an answer further off than
        it and everything there is.
        """
        boxes = math.prod(tree.size * (tree.size + 1) // 2 for tree in self.trees.trees)
        margins = self._margins(self._largest, beta, boxes=boxes)
        everything = self._everything(margins.node)
        outside = sum(self._heaviest(axis, each, margins.node) for axis, each in enumerate(wide))
        above = min(margins.above + min(outside, everything), self._largest_answer)
        return max(above, min(margins.below, everything))

    def _cover(self, firsts: Ints, lasts: Ints) -> tuple[float, _Size]:
        cover = self.trees.cover(firsts, lasts)
        looked, found = int(cover.looked[0]), cover.places
        size = _Size(looked, looked - found.size, int(cover.missed[0]))
        return float(self.trees.stages[-1].values[found].sum()), size

    @property
    def _largest(self) -> _Size:
        """No cover is larger, given how many nodes of each dimension but the last were kept."""
        looked, missed, owners = 0, 0, 1
        for stage in self.trees.stages:
            looked = owners * stage.tree.most
            missed, owners = missed + looked, min(looked, stage.nodes.size)
        return _Size(looked, looked, min(missed, math.prod(tree.most for tree in self.trees.trees)))

    @property
    def _largest_answer(self) -> float:
        """No cover has a larger sum: its nodes lie apart, and so do the nodes that own their trees."""
        worth = self.trees.stages[-1].values
        owners = [1, *(stage.nodes.size for stage in self.trees.stages[:-1])]
        for stage, number in zip(self.trees.stages[::-1], owners[::-1], strict=True):
            worth = _handed_up(stage, worth, number)
        return float(worth[0])

    def _margins(self, size: _Size, beta: float, *, boxes: int = 1) -> _Margins:
        """What holds for so many boxes at once whose covers are no larger.

        A third of beta each for: the noise of every single node; the positive and the negative parts of
        the noises that were looked for; and their whole sum.
        """
        share = beta / 3
        node = largest_reach(self.scale, nodes_in_all(self.trees.trees), share)
        parts = one_sided_reach(self.scale, size.looked, share / (2 * boxes))
        whole = laplace_sum_reach(self.scale, size.looked, share / boxes)
        above = min(parts, whole + size.lost * node)
        return _Margins(above, above + size.missed * self._pruned(node), node)

    def _pruned(self, node: float) -> float:
        """A node that was pruned, or lies below one that was, holds no more."""
        return self.trees.floor - 1 + node

    def _everything(self, node: float) -> float:
        """No more rows are there in all."""
        root = self.trees.stages[0].values[:1]
        return float(root[0]) + node if root.size else self._pruned(node)

    def _heaviest(self, axis: int, wide: Bools, node: float) -> float:
        """No more lies in the two heaviest segments of an axis among those that are wide.

        Segments are leaves of the tree that is reached through the roots of the dimensions before.
        """
        owner, root = np.zeros(1, np.int64), np.ones(1, np.int64)
        for stage in self.trees.stages[:axis]:
            owner = stage.find(owner, root)
        stage = self.trees.stages[axis]
        leaves = np.flatnonzero(wide) + (1 << (stage.tree.levels - 1))
        found = stage.find(np.repeat(owner, leaves.size), leaves)
        held = np.append(stage.values, self.trees.floor - 1)[found] + node
        return float(np.sort(held)[-2:].sum())


def _handed_up(stage: Stage, worth: Floats, owners: int) -> Floats:
    """For each owner the largest sum of what nodes of its tree are worth that lie apart."""
    best, below = np.zeros(stage.nodes.size), np.zeros(stage.nodes.size)
    for level in reversed(stage.by_depth):
        best[level] = np.maximum(worth[level], below[level])
        inner = level[stage.nodes[level] > 1]
        np.add.at(below, stage.parents[inner], best[inner])
    roots = stage.by_depth[0]
    return np.bincount(stage.owners[roots], best[roots], owners).astype(np.float64)


def one_sided_reach(scale: Fraction, terms: int, beta: float) -> float:
    """t with P[X1^+ + ... + Xm^+ > t] <= beta for the positive parts of discrete Laplace noises.

    No choice among the noises, whatever it looks at, has a larger sum. By symmetry the same holds for
    the negative parts.
    """
    if terms == 0:
        return 0.0
    rate = float(1 / scale)
    points = rate * _SHARES
    return float(chernoff(points, terms * _log_moments(points, rate), beta).min())


def _log_moments(x: Floats, rate: float) -> Floats:
    """ln E[exp(x X^+)] = ln(1 + a (e^x - 1) / ((1 + a) (1 - a e^x))), a = exp(-rate), 0 < x < rate."""
    a = np.exp(-rate)
    return np.asarray(np.log1p((np.exp(x - rate) - a) / ((1.0 + a) * -np.expm1(x - rate))))
