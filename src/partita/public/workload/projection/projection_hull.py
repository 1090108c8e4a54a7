"""All answers that tables of at most so many rows can give, as a convex set: the hull of an operator.

f(x) = ||A x - y||^2 / 2 says how far the answers A x are from noisy ones y. The gap of a point bounds how
much f can still fall [J13]. The matrix A is an operator and is never built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.public.axis.curve.curve import Floats, Ints
from partita.public.queries.operator.operator import Operator

_POWER_STEPS: Final = 8


class Point(NamedTuple):
    """A weight for each cell, and the answers that the weights give: x and A x."""

    x: Floats
    answers: Floats

    def beyond(self, earlier: Point, momentum: float) -> Point:
        """On the line from an earlier point to this one, so many times its length further."""
        return self.moved(self.x - earlier.x, self.answers - earlier.answers, momentum)

    def moved(self, direction: Floats, change: Floats, length: float) -> Point:
        """A step of the length in a direction that changes the answers by `change`."""
        return Point(self.x + length * direction, self.answers + length * change)

    def distance(self, noisy: Floats) -> float:
        """f at this point."""
        return float(np.square(self.answers - noisy).sum()) / 2


@final
@dataclass(frozen=True, eq=False)
class Hull:
    """All A x with weights x >= 0 that add up to at most `rows`; points have weights for some cells only."""

    operator: Operator
    rows: float
    cells: Ints

    @staticmethod
    def of(operator: Operator, rows: float) -> Hull:
        """The hull with weights for one cell of each kind: cells that count alike in all queries need one.

        They are told apart by sums over hashes of the queries' numbers. Two kinds taken for one, if that ever
        happened, would leave a gap that is seen.
        """
        prints = np.asarray(operator.combine(_hashes(len(operator)))).ravel()
        return Hull(operator, rows, np.unique(prints, return_index=True)[1].astype(np.int64))

    def at(self, x: Floats) -> Point:
        """The point with the weights closest to these that the hull has."""
        inside = simplex(x, self.rows)
        return Point(inside, self.answers(inside))

    def middle(self) -> Point:
        """The same weight for every cell that has one."""
        return self.at(np.full(self.cells.size, self.rows / self.cells.size))

    def answers(self, x: Floats) -> Floats:
        """A x."""
        everywhere = np.zeros(self.operator.shape)
        everywhere.flat[self.cells] = x
        return np.asarray(self.operator.answers(everywhere), np.float64) / self.operator.granularity

    def slopes(self, residuals: Floats) -> Floats:
        """The gradient where A x - y are these: how f grows with the weight of each cell."""
        return self._slopes_everywhere(residuals)[self.cells]

    def gap(self, point: Point, noisy: Floats) -> float:
        """<g, x> - rows min(0, min g), up to rounding: nowhere in the hull is f lower by more.

        f(x') >= f(x) + <g, x' - x>, and <g, x'> is least at a vertex: no rows, or all rows in one cell of
        any. It tells when a search may end; certificates have gaps in integers.
        """
        slopes = self._slopes_everywhere(point.answers - noisy)
        return float(slopes[self.cells] @ point.x) - self.rows * min(0.0, float(slopes.min()))

    def room(self, x: Floats, direction: Floats) -> float:
        """How far one can go from x in the direction without leaving the hull."""
        falling = direction < 0.0
        room = float((x[falling] / -direction[falling]).min(initial=math.inf))
        growth = float(direction.sum())
        return room if growth <= 0.0 else min(room, max(0.0, self.rows - float(x.sum())) / growth)

    def steepness(self) -> float:
        """About the largest eigenvalue of the second derivative of f, from below."""
        direction = np.ones(self.cells.size)
        for _ in range(_POWER_STEPS):
            direction /= float(np.linalg.norm(direction)) or 1.0
            direction = self.slopes(self.answers(direction))
        return float(np.linalg.norm(direction)) or 1.0

    def _slopes_everywhere(self, residuals: Floats) -> Floats:
        return np.asarray(self.operator.combine(residuals), np.float64).ravel() / self.operator.granularity


def _hashes(count: int) -> Ints:
    """Numbers of 40 bits without a pattern, the same whenever asked [SLF14]."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(24)).astype(np.int64)


def simplex(x: Floats, most: float) -> Floats:
    """The closest weights that are not negative and add up to at most `most` [M86].

    >>> simplex(np.array([3.0, 1.0, -5.0]), 2.0).tolist()
    [2.0, 0.0, 0.0]
    """
    positive = np.maximum(x, 0.0)
    if not float(positive.sum()) > most:
        return positive
    kept = positive[positive > 0.0]
    while True:
        excess = (float(kept.sum()) - most) / kept.size
        above = kept[kept > excess]
        if above.size in (0, kept.size):
            return np.maximum(x - excess, 0.0)
        kept = above
