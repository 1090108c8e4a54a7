"""Released sums of numerical queries by multiplicative weights: what all three ways have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.lazy.cached import cached_property
from partita.numbers import failure
from partita.public.axis.base.ranges import Json, Parts
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.workload.decomposition.decomposed import Method, space_of
from partita.public.workload.decomposition.space import Space
from partita.public.workload.release.workload import WorkloadRelease
from partita.public.workload.weights.measured import Weighed
from partita.public.workload.weights.multiplicative_weights import spent_by
from partita.public.workload.weights.weights_parts import written_weighed


@dataclass(frozen=True, eq=False, kw_only=True)
class NumericalRelease(WorkloadRelease, ABC):
    """Sums that are read off synthetic rows: for each query the answer to one graded query, times its top.

    `Answer.error` is a model of the error of the synthetic rows, and does not cover what a threshold cuts
    off. `Answer.worst(beta)` and `error(beta)` are guaranteed and do: they allow for every row that may lie
    above the threshold, up to the largest weight of the universe.
    """

    decomposition: Method
    weighed: Weighed

    @cached_property
    def space(self) -> Space:
        """The cells over which rows were weighed."""
        return space_of(self.operator, self.decomposition)

    @property
    @abstractmethod
    def columns(self) -> Ints:
        """The graded query that answers each query."""

    @property
    @abstractmethod
    def factors(self) -> Floats:
        """What that answer is to be multiplied with: the threshold, zero where everything is cut off."""

    @abstractmethod
    def hidden(self, beta: float) -> Floats:
        """How much the thresholds may cut off each sum, but for chance beta for all of them together."""

    @cached_property
    def values(self) -> Floats:
        """All sums below their thresholds."""
        return np.maximum(0.0, self.weighed.answers[self.columns]) * self.factors

    @cached_property
    def spreads(self) -> Floats:
        """About the standard errors of the sums below their thresholds."""
        return np.asarray(self.weighed.spread * self.factors)

    def answer(self, index: int) -> Answer:
        """The sum of one query."""
        place = self.operator.checked(index)
        value, spread = float(self.values[place]), float(self.spreads[place])

        def bounds(beta: float) -> tuple[float, float]:
            reach, hidden = self._reach(beta / 2)[place], self.hidden(beta / 2)[place]
            return value - float(reach), value + float(reach + hidden)

        return Answer(value, lambda: spread, bounds)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the whole sum by more, whatever the data."""
        half = float(failure(beta)) / 2
        return float((self._reach(half) + self.hidden(half)).max())

    def _reach(self, beta: float) -> Floats:
        """How far the sums below thresholds may be off: the synthetic rows, and masses rounded to units."""
        rounded = self.space.rounding * self.weighed.mass * self.factors.max(initial=0.0)
        return np.asarray(self.weighed.bounds(beta)[self.columns] * self.factors + rounded)

    def weights_cost(self, before: Fraction) -> Fraction:
        """The epsilon that all noise costs between neighbours, `before` that of the weights included."""
        if self.guarantee is None:
            return Fraction(0)
        left = self.guarantee.epsilon - before
        promised = (
            replace(self.guarantee, epsilon=left) if left > 0 else replace(self.guarantee, delta=Fraction(0))
        )
        return before + spent_by(self.weighed, promised, row=self.space.most)

    def weighed_parts(self, facts: Mapping[str, Json], series: Mapping[str, NDArray[Any]]) -> Parts:
        """What was weighed and over which cells, with some parts of its own."""
        weighed = written_weighed(self.weighed)
        decomposition: dict[str, Json] = {"decomposition": self.decomposition}
        return Parts({**weighed.facts, **decomposition, **facts}, {**weighed.series, **series})
