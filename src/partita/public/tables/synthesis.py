"""Synthetic rows of a table: drawn down the junction tree of its model, with fixed numbers, not chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from partita.arrays import Floats, Ints, UInts
from partita.public.axis.curve import Curve, apportion
from partita.public.base import checkpoint
from partita.public.boxes.plan import Corners
from partita.public.tables.model import TableModel
from partita.public.tables.sides import ColumnReader

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def draw_rows(model: TableModel, readers: Sequence[ColumnReader], rows: int) -> Corners:
    """The positions of synthetic rows in every column: the same rows whenever they are asked for.

    The bins of the first clique are shared out as evenly as can be. Each next clique is drawn given the
    columns that it shares with its parent. Inside a bin a row lies where the column has its rows.
    """
    bins = np.zeros((len(readers), rows), np.int64)
    if rows:
        for number, (clique, parent) in enumerate(model.tree.order):
            checkpoint()
            _draw_clique(model, bins, clique, parent, _uniform(rows, number))
    drawn = [
        _place_rows(reader, bins[column], _uniform(rows, len(readers) + column))
        for column, reader in enumerate(readers)
    ]
    return np.stack(drawn, axis=1)


def _draw_clique(model: TableModel, bins: Ints, clique: int, parent: int, uniform: Floats) -> None:
    """The bins of the columns of a clique that its parent has not drawn yet."""
    tree, table, columns = model.tree, model.tables[clique], model.tree.cliques[clique]
    shared = () if parent < 0 else tree.separator(clique, parent)
    fresh = tuple(column for column in columns if column not in shared)
    order = [columns.index(column) for column in (*shared, *fresh)]
    joint = np.moveaxis(table, order, range(len(order)))
    joint = joint.reshape(int(np.prod([tree.sizes[c] for c in shared], dtype=np.int64)), -1) + 1e-12
    if shared:
        given = np.ravel_multi_index([bins[c] for c in shared], [tree.sizes[c] for c in shared])
        upto = np.cumsum(joint / joint.sum(axis=1, keepdims=True), axis=1) + np.arange(len(joint))[:, None]
        cells = np.searchsorted(upto.ravel(), given + np.minimum(uniform, 1 - 1e-9)) - given * joint.shape[1]
        cells = np.clip(cells, 0, joint.shape[1] - 1)
    else:
        cells = np.repeat(np.arange(joint.size), apportion(uniform.size, joint.ravel()))
        cells = cells[np.argsort(uniform, kind="stable")]
    for column, found in zip(fresh, np.unravel_index(cells, [tree.sizes[c] for c in fresh]), strict=True):
        bins[column] = found


def _place_rows(reader: ColumnReader, bins: Ints, uniform: Floats) -> UInts:
    """Positions inside of bins."""
    positions = np.zeros(bins.size, np.uint64)
    for number in np.unique(bins).tolist():
        curve = reader.spread(np.eye(1, reader.bins.number, number)[0])
        there = bins == number
        positions[there] = _invert(curve, uniform[there])
    return positions


def _invert(curve: Curve, uniform: Floats) -> UInts:
    """The position up to which a curve holds these parts of its rows."""
    held = np.flatnonzero(curve.counts > 0)
    upto = np.cumsum(curve.counts[held]) / curve.counts[held].sum()
    piece = np.minimum(np.searchsorted(upto, uniform), held.size - 1)
    below = np.where(piece > 0, upto[piece - 1], 0.0)
    within = np.clip((uniform - below) / np.maximum(upto[piece] - below, 1e-300), 0.0, 1 - 1e-9)
    at = held[piece]
    return np.asarray(curve.starts[at] + np.floor(within * curve.widths[at]).astype(np.uint64))


def _uniform(rows: int, stream: int) -> Floats:
    """Fixed numbers in [0, 1) that look random: the mixing function of SplitMix64 on a counter."""
    with np.errstate(over="ignore"):
        state = (np.arange(1, rows + 1, dtype=np.uint64) + np.uint64(stream) * np.uint64(2**40)) * _ODD
        state = (state ^ (state >> np.uint64(30))) * _MIX[0]
        state = (state ^ (state >> np.uint64(27))) * _MIX[1]
    return np.asarray((state ^ (state >> np.uint64(31))) >> np.uint64(11), np.float64) / 2**53
