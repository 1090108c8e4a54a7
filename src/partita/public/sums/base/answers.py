"""Answers about values: a sum with what it covers, and ratios that may not be determinable."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final, NamedTuple, final

from partita.answer import Answer, Bounds
from partita.html import card, plus_minus, span, whisker
from partita.numbers import failure
from partita.public.sums.base.covers import Covers

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
        return _shown("SumAnswer", self, [("covers", self.covers), ("rows with values beyond", beyond)])


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
        return _shown("Ratio", self, [("covers", self.covers)])

    def _taken(self, ratio: float) -> float:
        return self.shown(min(max(ratio, self.least), self.most))


def ratio_bounds(top: tuple[float, float], bottom: tuple[float, float]) -> tuple[float, float]:
    """Between which numbers the ratio lies if its two parts lie between these."""
    if bottom[0] <= 0.0:
        return -math.inf, math.inf
    ends = [one / other for one in top for other in bottom]
    return min(ends), max(ends)


def _shown(title: str, found: SumAnswer | Ratio, more: list[tuple[str, object]]) -> str:
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
