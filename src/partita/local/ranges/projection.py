"""Shares made non-negative from the top down: every node keeps its share, and its children get it."""

from __future__ import annotations

import numpy as np

from partita.local.aggregate.consistency import Floats, coarser
from partita.public.axis.shrinkage.nonnegative import shared_out


def top_down(table: Floats, branchings: tuple[int, ...]) -> Floats:
    """The shares of cells, none below zero, one in all; sums of many cells stay as near as they can.

    Each node's share is divided among its children as near to their estimates as shares >= 0 can be, from the
    root down to the cells. With several axes the longest is divided last, in turn. To cut off at the cells
    alone would raise the sum of every stretch of empty ones, and the more the longer it is.

    >>> top_down(np.array([0.6, 0.5, -0.4, 0.3, 0.0]), (2,)).round(2).tolist()
    [0.55, 0.45, 0.0, 0.0, 0.0]
    """
    steps, tables = [], [table]
    while tables[-1].size > 1:
        axis = int(np.argmax(tables[-1].shape))
        steps.append(axis)
        tables.append(coarser(_filled(tables[-1], axis, branchings[axis], 0.0), axis, branchings[axis]))
    shares = np.ones_like(tables.pop())
    for axis, children in zip(reversed(steps), reversed(tables), strict=True):
        shares = _divided(children, shares, axis, branchings[axis])
    return shares


def _divided(children: Floats, parents: Floats, axis: int, branching: int) -> Floats:
    """The shares of parents among their children along one axis; a child that does not exist gets nothing."""
    last = np.moveaxis(_filled(children, axis, branching, -np.inf), axis, -1)
    rows = shared_out(last.reshape(-1, branching), np.moveaxis(parents, axis, -1).ravel())
    divided = np.moveaxis(rows.reshape(last.shape), -1, axis)
    return divided[tuple(slice(length) for length in children.shape)]


def _filled(table: Floats, axis: int, branching: int, filling: float) -> Floats:
    """The table with its last siblings along an axis filled up."""
    missing = -table.shape[axis] % branching
    widths = [(0, missing if at == axis else 0) for at in range(table.ndim)]
    return np.pad(table, widths, constant_values=filling)
