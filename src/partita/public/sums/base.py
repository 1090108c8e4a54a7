"""Which values an answer is about, and what all others count as."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike

from partita.answer import Answer, Bounds
from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import LARGEST_AXIS, Axis
from partita.domain.base import Domain
from partita.domain.numeric import Integer, Real
from partita.errors import InvalidParameter, check
from partita.guarantee import Guarantee
from partita.html import card, plus_minus, span, whisker
from partita.numbers import failure
from partita.public.axis.base import Parts
from partita.public.base import ReleaseKind


class End(NamedTuple):
    """How far values are covered on one side: up to `at` in full.

    Values beyond count as `at`. With `gone` that is only in part: less and less of a row the further out it
    lies, and nothing from `gone` on. `whole` if no value that was asked for lies beyond.
    """

    at: float
    gone: float | None = None
    whole: bool = False

    def share(self, past: Floats, degree: int) -> Floats:
        """Which part of a row counts whose value lies so far past the end."""
        if self.gone is None:
            return np.ones_like(past)
        if self.gone == self.at:
            return np.asarray(past <= 0.0, np.float64)
        return np.asarray(np.clip(1.0 - past / abs(self.gone - self.at), 0.0, 1.0) ** degree)


@final
@dataclass(frozen=True)
class Covers:
    """What every value counts as: `counted(v)` in a sum, and `share(v)` of a row in a mean or a variance.

    Values from `low` to `high` count in full. Where values beyond count in part, that falls with the distance
    to the power `degree`.

    >>> covers = Covers(End(0.0, whole=True), End(100.0, gone=400.0))
    >>> covers.text
    'values up to 100 in full, in part up to 400, none above'
    >>> covers.counted([50, 100, 250, 400]).tolist()
    [50.0, 100.0, 50.0, 0.0]
    """

    lower: End
    upper: End
    degree: int = 1

    @property
    def low(self) -> float:
        """From where on values count in full."""
        return self.lower.at

    @property
    def high(self) -> float:
        """Up to where values count in full."""
        return self.upper.at

    @property
    def everything(self) -> bool:
        """Whether every value that was asked for counts in full."""
        return self.lower.whole and self.upper.whole

    def share(self, values: ArrayLike) -> Floats:
        """Which part of a row with such a value counts."""
        given = np.asarray(values, np.float64)
        above, below = given - self.high, self.low - given
        return self.upper.share(above, self.degree) * self.lower.share(below, self.degree)

    def counted(self, values: ArrayLike) -> Floats:
        """What a row with such a value adds to the sum."""
        return np.clip(np.asarray(values, np.float64), self.low, self.high) * self.share(values)

    @property
    def text(self) -> str:
        """In words."""
        if self.everything:
            return "all values"
        parts = [self._full]
        parts += [] if self.lower.whole else [_beyond(self.lower, "down", "below")]
        parts += [] if self.upper.whole else [_beyond(self.upper, "up", "above")]
        return ", ".join(parts)

    def __str__(self) -> str:
        return self.text

    @property
    def _full(self) -> str:
        """The values that count in full."""
        low, high = _shown(self.low), _shown(self.high)
        if self.lower.whole:
            return f"values up to {high} in full"
        return f"values from {low} {'up' if self.upper.whole else f'to {high}'} in full"


def _beyond(end: End, way: str, side: str) -> str:
    """What becomes of values beyond an end."""
    if end.gone is None:
        return f"those {side} count as {_shown(end.at)}"
    part = f"in part {way} to {_shown(end.gone)}, " if end.gone != end.at else ""
    return f"{part}none {side}"


def _shown(number: float) -> str:
    return f"{number:,.12g}"


# Answers about values: a sum with what it covers, and ratios that may not be determinable.


_USUAL: Final = 0.95
_SURE: Final = 3.5
"""A count so many of its deviations above zero is one of some rows: noise alone hardly ever gets there."""


@final
@dataclass(frozen=True, repr=False)
class SumAnswer:
    """A sum of values, with the error of the noise in it and what values it covers.

    Error and bounds are about the sum of what every row counts as, by `covers`; what is left out is not in
    them. `beyond` tells about how many rows have values past those that count in full, by the release's own
    noisy counts; a row that counts in part is there with the other part.
    """

    answer: Answer
    covers: Covers
    beyond: Answer = field(compare=False)

    @property
    def value(self) -> float:
        """The sum."""
        return self.answer.value

    @property
    def error(self) -> float:
        """The standard error."""
        return self.answer.error

    def interval(self, confidence: float = _USUAL) -> tuple[float, float]:
        """Bounds that hold with about this confidence; a model, not a guarantee."""
        return self.answer.interval(confidence)

    def worst(self, beta: float = 0.05) -> tuple[float, float]:
        """Bounds that fail with probability at most beta, whatever the data."""
        return self.answer.worst(beta)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:,.6g} ± {self.error:,.3g}, covers {self.covers}"

    def __repr__(self) -> str:
        return f"SumAnswer({self.value:.6g} ± {self.error:.3g}, covers {self.covers})"

    def _repr_html_(self) -> str:
        beyond = plus_minus(self.beyond.value, self.beyond.error)
        return _format_sum("SumAnswer", self, [("covers", self.covers), ("rows with values beyond", beyond)])


class Joint(NamedTuple):
    """Two noisy numbers, their variances, and their covariance."""

    top: float
    bottom: float
    top_variance: float
    bottom_variance: float
    covariance: float

    @property
    def sure(self) -> bool:
        """Whether the bottom is clearly above zero."""
        return self.between(_SURE) is not None

    def between(self, z: float) -> tuple[float, float] | None:
        """Fieller's interval for top / bottom: all r with |top - r bottom| <= z deviations of that.

        None if the bottom is not z deviations above zero: then the ratio may be anything.
        """
        square = self.bottom**2 - z**2 * self.bottom_variance
        if self.bottom <= 0.0 or square <= 0.0:
            return None
        half = self.top * self.bottom - z**2 * self.covariance
        rest = self.top**2 - z**2 * self.top_variance
        root = math.sqrt(max(0.0, half**2 - square * rest))
        return (half - root) / square, (half + root) / square


@final
@dataclass(frozen=True, repr=False)
class Ratio:
    """A mean or a variance: a ratio of two noisy numbers, between `least` and `most` in any case.

    It is determinable if its count is clearly above zero. Else the value is not a number, and the interval is
    all that is possible. `shown` takes the ratio to the scale of the answer.
    """

    joint: Joint
    covers: Covers
    least: float
    most: float
    bounds: Bounds = field(compare=False)
    shown: Callable[[float], float] = field(compare=False, default=lambda ratio: ratio)

    @property
    def determinable(self) -> bool:
        """Whether the data say anything about it."""
        return self.joint.sure

    @property
    def value(self) -> float:
        """The ratio; not a number where it is not determinable."""
        return self._taken(self.joint.top / self.joint.bottom) if self.determinable else math.nan

    @property
    def error(self) -> float:
        """The standard error: half of Fieller's interval at one deviation; infinite where there is none."""
        if not self.determinable:
            return math.inf
        low, high = self.interval(2 * NormalDist().cdf(1.0) - 1)
        return (high - low) / 2

    def interval(self, confidence: float = _USUAL) -> tuple[float, float]:
        """Bounds that hold with about this confidence; a model, not a guarantee."""
        z = _deviations(float(failure(confidence, "confidence")))
        found = self.joint.between(z) if self.determinable else None
        low, high = found or (-math.inf, math.inf)
        return self._taken(low), self._taken(high)

    def worst(self, beta: float = 0.05) -> tuple[float, float]:
        """Bounds that fail with probability at most beta, whatever the data."""
        low, high = self.bounds(float(failure(beta)))
        return self._taken(low), self._taken(high)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if not self.determinable:
            return f"not determinable, covers {self.covers}"
        return f"{self.value:,.6g} ± {self.error:,.3g}, covers {self.covers}"

    def __repr__(self) -> str:
        return f"Ratio({self})"

    def _repr_html_(self) -> str:
        return _format_sum("Ratio", self, [("covers", self.covers)])

    def _taken(self, ratio: float) -> float:
        return self.shown(min(max(ratio, self.least), self.most))


def ratio_bounds(top: tuple[float, float], bottom: tuple[float, float]) -> tuple[float, float]:
    """Between which numbers the ratio lies if its two parts lie between these."""
    if bottom[0] <= 0.0:
        return -math.inf, math.inf
    ends = [one / other for one in top for other in bottom]
    return min(ends), max(ends)


def _format_sum(title: str, found: SumAnswer | Ratio, more: list[tuple[str, object]]) -> str:
    """A sum or a ratio for a notebook, with its bounds and what it covers."""
    likely, certain = found.interval(), found.worst()
    facts: list[tuple[str, object]] = [
        ("value", plus_minus(found.value, found.error)),
        ("95% interval", span(likely)),
        ("for any data", f"{span(certain)}, but for 5%"),
    ]
    return card(title, [*facts, *more], below=[whisker(found.value, likely, certain)])


def _deviations(confidence: float) -> float:
    """How many standard deviations of a normal law hold this confidence."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


# What every release of sums of one column says about itself.


class SumRelease(ReleaseKind, ABC):
    """Released sums of the values of one column, by keys."""

    own_key: ClassVar[bool] = False
    """Whether the summed column is its own and only key."""

    @classmethod
    @abstractmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, *, keys: Sequence[Axis], value: Domain
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""


# The values of a summed column: whole steps on a line, seen from the point of it that is nearest to zero.


@final
@dataclass(frozen=True)
class ValueLine:
    """The multiples low, ..., low + size - 1 of a step.

    A value is its `origin`, the multiple nearest to zero, and an offset up or down from there, all counted
    in steps.

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
        """Its positions: below, the values in order, above, invalid, null."""
        return Axis(size=self.size, before=1, after=3)

    def offsets(self, places: UInts) -> Ints:
        """The offsets of positions, those below and above clamped to the line; invalid and null have none."""
        cells = np.clip(places, np.uint64(1), np.uint64(self.size)) - np.uint64(1)
        return np.asarray(cells.astype(np.int64) - self.down)

    def invalid(self, places: UInts) -> Bools:
        """Which positions hold no number, though they are not null."""
        return np.asarray(places == np.uint64(self.size + 2))

    def null(self, places: UInts) -> Bools:
        """Which positions are null."""
        return np.asarray(places == np.uint64(self.size + 3))

    def number(self, offset: float) -> float:
        """The value at an offset, as a float."""
        return float((self.origin + Fraction(offset)) * self.step)
