"""Estimates of counts made non-negative from the top down, so that large sums stay as they are."""

from __future__ import annotations

from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Floats

_BRANCHING: Final = 3


def nonnegative(counts: Floats) -> Floats:
    """Counts >= 0 near the given ones: groups of three, of nine, ... keep sums as near as they can.

    The total is kept if it is not negative. A group's total is shared out among its three members as
    near to their estimates as counts >= 0 can be, then each member among its own, down to the counts.

    >>> nonnegative(np.array([-1.0, 2.0, 5.0, 3.0])).tolist()
    [0.0, 1.5, 4.5, 3.0]
    """
    sums = [counts]
    while sums[-1].size > 1:
        sums.append(_grouped(sums[-1], 0.0).sum(axis=1))
    kept = np.maximum(sums.pop(), 0.0)
    for members in reversed(sums):
        kept = shared_out(_grouped(members, -np.inf), kept).ravel()[: members.size]
    return kept


def shared_out(members: Floats, totals: Floats) -> Floats:
    """The point nearest to each row whose entries are >= 0 and add up to the row's total >= 0.

    Entries are lowered by one amount and cut off at zero; the amount is the largest that some number
    of the greatest entries would need if no other were left. An entry of -infinity gets nothing.
    """
    greatest = -np.sort(-members, axis=1)
    needed = (np.cumsum(greatest, axis=1) - totals[:, np.newaxis]) / np.arange(1.0, members.shape[1] + 1.0)
    return np.asarray(np.maximum(members - needed.max(axis=1, keepdims=True), 0.0))


def _grouped(values: Floats, filling: float) -> Floats:
    """The values in rows of three; the last row is filled up."""
    rows = -(-values.size // _BRANCHING)
    filled = np.full(rows * _BRANCHING, filling)
    filled[: values.size] = values
    return filled.reshape(rows, _BRANCHING)
