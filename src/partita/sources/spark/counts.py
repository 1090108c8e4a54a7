"""The counts of one axis on a cluster: shards of the universe, each cut by the executor that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from partita.domain import Special
from partita.errors import SourceError
from partita.histogram import AxisCounts, Histogram, ShardWork
from partita.mechanisms.part_noise import noise_elsewhere
from partita.noise.protocol import Noise
from partita.noise.system import SYSTEM
from partita.secret import Ints, UInts, Work
from partita.sources.spark.folding import folded
from partita.sources.spark.packed import Block, Packed
from partita.sources.spark.session import Batch
from partita.sources.spark.shards import Shards

__all__ = ["SparkCounts"]

_MADE: Final = "shard int, seals binary"


@final
@dataclass(frozen=True, eq=False, repr=False)
class SparkCounts(AxisCounts):
    """Exact counts over cells 0, ..., size-1, kept on a cluster in public shards."""

    size: int
    contributions: int
    shards: Shards
    packed: Packed
    rows: int | None = None

    @property
    def total(self) -> int:
        """The number of rows, which may be known already."""
        return super().total if self.rows is None else self.rows

    def folded(self, work: Work) -> NDArray[Any]:
        """Blocks are on the executors, and sums of them come back."""
        return folded(self.packed, _ordinary, work)

    def in_shards(self, work: ShardWork, *, noise: Noise) -> UInts:
        """Each shard where it is, with fresh noise of the executor's own; only what is found travels.

        One action collects it, and nothing comes after the worker: Spark hands over what one successful
        attempt has made of each partition. What an attempt drew that failed is never seen, and no two
        attempts race: see `Cluster.require_no_races`.
        """
        noise_elsewhere(noise)
        worker = _Cutting(work, self.size, self.contributions, self.shards)
        cluster = self.packed.cluster
        found = cluster.run(lambda: cluster.mapped(self.packed.frame, worker, _MADE).collect())
        return _joined([(row["shard"], bytes(row["seals"])) for row in found], self.shards)

    def __repr__(self) -> str:
        return f"SparkCounts(size={self.size}, contributions={self.contributions}, secret)"


def _ordinary(block: Block) -> tuple[UInts, Ints]:
    """The ordinary cells of the one column."""
    there = block.special[:, 0] == int(Special.ORDINARY)
    return block.cells[there, 0], block.counts[there]


@final
@dataclass(frozen=True)
class _Cutting:
    """A worker that cuts the shards of its partition, each with noise that is drawn for it alone."""

    work: ShardWork
    size: int
    contributions: int
    shards: Shards

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        blocks = list(Block.read(batches))
        for number in dict.fromkeys(block.shard for block in blocks):
            seals = self._seals([block for block in blocks if block.shard == number], number)
            arrays = [pa.array([number], pa.int32()), pa.array([seals.tobytes()], pa.binary())]
            yield pa.record_batch(arrays, names=["shard", "seals"])

    def _seals(self, blocks: list[Block], number: int) -> UInts:
        parts = [_ordinary(block) for block in blocks]
        cells, counts = (np.concatenate(side) for side in zip(*parts, strict=True))
        shard = self.shards.ranges[number]
        if cells.size and not (int(cells[0]) in shard and int(cells[-1]) in shard):
            raise ValueError("cells of another shard")
        block = Histogram(self.size, cells, counts, self.contributions)
        return self.work(block, shard, SYSTEM.session()).astype(np.uint64)


def _joined(found: list[tuple[int, bytes]], shards: Shards) -> UInts:
    """The seals of all shards in order, if there is exactly one answer for each."""
    if sorted(number for number, _ in found) != list(range(len(shards))):
        raise SourceError(
            "cluster", "must answer once for each shard", fix="publish again: nothing was released"
        )
    return np.concatenate([np.frombuffer(seals, np.uint64) for _, seals in sorted(found)])
