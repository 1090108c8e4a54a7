"""Grouped cells in a few long rows: what many passes read is turned from rows into arrays once.

A row holds a block of distinct cells, in ascending order, as arrays: for each cell and column the number of
its special cell and its place on the line, and how many rows are there. Every combination of cells is in
one block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as sf

from partita.trusted.sources.spark.counts.blocks import whole
from partita.trusted.sources.spark.counts.numbers import SHIFT, to_cells, to_longs
from partita.trusted.sources.spark.counts.shards import Shards
from partita.trusted.sources.spark.session.session import Cluster, Frame
from partita.trusted.sources.spark.session.workers import Batch
from partita.trusted.sources.tally.regroup import regroup

_LONGEST: Final = 2**18
_ENOUGH: Final = 2**22
_MADE: Final = "shard int, width int, special binary, cells binary, counts binary"


def special(column: int) -> str:
    """What says which special cell the value of a column is in; 0 if in none."""
    return f"special{column}"


def cell(column: int) -> str:
    """What says in which cell the value of a column is."""
    return f"cell{column}"


def columns(width: int) -> str:
    """Cells of some columns before they are packed, and how many rows are in each, as Spark declares them."""
    pairs = (f"{special(column)} tinyint, {cell(column)} bigint" for column in range(width))
    return ", ".join([*pairs, "rows bigint"])


class Block(NamedTuple):
    """Some distinct cells: special cells and places have a column for each one of the table."""

    shard: int
    special: NDArray[np.uint8]
    cells: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @staticmethod
    def read(batches: Iterator[Batch]) -> Iterator[Block]:
        """The blocks of a partition."""
        for batch in batches:
            for shard, width, *parts in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                kinds, cells, counts = map(np.frombuffer, parts, (np.uint8, np.uint64, np.int64))
                shape = (counts.size, width)
                yield Block(shard, kinds.reshape(shape), cells.reshape(shape), counts)

    @staticmethod
    def joined(blocks: Iterator[Block]) -> Iterator[Block]:
        """The same cells in longer blocks, those of a shard in order; a block without cells is left out."""
        held: list[Block] = []
        for block in blocks:
            held += [block] if block.counts.size else []
            if sum(each.counts.size for each in held) >= _ENOUGH:
                yield Block.of(held)
                held = []
        if held:
            yield Block.of(held)

    @staticmethod
    def of(blocks: Sequence[Block]) -> Block:
        """Several blocks as one; the shard is that of the first."""
        arrays = [np.concatenate(parts) for parts in zip(*(block[1:] for block in blocks), strict=True)]
        return Block(blocks[0].shard, *arrays)

    def batch(self) -> Batch:
        """The block as a row."""
        numbers = [pa.array([number], pa.int32()) for number in (self.shard, self.cells.shape[1])]
        arrays = [pa.array([part.tobytes()], pa.binary()) for part in self[1:]]
        return pa.record_batch([*numbers, *arrays], names=_names(_MADE))


@final
@dataclass(frozen=True, eq=False)
class Packed:
    """Distinct cells of `width` columns on a cluster, packed and kept there.

    Those of one column are in a partition for each of some public shards, of which special cells share the
    first; each shard has a block, be it empty.
    """

    cluster: Cluster
    frame: Frame
    width: int

    @staticmethod
    def in_shards(cluster: Cluster, cells: Frame, shards: Shards) -> Packed:
        """Cells of one column, which may be there more than once, in a partition for each shard."""

        def packed() -> Frame:
            every = cells.unionAll(_markers(cluster, shards))
            placed = every.withColumn("shard", shards.number(sf.col(cell(0))))
            apart = placed.repartitionById(len(shards), sf.col("shard"))
            return cluster.keep(cluster.mapped(apart, _pack, _MADE))

        return Packed(cluster, cluster.run(packed), 1)

    @staticmethod
    def together(cluster: Cluster, cells: Frame, width: int) -> Packed:
        """Cells of several columns, which may be there more than once."""

        def packed() -> Frame:
            keys = [name(column) for column in range(width) for name in (special, cell)]
            grouped = cells.groupBy(keys).agg(sf.sum("rows").alias("rows")).withColumn("shard", sf.lit(0))
            return cluster.keep(cluster.mapped(grouped, _pack, _MADE))

        return Packed(cluster, cluster.run(packed), width)

    def alone(self, column: int, shards: Shards) -> Packed:
        """The cells of one column by itself, in shards."""
        unpacked = self.cluster.run(lambda: self.cluster.mapped(self.frame, _Unpacking(column), columns(1)))
        return Packed.in_shards(self.cluster, unpacked, shards)


def _markers(cluster: Cluster, shards: Shards) -> Frame:
    """A row of count zero in each shard, so that none is without rows."""
    cells = pa.array([shard.start - SHIFT for shard in shards.ranges], pa.int64())
    none = np.zeros(len(shards), np.int64)
    table = pa.table([pa.array(none.astype(np.int8)), cells, pa.array(none)], names=_names(columns(1)))
    return cluster.session.createDataFrame(table)


def _pack(batches: Iterator[Batch]) -> Iterator[Batch]:
    """A worker that packs its partition, each shard by itself; rows of count zero are markers."""
    table = whole(batches)
    if table is None:
        return
    numbers = table.column("shard").to_numpy()
    present = np.unique(numbers).tolist()
    for shard in present:
        rows = table if len(present) == 1 else table.filter(pa.array(numbers == shard))
        yield from (block.batch() for block in _blocks(shard, rows))


def _blocks(shard: int, table: Any) -> Iterator[Block]:
    width = (table.num_columns - 2) // 2
    counts = table.column("rows").to_numpy()
    there = counts > 0
    keys: list[NDArray[Any]] = []
    for column in range(width):
        keys.append(table.column(special(column)).to_numpy().view(np.uint8)[there])
        keys.append(to_cells(table.column(cell(column)))[there])
    ordered, added = regroup(keys, counts[there])
    for start in range(0, max(1, added.size), _LONGEST):
        part = slice(start, start + _LONGEST)
        kinds, cells = (np.stack([key[part] for key in ordered[side::2]], axis=1) for side in (0, 1))
        yield Block(shard, kinds, cells, added[part])


@final
@dataclass(frozen=True)
class _Unpacking:
    """A worker that takes one column out of blocks."""

    column: int

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for block in Block.read(batches):
            if block.counts.size:
                keys: list[NDArray[Any]] = [block.special[:, self.column], block.cells[:, self.column]]
                (kinds, cells), counts = regroup(keys, block.counts)
                arrays = [pa.array(kinds.view(np.int8)), pa.array(to_longs(cells)), pa.array(counts)]
                yield pa.record_batch(arrays, names=_names(columns(1)))


def _names(declared: str) -> Sequence[str]:
    """The names of declared columns."""
    return [each.split()[0] for each in declared.split(", ")]
