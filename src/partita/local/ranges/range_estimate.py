"""What reports about levels say: shares and counts of ranges, the distribution function, quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from statistics import NormalDist
from typing import Final, final

import numpy as np

from partita.answer import Answer
from partita.local.aggregate.consistency import Floats
from partita.local.aggregate.evidence import Evidence, ViewAggregator
from partita.local.frequency.domains import domain_ends
from partita.local.ranges.projection import top_down
from partita.local.ranges.quantiles import quantile_cells
from partita.local.ranges.ranges import Range
from partita.numbers import failure, one_of, rational

_LEAST_IN_ORDER: Final = 1e-9
"""Where nobody seems to be in order, nothing is known about their quantiles."""


@final
class RangeAggregator(ViewAggregator[Range]):
    """Counts reports about where people are on a line.

    >>> question = Range(16, epsilon=3)
    >>> aggregator = question.aggregator()
    >>> aggregator.add_many(question.randomize_many([3, 4, 4, 9]))
    >>> aggregator.n, sum(aggregator.people)
    (4, 4)
    """

    def estimate(self) -> RangeEstimate:
        """Shares of all ranges, with errors and intervals."""
        return RangeEstimate(self.question, self.evidence())


@final
@dataclass(frozen=True, eq=False)
class RangeEstimate:
    """The share of people in any range: consistent, none below zero, one in all.

    Levels are combined by least squares, then made non-negative from the top down. Errors are those before
    the last step, which brings estimates nearer to the truth as a rule.
    """

    question: Range
    evidence: Evidence

    @property
    def n(self) -> int:
        """The number of reports."""
        return self.evidence.n

    @cached_property
    def unbiased(self) -> Floats:
        """The shares of all cells by least squares; some may be below zero."""
        [line] = self.evidence.lines
        return self.evidence.details.table((line.height,))[: line.size]

    @cached_property
    def values(self) -> Floats:
        """The shares of all cells, special ones last: what every answer is made of."""
        return top_down(self.unbiased, (self.question.branching,))

    def frequency(self, low: object, high: object) -> Answer:
        """The share of people from low to high, both included; values of the domain, or cells."""
        return self._share(domain_ends(self.question.domain, low, high))

    def count(self, low: object, high: object) -> Answer:
        """How many of the n people are from low to high."""
        return scaled(self.frequency(low, high), self.n)

    def cdf(self, value: object) -> Answer:
        """The share of people who are in order and not above a value."""
        return self._share((0, domain_ends(self.question.domain, value, value)[1]))

    def special(self, name: str) -> Answer:
        """The share of people in a special cell of the domain."""
        specials = () if isinstance(self.question.domain, int) else self.question.domain.specials
        cell = self.question.ordinary + specials.index(one_of(name, "name", specials))
        return self._share((cell, cell))

    def quantile(self, q: float) -> object:
        """The least value with a share of at least q, among people who are in order, at or below it."""
        return self._value(self._quantile_cells([float(rational(q, "q"))])[0])

    def quantile_interval(self, q: float, confidence: float = 0.95) -> tuple[object, object]:
        """Two values between which the quantile lies with about this confidence.

        Where the error may be all that lies above the quantile, the interval reaches to the end of the line,
        also if no report comes from there.
        """
        normal = NormalDist().inv_cdf((1 + float(failure(confidence, "confidence"))) / 2)
        share = float(rational(q, "q"))
        [cell] = self._quantile_cells([share])
        error = max(self._share((0, end)).error for end in (cell - 1, cell))
        half = normal * error / max(self._in_order, _LEAST_IN_ORDER)
        low, high = self._quantile_cells([max(0.0, share - half), min(1.0, share + half)])
        return self._value(low), self._value(high if share + half < 1 else self.question.ordinary - 1)

    @property
    def _in_order(self) -> float:
        """The share of people in no special cell."""
        return float(self.values[: self.question.ordinary].sum())

    def _quantile_cells(self, shares: list[float]) -> list[int]:
        return quantile_cells(self.values[: self.question.ordinary], shares)

    def _value(self, cell: int) -> object:
        domain = self.question.domain
        return cell if isinstance(domain, int) else domain.decode([cell])[0]

    def _share(self, ends: tuple[int, int]) -> Answer:
        low, high = ends
        if low > high:
            return Answer.exact(0.0)
        [line] = self.evidence.lines
        mask = np.zeros(line.size)
        mask[low : high + 1] = 1.0
        return Answer(
            float(self.values[low : high + 1].sum()),
            lambda: sqrt(self.evidence.details.variance([mask])),
            lambda beta: self.evidence.bounds((ends,), beta),
        )


def scaled(share: Answer, people: int) -> Answer:
    """A number of people in place of a share."""

    def bounds(beta: float) -> tuple[float, float]:
        low, high = share.bounds(beta)
        return people * low, people * high

    return Answer(people * share.value, lambda: people * share.error, bounds)
