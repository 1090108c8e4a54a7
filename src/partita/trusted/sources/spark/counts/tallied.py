"""The distinct combinations of cells on a cluster, as `Tally` has them here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from partita.domain.base.base import Domain, Special
from partita.trusted.secret.secret import Ints, UInts
from partita.trusted.sources.base.names import positions
from partita.trusted.sources.spark.counts.counts import SparkCounts
from partita.trusted.sources.spark.counts.folding import folded
from partita.trusted.sources.spark.counts.packed import Block, Packed
from partita.trusted.sources.spark.counts.points import SparkPoints
from partita.trusted.sources.spark.counts.shards import Shards
from partita.trusted.sources.spark.session.session import Cluster, Frame
from partita.trusted.sources.tally.tally import Column


@final
@dataclass(frozen=True, eq=False, repr=False)
class SparkTally:
    """How many rows are in each combination of cells; the cluster keeps them while a tally is held."""

    schema: Mapping[str, Domain]
    contributions: int
    parts: int
    packed: Packed

    @staticmethod
    def of(
        schema: Mapping[str, Domain], contributions: int, parts: int, cluster: Cluster, cells: Frame
    ) -> SparkTally:
        """The tally of rows whose cells may be there more than once; that of one column is in shards."""
        if len(schema) > 1:
            packed = Packed.together(cluster, cells, len(schema))
        else:
            [domain] = schema.values()
            packed = Packed.in_shards(cluster, cells, Shards.of(domain.size, parts=parts))
        return SparkTally(schema, contributions, parts, packed)

    def column(self, name: str) -> Column:
        """The counts of one column by itself: those of its special cells come here, the others stay."""
        [number] = positions([name], list(self.schema))
        domain = self.schema[name]
        shards = Shards.of(domain.size, parts=self.parts)
        packed = self.packed if self.packed.width == 1 else self.packed.alone(number, shards)
        by_kind = folded(packed, _kinds, _sums).tolist()
        total = by_kind[Special.ORDINARY]
        counts = SparkCounts(domain.size, self.contributions, shards, packed, total)
        return Column(counts, {name: by_kind[Special.named(name)] for name in domain.specials})

    def points(self, names: Sequence[str]) -> SparkPoints:
        """The counts of several columns together."""
        order = tuple(positions(names, list(self.schema)))
        domains = tuple(self.schema[name] for name in names)
        return SparkPoints.of(domains, order, self.contributions, self.parts, self.packed)

    def close(self) -> None:
        """The cluster forgets the rows."""
        self.packed.cluster.close()

    def __repr__(self) -> str:
        return f"SparkTally({list(self.schema)}, contributions={self.contributions}, secret)"


def _kinds(block: Block) -> tuple[UInts, Ints]:
    """Which special cell, if any, each cell of the one column is."""
    return block.special[:, 0].astype(np.uint64), block.counts


def _sums(kinds: UInts, counts: Ints) -> Ints:
    """How many rows are in ordinary cells, and in each special one."""
    found = np.zeros(len(Special), np.int64)
    np.add.at(found, kinds.astype(np.int64), counts)
    return found
