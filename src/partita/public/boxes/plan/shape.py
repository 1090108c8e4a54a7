"""The nodes of a grown tree of boxes: its plan, and which nodes were cut further."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.numbers import freeze
from partita.public.axis.curve.curve import Bools, Ints
from partita.public.axis.tree_solver.tree_shape import Families
from partita.public.base.released import damaged
from partita.public.boxes.plan.families import families_of
from partita.public.boxes.plan.nodes import BoxNodes, Corners
from partita.public.boxes.plan.plan import BoxPlan


class _LevelBoxes(NamedTuple):
    """One level: its corners, and how many children each expanded node of the level above has."""

    lows: Corners
    highs: Corners
    sizes: Ints


@final
@dataclass(frozen=True, eq=False)
class BoxShape:
    """All nodes, the root first and breadth first; `levels` says how many there are of each level.

    Everything else about them follows from the plan and from which of them are `expanded`.
    """

    plan: BoxPlan
    levels: Ints
    expanded: Bools
    _below: list[_LevelBoxes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        count, levels = self.expanded.size, self.levels
        if not 2 <= levels.size <= len(self.plan.levels) + 1:
            raise damaged("levels", "must be a root and at most the levels of the schedule")
        if bool((levels < 1).any()) or bool((levels > count).any()) or levels.sum() != count:
            raise damaged("levels", "must hold the nodes")
        if levels[0] != 1 or not self.expanded[0] or bool(self.expanded[count - levels[-1] :].any()):
            raise damaged("nodes", "must begin with a root that is cut, and end with leaves")
        freeze(self, _below=self._cut_down())

    @staticmethod
    def join(plan: BoxPlan, expanded: Sequence[Bools]) -> BoxShape:
        """The shape that has these levels below the root."""
        levels = [np.ones(1, bool), *expanded]
        return BoxShape(plan, np.array([level.size for level in levels]), np.concatenate(levels))

    @cached_property
    def nodes(self) -> BoxNodes:
        """The box and the children of every node."""
        lows, highs = self.plan.corners(self.plan.root)
        children = np.zeros(self.expanded.size, np.int64)
        children[self.expanded] = np.concatenate([level.sizes for level in self._below])
        return BoxNodes(
            levels=self.levels,
            lows=np.concatenate([lows, *(level.lows for level in self._below)]),
            highs=np.concatenate([highs, *(level.highs for level in self._below)]),
            starts=1 + np.cumsum(children) - children,
            children=children,
        )

    @cached_property
    def families(self) -> list[Families]:
        """Every level below the root, as children of their parents."""
        return families_of(self.nodes)

    def _cut_down(self) -> list[_LevelBoxes]:
        """The levels below the root; each must have as many nodes as the cuts above it make."""
        below, front = [], self.plan.root
        for at, expanded in enumerate(np.split(self.expanded, np.cumsum(self.levels)[:-1])[1:]):
            cut = self.plan.cut(at, front)
            if not cut.sizes.all() or cut.sizes.sum() != expanded.size:
                raise damaged("nodes", "must be the children of the nodes that are cut")
            boxes = cut.boxes()
            below.append(_LevelBoxes(*self.plan.corners(boxes), cut.sizes))
            front = boxes.some(expanded)
        return below
