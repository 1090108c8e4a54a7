"""Disjoint boxes that share out the total of a tree of trees: for what needs a density, not a cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from partita.public.axis.curve.apportion import apportion
from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.boxes.density.measure import Even, Stretches
from partita.public.boxes.plan.nodes import Corners
from partita.public.boxes.tree_of_trees.paper_segments import Segments
from partita.public.boxes.tree_of_trees.tree_of_trees import Stage, TreeOfTrees


@final
@dataclass(frozen=True, eq=False)
class Pieces:
    """Disjoint boxes lows, ..., highs, and how much lies in each, spread evenly inside."""

    lows: Corners
    highs: Corners
    masses: Floats

    @staticmethod
    def of(trees: TreeOfTrees, segments: Segments) -> Pieces:
        """The total from the top down: a node hands all it has to its kept children, by their noisy counts.

        What has no kept children is cut along the next axis by its own tree; what has no tree there is a
        piece. So a pruned node has nothing, as in the covers, and the pieces add up to the count of the
        first root; if that was pruned, everything is one piece and holds nothing.
        """
        open_, done = _Parts.everything(trees), []
        for axis, stage in enumerate(trees.stages):
            rooted = stage.find(np.arange(open_.masses.size), np.ones(open_.masses.size, np.int64)) >= 0
            done.append(open_.some(~rooted))
            open_ = open_.handed_down(stage, axis)
        firsts, lasts, masses, _ = (
            np.concatenate(series) for series in zip(*done, open_.some(open_.alive), strict=True)
        )
        return Pieces(*segments.boxes(firsts, lasts), masses)

    def within(self, lows: Corners, highs: Corners) -> tuple[Floats, tuple[Corners, Corners], Floats]:
        """What the pieces that meet a box hold, the part of each inside of the box, and its share."""
        meet = ((self.lows <= highs) & (self.highs >= lows)).all(axis=1)
        inside = np.maximum(self.lows[meet], lows), np.minimum(self.highs[meet], highs)
        even = [Even()] * self.lows.shape[1]
        whole, part = Stretches.along(even, self.lows[meet], self.highs[meet]), Stretches.along(even, *inside)
        shares = [own.shares(common) for own, common in zip(whole, part, strict=True)]
        return self.masses[meet], inside, np.prod(shares, axis=0)

    def points(self, rows: int) -> Corners:
        """Rows in proportion to the masses; inside of a piece they follow each other by irrational steps."""
        weights = self.masses if self.masses.any() else np.ones(self.masses.size)
        shares = apportion(rows, weights)
        piece = np.repeat(np.arange(shares.size), shares)
        lows, wide = self.lows[piece], (self.highs - self.lows)[piece]
        turns = np.outer(np.arange(1, rows + 1), _steps(lows.shape[1])) % 1.0
        steps = np.floor(turns * (wide.astype(np.float64) + 1.0))
        return np.asarray(lows + np.minimum(steps.astype(np.uint64), wide))


class _Parts(NamedTuple):
    """Boxes of segments on the way down, what each has, and which of them have anything left to share out."""

    firsts: Ints
    lasts: Ints
    masses: Floats
    alive: Bools

    @staticmethod
    def everything(trees: TreeOfTrees) -> _Parts:
        ends = np.array([[tree.size - 1 for tree in trees.trees]])
        total = trees.stages[0].values[:1]
        return _Parts(np.zeros_like(ends), ends, total if total.size else np.zeros(1), np.ones(1, bool))

    def some(self, chosen: Bools) -> _Parts:
        """Those of the chosen that are alive."""
        left = chosen & self.alive
        return _Parts(self.firsts[left], self.lasts[left], self.masses[left], self.alive[left])

    def handed_down(self, stage: Stage, axis: int) -> _Parts:
        """The nodes of the trees that these own, each with what its owner hands down to it."""
        firsts, lasts = self.firsts[stage.owners], self.lasts[stage.owners]
        firsts[:, axis], behind = stage.tree.spans(stage.nodes)
        lasts[:, axis] = behind - 1
        masses = _shared_out(stage, np.where(self.alive, self.masses, 0.0))
        return _Parts(firsts, lasts, masses, masses > 0)


def _shared_out(stage: Stage, masses: Floats) -> Floats:
    """What each node without kept children gets of what its owner has; the others keep nothing."""
    held = np.where(stage.nodes > 1, 0.0, masses[stage.owners])
    for level in stage.by_depth[1:]:
        parents = stage.parents[level]
        held[level] = held[parents] * stage.values[level] / stage.below[parents]
    return np.where(stage.below > 0, 0.0, held)


def _steps(axes: int) -> Floats:
    """Steps along each axis whose multiples, without their whole parts, spread evenly over the unit cube.

    Powers of the root of x^(axes+1) = x + 1, the golden ratio for one axis.
    """
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (axes + 1))
    return root ** -np.arange(1.0, axes + 1)
