"""The counts of one axis on a cluster: shards of the universe, each cut by the executor that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from partita.domain.base.base import Special
from partita.trusted.mechanisms.base.part_noise import noise_elsewhere
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts, Histogram, ShardWork
from partita.trusted.secret.secret import Ints, UInts, Work
from partita.trusted.sources.spark.counts.folding import folded
from partita.trusted.sources.spark.counts.packed import Block, Packed
from partita.trusted.sources.spark.counts.shards import Shards
from partita.trusted.sources.spark.session.session import not_once
from partita.trusted.sources.spark.session.workers import Batch

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
        attempt has made of each partition. A cut that fails is an answer, too: it fails the release, and is
        not tried again with other noise. Only what is lost with its process is made again, and no two
        attempts race: see `Cluster.require_no_races`.
        """
        noise_elsewhere(noise)
        worker = _Cutting(work, self.size, self.contributions, self.shards)
        cluster = self.packed.cluster
        found = cluster.run(lambda: cluster.mapped(self.packed.frame, worker, _MADE).collect())
        return _joined([(row["shard"], row["seals"]) for row in found], self.shards)

    def __repr__(self) -> str:
        return f"SparkCounts(size={self.size}, contributions={self.contributions}, secret)"


def _ordinary(block: Block) -> tuple[UInts, Ints]:
    """The ordinary cells of the one column, which were packed in ascending order."""
    there = block.special[:, 0] == int(Special.ORDINARY)
    cells = block.cells[there, 0]
    if np.any(cells[1:] <= cells[:-1]):
        raise ValueError("cells out of order")
    return cells, block.counts[there]


@final
@dataclass(frozen=True)
class _Cutting:
    """A worker that cuts the shards of its partition, each with noise that is drawn for it alone.

    Nothing but the end of its process makes it draw twice: null stands for the seals of a cut that failed.
    """

    work: ShardWork
    size: int
    contributions: int
    shards: Shards

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        blocks = list(Block.read(batches))
        for number in dict.fromkeys(block.shard for block in blocks):
            seals = self._seals_or_none([block for block in blocks if block.shard == number], number)
            arrays = [pa.array([number], pa.int32()), pa.array([seals], pa.binary())]
            yield pa.record_batch(arrays, names=["shard", "seals"])

    def _seals_or_none(self, blocks: list[Block], number: int) -> bytes | None:
        try:
            return self._seals(Block.of(blocks), self.shards.ranges[number]).tobytes()
        except Exception:
            return None

    def _seals(self, block: Block, shard: range) -> UInts:
        cells, counts = _ordinary(block)
        if cells.size and not (int(cells[0]) in shard and int(cells[-1]) in shard):
            raise ValueError("cells of another shard")
        held = Histogram(self.size, cells, counts, self.contributions)
        return self.work(held, shard, SYSTEM.session()).astype(np.uint64)


def _joined(found: list[tuple[int, bytes | None]], shards: Shards) -> UInts:
    """The seals of all shards in order, if there is exactly one answer for each."""
    cut = {number: seals for number, seals in found if seals is not None}
    if len(cut) != len(found) or sorted(cut) != list(range(len(shards))):
        raise not_once("shard")
    return np.concatenate([np.frombuffer(cut[number], np.uint64) for number in sorted(cut)])
