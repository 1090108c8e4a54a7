"""The mean of everybody's number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.errors import InvalidParameter, check, check_data, check_type
from partita.local.aggregate import Aggregator
from partita.local.encodings import MeanRandomizer, OneBit, Piecewise
from partita.local.estimates import implausible_mean, warn_of_forgery
from partita.local.frequency import checked_column
from partita.local.question import Question
from partita.local.randomizer import Json, Randomizer, checked_epsilon
from partita.numbers import freeze, one_of, rational

if TYPE_CHECKING:
    from partita.arrays import Ints

_FARTHEST: Final = 10**300

MeanKind: TypeAlias = Literal["auto", "one-bit", "piecewise"]

_KINDS: Final[dict[str, type[MeanRandomizer]]] = {kind.kind: kind for kind in (OneBit, Piecewise)}


@final
@dataclass(frozen=True, init=False)
class Mean(Question):
    """What is a person's number, between two public bounds?

    Numbers are clamped to the bounds and rounded to a step of 2^-20 of their distance; what is no number
    counts as the middle. "auto" takes the randomizer with the lower variance at its worst: one bit for small
    epsilon, piecewise for larger.

    >>> Mean(0, 24, epsilon=1).randomizer.kind, Mean(0, 24, epsilon=3).randomizer.kind
    ('one-bit', 'piecewise')
    """

    asks: ClassVar[str] = "mean"
    low: Fraction
    high: Fraction
    randomizer: MeanRandomizer

    def __init__(self, low: object, high: object, *, epsilon: object, kind: MeanKind = "auto") -> None:
        one_of(kind, "kind", get_args(MeanKind))
        exact = checked_epsilon(epsilon)
        made = [_KINDS[name](epsilon=exact) for name in (_KINDS if kind == "auto" else (kind,))]
        self._fill(low, high, min(made, key=lambda randomizer: randomizer.largest_variance))

    @classmethod
    def of(cls, low: object, high: object, randomizer: Randomizer) -> Self:
        """The question about bounds with a given randomizer."""
        fix = "leave it out"
        randomizer = check_type(randomizer, MeanRandomizer, "randomizer", "must be one of numbers", fix=fix)
        made = object.__new__(cls)
        made._fill(low, high, randomizer)
        return made

    def _fill(self, low: object, high: object, randomizer: MeanRandomizer) -> None:
        bounds = rational(low, "low"), rational(high, "high")
        check(bounds[0] < bounds[1], "high", "must be above low", given=high, fix="swap the bounds")
        if max(abs(bounds[0]), abs(bounds[1]), 1 / (bounds[1] - bounds[0])) > _FARTHEST:
            fix = "change the unit"
            raise InvalidParameter("high", "must be within 10^300, and 10^-300 from low", given=high, fix=fix)
        freeze(self, low=bounds[0], high=bounds[1], randomizer=randomizer)

    def cell(self, value: object) -> int:
        """The nearest step, the upper one of two; the middle for what is no number."""
        share = (self._clamped(value) - self.low) / (self.high - self.low)
        return int(share * (self.randomizer.size - 1) + Fraction(1, 2))

    def _clamped(self, value: object) -> Fraction:
        """A number between the bounds, whatever the value is."""
        if sign := _infinite(value):
            return self.high if sign > 0 else self.low
        try:
            return max(self.low, min(self.high, rational(value, "value")))
        except InvalidParameter:
            return (self.low + self.high) / 2

    def cells(self, values: object) -> Ints:
        """The nearest step of every number of a column, as one by one."""
        import numpy as np

        from partita.arrays import as_rows

        given = as_rows(values, "values").ravel()
        if given.dtype.kind not in "iuf":
            return np.array([self.cell(value) for value in given.tolist()], dtype=np.int64)
        with np.errstate(over="ignore"):
            shares = (given.astype(np.float64) - float(self.low)) / float(self.high - self.low)
        places = np.nan_to_num(shares, nan=0.5).clip(0, 1) * (self.randomizer.size - 1)
        rounded: Ints = np.floor(places + 0.5).astype(np.int64)
        for row in np.flatnonzero(np.abs(places - np.floor(places) - 0.5) <= self._doubt):
            rounded[row] = self.cell(given[row].item())
        return rounded

    @property
    def _doubt(self) -> float:
        """How far floats may be from the exact place of a number; nearer to a tie it is found exactly."""
        far = float(max(abs(self.low), abs(self.high)) / (self.high - self.low))
        return 2.0**-50 * (1 + far) * (self.randomizer.size - 1)

    def aggregator(self) -> MeanAggregator:
        """A new aggregator of reports."""
        return MeanAggregator(self)

    def _asked(self) -> Json:
        return {"low": str(self.low), "high": str(self.high)}


def _infinite(value: object) -> int:
    """The sign of an infinite number, and 0 for all else."""
    if isinstance(value, Decimal):
        return (-1 if value.is_signed() else 1) * value.is_infinite()
    return int(math.copysign(1, value)) * math.isinf(value) if isinstance(value, float) else 0


# Sums of reports about numbers, and what they say about the mean.


_IMAGINED: Final = 4
"""As many as are added to a proportion [AC98]."""

_BLOCK: Final = 1 << 16
"""So many squares, each below 2^46, add up to less than 2^63."""


@final
class MeanAggregator(Aggregator[Mean]):
    """Keeps the sum of all reports and the sum of their squares, in integers.

    >>> question = Mean(0, 24, epsilon=1)
    >>> aggregator = question.aggregator()
    >>> aggregator.add_many(question.randomize_many([6.5, 8, 7]))
    >>> aggregator.n
    3
    """

    def estimate(self) -> Answer:
        """The mean of everybody's number, unbiased; its error is that of the reports as they came.

        A few reports may happen to be alike, so four of the largest variance are imagined beside them. The
        guaranteed bounds are Hoeffding's. Neither they nor the value are held within the bounds of the
        question, but the mean is; if it leaves them by more than noise explains, a warning says so.
        """
        check_data(self.n, "reports", "must be at least one", fix="collect reports first")
        warn_of_forgery(implausible_mean(self.question.randomizer, self.n, int(self._counts[0])))
        low, unit = float(self.question.low), self._unit
        value = low + unit * (int(self._counts[0]) / self.n - float(self.question.randomizer.offset))

        def bounds(beta: float) -> tuple[float, float]:
            reach = unit * (self.question.randomizer.reports - 1) * math.sqrt(math.log(2 / beta) / 2 / self.n)
            return value - reach, value + reach

        return Answer(value, lambda: math.sqrt(self._variance * (self.n + 1)) / self.n, bounds, low)

    @property
    def _variance(self) -> float:
        """Of one report, in units of numbers: as they came and four more, but at least what the law has."""
        total, squares = (int(count) for count in self._counts)
        law, width = self.question.randomizer, float(self.question.high - self.question.low)
        seen = max(0.0, squares - total * total / self.n) * self._unit**2
        imagined = _IMAGINED * law.largest_variance * width**2
        return max(law.least_variance * self._unit**2, (seen + imagined) / (self.n + _IMAGINED))

    @property
    def _unit(self) -> float:
        """How much of a number one place of a report stands for."""
        randomizer = self.question.randomizer
        return float((self.question.high - self.question.low) / randomizer.slope / (randomizer.size - 1))

    def _zeros(self) -> NDArray[Any]:
        return np.array([0, 0], dtype=object)

    def _tallied(self, reports: Any) -> tuple[NDArray[Any], int]:
        column = checked_column(self.question.randomizer, reports)
        blocks = [column[start : start + _BLOCK] for start in range(0, len(column), _BLOCK)]
        squares = sum(int((block * block).sum()) for block in blocks)
        return np.array([int(column.sum()), squares], dtype=object), len(column)

    def _check_counts(self, counts: NDArray[Any], n: int) -> bool:
        total, squares = counts
        most = self.question.randomizer.reports - 1
        return bool(total <= n * most and total <= squares <= total * most and total**2 <= n * squares)
