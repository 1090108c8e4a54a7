"""Tables with many columns on a cluster: positions of rows in few bytes, read once for each round of counts.

Hardly two rows of a wide table are equal, so they are not grouped. Executors read the table once, encode each
row with the code that encodes rows of files, and store its position along every axis. A round of counts is
then one pass over what is stored: each partition adds up its own tables, and the driver gets their sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from partita.arrays import Ints
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import check_source
from partita.public.boxes.bins import AxisBins
from partita.trusted.secret import AxisCounts, PointCounts, Points, Work
from partita.trusted.sources.base import Batches, locate_columns
from partita.trusted.sources.spark.counts import (
    PERSON,
    PackedCells,
    Shards,
    SparkPoints,
    add_up,
    blocks,
    columns,
    count_packed,
    to_longs,
    whole_groups,
)
from partita.trusted.sources.spark.session import Batch, Cluster, Frame, sf
from partita.trusted.sources.tally import ColumnCounts, encode_positions, regroup
from partita.trusted.sources.wide import Positions, WideTally, count_column, position_type, tally_rows
from partita.trusted.tables import MOST_COUNTED, AxisSets, check_sets, count_blocks, split_tables

_BLOCK: Final = 2**17  # rows that are encoded at once and packed in one row of Spark: memory against calls
_SHORT: Final = 2**20
"""Positions of an axis all of whose counts come to the driver: those of the shortest shard."""


@final
@dataclass(frozen=True, kw_only=True)
class RowEncoder:
    """A worker that turns raw rows of the columns `keys` into packed positions, by `tally_rows`."""

    schema: Mapping[str, Domain]
    keys: tuple[str, ...]
    person: str | None
    contributions: int
    salt: str
    where: tuple[str, str] | None

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """One row for each block of rows; a block holds all rows of the persons in it."""
        tables = blocks(batches, _BLOCK)
        if self.person is not None:
            tables = whole_groups(tables, lambda table: table.column(PERSON))
        for table in tables:
            yield _write_block(
                tally_rows(
                    _BlockRows(self.keys, table),
                    self.schema,
                    person=self.person,
                    contributions=self.contributions,
                    salt=self.salt,
                    where=self.where,
                )
            )


@final
@dataclass(frozen=True)
class _BlockRows:
    """The rows of one block, as `tally_rows` reads them."""

    names: tuple[str, ...]
    table: Any

    def read(self, columns: Sequence[str]) -> Batches:
        """These columns under their own names."""
        places = [self.names.index(name) for name in columns]
        table = self.table.select([f"k{place}" for place in places]).rename_columns(list(columns))
        return Batches(table.schema, iter(table.combine_chunks().to_batches()))


def _write_block(rows: WideTally) -> Batch:
    """A number of rows, and the positions along each axis as bytes."""
    parts = list(rows.positions.values())
    arrays = [pa.array([part.tobytes()], pa.binary()) for part in parts]
    names = ["rows", *(_name(column) for column in range(len(parts)))]
    return pa.record_batch([pa.array([len(parts[0])], pa.int64()), *arrays], names=names)


def _name(column: int) -> str:
    """The name of the Spark column with the positions of a table column."""
    return f"positions{column}"


@final
@dataclass(frozen=True, eq=False)
class PackedRows:
    """Positions of rows on a cluster, packed in blocks and stored there: a column of bytes for each axis."""

    cluster: Cluster
    frame: Frame
    total: int

    @staticmethod
    def of(cluster: Cluster, rows: Frame, encoder: RowEncoder) -> PackedRows:
        """Encode raw rows where they are: the only time that the table is read."""
        declared = ", ".join(["rows bigint", *(f"{_name(i)} binary" for i in range(len(encoder.schema)))])

        def pack() -> PackedRows:
            frame = cluster.keep(cluster.mapped(rows, encoder, declared))
            [[total]] = frame.agg(sf.coalesce(sf.sum("rows"), sf.lit(0))).collect()
            return PackedRows(cluster, frame, int(total))

        return cluster.run(pack)

    def select(self, columns: Sequence[int]) -> Frame:
        """The positions of some columns, in this order; others do not leave the memory of Spark."""
        return self.frame.select("rows", *(_name(column) for column in columns))


@final
@dataclass(frozen=True)
class _BlockReader:
    """Reads positions from the blocks of a partition; the domains say how many bytes a position has."""

    domains: tuple[Domain, ...]

    def __call__(self, batches: Iterator[Batch]) -> Iterator[tuple[list[Positions], Ints]]:
        """The positions along each axis, and a count of one for each row."""
        kinds = [position_type(domain) for domain in self.domains]
        for batch in batches:
            for rows, *parts in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield list(map(np.frombuffer, parts, kinds)), np.broadcast_to(np.int64(1), (rows,))


@final
@dataclass(frozen=True)
class _TableCounter:
    """Counts combinations of bins in a partition: one array for all of its blocks."""

    reader: _BlockReader
    sets: AxisSets
    bins: tuple[AxisBins, ...]

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Ints]:
        yield count_blocks(self.sets, self.bins, self.reader(batches))


@final
@dataclass(frozen=True)
class _CellReader:
    """A worker that turns positions into cells; equal rows of a block are one."""

    reader: _BlockReader

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        domains = self.reader.domains
        for positions, ones in self.reader(batches):
            distinct, counts = regroup(positions, ones)
            arrays: list[Any] = []
            for domain, along in zip(domains, distinct, strict=True):
                encoded = encode_positions(domain, along.astype(np.uint64))
                arrays += [pa.array(encoded.special.view(np.int8)), pa.array(to_longs(encoded.cells))]
            names = [declared.split()[0] for declared in columns(len(domains)).split(", ")]
            yield pa.record_batch([*arrays, pa.array(counts)], names=names)


@final
@dataclass(frozen=True, eq=False, repr=False)
class SparkWidePoints(PointCounts):
    """Rows at points of many axes, on a cluster; column `order[i]` of the packed rows is axis i."""

    axes: tuple[Axis, ...]
    domains: tuple[Domain, ...]
    order: tuple[int, ...]
    contributions: int
    parts: int
    packed: PackedRows

    @property
    def total(self) -> int:
        """The number of rows, which was counted when they were stored."""
        return self.packed.total

    def tables(self, sets: AxisSets, bins: Sequence[AxisBins]) -> list[Ints]:
        """The exact number of rows in each combination of bins; see `PointCounts.tables`.

        All sets are counted in one pass, which reads the columns that they name.
        """
        shapes = check_sets(sets, bins, self.axes)
        axes = sorted({axis for chosen in sets for axis in chosen})
        places = {axis: place for place, axis in enumerate(axes)}
        counter = _TableCounter(
            self._reader(axes),
            tuple(tuple(places[axis] for axis in chosen) for chosen in sets),
            tuple(bins[axis] for axis in axes),
        )
        nothing = np.zeros(sum(map(math.prod, shapes)), np.int64)
        tables = split_tables(add_up(self.packed.cluster, self._select(axes), counter, nothing), shapes)
        fix = "publish again, once the cluster is sound"
        same = all(int(table.sum()) == self.total for table in tables)
        check_source(same, "cluster", "must count each stored row once", fix=fix)
        return tables

    def alone(self, axis: int) -> Points | SparkPoints:
        """Counted along one axis: here if the axis is short, else on the cluster, where the counts stay."""
        if self.axes[axis].width <= _SHORT:
            return self._lines[axis]
        packed, domain = self.pack(axis), self.domains[axis]
        return SparkPoints.of((domain,), (0,), self.contributions, self.parts, packed)

    def along(self, axis: int) -> AxisCounts:
        """Counted along one axis, without special cells."""
        return self.alone(axis).along(0)

    def folded(self, work: Work) -> NDArray[Any]:
        """Rows are grouped on the cluster first: `tables`, `alone` and `along` do without."""
        return self._grouped.folded(work)

    def pack(self, axis: int) -> PackedCells:
        """The cells of one axis, grouped and in shards of it."""
        shards = Shards.of(self.domains[axis].size, parts=self.parts)
        return PackedCells.in_shards(self.packed.cluster, self._cells([axis]), shards)

    @cached_property
    def _lines(self) -> dict[int, Points]:
        """The counts along every short axis, all in one pass if they have room together."""
        every = [_make_bins(axis) for axis in self.axes]
        found: dict[int, Points] = {}
        for batch in self._short_batches():
            for axis, table in zip(batch, self.tables([(axis,) for axis in batch], every), strict=True):
                there = np.flatnonzero(table)
                places = there.astype(np.uint64)[:, None]
                found[axis] = Points((self.axes[axis],), places, table[there], self.contributions)
        return found

    def _short_batches(self) -> Iterator[list[int]]:
        """Short axes, in batches that are counted together."""
        batch: list[int] = []
        cells = 0
        for number, axis in enumerate(self.axes):
            if axis.width <= _SHORT:
                if cells + axis.width > MOST_COUNTED:
                    yield batch
                    batch, cells = [], 0
                batch.append(number)
                cells += axis.width
        if batch:
            yield batch

    @cached_property
    def _grouped(self) -> SparkPoints:
        axes = range(len(self.axes))
        packed = PackedCells.together(self.packed.cluster, self._cells(axes), len(axes))
        return SparkPoints.of(self.domains, tuple(axes), self.contributions, self.parts, packed)

    def _cells(self, axes: Sequence[int]) -> Frame:
        """The cells of some axes, possibly repeated."""
        cluster, worker = self.packed.cluster, _CellReader(self._reader(axes))
        return cluster.run(lambda: cluster.mapped(self._select(axes), worker, columns(len(axes))))

    def _select(self, axes: Sequence[int]) -> Frame:
        return self.packed.select([self.order[axis] for axis in axes])

    def _reader(self, axes: Sequence[int]) -> _BlockReader:
        return _BlockReader(tuple(self.domains[axis] for axis in axes))

    def __repr__(self) -> str:
        return f"SparkWidePoints({len(self.axes)} axes, contributions={self.contributions}, secret)"


def _make_bins(axis: Axis) -> AxisBins:
    """A bin for each position of a short axis, and one for all of a long one."""
    short = axis.width <= _SHORT
    return AxisBins.identity(axis.width) if short else AxisBins.from_edges([axis.width - 1])


@final
@dataclass(frozen=True, eq=False, repr=False)
class SparkWideTally:
    """The counterpart of `WideTally` on a cluster, which stores the rows as long as this object exists."""

    schema: Mapping[str, Domain]
    contributions: int
    parts: int
    packed: PackedRows

    def column(self, name: str) -> ColumnCounts:
        """The counts of one column by itself."""
        points, domain = self.points([name]), self.schema[name]
        if points.axes[0].width <= _SHORT:
            return count_column(domain, points.alone(0).gathered())
        shards = Shards.of(domain.size, parts=self.parts)
        return count_packed(domain, self.contributions, shards, points.pack(0))

    def points(self, names: Sequence[str]) -> SparkWidePoints:
        """Several columns together."""
        order = tuple(locate_columns(names, list(self.schema)))
        domains = tuple(self.schema[name] for name in names)
        axes = tuple(map(Axis.of, domains))
        return SparkWidePoints(axes, domains, order, self.contributions, self.parts, self.packed)

    def close(self) -> None:
        """Remove the rows from the cluster."""
        self.packed.cluster.close()

    def __repr__(self) -> str:
        return f"SparkWideTally({list(self.schema)}, contributions={self.contributions}, secret)"
