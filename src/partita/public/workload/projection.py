"""Answers projected on those that some table has, with a certificate that every reader can check.

A projection is a weight for some cells, in whole parts of a row. It is accepted because of its gap, which is
computed again from the noisy answers and the weights alone, in integers, and never because of how it was
found. f(x) = ||A x - y||^2 / 2 is how far the answers A x are from the noisy ones y; the gap of a point
bounds how much f can still fall [J13]. The matrix A is an operator and is never built.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Floats, Ints
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_probability, integer
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.base import damaged
from partita.public.bounds import half_width, laplace_variance, largest_reach, repeated_reach
from partita.public.queries.operator import Operator, split_limbs
from partita.public.queries.queries import Queries, Universe
from partita.public.workload.release import AnswerChanges, WorkloadRelease

_POWER_STEPS: Final = 8  # of the power method: a rough curvature is enough, steps correct it


class Point(NamedTuple):
    """A weight for each cell, and the answers that the weights give: x and A x."""

    x: Floats
    answers: Floats

    def extrapolate(self, earlier: Point, momentum: float) -> Point:
        """On the line from an earlier point to this one, so many times its length further."""
        return self.move(self.x - earlier.x, self.answers - earlier.answers, momentum)

    def move(self, direction: Floats, change: Floats, length: float) -> Point:
        """A step of the length in a direction that changes the answers by `change`."""
        return Point(self.x + length * direction, self.answers + length * change)

    def distance(self, noisy: Floats) -> float:
        """f at this point."""
        return float(np.square(self.answers - noisy).sum()) / 2


@final
class Mirrored(Operator):
    """The queries of another operator over its cells, and with opposite weights over a copy of them.

    Its answers about weights x >= 0 of sum at most n are the n K of [DR14]: K is the convex hull of all
    columns of the matrix and of their negatives.
    """

    def __init__(self, inner: Operator) -> None:
        self.inner, self.shape, self.granularity = inner, (2, *inner.shape), inner.granularity
        self.highest = max(abs(inner.lowest), abs(inner.highest))
        self.lowest = -self.highest

    @property
    def column_norm(self) -> int:
        return self.inner.column_norm

    def answers(self, x: Any) -> Any:
        return self.inner.answers(x[0] - x[1])

    def combine(self, y: Any) -> Any:
        once = np.asarray(self.inner.combine(y))
        return np.stack([once, -once])

    def row(self, index: int, like: Any) -> Any:
        once = self.inner.row(index, like[0])
        return np.stack([once, -once])

    def __len__(self) -> int:
        return len(self.inner)


@final
@dataclass(frozen=True, eq=False)
class Hull:
    """The answers that tables of at most `rows` rows can give: all A x with x >= 0 of sum at most `rows`.

    Points have weights for some cells only.
    """

    operator: Operator
    rows: float
    cells: Ints

    @staticmethod
    def of(operator: Operator, rows: float) -> Hull:
        """The hull with weights for one cell of each kind: cells that count alike in all queries need one.

        Sums over hashes of the queries' numbers distinguish them. A collision, if it ever happened, would
        leave a gap that is detected.
        """
        prints = np.asarray(operator.combine(_hashes(len(operator)))).ravel()
        return Hull(operator, rows, np.unique(prints, return_index=True)[1].astype(np.int64))

    def at(self, x: Floats) -> Point:
        """The point with the weights closest to these that the hull has."""
        inside = project_on_simplex(x, self.rows)
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

    def step_limit(self, x: Floats, direction: Floats) -> float:
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
    """Numbers of 40 bits without a pattern, always the same [SLF14]."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(24)).astype(np.int64)


def project_on_simplex(x: Floats, most: float) -> Floats:
    """The closest weights that are not negative and add up to at most `most` [M86].

    >>> project_on_simplex(np.array([3.0, 1.0, -5.0]), 2.0).tolist()
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


# The closest point of a hull to noisy answers. None of these constants can make a result wrong: the gap is
# checked afterwards. They trade time only.


_FIRST_BURST: Final = 50  # steps before the face is tried for the first time
_LOOK_EVERY: Final = 10  # steps between two computations of the gap, which costs about a step
_ALONG: Final = 1000  # conjugate gradients in one attempt
_GENTLER: Final = 0.98  # longer steps are tried again by this factor of the curvature
_STEEPER: Final = 1.5  # shorter steps after one that was too long
_HARDLY: Final = 1e-4  # conjugate gradients end when a step gains less, compared with the best one
_ROUNDING: Final = 1e-9
_TINY: Final = 1e-24
_MOST_TRIES: Final = 40


def find_closest(hull: Hull, noisy: Floats, *, gap: float, steps: int) -> Point:
    """A point whose gap is at most `gap`, or the one after so many accelerated steps.

    Accelerated projected gradients with restarts [BT09, OC15] find out which cells have any weight. They are
    slow where answers hardly distinguish some cells, so conjugate gradients on those cells alone take turns
    with them [MT91]. Momentum needs time, so bursts of steps double, and the face is tried between them.
    """
    point, steepness, burst = hull.middle(), hull.steepness(), _FIRST_BURST
    while steps > 0:
        path = islice(_accelerate(hull, noisy, point, steepness), min(burst, steps))
        for number, point in enumerate(path, 1):
            if number % _LOOK_EVERY == 0 and hull.gap(point, noisy) <= gap:
                return point
        point = _search_face(hull, noisy, point)
        steps, burst = steps - burst, 2 * burst
    return point


def _accelerate(hull: Hull, noisy: Floats, start: Point, steepness: float) -> Iterator[Point]:
    """Gradient steps from beyond the last point; momentum is reset when it points uphill."""
    last, ahead, age = start, start, 1.0
    while True:
        slopes = hull.slopes(ahead.answers - noisy)
        point, steepness = _take_step(hull, ahead, slopes, steepness * _GENTLER)
        if float((ahead.x - point.x) @ (point.x - last.x)) > 0.0:
            age = 1.0
        older = (1.0 + math.sqrt(1.0 + 4.0 * age * age)) / 2.0
        ahead, last, age = point.extrapolate(last, (age - 1.0) / older), point, older
        yield point


def _take_step(hull: Hull, start: Point, slopes: Floats, steepness: float) -> tuple[Point, float]:
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


def _search_face(hull: Hull, noisy: Floats, start: Point) -> Point:
    """The best of where conjugate gradients start, where they leave the hull, and where they end."""
    free, full = start.x > 0.0, float(start.x.sum()) >= hull.rows * (1.0 - _ROUNDING)

    def descent(point: Point) -> Floats:
        """Where f falls fastest if only cells with weight change, and no row is added if all are used."""
        slopes = hull.slopes(point.answers - noisy)
        level = float(slopes[free].mean()) if full and bool(free.any()) else 0.0
        return np.where(free, level - slopes, 0.0)

    inside, still_inside, here = start, True, start
    pull, most = descent(here), 0.0
    direction, strength = pull, float(pull @ pull)
    for _ in range(_ALONG):
        change = hull.answers(direction)
        curvature = float(change @ change)
        if strength * curvature <= 0.0:
            break
        length = strength / curvature
        if still_inside:
            room = hull.step_limit(here.x, direction)
            inside, still_inside = here.move(direction, change, min(length, room)), length <= room
        here, fall = here.move(direction, change, length), length * strength
        most = max(most, fall)
        if fall < _HARDLY * most:
            break
        pull, weaker = descent(here), strength
        strength = float(pull @ pull)
        direction = pull + (strength / weaker) * direction
    ends = (start, hull.at(inside.x), hull.at(here.x))
    return min(ends, key=lambda point: point.distance(noisy))


# The gap in integers: a certificate that holds to the last digit on any machine.


_LIMB_BITS: Final = 60
"""Limbs of all residuals together stay below two to this, so that operators add them up exactly."""

_BLOCK: Final = 2**18  # cells whose slopes are Python ints at a time: trades memory for calls


def exact_gap(
    operator: Operator, sums: NDArray[Any], noisy: NDArray[Any], *, rows: int, bits: int
) -> Fraction:
    """<g, x> - rows min(0, min g), g the gradient A'(A x - y) of half the squared distance of A x from y.

    `sums` are the answers A x in units of 2^-bits, and `noisy` the answers y in units. <g, x> is the product
    of A x - y and A x, which needs no slope of any cell; the least slope is the minimum over all cells.
    """
    answers = sums.astype(object)
    residuals = answers - (noisy.astype(object) << bits)
    along = int((residuals * answers).sum())
    lowest = min(0, _least_slope(operator, residuals))
    return Fraction(along - (rows << bits) * lowest, (operator.granularity << bits) ** 2)


def _least_slope(operator: Operator, residuals: NDArray[Any]) -> int:
    """The least over all cells of the sum of weights times residuals."""
    largest, bits = int(abs(residuals).max(initial=1)), _LIMB_BITS - residuals.size.bit_length()
    parts = [
        (shift, np.asarray(operator.combine(limb.astype(np.int64))).ravel())
        for shift, limb in split_limbs(residuals, largest, bits)
    ]
    blocks = [slice(first, first + _BLOCK) for first in range(0, parts[0][1].size, _BLOCK)]
    shifted = ([part[block].astype(object) << shift for shift, part in parts] for block in blocks)
    return min(int(np.min(np.sum(each, axis=0))) for each in shifted)


MOST_CELLS: Final = 2**24
LARGEST_BITS: Final = 62
"""All weights together stay below two to this, in parts of a row."""

_CLOSE: Final = 0.01  # distance to the closest answers, in deviations of the noise: far below what matters
_SOLVED: Final = 0.7  # share of the allowed gap that the search may leave
_ROUNDED: Final = 0.1  # share of the allowed gap that rounding to parts of a row may add
_LESS: Final = 1.0 - 2.0**-50  # weights rounded in floats must not add up to more than all rows
_FRACTION: Final = 2**20  # denominator of a stated gap: a short number for the file
_WORK: Final = 200_000_000  # steps times cells: how long a projection may take before it is given up
_MOST_STEPS: Final = 20_000
_FEWEST_STEPS: Final = 500


def allowed_gap(queries: int, deviation: float) -> float:
    """The gap that leaves answers within a hundredth of the noise of the closest, in the mean square."""
    return queries * (_CLOSE * deviation) ** 2 / 2


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Projection:
    """Weights of cells, in units of 2^-bits rows, and a bound on how much closer any others come.

    `gap` bounds ||A x - y||^2 / 2 less its minimum over all x >= 0 of sum at most `rows`. So the answers A x
    are within sqrt(2 gap) of the closest ones.
    """

    operator: Operator
    rows: int
    bits: int
    cells: Ints
    amounts: Ints
    gap: Fraction

    @cached_property
    def values(self) -> Floats:
        """The projected answers: exact sums, divided at the end."""
        parts = self.operator.granularity << self.bits
        return np.asarray(self._sums.astype(object) / parts, np.float64)

    @property
    def distance(self) -> float:
        """The answers are at most so far from the closest ones, in the Euclidean norm."""
        return math.sqrt(2 * self.gap)

    def holds(self, noisy: NDArray[Any], deviation: float) -> bool:
        """Whether the weights are a table's, and their gap is no more than stated, which is small enough."""
        within = int(self.amounts.astype(object).sum()) <= self.rows << self.bits
        return within and self.gap_to(noisy) <= self.gap <= allowed_gap(len(self.operator), deviation)

    def gap_to(self, noisy: NDArray[Any]) -> Fraction:
        """The gap, exactly, from the noisy answers in units and these weights alone."""
        return exact_gap(self.operator, self._sums, noisy, rows=self.rows, bits=self.bits)

    @cached_property
    def _sums(self) -> NDArray[Any]:
        """The projected answers in units of 2^-bits."""
        x = np.zeros(self.operator.shape, np.int64)
        x.flat[self.cells] = self.amounts
        return np.asarray(self.operator.answers(x))


def project(operator: Operator, noisy: NDArray[Any], *, rows: int, deviation: float) -> Projection | None:
    """The projection of noisy answers on those of tables of at most `rows` rows; None without a certificate.

    `noisy` are integers in units of the operator, and the deviation of their noise is in rows times weight.
    A function of released numbers: it costs no privacy.
    """
    if rows.bit_length() > LARGEST_BITS:
        return None
    hull = Hull.of(operator, float(rows))
    enough = allowed_gap(len(operator), deviation)
    steps = min(_MOST_STEPS, max(_FEWEST_STEPS, _WORK // math.prod(operator.shape)))
    floats = np.asarray(noisy / operator.granularity, np.float64)
    point = find_closest(hull, floats, gap=_SOLVED * enough, steps=steps)
    rounded = _round_weights(hull, point.x, rows, enough)
    gap = Fraction(math.ceil(rounded.gap_to(noisy) * _FRACTION), _FRACTION)
    found = replace(rounded, gap=gap)
    return found if found.holds(noisy, deviation) else None


def _round_weights(hull: Hull, x: Floats, rows: int, enough: float) -> Projection:
    """The weights in whole parts of a row, rounded down: parts so small that the gap hardly grows."""
    bits = _bits(hull, int((x > 0.0).sum()), rows, enough)
    amounts = np.floor(np.ldexp(x * _LESS, bits)).astype(np.int64)
    positive = amounts > 0
    cells, order = hull.cells[positive], np.argsort(hull.cells[positive])
    parts = {"cells": cells[order], "amounts": amounts[positive][order]}
    return Projection(operator=hull.operator, rows=rows, bits=bits, gap=Fraction(0), **parts)


def _bits(hull: Hull, support: int, rows: int, enough: float) -> int:
    """How fine the parts of a row are.

    Rounding changes an answer by less than support w 2^-bits, w the largest weight of a query. That changes
    every slope by at most k w times as much and the gap by about 2 rows times this.
    """
    weight = _largest_weight(hull.operator) / hull.operator.granularity
    growth = 2.0 * max(1, rows) * len(hull.operator) * weight * max(1, support) * weight
    wanted = math.ceil(math.log2(max(1.0, growth / (_ROUNDED * enough))))
    return max(0, min(wanted, LARGEST_BITS - rows.bit_length()))


# How far projected answers are from the truth: what is certain, and what is likely.


def _largest_weight(operator: Operator) -> int:
    return max(abs(operator.lowest), abs(operator.highest))


def rows_reach(scale: Fraction, beta: float) -> int:
    """The least h such that a noisy number of rows plus h is below the true one at most so often."""
    return int(half_width(np.array(float(1 / scale)), np.array(math.log(2 * beta))))


def rows_missed(scale: Fraction, beta: float) -> int:
    """The table has so many rows more than the hull with probability beta at most."""
    return max(0, rows_reach(scale, beta) - rows_reach(scale, _BETA))


def most_rows_added(scale: Fraction, beta: float) -> int:
    """The hull has so many rows more than the table with probability beta at most."""
    return rows_reach(scale, beta) + rows_reach(scale, _BETA)


@final
@dataclass(frozen=True, eq=False)
class AnswerNoise:
    """Independent noise of one scale, in units of the operator, on the answer to every query."""

    operator: Operator
    scale: Fraction

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of an answer."""
        return math.sqrt(laplace_variance(self.scale)) / self.operator.granularity

    def reach(self, queries: int, beta: float) -> float:
        """With probability 1 - beta the noise of so many answers is nowhere larger."""
        return largest_reach(self.scale, queries, beta) / self.operator.granularity

    def column_reach(self, beta: float) -> float:
        """With probability 1 - beta no cell's sum of weights times noises is further from zero.

        By convexity of ln M, the sum has moments no larger than those of column_norm / w noises of full
        weight w. Each cell has its share of beta, half of it on either side.
        """
        operator = self.operator
        weight = float(_largest_weight(operator))
        times = np.array([operator.column_norm / weight])
        each = beta / (2 * math.prod(operator.shape))
        reach = repeated_reach(np.array([weight]), np.array([float(1 / self.scale)]), times, each)
        return reach / operator.granularity**2

    def distance(self, rows: int, beyond: float, beta: float, *, solved: float | None = None) -> float:
        """With probability 1 - beta projected answers are no further from the truth, in the Euclidean norm.

        The hull is that of `rows` rows, and `beyond` is by how many more there may be. `solved` is how far
        the answers may be from the closest ones; without it, as far as a certificate allows.
        docs/proofs/projected_laplace.md, Theorem 2.
        """
        hull = math.sqrt(2 * rows * self.column_reach(beta / 2))
        noise = math.sqrt(len(self.operator)) * self.reach(len(self.operator), beta / 2)
        if solved is None:
            solved = math.sqrt(2 * allowed_gap(len(self.operator), self.deviation))
        return min(hull, noise) + 2 * beyond * self._column_length + solved

    @property
    def _column_length(self) -> float:
        """The Euclidean norm of the weights of a cell is at most this."""
        squares = self.operator.column_norm * _largest_weight(self.operator)
        return math.sqrt(squares) / self.operator.granularity


def likely_error(projection: Projection, noisy: Floats, deviation: float) -> float:
    """About the root-mean-square error of projected answers, by Stein's unbiased estimate of risk [S81].

    ||y - a||^2 - k s^2 + 2 s^2 d, where d, the dimension of the face that a lies on, is at most the number
    of cells with weight; no less than d s^2, what noise does along the face, and no more than k s^2.
    """
    count = noisy.size
    dimension = min(projection.cells.size, count)
    risk = float(np.square(noisy - projection.values).sum()) + (2 * dimension - count) * deviation**2
    return math.sqrt(min(count * deviation**2, max(risk, max(1, dimension) * deviation**2)) / count)


# The release.


_BETA: Final = 1e-4  # chance that the table has more rows than the hull: smaller ones make the hull larger
_LARGEST_ROWS: Final = 2**127


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ProjectedLaplaceRelease(WorkloadRelease):
    """The number of rows, noisy answers in units, and the projection if one was certified.

    `rows` is exact where `rows_scale` is None: neighbours have equally many then. `values` are the projected
    answers; without a certificate they are the noisy ones, and `story` says so. Of the `book` variant they
    are projected on n K as printed, which holds the negatives of answers, too.
    """

    kind: ClassVar[str] = "projected-laplace"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"projection": ("DR14",)}
    max_series: ClassVar[int] = 8

    rows: int
    rows_scale: Fraction | None
    noisy: NDArray[Any]
    scale: Fraction
    book: bool = False
    projection: Projection | None = None

    def projected(self) -> Self:
        """The same release with the projection of its answers, if one can be certified."""
        found = project(self.hull, self.noisy, rows=self.most_rows, deviation=self.noise.deviation)
        return replace(self, projection=found)

    @cached_property
    def hull(self) -> Operator:
        """The operator whose answers about non-negative cells are projected on."""
        return Mirrored(self.operator) if self.book else self.operator

    @property
    def most_rows(self) -> int:
        """The number of rows, if it is noisy plus its reach: more with probability 1/10,000 at most."""
        return self._most_rows(_BETA)

    def _most_rows(self, beta: float) -> int:
        return max(0, self.rows + (0 if self.rows_scale is None else rows_reach(self.rows_scale, beta)))

    @cached_property
    def noise(self) -> AnswerNoise:
        """The noise of the unprojected answers."""
        return AnswerNoise(self.operator, self.scale)

    @cached_property
    def unprojected(self) -> Floats:
        """The noisy answers as they were drawn: unbiased, each with noise of its own."""
        return np.asarray(self.noisy / self.operator.granularity, np.float64)

    @property
    def values(self) -> Floats:
        return self.unprojected if self.projection is None else self.projection.values

    @cached_property
    def spreads(self) -> Floats:
        """The standard deviation of noise; of projected answers an estimate for all of them together."""
        deviation = self.noise.deviation
        if self.projection is not None:
            deviation = likely_error(self.projection, self.unprojected, deviation)
        return np.full(len(self), deviation)

    def answer(self, index: int) -> Answer:
        """The answer to one query. Bounds hold for any data; the standard error is `spreads`."""
        place = integer(index, "index", low=0, high=len(self) - 1)
        value, noisy = float(self.values[place]), float(self.unprojected[place])

        def bounds(beta: float) -> tuple[float, float]:
            noise, distance = self.noise.reach(1, beta / 3), self.distance(beta / 3)
            least, most = self._possible(beta / 3)
            low = max(noisy - noise, value - distance, least)
            return low, max(low, min(noisy + noise, value + distance, most))

        least = 0.0 if self.operator.lowest >= 0 else -math.inf
        return Answer(value, lambda: float(self.spreads[place]), bounds, least)

    def _possible(self, beta: float) -> tuple[float, float]:
        """With probability 1 - beta every answer is between these: as many rows, at the extreme weights."""
        rows = self._most_rows(beta) / self.operator.granularity
        return rows * min(0, self.operator.lowest), rows * max(0, self.operator.highest)

    def error(self, beta: float) -> float:
        half = float(check_probability(beta)) / 2
        moved = float(np.abs(self.values - self.unprojected).max(initial=0.0))
        return min(self.distance(half), moved + self.noise.reach(len(self), half))

    def distance(self, beta: float) -> float:
        """With probability 1 - beta all answers together miss the truth by no more, in the Euclidean norm."""
        chance = float(check_probability(beta))
        if self.projection is None:
            return math.sqrt(len(self)) * self.noise.reach(len(self), chance)
        scale, found = self.rows_scale, self.projection
        beyond = 0 if scale is None else rows_missed(scale, chance / 2)
        return self.noise.distance(found.rows, beyond, chance / 2, solved=found.distance)

    @property
    def story(self) -> str:
        """What the projection did, and whether noise drowns the rows."""
        text = "No projection was certified within the steps allowed: answers are the noisy ones."
        if self.projection is not None:
            off = self.projection.distance / math.sqrt(len(self))
            tables = "tables and of their negatives" if self.book else "tables"
            text = (
                f"Answers are projected on those of {tables} of at most {self.most_rows} rows; "
                f"the closest such answers are at most {off:.3g} away, in the root mean square."
            )
        if self.noise.deviation > self.rows / 4:
            text += " The noise of an answer exceeds a quarter of the rows: an even guess may do better."
        return text

    @property
    def spent(self) -> Fraction:
        """What the noise of the rows and of the answers costs together."""
        if self.guarantee is None:
            return Fraction(0)
        promised = self.guarantee
        changes = AnswerChanges.between(promised, self.operator)
        counted = Fraction(0) if self.rows_scale is None else promised.contributions / self.rows_scale
        return counted + changes.cost(self.scale, promised.delta)

    def parts(self) -> Parts:
        """The noisy numbers, and the certificate if there is one: weights of cells and their gap."""
        scale = None if self.rows_scale is None else str(self.rows_scale)
        facts: dict[str, Json] = {"rows": str(self.rows), "rows_scale": scale, "scale": str(self.scale)}
        if self.book:  # files of earlier versions do not say so, and are not
            facts["book"] = True
        found = self.projection
        if found is None:
            return Parts({**facts, "bits": None, "gap": None}, {"noisy": self.noisy})
        series = {"noisy": self.noisy, "cells": found.cells, "amounts": found.amounts}
        return Parts({**facts, "bits": found.bits, "gap": str(found.gap)}, series)

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The release that `parts` took apart; a projection is believed if its certificate holds."""
        read = PartsReader(parts)
        if universe.size > MOST_CELLS:
            raise damaged("universe", f"must have at most {MOST_CELLS} cells")
        certified = parts.facts.get("bits") is not None
        said = ("book",) if "book" in parts.facts else ()
        read.expect(
            facts=("rows", "rows_scale", "scale", "bits", "gap", *said),
            series=("noisy", "cells", "amounts") if certified else ("noisy",),
        )
        rows, rows_scale = _read_rows(read), read.optional("rows_scale", read.scale)
        if rows_scale is None and (rows < 0 or not (guarantee is None or guarantee.same_rows)):
            raise damaged("rows_scale", "must be that of noise, unless neighbours have equally many rows")
        release = cls(
            rows=rows,
            rows_scale=rows_scale,
            noisy=read.noisy("noisy", count=len(queries.over(universe))),
            scale=read.scale("scale"),
            book=bool(said) and read.flag("book"),
            queries=queries,
            universe=universe,
            guarantee=guarantee,
        )
        return replace(release, projection=_read_projection(read, release)) if certified else release


def _read_rows(read: PartsReader) -> int:
    rows = read.rational("rows")
    if rows.denominator != 1 or abs(rows) > _LARGEST_ROWS:
        raise damaged("rows", "must be a whole number of at most 127 bits")
    return int(rows)


def _read_projection(read: PartsReader, release: ProjectedLaplaceRelease) -> Projection:
    """The projection, if it is that of the release's own noisy answers."""
    cells, amounts = read.row("cells", np.int64), read.row("amounts", np.int64)
    ends = cells.size and (int(cells[0]) < 0 or int(cells[-1]) >= math.prod(release.hull.shape))
    if ends or bool((cells[1:] <= cells[:-1]).any()):
        raise damaged("cells", "must be increasing cells of the universe")
    if bool((amounts <= 0).any()) or float(amounts.astype(np.float64).sum()) >= 2.0**LARGEST_BITS:
        raise damaged("amounts", "must be positive and add up to less than 2^62")
    if cells.size != amounts.size:
        raise damaged("amounts", "must be as many as cells")
    spare = LARGEST_BITS - release.most_rows.bit_length()
    bits, gap = read.integer("bits", low=0, high=spare), read.rational("gap")
    projection = Projection(
        operator=release.hull, rows=release.most_rows, bits=bits, cells=cells, amounts=amounts, gap=gap
    )
    if not projection.holds(release.noisy, release.noise.deviation):
        raise damaged("gap", "must be that of the weights, and small enough")
    return projection
