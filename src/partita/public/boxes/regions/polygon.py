"""The share of boxes of cells, on two axes, inside a polygon.

Cell number p lies from p to p + 1 along its axis, and the value that it stands for in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, TypeAlias, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats
from partita.public.boxes.plan.nodes import Corners
from partita.public.boxes.regions.halfspace import CUT

Corner: TypeAlias = tuple[Fraction, Fraction]

_BITS: Final = np.uint64(32)
_LOWEST: Final = np.uint64(2**32 - 1)
_AT_ONCE: Final = 2**13
_ROUNDING: Final = 2.0**-48


@final
@dataclass(frozen=True, eq=False)
class PolygonInside:
    """The inside of a polygon that does not cross itself, given by its corners in exact cells.

    A box is cut if some edge crosses it, by more than rounding errors that are too small to reach the
    middle of a cell. The area that polygon and box have in common is a sum over the edges, of what
    lies in the box below each edge: added where edges run to the right, taken away where they run back.

    >>> triangle = PolygonInside([(Fraction(x), Fraction(y)) for x, y in ((0, 0), (0, 4), (4, 0))])
    >>> triangle.shares(np.array([[0, 0], [1, 2]], np.uint64), np.array([[1, 1], [1, 2]], np.uint64)).tolist()
    [1.0, 0.5]
    """

    corners: Sequence[Corner]

    def shares(self, lows: Corners, highs: Corners) -> Floats:
        """The share of each box by area; of some boxes at a time, which is faster."""
        starts = range(0, len(lows), _AT_ONCE)
        parts = [self._shares(lows[i : i + _AT_ONCE], highs[i : i + _AT_ONCE]) for i in starts]
        return np.concatenate([np.zeros(0), *parts])

    def _shares(self, lows: Corners, highs: Corners) -> Floats:
        boxes = _Boxes(lows, (highs - lows).astype(np.float64) + 1.0)
        area, cut = np.zeros(len(lows)), np.zeros(len(lows), bool)
        for start, end in pairwise(map(boxes.seen, [*self.corners, self.corners[0]])):
            rows = boxes.under(start, end)
            edge = _Edge(start[rows], end[rows], boxes.widths[rows])
            area[rows] += self._turn * edge.below
            cut[rows] |= edge.crossing
        return np.where(cut, np.clip(area, *CUT), np.rint(area).clip(0.0, 1.0))

    @cached_property
    def _turn(self) -> float:
        """1 if the corners go round clockwise, so that what is above the inside runs to the right."""
        edges = pairwise([*self.corners, self.corners[0]])
        return 1.0 if sum((x2 - x1) * (y2 + y1) for (x1, y1), (x2, y2) in edges) > 0 else -1.0


@final
@dataclass(frozen=True, eq=False)
class _Boxes:
    """Many boxes, from which corners of the polygon are seen."""

    lows: Corners
    widths: Floats

    def seen(self, corner: Corner) -> Floats:
        """Where the corner is, in cells from the lowest corner of each box: upper and lower halves apart."""
        seen = np.empty(self.widths.shape)
        for axis, place in enumerate(corner):
            far, near = divmod(place, 2**32)
            seen[:, axis] = (float(far) - self._far[:, axis]) * 2.0**32 + (float(near) - self._near[:, axis])
        return seen

    def under(self, start: Floats, end: Floats) -> Bools:
        """Which boxes the edge passes over, or through."""
        most, least = np.maximum(start, end), np.minimum(start, end)
        return np.asarray((most > 0.0).all(axis=1) & (least[:, 0] < self.widths[:, 0]))

    @cached_property
    def _far(self) -> Floats:
        return (self.lows >> _BITS).astype(np.float64)

    @cached_property
    def _near(self) -> Floats:
        return (self.lows & _LOWEST).astype(np.float64)


@final
@dataclass(frozen=True, eq=False)
class _Edge:
    """One edge as each of many boxes sees it, in cells from its lowest corner."""

    start: Floats
    end: Floats
    widths: Floats

    @property
    def below(self) -> Floats:
        """The share of each box below the edge, and negative if it runs back."""
        (x1, y1), (x2, y2) = (self.start / self.widths).T, (self.end / self.widths).T
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(x1 == x2, 0.0, (y2 - y1) / (x2 - x1))
        left, right = np.clip(x1, 0.0, 1.0), np.clip(x2, 0.0, 1.0)
        return np.asarray((right - left) * _mean(y1 + slope * (left - x1), y1 + slope * (right - x1)))

    @property
    def crossing(self) -> Bools:
        """Whether the inside of each box is on both sides of the edge, and reaches up to it."""
        (x1, y1), (dx, dy), (wide, high) = self.start.T, (self.end - self.start).T, self.widths.T
        lowest = dy * x1 - dx * y1 + np.minimum(dx * high, 0.0) + np.minimum(-dy * wide, 0.0)
        highest = lowest + np.abs(dx) * high + np.abs(dy) * wide
        rounding = _ROUNDING * (np.abs(dx) * (np.abs(y1) + high) + np.abs(dy) * (np.abs(x1) + wide))
        slack = np.where(4.0 * rounding < np.hypot(dx, dy), rounding, -rounding)
        reached = np.minimum(self.start[:, 1], self.end[:, 1]) < high
        return np.asarray(reached & (lowest < -slack) & (highest > slack))


def _mean(start: Floats, end: Floats) -> Floats:
    """The mean of numbers spread evenly from start to end, those below 0 raised to it, above 1 lowered."""
    low, high = np.minimum(start, end), np.maximum(start, end)
    inner_low, inner_high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    total = (inner_high - inner_low) * (inner_low + inner_high) / 2.0 + np.maximum(
        high - np.maximum(low, 1.0), 0.0
    )
    spread = high - low
    return np.where(spread > 0.0, total / np.where(spread > 0.0, spread, 1.0), inner_low)


def crosses_itself(corners: Sequence[Corner]) -> bool:
    """Whether two edges meet, other than neighbours in the corner that they share.

    >>> crosses_itself([(Fraction(x), Fraction(y)) for x, y in ((0, 0), (1, 1), (1, 0), (0, 1))])
    True
    """
    places = _scaled(corners)
    starts, edges = places, np.roll(places, -1, axis=0) - places
    number = len(places)
    one, two = np.triu_indices(number, 1)
    apart = (two - one != 1) & (two - one != number - 1)
    meet = _meet(starts[one[apart]], edges[one[apart]], starts[two[apart]], edges[two[apart]])
    before = np.roll(edges, 1, axis=0)
    back = (_cross(before, edges) == 0.0) & ((before * edges).sum(axis=1) <= 0.0)
    return bool(meet.any() or back.any())


def _scaled(corners: Sequence[Corner]) -> Floats:
    """The corners in a square around them: the question is the same in every scale."""
    columns = []
    for places in zip(*corners, strict=True):
        least, width = min(places), max(places) - min(places)
        columns.append([float((place - least) / width) if width else 0.0 for place in places])
    return np.array(columns).T


def _meet(one: Floats, first: Floats, two: Floats, second: Floats) -> Bools:
    """Whether segments have a point in common: each has ends on both sides of the other, or on it."""
    lowest = np.maximum(np.minimum(one, one + first), np.minimum(two, two + second))
    highest = np.minimum(np.maximum(one, one + first), np.maximum(two, two + second))
    sides = _cross(first, two - one) * _cross(first, two + second - one)
    others = _cross(second, one - two) * _cross(second, one + first - two)
    return np.asarray((lowest <= highest).all(axis=1) & (sides <= 0.0) & (others <= 0.0))


def _cross(one: Floats, two: Floats) -> Floats:
    return np.asarray(one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0])
