"""The nodes of a tree of boxes, flat: every node is a box, and its children make it up exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.public.axis.curve.curve import Bools, Floats, Ints, UInts

Corners: TypeAlias = NDArray[np.uint64]
"""A row for each box, a column for each axis: positions of lowest, or of highest, cells."""

SignedBox: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int]
"""The lowest and the highest corner of a box, both included, and +1 or -1."""


@final
@dataclass(frozen=True, eq=False)
class BoxNodes:
    """Boxes lows, ..., highs (both included), breadth first; node 0 is the root and holds everything.

    `levels` says how many nodes each level has. The children of an expanded node are neighbours on the
    next level: `children[i]` of them, from node `starts[i]` on. A leaf has none.
    """

    levels: Ints
    lows: Corners
    highs: Corners
    starts: Ints
    children: Ints

    @property
    def leaves(self) -> Bools:
        """Which nodes are not cut further; together they make up everything."""
        return np.asarray(self.children == 0)

    @property
    def axes(self) -> int:
        """The number of axes."""
        return int(self.lows.shape[1])

    def corners(self, nodes: Ints | Bools) -> tuple[UInts, UInts]:
        """The lowest and highest corners of some nodes."""
        return self.lows[nodes], self.highs[nodes]


def volumes(lows: Corners, highs: Corners) -> Floats:
    """The number of cells of each box. Differences need all 64 bits: they are taken before they are floats.

    >>> volumes(np.array([[0, 5]], np.uint64), np.array([[2, 5]], np.uint64)).tolist()
    [3.0]
    """
    return np.asarray(((highs - lows).astype(np.float64) + 1.0).prod(axis=1))
