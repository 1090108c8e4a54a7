"""A tree over parts in a row, measured on every level but the root's: least squares and its noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.base.tree_cover import Hierarchy
from partita.public.axis.curve.curve import Floats
from partita.public.bounds.query_error import spread_ranges

_TRIED: Final = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 128, 256)
_MOST_TRIED: Final = 128
_AT_ONCE: Final = 2**21


@final
@dataclass(frozen=True)
class PartTree:
    """Nodes of `branching` children over a row of parts, leaves first, all measured with the same noise."""

    parts: int
    branching: int

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """Which parts the nodes stand for."""
        return Hierarchy.of(size=self.parts, branching=self.branching, root=False)

    @property
    def levels(self) -> int:
        """How many nodes hold a part: the number of levels."""
        return self.hierarchy.levels

    @property
    def nodes(self) -> int:
        """The number of nodes on all levels."""
        return sum(self.hierarchy.nodes)

    @property
    def top(self) -> int:
        """The number of nodes of the highest level, the last ones."""
        return self.hierarchy.nodes[-1]

    def sums(self, parts: NDArray[Any]) -> NDArray[Any]:
        """The sum of every node, leaves first, from those of the parts along the last axis."""
        levels = [parts]
        for _ in range(self.levels - 1):
            levels.append(self.gathered(levels[-1]))
        return np.concatenate(levels, axis=-1)

    @cached_property
    def plain(self) -> Blend:
        """Least squares, by the measured nodes alone."""
        return Blend(self, np.full(self.parts, np.inf))

    def squares(self, asked: Floats) -> Floats:
        """The sum of the squared coefficients of each question, some questions at a time."""
        at_once = max(1, _AT_ONCE // self.nodes)
        blocks = (asked[start : start + at_once] for start in range(0, len(asked), at_once))
        return np.concatenate([np.square(self.plain(block).nodes).sum(axis=1) for block in blocks])

    @cached_property
    def typical(self) -> float:
        """The mean of that over ranges of parts, spread evenly over all ranges."""
        lows, highs = (ends[:: max(1, ends.size // _MOST_TRIED)] for ends in spread_ranges(self.parts))
        places = np.arange(self.parts)
        ranges = (places >= lows[:, np.newaxis]) & (places <= highs[:, np.newaxis])
        return float(self.squares(ranges.astype(np.float64)).mean())

    def gathered(self, nodes: NDArray[Any]) -> NDArray[Any]:
        """Sums over siblings."""
        return np.add.reduceat(nodes, np.arange(0, nodes.shape[-1], self.branching), axis=-1)

    def handed(self, parents: Floats, level: int) -> Floats:
        """For each node of a level its parent's number."""
        return np.asarray(parents[..., np.arange(self.hierarchy.nodes[level]) // self.branching])


class Coefficients(NamedTuple):
    """What the estimate of a linear question takes of the measured nodes, and of the guesses of parts."""

    nodes: Floats
    guesses: Floats


@final
@dataclass(frozen=True, eq=False)
class Blend:
    """Least squares from the measured nodes of a tree and guesses of its parts.

    `distrust` is the variance of each part's guess in units of that of a measurement; infinite where
    there is none. The estimate of any linear function of the parts is linear in both: once up and once down
    the tree finds the coefficients, and their squares times the variances add up to its variance.
    """

    tree: PartTree
    distrust: Floats

    def __call__(self, asked: Floats) -> Coefficients:
        """The coefficients for each linear question, a row of weights over the parts."""
        tree = self.tree
        pulls = [np.asarray(asked * np.ones_like(self.distrust))]
        for shares in self._shares:
            pulls.append(tree.gathered(pulls[-1] * shares))
        given, found = pulls[-1], []
        for level in range(tree.levels - 1, 0, -1):
            own = self._variances[level]
            found.append(given * own)
            given = pulls[level - 1] + tree.handed(given * (1.0 - own) - pulls[level], level - 1)
        own = self._variances[0]
        nodes = np.concatenate([given * own, *reversed(found)], axis=-1)
        return Coefficients(nodes, given * (1.0 - own))

    @cached_property
    def _variances(self) -> list[Floats]:
        """The variance of each node by itself and what is below it, in units of one measurement.

        Where all that is below has variance v, the best of both has v / (v + 1), which is also the share
        of the node's own measurement in it.
        """
        below, variances = self.distrust, []
        for level in range(self.tree.levels):
            variances.append(1.0 - 1.0 / (1.0 + below))
            below = self.tree.gathered(variances[level])
        return variances

    @cached_property
    def _shares(self) -> list[Floats]:
        """Which share of what siblings lack each node takes: that of its variance."""
        return [
            variances / self.tree.handed(self.tree.gathered(variances), level)
            for level, variances in enumerate(self._variances[:-1])
        ]


@lru_cache(maxsize=64)
def best_tree(parts: int) -> PartTree:
    """The tree whose noise is least for ranges of parts, every level counted: by exact variances."""
    tried = {min(branching, max(2, parts)) for branching in (*_TRIED, parts)}
    trees = [PartTree(parts, branching) for branching in sorted(tried)]
    return min(trees, key=lambda tree: tree.typical * tree.levels**2)
