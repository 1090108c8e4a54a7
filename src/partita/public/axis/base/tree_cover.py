"""The fewest nodes of a tree that make up an interval [SU, Claim 2.3]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Ints


@final
@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """A hierarchy over the cells 0, ..., size-1, leaves first: level l has nodes of branching^l cells.

    The last level need not be the root; intervals that are wider than its nodes take several of them.

    >>> Hierarchy.of(size=10, branching=3).nodes, Hierarchy.of(size=10, branching=3, root=False).nodes
    ((10, 4, 2, 1), (10, 4, 2))
    """

    size: int
    branching: int
    levels: int

    @staticmethod
    def of(*, size: int, branching: int, root: bool = True) -> Hierarchy:
        """The tree up to its root, or to the level below; a single cell is its own root and stays."""
        levels, width = 1, 1
        while width < size:
            levels, width = levels + 1, width * branching
        return Hierarchy(size=size, branching=branching, levels=max(1, levels if root else levels - 1))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Cells per node on each level."""
        return tuple(self.branching**level for level in range(self.levels))

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """Nodes on each level."""
        return tuple(-(-self.size // width) for width in self.widths)

    @cached_property
    def most(self) -> tuple[int, ...]:
        """No cover has more nodes than this on a level: two runs of siblings, or a run of the last level."""
        *lower, top = self.nodes
        return (*(min(nodes, 2 * (self.branching - 1)) for nodes in lower), top)

    def runs(self, lows: Ints, highs: Ints) -> Iterator[tuple[int, Ints, Ints]]:
        """The covers of many intervals at once: (level, first nodes, nodes behind the last), two per level.

        A run may be empty. From each level an interval takes what does not fill a node above.
        """
        low, behind = lows, highs + 1
        for level, nodes in enumerate(self.nodes):
            up, down = -(-low // self.branching), behind // self.branching
            down = np.where(behind == nodes, -(-behind // self.branching), down)
            done = (up >= down) | (level == self.levels - 1)
            yield level, low, np.where(done, behind, up * self.branching)
            yield level, np.where(done, behind, np.minimum(down * self.branching, behind)), behind
            low, behind = np.where(done, 0, up), np.where(done, 0, down)

    def cover(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Disjoint nodes that make up low..high: (level, first node, node behind the last)."""
        for level, first, behind in self.runs(np.array([low]), np.array([high])):
            if first[0] < behind[0]:
                yield level, int(first[0]), int(behind[0])

    def numbers(self, lows: Ints, highs: Ints) -> list[Ints]:
        """How many nodes of each level are in the cover of each interval."""
        found = [np.zeros_like(lows) for _ in self.nodes]
        for level, first, behind in self.runs(lows, highs):
            found[level] += behind - first
        return found
