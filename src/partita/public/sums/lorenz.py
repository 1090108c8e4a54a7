"""How the values of a column are divided among its rows: trimmed means, shares of the top, the Gini index.

All three are functions of the Lorenz curve, which is read off the noisy counts of a log tree. To first order
each is a linear question to that tree, so that its noise is known; what cells hide is added to the interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, final

import numpy as np

from partita.answer import NoisyNumber, Reading, Readings
from partita.arrays import Floats
from partita.errors import check
from partita.html import card, ends, round_within, whisker, with_interval
from partita.lazy import cached_property
from partita.numbers import check_probability
from partita.public.sums.base import ASSUMED, Covers, End, SumAnswer, at_level

if TYPE_CHECKING:
    from partita.public.sums.log_tree import LogCells, LogEstimate

_CLEAR: Final = 4.0  # deviations of noise that rows and total must exceed, or nothing is told
_NEAR: Final = 2.0  # deviations by which the rank of a chosen value may be off
_PLACES: Final = 9  # at which the noise of ranks is looked at
_WIDER: Final = 1.07  # of the normal quantile: noise of few nodes has longer tails, and ratios are not linear


@final
@dataclass(frozen=True, repr=False)
class LorenzAnswer(NoisyNumber):
    """A trimmed mean, the share of the top or a Gini index.

    The interval allows for noise by `error`, for what cells hide by `slack`, and for a tail that noise hides:
    `hidden` is what it may hold, as a part of the total, if it thins out, and `lower` by how much its rows
    may lower the number. `least` and `most` hold for any data, and are all that does: one row at the declared
    bound may hold most of a total.
    """

    about: str
    value: float
    error: float
    slack: float
    covers: Covers
    least: float
    most: float
    hidden: float = 0.0
    lower: float = 0.0
    basis: str = ""
    readings: Readings = field(default=(), compare=False)

    def read_from(self, reading: Reading) -> LorenzAnswer:
        """The same number, which knows what it was read from."""
        return replace(self, readings=((1.0, reading),))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold with about this confidence; a model, not a guarantee."""
        chance = float(check_probability(confidence, "confidence"))
        if not (self.determinable and math.isfinite(self.hidden)):
            return self.least, self.most
        reach = NormalDist().inv_cdf((1 + chance) / 2) * _WIDER * self.error + self.slack
        more, less = at_level(chance) * self.hidden, at_level(chance) * self.lower
        high = (self.value + reach + more) / (1.0 + more)
        return max(self.least, self.value - reach - less), min(self.most, high)

    def worst(self, beta: float = 0.05) -> tuple[float, float]:
        """What is possible whatever the data: no more is guaranteed, with any probability."""
        check_probability(beta)
        return self.least, self.most

    def __str__(self) -> str:
        if not self.determinable:
            return f"not determinable: too few rows for the noise\n{self.about}"
        likely, assumed = self.interval(), ASSUMED if self.covers.thinning else ""
        value = round_within(self.value, likely, self.error + self.slack)
        return f"{value} ({ends(likely, error=self.error + self.slack)}){assumed}\n{self.about}"

    def __repr__(self) -> str:
        return f"LorenzAnswer({', '.join(str(self).splitlines())})"

    def _repr_html_(self) -> str:
        likely = self.interval()
        facts = [
            ("value", with_interval(self.value, likely)),
            ("95% interval", ends(likely)),
            ("covers", self.covers),
        ]
        below = [whisker(self.value, likely, self.worst())] if self.determinable else []
        return card(self.about, facts, below=below)


@final
@dataclass(frozen=True, eq=False)
class LorenzCurve:
    """The cells of a log tree in the order of their values, with the rows that they hold.

    Rows beyond the declared bounds count as the bounds. What lies beyond the octaves that stand out from the
    noise is no part of `total`: it is the hidden tail of `sum`.
    """

    estimate: LogEstimate

    def trimmed_mean(self, share: Fraction) -> LorenzAnswer:
        """The mean of the rows that are left if this share of them is taken away at each end.

        It is that of values clipped at the quantiles q and 1 - q, corrected for the clipped rows. A clip that
        misses its quantile changes that by the rows between both only.
        """
        part, line = float(share), self.estimate.trees.cells.line
        bounds = line.number(-line.down), line.number(line.up)
        numbers = self._cells.numbers
        low, low_slack = self._find(numbers, part)
        high, high_slack = self._find(numbers, 1.0 - part)
        weights = (np.clip(self._values, low, high) - part * (low + high)) * numbers
        left = (1.0 - 2.0 * part) * float(self._leaves @ numbers)
        about = f"mean without {_percent(share)} of the rows at each end, about {low:,.6g} to {high:,.6g}"
        covers = Covers(End(low, gone=low), End(high, gone=high))
        if left <= _CLEAR * (1.0 - 2.0 * part) * self._deviation(numbers):
            return LorenzAnswer(about, math.nan, math.inf, 0.0, covers, *bounds)
        value = float(self._leaves @ weights) / left
        inner = (self._values >= low) & (self._values <= high)
        within = max(float(self._rows[inner] @ self._halves[inner]), self._step)
        return LorenzAnswer(
            about,
            min(max(value, low), high),
            self._deviation((weights - value * (1.0 - 2.0 * part) * numbers) / left),
            (within + low_slack + high_slack) / left,
            covers,
            *bounds,
        )

    def top_share(self, share: Fraction) -> LorenzAnswer:
        """The part of the total that is held by this share of the rows, those with the largest values."""
        part, about = float(share), f"share of the total that the top {_percent(share)} of the rows hold"
        covers = self._covers
        if not self._is_clear:
            return LorenzAnswer(about, math.nan, math.inf, 0.0, covers, part, 1.0)
        cut, slack = self._find(self._inside, 1.0 - part)
        weights = (np.maximum(self._values - cut, 0.0) + part * cut) * self._inside
        value = min(1.0, max(part, float(self._leaves @ weights) / self._total))
        pull = np.abs((self._values > cut) - value)
        return LorenzAnswer(
            about,
            value,
            self._deviation((weights - value * self._values * self._inside) / self._total),
            (max(float((self._rows * self._inside * self._halves) @ pull), self._step) + slack) / self._total,
            covers,
            part,
            1.0,
            self._hidden,
            self.estimate.hidden_rows * cut / self._total,  # each may push out a row of the top
        )

    @property
    def gini(self) -> LorenzAnswer:
        """The mean distance of two rows over twice the mean: 0 if all are equal, near 1 if one has all."""
        about, covers = "Gini index of all rows", self._covers
        if not self._is_clear:
            return LorenzAnswer(about, math.nan, math.inf, 0.0, covers, 0.0, 1.0)
        held, values = self._leaves * self._inside, self._values
        rows, total = float(held.sum()), self._total
        upto, below = np.cumsum(held), np.cumsum(held * values)
        apart = values * (2.0 * upto - rows) - 2.0 * below + total  # from each value to all rows, added up
        value = min(1.0, max(0.0, float(held @ apart) / (2.0 * rows * total)))
        pull = np.abs((2.0 * upto - held) / rows - 1.0 - value)
        counted = self._rows * self._inside
        within = float((counted * self._halves) @ pull) + float(counted**2 @ self._halves) / (2.0 * rows)
        within += float(np.ptp(values[self._inside > 0.0])) * self._rank_variance / rows
        return LorenzAnswer(
            about,
            value,
            self._deviation((apart / (rows * total) - value / rows - value * values / total) * self._inside),
            within / total,
            covers,
            0.0,
            1.0,
            self._hidden,
            2.0 * self.estimate.hidden_rows / rows,  # as much as if they held nothing
        )

    @property
    def _rank_variance(self) -> float:
        """The variance of the noise in the number of rows up to a value: the most of a few places.

        The sum of the distances of all pairs has squares of that noise, whose mean is not zero.
        """
        places = np.linspace(0, self._values.size - 1, _PLACES).astype(np.int64)
        cells = np.arange(self._values.size)
        return max(self._deviation((cells <= place) * self._inside) ** 2 for place in places)

    def _find(self, counted: Floats, share: float) -> tuple[float, float]:
        """The value below which about this share of the rows lie, and what a miss may add to a sum.

        Ranks are off by noise: within the values whose noisy ranks are as near as that the true quantile is
        taken to lie, and no more rows than that are on the wrong side of the cut.
        """
        rows = float(self._leaves @ counted)
        upto = np.maximum.accumulate(np.cumsum(self._leaves * counted))
        last = self._values.size - 1
        cell = min(last, int(np.searchsorted(upto, share * rows)))
        before = (np.arange(last + 1) <= cell) * counted - share * counted
        reach = _NEAR * self._deviation(before)
        first, end = (
            min(last, int(np.searchsorted(upto, share * rows + way * reach))) for way in (-1.0, 1.0)
        )
        width = self._values[end] + self._halves[end] - self._values[first] + self._halves[first]
        return float(self._values[cell]), float(width) * reach

    def _deviation(self, weights: Floats) -> float:
        """The standard deviation of the noise in a weighted sum of all cells."""
        trees = self.estimate.trees
        nodes = trees.tree.plain(weights).nodes
        return math.sqrt(float(nodes @ nodes) * trees.variance)

    @property
    def _is_clear(self) -> bool:
        """Whether rows and total stand out from the noise; then no share is one of next to nothing."""
        rows, values = self._inside, self._values * self._inside
        return float(self._leaves @ rows) > _CLEAR * self._deviation(rows) and self._total > max(
            _CLEAR * self._deviation(values), 0.0
        )

    @cached_property
    def _leaves(self) -> Floats:
        """The noisy number of rows of each cell, by least squares."""
        trees = self.estimate.trees
        return trees.tree.estimate_parts(trees.measured)

    @property
    def _step(self) -> float:
        """By how much one value may be off at least: no interval has a width of zero."""
        return float(self._cells.line.step)

    @property
    def _rows(self) -> Floats:
        return np.maximum(self._leaves, 0.0)

    @property
    def _cells(self) -> LogCells:
        return self.estimate.trees.cells

    @cached_property
    def _values(self) -> Floats:
        """What stands for the values of each cell; cells without a number are the last."""
        line = self._cells.line
        found = (self.estimate.question.middle + float(line.origin)) * float(line.step)
        return np.asarray(np.where(self._cells.numbers > 0.0, found, line.number(line.up)))

    @cached_property
    def _halves(self) -> Floats:
        """By how much values may differ from what stands for their cell."""
        question = self.estimate.question
        return np.asarray((question.high - question.low) / 2.0 * float(self._cells.line.step))

    @cached_property
    def _inside(self) -> Floats:
        """1 for cells of octaves that stand out from the noise."""
        return self._cells.numbers * self.estimate.covered

    @cached_property
    def _sum(self) -> SumAnswer:
        return self.estimate.sum

    @cached_property
    def _total(self) -> float:
        return float((self._leaves * self._inside) @ self._values)

    @property
    def _hidden(self) -> float:
        """What the tail may hold that noise hides, over the total that is covered."""
        return self._sum.hidden[1] / self._total

    @property
    def _covers(self) -> Covers:
        line = self._cells.line
        fix = "ask for a trimmed mean"
        check(
            line.low >= 0,
            "column",
            "must have no negative values, or shares mean nothing",
            given="some",
            fix=fix,
        )
        return self._sum.covers


def _percent(share: Fraction) -> str:
    return f"{100 * float(share):.10g}%"
