"""Guaranteed bounds on boxes from measured tables: covers of a box by cells, from inside and from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from partita.arrays import Bools, Floats
from partita.public.bounds import cells_reach
from partita.public.boxes.bins import AxisBins
from partita.public.tables.fit import MeasuredTable, TableFit
from partita.public.tables.sides import Runs

_ONE: Final = np.uint64(1)


def bound_box(
    fit: TableFit, runs: Mapping[int, Runs], known: tuple[float, float], beta: float
) -> tuple[float, float]:
    """Bounds on a box of some columns that fail with probability at most beta, within others that hold.

    The rows of a box are in the cells that it meets, for tables of two of its columns or more; and cells that
    lie inside of it hold no others, for tables of all of them. The i-th of these tables has the part
    1 / (i (i + 1)) of beta: docs/proofs/graph.md says why it must not be an equal part.
    """
    low, high = known
    near = [table for table in fit.tables if len(set(table.columns) & set(runs)) >= 2]
    for rank, table in enumerate(near, 1):
        part = beta / (2 * rank * (rank + 1))
        met = _sum_cells(fit, table, runs, whole=False)
        high = min(high, met[0] + cells_reach(table.scale, met[1], part))
        if set(runs) <= set(table.columns):
            held = _sum_cells(fit, table, runs, whole=True)
            low = max(low, held[0] - cells_reach(table.scale, held[1], part))
    return low, max(low, high)


def _sum_cells(
    fit: TableFit, table: MeasuredTable, runs: Mapping[int, Runs], *, whole: bool
) -> tuple[float, int]:
    """The noisy sum of the cells of a table that a box holds wholly, or of all that it meets; how many."""
    chosen = list(_choose_groups(fit, table, runs, whole=whole))
    cells = table.noisy[np.ix_(*(np.flatnonzero(each) for each in chosen))].astype(np.float64)
    return float(cells.sum()), cells.size


def _choose_groups(
    fit: TableFit, table: MeasuredTable, runs: Mapping[int, Runs], *, whole: bool
) -> Iterator[Bools]:
    """For each column of a table which groups of its bins a box holds, or meets."""
    for place, (column, groups) in enumerate(zip(table.columns, table.groups, strict=True)):
        number = table.noisy.shape[place]
        if column not in runs:
            yield np.ones(number, np.bool_)
            continue
        bins = fit.bins[column]
        part = _held_positions(bins, runs[column])
        sizes = bins.sizes.astype(np.float64)
        chosen = part >= sizes if whole else part > 0.0
        which = np.arange(bins.number) if groups is None else groups
        hits = np.bincount(which, chosen, number)
        yield hits >= np.bincount(which, minlength=number) if whole else hits > 0


def _held_positions(bins: AxisBins, runs: Runs) -> Floats:
    """How many positions of each bin lie in some runs, which do not overlap; never rounded up to all."""
    if bins.edges is None:
        held = np.zeros(bins.width)
        for low, high, _ in runs:
            held[low : high + 1] = 1.0
        return np.bincount(bins.of(np.arange(bins.width, dtype=np.uint64)), held, bins.number).astype(
            np.float64
        )
    first, last = bins.spans
    found, lacking = np.zeros(bins.number), bins.sizes.copy()
    for low, high, _ in runs:
        start, stop = np.maximum(first, np.uint64(low)), np.minimum(last, np.uint64(high))
        meets = stop >= start
        here = np.where(meets, stop - np.where(meets, start, stop) + _ONE, np.uint64(0))
        lacking = lacking - here
        found += here.astype(np.float64)
    sizes = bins.sizes.astype(np.float64)
    return np.where(lacking == 0, sizes, np.minimum(found, np.nextafter(sizes, 0.0)))
