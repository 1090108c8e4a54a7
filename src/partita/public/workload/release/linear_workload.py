"""Released answers to a workload of linear queries, each with noise of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.axis.base.ranges import Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Floats
from partita.public.base.released import noisy_integers
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.release.answer_changes import AnswerChanges
from partita.public.workload.release.linear_queries import NoisyUnits
from partita.public.workload.release.workload import WorkloadRelease


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LinearWorkloadRelease(WorkloadRelease):
    """A noisy integer for each query, in units of one over the granularity, all with noise of one scale."""

    kind: ClassVar[str] = "linear"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"linear": ("DMNS06", "SU")}
    max_series: ClassVar[int] = 2

    noisy: NDArray[Any]
    scale: Fraction

    @property
    def values(self) -> Floats:
        """All answers."""
        return self._units.values

    @property
    def spreads(self) -> Floats:
        """One standard error for all."""
        return np.full(self.noisy.size, self._units.spread)

    def answer(self, index: int) -> Answer:
        """The answer to one query. Where no weight is negative, neither is the truth."""
        place = self.operator.checked(index)
        positive = self.operator.single(place).lowest >= 0
        return self._units.answer(place, least=0.0 if positive else -math.inf)

    def error(self, beta: float) -> float:
        """The largest of all noises, by the exact tail of each."""
        return self._units.error(beta)

    @property
    def spent(self) -> Fraction:
        """What answers with this noise cost together: the largest change of one, and that of all."""
        promise = self.guarantee
        if promise is None:
            return Fraction(0)
        changes = AnswerChanges.between(
            promise.neighbors, contributions=promise.contributions, operator=self.operator
        )
        return changes.cost(self.scale, promise.delta)

    def parts(self) -> Parts:
        """The noisy integers and their scale."""
        return Parts({"scale": str(self.scale)}, {"noisy": noisy_integers(self.noisy, "noisy")})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The release that `parts` took apart."""
        reader = PartsReader(parts)
        reader.expect(facts=("scale",), series=("noisy",))
        noisy = reader.noisy("noisy", count=cls.number_of(queries, universe))
        scale = reader.scale("scale")
        return cls(noisy=noisy, scale=scale, queries=queries, universe=universe, guarantee=guarantee)

    @cached_property
    def _units(self) -> NoisyUnits:
        return NoisyUnits(self.noisy, self.operator.granularity, self.scale)
