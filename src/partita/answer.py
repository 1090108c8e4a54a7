"""Answers: the only floats that leave a release, each with its error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats
from partita.html import card, grid, number, plus_minus, shortlist, span, whisker
from partita.lazy import cached_property
from partita.numbers import check_probability

Bounds = Callable[[float], tuple[float, float]]

_LEAST_VARIANCE: Final = 1e-12
"""Of an answer that is combined with others: noise so small that its variance is rounded to nothing."""


@final
@dataclass(frozen=True, repr=False)
class Answer:
    """A value, its standard error, and guaranteed bounds.

    `bounds(beta)` is an interval that misses the truth with probability at most beta, for any
    data. `interval` is calibrated by a normal model, which is no guarantee, and is never wider than
    the guaranteed bounds. Neither goes below `least`. What is not asked for is not computed. `kurtosis` is
    the excess kurtosis of the noise, where that is known and the normal model would be too narrow.

    `basis` says what the value rests on, where a release can tell: "measured" on noisy counts of just what
    is asked for, "inferred" by a model from counts of something else, "order 3+" by a model of pairs where
    three or more columns may interact. It is empty where every answer is measured.

    `about` says in words what the value is about, where a number alone would mislead; printing shows it.
    `likely(beta)` takes the place of the normal model in `interval`, where a release has a better one.

    Answers of independent noise can be added. They cannot be subtracted: two answers of one release
    share their noise, so ask `release.difference`, which knows how much of it cancels.

    >>> answer = Answer(10.0, lambda: 2.0, bounds=lambda beta: (0.0, 22.0))
    >>> answer, answer.worst(0.05)
    (Answer(10 ± 2), (0.0, 22.0))
    """

    value: float
    spread: Callable[[], float] = field(compare=False)
    bounds: Bounds = field(compare=False)
    least: float = 0.0
    basis: str = ""
    kurtosis: float = field(default=0.0, compare=False)
    about: str = field(default="", compare=False)
    likely: Bounds | None = field(default=None, compare=False)

    @cached_property
    def error(self) -> float:
        """The standard error."""
        return self.spread()

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold with about this confidence; a model, not a guarantee.

        Where guaranteed bounds of the same confidence are narrower on a side, they take its place.
        """
        chance = check_probability(confidence, "confidence")
        low, high = self.worst(min(0.5, float(1 - chance)))
        if self.likely is not None:
            ends = self.likely(float(1 - chance))
            return max(low, ends[0]), max(low, min(high, ends[1]))
        half = self._quantile((1 + float(chance)) / 2) * self.error
        return max(low, self.value - half), min(high, max(self.least, self.value + half))

    def worst(self, beta: float = 0.05) -> tuple[float, float]:
        """Bounds that fail with probability at most beta, whatever the data."""
        low, high = self.bounds(float(check_probability(beta)))
        return max(self.least, min(low, self.value)), max(self.least, high, self.value)

    def _quantile(self, chance: float) -> float:
        """The normal quantile, widened for the excess kurtosis of the noise [Cornish and Fisher 1938]."""
        normal = NormalDist().inv_cdf(chance)
        return normal * max(1.0, 1.0 + self.kurtosis * (normal**2 - 3.0) / 24.0)

    def __add__(self, other: Answer) -> Answer:
        """Both together, where their noises are independent: variances add, and beta is halved."""
        if not isinstance(other, Answer):
            return NotImplemented
        return Answer.together([self, other])

    def __neg__(self) -> Answer:
        """The same number taken away; nothing is known to bound it from below."""

        def bounds(beta: float) -> tuple[float, float]:
            low, high = self.bounds(beta)
            return -high, -low

        return Answer(-self.value, lambda: self.error, bounds, -math.inf, self.basis, self.kurtosis)

    @staticmethod
    def exact(value: float) -> Answer:
        """A number that is known without noise."""
        return Answer(value, lambda: 0.0, lambda beta: (value, value))

    @staticmethod
    def together(answers: Sequence[Answer]) -> Answer:
        """The sum of answers to different questions, whose noises are independent: variances add.

        The guaranteed bounds are the sums of those of each at its share of beta: they hold for any noise.
        """

        def bounds(beta: float) -> tuple[float, float]:
            lows, highs = _share_beta(answers, beta)
            return sum(lows), sum(highs)

        return Answer(
            sum(answer.value for answer in answers),
            lambda: math.hypot(*(answer.error for answer in answers)),
            bounds,
            sum(answer.least for answer in answers),
            weakest_basis(answer.basis for answer in answers),
        )

    def adjusted(self, factor: float) -> Answer:
        """The value times a factor, to agree with a total that others share; error and bounds stay."""
        return replace(self, value=self.value * factor)

    @staticmethod
    def combined(answers: Sequence[Answer]) -> Answer:
        """One answer from several to the same question, whose noises are independent.

        The value is their mean by inverse variance. The guaranteed bounds are the intersection of
        those of each, which all hold together if each takes its share of beta.
        """
        precision = np.array([1.0 / max(answer.error**2, _LEAST_VARIANCE) for answer in answers])
        value = float(precision @ [answer.value for answer in answers] / precision.sum())

        def bounds(beta: float) -> tuple[float, float]:
            lows, highs = _share_beta(answers, beta)
            return max(lows), max(*lows, min(highs))

        least = max(answer.least for answer in answers)
        basis = weakest_basis(answer.basis for answer in answers)
        return Answer(value, lambda: float(precision.sum() ** -0.5), bounds, least, basis)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return self.about or repr(self)

    def __repr__(self) -> str:
        return f"Answer({self.value:.6g} ± {self.error:.3g}{add_basis(self.basis)})"

    def _repr_html_(self) -> str:
        likely, certain = self.interval(), self.worst()
        facts = [
            ("value", plus_minus(self.value, self.error)),
            ("95% interval", span(likely)),
            ("for any data", f"{span(certain)}, but for 5%"),
            ("basis", describe_basis(self.basis)),
            ("about", self.about or None),
        ]
        return card("Answer", facts, below=[whisker(self.value, likely, certain)])


@final
@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Many values at once, in a row or in a table of two columns.

    `np.asarray` gives them, and `error` their standard errors, made when first asked for. `basis` says what
    all of them rest on, as it does for `Answer`; it is empty where that differs from value to value, too.
    """

    values: Floats
    spread: Callable[[], Floats]
    basis: str = ""

    @cached_property
    def error(self) -> Floats:
        """The standard error of each value."""
        return self.spread()

    def adjusted(self, factor: float) -> Answers:
        """The values times a factor, to agree with a total that others share; errors stay."""
        return replace(self, values=self.values * factor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Answers({len(self)} values{add_basis(self.basis)})"

    def _repr_html_(self) -> str:
        rows = shortlist(self.values.size, self._row)
        facts = [("basis", describe_basis(self.basis))]
        return card(repr(self), facts, below=[grid(("", "value", "standard error"), rows)])

    def _row(self, place: int) -> tuple[str, str, str]:
        where = np.unravel_index(place, self.values.shape)
        return ", ".join(map(str, where)), number(float(self.values[where])), number(float(self.error[where]))


def _share_beta(answers: Sequence[Answer], beta: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The low and the high bounds of all answers, which hold together except with probability beta."""
    lows, highs = zip(*(answer.bounds(beta / len(answers)) for answer in answers), strict=True)
    return lows, highs


BASES: Final = {
    "": None,
    "measured": "measured: noisy counts of just what is asked for",
    "inferred": "inferred: by a model, as nothing was counted of just what is asked for",
    "order 3+": "order 3+: by a model of pairs of columns, which may miss how three or more go together",
}
"""What an answer may rest on, the best first, each in words."""

_RANKS: Final = {basis: rank for rank, basis in enumerate(BASES)}


def describe_basis(basis: str) -> str | None:
    """What an answer rests on, in words; None where every answer is measured."""
    return BASES[basis]


def add_basis(basis: str) -> str:
    """The end of a short text about an answer.

    >>> add_basis("inferred"), add_basis("")
    (', inferred', '')
    """
    return f", {basis}" if basis else ""


def weakest_basis(bases: Iterable[str]) -> str:
    """What a sum of answers rests on: the least that one of them does.

    >>> weakest_basis(["measured", "order 3+", "inferred"])
    'order 3+'
    """
    return max(bases, key=_RANKS.__getitem__, default="")


def least_sum(signs: Iterable[int]) -> float:
    """What a sum of counts with these signs cannot undercut: zero, if nothing is taken away.

    >>> least_sum([1, 1]), least_sum([1, -1])
    (0.0, -inf)
    """
    return 0.0 if all(sign > 0 for sign in signs) else -math.inf
