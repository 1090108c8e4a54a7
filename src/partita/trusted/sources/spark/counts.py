"""The counts of one axis on a cluster: shards of the universe, each cut by the executor that holds it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as sf

from partita.arrays import Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain, Encoded, Special
from partita.trusted.mechanisms.base import noise_elsewhere
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts, Histogram, PointCounts, ShardWork, Work
from partita.trusted.sources.base import positions
from partita.trusted.sources.spark.session import Batch, Cluster, Frame, not_once
from partita.trusted.sources.tally import ColumnCounts, places, regroup

# Rows of a partition as a worker meets them: some batches at a time.


_BLOCK: Final = 2**20


def blocks(batches: Iterator[Batch]) -> Iterator[Any]:
    """Tables of about a million rows."""
    held: list[Batch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= _BLOCK:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def whole(batches: Iterator[Batch]) -> Any:
    """All rows of a partition, as one table; None if it has none."""
    held = list(batches)
    return pa.Table.from_batches(held) if held else None


def whole_groups(tables: Iterator[Any], key: Callable[[Any], Any]) -> Iterator[Any]:
    """The same rows, cut only where the key changes; rows with the same key come one after another."""
    rest: Any = None
    for table in tables:
        joined = table if rest is None else pa.concat_tables([rest, table])
        last = _last_group(key(joined))
        if last > 0:
            yield joined.slice(0, last)
        rest = joined.slice(last)
    if rest is not None and rest.num_rows:
        yield rest


def _last_group(column: Any) -> int:
    """Where the rows with the last key start."""
    codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
    others = np.flatnonzero(codes != codes[-1]) if len(codes) else codes
    return int(others[-1]) + 1 if len(others) else 0


# Cells on a cluster that knows no unsigned integers: shifted by 2^63, so that their order is the same.


SHIFT: Final = 2**63
"""The cell that is 0 on the cluster."""

_SHIFT: Final = np.uint64(SHIFT)


def to_longs(cells: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Cells as signed integers of the same order.

    >>> to_longs(np.array([0, 2**64 - 1], np.uint64)).tolist() == [-(2**63), 2**63 - 1]
    True
    """
    return (cells ^ _SHIFT).view(np.int64)


def to_cells(longs: Any) -> NDArray[np.uint64]:
    """The cells that `to_longs` wrote, from a column of Arrow.

    >>> import pyarrow as pa
    >>> to_cells(pa.chunked_array([[-(2**63)]])).tolist()
    [0]
    """
    return np.asarray(longs.to_numpy()).view(np.uint64) ^ _SHIFT


# Public shards of a universe: by its size and by how many there shall be at most, never by data.


_WHOLE: Final = 20
"""As a power of two, a number of cells that one executor has room for: no shard needs to be shorter."""


@final
@dataclass(frozen=True)
class Shards:
    """Ranges of cells, one behind the other, each of which is cut by one task.

    They are equal parts of 2^bits cells, of which the first is split again at powers of four: numbers that
    people count are small, most of them, and where they lie, shards are short. Spark finds the part of a
    cell by a shift, however many there are.

    >>> Shards.of(2**24, parts=2).bounds == (0, 2**20, 2**22, 2**23, 2**24)
    True
    """

    size: int
    bits: int

    @staticmethod
    def of(size: int, *, parts: int) -> Shards:
        """The universe in at most so many equal parts, but for the last, which may be shorter."""
        width = -(-size // parts)
        return Shards(size, max(_WHOLE, (width - 1).bit_length()))

    @property
    def bounds(self) -> tuple[int, ...]:
        """Where each shard starts, and where the last one ends."""
        width = 2**self.bits
        return (0, *self._inner, *range(width, self.size, width), self.size)

    @property
    def ranges(self) -> list[range]:
        """The shards in order."""
        return [range(low, high) for low, high in pairwise(self.bounds)]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def number(self, cell: Any) -> Any:
        """The number of the shard that a cell lies in, both as columns of Spark."""
        unshifted = cell.bitwiseXOR(sf.lit(-SHIFT))
        part = sf.shiftrightunsigned(unshifted, self.bits) if self.bits < 64 else sf.lit(0)
        passed = [(cell >= sf.lit(bound - SHIFT)).cast("int") for bound in self._inner]
        return sum(passed, part.cast("int"))

    @property
    def _inner(self) -> list[int]:
        """Where the first part is split."""
        powers = (2**bits for bits in range(_WHOLE, self.bits, 2))
        return [power for power in powers if power < self.size]


# Grouped cells in a few long rows: what many passes read is turned from rows into arrays once.
#
# A row holds a block of distinct cells, in ascending order, as arrays: for each cell and column the number
# of
# its special cell and its place on the line, and how many rows are there. Every combination of cells is in
# one block.


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


class CellBlock(NamedTuple):
    """Some distinct cells: special cells and places have a column for each one of the table."""

    shard: int
    special: NDArray[np.uint8]
    cells: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @staticmethod
    def read(batches: Iterator[Batch]) -> Iterator[CellBlock]:
        """The blocks of a partition."""
        for batch in batches:
            for shard, width, *parts in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                kinds, cells, counts = map(np.frombuffer, parts, (np.uint8, np.uint64, np.int64))
                shape = (counts.size, width)
                yield CellBlock(shard, kinds.reshape(shape), cells.reshape(shape), counts)

    @staticmethod
    def joined(blocks: Iterator[CellBlock]) -> Iterator[CellBlock]:
        """The same cells in longer blocks, those of a shard in order; a block without cells is left out."""
        held: list[CellBlock] = []
        for block in blocks:
            held += [block] if block.counts.size else []
            if sum(each.counts.size for each in held) >= _ENOUGH:
                yield CellBlock.of(held)
                held = []
        if held:
            yield CellBlock.of(held)

    @staticmethod
    def of(blocks: Sequence[CellBlock]) -> CellBlock:
        """Several blocks as one; the shard is that of the first."""
        arrays = [np.concatenate(parts) for parts in zip(*(block[1:] for block in blocks), strict=True)]
        return CellBlock(blocks[0].shard, *arrays)

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


def _blocks(shard: int, table: Any) -> Iterator[CellBlock]:
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
        yield CellBlock(shard, kinds, cells, added[part])


@final
@dataclass(frozen=True)
class _Unpacking:
    """A worker that takes one column out of blocks."""

    column: int

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for block in CellBlock.read(batches):
            if block.counts.size:
                keys: list[NDArray[Any]] = [block.special[:, self.column], block.cells[:, self.column]]
                (kinds, cells), counts = regroup(keys, block.counts)
                arrays = [pa.array(kinds.view(np.int8)), pa.array(to_longs(cells)), pa.array(counts)]
                yield pa.record_batch(arrays, names=_names(columns(1)))


def _names(declared: str) -> Sequence[str]:
    """The names of declared columns."""
    return [each.split()[0] for each in declared.split(", ")]


# Sums over blocks of rows on a cluster: each partition adds up its own, and their sums are added up.
#
# A sum is an array as large as what is released. It travels in pieces, and a piece with nothing in it stays
# where it is. Pieces of the same place meet on one executor, so that the driver gets every piece once.


_PIECE: Final = 2**16
_MADE_SUMS: Final = "piece int, sum binary"


Reading: TypeAlias = Callable[[CellBlock], tuple[UInts, Ints]]
"""The things in a block, ascending, and how many rows each has."""


def folded(packed: Packed, reading: Reading, work: Work) -> NDArray[Any]:
    """The sum of work(things, counts) over what is read in each block."""
    nothing = work(*reading(_no_block(packed.width)))
    pieces = -(-nothing.size // _PIECE)

    def run() -> dict[int, NDArray[Any]]:
        sums = packed.cluster.mapped(packed.frame, _Summing(reading, work), _MADE_SUMS)
        together = sums.repartition(min(pieces, packed.cluster.parallelism), "piece")
        met = packed.cluster.mapped(together, _meeting, _MADE_SUMS)
        return _by_piece([(row["piece"], _read(row["sum"])) for row in met.collect()])

    found = packed.cluster.run(run) if pieces else {}
    parts = [found.get(piece, part) for piece, part in enumerate(_parts(nothing))]
    return np.concatenate(parts).reshape(nothing.shape) if parts else nothing


def _by_piece(found: list[tuple[int, NDArray[Any]]]) -> dict[int, NDArray[Any]]:
    """The sum of each piece, which has met on one executor."""
    sums = dict(found)
    if len(sums) != len(found):
        raise not_once("piece")
    return sums


def _no_block(width: int) -> CellBlock:
    return CellBlock(
        0, np.zeros((0, width), np.uint8), np.zeros((0, width), np.uint64), np.zeros(0, np.int64)
    )


@final
@dataclass(frozen=True)
class _Summing:
    """A worker that adds up one partition."""

    reading: Reading
    work: Work

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        sums = (self.work(*self.reading(block)) for block in CellBlock.joined(CellBlock.read(batches)))
        first = next(sums, None)
        if first is not None:
            pieces = enumerate(_parts(reduce(add, sums, first)))
            yield from _written({piece: part for piece, part in pieces if part.any()})


def _meeting(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Pieces of the same place become one."""
    met: dict[int, NDArray[Any]] = {}
    for batch in batches:
        for piece, part in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            met[piece] = met[piece] + _read(part) if piece in met else _read(part)
    yield from _written(met)


def _written(sums: dict[int, NDArray[Any]]) -> Iterator[Batch]:
    """A batch for each piece; Python ints of any size stay exact."""
    for piece, part in sums.items():
        arrays = [pa.array([piece], pa.int32()), pa.array([pickle.dumps(part)], pa.binary())]
        yield pa.record_batch(arrays, names=["piece", "sum"])


def _read(part: Any) -> NDArray[Any]:
    """What `_written` wrote, on another machine of the same cluster."""
    return np.asarray(pickle.loads(bytes(part)))


def _parts(sums: NDArray[Any]) -> list[NDArray[Any]]:
    flat = sums.reshape(-1)
    return [flat[start : start + _PIECE] for start in range(0, flat.size, _PIECE)]


_MADE_COUNTS: Final = "shard int, seals binary"


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
        found = cluster.run(lambda: cluster.mapped(self.packed.frame, worker, _MADE_COUNTS).collect())
        return _joined([(row["shard"], row["seals"]) for row in found], self.shards)

    def __repr__(self) -> str:
        return f"SparkCounts(size={self.size}, contributions={self.contributions}, secret)"


def _ordinary(block: CellBlock) -> tuple[UInts, Ints]:
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
        blocks = list(CellBlock.read(batches))
        for number in dict.fromkeys(block.shard for block in blocks):
            seals = self._seals_or_none([block for block in blocks if block.shard == number], number)
            arrays = [pa.array([number], pa.int32()), pa.array([seals], pa.binary())]
            yield pa.record_batch(arrays, names=["shard", "seals"])

    def _seals_or_none(self, blocks: list[CellBlock], number: int) -> bytes | None:
        try:
            return self._seals(CellBlock.of(blocks), self.shards.ranges[number]).tobytes()
        except Exception:
            return None

    def _seals(self, block: CellBlock, shard: range) -> UInts:
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


# The counts of several columns together, kept on a cluster.


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

    def __call__(self, block: CellBlock) -> tuple[UInts, Ints]:
        """Points in ascending order of the first axis, then the second, and so on."""
        along = [
            places(domain, Encoded(block.cells[:, column], block.special[:, column]))
            for domain, column in zip(self.domains, self.order, strict=True)
        ]
        ordered, counts = regroup(along, block.counts)
        return np.stack(ordered, axis=1), counts


# The distinct combinations of cells on a cluster, as `Tally` has them here.


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

    def column(self, name: str) -> ColumnCounts:
        """The counts of one column by itself: those of its special cells come here, the others stay."""
        [number] = positions([name], list(self.schema))
        domain = self.schema[name]
        shards = Shards.of(domain.size, parts=self.parts)
        packed = self.packed if self.packed.width == 1 else self.packed.alone(number, shards)
        by_kind = folded(packed, _kinds, _sums).tolist()
        total = by_kind[Special.ORDINARY]
        counts = SparkCounts(domain.size, self.contributions, shards, packed, total)
        return ColumnCounts(counts, {name: by_kind[Special.named(name)] for name in domain.specials})

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


def _kinds(block: CellBlock) -> tuple[UInts, Ints]:
    """Which special cell, if any, each cell of the one column is."""
    return block.special[:, 0].astype(np.uint64), block.counts


def _sums(kinds: UInts, counts: Ints) -> Ints:
    """How many rows are in ordinary cells, and in each special one."""
    found = np.zeros(len(Special), np.int64)
    np.add.at(found, kinds.astype(np.int64), counts)
    return found
