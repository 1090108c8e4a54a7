"""Nodes are cut because they looked full, so their counts lean upwards, and by how much can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from partita.public.axis.curve.curve import Floats
from partita.public.axis.tree_solver.spending_rule import SURE, UNITS
from partita.public.axis.tree_solver.tree_looks import TreeLooks
from partita.public.axis.tree_solver.tree_shape import Families
from partita.public.boxes.plan.tree_recipe import Recipe

_FADING: Final = 4.0
"""A node that is so many noise scales above what it took to be cut leans by a factor of e less."""

_BELIEF: Final = 10.0
"""The precision of the belief that nodes do not lean, in units of their noise scales."""


@final
@dataclass(frozen=True, eq=False)
class Selection:
    """What the looks at a tree say about nodes that were cut, and about the children that followed.

    A node is cut if its noisy count is large, so noise that pushed it up has a part in it. The first looks at
    its children came after that and lean to no side. On every level the mean of what they lack, over all
    nodes that were cut, tells by how much the counts lean: by most where they were barely large enough.
    """

    families: Sequence[Families]
    looks: TreeLooks
    unit: float
    recipe: Recipe

    def righted(self, noisy: Floats, variances: Floats) -> Floats:
        """The noisy counts of all nodes; those of nodes that were cut without what they lean."""
        scales, first = np.sqrt(variances / 2), self.looks.first(noisy.size)
        values, noise = self.looks.values[first], 1.0 / self.looks.rates(self.unit)[first]
        needed, righted = self._needed(scales), noisy.copy()
        for family in self.families[1:]:
            nodes = family.parents
            above = (noisy[nodes] - needed[nodes]) / scales[nodes]
            weight = np.exp(-np.maximum(0.0, above) / _FADING)
            lacking = (noisy[nodes] - family.sum(values[family.nodes])) / scales[nodes]
            precision = 1.0 / (2.0 + family.sum(2.0 * noise[family.nodes] ** 2) / scales[nodes] ** 2)
            lean = (lacking * weight) @ precision / (weight**2 @ precision + _BELIEF)
            righted[nodes] -= max(0.0, float(lean)) * weight * scales[nodes]
        return righted

    def _needed(self, scales: Floats) -> Floats:
        """How large the noisy count of each node had to be for it to be cut."""
        left = (UNITS - self.looks.spent(scales.size, self.families)) * self.unit
        worth = np.divide(float(self.recipe.worth), left, out=np.full(scales.size, np.inf), where=left > 0)
        return np.asarray(np.maximum(SURE * scales, worth))
