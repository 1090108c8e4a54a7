"""Public regions of several columns: half-spaces, and polygons of two columns.

A region is given by values, and compiled for the cells of a release. A cell is one step of its column wide,
and its value lies in the middle; a slot of time is just that slot. Cell number p lies from p to p + 1 along
its axis. A cell that a region cuts counts by its share inside, so that `{"age": 1}, at_most=39` takes half of
the rows with 39: pass 39.5 for all of them. As a number, a date is its days since 1970-01-01, and a time its
seconds since then in UTC. Special cells lie outside every region.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from fractions import Fraction
from itertools import pairwise, product
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, final

import numpy as np

from partita.arrays import Bools, Floats, Ints
from partita.domain.axis import MOST_AXES, Axis
from partita.domain.base import Domain
from partita.domain.columns import number_text
from partita.domain.numeric import Integer, Real, check_bounded
from partita.domain.time import (
    Date,
    Timestamp,
    public_instant,
    public_moment,
    resolution_nanoseconds,
    zone_named,
)
from partita.errors import InvalidParameter, check, check_type
from partita.lazy import cached_property
from partita.numbers import Converted, Exact, freeze, frozen, parameter, rational
from partita.public.boxes.base import Region
from partita.public.boxes.plan import Corners

Corner: TypeAlias = tuple[Fraction, Fraction]

# The share of a box that is cut lies between these: it is neither 0 nor 1, however near it may be.
CUT: Final = (2.0**-60, 1.0 - 2.0**-53)
_ROUNDING: Final = 2.0**-48
_BITS: Final = np.uint64(32)
_LOWEST: Final = np.uint64(2**32 - 1)
_AT_ONCE: Final = 2**13  # boxes that are compared with a polygon at once: their arrays stay in the cache
_MOST_CORNERS: Final = 1000
_FARTHEST: Final = 2**80
_SECOND: Final = 10**9
_MIDDLE: Final = Fraction(1, 2)


@final
@dataclass(frozen=True, eq=False)
class PlaneSide:
    """The points u with factors . u <= limit; the largest factor is about 1, or -1.

    A box is outside, or inside, if it is so up to rounding errors, and these are too small to reach the
    middle of a cell.

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

    If an axis reaches next to nothing of the way, U is taken to be 1/2. That is an error of r^2 / 24. It
    becomes less than that of rounding below the limit: the sum of 2^k terms of rounding error 2^-53 is
    divided by k! r^(k-1) at least.
    """
    axes, found = reach.shape[1], np.empty(len(reach))
    limit = float((24.0 * 2.0 ** (axes - 53) / math.factorial(axes)) ** (1.0 / (axes + 1)))
    large = reach >= limit
    room = room - (reach * ~large).sum(axis=1) / 2.0
    for pattern in np.unique(large, axis=0):
        rows = (large == pattern).all(axis=1)
        found[rows] = _simplex_sum(reach[np.ix_(rows, pattern)], room[rows])
    return found


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


@final
@dataclass(frozen=True, eq=False)
class PolygonInside:
    """The inside of a polygon that does not cross itself, given by its corners in exact cells.

    A box is cut if some edge crosses it, by more than rounding errors that are too small to reach the
    middle of a cell. The area that polygon and box have in common is a sum over the edges of what lies in
    the box below each edge: added if the edge runs to the right, subtracted if it runs back.

    >>> triangle = PolygonInside([(Fraction(x), Fraction(y)) for x, y in ((0, 0), (0, 4), (4, 0))])
    >>> triangle.shares(np.array([[0, 0], [1, 2]], np.uint64), np.array([[1, 1], [1, 2]], np.uint64)).tolist()
    [1.0, 0.5]
    """

    corners: Sequence[Corner]

    def shares(self, lows: Corners, highs: Corners) -> Floats:
        """The share of each box by area, some boxes at a time."""
        starts = range(0, len(lows), _AT_ONCE)
        parts = [self._shares(lows[i : i + _AT_ONCE], highs[i : i + _AT_ONCE]) for i in starts]
        return np.concatenate([np.zeros(0), *parts])

    def _shares(self, lows: Corners, highs: Corners) -> Floats:
        boxes = _Boxes(lows, (highs - lows).astype(np.float64) + 1.0)
        area, cut = np.zeros(len(lows)), np.zeros(len(lows), bool)
        for start, end in pairwise(map(boxes.locate, [*self.corners, self.corners[0]])):
            rows = boxes.under(start, end)
            edge = _Edge(start[rows], end[rows], boxes.widths[rows])
            area[rows] += self._turn * edge.below
            cut[rows] |= edge.crossing
        return np.where(cut, np.clip(area, *CUT), np.rint(area).clip(0.0, 1.0))

    @cached_property
    def _turn(self) -> float:
        """1 if the corners run clockwise, so that edges above the inside run to the right; otherwise -1."""
        edges = pairwise([*self.corners, self.corners[0]])
        return 1.0 if sum((x2 - x1) * (y2 + y1) for (x1, y1), (x2, y2) in edges) > 0 else -1.0


@final
@dataclass(frozen=True, eq=False)
class _Boxes:
    """Many boxes, relative to which corners of the polygon are located."""

    lows: Corners
    widths: Floats

    def locate(self, corner: Corner) -> Floats:
        """The corner in cells from the lowest corner of each box: upper and lower halves of bits apart."""
        found = np.empty(self.widths.shape)
        for axis, place in enumerate(corner):
            far, near = divmod(place, 2**32)
            found[:, axis] = (float(far) - self._far[:, axis]) * 2.0**32 + (float(near) - self._near[:, axis])
        return found

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
    """One edge relative to each of many boxes, in cells from its lowest corner."""

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
    above = np.maximum(high - np.maximum(low, 1.0), 0.0)
    total, spread = (inner_high - inner_low) * (inner_low + inner_high) / 2.0 + above, high - low
    return np.where(spread > 0.0, total / np.where(spread > 0.0, spread, 1.0), inner_low)


def crosses_itself(corners: Sequence[Corner]) -> bool:
    """Whether two edges meet, except for neighbours in the corner that they share.

    >>> crosses_itself([(Fraction(x), Fraction(y)) for x, y in ((0, 0), (1, 1), (1, 0), (0, 1))])
    True
    """
    columns = []
    for places in zip(*corners, strict=True):  # scaled to a square: the question is the same in every scale
        least, width = min(places), max(places) - min(places)
        columns.append([float((place - least) / width) if width else 0.0 for place in places])
    starts = np.array(columns).T
    edges, number = np.roll(starts, -1, axis=0) - starts, len(starts)
    one, two = np.triu_indices(number, 1)
    apart = (two - one != 1) & (two - one != number - 1)
    meet = _meet(starts[one[apart]], edges[one[apart]], starts[two[apart]], edges[two[apart]])
    before = np.roll(edges, 1, axis=0)
    back = (_cross(before, edges) == 0.0) & ((before * edges).sum(axis=1) <= 0.0)
    return bool(meet.any() or back.any())


def _meet(one: Floats, first: Floats, two: Floats, second: Floats) -> Bools:
    """Whether segments have a point in common: each has ends on both sides of the other, or on it."""
    lowest = np.maximum(np.minimum(one, one + first), np.minimum(two, two + second))
    highest = np.minimum(np.maximum(one, one + first), np.maximum(two, two + second))
    sides = _cross(first, two - one) * _cross(first, two + second - one)
    others = _cross(second, one - two) * _cross(second, one + first - two)
    return np.asarray((lowest <= highest).all(axis=1) & (sides <= 0.0) & (others <= 0.0))


def _cross(one: Floats, two: Floats) -> Floats:
    return np.asarray(one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0])


@final
@frozen()
class HalfSpace:
    """All rows with w1 x1 + w2 x2 + ... <= at_most, for a weight of each of up to six columns.

    >>> HalfSpace({"income": 1, "rent": -3}, at_most="0.5")
    HalfSpace({'income': 1, 'rent': -3}, at_most=0.5)
    """

    weights: Converted[Mapping[str, object], Mapping[str, Fraction]] = parameter()
    at_most: Exact = parameter(kw_only=True)

    def __post_init__(self) -> None:
        weights = MappingProxyType(_weights(self.weights))
        freeze(self, weights=weights, at_most=_number(self.at_most, "at_most"))

    def __hash__(self) -> int:
        return hash((frozenset(self.weights.items()), self.at_most))

    def __repr__(self) -> str:
        weights = ", ".join(f"{name!r}: {number_text(weight)}" for name, weight in self.weights.items())
        return f"HalfSpace({{{weights}}}, at_most={number_text(self.at_most)})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return tuple(self.weights)

    def bound(self, columns: Sequence[str], domains: Sequence[Domain]) -> Region:
        """The same half-space in the cells of these columns, among which are its own."""
        scales = _scales(self.columns, columns, domains)
        factors = [weight * scale.step for weight, scale in zip(self.weights.values(), scales, strict=True)]
        starts = (weight * scale.start for weight, scale in zip(self.weights.values(), scales, strict=True))
        largest = max(map(abs, factors))
        limit = (self.at_most - sum(starts)) / largest
        # Further away no box reaches the limit, so that it does not matter where it is.
        near = float(min(max(limit, -Fraction(_FARTHEST)), Fraction(_FARTHEST)))
        side = PlaneSide(np.array([float(factor / largest) for factor in factors]), near)
        return _ColumnRegion.of(side, self.columns, columns, domains)


@final
@frozen()
class Polygon:
    """All rows with (x, y) inside a polygon, for two columns; its corners in order, in either direction.

    Corners are pairs of values of the two columns: numbers, dates or times. The polygon may have dents, but
    its edges must not cross or touch. The last corner may repeat the first.

    >>> Polygon("lat", "lon", [(0, 0), (0, 10), (5, 5)])
    Polygon('lat', 'lon', 3 corners)
    """

    x: str
    y: str
    corners: Converted[Sequence[tuple[object, object]], tuple[tuple[object, object], ...]] = parameter()

    def __post_init__(self) -> None:
        freeze(self, x=_column(self.x, "x"), y=_column(self.y, "y"), corners=_pairs(self.corners))
        check(self.x != self.y, "y", "must be another column than x", given=self.y, fix="name two columns")

    def __repr__(self) -> str:
        return f"Polygon({self.x!r}, {self.y!r}, {len(self.corners)} corners)"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return self.x, self.y

    def bound(self, columns: Sequence[str], domains: Sequence[Domain]) -> Region:
        """The same polygon in the cells of these columns, among which are its own."""
        x, y = _scales(self.columns, columns, domains)
        corners = [(x.place(at_x), y.place(at_y)) for at_x, at_y in self.corners]
        rule, fix = "must make a polygon whose edges do not cross or touch", "give them in order, each once"
        check(not crosses_itself(corners), "corners", rule, given=self.corners, fix=fix)
        return _ColumnRegion.of(PolygonInside(corners), self.columns, columns, domains)


PublicRegion: TypeAlias = HalfSpace | Polygon


class _Scale(NamedTuple):
    """How values lie along the cells of a column: cell 0 begins at `start`, and each is a `step` wide."""

    start: Fraction
    step: Fraction
    number: Callable[[object], Fraction]

    def place(self, value: object) -> Fraction:
        """Where a value lies, in cells."""
        place = (self.number(value) - self.start) / self.step
        rule = "must lie within 2^80 cells of their columns"
        check(abs(place) <= _FARTHEST, "corners", rule, given=value, fix="move them nearer")
        return place


@final
@dataclass(frozen=True, eq=False)
class _ColumnRegion:
    """A shape over the cells of some axes, as a region of positions on all of them."""

    shape: PlaneSide | PolygonInside
    places: Ints
    firsts: Corners
    lasts: Corners

    @staticmethod
    def of(
        shape: PlaneSide | PolygonInside,
        own: Sequence[str],
        columns: Sequence[str],
        domains: Sequence[Domain],
    ) -> _ColumnRegion:
        """The shape over its own columns, among all columns of a release."""
        places = [list(columns).index(name) for name in own]
        axes = [Axis.of(domains[place]) for place in places]
        firsts = np.array([axis.position(0) for axis in axes], np.uint64)
        lasts = np.array([axis.position(axis.size - 1) for axis in axes], np.uint64)
        return _ColumnRegion(shape, np.array(places), firsts, lasts)

    def shares(self, lows: Corners, highs: Corners) -> Floats:
        """The share of each box: of its cells that are not special, and these of all of them."""
        low, high = lows[:, self.places], highs[:, self.places]
        inner_low, inner_high = np.maximum(low, self.firsts), np.minimum(high, self.lasts)
        there = (inner_low <= inner_high).all(axis=1)
        whole = ((inner_low == low) & (inner_high == high)).all(axis=1)
        ordinary = (_widths(inner_low, inner_high) / _widths(low, high)).prod(axis=1)
        shares = np.where(whole, 1.0, np.minimum(ordinary, CUT[1]))
        shares[there] *= self.shape.shares(inner_low[there] - self.firsts, inner_high[there] - self.firsts)
        return np.where(there, shares, 0.0)


def _widths(lows: Corners, highs: Corners) -> Floats:
    return (highs - lows).astype(np.float64) + 1.0


def _weights(weights: object) -> dict[str, Fraction]:
    if not isinstance(weights, Mapping) or not 1 <= len(weights) <= MOST_AXES:
        rule = f"must have a number for each of 1 to {MOST_AXES} columns"
        fix = 'pass for example {"income": 1, "rent": -3}'
        raise InvalidParameter("weights", rule, given=weights, fix=fix)
    read = {_column(name, "weights"): _number(weight, "weights") for name, weight in weights.items()}
    for name, weight in read.items():
        check(weight != 0, "weights", "must be other than zero", given=name, fix="leave that column out")
    return read


def _column(name: object, parameter: str) -> str:
    return check_type(name, str, parameter, "must be the name of a column", fix="pass text")


def _pairs(corners: object) -> tuple[tuple[object, object], ...]:
    given = corners.tolist() if isinstance(corners, np.ndarray) else corners
    listed = list(given) if isinstance(given, list | tuple) else []
    pairs = [tuple(corner) for corner in listed if isinstance(corner, list | tuple) and len(corner) == 2]
    distinct = pairs[:-1] if len(pairs) > 1 and pairs[0] == pairs[-1] else pairs
    fits = len(pairs) == len(listed) and 3 <= len(distinct) <= _MOST_CORNERS
    fix = "pass [(x, y), (x, y), (x, y)]"
    check(fits, "corners", f"must be 3 to {_MOST_CORNERS} pairs of values", given=corners, fix=fix)
    return tuple((corner[0], corner[1]) for corner in distinct)


def _scales(own: Sequence[str], columns: Sequence[str], domains: Sequence[Domain]) -> list[_Scale]:
    """The scales of the columns of a region."""
    known = dict(zip(columns, domains, strict=True))
    for name in own:
        rule, fix = "must be over columns released together", f"choose of {', '.join(columns)}"
        check(name in known, "region", rule, given=name, fix=fix)
    return [_scale(known[name], name) for name in own]


def _scale(domain: Domain, name: str) -> _Scale:
    match domain:
        case Integer():
            return _Scale(domain.low - _MIDDLE, Fraction(1), lambda value: _number(value, name))
        case Real():
            return _Scale(domain.low - domain.step / 2, domain.step, lambda value: _number(value, name))
        case Date():
            days = Fraction(public_moment(domain.start, name).day)
            return _Scale(days - _MIDDLE, Fraction(1), lambda value: Fraction(public_moment(value, name).day))
        case Timestamp():
            zone, length = zone_named(domain.zone), resolution_nanoseconds(domain.resolution)
            start = Fraction(public_instant(domain.start, UTC, "start"), _SECOND)
            return _Scale(
                start,
                Fraction(length, _SECOND),
                lambda value: Fraction(public_instant(value, zone, name), _SECOND),
            )
    fix = "ask for its labels instead"
    raise InvalidParameter("region", "must be over columns of numbers, dates or times", given=name, fix=fix)


def _number(value: object, name: str) -> Fraction:
    return check_bounded(rational(value, name), name, value)
