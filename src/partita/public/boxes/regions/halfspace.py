"""The share of boxes of cells on one side of a plane.

Cell number p lies from p to p + 1 along its axis, and the value that it stands for in the middle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Final, final

import numpy as np

from partita.public.axis.curve.curve import Floats
from partita.public.boxes.plan.nodes import Corners

CUT: Final = (2.0**-60, 1.0 - 2.0**-53)
"""The share of a box that is cut lies between these: it is neither 0 nor 1, however near it may be."""

_ROUNDING: Final = 2.0**-48


@final
@dataclass(frozen=True, eq=False)
class PlaneSide:
    """The points u with factors . u <= limit; the largest factor is about 1, or -1.

    A box is outside, or inside, if no more than rounding errors speak against it, and these are too
    small to reach the middle of a cell.

    >>> side = PlaneSide(np.array([1.0, 1.0]), 2.0)
    >>> side.shares(np.array([[0, 0], [1, 0]], np.uint64), np.array([[0, 0], [2, 0]], np.uint64)).tolist()
    [1.0, 0.25]
    """

    factors: Floats
    limit: float

    def shares(self, lows: Corners, highs: Corners) -> Floats:
        """The share of each box by volume."""
        starts, sizes = lows.astype(np.float64), np.abs(self.factors)
        reach = sizes * ((highs - lows).astype(np.float64) + 1.0)
        whole = reach.sum(axis=1)
        room = self.limit - starts @ self.factors + reach[:, self.factors < 0.0].sum(axis=1)
        rounding = _ROUNDING * (abs(self.limit) + starts @ sizes + whole)
        slack = np.where(2.0 * rounding < sizes.sum(), rounding, -rounding)
        shares = np.where(room > slack, 1.0, 0.0)
        cut = (room > slack) & (room < whole - slack)
        shares[cut] = np.clip(_below(reach[cut] / whole[cut, np.newaxis], room[cut] / whole[cut]), *CUT)
        return shares


def _below(reach: Floats, room: Floats) -> Floats:
    """P[r1 U1 + r2 U2 + ... <= room] for each row of numbers r >= 0 that add up to 1, U uniform on [0, 1].

    Where an axis reaches next to nothing of the way, U is taken to be 1/2; see `_negligible`.
    """
    kept = reach >= _negligible(reach.shape[1])
    found = np.empty(len(reach))
    room = room - (reach * ~kept).sum(axis=1) / 2.0
    for pattern in np.unique(kept, axis=0):
        rows = (kept == pattern).all(axis=1)
        found[rows] = _simplex_sum(reach[np.ix_(rows, pattern)], room[rows])
    return found


def _negligible(axes: int) -> float:
    """Numbers r below this are left out of k: where the error by that, r^2 / 24, is that of rounding.

    The sum of 2^k terms of rounding error 2^-53 is divided by k! r^(k-1) at least.
    """
    return float((24.0 * 2.0 ** (axes - 53) / math.factorial(axes)) ** (1.0 / (axes + 1)))


def _simplex_sum(reach: Floats, room: Floats) -> Floats:
    """P[r1 U1 + ... + rk Uk <= t] = sum over sets S of (-1)^|S| (t - r(S))^k / (k! r1 ... rk), t > r(S).

    The law is symmetric about its middle, and far fewer terms count on the lower side of it.
    """
    axes = reach.shape[1]
    upper = room > reach.sum(axis=1) / 2.0
    lower = np.where(upper, reach.sum(axis=1) - room, room)
    total = np.zeros(len(reach))
    for chosen in product((0.0, 1.0), repeat=axes):
        total += (-1.0) ** sum(chosen) * np.maximum(lower - reach @ np.array(chosen), 0.0) ** axes
    share = total / (math.factorial(axes) * reach.prod(axis=1))
    return np.asarray(np.where(upper, 1.0 - share, share))
