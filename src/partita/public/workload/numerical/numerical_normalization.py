"""Released sums of numerical queries, each over its largest weight in the universe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np

from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.axis.base.ranges import Parts
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.decomposition.space import grade_factors
from partita.public.workload.numerical.numerical import NumericalRelease
from partita.public.workload.numerical.numerical_reading import NumericalReader


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NormalizationRelease(NumericalRelease):
    """Nothing is cut off: every answer is multiplied with the largest weight that the universe allows."""

    kind: ClassVar[str] = "normalization"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"normalization": ("KDD22", "HLM12")}
    max_series: ClassVar[int] = 10

    @property
    def columns(self) -> Ints:
        """Every query has one graded query."""
        return np.arange(len(self))

    @cached_property
    def factors(self) -> Floats:
        """The largest weights."""
        return grade_factors(self.space.whole)

    def hidden(self, beta: float) -> Floats:
        """Nothing."""
        return np.zeros(len(self))

    @property
    def spent(self) -> Fraction:
        """What the weights cost."""
        return self.weights_cost(Fraction(0))

    def parts(self) -> Parts:
        """What was weighed."""
        return self.weighed_parts({}, {})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The weighed queries follow from queries, universe and decomposition."""
        reader = NumericalReader.of(parts, queries, universe)
        return cls(**reader.common(guarantee), weighed=reader.weighed(reader.space.whole))
