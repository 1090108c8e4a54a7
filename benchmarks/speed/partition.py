"""Cuts, everything included: checks, counting, noise, the public edges."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

import partita as pt
from benchmarks.speed.clock import Work, rates, times
from benchmarks.speed.row import Row, Target
from partita.trusted.noise import SystemNoise
from partita.trusted.noise.system import Path

EPSILON = 1
TARGETS = {"numpy": Target("figure", ">=", 1e6), "compiled": Target("figure", ">=", 40e6)}
WIDE_TARGET = Target("ratio", "<=", 2)


def partition_numpy(quick: bool) -> Row:
    """A million items in a universe of 2^32, against the exact path, one segment after another."""
    n = _items(quick, 10**6)
    ours = cut("path numpy", "numpy", uniform(n, 32), 32)
    theirs = cut(f"path exact, n {n // 10}", "exact", uniform(n // 10, 32), 32)
    return rates(quick, ours, theirs, target=TARGETS["numpy"], size="2^32", epsilon=EPSILON)


def partition_compiled(quick: bool) -> Row:
    """A million items in a universe of 2^32, against the NumPy path."""
    data = uniform(_items(quick, 10**6), 32)
    ours, theirs = cut("path compiled", "compiled", data, 32), cut("path numpy", "numpy", data, 32)
    return rates(quick, ours, theirs, target=TARGETS["compiled"], size="2^32", epsilon=EPSILON)


def partition_wide(quick: bool, *, path: Path) -> Row:
    """The time of a cut of 2^64 cells, against one of 2^20 with as many items."""
    n = _items(quick, 10**6)
    ours = cut(f"path {path}", path, uniform(n, 64), 64)
    theirs = cut(f"path {path}, size 2^20", path, uniform(n, 20), 20)
    return times(quick, ours, theirs, target=WIDE_TARGET, size="2^64", epsilon=EPSILON)


def partition_scaling(quick: bool, *, exponent: int) -> Row:
    """10^exponent items, against a million: an item should cost the same."""
    n, million = _items(quick, 10**exponent), _items(quick, 10**6)
    ours = cut("path compiled", "compiled", uniform(n, 32), 32)
    theirs = cut(f"path compiled, n {million}", "compiled", uniform(million, 32), 32)
    return rates(quick, ours, theirs, size="2^32", epsilon=EPSILON)


def partition_weighted(quick: bool, *, path: Path) -> Row:
    """A million items in a thousand heaps among the spread ones, against all spread."""
    n = _items(quick, 10**6)
    ours = cut(f"path {path}", path, heaped(n, 32), 32)
    theirs = cut(f"path {path}, no heaps", path, uniform(n, 32), 32)
    return rates(quick, ours, theirs, size="2^32", epsilon=EPSILON, heaps=heaps(n))


def cut(name: str, path: Path, data: NDArray[np.uint64], bits: int) -> Work:
    """A cut of sorted values by one of the paths."""
    partition, noise = pt.Partition(size=2**bits, epsilon=EPSILON), SystemNoise(path=path)
    return Work(name, partial(partition.cut, data, noise=noise), data.size)


def uniform(n: int, bits: int) -> NDArray[np.uint64]:
    """Sorted uniform values below 2^bits."""
    values = np.random.default_rng(n).integers(0, 2**bits - 1, n, dtype=np.uint64, endpoint=True)
    return np.sort(values)


def heaped(n: int, bits: int) -> NDArray[np.uint64]:
    """Half of the values spread, the other half in heaps of equal weight."""
    tops = uniform(heaps(n), bits)
    return np.sort(np.concatenate([uniform(n // 2, bits), np.repeat(tops, n // 2 // tops.size)]))


def heaps(n: int) -> int:
    return n // 1000


def _items(quick: bool, n: int) -> int:
    return n // 100 if quick else n
