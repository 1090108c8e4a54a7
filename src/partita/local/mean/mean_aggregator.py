"""Sums of reports about numbers, and what they say about the mean."""

from __future__ import annotations

import math
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.errors.checks import check_data
from partita.local.aggregate.aggregator import Aggregator
from partita.local.estimates.plausibility import implausible_mean, warn_of_forgery
from partita.local.frequency.decoders import checked_column
from partita.local.mean.mean import Mean

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
