"""Exact counts of rows in combinations of bins, for many sets of axes in one pass over the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.domain.axis import Axis
from partita.errors import check
from partita.numbers import integer
from partita.public.boxes.bins import AxisBins

AxisSets: TypeAlias = Sequence[tuple[int, ...]]

MOST_COUNTED: Final = 2**25
"""No call counts more combinations: their counts take 8 bytes each."""

_CHUNK: Final = 2**14
"""Rows counted at once, which bounds memory: 780 tables of 32 x 32 bins over 10^6 rows took 1.4 to 1.5 s of
one core with 2^14, 2^16 and 2^18 rows alike. Tables with more cells are added to row by row."""

_EXACT: Final = 2**53  # sums of weights below this are exact in the floats of np.bincount


def check_sets(sets: AxisSets, bins: Sequence[AxisBins], axes: Sequence[Axis]) -> list[tuple[int, ...]]:
    """The shape of each table, if the sets name axes and the bins are theirs."""
    fits = len(bins) == len(axes) and all(isinstance(each, AxisBins) for each in bins)
    check(fits, "bins", "must be one AxisBins for each axis", given=len(bins), fix="pass bins of all axes")
    for each, axis in zip(bins, axes, strict=True):
        rule, fix = "must have the positions of their axes", "make them for Axis.width positions"
        check(each.width == axis.width, "bins", rule, given=each.width, fix=fix)
    for chosen in map(tuple, sets):
        rule, fix = "must be tuples of different axes", "pass for example [(0,), (0, 1)]"
        check(0 < len(chosen) == len(set(chosen)), "sets", rule, given=len(chosen), fix=fix)
        for axis_number in chosen:
            integer(axis_number, "axis", low=0, high=len(axes) - 1)
    shapes = [tuple(bins[axis].number for axis in chosen) for chosen in sets]
    cells = sum(map(math.prod, shapes))
    rule, fix = f"must have at most {MOST_COUNTED} combinations in all", "choose fewer sets or coarser bins"
    check(cells <= MOST_COUNTED, "sets", rule, given=cells, fix=fix)
    return shapes


def split_tables(counted: Ints, shapes: Sequence[tuple[int, ...]]) -> list[Ints]:
    """The tables that `count_tables` has counted, one after another."""
    ends = np.cumsum([math.prod(shape) for shape in shapes], dtype=np.int64)
    parts = np.split(counted, ends[:-1]) if shapes else []
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def count_tables(sets: AxisSets, bins: Sequence[AxisBins], places: UInts, counts: Ints) -> Ints:
    """The tables of all sets in one flat array; a top-level function, so that it can travel."""
    return count_columns(sets, bins, places.T, counts)


def count_columns(
    sets: AxisSets, bins: Sequence[AxisBins], columns: Sequence[NDArray[Any]] | UInts, counts: Ints
) -> Ints:
    """The same, where the positions along each axis are an array of any unsigned integers."""
    return count_blocks(sets, bins, iter([(columns, counts)]))


def count_blocks(
    sets: AxisSets,
    bins: Sequence[AxisBins],
    blocks: Iterator[tuple[Sequence[NDArray[Any]] | UInts, Ints]],
) -> Ints:
    """The same for blocks of rows, which are read one after another into one array of counts."""
    finders = {axis: _make_finder(bins[axis]) for axis in sorted({axis for each in sets for axis in each})}
    chunks = (
        ({axis: find(columns[axis][rows]) for axis, find in finders.items()}, counts[rows])
        for columns, counts in blocks
        for rows in (slice(start, start + _CHUNK) for start in range(0, len(counts), _CHUNK))
    )
    return _count_codes(sets, bins, chunks)


def _make_finder(bins: AxisBins) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """A function from positions to bins, as the smallest integers that hold them."""
    small = np.min_scalar_type(bins.number - 1)
    table = bins.short_lookup
    if table is None:
        return lambda positions: bins.of(positions.astype(np.uint64, copy=False)).astype(small)
    lookup = table.astype(small)
    return lambda positions: lookup[positions.astype(np.intp)]


def _count_codes(
    sets: AxisSets, bins: Sequence[AxisBins], chunks: Iterator[tuple[dict[int, NDArray[Any]], Ints]]
) -> Ints:
    """The tables of all sets, from chunks of rows: the bins of each row along each axis, and its count."""
    sizes = [math.prod(bins[axis].number for axis in chosen) for chosen in sets]
    counted = np.zeros(sum(sizes), np.int64)
    starts = np.cumsum([0, *sizes])[:-1]
    for codes, counts in chunks:
        weights = None if bool((counts == 1).all()) else counts
        exact = weights is None or int(weights.sum()) < _EXACT
        for chosen, start, size in zip(sets, starts.tolist(), sizes, strict=True):
            keys = _combine(chosen, bins, codes, size)
            table = counted[start : start + size]
            if size <= _CHUNK and exact:
                table += _count_keys(keys, weights, size)
            else:
                np.add.at(table, keys.astype(np.intp), counts)
    return counted


def _combine(
    chosen: tuple[int, ...], bins: Sequence[AxisBins], codes: dict[int, NDArray[Any]], size: int
) -> NDArray[Any]:
    """The number of the combination in which each row is, the last axis fastest."""
    small = np.min_scalar_type(size)
    keys = codes[chosen[0]].astype(small)
    for axis in chosen[1:]:
        keys = keys * small.type(bins[axis].number) + codes[axis]
    return keys


def _count_keys(keys: NDArray[Any], weights: Ints | None, size: int) -> Ints:
    """Rows of each key; floats hold the sums of weights exactly, as the caller has seen."""
    return np.bincount(keys, weights, minlength=size).astype(np.int64)
