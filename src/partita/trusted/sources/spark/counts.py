"""Exact counts on a Spark cluster: packed cells in shards, sums over them, and cuts by the executors.

The cluster knows no unsigned integers, so cells are shifted there by 2^63, which keeps their order.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain, Encoded, Special
from partita.public.boxes.bins import AxisBins
from partita.trusted.mechanisms.base import noise_elsewhere
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts, Histogram, PointCounts, ShardWork, Work
from partita.trusted.sources.base import locate_columns
from partita.trusted.sources.spark.session import Batch, Cluster, Frame, check_once, sf
from partita.trusted.sources.tally import ColumnCounts, locate_cells, regroup
from partita.trusted.tables import AxisSets, check_sets, count_tables, split_tables

SHIFT: Final = 2**63
"""The cell that is 0 on the cluster."""

PERSON: Final = "person"
"""The column that tells persons apart: null where there is no id."""

_SHIFT: Final = np.uint64(SHIFT)
_BLOCK: Final = 2**20  # rows that a worker handles at once: memory against calls
_SHARD_BITS: Final = 20
"""Of the shortest shard: one executor has memory for two to this many cells."""
_LONGEST_ROW: Final = 2**18  # cells in one packed row
_LONGEST_BLOCK: Final = 2**22  # cells that a worker sums at once: memory against calls
_PIECE: Final = 2**16  # numbers in one piece of a sum
_BLOCK_COLUMNS: Final = "shard int, width int, special binary, cells binary, counts binary"
_SUM_COLUMNS: Final = "piece int, sum binary"
_CUT_COLUMNS: Final = "shard int, seals binary"


def blocks(batches: Iterator[Batch], rows: int = _BLOCK) -> Iterator[Any]:
    """Tables of so many rows, or a few more: a million, unless told."""
    held: list[Batch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= rows:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def whole_groups(tables: Iterator[Any], key: Callable[[Any], Any]) -> Iterator[Any]:
    """The same rows, cut only where the key changes; rows with the same key come one after another."""
    rest: Any = None
    for table in tables:
        joined = table if rest is None else pa.concat_tables([rest, table])
        last = _start_of_last_group(key(joined))
        if last > 0:
            yield joined.slice(0, last)
        rest = joined.slice(last)
    if rest is not None and rest.num_rows:
        yield rest


def _start_of_last_group(column: Any) -> int:
    """Where the rows with the last key start."""
    codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
    others = np.flatnonzero(codes != codes[-1]) if len(codes) else codes
    return int(others[-1]) + 1 if len(others) else 0


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


@final
@dataclass(frozen=True)
class Shards:
    """Public ranges of cells, each cut by one task. They depend on size and parts, never on data.

    They are equal parts of 2^bits cells, of which the first is split again at powers of four: most numbers
    that people count are small, and shards are short where these lie. Spark finds the part of a
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
        return Shards(size, max(_SHARD_BITS, (width - 1).bit_length()))

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
        powers = (2**bits for bits in range(_SHARD_BITS, self.bits, 2))
        return [power for power in powers if power < self.size]


def special(column: int) -> str:
    """The name of the Spark column with the `Special` code of a table column; 0 is an ordinary cell."""
    return f"special{column}"


def cell(column: int) -> str:
    """The name of the Spark column with the cell of a table column."""
    return f"cell{column}"


def columns(width: int) -> str:
    """The Spark declaration of cells of `width` columns before they are packed, and of their counts."""
    pairs = (f"{special(column)} tinyint, {cell(column)} bigint" for column in range(width))
    return ", ".join([*pairs, "rows bigint"])


class CellBlock(NamedTuple):
    """Some distinct cells, ascending: special codes and cells have a column for each column of the table.

    On the cluster a block is one long row of arrays, since many passes read it. Every combination of cells
    is in one block.
    """

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
    def join(blocks: Iterator[CellBlock]) -> Iterator[CellBlock]:
        """The same cells in longer blocks, those of a shard in order, without empty blocks."""
        held: list[CellBlock] = []
        for block in blocks:
            held += [block] if block.counts.size else []
            if sum(each.counts.size for each in held) >= _LONGEST_BLOCK:
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
        return pa.record_batch([*numbers, *arrays], names=_names(_BLOCK_COLUMNS))


@final
@dataclass(frozen=True, eq=False)
class PackedCells:
    """Distinct cells of `width` columns on a cluster, packed in blocks and stored there.

    Those of one column are in a partition for each public shard; special cells are in the first.
    Each shard has a block, even if it is empty.
    """

    cluster: Cluster
    frame: Frame
    width: int

    @staticmethod
    def in_shards(cluster: Cluster, cells: Frame, shards: Shards) -> PackedCells:
        """Cells of one column, possibly repeated, in a partition for each shard."""

        def pack() -> Frame:
            every = cells.unionAll(_markers(cluster, shards))
            placed = every.withColumn("shard", shards.number(sf.col(cell(0))))
            apart = placed.repartitionById(len(shards), sf.col("shard"))
            return cluster.keep(cluster.mapped(apart, _pack, _BLOCK_COLUMNS))

        return PackedCells(cluster, cluster.run(pack), 1)

    @staticmethod
    def together(cluster: Cluster, cells: Frame, width: int) -> PackedCells:
        """Cells of several columns, possibly repeated."""

        def pack() -> Frame:
            keys = [name(column) for column in range(width) for name in (special, cell)]
            grouped = cells.groupBy(keys).agg(sf.sum("rows").alias("rows")).withColumn("shard", sf.lit(0))
            return cluster.keep(cluster.mapped(grouped, _pack, _BLOCK_COLUMNS))

        return PackedCells(cluster, cluster.run(pack), width)

    def alone(self, column: int, shards: Shards) -> PackedCells:
        """The cells of one column by itself, in shards."""
        worker = _ColumnReader(column)
        unpacked = self.cluster.run(lambda: self.cluster.mapped(self.frame, worker, columns(1)))
        return PackedCells.in_shards(self.cluster, unpacked, shards)


def _markers(cluster: Cluster, shards: Shards) -> Frame:
    """A row of count zero in each shard, so that no shard is without rows."""
    cells = pa.array([shard.start - SHIFT for shard in shards.ranges], pa.int64())
    none = np.zeros(len(shards), np.int64)
    table = pa.table([pa.array(none.astype(np.int8)), cells, pa.array(none)], names=_names(columns(1)))
    return cluster.session.createDataFrame(table)


def _pack(batches: Iterator[Batch]) -> Iterator[Batch]:
    """A worker that packs its partition, each shard by itself; rows of count zero are markers."""
    held = list(batches)
    if not held:
        return
    table = pa.Table.from_batches(held)
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
    for start in range(0, max(1, added.size), _LONGEST_ROW):
        part = slice(start, start + _LONGEST_ROW)
        kinds, cells = (np.stack([key[part] for key in ordered[side::2]], axis=1) for side in (0, 1))
        yield CellBlock(shard, kinds, cells, added[part])


@final
@dataclass(frozen=True)
class _ColumnReader:
    """A worker that reads one column out of blocks."""

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


BlockReader: TypeAlias = Callable[[CellBlock], tuple[UInts, Ints]]
"""The cells or points in a block, ascending, and how many rows each has."""

PartitionSums: TypeAlias = Callable[[Iterator[Batch]], Iterator[NDArray[Any]]]
"""Arrays of one shape, made of the batches of a partition, which are to be added up."""


def fold(packed: PackedCells, reader: BlockReader, work: Work) -> NDArray[Any]:
    """The sum of work(cells or points, counts) over all blocks."""
    empty = np.zeros((0, packed.width), np.uint8), np.zeros((0, packed.width), np.uint64)
    nothing = work(*reader(CellBlock(0, *empty, np.zeros(0, np.int64))))
    return add_up(packed.cluster, packed.frame, _BlockSums(reader, work), nothing)


def add_up(cluster: Cluster, frame: Frame, sums: PartitionSums, nothing: NDArray[Any]) -> NDArray[Any]:
    """The sum of arrays over all partitions of a frame, in one pass; `nothing` is the sum of no rows.

    A sum is an array as large as what is released. Each partition adds up its own. The sum travels in pieces,
    without those that are all zero. Equal pieces are added on one executor, so that the driver gets every
    piece once.
    """
    pieces = -(-nothing.size // _PIECE)

    def run() -> dict[int, NDArray[Any]]:
        summed = cluster.mapped(frame, PartitionSum(sums), _SUM_COLUMNS)
        together = summed.repartition(min(pieces, cluster.parallelism), "piece")
        added = cluster.mapped(together, _add_pieces, _SUM_COLUMNS)
        return _by_piece([(row["piece"], _read_piece(row["sum"])) for row in added.collect()])

    found = cluster.run(run) if pieces else {}
    parts = [found.get(piece, part) for piece, part in enumerate(_split_pieces(nothing))]
    return np.concatenate(parts).reshape(nothing.shape) if parts else nothing


def _by_piece(found: list[tuple[int, NDArray[Any]]]) -> dict[int, NDArray[Any]]:
    """The sum of each piece, if each came once."""
    sums = dict(found)
    check_once(len(sums) == len(found), "piece")
    return sums


@final
@dataclass(frozen=True)
class _BlockSums:
    """The work on each block of a partition."""

    reader: BlockReader
    work: Work

    def __call__(self, batches: Iterator[Batch]) -> Iterator[NDArray[Any]]:
        return (self.work(*self.reader(block)) for block in CellBlock.join(CellBlock.read(batches)))


@final
@dataclass(frozen=True)
class PartitionSum:
    """A worker that adds up one partition."""

    sums: PartitionSums

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        sums = self.sums(batches)
        first = next(sums, None)
        if first is not None:
            pieces = enumerate(_split_pieces(reduce(add, sums, first)))
            yield from _write_pieces({piece: part for piece, part in pieces if part.any()})


def _add_pieces(batches: Iterator[Batch]) -> Iterator[Batch]:
    """A worker that adds up pieces of the same number."""
    sums: dict[int, NDArray[Any]] = {}
    for batch in batches:
        for piece, part in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            sums[piece] = sums[piece] + _read_piece(part) if piece in sums else _read_piece(part)
    yield from _write_pieces(sums)


def _write_pieces(sums: dict[int, NDArray[Any]]) -> Iterator[Batch]:
    """A batch for each piece; Python ints of any size stay exact."""
    for piece, part in sums.items():
        arrays = [pa.array([piece], pa.int32()), pa.array([pickle.dumps(part)], pa.binary())]
        yield pa.record_batch(arrays, names=["piece", "sum"])


def _read_piece(part: Any) -> NDArray[Any]:
    """A piece that `_write_pieces` wrote on another machine of the same cluster."""
    return np.asarray(pickle.loads(bytes(part)))


def _split_pieces(sums: NDArray[Any]) -> list[NDArray[Any]]:
    flat = sums.reshape(-1)
    return [flat[start : start + _PIECE] for start in range(0, flat.size, _PIECE)]


@final
@dataclass(frozen=True, eq=False, repr=False)
class SparkCounts(AxisCounts):
    """Exact counts over cells 0, ..., size-1, kept on a cluster in public shards."""

    size: int
    contributions: int
    shards: Shards
    packed: PackedCells
    rows: int | None = None

    @property
    def total(self) -> int:
        """The number of rows, which may be known already."""
        return super().total if self.rows is None else self.rows

    def folded(self, work: Work) -> NDArray[Any]:
        """Blocks stay on the executors, and their sum comes back."""
        return fold(self.packed, _ordinary, work)

    def in_shards(self, work: ShardWork, *, noise: Noise) -> UInts:
        """Cut each shard on its executor, with fresh noise drawn there; only the seals travel.

        One action collects them, and no step follows the worker: Spark returns the result of one successful
        attempt for each partition. A cut that fails is an answer, too: it fails the release, and is
        not tried again with other noise. Only an answer that is lost with its process is made again, and no
        two attempts race: see `Cluster.require_no_races`.
        """
        noise_elsewhere(noise)
        worker = _Cutting(work, self.size, self.contributions, self.shards)
        cluster = self.packed.cluster
        found = cluster.run(lambda: cluster.mapped(self.packed.frame, worker, _CUT_COLUMNS).collect())
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

    Only the end of its process makes it draw twice: a cut that failed is reported as null.
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
    check_once(len(cut) == len(found) and sorted(cut) == list(range(len(shards))), "shard")
    return np.concatenate([np.frombuffer(cut[number], np.uint64) for number in sorted(cut)])


@final
@dataclass(frozen=True, eq=False, repr=False)
class SparkPoints(PointCounts):
    """How many rows are at each point of some columns; column `order[i]` of the packed cells is axis i."""

    axes: tuple[Axis, ...]
    domains: tuple[Domain, ...]
    order: tuple[int, ...]
    contributions: int
    parts: int
    packed: PackedCells

    @staticmethod
    def of(
        domains: tuple[Domain, ...],
        order: tuple[int, ...],
        contributions: int,
        parts: int,
        packed: PackedCells,
    ) -> SparkPoints:
        """The points of columns with these domains; `order` says where each of them is packed."""
        return SparkPoints(tuple(map(Axis.of, domains)), domains, order, contributions, parts, packed)

    def folded(self, work: Work) -> NDArray[Any]:
        """Blocks stay on the executors, and their sum comes back."""
        return fold(self.packed, _PointReader(self.domains, self.order), work)

    def tables(self, sets: AxisSets, bins: Sequence[AxisBins]) -> list[Ints]:
        """The exact number of rows in each combination of bins; no block is put in order for that."""
        shapes = check_sets(sets, bins, self.axes)
        work = partial(count_tables, tuple(map(tuple, sets)), tuple(bins))
        return split_tables(fold(self.packed, _PointReader(self.domains, self.order, False), work), shapes)

    def alone(self, axis: int) -> SparkPoints:
        """Grouped again along one axis, and stored on the cluster."""
        packed = self._alone(axis)
        return SparkPoints.of((self.domains[axis],), (0,), self.contributions, self.parts, packed)

    def along(self, axis: int) -> SparkCounts:
        """Grouped again by the cells of one axis, in shards of it."""
        size = self.domains[axis].size
        return SparkCounts(size, self.contributions, self._shards(axis), self._alone(axis))

    def _alone(self, axis: int) -> PackedCells:
        alone = self.packed.width == 1
        return self.packed if alone else self.packed.alone(self.order[axis], self._shards(axis))

    def _shards(self, axis: int) -> Shards:
        return Shards.of(self.domains[axis].size, parts=self.parts)

    def __repr__(self) -> str:
        return f"SparkPoints({len(self.domains)} axes, contributions={self.contributions}, secret)"


@final
@dataclass(frozen=True)
class _PointReader:
    """Reads points from blocks: the domain of each axis, and the column that is packed for it."""

    domains: tuple[Domain, ...]
    order: tuple[int, ...]
    ascending: bool = True

    def __call__(self, block: CellBlock) -> tuple[UInts, Ints]:
        """Points, in ascending order of the first axis, then the second, and so on, unless told otherwise."""
        along = [
            locate_cells(domain, Encoded(block.cells[:, column], block.special[:, column]))
            for domain, column in zip(self.domains, self.order, strict=True)
        ]
        ordered, counts = regroup(along, block.counts) if self.ascending else (along, block.counts)
        return np.stack(ordered, axis=1), counts


@final
@dataclass(frozen=True, eq=False, repr=False)
class SparkTally:
    """The counterpart of `Tally` on a cluster, which stores the counts as long as this object exists."""

    schema: Mapping[str, Domain]
    contributions: int
    parts: int
    packed: PackedCells

    @staticmethod
    def of(
        schema: Mapping[str, Domain], contributions: int, parts: int, cluster: Cluster, cells: Frame
    ) -> SparkTally:
        """The tally of cells, possibly repeated; that of one column is in shards."""
        if len(schema) > 1:
            packed = PackedCells.together(cluster, cells, len(schema))
        else:
            [domain] = schema.values()
            packed = PackedCells.in_shards(cluster, cells, Shards.of(domain.size, parts=parts))
        return SparkTally(schema, contributions, parts, packed)

    def column(self, name: str) -> ColumnCounts:
        """The counts of one column by itself: those of its special cells come here, the others stay there."""
        [number] = locate_columns([name], list(self.schema))
        domain = self.schema[name]
        shards = Shards.of(domain.size, parts=self.parts)
        packed = self.packed if self.packed.width == 1 else self.packed.alone(number, shards)
        return count_packed(domain, self.contributions, shards, packed)

    def points(self, names: Sequence[str]) -> SparkPoints:
        """The counts of several columns together."""
        order = tuple(locate_columns(names, list(self.schema)))
        domains = tuple(self.schema[name] for name in names)
        return SparkPoints.of(domains, order, self.contributions, self.parts, self.packed)

    def close(self) -> None:
        """Remove the counts from the cluster."""
        self.packed.cluster.close()

    def __repr__(self) -> str:
        return f"SparkTally({list(self.schema)}, contributions={self.contributions}, secret)"


def count_packed(domain: Domain, contributions: int, shards: Shards, packed: PackedCells) -> ColumnCounts:
    """The counts of one packed column: those of special cells come here, the others stay there."""
    by_kind = fold(packed, _kinds, _sums).tolist()
    counts = SparkCounts(domain.size, contributions, shards, packed, by_kind[Special.ORDINARY])
    return ColumnCounts(counts, {name: by_kind[Special.named(name)] for name in domain.specials})


def _kinds(block: CellBlock) -> tuple[UInts, Ints]:
    """The `Special` code of each cell of the one column."""
    return block.special[:, 0].astype(np.uint64), block.counts


def _sums(kinds: UInts, counts: Ints) -> Ints:
    """How many rows are in ordinary cells, and in each special one."""
    found = np.zeros(len(Special), np.int64)
    np.add.at(found, kinds.astype(np.int64), counts)
    return found
