"""Released level trees: sums, means and variances of a column over any box of the keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, Joint, ratio_bounds
from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import check
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.bounds import laplace_mix_reach, laplace_sum_reach, laplace_variance
from partita.public.boxes.base import BoxTerm, Region, check_terms
from partita.public.sums.base import Covers, End, Ratio, SumAnswer, SumRelease, ValueLine
from partita.public.sums.knots import (
    Hats,
    Knots,
    Pooled,
    Pooling,
    RowsPast,
    Tops,
    ValueBuckets,
    list_knots,
    mass_unit,
)
from partita.public.sums.parts import MOST_PARTS, KeyCounts, KeyTree, PartTree, PartWeights
from partita.public.sums.tails import (
    BETA,
    CONTRADICTED,
    MARGIN,
    THINNING,
    limit_rows,
    measured_thinning,
    spread_hidden,
    weigh_tail,
)

_FACTS: Final = ("degree", "branching", "bucket_scale", "scale")
_SERIES: Final = ("along", "at", "buckets", "noisy")

_NULL, _INVALID, _ZERO = 0, 1, 2  # the first rows of the controls; those of both sides follow
_LIMBS, _LIMB_BITS = 3, 14  # masses have less than 42 bits: limbs keep their sums in 64 bits
_MANY_ROWS: Final = 2**48  # from here on the sum of a limb may need more than 64 bits
_SAFETY: Final = 3.0  # deviations of noise taken off a sum: higher covers fewer values, lower adds noise
_STRAY: Final = 0.02  # values thin out towards their end: a knot with less of the one before it is noise
_TRIFLE: Final = 1e-9  # stands for the sign of a side past which no value can be
_WAYS_PAST: Final = 8  # rows past the knots of both sides or of one: a quarter of beta / 2 each is enough


class Evidence(NamedTuple):
    """About how many rows each row of the controls holds over all keys, and which stand out from noise."""

    whole: Floats
    clear: Bools


class Side(NamedTuple):
    """Values are covered up to a knot; those beyond are clipped to it, or fade until the next knot."""

    knots: int
    clipped: bool


class Reach(NamedTuple):
    """How both sides of the origin are covered."""

    up: Side
    down: Side


class Weights(NamedTuple):
    """What a row adds to a sum: a unit of mass on each control, and a row of any offset."""

    controls: Floats
    far: Callable[[Floats], Floats]


class SilentSide(NamedTuple):
    """Controls of a side that are not covered, and offsets past all of them at every doubling.

    `rows` has at most how many rows each holds if they thin out, and `top` is the last control of the side.
    `thins` is False where a control clearly holds more than that.
    """

    controls: Ints
    far: Floats
    rows: Floats
    top: int
    thins: bool = True


@final
@dataclass(frozen=True)
class Controls:
    """What is counted for every part: rows without a number, and masses on the controls of both sides.

    `values` and `squares` say what a unit of mass adds to sums of offsets and of their squares.
    """

    line: ValueLine
    tops: Tops
    degree: int

    @property
    def unit(self) -> int:
        """The mass of a row."""
        cap = self.tops.up or self.tops.down
        return mass_unit(Knots(cap).odd if cap else 1, self.degree)

    @property
    def size(self) -> int:
        """The number of rows."""
        return 3 + self._above + self._below

    @cached_property
    def hats(self) -> tuple[Hats | None, Hats | None]:
        """The hats above and below the origin; None on a side where no value can be."""
        up, down = (
            None if top is None else Hats(Knots(top, fine=True), self.degree) for top in self.tops[:2]
        )
        return up, down

    @cached_property
    def values(self) -> Floats:
        """The offset of each row."""
        return self._of_hats("values", -1.0)

    @cached_property
    def squares(self) -> Floats:
        """The square that each row stands for."""
        return self._of_hats("squares", 1.0)

    @property
    def rounding(self) -> float:
        """By how much a row's offset, up to the caps, can exceed what its masses say, away from zero."""
        return max((hats.rounding for hats in self.hats if hats), default=0.0)

    @property
    def rounding_squares(self) -> float:
        """By how much a row's squared offset can differ from what its masses say."""
        return max((hats.rounding_squares for hats in self.hats if hats), default=0.0)

    def summed(self, parts: Ints, places: UInts, counts: Ints, number: int) -> NDArray[Any]:
        """The whole mass of every row in each of `number` parts, exactly, as Python ints."""
        times = counts if int(counts.sum()) < _MANY_ROWS else counts.astype(object)
        limbs = np.zeros((_LIMBS, self.size * number), times.dtype)
        for row, mass, chosen in self._masses(places):
            cell = row * number + parts[chosen]
            for limb, sums in enumerate(limbs):
                np.add.at(sums, cell, (mass >> (_LIMB_BITS * limb) & ((1 << _LIMB_BITS) - 1)) * times[chosen])
        exact = sum(sums.astype(object) << (_LIMB_BITS * limb) for limb, sums in enumerate(limbs))
        return np.asarray(exact).reshape(self.size, number)

    def choose(self, found: Floats, deviations: Floats, weights: Floats, evidence: Evidence) -> Reach:
        """How to cover each side: where the sum, less three deviations of its noise, is largest.

        `found` holds the estimate of every row, with its deviation, and `weights` what a row adds. Nothing
        is covered beyond the last row that stands out over all keys.
        """
        up, down = (
            self._best_side(rows, found[rows], deviations[rows], np.abs(weights), last)
            for rows, last in zip(self._sides, self._last_knots(evidence), strict=True)
        )
        return Reach(up, down)

    def cover(self, reach: Reach, weights: Floats) -> Floats:
        """What every row adds if the sides are covered like that."""
        covered = np.where(np.arange(self.size) == _ZERO, weights, 0.0)
        for rows, side in zip(self._sides, reach, strict=True):
            covered[rows] = self._cover_side(rows, side, weights)
        return covered

    @property
    def ones(self) -> Floats:
        """What each row adds to the number of rows that hold numbers."""
        return self.numbers.astype(np.float64)

    @property
    def numbers(self) -> Bools:
        """The rows that hold numbers."""
        return np.arange(self.size) >= _ZERO

    @property
    def choices(self) -> int:
        """The number of ways to cover values."""
        return (1 + self._above // self.degree) ** 2 * (1 + self._below // self.degree) ** 2

    def covers(self, reach: Reach) -> Covers:
        """What every value counts as."""
        lower = self._end(self.hats[1], reach.down, self.line.down, -1)
        return Covers(lower, self._end(self.hats[0], reach.up, self.line.up, 1), self.degree)

    def silence(self, number: int, side: Side, found: Floats, deviations: Floats) -> SilentSide:
        """What is not covered of a side, where each control holds about so many rows, with a deviation."""
        hats, rows, inside = self.hats[number], self._sides[number], self.degree * side.knots
        silent, top = rows[inside:], self.top(number)
        if hats is None:
            return SilentSide(silent, np.zeros(0), np.zeros(0), top)
        cap, sign, length = hats.knots.cap, (1.0, -1.0)[number], (self.line.up, self.line.down)[number]
        far = np.array([float(knot) for knot in list_knots(cap, length)[1:]])
        sizes, most = np.abs(self.values), np.maximum(found, 0.0) + MARGIN * deviations
        seen = float(self.tops.seen[number] or cap)
        above = rows[:inside][sizes[rows[:inside]] > seen]
        few = above.size < 2 * self.degree
        limits = limit_rows(
            [*sizes[silent], *far],
            most[silent].tolist(),
            last=(float(sizes[rows[inside - 1]]), float(most[rows[inside - 1]])) if inside else (0.0, 0.0),
            cap=seen,
            thinning=THINNING if few else measured_thinning(found[above[-1]], max(found[above[0]], 1.0)),
        )
        sure = (found - CONTRADICTED * deviations)[silent]
        thins = bool((sure <= limits[: silent.size]).all())
        return SilentSide(
            silent, sign * far, limits, top, thins and not self._piles_up(rows, seen, found, deviations)
        )

    def _piles_up(self, rows: Ints, seen: float, found: Floats, deviations: Floats) -> bool:
        """Whether clearly more rows lie on the controls past the cap than on those up to it.

        Rows past all controls are on the last one, too. Where each doubling has at most half of the rows of
        the one before, all past the cap together are no more than those of the doubling below it.
        """
        past = np.abs(self.values[rows]) > seen
        more = found[rows[past]].sum() - np.maximum(found[rows[~past]], 0.0).sum()
        return bool(more > CONTRADICTED * math.sqrt(float(np.square(deviations[rows]).sum())))

    def top(self, number: int) -> int:
        """The last control of a side; the origin where no value can be."""
        rows = self._sides[number]
        return int(rows[-1]) if rows.size else _ZERO

    def whole(self, number: int) -> Side:
        """A side with all of its knots covered."""
        return Side(self._sides[number].size // self.degree, clipped=True)

    def beyond(self, reach: Reach) -> Bools:
        """The rows past the last knots that are covered."""
        found = np.zeros(self.size, np.bool_)
        for rows, side in zip(self._sides, reach, strict=True):
            found[rows[self.degree * side.knots :]] = True
        return found

    def at_top(self, reach: Reach) -> tuple[bool, bool]:
        """On which sides all knots are covered, so that values past them count as the last."""
        return self.degree * reach.up.knots == self._above, self.degree * reach.down.knots == self._below

    def _end(self, hats: Hats | None, side: Side, length: int, sign: int) -> End:
        """How far one side is covered; without hats, or at the last of the knots, values are clamped."""
        knots = hats.knots.offsets if hats else (0,)
        cap = knots[side.knots]
        fades = cap < length and not side.clipped and side.knots + 1 < len(knots)
        gone = self.line.number(sign * knots[side.knots + 1]) if fades else None
        return End(self.line.number(sign * min(cap, length)), gone, whole=cap >= length)

    def _best_side(self, rows: Ints, found: Floats, deviations: Floats, weights: Floats, last: int) -> Side:
        """The best of all ways to cover one side: up to any of the `last` knots, or clipped at the last."""
        ways = [*(Side(knots, clipped=False) for knots in range(last + 1)), Side(last, clipped=True)]
        covers = [self._cover_side(rows, way, weights) for way in ways]
        worth = [each @ found - _SAFETY * np.sqrt(each**2 @ deviations**2) for each in covers]
        return ways[int(np.argmax(worth))]

    def _last_knots(self, evidence: Evidence) -> Iterator[int]:
        """How many knots of each side may be covered: up to the last that is clear.

        Some knots may lie above the cap that the magnitudes showed, in case values do. Values there would
        thin out, so that a knot with next to nothing of what the cap has is noise.
        """
        for rows, hats, cap in zip(self._sides, self.hats, self.tops.seen, strict=True):
            knots = rows[self.degree - 1 :: self.degree]
            clear = evidence.clear[knots]
            above = sum(knot > cap for knot in hats.knots.offsets) if hats and cap else 0
            if above and knots.size > above:
                stray = _STRAY * evidence.whole[knots[-above - 1]]
                clear[-above:] &= evidence.whole[knots[-above:]] > stray
            yield int(np.flatnonzero(clear).max(initial=-1)) + 1

    def _cover_side(self, rows: Ints, side: Side, weights: Floats) -> Floats:
        """What the rows of one side add."""
        inside = self.degree * side.knots
        last = weights[rows[inside - 1]] if inside else weights[_ZERO]
        beyond = np.full(rows.size - inside, last if side.clipped else 0.0)
        return np.concatenate([weights[rows[:inside]], beyond])

    @property
    def _sides(self) -> tuple[Ints, Ints]:
        """The rows of the controls above zero, in ascending order, of each side."""
        first = 3 + self._above
        return np.arange(3, first), np.arange(first, self.size)

    @property
    def _above(self) -> int:
        return self.hats[0].controls - 1 if self.hats[0] else 0

    @property
    def _below(self) -> int:
        return self.hats[1].controls - 1 if self.hats[1] else 0

    def _of_hats(self, name: str, sign: float) -> Floats:
        sides = [getattr(hats, name)[1:] if hats else np.zeros(0) for hats in self.hats]
        return np.concatenate([np.zeros(3), sides[0], sign * sides[1]])

    def _masses(self, places: UInts) -> list[tuple[Ints, Ints, Bools]]:
        """Rows and masses of the chosen among the places: those without a number, then of each side."""
        offsets, invalid, null = self.line.offsets(places), self.line.invalid(places), self.line.null(places)
        absent, number = invalid | null, ~(invalid | null)
        none = np.where(null[absent], _NULL, _INVALID)
        found = [(none, np.full(none.size, self.unit), absent)]
        for hats, first, side in (
            (self.hats[0], 3, number & (offsets >= 0)),
            (self.hats[1], 3 + self._above, number & (offsets < 0)),
        ):
            found += [(row, mass, side) for row, mass in self._of_side(hats, first, np.abs(offsets[side]))]
        return found

    def _of_side(self, hats: Hats | None, first: int, offsets: Ints) -> list[tuple[Ints, Ints]]:
        """Rows and masses of the offsets on one side; without hats, all count as zero."""
        if hats is None:
            return [(np.full(offsets.size, _ZERO), np.full(offsets.size, self.unit))]
        control, mass = hats.laid(offsets)
        rows = control[:, np.newaxis] + np.arange(self.degree + 1)
        rows = np.where(rows == 0, _ZERO, rows + first - 1)
        return list(zip(rows.T, mass.T, strict=True))


@final
@dataclass(frozen=True, eq=False)
class Trees:
    """One noisy tree over the parts for each of the controls' rows, all with noise of one scale.

    `noisy` has a row for each control and a column for each node, in whole units of mass. `past` counts the
    rows past all knots, above and below, with noise of scale `past_scale` for each bucket. `clear` says that
    magnitudes have placed the caps: otherwise they are a guess.
    """

    controls: Controls
    tree: PartTree
    noisy: NDArray[Any]
    scale: Fraction
    past: tuple[RowsPast, RowsPast]
    past_scale: Fraction
    clear: bool

    @cached_property
    def measured(self) -> Floats:
        """The noisy masses as numbers of rows."""
        return np.asarray(self.noisy.astype(np.float64) / self.controls.unit)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of one of them."""
        return math.sqrt(laplace_variance(self.scale)) / self.controls.unit

    @cached_property
    def pooling(self) -> Pooling:
        """What all parts say about one."""
        return Pooling(self.tree, self.measured, self.deviation, self.controls.numbers)


@final
@dataclass(frozen=True, eq=False)
class LevelEstimate:
    """What the trees say about a question: linear estimates, with the noise of exactly these."""

    trees: Trees
    question: PartWeights

    @property
    def count(self) -> Answer:
        """How many rows hold a number."""
        return self._rows(self._controls.numbers)

    @property
    def nulls(self) -> Answer:
        """How many rows hold no number."""
        return self._rows(~self._controls.numbers)

    @property
    def invalid(self) -> Answer:
        """How many rows hold something that is neither a number nor null."""
        return self._rows(np.arange(self._controls.size) == _INVALID)

    @property
    def null(self) -> Answer:
        """How many rows are null."""
        return self._rows(np.arange(self._controls.size) == _NULL)

    @property
    def sum(self) -> SumAnswer:
        """The sum of the values that stand out from the noise; its interval is about all values."""
        controls, line = self._controls, self._controls.line
        reach, step, origin = self._reach(controls.values), float(line.step), float(line.origin)
        full = Weights((controls.values + origin * controls.ones) * step, lambda at: (at + origin) * step)
        weights, hidden = controls.cover(reach, full.controls), self._hidden(full, reach)

        def bounds(beta: float) -> tuple[float, float]:
            return self._ends(full, reach, beta, controls.rounding * step)

        def error() -> float:
            return math.sqrt(self._pooled_covariance(weights, weights)) or spread_hidden(hidden, bounds)

        answer = Answer(
            float(weights @ self.pooled.found),
            error,
            bounds,
            _least(np.concatenate([full.controls, self.question.least])),
        )
        return SumAnswer(answer, self._covers(reach, hidden), self._beyond(reach), hidden)

    @property
    def mean(self) -> Ratio:
        """The mean of the values that the sum covers; its interval is about all values."""
        controls, line = self._controls, self._controls.line
        reach, full = self._reach(controls.values), Weights(controls.values, lambda at: at)
        inside, values = (controls.cover(reach, each) for each in (controls.ones, controls.values))

        def bounds(beta: float) -> tuple[float, float]:
            sums = self._ends(full, reach, beta / 2, controls.rounding)
            return ratio_bounds(sums, self.bounds(controls.ones, beta / 2))

        joint, hidden = self._joint(values, inside), self._hidden(full, reach)
        if joint.sure:  # noise alone puts a mean outside of what is covered
            least, most = (float(end) * joint.bottom for end in (values.min(), values.max()))
            joint = joint._replace(top=min(max(joint.top, least), most))
        return Ratio(
            joint,
            self._covers(reach, hidden),
            -float(line.down),
            float(line.up),
            bounds,
            shown=line.number,
            hidden=(self._hidden_rows(reach), *hidden),
        )

    @property
    def variance(self) -> Ratio:
        """The variance of the values whose squares stand out from the noise; its interval is about all."""
        square = float(self._controls.line.step) ** 2
        return self._variance(lambda ratio: ratio * square)

    @property
    def std(self) -> Ratio:
        """The standard deviation of the same values; its interval is about all."""
        step = float(self._controls.line.step)
        return self._variance(lambda ratio: math.sqrt(ratio) * step)

    def _variance(self, shown: Callable[[float], float]) -> Ratio:
        """The mean squared distance from the estimated mean: to first order that is exact in the mean."""
        controls = self._controls
        rule = "must have been asked for when the release was made"
        check(controls.degree == 2, "moments", rule, given=False, fix="publish with moments=[...]")
        reach = self._reach(controls.squares)
        inside, values, squares = (
            controls.cover(reach, each) for each in (controls.ones, controls.values, controls.squares)
        )
        found = self.pooled.found
        rows = float(inside @ found)
        mean = float(values @ found) / rows if rows > 0.0 else 0.0
        centred = squares - 2.0 * mean * values + mean**2 * inside
        joint, width = self._joint(centred, inside), float(values.max()) - float(values.min())
        # The distance from another mean than that of all values is no less: no tail is underestimated.
        far = Weights((np.sqrt(controls.squares) + abs(mean)) ** 2, lambda at: (np.abs(at) + abs(mean)) ** 2)
        hidden = self._hidden(far, reach)
        if joint.sure:
            joint = joint._replace(top=min(max(joint.top, 0.0), joint.bottom * width**2 / 4.0))

        def bounds(beta: float) -> tuple[float, float]:
            least = self._least_variance(reach, beta / 2)
            full = Weights(controls.squares, np.square)
            second = self._ends(full, reach, beta / 4, controls.rounding_squares)
            return least, ratio_bounds(second, self.bounds(controls.ones, beta / 4))[1]

        return Ratio(
            joint,
            self._covers(reach, hidden),
            0.0,
            float(controls.line.size - 1) ** 2 / 4.0,
            bounds,
            shown,
            hidden=(self._hidden_rows(reach), 0.0, hidden[1] - hidden[0]),
        )

    def _least_variance(self, reach: Reach, beta: float) -> float:
        """A lower bound on the variance of all values: that of those covered, times their share of the rows.

        Values beyond count as the end of what is covered, or not at all: neither raises a variance.
        """
        controls = self._controls
        covered = (controls.cover(reach, each) for each in (controls.ones, controls.values, controls.squares))
        rows, sums, second = (self.bounds(each, beta / 5) for each in covered)
        many = self._most_rows(beta / 5)
        slack, slack_squares = many * controls.rounding, many * controls.rounding_squares
        low, high = ratio_bounds((sums[0] - slack, sums[1] + slack), rows)
        first, _ = ratio_bounds((second[0] - slack_squares, second[1] + slack_squares), rows)
        least = max(0.0, first - max(low**2, high**2))
        return least * min(1.0, rows[0] / many) if rows[0] > 0.0 else 0.0

    def _covers(self, reach: Reach, hidden: tuple[float, float]) -> Covers:
        """What every value counts as; with a hidden tail intervals need that it thins out."""
        return replace(self._controls.covers(reach), thinning=0.0 < hidden[1] - hidden[0] < math.inf)

    def _hidden(self, full: Weights, reach: Reach) -> tuple[float, float]:
        """What values beyond those covered may add, below zero and above it, if they thin out.

        If no magnitude stood out from the noise, knots may lie below most values, and nothing is known. The
        same holds where a knot clearly contradicts that the tail thins out.
        """
        ends, covered = [0.0, 0.0], self._controls.cover(reach, full.controls)
        least = not bool(covered.any())  # nothing is covered: then there is room for one row at least
        for tail in self._tails(reach):
            inner = full.controls[tail.controls] - covered[tail.controls]
            outer = full.far(tail.far) - full.controls[tail.top]
            weights = np.concatenate([inner, outer])
            if weights.size:
                above = bool(weights[-1] > 0.0)
                known = self.trees.clear and tail.thins
                most = weigh_tail(np.abs(weights), tail.rows, BETA, least=least) if known else math.inf
                ends[above] += most if above else -most
        if bool((self.question.least < 0.0).any()):  # rows that are taken away pull the other way
            ends = [ends[0] - ends[1], ends[1] - ends[0]]
        return ends[0], ends[1]

    def _hidden_rows(self, reach: Reach) -> float:
        """How many rows at most are not covered, if they thin out."""
        ones, covered = self._controls.ones, self._controls.cover(reach, self._controls.ones)
        return sum(
            float((ones - covered)[tail.controls] @ tail.rows[: tail.controls.size])
            for tail in self._tails(reach)
        )

    def _tails(self, reach: Reach) -> list[SilentSide]:
        """The silent knots of both sides, and those past all knots, with at most how many rows each holds.

        Rows that are taken away count like those that are added.
        """
        found, deviations, _ = self.trees.pooling(np.abs(self.question.mean))
        return [self._controls.silence(each, side, found, deviations) for each, side in enumerate(reach)]

    def _ends(self, full: Weights, reach: Reach, beta: float, rounding: float) -> tuple[float, float]:
        """Bounds on a weighted sum over all values, covered or not, that fail with probability beta at most.

        Sides whose values can lower the sum count in full in its lower end, the others as far as they are
        covered; and the other way round in its upper end. Values past all knots count as far as their noisy
        number goes.
        """
        controls, signed = self._controls, bool((self.question.least < 0.0).any())
        past = [self._past(full, number, beta / 4) for number in (0, 1)]
        slack = self._most_rows(beta / 4) * rounding
        ends = []
        for sign in (-1.0, 1.0):
            sides = [
                controls.whole(number) if signed or sign * amount > 0.0 else side
                for number, (side, amount) in enumerate(zip(reach, past, strict=True))
            ]
            least = self._least_sum(-sign * controls.cover(Reach(*sides), full.controls), beta / 4)
            more = sum(abs(each) for each in past if signed or sign * each > 0.0)
            ends.append(sign * (more + slack - least))
        return ends[0], ends[1]

    def _past(self, full: Weights, number: int, beta: float) -> float:
        """What rows past the last knot of a side add at most, by their noisy number over all keys.

        If no row can be there, it is a trifle with the sign of the side.
        """
        sign = (1.0, -1.0)[number]
        past, top = self.trees.past[number], self._controls.top(number)
        ends = sign * np.array([float(end) for end in past.ends])
        toward = math.copysign(_TRIFLE, float(full.far(np.array([sign]))[0]))
        if not past.buckets:
            return toward
        reach = laplace_sum_reach(self.trees.past_scale, 1, beta / (2 * past.buckets))
        rows = np.maximum(np.array(past.counts, np.float64) + reach, 0.0)
        return toward + float((full.far(ends) - full.controls[top]) @ rows)

    @cached_property
    def pooled(self) -> Pooled:
        """The estimate of each row of the controls, with what all parts say about it."""
        return self.trees.pooling(self.question.mean)

    def _pooled_covariance(self, one: Floats, other: Floats) -> float:
        """Of two weighted sums, pooled: by noise, by how many rows the question holds, by cut parts.

        The distance of guesses from plain least squares is included: here guesses may be biased.
        """
        pooled, bias = self.pooled, self.pooled.found - self.found
        own = float((one * other) @ pooled.deviations**2)
        slopes = float(one @ pooled.slopes) * float(other @ pooled.slopes)
        biased = float(one @ bias) * float(other @ bias)
        return own + biased + slopes * self.error(self._controls.ones) ** 2 + self._cut(one, other)

    @cached_property
    def found(self) -> Floats:
        """The estimate of each row of the controls."""
        return np.asarray(self.trees.measured @ self._mean)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of each."""
        return self.trees.deviation * math.sqrt(float(self._mean @ self._mean))

    def error(self, weights: Floats) -> float:
        """The standard error of a weighted sum of the rows."""
        return math.sqrt(max(0.0, self.covariance(weights, weights)))

    def covariance(self, one: Floats, other: Floats) -> float:
        """Of two weighted sums: by noise, and by where the rows of parts that are cut really lie."""
        return float(one @ other) * self.deviation**2 + self._cut(one, other)

    def _cut(self, one: Floats, other: Floats) -> float:
        shares = self.question.mean[self.question.cuts]
        return float((shares * (1.0 - shares)) @ ((self._cut_parts @ one) * (self._cut_parts @ other)))

    def bounds(self, weights: Floats, beta: float) -> tuple[float, float]:
        """Bounds on a weighted sum that hold for every choice of what is covered.

        True masses are not negative, so the rows of a part that is cut count between least and most.
        """
        return self._least_sum(weights, beta / 2), -self._least_sum(-weights, beta / 2)

    def _least_sum(self, weights: Floats, beta: float) -> float:
        """The weighted sum with every part's rows at their least, less how far noise can reach."""
        least, most = (
            self.trees.tree.plain(each).nodes for each in (self.question.least, self.question.most)
        )
        factors = np.outer(np.maximum(weights, 0.0), least) + np.outer(np.minimum(weights, 0.0), most)
        rates = np.full(factors.size, float(1 / self.trees.scale))
        units = factors.ravel() / self._controls.unit
        reach = laplace_mix_reach(units, rates, beta / self._controls.choices)
        return float((factors * self.trees.measured).sum()) - reach

    @property
    def _controls(self) -> Controls:
        return self.trees.controls

    @cached_property
    def _mean(self) -> Floats:
        return self.trees.tree.plain(self.question.mean).nodes

    @cached_property
    def _cut_parts(self) -> Floats:
        """The estimates of the parts that are cut: a row for each, a column for each row of the controls."""
        units = np.zeros((self.question.cuts.size, self.question.mean.size))
        units[np.arange(len(units)), self.question.cuts] = 1.0
        return np.asarray(self.trees.tree.plain(units).nodes @ self.trees.measured.T)

    def _rows(self, chosen: Bools) -> Answer:
        weights = chosen.astype(np.float64)
        return Answer(
            float(weights @ self.found),
            lambda: self.error(weights),
            lambda beta: self.bounds(weights, beta),
            _least(self.question.least),
        )

    def _beyond(self, reach: Reach) -> Answer:
        """About how many rows lie past what is covered in full.

        Rows past all knots are counted for all keys together only; here they are assumed to be as frequent
        as everywhere.
        """
        rows, at_top = self._rows(self._controls.beyond(reach)), self._controls.at_top(reach)
        past = [each for each, top in zip(self.trees.past, at_top, strict=True) if top and each.buckets]
        if not past:
            return rows
        number, buckets = sum(each.rows for each in past), sum(each.buckets for each in past)
        ones, scale = self._controls.ones, self.trees.past_scale
        # About which share of all rows with numbers the question holds.
        share = min(
            1.0, max(0.0, float(ones @ self.found)) / max(1.0, float(ones @ self.trees.pooling.whole))
        )
        deviation = share * math.sqrt(buckets * laplace_variance(scale))

        def bounds(beta: float) -> tuple[float, float]:
            low, high = rows.worst(beta / 2)
            return low, high + max(0.0, number + laplace_sum_reach(scale, buckets, beta / _WAYS_PAST))

        value = rows.value + share * max(0, number)
        return Answer(value, lambda: math.hypot(rows.error, deviation), bounds, rows.least)

    def _most_rows(self, beta: float) -> float:
        """An upper bound on the rows that hold a number."""
        return max(0.0, self.bounds(self._controls.ones, beta)[1])

    def _reach(self, weights: Floats) -> Reach:
        """How far values are covered, where a row adds its weight."""
        evidence = Evidence(self.trees.pooling.whole, self.trees.pooling.clear)
        return self._controls.choose(self.pooled.found, self.pooled.deviations, weights, evidence)

    def _joint(self, top: Floats, bottom: Floats) -> Joint:
        pairs = (top, top), (bottom, bottom), (top, bottom)
        return Joint(
            float(top @ self.pooled.found),
            float(bottom @ self.pooled.found),
            *(self._pooled_covariance(one, other) for one, other in pairs),
        )


def _least(weights: Floats) -> float:
    """A lower bound on a weighted sum of counts."""
    return 0.0 if bool((weights >= 0.0).all()) else -math.inf


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LevelTreesRelease(SumRelease):
    """Noisy masses on every node of the trees over the parts of the keys, and noisy counts of magnitudes.

    `noisy` holds them in whole units, all nodes of one control after the other. Everything else follows: the
    caps from the counts of magnitudes, by rule 2, or 1 of earlier files; answers by least squares.
    `guarantee` is None if the release was made with injected noise.
    """

    kind: ClassVar[str] = "level-trees"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"level-trees": ()}
    max_series: ClassVar[int] = 4

    keys: tuple[Axis, ...]
    value: ValueLine
    cut: KeyTree
    degree: int
    branching: int
    buckets: NDArray[Any]
    bucket_scale: Fraction
    noisy: NDArray[Any]
    scale: Fraction
    rule: int = 2
    guarantee: Guarantee | None = None

    @property
    def moments(self) -> bool:
        """Whether there are variances."""
        return self.degree == 2

    @property
    def specials(self) -> dict[str, Answer]:
        """How many rows lie below and above the declared bounds, and how many are invalid and null."""
        below, above = map(self._bucket, self._magnitudes.outside(self.buckets))
        whole = self._estimate([self.everything])
        return {"below": below, "above": above, "invalid": whole.invalid, "null": whole.null}

    @cached_property
    def controls(self) -> Controls:
        """What is counted for each part."""
        tops = self._magnitudes.tops(self.buckets, self.bucket_scale, earlier=self.rule == 1)
        return Controls(self.value, tops, self.degree)

    @cached_property
    def trees(self) -> Trees:
        """The noisy trees, ready for questions."""
        tree = PartTree(self.cut.parts, self.branching)
        noisy = self.noisy.reshape(self.controls.size, tree.nodes)
        past = self._magnitudes.rows_past(self.buckets, self.controls.tops)
        clear = self._magnitudes.is_clear(self.buckets, self.bucket_scale)
        return Trees(self.controls, tree, noisy, self.scale, past, self.bucket_scale, clear)

    @property
    def story(self) -> str:
        """What was chosen on the way."""
        line, tops = self.value, self.controls.tops
        low, high = -min(tops.down or 0, line.down), min(tops.up or 0, line.up)
        parts = f"{self.cut.parts:,} parts of the keys" if self.cut.parts > 1 else "all rows together"
        return (
            f"Values are told apart from {line.number(low):,.6g} to {line.number(high):,.6g}; "
            f"sums are over {parts}."
        )

    @property
    def spent(self) -> Fraction:
        """What a row costs: it is in one bucket, and has one unit of mass on every level of the trees."""
        return 1 / self.bucket_scale + self.trees.tree.levels * self.controls.unit / self.scale

    def parts(self) -> Parts:
        """The noisy numbers, their scales, and how the keys are cut."""
        facts: dict[str, Json] = {
            "degree": self.degree,
            "branching": self.branching,
            "bucket_scale": str(self.bucket_scale),
            "scale": str(self.scale),
            **({"rule": self.rule} if self.rule > 1 else {}),
        }
        series = {"along": self.cut.along, "at": self.cut.at, "buckets": self.buckets, "noisy": self.noisy}
        return Parts(facts, series)

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, *, keys: Sequence[Axis], value: Domain
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader, line = PartsReader(parts), ValueLine.of(value)
        rule = reader.integer("rule", low=2, high=2) if "rule" in parts.facts else 1
        reader.expect(facts=(*_FACTS, "rule") if rule > 1 else _FACTS, series=_SERIES)
        cut = KeyTree(tuple(keys), reader.row("along", np.int64), reader.row("at", np.uint64))
        degree = reader.integer("degree", low=1, high=2)
        branching = reader.integer("branching", low=min(2, cut.parts), high=max(2, MOST_PARTS))
        buckets = reader.noisy("buckets", count=ValueBuckets(line).size)
        bucket_scale = reader.scale("bucket_scale")
        tops = ValueBuckets(line).tops(buckets, bucket_scale, earlier=rule == 1)
        controls = Controls(line, tops, degree)
        return cls(
            keys=tuple(keys),
            value=line,
            cut=cut,
            degree=degree,
            branching=branching,
            buckets=buckets,
            bucket_scale=bucket_scale,
            noisy=reader.noisy("noisy", count=controls.size * PartTree(cut.parts, branching).nodes),
            scale=reader.scale("scale"),
            rule=rule,
            guarantee=guarantee,
        )

    def sum_in(self, region: Region, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> SumAnswer:
        """The sum over the rows in a region of the keys, and in boxes that have no cell in common.

        A part of the keys that the region cuts counts by its share inside; bounds allow for all of it and
        for nothing.
        """
        question = self.cut.weigh(check_terms(terms, self.keys), density, region)
        return LevelEstimate(self.trees, question).sum

    def _estimate(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> LevelEstimate:
        return LevelEstimate(self.trees, self.cut.weigh(check_terms(terms, self.keys), density))

    def _bucket(self, noisy: int) -> Answer:
        """The noisy count of one bucket."""

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(self.bucket_scale, 1, beta)
            return noisy - reach, noisy + reach

        return Answer(float(noisy), lambda: math.sqrt(laplace_variance(self.bucket_scale)), bounds)

    @property
    def _magnitudes(self) -> ValueBuckets:
        return ValueBuckets(self.value)
