"""Released sums of numerical queries, all cut at one threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.guarantee.guarantee import Guarantee, rows_changed
from partita.lazy.cached import cached_property
from partita.public.axis.base.ranges import Parts
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.bounds.query_error import largest_reach
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.decomposition.octaves import shared_top
from partita.public.workload.decomposition.space import grade_factors
from partita.public.workload.numerical.numerical import NumericalRelease
from partita.public.workload.numerical.numerical_reading import NumericalReader


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GlobalTruncationRelease(NumericalRelease):
    """Noisy counts of rows by the octave of their largest weight, and queries cut where these end."""

    kind: ClassVar[str] = "global-truncation"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"global-truncation": ("KDD22", "HLM12")}
    max_series: ClassVar[int] = 10

    octaves: NDArray[Any]
    octave_scale: Fraction

    @cached_property
    def top(self) -> int:
        """The threshold of all queries, in units of the weights."""
        return shared_top(self.octaves, self.octave_scale, self.space.tops)

    @property
    def columns(self) -> Ints:
        """Every query has one graded query."""
        return np.arange(len(self))

    @cached_property
    def factors(self) -> Floats:
        """The threshold, the same for all queries of classes."""
        return grade_factors(self.space.cut(self.top))

    def hidden(self, beta: float) -> Floats:
        """What the rows in octaves above the threshold may have beyond it."""
        tops = self.space.tops
        first = tops.index(self.top) + 1
        reach = largest_reach(self.octave_scale, max(1, len(tops) - first), beta)
        rows = np.maximum(0.0, self.octaves[first:].astype(np.float64) + reach)
        beyond = np.array([top / self.top - 1.0 for top in tops[first:]])
        return np.asarray(float(rows @ beyond) * self.factors)

    @property
    def story(self) -> str:
        """Where all queries are cut."""
        cut = self.top / self.space.granularity
        return f"All weights are cut at {cut:g}; standard errors do not cover what is cut off."

    @property
    def spent(self) -> Fraction:
        """What the octaves and the weights cost."""
        if self.guarantee is None:
            return Fraction(0)
        changed = rows_changed(self.guarantee.neighbors, self.guarantee.contributions)
        return self.weights_cost(changed / self.octave_scale)

    def parts(self) -> Parts:
        """The octaves, and what was weighed."""
        return self.weighed_parts({"octave_scale": str(self.octave_scale)}, {"octaves": self.octaves})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The weighed queries follow from the threshold, and that from the octaves."""
        reader = NumericalReader.of(parts, queries, universe, facts=("octave_scale",), series=("octaves",))
        scale, tops = reader.parts.scale("octave_scale"), reader.space.tops
        octaves = reader.parts.noisy("octaves", count=len(tops))
        graded = reader.space.cut(shared_top(octaves, scale, tops))
        return cls(
            **reader.common(guarantee),
            weighed=reader.weighed(graded),
            octaves=octaves,
            octave_scale=scale,
        )
