"""What all releases of sums share: the answers with the values that they cover, and the line of values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike

from partita.answer import Answer, Bounds, Joint, NoisyNumber, Reading, Readings
from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import LARGEST_AXIS, Axis
from partita.domain.base import Domain
from partita.domain.numeric import Integer, Real
from partita.errors import InvalidParameter, check
from partita.guarantee import Guarantee
from partita.html import card, ends, round_within, span, whisker, with_interval
from partita.numbers import check_probability
from partita.public.axis.base import Parts
from partita.public.base import ReleaseKind
from partita.public.boxes.base import BoxTerm

if TYPE_CHECKING:
    from partita.public.sums.group_means import GroupEstimate
    from partita.public.sums.knot_walk import TotalEstimate
    from partita.public.sums.level_trees import LevelEstimate
    from partita.public.sums.log_tree import LogEstimate
    from partita.public.sums.parts import KeyCounts

ASSUMED: Final = " if the tail thins out"
_TAIL_DEVIATIONS: Final = 1.96  # of an interval of 95%, for which tails are stated


class End(NamedTuple):
    """How far values are covered on one side: up to `at` in full.

    Values beyond count as `at`. With `gone`, a row counts for less the further out its value lies, and for
    nothing from `gone` on. `whole` says that no value of the question lies beyond.
    """

    at: float
    gone: float | None = None
    whole: bool = False

    def share(self, past: Floats, degree: int) -> Floats:
        """The part of a row that counts if its value lies this far past the end."""
        if self.gone is None:
            return np.ones_like(past)
        if self.gone == self.at:
            return np.asarray(past <= 0.0, np.float64)
        return np.asarray(np.clip(1.0 - past / abs(self.gone - self.at), 0.0, 1.0) ** degree)


@final
@dataclass(frozen=True)
class Covers:
    """What every value counts as: `counted(v)` in a sum, and `share(v)` of a row in a mean or a variance.

    Values from `low` to `high` count in full. Where values beyond count in part, the part falls with the
    distance to the power `degree`. With `thinning`, intervals also hold what values beyond may add, if there
    are fewer and fewer of them.

    >>> covers = Covers(End(0.0, whole=True), End(100.0, gone=400.0))
    >>> covers.text
    'values up to 100 in full, in part up to 400, none above'
    >>> covers.counted([50, 100, 250, 400]).tolist()
    [50.0, 100.0, 50.0, 0.0]
    """

    lower: End
    upper: End
    degree: int = 1
    thinning: bool = False

    @property
    def low(self) -> float:
        """The lowest value that counts in full."""
        return self.lower.at

    @property
    def high(self) -> float:
        """The highest value that counts in full."""
        return self.upper.at

    @property
    def everything(self) -> bool:
        """Whether every value of the question counts in full."""
        return self.lower.whole and self.upper.whole

    def share(self, values: ArrayLike) -> Floats:
        """The part of a row with each value that counts."""
        given = np.asarray(values, np.float64)
        above, below = given - self.high, self.low - given
        return self.upper.share(above, self.degree) * self.lower.share(below, self.degree)

    def counted(self, values: ArrayLike) -> Floats:
        """What a row with each value adds to the sum."""
        return np.clip(np.asarray(values, np.float64), self.low, self.high) * self.share(values)

    @property
    def text(self) -> str:
        """In words."""
        if self.everything:
            return "all values, if the tail thins out" if self.thinning else "all values"
        low, high = f"{self.low:,.12g}", f"{self.high:,.12g}"
        upwards = "up" if self.upper.whole else f"to {high}"
        parts = [f"values {f'up to {high}' if self.lower.whole else f'from {low} {upwards}'} in full"]
        parts += [] if self.lower.whole else [_describe_beyond(self.lower, "down", "below")]
        parts += [] if self.upper.whole else [_describe_beyond(self.upper, "up", "above")]
        assumed = "; intervals assume that values beyond thin out" if self.thinning else ""
        return ", ".join(parts) + assumed

    def __str__(self) -> str:
        return self.text


def _describe_beyond(end: End, way: str, side: str) -> str:
    """What values beyond an end count as, in words."""
    if end.gone is None:
        return f"those {side} count as {end.at:,.12g}"
    part = f"in part {way} to {end.gone:,.12g}, " if end.gone != end.at else ""
    return f"{part}none {side}"


@final
@dataclass(frozen=True, repr=False)
class SumAnswer(NoisyNumber):
    """A sum of values, with the error of the noise in it and the values that it covers.

    Value and error are about the sum of what every row counts as, by `covers`; they leave out what is not
    covered. Intervals and bounds are about all values within the bounds of the column. `hidden` is what
    values beyond those covered may add, below zero and above it, if there are fewer and fewer of them the
    farther they lie out; intervals need that if `covers.thinning`, and bounds never do. `beyond` estimates
    how many rows have values past those that count in full, from the noisy counts of the release; of a row
    that counts in part it holds the other part.
    """

    answer: Answer
    covers: Covers
    beyond: Answer = field(compare=False)
    hidden: tuple[float, float] = (0.0, 0.0)

    @property
    def value(self) -> float:
        """The sum."""
        return self.answer.value

    @property
    def basis(self) -> str:
        """What it rests on, as `Answer` says it."""
        return self.answer.basis

    @property
    def readings(self) -> Readings:
        """What it was read from."""
        return self.answer.readings

    def read_from(self, reading: Reading) -> SumAnswer:
        """The same sum, which knows what it was read from."""
        return replace(self, answer=self.answer.read_from((1.0, reading)))

    @property
    def error(self) -> float:
        """The standard error."""
        return self.answer.error

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold with about this confidence; a model, not a guarantee."""
        low, high = self.answer.interval(confidence)
        if self.hidden == (0.0, 0.0):
            return low, high
        least, most = self.worst(min(0.5, 1 - float(confidence)))
        below, above = (at_level(float(confidence)) * end for end in self.hidden)
        return max(least, low + below), min(most, high + above)

    def worst(self, beta: float = 0.05) -> tuple[float, float]:
        """Bounds that fail with probability at most beta, whatever the data."""
        return self.answer.worst(beta)

    def __str__(self) -> str:
        return self.answer.about or f"{self._first}, covers {self.covers}"

    @property
    def _first(self) -> str:
        """The value and how far it can be trusted; where a tail is hidden, what is certain comes first."""
        if not self.covers.thinning and self.hidden == (0.0, 0.0):
            return with_interval(self.value, self.interval())
        (low, high), assumed = self.interval(), ASSUMED if self.covers.thinning else ""
        if low <= 0.0 <= high and self.hidden[0] == 0.0:
            return f"below {round_within(high, (low, high), self.error)}{assumed}"
        least = f"at least {round_within(low, (low, high), self.error)}; " if self.hidden[0] == 0.0 else ""
        value = round_within(self.value, (low, high), self.error)
        return f"{least}{value} ({ends((low, high), error=self.error)}){assumed}"

    def __repr__(self) -> str:
        if self.covers.thinning or self.hidden != (0.0, 0.0):
            return f"SumAnswer({self})"
        return f"SumAnswer({self._first}, covers {self.covers})"

    def _repr_html_(self) -> str:
        beyond = with_interval(self.beyond.value, self.beyond.interval())
        return _format_sum("SumAnswer", self, [("covers", self.covers), ("rows with values beyond", beyond)])


def at_level(confidence: float) -> float:
    """By how much a hidden tail, stated for 95%, is more at a higher confidence; never less."""
    return max(1.0, NormalDist().inv_cdf((1 + confidence) / 2) / _TAIL_DEVIATIONS)


class MeanTail(NamedTuple):
    """By how much values past both ends of what is covered lower and raise a mean."""

    below: float = 0.0
    above: float = 0.0


NO_TAIL: Final = MeanTail()


@final
@dataclass(frozen=True, repr=False)
class Ratio(NoisyNumber):
    """A mean or a variance: a ratio of two noisy numbers, between `least` and `most` in any case.

    It is determinable if its count is clearly above zero, and at least `fewest`. Otherwise the value is NaN,
    and the interval holds every possible value. `shown` converts the ratio to the scale of the answer. With a
    `tail`, the interval is about the ratio of all values: at 95% it goes on by so much for those that are not
    covered, at other levels in proportion. `hidden` rows beyond those covered may add these numbers to the
    top, below zero and above it; intervals hold them.
    """

    joint: Joint
    covers: Covers
    least: float
    most: float
    bounds: Bounds = field(compare=False)
    shown: Callable[[float], float] = field(compare=False, default=lambda ratio: ratio)
    hidden: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tail: MeanTail = NO_TAIL
    fewest: float = 0.0
    basis: str = ""
    readings: Readings = field(default=(), compare=False)

    def read_from(self, reading: Reading) -> Ratio:
        """The same ratio, which knows what it was read from."""
        return replace(self, readings=((1.0, reading),))

    @property
    def determinable(self) -> bool:
        """Whether the count is clearly above zero, so that the ratio has a value."""
        return self.joint.sure and self.joint.bottom >= self.fewest

    @property
    def value(self) -> float:
        """The ratio; NaN if it is not determinable."""
        return self._convert(self.joint.top / self.joint.bottom) if self.determinable else math.nan

    @property
    def error(self) -> float:
        """The standard error of the noise: half of Fieller's interval at one deviation; infinite if none."""
        if not self.determinable:
            return math.inf
        low, high = self.joint.interval(1.0) or (-math.inf, math.inf)
        return (self._convert(high) - self._convert(low)) / 2

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold with about this confidence; a model, not a guarantee."""
        z = NormalDist().inv_cdf((1 + float(check_probability(confidence, "confidence"))) / 2)
        found = self.joint.interval(z) if self.determinable else None
        if found and not self._tail_known:
            return self.worst(min(0.5, 1 - float(confidence)))
        part = at_level(float(confidence))
        low, high = self._with_hidden(*found, part) if found else (-math.inf, math.inf)
        part = z / _TAIL_DEVIATIONS
        return self._convert(low - part * self.tail.below), self._convert(high + part * self.tail.above)

    @property
    def _tail_known(self) -> bool:
        """Whether anything is known about values that are not covered."""
        return math.isfinite(self.hidden[2] - self.hidden[1]) and math.isfinite(sum(self.tail))

    def _with_hidden(self, low: float, high: float, part: float) -> tuple[float, float]:
        """An interval widened by rows that are hidden: they may add to the top, and to the bottom."""
        rows, below, above = (part * each for each in self.hidden)
        bottom = self.joint.bottom
        few, many = bottom, bottom + rows
        ends = [(low * bottom + below) / each for each in (few, many)]
        ends += [(high * bottom + above) / each for each in (few, many)]
        return min(ends), max(ends)

    def worst(self, beta: float = 0.05) -> tuple[float, float]:
        """Bounds that fail with probability at most beta, whatever the data."""
        low, high = self.bounds(float(check_probability(beta)))
        return self._convert(low), self._convert(high)

    def __str__(self) -> str:
        if not self.determinable:
            return f"not determinable, covers {self.covers}"
        if self.covers.thinning or self.hidden != (0.0, 0.0, 0.0) or not self._tail_known:
            likely, assumed = self.interval(), ASSUMED if self.covers.thinning else ""
            value = round_within(self.value, likely, self.error)
            return f"{value} ({ends(likely, error=self.error)}){assumed}, covers {self.covers}"
        return f"{with_interval(self.value, self.interval())}, covers {self.covers}"

    def __repr__(self) -> str:
        return f"Ratio({self})"

    def _repr_html_(self) -> str:
        return _format_sum("Ratio", self, [("covers", self.covers)])

    def _convert(self, ratio: float) -> float:
        return self.shown(min(max(ratio, self.least), self.most))


def _format_sum(title: str, found: SumAnswer | Ratio, more: list[tuple[str, object]]) -> str:
    """A sum or a ratio for a notebook, with its bounds and what it covers."""
    likely, certain = found.interval(), found.worst()
    facts: list[tuple[str, object]] = [
        ("value", with_interval(found.value, likely)),
        ("95% interval", ends(likely)),
        ("for any data", f"{span(certain)}, but for 5%"),
    ]
    return card(title, [*facts, *more], below=[whisker(found.value, likely, certain)])


class SumRelease(ReleaseKind, ABC):
    """Released sums of the values of one column, by keys.

    Questions are boxes of the keys' positions. `density` is what was released about the keys; it says how
    rows lie inside of a part of the keys that a question cuts.
    """

    own_key: ClassVar[bool] = False
    """Whether the summed column is its own and only key."""
    statistic: ClassVar[str] = "sums"
    """What was released, in a word: sums, nothing but means, or nothing but totals."""
    reads_counts: ClassVar[bool] = True
    """Whether answers use counts of the keys that the same release holds."""

    keys: tuple[Axis, ...]

    @abstractmethod
    def _estimate(
        self, terms: Sequence[BoxTerm], density: KeyCounts | None = None
    ) -> LevelEstimate | LogEstimate | GroupEstimate | TotalEstimate:
        """Everything that can be said about one question."""

    def sum(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> SumAnswer:
        """The sum of the values, with what it covers."""
        return self._estimate(terms, density).sum

    def count(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Answer:
        """How many rows hold a number."""
        return self._estimate(terms, density).count

    def nulls(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Answer:
        """How many rows hold no number."""
        return self._estimate(terms, density).nulls

    def mean(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Ratio:
        """The mean of the values that the sum covers."""
        return self._estimate(terms, density).mean

    def variance(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Ratio:
        """The variance of the values that it covers; for releases with moments."""
        return self._estimate(terms, density).variance

    def std(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Ratio:
        """The standard deviation of the values that it covers; for releases with moments."""
        return self._estimate(terms, density).std

    @property
    def everything(self) -> BoxTerm:
        """The box of all keys."""
        return BoxTerm((0,) * len(self.keys), tuple(axis.width - 1 for axis in self.keys))

    @classmethod
    @abstractmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, *, keys: Sequence[Axis], value: Domain
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""


@final
@dataclass(frozen=True)
class ValueLine:
    """The values of a summed column: the multiples low, ..., low + size - 1 of a step.

    A value is the `origin`, which is the multiple nearest to zero, plus an offset up or down, both in steps.

    >>> line = ValueLine.of(Integer(-3, 10))
    >>> line.origin, line.up, line.down
    (0, 10, 3)
    """

    low: int
    size: int
    step: Fraction

    @staticmethod
    def of(domain: Domain, name: str = "value") -> ValueLine:
        """The line of a column of numbers; no other column has sums."""
        if not isinstance(domain, Integer | Real):
            rule = "must be an Integer or a Real domain: only numbers have sums"
            raise InvalidParameter(name, rule, given=type(domain).__name__, fix="sum a column of numbers")
        fix = "use a coarser step"
        check(domain.size <= LARGEST_AXIS, name, "must have at most 2^63 cells", given=domain.size, fix=fix)
        step = domain.step if isinstance(domain, Real) else Fraction(1)
        return ValueLine(int(domain.low / step), domain.size, step)

    @property
    def origin(self) -> int:
        """The point of the line that is nearest to zero."""
        return min(max(0, self.low), self.low + self.size - 1)

    @property
    def up(self) -> int:
        """The largest offset above the origin."""
        return self.low + self.size - 1 - self.origin

    @property
    def down(self) -> int:
        """The largest offset below the origin."""
        return self.origin - self.low

    @property
    def axis(self) -> Axis:
        """The axis of positions: below, the values in order, above, invalid, null."""
        return Axis(size=self.size, before=1, after=3)

    def offsets(self, places: UInts) -> Ints:
        """The offsets of positions, those below and above clamped to the line; invalid and null have none."""
        cells = np.clip(places, np.uint64(1), np.uint64(self.size)) - np.uint64(1)
        return np.asarray(cells.astype(np.int64) - self.down)

    def invalid(self, places: UInts) -> Bools:
        """Which positions are those of values that are neither numbers nor null."""
        return np.asarray(places == np.uint64(self.size + 2))

    def null(self, places: UInts) -> Bools:
        """Which positions are null."""
        return np.asarray(places == np.uint64(self.size + 3))

    def number(self, offset: float) -> float:
        """The value at an offset, as a float."""
        return float((self.origin + Fraction(offset)) * self.step)
