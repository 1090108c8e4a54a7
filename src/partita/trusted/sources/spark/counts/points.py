"""The counts of several columns together, kept on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.domain.axis import Axis
from partita.domain.base.base import Domain, Encoded
from partita.trusted.secret.points import PointCounts
from partita.trusted.secret.secret import Ints, UInts, Work
from partita.trusted.sources.spark.counts.counts import SparkCounts
from partita.trusted.sources.spark.counts.folding import folded
from partita.trusted.sources.spark.counts.packed import Block, Packed
from partita.trusted.sources.spark.counts.shards import Shards
from partita.trusted.sources.tally.regroup import regroup
from partita.trusted.sources.tally.tally import places


@final
@dataclass(frozen=True, eq=False, repr=False)
class SparkPoints(PointCounts):
    """How many rows are at each point of some columns, which are packed in an order of their own."""

    axes: tuple[Axis, ...]
    domains: tuple[Domain, ...]
    order: tuple[int, ...]
    contributions: int
    parts: int
    packed: Packed

    @staticmethod
    def of(
        domains: tuple[Domain, ...], order: tuple[int, ...], contributions: int, parts: int, packed: Packed
    ) -> SparkPoints:
        """The points of columns with these domains; `order` says where each of them is packed."""
        return SparkPoints(tuple(map(Axis.of, domains)), domains, order, contributions, parts, packed)

    def folded(self, work: Work) -> NDArray[Any]:
        """Blocks are on the executors, and sums of them come back."""
        return folded(self.packed, _Placing(self.domains, self.order), work)

    def alone(self, axis: int) -> SparkPoints:
        """Grouped anew along one axis, and kept."""
        packed = self._alone(axis)
        return SparkPoints.of((self.domains[axis],), (0,), self.contributions, self.parts, packed)

    def along(self, axis: int) -> SparkCounts:
        """Grouped anew by the cells of one axis, in shards of it."""
        size = self.domains[axis].size
        return SparkCounts(size, self.contributions, self._shards(axis), self._alone(axis))

    def _alone(self, axis: int) -> Packed:
        return self.packed.alone(self.order[axis], self._shards(axis))

    def _shards(self, axis: int) -> Shards:
        return Shards.of(self.domains[axis].size, parts=self.parts)

    def __repr__(self) -> str:
        return f"SparkPoints({len(self.domains)} axes, contributions={self.contributions}, secret)"


@final
@dataclass(frozen=True)
class _Placing:
    """Reads points from blocks: the domain of each axis, and the column that is packed for it."""

    domains: tuple[Domain, ...]
    order: tuple[int, ...]

    def __call__(self, block: Block) -> tuple[UInts, Ints]:
        """Points in ascending order of the first axis, then the second, and so on."""
        along = [
            places(domain, Encoded(block.cells[:, column], block.special[:, column]))
            for domain, column in zip(self.domains, self.order, strict=True)
        ]
        ordered, counts = regroup(along, block.counts)
        return np.stack(ordered, axis=1), counts
