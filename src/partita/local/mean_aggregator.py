"""Sums of reports about numbers, and what they say about the mean."""

from __future__ import annotations

import math
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.errors import InvalidData
from partita.local.aggregator import Aggregator
from partita.local.decoders import checked_column
from partita.local.mean import Mean

__all__ = ["MeanAggregator"]

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

        The guaranteed bounds are Hoeffding's. Neither they nor the value are held within the bounds of the
        question, but the mean is.
        """
        if not self.n:
            raise InvalidData("reports", "must be at least one", fix="collect reports first")
        total, squares = (int(count) for count in self._counts)
        low, unit = float(self.question.low), self._unit
        variance = max(0.0, squares / self.n - (total / self.n) ** 2)
        value = low + unit * (total / self.n - float(self.question.randomizer.offset))

        def bounds(beta: float) -> tuple[float, float]:
            reach = unit * (self.question.randomizer.reports - 1) * math.sqrt(math.log(2 / beta) / 2 / self.n)
            return value - reach, value + reach

        return Answer(value, lambda: unit * math.sqrt(variance / self.n), bounds, low)

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
