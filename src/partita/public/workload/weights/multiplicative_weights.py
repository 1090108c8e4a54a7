"""Released answers of private multiplicative weights: noisy measurements, and synthetic rows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any, ClassVar, Self, final

import numpy as np

from partita.answer import Answer
from partita.guarantee.accounting import zcdp_budget
from partita.guarantee.guarantee import Guarantee
from partita.numbers import failure, integer
from partita.public.axis.base.ranges import Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Floats
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.release.change import Change
from partita.public.workload.release.workload import WorkloadRelease
from partita.public.workload.weights.measured import Weighed
from partita.public.workload.weights.weights_parts import (
    WEIGHED_FACTS,
    WEIGHED_SERIES,
    read_weighed,
    written_weighed,
)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class WeightsRelease(WorkloadRelease):
    """Measurements of a total, of sums along axes, and of queries that were chosen, round by round.

    All answers are those of one synthetic mass over the universe, which follows from the measurements and
    is made when first asked for. Standard errors are one model for all queries; bounds are guaranteed for
    all of them at once.
    """

    kind: ClassVar[str] = "weights"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"weights": ("HLM12",)}
    max_series: ClassVar[int] = 6

    weighed: Weighed

    @property
    def values(self) -> Floats:
        """All answers, in the order of the queries."""
        return self.weighed.answers

    @property
    def spreads(self) -> Floats:
        """About the standard errors of all answers: one number, a model."""
        return np.full(len(self), self.weighed.spread)

    @property
    def x(self) -> Any:
        """The synthetic rows of each cell of the universe."""
        return self.weighed.x

    def answer(self, index: int) -> Answer:
        """The answer to one query; its bounds hold together with those of all others."""
        place = integer(index, "index", low=0, high=len(self) - 1)
        value = float(self.values[place])

        def bounds(beta: float) -> tuple[float, float]:
            reach = float(self.weighed.bounds(beta)[place])
            return value - reach, value + reach

        least = 0.0 if self.operator.lowest >= 0 else -inf
        return Answer(value, lambda: self.weighed.spread, bounds, least)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the truth by more, whatever the data."""
        return self.weighed.error(float(failure(beta)))

    @property
    def story(self) -> str:
        """What was chosen, and by which released numbers."""
        rounds, rows = self.weighed.indices.size, max(0, round(self.weighed.total / self.weighed.unit))
        return (
            f"For a total of about {rows:,} rows it took {rounds:,} round{'s' * (rounds > 1)}; "
            f"{len(set(self.weighed.indices.tolist())):,} of {len(self):,} queries were measured."
        )

    @property
    def spent(self) -> Fraction:
        """What the noise costs between neighbours, by the better of pure and zero-concentrated accounting."""
        return spent_by(self.weighed, self.guarantee)

    def on(self, arrays: Any) -> WeightsRelease:
        """The same release, computed with another array library: `arrays` is any float array of it."""
        return replace(self, weighed=replace(self.weighed, arrays=arrays))

    def parts(self) -> Parts:
        """The measurements and their noise scales."""
        return written_weighed(self.weighed)

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        reader.expect(facts=WEIGHED_FACTS, series=WEIGHED_SERIES)
        weighed = read_weighed(reader, queries.over(universe), unit=1)
        return cls(queries=queries, universe=universe, guarantee=guarantee, weighed=weighed)


def spent_by(weighed: Weighed, guarantee: Guarantee | None, *, row: int = 1) -> Fraction:
    """The epsilon that measurements cost between the neighbours of a guarantee, at its delta.

    A row has a mass of at most `row`. Zero-concentrated losses are converted at the guarantee's delta: if
    they fit, they cost no more than it promises.
    """
    if guarantee is None:
        return Fraction(0)
    change = Change.of(guarantee.neighbors, contributions=guarantee.contributions, row=row)
    pure, rho = weighed.losses(change)
    if 0 < guarantee.delta < 1 and rho <= zcdp_budget(guarantee.epsilon, guarantee.delta):
        return min(pure, guarantee.epsilon)
    return pure
