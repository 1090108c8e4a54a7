"""The tree mechanism: noisy counts of a hierarchy of intervals [SU, Thm 2.5; DNPR10]."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from partita.errors import InvalidParameter
from partita.exact import freeze, integer
from partita.guarantee import Guarantee, Neighbors, Unit, positive_epsilon, rows_changed, unit_of
from partita.histogram import Histogram
from partita.mechanisms.checks import check_scale, fitting
from partita.noise.protocol import Noise
from partita.noise.system import SYSTEM
from partita.releases.tree import TreeRelease

__all__ = ["Tree"]

_LARGEST_SIZE: Final = 2**30


@final
@dataclass(frozen=True, init=False, kw_only=True)
class Tree:
    """Publish once; answer every interval over 0, ..., size-1 from a tree of noisy counts.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [SU, Thm 2.5]
    Error:     O(log^1.5 size / epsilon) for an interval; noise scale levels / epsilon.
    Proof:     docs/proofs/tree.md (integer noise, exact number of levels)

    >>> Tree(size=8, epsilon=1).scale
    Fraction(4, 1)
    """

    size: int
    epsilon: Fraction
    branching: int
    neighbors: Neighbors
    contributions: int
    unit: Unit

    def __init__(
        self,
        *,
        size: int,
        epsilon: object,
        branching: int = 2,
        neighbors: Neighbors = "add-remove",
        contributions: int = 1,
        unit: Unit | None = None,
    ) -> None:
        rows_changed(neighbors, contributions)
        freeze(
            self,
            size=integer(size, "size", low=1),
            epsilon=positive_epsilon(epsilon),
            branching=integer(branching, "branching", low=2),
            neighbors=neighbors,
            contributions=int(contributions),
            unit=unit_of(unit, contributions),
        )
        if self.size > _LARGEST_SIZE:
            raise InvalidParameter(
                "size",
                f"must be at most {_LARGEST_SIZE} for a plain tree",
                given=size,
                fix="use a Partition first",
            )
        check_scale(self.scale, self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises, and for whom."""
        return Guarantee(
            epsilon=self.epsilon, neighbors=self.neighbors, unit=self.unit, contributions=self.contributions
        )

    @property
    def widths(self) -> list[int]:
        """Cells per node on each level, leaves first; the root covers everything."""
        widths = [1]
        while widths[-1] < self.size:
            widths.append(widths[-1] * self.branching)
        return widths

    @property
    def scale(self) -> Fraction:
        """Every row lies in one node of each level, so the counts of neighbours are this far apart."""
        return len(self.widths) * rows_changed(self.neighbors, self.contributions) / self.epsilon

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> TreeRelease:
        """Count every node and add noise."""
        histogram = fitting(data, self.size, self.contributions)
        session = noise.session()
        levels = [session.add(_node_counts(histogram, width), self.scale) for width in self.widths]
        return TreeRelease(
            levels=tuple(levels),
            size=self.size,
            branching=self.branching,
            scale=self.scale,
            guarantee=self.guarantee if session.secure else None,
        )


def _node_counts(histogram: Histogram, width: int) -> NDArray[np.int64]:
    """The exact count of each node of `width` cells."""
    counts = np.zeros(-(-histogram.size // width), dtype=np.int64)
    np.add.at(counts, (histogram.cells // np.uint64(width)).astype(np.int64), histogram.counts)
    return counts
