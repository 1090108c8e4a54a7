"""The closest point of a hull to noisy answers: accelerated projected gradients, sped up along faces.

Accelerated gradients with restarts [BT09, OC15] find out which cells have any weight. Where the answers
hardly tell some cells apart they crawl, so conjugate gradients on those cells alone take over in turns
[MT91]. Nothing here is believed: a point counts for what its gap says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Final, final

import numpy as np

from partita.public.axis.curve.curve import Bools, Floats
from partita.public.workload.projection.projection_hull import Hull, Point

_FIRST_BURST: Final = 50
_LOOK_EVERY: Final = 10
_ALONG: Final = 1000
_GENTLER: Final = 0.98
_STEEPER: Final = 1.5
_HARDLY: Final = 1e-4
_ROUNDING: Final = 1e-9
_TINY: Final = 1e-24
_MOST_TRIES: Final = 40


def closest(hull: Hull, noisy: Floats, *, gap: float, steps: int) -> Point:
    """A point whose gap is at most `gap`, or the one after so many accelerated steps.

    Momentum needs time, and faces need to be found: bursts of steps double, and the face is tried between.
    """
    point, steepness, burst = hull.middle(), hull.steepness(), _FIRST_BURST
    while steps > 0:
        path = islice(_accelerated(hull, noisy, point, steepness), min(burst, steps))
        for number, point in enumerate(path, 1):
            if number % _LOOK_EVERY == 0 and hull.gap(point, noisy) <= gap:
                return point
        point = _along_face(hull, noisy, point)
        steps, burst = steps - burst, 2 * burst
    return point


def _accelerated(hull: Hull, noisy: Floats, start: Point, steepness: float) -> Iterator[Point]:
    """Gradient steps from beyond the last point; momentum is dropped when it leads astray."""
    last, ahead, age = start, start, 1.0
    while True:
        slopes = hull.slopes(ahead.answers - noisy)
        point, steepness = _stepped(hull, ahead, slopes, steepness * _GENTLER)
        if float((ahead.x - point.x) @ (point.x - last.x)) > 0.0:
            age = 1.0
        older = (1.0 + math.sqrt(1.0 + 4.0 * age * age)) / 2.0
        ahead, last, age = point.beyond(last, (age - 1.0) / older), point, older
        yield point


def _stepped(hull: Hull, start: Point, slopes: Floats, steepness: float) -> tuple[Point, float]:
    """A gradient step short enough for f to fall as a parabola so steep would, and how steep that is."""
    point = hull.at(start.x - slopes / steepness)
    for _ in range(_MOST_TRIES):
        way = float(np.square(point.x - start.x).sum())
        rounding = _TINY * float(np.square(point.answers).sum())
        if float(np.square(point.answers - start.answers).sum()) <= steepness * way + rounding:
            break
        steepness *= _STEEPER
        point = hull.at(start.x - slopes / steepness)
    return point, steepness


def _along_face(hull: Hull, noisy: Floats, start: Point) -> Point:
    """The best of where conjugate gradients start, where they leave the hull, and where they end."""
    face = _Face(hull, start)
    inside, still_inside, here = start, True, start
    pull, most = face.pull(here, noisy), 0.0
    direction, strength = pull, float(pull @ pull)
    for _ in range(_ALONG):
        change = hull.answers(direction)
        curvature = float(change @ change)
        if strength * curvature <= 0.0:
            break
        length = strength / curvature
        if still_inside:
            room = hull.room(here.x, direction)
            inside, still_inside = here.moved(direction, change, min(length, room)), length <= room
        here, fall = here.moved(direction, change, length), length * strength
        most = max(most, fall)
        if fall < _HARDLY * most:
            break
        pull, weaker = face.pull(here, noisy), strength
        strength = float(pull @ pull)
        direction = pull + (strength / weaker) * direction
    ends = (start, hull.at(inside.x), hull.at(here.x))
    return min(ends, key=lambda point: point.distance(noisy))


@final
class _Face:
    """Where only the cells that have weight may change, and no row may be added if all are used."""

    def __init__(self, hull: Hull, point: Point) -> None:
        self.hull = hull
        self.free: Bools = point.x > 0.0
        self.full = float(point.x.sum()) >= hull.rows * (1.0 - _ROUNDING)

    def pull(self, point: Point, noisy: Floats) -> Floats:
        """The direction in which f falls fastest."""
        slopes = self.hull.slopes(point.answers - noisy)
        level = float(slopes[self.free].mean()) if self.full and bool(self.free.any()) else 0.0
        return np.where(self.free, level - slopes, 0.0)
