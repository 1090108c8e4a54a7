"""Public regions of several columns: half-spaces, and polygons of two columns.

A region is made of values, and compiled for the cells of a release. A cell is one step of its column wide,
and its value lies in the middle; a slot of time is just that slot. What a region cuts counts by the share
of the cell, so that of the whole numbers `{"age": 1}, at_most=39` takes half of those with 39: pass 39.5 for
all of them. In numbers a date is its days since 1970-01-01, and a time its seconds since then in UTC.
Special cells lie outside every region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from fractions import Fraction
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, final

import numpy as np

from partita.domain.axis import MOST_AXES, Axis
from partita.domain.base.base import Domain
from partita.domain.columns.text import number_text
from partita.domain.numeric.grid import bounded
from partita.domain.numeric.integer import Integer
from partita.domain.numeric.real import Real
from partita.domain.time.date import Date
from partita.domain.time.times import public_instant, public_moment, resolution_nanoseconds
from partita.domain.time.timestamp import Timestamp
from partita.domain.time.zones import zone_named
from partita.errors.checks import check, check_type
from partita.errors.errors import InvalidParameter
from partita.numbers import Converted, Exact, freeze, frozen, parameter, rational
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.boxes.base.boxes import Region
from partita.public.boxes.plan.nodes import Corners
from partita.public.boxes.regions.halfspace import CUT, PlaneSide
from partita.public.boxes.regions.polygon import PolygonInside, crosses_itself

_MOST_CORNERS: Final = 1000
_FARTHEST: Final = 2**80
_SECOND: Final = 10**9
_MIDDLE: Final = Fraction(1, 2)


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
        scales = [_scale(domain, name) for name, domain in _own(self.columns, columns, domains)]
        factors = [weight * scale.step for weight, scale in zip(self.weights.values(), scales, strict=True)]
        starts = (weight * scale.start for weight, scale in zip(self.weights.values(), scales, strict=True))
        limit, largest = self.at_most - sum(starts), max(map(abs, factors))
        side = PlaneSide(np.array([float(factor / largest) for factor in factors]), _near(limit / largest))
        return _Bound.of(side, self.columns, columns, domains)


@final
@frozen()
class Polygon:
    """All rows with (x, y) inside a polygon, for two columns; its corners in order, in either direction.

    Corners are pairs of values, as people write those of the two columns: numbers, dates or times. The
    polygon may have dents, but its edges must not cross or touch. The last corner may repeat the first.

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
        x, y = (_scale(domain, name) for name, domain in _own(self.columns, columns, domains))
        corners = [(x.place(at_x), y.place(at_y)) for at_x, at_y in self.corners]
        if crosses_itself(corners):
            rule = "must make a polygon whose edges do not cross or touch"
            raise InvalidParameter("corners", rule, given=self.corners, fix="give them in order, each once")
        return _Bound.of(PolygonInside(corners), self.columns, columns, domains)


PublicRegion: TypeAlias = HalfSpace | Polygon


class _Scale(NamedTuple):
    """How values lie along the cells of a column: cell 0 begins at `start`, and each is a `step` wide."""

    start: Fraction
    step: Fraction
    number: Callable[[object], Fraction]

    def place(self, value: object) -> Fraction:
        """Where a value lies, in cells."""
        place = (self.number(value) - self.start) / self.step
        if abs(place) > _FARTHEST:
            rule = "must lie within 2^80 cells of their columns"
            raise InvalidParameter("corners", rule, given=value, fix="move them nearer")
        return place


@final
@dataclass(frozen=True, eq=False)
class _Bound:
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
    ) -> _Bound:
        """The shape over its own columns, among all columns of a release."""
        places = [list(columns).index(name) for name in own]
        axes = [Axis.of(domains[place]) for place in places]
        firsts = np.array([axis.position(0) for axis in axes], np.uint64)
        lasts = np.array([axis.position(axis.size - 1) for axis in axes], np.uint64)
        return _Bound(shape, np.array(places), firsts, lasts)

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


def _own(own: Sequence[str], columns: Sequence[str], domains: Sequence[Domain]) -> list[tuple[str, Domain]]:
    """The columns of the region with their domains."""
    known = dict(zip(columns, domains, strict=True))
    for name in own:
        if name not in known:
            fix = f"choose of {', '.join(columns)}"
            raise InvalidParameter("region", "must be over columns released together", given=name, fix=fix)
    return [(name, known[name]) for name in own]


def _scale(domain: Domain, name: str) -> _Scale:
    match domain:
        case Integer():
            return _Scale(domain.low - _MIDDLE, Fraction(1), lambda value: _number(value, name))
        case Real():
            return _Scale(domain.low - domain.step / 2, domain.step, lambda value: _number(value, name))
        case Date():
            return _Scale(_days(domain.start, name) - _MIDDLE, Fraction(1), lambda value: _days(value, name))
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


def _days(value: object, name: str) -> Fraction:
    return Fraction(public_moment(value, name).day)


def _number(value: object, name: str) -> Fraction:
    return bounded(rational(value, name), name, value)


def _near(limit: Fraction) -> float:
    """The limit as a float; so far away that no box reaches it, it does not matter where."""
    return float(min(max(limit, -Fraction(_FARTHEST)), Fraction(_FARTHEST)))
