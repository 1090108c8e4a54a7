"""Sums over blocks of rows on a cluster: each partition adds up its own, and their sums are added up.

A sum is an array as large as what is released. It travels in pieces, and a piece with nothing in it stays
where it is. Pieces of the same place meet on one executor, so that the driver gets every piece once.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from partita.trusted.secret.secret import Ints, UInts, Work
from partita.trusted.sources.spark.counts.packed import Block, Packed
from partita.trusted.sources.spark.session.session import not_once
from partita.trusted.sources.spark.session.workers import Batch

_PIECE: Final = 2**16
_MADE: Final = "piece int, sum binary"


Reading: TypeAlias = Callable[[Block], tuple[UInts, Ints]]
"""The things in a block, ascending, and how many rows each has."""


def folded(packed: Packed, reading: Reading, work: Work) -> NDArray[Any]:
    """The sum of work(things, counts) over what is read in each block."""
    nothing = work(*reading(_no_block(packed.width)))
    pieces = -(-nothing.size // _PIECE)

    def run() -> dict[int, NDArray[Any]]:
        sums = packed.cluster.mapped(packed.frame, _Summing(reading, work), _MADE)
        together = sums.repartition(min(pieces, packed.cluster.parallelism), "piece")
        met = packed.cluster.mapped(together, _meeting, _MADE)
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


def _no_block(width: int) -> Block:
    return Block(0, np.zeros((0, width), np.uint8), np.zeros((0, width), np.uint64), np.zeros(0, np.int64))


@final
@dataclass(frozen=True)
class _Summing:
    """A worker that adds up one partition."""

    reading: Reading
    work: Work

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        sums = (self.work(*self.reading(block)) for block in Block.joined(Block.read(batches)))
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
