"""What noisy masses on knots say: which knots are covered, the total, the mean, and what noise may hide.

Everything here is post-processing, and about a set of groups: the masses of a set are those of its groups,
added up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final, NamedTuple, Never, final

import numpy as np

from partita.answer import Answer, Joint, ratio_bounds
from partita.arrays import Floats
from partita.errors import InvalidParameter
from partita.lazy import cached_property
from partita.public.bounds import laplace_sum_reach, laplace_variance
from partita.public.sums.base import Covers, End, Ratio, SumAnswer
from partita.public.sums.tails import BETA, MARGIN, THINNING, measured_thinning, weigh_tail

UNIT: Final = 1 << 30
"""The mass of a row: what the floor takes from its value is less than a part in 2^30 of the gap around it."""

# The constants of the walk are those of a prototype, chosen on lognormal columns, wages, a Pareto tail and
# few huge values; those of groups on the families that benchmarks/README.md names under "Totals by group".
_FIRST: Final = 4.0  # scales for the knot above the first ones: a false one doubles the noise
_NEXT: Final = 3.0  # scales for a knot after one that is covered
_JUMP: Final = 5.0  # scales for a knot behind silent ones, and for each doubling
_STEEP: Final = 2.5 * math.log(2)  # so much more: false knots get rarer faster than the square of their harm
_LOUD: Final = 12.0  # scales for three neighbouring knots together where no magnitude was clear
_TOGETHER: Final = 3
_EMPTY: Final = 2.0  # scales that the last of the three must exceed, or it is left out
_OWN: Final = 3.0  # scales for a knot of a group, up to the last one that the whole column covers
_BESIDE: Final = 1.5  # scales for the knot right above: its rows are likely, once the one below holds some
_SOME: Final = 0.5  # scales for what is left of all groups on a covered knot: its bias outweighs noise
_LEFT: Final = 3.5  # scales for the next knot that only the groups together show
_DOUBT: Final = 6.0  # scales below which a knot of a group may be covered by its own noise
_MAY_HIDE: Final = 3.0  # scales that a silent knot may hold in a group, up to the last of the column
_FARTHEST: Final = 2.5  # deviations of its noise by which other groups may move a mass
_CLIPPED: Final = 2  # knots behind the last covered one whose rows count as that one
_WIDER: Final = 1.02  # of the normal quantile: sums of few Laplace noises have longer tails
_WIDER_MEAN: Final = 1.07  # the same for means: 2.1 deviations, as of means by group
_STRANGE: Final = 0.005  # how often noise alone contradicts at most that a tail thins out
_FEWEST_ROWS: Final = 9.0  # scales of noise: a mean of fewer rows is not determinable


class Held(NamedTuple):
    """What some knots hold, or may hold: their sum, in steps, and their rows."""

    total: float
    rows: float


@final
@dataclass(frozen=True, eq=False)
class KnotSide:
    """One side of zero: its knots, the noisy masses on them in rows, and the scale of noise in rows.

    `seen` is the number of knots up to the one where counts of magnitudes end, 0 where nothing stood out.
    `guide` is for a set of groups: as many knots are covered in the whole column, whose tail is `strange` if
    it does not thin out. A mass has the noise of `terms` groups.
    """

    knots: Floats
    masses: Floats
    noise: float
    seen: int
    guide: int | None = None
    strange: bool = False
    terms: int = 1

    @cached_property
    def top(self) -> int:
        """How many knots are covered, from the first one up; 0 where nothing stands out from the noise.

        The next knot is covered if it is loud. Silent knots are jumped over only for one that is louder.
        """
        top = first = self._first
        while top < self.knots.size:
            ahead = self._doublings(top)
            need = _JUMP + _STEEP * ahead
            if top and top >= self.start:
                need[0] = _FIRST if top == first else _NEXT
            elif self.guide is None:
                break
            loud = np.flatnonzero(self.masses[top:] > need * self.noise)
            if not loud.size:
                break
            top += 1 if loud[0] == 0 else 1 + int(loud[-1])
        return top

    @cached_property
    def start(self) -> int:
        """The knots from which on a tail begins."""
        return self._loudest if self.guide is None else self.guide

    @property
    def _first(self) -> int:
        """The knots that are covered before the walk goes up."""
        if self.guide is None:
            return self.start
        loud = np.flatnonzero(self.masses[: self.guide] > _OWN * self.noise)
        first = int(loud[-1]) + 1 if loud.size else 0
        beside = 0 < first < self.guide and self.masses[first] > _BESIDE * self.noise
        return first + 1 if beside else first

    @property
    def _loudest(self) -> int:
        """Those up to the magnitudes that were clear; else up to the loudest three, if these are loud."""
        if self.seen or not self.knots.size:
            return min(self.seen, self.knots.size)
        together = np.convolve(self.masses, np.ones(_TOGETHER))[: self.knots.size]
        last = int(np.argmax(together))
        if together[last] <= _LOUD * self.noise:
            return 0
        while last and self.masses[last] < _EMPTY * self.noise:
            last -= 1
        return last + 1

    def _doublings(self, top: int) -> Floats:
        """How many doublings each silent knot lies ahead; the last one may be nearer than one."""
        if not top:
            return np.arange(1.0, self.knots.size + 1.0)
        return np.asarray(np.maximum(1.0, np.log2(self.knots[top:] / self.knots[top - 1])))

    @property
    def known(self) -> bool:
        """Whether something is known of this side: a knot is covered, or one of the whole column.

        Where a silent knot contradicts that the tail thins out, nothing is.
        """
        return bool(self.top or self.start) and not self.strange and self.thins

    @property
    def thins(self) -> bool:
        """Whether no silent knot clearly holds more rows than a tail has that thins out."""
        near = max(self.top, self.start)
        if not near or near >= self.knots.size:
            return True
        own = Fraction(self.noise / math.sqrt(self.terms))
        clear = laplace_sum_reach(own, self.terms, _STRANGE / (self.knots.size - near))
        return not bool((self.masses[near:] - clear > self._tail_rows(near, BETA)).any())

    def _tail_rows(self, near: int, beta: float) -> Floats:
        """How many rows silent knots hold at most from the one numbered `near` on, if the tail thins out."""
        thinning = self._thinning
        first = max(0.0, float(self.masses[near])) + self.noise * math.log(1 / (2 * beta))
        if near == self.top:
            last = max(float(self.masses[near - 1]), self.noise)
            first = min(first, (last + MARGIN * self.noise) * (thinning if near > self.start else 1.0))
        return first * np.power(thinning, np.arange(self.knots.size - near), dtype=np.float64)

    @property
    def silent(self) -> bool:
        """Whether some knot is not covered, so that the tail may hold more than is seen."""
        return self.top < self.knots.size

    @property
    def clipped(self) -> int:
        """How many knots behind the last covered one count as that one."""
        return min(_CLIPPED, self.knots.size - self.top) if self.top > self.start else 0

    @property
    def _behind(self) -> float:
        return max(0.0, float(self.masses[self.top : self.top + self.clipped].sum()))

    @cached_property
    def value(self) -> float:
        """The estimate: covered masses times their knots; rows right behind the last count as that one."""
        return float(self.knots[: self.top] @ self.masses[: self.top]) + self._last * self._behind

    @property
    def rows(self) -> float:
        """The rows that the value is about, but for those at zero."""
        return float(self.masses[: self.top].sum()) + self._behind

    @property
    def past(self) -> Held:
        """What covered knots of a group hold above those of the whole column."""
        if self.top <= self.start:
            return Held(0.0, 0.0)
        own, rows = slice(self.start, self.top), self._behind
        total = float(self.knots[own] @ self.masses[own]) + self._last * rows
        return Held(total, float(self.masses[own].sum()) + rows)

    @property
    def weights(self) -> Floats:
        """How much a row on each knot adds to the value, of those that count."""
        return np.concatenate([self.knots[: self.top], np.full(self.clipped, self._last)])

    def reach(self, beta: float) -> float:
        """How far noise alone moves the value, but for about beta."""
        if self.top <= 1:
            return self._last * self.noise * math.log(1 / beta)
        normal = NormalDist().inv_cdf(1 - beta / 2) * _WIDER
        return normal * math.sqrt(2 * float(self.weights @ self.weights)) * self.noise

    @property
    def doubt(self) -> float:
        """What covered knots of a group hold that may be noise: the last two, if they are not clear."""
        if self.guide is None:
            return 0.0
        last = slice(max(0, self.top - 2), self.top)
        masses = self.masses[last]
        unsure = np.where(masses < _DOUBT * self.noise, np.maximum(masses, 0.0), 0.0)
        return float(self.knots[last] @ unsure)

    def hidden(self, beta: float) -> Held:
        """What silent knots may hold if the tail thins out: rows fall by a factor from knot to knot.

        The first silent knot holds at most what its noisy mass and the last covered knot allow, but for about
        beta. Then all knots hold what is expected of them, those with next to no row left out, or the last
        knot where beta rows are expected holds a whole one; whichever is more. Of 450 releases of
        2,000 rows of Pareto 1.2 at epsilon 1 that covered 96%; with 2 and 3 beta for beta 90% and 91%.

        In a group, each silent knot up to the last one of the whole column may hold some rows.
        """
        if not self.silent or not self.known:
            return Held(0.0, 0.0)
        near, total, most = max(self.top, self.start), 0.0, 0.0
        if near > self.top:
            may = np.maximum(self.masses[self.top : near], 0.0) + _MAY_HIDE * self.noise
            total, most = float((self.knots[self.top : near] * may).max()), float(may.max())
        if self.guide is not None and self.top > self.start:
            total += self._last * MARGIN * self.noise
        if near == self.knots.size:
            return Held(total, most)
        rows = self._tail_rows(near, beta)
        return Held(total + weigh_tail(self.knots[near:], rows, beta), most + float(rows.sum()))

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
    def _thinning(self) -> float:
        """Rows of a knot for each row of the one before it; measured where two lie above the first."""
        first = max(1, self.start)
        if self.top < first + 2:
            return THINNING
        before = max(float(self.masses[first : self.top - 1].sum()), self.noise)
        return measured_thinning(float(self.masses[first + 1 : self.top].sum()), before)


def blend_groups(masses: Floats, noise: float) -> Floats:
    """The masses of groups, a row for each, where those that noise hides are guessed from all groups.

    From the fullest knot outwards, the rows of a knot are shared out as those of the knot before it. A guess
    is trusted as far as groups keep to their guesses, beyond the noise and at most as far as whole rows do,
    and moves no mass by more than a few deviations: groups may differ in scale.
    """
    variance, pooled = 2 * noise**2, np.maximum(masses.sum(axis=0), 0.0)
    found, fullest = masses.copy(), int(np.argmax(pooled))
    for side, before in ((range(fullest + 1, pooled.size), -1), (range(fullest - 1, -1, -1), 1)):
        for knot in side:
            near = np.maximum(found[:, knot + before], 0.0)
            rows = float(near.sum())
            shares = near / rows if rows > 0.0 else np.full(len(near), 1 / len(near))
            guess, own = shares * pooled[knot], masses[:, knot]
            apart = (float(np.square(own - guess).sum()) - own.size * variance) / max(pooled[knot], 1.0)
            spread = max(apart, 1.0) * guess
            moved = (guess - own) * variance / (spread + variance)
            most = _FARTHEST * math.sqrt(variance)
            found[:, knot] = own + np.clip(moved, -most, most)
    return found


def add_groups(sides: Sequence[KnotSide], masses: Floats) -> float:
    """The total of several groups: what is clear in each by itself, and what only the rest of all shows.

    `masses` has a row for each group. A mass is clear if its knot is covered and it is far above the noise:
    noise alone hardly chooses it, so that no bias adds up over groups. The rest of a knot are the other
    masses, with their noise; it counts where there is some, and groups of smaller values add no noise of
    knots that they do not reach. What lies right behind the last knot counts as that one.
    """
    knots, noise, tops = sides[0].knots, sides[0].noise, np.array([side.top for side in sides])
    clear = (np.arange(knots.size) < tops[:, np.newaxis]) & (masses > _DOUBT * noise)
    rest = np.where(clear, 0.0, masses).sum(axis=0)
    scale = noise * np.sqrt(np.maximum((~clear).sum(axis=0), 1))
    top = max(int(np.flatnonzero(clear.any(axis=0)).max(initial=-1)) + 1, sides[0].start)
    loud = rest[:top] > _SOME * scale[:top]
    found = float((knots[:top] * rest[:top]) @ loud) + float((knots * masses)[clear].sum())
    while 0 < top < knots.size:
        need = _JUMP + _STEEP * np.arange(1.0, knots.size - top + 1.0)
        need[0] = _LEFT
        ahead = np.flatnonzero(rest[top:] > need * scale[top:])
        if not ahead.size:
            break
        after = top + (1 if ahead[0] == 0 else 1 + int(ahead[-1]))
        found += float(knots[top:after] @ rest[top:after])
        top = after
    return found + (float(knots[top - 1]) * max(0.0, float(rest[top : top + _CLIPPED].sum())) if top else 0.0)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TotalEstimate:
    """What the masses of some groups say about the true total and mean of values within the declared bounds.

    `terms` is the number of noises in each mass. `better` is an estimate of the total, in steps, and of the
    rows, where other groups help, or where the groups say more one by one.
    """

    up: KnotSide
    down: KnotSide
    zero: float
    scale: Fraction
    terms: int
    step: float
    bounds: tuple[float, float]
    better: Held | None = None

    @property
    def answer(self) -> Answer:
        """The total, its interval, and what it is about."""
        low, high = self.interval(BETA)
        return Answer(
            value=self._value,
            spread=lambda: (high - low) / (2 * NormalDist().inv_cdf(0.975)),
            bounds=self.worst,
            least=-math.inf if self.down.knots.size else 0.0,
            about=f"{self.subject}\n{self.finding}",
            likely=self.interval,
        )

    @property
    def sum(self) -> SumAnswer:
        """The total; it is about all values, and its interval says what noise may hide."""
        return SumAnswer(self.answer, self.covers, self.beyond)

    @property
    def nulls(self) -> Never:
        """Rows without a value are in no bucket, and have no mass."""
        _refuse("nulls")

    @property
    def variance(self) -> Never:
        """No squares were released."""
        _refuse("moments")

    @property
    def std(self) -> Never:
        """No squares were released."""
        _refuse("moments")

    @property
    def count(self) -> Answer:
        """How many rows have a value within the declared bounds: each has one unit on all knots together."""
        masses = [self.zero, *self.up.masses.tolist(), *self.down.masses.tolist()]
        rows, terms = sum(masses), len(masses) * self.terms

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(self.scale, terms, beta) / UNIT
            return rows - reach, rows + reach

        return Answer(rows, lambda: math.sqrt(laplace_variance(self.scale) * terms) / UNIT, bounds)

    @property
    def mean(self) -> Ratio:
        """The mean of the same rows; sum and count are read from the same masses.

        Where other groups have moved the total, the interval goes on to the one that its own masses say.
        """
        hidden = [side.hidden(BETA) for side in (self.up, self.down)]
        above, below = (
            each.total if side.known or not side.knots.size else math.inf
            for each, side in zip(hidden, (self.up, self.down), strict=True)
        )
        weights = np.concatenate([[0.0], self.up.weights, -self.down.weights])
        variance = laplace_variance(self.scale) * self.terms * (_WIDER_MEAN / UNIT) ** 2
        rows = self.zero + self.up.rows + self.down.rows if self.better is None else self.better.rows
        moved = self.up.value - self.down.value - self._value / self.step
        return Ratio(
            Joint(
                self._value / self.step,
                rows,
                variance * float(weights @ weights),
                variance * weights.size,
                variance * float(weights.sum()),
            ),
            self.covers,
            self.bounds[0] / self.step,
            self.bounds[1] / self.step,
            self._mean_bounds,
            shown=lambda ratio: ratio * self.step,
            hidden=(
                sum(each.rows for each in hidden),
                min(0.0, moved) - below - self.up.doubt,
                max(0.0, moved) + above + self.down.doubt,
            ),
            fewest=_FEWEST_ROWS * self.up.noise,
        )

    @property
    def covers(self) -> Covers:
        """All values within the declared bounds, perhaps with an assumption."""
        low, high = self.bounds
        return Covers(End(low, whole=True), End(high, whole=True), thinning=bool(self.assumption))

    @property
    def beyond(self) -> Answer:
        """About how many rows have values behind the last knots that are covered."""
        silent = [float(each) for side in (self.up, self.down) for each in side.masses[side.top :]]
        terms = self.terms * len(silent)
        deviation = math.sqrt(laplace_variance(self.scale) * terms) / UNIT

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(self.scale, terms, beta) / UNIT
            return sum(silent) - reach, sum(silent) + reach

        return Answer(max(0.0, sum(silent)), lambda: deviation, bounds)

    def interval(self, beta: float) -> tuple[float, float]:
        """Ends for the true total: of noise, and of what the silent tail may hold if it thins out.

        A side of which nothing is known has the ends that hold for any data.
        """
        reach = math.hypot(self.up.reach(beta), self.down.reach(beta))
        worst = self.worst(beta)
        above = self.up.hidden(beta).total if self.up.known else max(0.0, worst[1] / self.step)
        below = self.down.hidden(beta).total if self.down.known else max(0.0, -worst[0] / self.step)
        middle, value = self.up.value - self.down.value, self._value
        low = min(value, (middle - reach - below - self.up.doubt) * self.step)
        high = max(value, (middle + reach + above + self.down.doubt) * self.step)
        if high <= worst[0] or low >= worst[1]:  # the assumption is contradicted, by noise or by the data
            return min(worst[0], value), max(worst[1], value)
        return max(worst[0], low), min(worst[1], high)

    def worst(self, beta: float) -> tuple[float, float]:
        """Ends for the true total that fail with probability at most beta, whatever the data.

        Every mass is within `slack` rows of the noisy one, all at once, but for beta.
        """
        slack = self._slack(beta)
        (up_low, up_high), (down_low, down_high) = self.up.ends(slack), self.down.ends(slack)
        low = up_low - down_high - self.down.loss(self.zero, slack)
        return low * self.step, (up_high + self.up.loss(self.zero, slack) - down_low) * self.step

    def _mean_bounds(self, beta: float) -> tuple[float, float]:
        """Bounds on the mean, in steps, whatever the data."""
        low, high = self.worst(beta / 2)
        return ratio_bounds((low / self.step, high / self.step), self.count.worst(beta / 2))

    def _slack(self, beta: float) -> float:
        knots = 1 + self.up.knots.size + self.down.knots.size
        return laplace_sum_reach(self.scale, self.terms, beta / knots) / UNIT

    @property
    def subject(self) -> str:
        """What the total is that of."""
        low, high = map(format_total, self.bounds)
        return f"Total of all values from {low} to {high}; null, invalid and out of bounds are left out."

    @property
    def finding(self) -> str:
        """The total in a sentence, with the assumption that its upper end needs."""
        low, high = map(format_total, self.interval(BETA))
        value, one_sided = format_total(self._value), not self.down.knots.size
        if not self.up.top and not self.down.top and not self._value:
            ends = f"Below {high}" if one_sided else f"Between {low} and {high}"
            return f"{ends} {self.assumption}".rstrip() + "."
        least = f"At least {low}; " if one_sided and self.assumption and low != "0" else ""
        return f"{least}{value} ({low} to {high}) {self.assumption}".rstrip() + "."

    @property
    def assumption(self) -> str:
        """What the interval needs beside the noise; empty if all knots are covered, or nothing is known."""
        sides = [side for side in (self.up, self.down) if side.known and side.silent]
        return "if the tail thins out" if sides else ""

    @property
    def _value(self) -> float:
        """The total; never below zero if no value is."""
        found = self.up.value - self.down.value if self.better is None else self.better.total
        return (found if self.down.knots.size else max(0.0, found)) * self.step


def format_total(number: float) -> str:
    """A total to six figures."""
    return f"{number:,.0f}" if 1e5 <= abs(number) < 1e15 else f"{number:,.6g}"


def _refuse(name: str) -> Never:
    rule = "must have been released, and totals, means and numbers of rows were"
    fix = "publish with sums=[...] and without the mechanism 'totals'"
    raise InvalidParameter(name, rule, given="totals", fix=fix)
