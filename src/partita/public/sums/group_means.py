"""Released means by group: two masses for each group, and the clip between whose ends every row was split."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple, NoReturn, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, Joint, ratio_bounds
from partita.arrays import Floats, Ints
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import InvalidParameter, check_release
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.base import damaged
from partita.public.bounds import laplace_mix_reach, laplace_sum_reach, laplace_variance
from partita.public.boxes.base import BoxTerm, check_terms
from partita.public.sums.base import (
    Covers,
    End,
    MeanTail,
    Ratio,
    SumAnswer,
    SumRelease,
    ValueLine,
)
from partita.public.sums.knots import ValueBuckets, octave_level
from partita.public.sums.parts import KeyCounts, count_cells

MOST_GROUPS: Final = 2**16
"""The most groups of a release, special cells of the key included: each has two numbers in the file."""

_LARGEST_UNIT: Final = (
    2**32
)  # the mass of a row is at most this: rows lose less than 2^-32 of the clip's width
_FEW_ROWS: Final = 2**30  # masses of fewer rows add up in 64 bits: 2^30 times 2^32 is below 2^63
_OCTAVE: Final = 4  # buckets that are tested together

# Constants of a model, none of privacy: looked at on three families (benchmarks/README.md, means by group).
_ADJACENT: Final = 6  # scales of noise that the octave behind one in use must exceed to be in use, too
_LEAST_LOUD: Final = 3  # scales of noise that the last bucket in use must exceed
_LEAST_OCTAVE: Final = 12  # scales of noise that the fullest octave must exceed, or no mean is told
_LEAN: Final = 0.25  # weight of the worst bias when the clip is chosen; the rest is for the estimated bias
_HIDDEN: Final = 4.0  # scales of noise that a silent octave may hide
_DOUBT: Final = 2.0  # scales of noise that are added to the first silent octave, to measure how rows thin out
_STEEPEST, _FLATTEST = 0.15, 0.4  # limits of how rows thin out from a silent octave to the next
_QUIET: Final = 0.25  # the noise of a pooled tail over that of a group's mean: more noise against less bias
_SELDOM: Final = 0.5  # rows below which a silent octave is taken to be empty
_REACH: Final = 2.1  # deviations of noise in an interval of 95%: Laplace noise has heavier tails than normal
_NORMAL: Final = 1.96
_MOST_TAIL: Final = 1.4  # times the worst pooled tail that a group may have
_FEW_DECIDE: Final = 1.5  # how far single rows past the clip move the mean of a small group
_NARROW: Final = 0.5  # bands narrower than this part of their distance from the origin get a centre
_OUTER: Final = 0.125  # of all rows may lie on each side of a band
_NEAR: Final = 16  # offsets up to which buckets are so fine that no centre is needed
_FEWEST_ROWS: Final = (
    9  # noise scales of a mass, 10 / epsilon in all: a mean of fewer rows is not determinable
)


def center_line(line: ValueLine, centre: int) -> ValueLine:
    """The same values, told by their distance from a centre, which is an offset of the line.

    >>> center_line(ValueLine(low=0, size=100, step=Fraction(1)), 37)
    ValueLine(low=-37, size=100, step=Fraction(1, 1))
    """
    return replace(line, low=line.low - line.origin - centre)


def count_groups(keys: Sequence[Axis]) -> int:
    """The number of groups without special cells, which usually hold few rows."""
    return math.prod(axis.size for axis in keys)


class Clip(NamedTuple):
    """The two knots of all groups, as offsets: values below count as `low`, those above as `high`."""

    low: int
    high: int

    @property
    def width(self) -> int:
        """The distance of the knots; 1 where the column has one value only."""
        return max(1, self.high - self.low)

    @property
    def unit(self) -> int:
        """U, the mass of a row: the width, so that nothing is rounded, as far as 2^32."""
        return min(self.width, _LARGEST_UNIT)

    @property
    def rounding(self) -> float:
        """By how much at most the offset of a row, clipped, exceeds what its masses say."""
        return self.width / self.unit if self.width > self.unit else 0.0

    def split(self, offsets: Ints) -> Ints:
        """The mass of each row on the upper knot: U (x - low) // width, exactly; the lower one has the rest.

        >>> Clip(-2, 6).split(np.array([-9, -2, 0, 6, 9])).tolist()
        [0, 0, 2, 8, 8]
        """
        inside = (
            np.clip(offsets, self.low, self.high) - self.low
        )  # below 2^63, as a line has at most 2^63 cells
        if self.width == self.unit:
            return np.asarray(inside)
        return np.asarray(inside.astype(object) * self.unit // self.width, np.int64)

    def summed(self, groups: Ints, offsets: Ints, counts: Ints, number: int) -> NDArray[Any]:
        """The whole mass on each knot, lower ones first, in each of `number` groups, as Python ints."""
        upper = self.split(offsets)
        times = counts if int(counts.sum()) < _FEW_ROWS else counts.astype(object)
        masses = np.zeros((2, number), times.dtype)
        for knot, mass in enumerate((self.unit - upper, upper)):
            np.add.at(masses[knot], groups, mass * times)
        return masses.astype(object)


class _Side(NamedTuple):
    """One side of the pooled column, its buckets in ascending order, of which noise hides those at the end.

    `edges` are where values may be cut, `middles` stand for the values of a bucket. `counts` are noisy,
    `seen` are the rows of each bucket as far as they stand out, and `hidden` the most it is taken to hold.
    """

    edges: Ints
    middles: Floats
    counts: Floats
    seen: Floats
    hidden: Floats

    def excess(self, rows: Floats, edge: float) -> float:
        """By how much these rows lie above an edge, added up."""
        return float(rows @ np.maximum(self.middles - edge, 0.0))

    def noisy_excess(self, edge: float, reach: float) -> float:
        """By how much all rows lie above an edge: noisy counts, not only those that stand out.

        They are used as far out as the root of the sum of squared distances is at most `reach`.
        """
        past = np.maximum(self.middles - edge, 0.0)
        near = np.sqrt(np.cumsum(past**2)) <= reach
        rows = np.where(near, self.counts, self.seen)
        return max(0.0, float(rows @ past))


@final
@dataclass(frozen=True, eq=False)
class PooledColumn:
    """The noisy counts of all values by magnitude, in buckets from the lowest value to the highest.

    Everything here is a function of these counts and of public facts. A column that is `centred` has about
    half of its rows on each side of the origin of its buckets.
    """

    buckets: ValueBuckets
    noisy: NDArray[Any]
    scale: Fraction
    centred: bool = False

    @cached_property
    def rows(self) -> float:
        """How many rows hold a number, and at least one."""
        return max(1.0, float(self._counts.sum()))

    @cached_property
    def clear(self) -> bool:
        """Whether some octave stands out of the noise: otherwise nobody knows where values lie."""
        octaves = np.convolve(self._counts, np.ones(_OCTAVE))
        return bool(octaves.max() > _LEAST_OCTAVE * float(self.scale))

    @property
    def flat(self) -> bool:
        """Whether only zeros stand out of the noise, so that nothing tells how large other values may be.

        Rows beyond a bound that is the origin count as zeros, too.
        """
        return not self.centred and not any(
            bool((side.seen[side.middles > 0.0] > 0.0).any()) for side in self._sides
        )

    @property
    def band(self) -> Clip | None:
        """Where most rows lie, if that is so far from the origin that magnitudes tell little about them.

        Only buckets that stand out of the noise count, so that a few others are outvoted.
        """
        loud = np.where(self._counts > _LEAST_LOUD * float(self.scale), self._counts, 0.0)
        upto = np.cumsum(loud)
        first, last = np.searchsorted(upto, [_OUTER * upto[-1], (1 - _OUTER) * upto[-1]])
        band = Clip(int(self._firsts[first]), int(self._lasts[last]))
        near = max(band.low, -band.high)
        return band if near > _NEAR and band.width <= _NARROW * near else None

    def choose(self, *, noise: float, groups: int) -> Clip:
        """The clip for which a typical group has the least error.

        On each side that is the edge for which the square of the bias and that of the noise are least
        together. `noise` is the scale of the noise of a mass, in rows.
        """
        size = self.rows / groups
        down, up = self._sides
        middle = self._mean
        high = self._best_edge(up, middle, noise / size)
        low = -self._best_edge(down, -middle, noise / size)
        line = self.buckets.line
        if low == high:
            low, high = (low, high + 1) if high < line.up else (max(low - 1, -line.down), high)
        return Clip(low, high)

    def excess(self, clip: Clip, *, noise: float, groups: int) -> MeanTail:
        """By how much rows lie below and above the clip, on average over all rows.

        Silent buckets add noise to that: they are used as far as it is small beside the noise of a group.
        """
        down, up = self._sides
        reach = _QUIET * noise * clip.width * groups / float(self.scale)
        ends = down.noisy_excess(-clip.low, reach), up.noisy_excess(clip.high, reach)
        return MeanTail(ends[0] / self.rows, ends[1] / self.rows)

    def worst_excess(self, clip: Clip) -> MeanTail:
        """What values past the clip may come to, on average over all rows, if they thin out."""
        down, up = self._sides
        ends = down.excess(down.hidden, -clip.low), up.excess(up.hidden, clip.high)
        return MeanTail(ends[0] / self.rows, ends[1] / self.rows)

    def most_excess(self, clip: Clip, beta: float) -> tuple[float, float]:
        """Upper bounds on by how much rows lie below and above the clip, added up; both fail by beta."""
        reach = laplace_sum_reach(self.scale, 1, beta / self._counts.size)
        rows = np.maximum(self._counts + reach, 0.0)
        below = float(rows @ np.maximum(clip.low - self._firsts.astype(np.float64), 0.0))
        return below, float(rows @ np.maximum(self._lasts.astype(np.float64) - clip.high, 0.0))

    def _best_edge(self, side: _Side, middle: float, noise: float) -> int:
        """The edge past the mean at which bias and noise are least together."""
        edges = side.edges[side.edges >= middle]
        if not edges.size:
            return int(side.edges[-1])
        bias = np.array(
            [
                (1 - _LEAN) * side.excess(side.seen, edge) + _LEAN * side.excess(side.hidden, edge)
                for edge in edges.astype(np.float64)
            ]
        )
        noises = math.sqrt(2.0) * noise * (edges - middle)
        return int(edges[np.argmin((bias / self.rows) ** 2 + noises**2)])

    @cached_property
    def _sides(self) -> tuple[_Side, _Side]:
        """The lower side, with all offsets negated, and the upper side."""
        down = self._side(
            -self._firsts[::-1], -self._middles[::-1], self._counts[::-1], 1 + len(self.buckets.above)
        )
        return down, self._side(self._lasts, self._middles, self._counts, 1 + len(self.buckets.below))

    @cached_property
    def _mean(self) -> float:
        """About the mean of all values."""
        down, up = self._sides
        rows = np.minimum(down.seen[::-1], up.seen)
        return float(rows @ self._middles) / max(1.0, float(rows.sum()))

    def _side(self, edges: Ints, middles: Floats, counts: Floats, origin: int) -> _Side:
        octaves = np.convolve(counts, np.ones(_OCTAVE))[: counts.size]
        last = self._last_used(counts, octaves, origin)
        seen = np.maximum(np.where(np.arange(counts.size) <= last, counts, 0.0), 0.0)
        hidden, scale = seen.copy(), float(self.scale)
        silent = max(0.0, float(counts[last + 1 : last + 1 + _OCTAVE].sum()))
        rows, before = silent + _HIDDEN * scale, max(float(octaves[last]), scale)
        thinning = min(max((silent + _DOUBT * scale) / before, _STEEPEST), _FLATTEST)
        for start in range(last + 1, counts.size, _OCTAVE):
            if rows < _SELDOM:
                break
            hidden[min(start + _OCTAVE // 2, counts.size - 1)] += rows
            rows *= thinning
        return _Side(edges, middles, counts, seen, hidden)

    def _last_used(self, counts: Floats, octaves: Floats, origin: int) -> int:
        """The last bucket that is taken to hold rows.

        That is where the highest clear octave ends, or without one the fullest, or those right behind it that
        exceed a lower level. Buckets at its end that hold next to nothing do not count. A centred column
        reaches at least as far as the usual distance from the centre, on both sides.
        """
        clear = np.flatnonzero(octaves > octave_level(self.scale, self.buckets.size))
        last = int(clear[-1]) if clear.size else int(np.argmax(octaves))
        if self.centred and last <= origin + _OCTAVE:
            last = min(origin + self._usual, counts.size - 1)
        while last + 1 < counts.size:
            behind = min(last + _OCTAVE, counts.size - 1)
            if octaves[behind] <= _ADJACENT * float(self.scale):
                break
            last = behind
        loud = np.flatnonzero(counts[: last + 1] > _LEAST_LOUD * float(self.scale))
        return max(int(loud[-1]), last - _OCTAVE + 1) if loud.size else last

    @cached_property
    def _usual(self) -> int:
        """How many buckets the fullest octave of distances reaches from the origin, both sides together."""
        origin = 1 + len(self.buckets.below)
        sides = self._counts[:origin][::-1], self._counts[origin + 1 :]
        both = np.zeros(max(side.size for side in sides))
        for side in sides:
            both[: side.size] += side
        return 1 + int(np.argmax(np.convolve(both, np.ones(_OCTAVE))[: both.size]))

    @cached_property
    def _counts(self) -> Floats:
        """The noisy counts from the lowest values to the highest; rows beyond the bounds come at the ends."""
        behind = 4 + len(self.buckets.above)
        ordered = np.concatenate([self.noisy[behind:][::-1], self.noisy[2:behind]])
        return np.asarray(ordered, np.float64)

    @cached_property
    def _lasts(self) -> Ints:
        """The largest offset of each bucket."""
        line, above, below = self.buckets.line, self.buckets.above, self.buckets.below
        nearest = [-(cap + 1) for cap in (0, *below[:-1])][: len(below)]
        ends = [-line.down, *reversed(nearest), 0, *(min(cap, line.up) for cap in above), line.up]
        return np.array(ends, np.int64)

    @cached_property
    def _firsts(self) -> Ints:
        """The least offset of each bucket."""
        line, above, below = self.buckets.line, self.buckets.above, self.buckets.below
        nearest = [cap + 1 for cap in (0, *above[:-1])][: len(above)]
        ends = [-line.down, *(-min(cap, line.down) for cap in reversed(below)), 0, *nearest, line.up]
        return np.array(ends, np.int64)

    @cached_property
    def _middles(self) -> Floats:
        return np.asarray((self._firsts.astype(np.float64) + self._lasts.astype(np.float64)) / 2.0)


@final
@dataclass(frozen=True, eq=False)
class GroupEstimate:
    """What the masses of some groups say: `weights` has a number for each group."""

    release: GroupMeansRelease
    weights: Floats

    @property
    def count(self) -> Answer:
        """How many rows hold a number."""
        factors = np.concatenate([self.weights, self.weights])
        least = 0.0 if bool((self.weights >= 0.0).all()) else -math.inf

        def bounds(beta: float) -> tuple[float, float]:
            reach = self._reach(factors, beta / 2)
            return rows - reach, rows + reach

        rows = float(sum(self._masses))
        return Answer(rows, lambda: self._deviation * math.sqrt(2.0), bounds, least)

    @property
    def nulls(self) -> Answer:
        """How many rows hold no number: known for all groups together."""
        if not bool((self.weights == 1.0).all()):
            _refuse("nulls", "must be asked for all groups together, as only means were released by group")
        noisy, scale = self.release.buckets[:2], self.release.bucket_scale
        value = float(noisy.sum())

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(scale, 2, beta)
            return value - reach, value + reach

        return Answer(value, lambda: math.sqrt(2 * laplace_variance(scale)), bounds)

    @property
    def sum(self) -> SumAnswer:
        """Means are all that was released."""
        _refuse("sum", "must have been released, and only means were")

    @property
    def variance(self) -> Ratio:
        """Means are all that was released."""
        _refuse("moments", "must have been released, and only means were")

    @property
    def std(self) -> Ratio:
        """Means are all that was released."""
        return self.variance

    @property
    def mean(self) -> Ratio:
        """The mean of all values: that of the clipped ones, corrected by the pooled column.

        The interval is about the true mean. It has room for what the pooled column may have beyond the clip;
        where only zeros stand out, nothing is known about that, and the guaranteed bounds are the interval.
        """
        line, clip = self.release.line, self.release.clip
        lower, upper = self._masses
        rows = lower + upper
        top = clip.low * lower + clip.high * upper
        if rows > 0.0:
            top = min(max(top, clip.low * rows), clip.high * rows)
        found, worst = self.release.excess, self.release.worst_excess
        shift = found.above - found.below
        tail = MeanTail(
            max(0.0, shift + self._most_tail(worst.below, rows)),
            max(0.0, self._most_tail(worst.above, rows) - shift),
        )
        flat = self.release.pooled.flat
        return Ratio(
            self._joint(top + shift * rows, rows, clip.low + shift, clip.high + shift),
            replace(self.release.covers, thinning=not flat and sum(worst) > 0.0),
            -float(line.down),
            float(line.up),
            self._bounds,
            shown=self.release.number,
            tail=MeanTail(math.inf, math.inf) if flat else tail,
            fewest=self._fewest,
        )

    def _bounds(self, beta: float) -> tuple[float, float]:
        """Bounds on the true mean for any data: rows past the clip may all be in the groups asked for."""
        clip, half, (lower, upper) = self.release.clip, beta / 2, self._masses
        factors = np.concatenate([self.weights, self.weights])
        reach = self._reach(factors, half / 4)
        rows = lower + upper - reach, lower + upper + reach
        if rows[0] <= 0.0:
            return -math.inf, math.inf
        spread = self._reach(np.concatenate([clip.low * self.weights, clip.high * self.weights]), half / 4)
        top = clip.low * lower + clip.high * upper
        low, high = ratio_bounds((top - spread, top + spread), rows)
        low, high = max(low, float(clip.low)), min(high, float(clip.high))
        below, above = self.release.pooled.most_excess(clip, half)
        return low - below / rows[0], high + clip.rounding + above / rows[0]

    @property
    def _fewest(self) -> float:
        """The least number of rows of which a mean can be told; infinite if the clip is a guess."""
        release = self.release
        return _FEWEST_ROWS * float(release.scale) / release.clip.unit if release.pooled.clear else math.inf

    def _most_tail(self, worst: float, rows: float) -> float:
        """How far values past one end of the clip may move the mean of these rows."""
        few = math.sqrt(worst * self.release.clip.width / max(1.0, rows))
        return _MOST_TAIL * worst + _FEW_DECIDE * few

    def _joint(self, top: float, bottom: float, low: float, high: float) -> Joint:
        """Two linear functions of the masses: knots at `low` and `high`, and one for each row."""
        variance = (self._deviation * _REACH / _NORMAL) ** 2
        return Joint(top, bottom, variance * (low**2 + high**2), variance * 2.0, variance * (low + high))

    @cached_property
    def _masses(self) -> tuple[float, float]:
        """The noisy masses on both knots, in rows."""
        lower, upper = self.release.masses @ self.weights
        return float(lower), float(upper)

    @property
    def _deviation(self) -> float:
        """The standard deviation of the noise of each of them."""
        own = math.sqrt(laplace_variance(self.release.scale)) / self.release.clip.unit
        return own * math.sqrt(float(self.weights @ self.weights))

    def _reach(self, factors: Floats, beta: float) -> float:
        """How far the noise in a weighted sum of all masses reaches on one side, but for beta."""
        scale, unit = self.release.scale, self.release.clip.unit
        return laplace_mix_reach(factors / unit, np.full(factors.size, float(1 / scale)), beta)


_NO_CENTRE: Final[dict[str, Json]] = {"centre": 0, "centre_rate": "0"}  # of files that say nothing of it


def _refuse(name: str, rule: str) -> NoReturn:
    fix = "publish with sums=[...] and another mechanism"
    raise InvalidParameter(name, rule, given="means by group", fix=fix)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GroupMeansRelease(SumRelease):
    """Noisy masses on the lower knots of all groups, then on the upper ones, and noisy counts of magnitudes.

    `noisy` holds the masses in whole units. Magnitudes are those of distances from the `centre`, an offset of
    the value line, and so are the ends of the `clip`. It is a function of the counts; it is stored, so that
    another machine with other rounding reads the same. The centre is the origin, or was chosen at the price
    of `centre_rate` for each row. `guarantee` is None if the release was made with injected noise.
    """

    kind: ClassVar[str] = "group-means"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"group-means": ()}
    max_series: ClassVar[int] = 2
    statistic: ClassVar[str] = "means"
    reads_counts: ClassVar[bool] = False
    moments: ClassVar[bool] = False

    keys: tuple[Axis, ...]
    value: ValueLine
    clip: Clip
    buckets: NDArray[Any]
    bucket_scale: Fraction
    noisy: NDArray[Any]
    scale: Fraction
    centre: int = 0
    centre_rate: Fraction = Fraction(0)
    guarantee: Guarantee | None = None

    @cached_property
    def line(self) -> ValueLine:
        """The values by their distance from the centre."""
        return center_line(self.value, self.centre)

    def number(self, distance: float) -> float:
        """The value at a distance from the centre."""
        return self.value.number(self.centre + distance)

    @property
    def specials(self) -> dict[str, Answer]:
        """How many rows lie below and above the declared bounds, and how many are invalid and null."""
        below, above = ValueBuckets(self.line).outside(self.buckets)
        null, invalid = self.buckets[:2].tolist()
        counts = {"below": below, "above": above, "invalid": invalid, "null": null}
        return {name: self._bucket(count) for name, count in counts.items()}

    @cached_property
    def pooled(self) -> PooledColumn:
        """The counts of magnitudes of all groups together."""
        return PooledColumn(
            ValueBuckets(self.line), self.buckets, self.bucket_scale, centred=self.centre != 0
        )

    @cached_property
    def excess(self) -> MeanTail:
        """By how much rows lie below and above the clip, on average."""
        noise = float(self.scale) / self.clip.unit
        return self.pooled.excess(self.clip, noise=noise, groups=count_groups(self.keys))

    @cached_property
    def worst_excess(self) -> MeanTail:
        """How much that may be at most, if values past the clip thin out."""
        found, worst = self.excess, self.pooled.worst_excess(self.clip)
        return MeanTail(max(found.below, worst.below), max(found.above, worst.above))

    @cached_property
    def masses(self) -> Floats:
        """The noisy masses in rows: a row for each knot, a column for each group."""
        return np.asarray(self.noisy.reshape(2, -1).astype(np.float64) / self.clip.unit)

    @property
    def covers(self) -> Covers:
        """Values within the clip count in full, those beyond as its ends."""
        return Covers(
            End(self.number(self.clip.low), whole=self.clip.low <= -self.line.down),
            End(self.number(self.clip.high), whole=self.clip.high >= self.line.up),
        )

    @property
    def story(self) -> str:
        """What was chosen on the way."""
        ends = (f"{self.number(end):,.6g}" for end in self.clip)
        around = f" around {self.number(0):,.6g}" if self.centre else ""
        return (
            f"Each row was split between {' and '.join(ends)}, for which the noisy magnitudes of the whole "
            f"column{around} speak; intervals are about the true mean of a group."
        )

    @property
    def spent(self) -> Fraction:
        """What a row costs: it is in one bucket, has one unit of mass in one group, and moves the centre."""
        return self.centre_rate + 1 / self.bucket_scale + self.clip.unit / self.scale

    def parts(self) -> Parts:
        """The noisy numbers, their scales, and the clip."""
        facts: dict[str, Json] = {
            "centre": self.centre,
            "centre_rate": str(self.centre_rate),
            "low": self.clip.low,
            "high": self.clip.high,
            "bucket_scale": str(self.bucket_scale),
            "scale": str(self.scale),
        }
        return Parts(facts, {"buckets": self.buckets, "noisy": self.noisy})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, *, keys: Sequence[Axis], value: Domain
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        found = Parts({**_NO_CENTRE, **parts.facts}, parts.series)
        reader, column, axes = PartsReader(found), ValueLine.of(value), tuple(keys)
        facts = (*_NO_CENTRE, "low", "high", "bucket_scale", "scale")
        reader.expect(facts=facts, series=("buckets", "noisy"))
        centre, rate = (
            reader.integer("centre", low=-column.down, high=column.up),
            reader.rational("centre_rate"),
        )
        if rate < 0:
            raise damaged("centre_rate", "must not be negative")
        line = center_line(column, centre)
        few = len(axes) <= 1 and count_cells(axes) <= MOST_GROUPS
        check_release(few, "keys", f"must be one at most, of at most {MOST_GROUPS} cells", fix="get it again")
        low, high = (reader.integer(name, low=-line.down, high=line.up) for name in ("low", "high"))
        if low > high or (low == high and line.size > 1):
            raise damaged("clip", "must have two ends")
        return cls(
            keys=axes,
            value=column,
            clip=Clip(low, high),
            buckets=reader.noisy("buckets", count=ValueBuckets(line).size),
            bucket_scale=reader.scale("bucket_scale"),
            noisy=reader.noisy("noisy", count=2 * count_cells(axes)),
            scale=reader.scale("scale"),
            centre=centre,
            centre_rate=rate,
            guarantee=guarantee,
        )

    def _estimate(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> GroupEstimate:
        weights = np.zeros(count_cells(self.keys))
        for low, high, sign in check_terms(terms, self.keys):
            weights[slice(low[0], high[0] + 1) if self.keys else slice(None)] += sign
        return GroupEstimate(self, weights)

    def _bucket(self, noisy: int) -> Answer:
        """The noisy count of one bucket."""

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(self.bucket_scale, 1, beta)
            return noisy - reach, noisy + reach

        return Answer(float(noisy), lambda: math.sqrt(laplace_variance(self.bucket_scale)), bounds)
