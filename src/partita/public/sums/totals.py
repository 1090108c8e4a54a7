"""The released total of a column: noisy masses on doubling knots, and an interval for the true total.

Everything here is post-processing. A twentieth of epsilon has counted magnitudes; they choose the knots. The
rest has measured how much mass lies on every knot, and the walk over them decides which ones count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar, Final, NamedTuple, Never, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import InvalidParameter
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.public.axis.base import Parts, PartsReader
from partita.public.bounds import laplace_sum_reach, laplace_variance
from partita.public.boxes.base import BoxTerm
from partita.public.sums.base import Covers, End, SumAnswer, SumRelease, ValueLine
from partita.public.sums.knots import caps, list_knots
from partita.public.sums.parts import KeyCounts
from partita.public.sums.tails import MARGIN, THINNING, measured_thinning, weigh_tail

UNIT: Final = 1 << 30
"""The mass of a row: what the floor takes from its value is less than a part in 2^30 of the gap around it."""

LARGEST_MAGNITUDE: Final = 2**63 - 1
"""No declared bound is further from zero, in steps: magnitudes have 63 bits."""

_NARROW: Final = 2**32  # in gaps up to here a magnitude times the unit has 62 bits
_FEW_ROWS: Final = 2**32  # fewer rows have sums of masses of at most 62 bits
_OCTAVE: Final = 4  # buckets that are tested together, as in the cap of level trees

# The constants of the walk are those of a prototype, chosen on lognormal columns, wages, a Pareto tail and
# few huge values; benchmarks/README.md, "Totals alone", has them beside families that chose no constant.
_CLEAR: Final = 2.5  # scales of noise, times ln(1000 buckets), that an octave must exceed: no false cap
_FILLED: Final = 3.0  # scales that the last bucket of the cap must exceed: fewer place it too high
_FIRST: Final = 4.0  # scales for the knot above the cap: a false one doubles the noise
_NEXT: Final = 3.0  # scales for a knot after one that is covered
_JUMP: Final = 5.0  # scales for a knot behind silent ones, and for each doubling
_STEEP: Final = 2.5 * math.log(2)  # so much more: false knots get rarer faster than the square of their harm
_LOUD: Final = 12.0  # scales for three neighbouring knots together where no magnitude was clear
_TOGETHER: Final = 3
_CLIPPED: Final = 2  # knots behind the last covered one whose rows count as that one
_WIDER: Final = 1.02  # of the normal quantile: sums of few Laplace noises have longer tails


class Caps(NamedTuple):
    """The first knots above and below zero, and whether the counts of magnitudes showed them.

    None is a side where no value can be.
    """

    up: int | None
    down: int | None
    seen: bool


@final
@dataclass(frozen=True)
class Magnitudes:
    """Distances from zero above and below, in steps, in four buckets a doubling.

    Zero is in no bucket, and neither are the special cells: below, above, invalid and null.

    >>> from partita.domain import Integer
    >>> line = Magnitudes(ValueLine.of(Integer(-3, 10)))
    >>> line.up, line.down, line.size
    (10, 3, 12)
    """

    line: ValueLine

    @property
    def up(self) -> int:
        """The largest magnitude above zero, 0 if there is none."""
        return max(0, self.line.low + self.line.size - 1)

    @property
    def down(self) -> int:
        """The largest magnitude below zero, 0 if there is none."""
        return max(0, -self.line.low)

    @cached_property
    def edges(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The last magnitude of each bucket, above and below."""
        return caps(self.up), caps(self.down)

    @property
    def size(self) -> int:
        """The number of buckets."""
        return sum(map(len, self.edges))

    def sides(self, places: UInts) -> tuple[tuple[Bools, UInts], tuple[Bools, UInts], Bools]:
        """Which positions lie above and below zero, each with their magnitudes; and which are zero."""
        inside = (places >= 1) & (places <= np.uint64(self.line.size))
        values = np.where(inside, places - np.uint64(1), np.uint64(0)).astype(np.int64) + self.line.low
        above, below = inside & (values > 0), inside & (values < 0)
        return (
            (above, values[above].astype(np.uint64)),
            (below, (-values[below]).astype(np.uint64)),
            inside & (values == 0),
        )

    def count(self, places: UInts, counts: Ints) -> Ints:
        """The number of rows in each bucket, exactly: a row is in one of them at most."""
        exact, (above, below, _) = np.zeros(self.size, np.int64), self.sides(places)
        for edges, first, (chosen, sizes) in zip(
            self.edges, (0, len(self.edges[0])), (above, below), strict=True
        ):
            if edges:
                bucket = np.searchsorted(np.array(edges, np.uint64), sizes)
                np.add.at(exact, first + bucket, counts[chosen])
        return exact

    def caps(self, noisy: NDArray[Any], scale: Fraction) -> Caps:
        """The first knot of each side: the edge of the last bucket that holds rows.

        A side on which no octave is clear has that of the other side; if none is clear, knots begin at 1.
        """
        number = len(self.edges[0])
        found = [
            self._last(edges, counts, float(scale))
            for edges, counts in zip(self.edges, (noisy[:number], noisy[number:]), strict=True)
        ]
        shared = max((cap for cap in found if cap), default=0)
        up, down = (
            min(cap or shared or 1, length) if length else None
            for cap, length in zip(found, (self.up, self.down), strict=True)
        )
        return Caps(up, down, shared > 0)

    def _last(self, edges: tuple[int, ...], noisy: NDArray[Any], scale: float) -> int:
        """The edge of the last bucket up to the highest clear octave that exceeds the noise; 0 for none."""
        if not edges:
            return 0
        counts = np.asarray(noisy, np.float64)
        octaves = np.convolve(counts, np.ones(_OCTAVE))[: counts.size]
        clear = np.flatnonzero(octaves > _CLEAR * scale * math.log(1000 * self.size))
        if not clear.size:
            return 0
        filled = np.flatnonzero(counts[: clear[-1] + 1] > _FILLED * scale)
        return edges[int(filled[-1] if filled.size else clear[-1])]


@final
@dataclass(frozen=True)
class TotalKnots:
    """Zero and the knots of both sides; a row splits one unit of mass between the two knots around it.

    Between the knots L and H a magnitude x gives (x - L) U // (H - L) to H and the rest of U to L. Both are
    between 0 and U and add up to U, whatever the knots are.
    """

    magnitudes: Magnitudes
    caps: Caps

    @cached_property
    def sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The knots above and below zero, ascending."""
        lengths = self.magnitudes.up, self.magnitudes.down
        up, down = (list_knots(cap, length) for cap, length in zip(self.caps[:2], lengths, strict=True))
        return up, down

    @property
    def size(self) -> int:
        """The number of knots: zero, those above, those below."""
        return 1 + sum(map(len, self.sides))

    def masses(self, places: UInts, counts: Ints) -> NDArray[Any]:
        """The whole mass on each knot, exactly, as Python ints."""
        times = counts if int(counts.sum()) < _FEW_ROWS else counts.astype(object)
        mass = np.zeros(self.size, times.dtype)
        *sides, zero = self.magnitudes.sides(places)
        mass[0] += times[zero].sum() * UNIT
        for knots, first, (chosen, sizes) in zip(self.sides, (1, 1 + len(self.sides[0])), sides, strict=True):
            if knots:
                gap, upper = split_rows(knots, sizes)
                np.add.at(mass, np.where(gap > 0, first + gap - 1, 0), (UNIT - upper) * times[chosen])
                np.add.at(mass, first + gap, upper * times[chosen])
        return mass.astype(object)


def split_rows(knots: Sequence[int], sizes: UInts) -> tuple[Ints, Ints]:
    """For each magnitude the gap that it is in, and how much of the unit the upper knot of the gap has.

    >>> gap, upper = split_rows((4, 8), np.array([1, 4, 7], np.uint64))
    >>> gap.tolist(), (upper * 4 // UNIT).tolist()
    ([0, 0, 1], [1, 4, 3])
    """
    ends = np.array([0, *knots], np.uint64)
    gap = np.searchsorted(ends[1:], sizes)
    past, width = sizes - ends[gap], ends[gap + 1] - ends[gap]
    upper = np.zeros(sizes.size, np.int64)
    narrow = width <= np.uint64(_NARROW)
    upper[narrow] = past[narrow].astype(np.int64) * UNIT // width[narrow].astype(np.int64)
    upper[~narrow] = past[~narrow].astype(object) * UNIT // width[~narrow].astype(object)
    return np.asarray(gap, np.int64), upper


@final
@dataclass(frozen=True, eq=False)
class KnotSide:
    """One side of zero: its knots, the noisy masses on them in rows, and the scale of noise in rows.

    `seen` says whether the counts of magnitudes have placed the first knot.
    """

    knots: Floats
    masses: Floats
    noise: float
    seen: bool

    @cached_property
    def top(self) -> int:
        """How many knots are covered, from the first one up; 0 where nothing stands out from the noise.

        The next knot is covered if it is loud. Silent knots are jumped over only for one that is louder.
        """
        top = first = self._first
        while top:
            ahead = np.arange(1.0, self.knots.size - top + 1)
            need = _JUMP + _STEEP * ahead
            need[:1] = _FIRST if top == first else _NEXT
            loud = np.flatnonzero(self.masses[top:] > need * self.noise)
            if not loud.size:
                break
            top += 1 if loud[0] == 0 else 1 + int(loud[-1])
        return top

    @property
    def _first(self) -> int:
        """The knots that are covered before the walk: the first one, or up to the loudest three."""
        if self.seen or not self.knots.size:
            return min(1, self.knots.size)
        together = np.convolve(self.masses, np.ones(_TOGETHER))[: self.knots.size]
        loudest = int(np.argmax(together))
        return loudest + 1 if together[loudest] > _LOUD * self.noise else 0

    @property
    def silent(self) -> bool:
        """Whether some knot is not covered, so that the tail may hold more than is seen."""
        return self.top < self.knots.size

    @cached_property
    def value(self) -> float:
        """The estimate: covered masses times their knots; rows right behind the last count as that one."""
        behind = max(0.0, float(self.masses[self.top : self.top + self._clipped].sum()))
        return float(self.knots[: self.top] @ self.masses[: self.top]) + self._last * behind

    def reach(self, beta: float) -> float:
        """How far noise alone moves the value, but for about beta."""
        if self.top <= 1:
            return self._last * self.noise * math.log(1 / beta)
        square = float(self.knots[: self.top] @ self.knots[: self.top]) + self._clipped * self._last**2
        normal = NormalDist().inv_cdf(1 - beta / 2) * _WIDER
        return normal * math.sqrt(2 * square) * self.noise

    def hidden(self, beta: float) -> float:
        """What silent knots may hold if the tail thins out: rows fall by a factor from knot to knot.

        The first silent knot holds at most what its noisy mass and the last covered knot allow, but for about
        beta. Then all knots hold what is expected of them, those with next to no row left out, or the last
        knot where beta rows are expected holds a whole one; whichever is more. Of 450 releases of
        2,000 rows of Pareto 1.2 at epsilon 1 that covered 96%; with 2 and 3 beta for beta 90% and 91%.
        """
        if not self.silent or not self.top:
            return 0.0
        thinning, last = self._thinning, max(float(self.masses[self.top - 1]), self.noise)
        own = max(0.0, float(self.masses[self.top])) + self.noise * math.log(1 / (2 * beta))
        first = min(own, (last + MARGIN * self.noise) * (thinning if self.top > 1 else 1.0))
        rows = first * np.power(thinning, np.arange(self.knots.size - self.top), dtype=np.float64)
        return weigh_tail(self.knots[self.top :], rows, beta)

    def ends(self, slack: float) -> tuple[float, float]:
        """The least and the largest sum of masses times knots if every mass is within `slack` rows."""
        low, high = np.maximum(self.masses - slack, 0.0), np.maximum(self.masses + slack, 0.0)
        return float(self.knots @ low), float(self.knots @ high)

    def loss(self, zero: float, slack: float) -> float:
        """The most that rounding down has taken from the sum: less than width / U for every row in a gap.

        A row of a gap has its unit on the two knots around it; `zero` is the noisy mass at zero.
        """
        rows = np.maximum(np.concatenate([[zero], self.masses]) + slack, 0.0)
        widths = np.diff(self.knots, prepend=0.0)
        return float(widths @ (rows[1:] + rows[:-1])) / UNIT

    @property
    def _last(self) -> float:
        return float(self.knots[self.top - 1]) if self.top else 0.0

    @property
    def _clipped(self) -> int:
        return min(_CLIPPED, self.knots.size - self.top) if self.top > 1 else 0

    @property
    def _thinning(self) -> float:
        """Rows of a knot for each row of the one before it; measured where two lie above the first."""
        if self.top < 3:
            return THINNING
        before = max(float(self.masses[1 : self.top - 1].sum()), self.noise)
        return measured_thinning(float(self.masses[2 : self.top].sum()), before)


@final
@dataclass(frozen=True, eq=False)
class TotalEstimate:
    """What the masses say about the true total of all values within the declared bounds."""

    up: KnotSide
    down: KnotSide
    zero: float
    scale: Fraction
    step: float
    bounds: tuple[float, float]

    @property
    def answer(self) -> Answer:
        """The total, its interval, and what it is about."""
        low, high = self.interval(0.05)
        least = 0.0 if not self.down.knots.size else -math.inf
        return Answer(
            value=max(least, self._value),
            spread=lambda: (high - low) / (2 * NormalDist().inv_cdf(0.975)),
            bounds=self.worst,
            least=least,
            about=f"{self.subject}\n{self.finding}",
            likely=self.interval,
        )

    @property
    def beyond(self) -> Answer:
        """About how many rows have values behind the last knots that are covered."""
        silent = [float(each) for side in (self.up, self.down) for each in side.masses[side.top :]]
        deviation = math.sqrt(laplace_variance(self.scale) * len(silent)) / UNIT

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(self.scale, len(silent), beta) / UNIT
            return sum(silent) - reach, sum(silent) + reach

        return Answer(max(0.0, sum(silent)), lambda: deviation, bounds)

    def interval(self, beta: float) -> tuple[float, float]:
        """Ends for the true total: of noise, and of what the silent tail may hold if it thins out.

        A side on which nothing is covered has the ends that hold for any data.
        """
        reach = math.hypot(self.up.reach(beta), self.down.reach(beta))
        worst = self.worst(beta)
        above = self.up.hidden(beta) if self.up.top else max(0.0, worst[1] / self.step)
        below = self.down.hidden(beta) if self.down.top else max(0.0, -worst[0] / self.step)
        middle = self._value / self.step
        low, high = (middle - reach - below) * self.step, (middle + reach + above) * self.step
        return max(worst[0], low), min(worst[1], high)

    def worst(self, beta: float) -> tuple[float, float]:
        """Ends for the true total that fail with probability at most beta, whatever the data.

        Every mass is within `slack` rows of the noisy one, all at once, but for beta.
        """
        knots = 1 + self.up.knots.size + self.down.knots.size
        slack = laplace_sum_reach(self.scale, 1, beta / knots) / UNIT
        (up_low, up_high), (down_low, down_high) = self.up.ends(slack), self.down.ends(slack)
        low = up_low - down_high - self.down.loss(self.zero, slack)
        return low * self.step, (up_high + self.up.loss(self.zero, slack) - down_low) * self.step

    @property
    def subject(self) -> str:
        """What the total is that of."""
        low, high = map(_format, self.bounds)
        return f"Total of all values from {low} to {high}; null, invalid and out of bounds are left out."

    @property
    def finding(self) -> str:
        """The total in a sentence, with the assumption that its upper end needs."""
        low, high = map(_format, self.interval(0.05))
        value, one_sided = _format(self._value), not self.down.knots.size
        if not self.up.top and not self.down.top:
            return f"Below {high}." if one_sided else f"Between {low} and {high}."
        least = f"At least {low}; " if one_sided and self.assumption and low != "0" else ""
        return f"{least}{value} ({low} to {high}) {self.assumption}".rstrip() + "."

    @property
    def assumption(self) -> str:
        """What the interval needs beside the noise; empty if all knots are covered, or none."""
        sides = [side for side in (self.up, self.down) if side.top and side.silent]
        return "if the tail thins out" if sides else ""

    @property
    def _value(self) -> float:
        total = (self.up.value - self.down.value) * self.step
        return total if self.down.knots.size else max(0.0, total)


def _format(number: float) -> str:
    """A total to six figures."""
    return f"{number:,.0f}" if 1e5 <= abs(number) < 1e15 else f"{number:,.6g}"


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class KnotTotalRelease(SumRelease):
    """Noisy counts of magnitudes, and noisy masses on zero and on the knots of both sides.

    The knots follow from the counts of magnitudes. Nothing but the total was released: other questions are
    refused. `guarantee` is None if the release was made with injected noise.
    """

    kind: ClassVar[str] = "totals"
    statistic: ClassVar[str] = "totals"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"totals": ()}
    max_series: ClassVar[int] = 2
    moments: ClassVar[bool] = False

    keys: tuple[Axis, ...] = field(default=(), init=False)
    value: ValueLine
    buckets: NDArray[Any]
    bucket_scale: Fraction
    noisy: NDArray[Any]
    scale: Fraction
    guarantee: Guarantee | None = None

    @property
    def specials(self) -> dict[str, Answer]:
        """Nothing is known about special cells: they were not counted."""
        return {}

    @cached_property
    def knots(self) -> TotalKnots:
        """The knots that the counts of magnitudes have chosen."""
        magnitudes = Magnitudes(self.value)
        return TotalKnots(magnitudes, magnitudes.caps(self.buckets, self.bucket_scale))

    @cached_property
    def estimate(self) -> TotalEstimate:
        """What the masses say."""
        zero, *masses = (float(Fraction(int(mass), UNIT)) for mass in self.noisy)
        above, line = len(self.knots.sides[0]), self.value
        return TotalEstimate(
            up=self._side(self.knots.sides[0], masses[:above]),
            down=self._side(self.knots.sides[1], masses[above:]),
            zero=zero,
            scale=self.scale,
            step=float(line.step),
            bounds=(float(line.low * line.step), float((line.low + line.size - 1) * line.step)),
        )

    def _side(self, knots: tuple[int, ...], masses: list[float]) -> KnotSide:
        noise, seen = float(self.scale / UNIT), self.knots.caps.seen
        return KnotSide(np.array(knots, np.float64), np.array(masses), noise, seen)

    def sum(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> SumAnswer:
        """The total of the column; it is about all values, and its interval says what noise may hide."""
        low, high = self.estimate.bounds
        covers = Covers(End(low, whole=True), End(high, whole=True), thinning=bool(self.estimate.assumption))
        return SumAnswer(self.estimate.answer, covers, self.estimate.beyond)

    @property
    def story(self) -> str:
        """What was chosen on the way, and what the total leaves out."""
        first = [_format(cap * float(self.value.step)) for cap in self.knots.caps[:2] if cap is not None]
        return (
            f"Masses lie on knots that double from {' and '.join(first)} on. The total is that of all rows "
            "within the declared bounds; rows that are null, invalid or out of bounds are no part of it."
        )

    @property
    def spent(self) -> Fraction:
        """What a row costs: it is in one bucket, and has one unit of mass."""
        return 1 / self.bucket_scale + UNIT / self.scale

    def parts(self) -> Parts:
        """The noisy numbers and their scales."""
        facts = {"bucket_scale": str(self.bucket_scale), "scale": str(self.scale)}
        return Parts({**facts}, {"buckets": self.buckets, "noisy": self.noisy})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, *, keys: Sequence[Axis] = (), value: Domain
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader, line = PartsReader(parts), ValueLine.of(value)
        reader.expect(facts=("bucket_scale", "scale"), series=("buckets", "noisy"))
        magnitudes, bucket_scale = Magnitudes(line), reader.scale("bucket_scale")
        buckets = reader.noisy("buckets", count=magnitudes.size)
        knots = TotalKnots(magnitudes, magnitudes.caps(buckets, bucket_scale))
        return cls(
            value=line,
            buckets=buckets,
            bucket_scale=bucket_scale,
            noisy=reader.noisy("noisy", count=knots.size),
            scale=reader.scale("scale"),
            guarantee=guarantee,
        )

    def _estimate(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Never:
        """Every question but the total is refused."""
        rule = "must have been published with counts for this question: its total is all that was released"
        fix = "ask for its sum, or publish sums without the mechanism 'totals'"
        raise InvalidParameter("column", rule, given="a total", fix=fix)
