"""What private multiplicative weights release, and the synthetic mass that follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.numbers import freeze
from partita.public.base.released import damaged, noisy_integers
from partita.public.bounds.tails import half_width, laplace_variance
from partita.public.queries.operator.operator import Operator
from partita.public.workload.release.change import Change
from partita.public.workload.weights.fit import Fit, Floats, Measured, margin_block, query_block
from partita.public.workload.weights.margin import Margin

_SETTLING: Final = 150
"""Steps from the even guess to the answers; measured: with twice as many they hardly change."""

_RECENT: Final = 5
_FINE: Final = 30
_ROUNDING: Final = 1e-9


@final
@dataclass(frozen=True, kw_only=True)
class Scales:
    """The noise scale of each kind of look, in the integers that noise is added to."""

    total: Fraction
    marginal: Fraction
    selection: Fraction
    answer: Fraction


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Weighed:
    """The noisy total, noisy sums along axes, and rounds: a query that was chosen and its noisy answer.

    A row has a mass of `unit`. Answers are counted in `grain` units of the operator's weights times mass,
    and each was rounded down before it met noise. Everything else follows: no choice is left open.
    """

    operator: Operator
    unit: int
    grain: int
    total: int
    margins: tuple[Margin, ...]
    marginals: NDArray[Any]
    indices: NDArray[np.int64]
    noisy: NDArray[Any]
    scales: Scales
    arrays: Any = None

    def __post_init__(self) -> None:
        if self.marginals.size != sum(margin.bins for margin in self.margins):
            raise damaged("marginals", "must have a number for each bin")
        if self.indices.size != self.noisy.size:
            raise damaged("noisy", "must have an answer for each round")
        if bool(((self.indices < 0) | (self.indices >= len(self.operator))).any()):
            raise damaged("indices", "must be of queries that there are")

    def grown(self, index: int, noisy: int) -> Weighed:
        """With one more round; if the guess before it was worked out, that is kept."""
        answers = noisy_integers(np.array([*self.noisy.tolist(), noisy], object), "noisy")
        grown = replace(self, indices=np.append(self.indices, index), noisy=answers)
        if "x" in vars(self):
            freeze(grown, _then=self)
        return grown

    def before(self, rounds: int) -> Weighed:
        """What was known after so many rounds."""
        return replace(self, indices=self.indices[:rounds], noisy=self.noisy[:rounds])

    @cached_property
    def mass(self) -> float:
        """The number of rows, from the total and the sums along axes by their precision; at least one."""
        totals, variances = [float(self.total)], [laplace_variance(self.scales.total)]
        for values in self._split:
            totals.append(float(values.sum()))
            variances.append(values.size * laplace_variance(self.scales.marginal))
        precision = 1.0 / np.array(variances)
        return max(1.0, float(precision @ totals / precision.sum()) / self.unit)

    @property
    def blocks(self) -> list[Measured]:
        """All that was measured, in rows, with weights over the largest: along axes, and queries if any."""
        variance = laplace_variance(self.scales.marginal) / self.unit**2
        along = [
            margin_block(margin, values / self.unit, variance)
            for margin, values in zip(self.margins, self._split, strict=True)
        ]
        return [*along, self._query_block] if self.indices.size else along

    def settled(self, steps: int | None = None) -> Fit:
        """The synthetic mass that all measurements ask for, from the even guess on."""
        fit = Fit(self.operator.shape, self.mass, self.blocks, self.arrays)
        return fit.climb(_SETTLING if steps is None else steps)

    @cached_property
    def x(self) -> Any:
        """The synthetic mass of each cell, in rows."""
        return self.settled().x

    @cached_property
    def answers(self) -> Floats:
        """What the synthetic rows answer to every query."""
        return self.answered(self.x)

    def answered(self, x: Any) -> Floats:
        """What rows that are spread like x answer to every query."""
        return _floats(self.operator.answers(x)) / self.operator.granularity

    def rounded(self, answers: Floats) -> NDArray[Any]:
        """Answers in whole grains, as true answers are counted: Python ints where 64 bits might not do."""
        grains = np.rint(answers / self._answer)
        return grains.astype(np.int64) if float(np.abs(grains).max()) < 2**62 else _integers(grains)

    def bounds(self, beta: float) -> Floats:
        """How far each answer may be off: with probability 1 - beta none is further, whatever the data.

        In the last round the query that was chosen was among the worst, by the selection's tail, and how far
        it was off is known, by the noise's. That bounds all answers as they were then; the rest is what the
        last round has changed.
        """
        now, then = self.answers, self._then.answers
        last, scale = int(self.indices[-1]), self.scales.answer
        noise = float(half_width(np.array(float(1 / scale)), np.array(math.log(beta / 2))))
        passed = float(self.scales.selection) * math.log(2 * len(self.operator) / beta)
        missed = abs(float(self.noisy[-1]) - float(self.rounded(then)[last]))
        worst = (missed + noise + passed + 2.0) * self._answer
        return np.asarray((worst + np.abs(now - then)) * (1.0 + _ROUNDING))

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the truth by more, whatever the data."""
        return float(self.bounds(beta).max())

    @cached_property
    def spread(self) -> float:
        """About the standard error of an answer: a model, no guarantee.

        The noise of one measurement, and what recent rounds still found, as if the query that they found
        were the largest of as many normal errors as there are queries.
        """
        recent = min(_RECENT, self.indices.size)
        then = self.rounded(self.before(self.indices.size - recent).answers)
        missed = [
            abs(float(self.noisy[at]) - float(then[self.indices[at]])) * self._answer
            for at in range(self.indices.size - recent, self.indices.size)
        ]
        found = float(np.median(missed)) / math.sqrt(2.0 * math.log(len(self.operator) + 2))
        return math.hypot(math.sqrt(laplace_variance(self.scales.answer)) * self._answer, found)

    def losses(self, change: Change) -> tuple[Fraction, Fraction]:
        """What the noise costs between neighbours: the sum of all losses, and the zero-concentrated one."""
        answer = steps_of(change.of_answer(self.operator), self.grain)
        rounds, axes = self.indices.size, len(self.margins)
        total = change.of_total / self.scales.total
        marginal = change.of_cells / self.scales.marginal if axes else Fraction(0)
        selection, noise = 2 * answer / self.scales.selection, answer / self.scales.answer
        pure = total + axes * marginal + rounds * (selection + noise)
        squares = total**2 + axes * marginal**2 + rounds * (selection**2 / 4 + noise**2)
        return pure, squares / 2

    @cached_property
    def _then(self) -> Weighed:
        """What was known when the last query was chosen."""
        return self.before(self.indices.size - 1)

    @property
    def _query_block(self) -> Measured:
        values = self.noisy.astype(np.float64) * self._row
        return query_block(self.operator, self.indices.tolist(), values.tolist(), self._variance)

    @property
    def _answer(self) -> float:
        """One grain of an answer, in rows times weight."""
        return self.grain / (self.unit * self.operator.granularity)

    @property
    def _row(self) -> float:
        """One grain of an answer, in rows times weight over the largest weight."""
        return self._answer * self.operator.granularity / _largest(self.operator)

    @property
    def _variance(self) -> float:
        return laplace_variance(self.scales.answer) * self._row**2

    @property
    def _split(self) -> Sequence[Floats]:
        ends = np.cumsum([margin.bins for margin in self.margins])[:-1]
        return np.split(self.marginals.astype(np.float64), ends) if self.margins else []


def grain_of(change: int) -> int:
    """How many units are counted as one where an answer may change by so many: noise needs no finer ones."""
    return max(1, change >> _FINE)


def steps_of(change: int, grain: int) -> int:
    """By how many grains an answer may change, rounded down to whole grains as it is."""
    return -(-change // grain)


def _largest(operator: Operator) -> int:
    return max(abs(operator.lowest), abs(operator.highest), 1)


def _integers(values: Floats) -> NDArray[Any]:
    return np.array([int(value) for value in values], object)


def _floats(values: Any) -> Floats:
    """Numbers of any array library, in memory."""
    on_cpu = values.cpu() if hasattr(values, "cpu") else values.get() if hasattr(values, "get") else values
    return np.asarray(on_cpu, np.float64)
