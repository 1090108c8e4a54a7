"""Released sums of numerical queries, each cut at a threshold that its noisy octaves speak for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.guarantee.accounting import best_rate
from partita.guarantee.guarantee import Guarantee, rows_changed
from partita.lazy.cached import cached_property
from partita.numbers import failure
from partita.public.axis.base.ranges import Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.bounds.query_error import largest_reach
from partita.public.bounds.tails import half_width, laplace_variances
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.decomposition.octaves import FINEST, grid_of, octave_tops, top_octave
from partita.public.workload.numerical.numerical_reading import numerical_operator
from partita.public.workload.release.workload import WorkloadRelease

_FACTS = ("octave_scale", "sum_scale")
_SERIES = ("octaves", "sums")


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TruncationRelease(WorkloadRelease):
    """For each query noisy counts of rows by octaves of its weight, and its noisy sum below a threshold.

    An answer is the sum of min(w, threshold). Its standard error is that of the noise. Its guaranteed bounds
    hold for the whole sum: on the upper side they allow for the rows that the octaves above the threshold may
    hide, which makes them wide where the universe has far larger weights.
    """

    kind: ClassVar[str] = "truncation"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "composition": ("KDD22", "HLY21", "DR14"),
        "single-truncation": ("HLY21",),
    }
    max_series: ClassVar[int] = 2

    octaves: NDArray[Any]
    """A row for each query, a column for each octave."""

    sums: NDArray[Any]
    """In units of the grid of the threshold."""

    octave_scale: Fraction
    sum_scale: Fraction

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """All thresholds that are possible, in units of the weights."""
        return octave_tops(self.operator.highest)

    @cached_property
    def cuts(self) -> NDArray[Any]:
        """The threshold of each query, in units of the weights."""
        return np.array(self.tops, dtype=object)[self._octave]

    @cached_property
    def values(self) -> Floats:
        """All sums below their thresholds."""
        return np.asarray(self.sums.astype(np.float64) * self._grids)

    @cached_property
    def spreads(self) -> Floats:
        """The standard errors of the noise; a sum cut at zero has none."""
        noise = np.sqrt(laplace_variances(self._rates)) * self._grids
        return np.where(self._octave > 0, noise, 0.0)

    def answer(self, index: int) -> Answer:
        """The sum of one query below its threshold."""
        place = self.operator.checked(index)

        def bounds(beta: float) -> tuple[float, float]:
            reach = self._reach(place, beta / 2)
            value = float(self.values[place])
            return value - reach, value + reach + self._hidden(place, beta / 2)

        return Answer(float(self.values[place]), lambda: float(self.spreads[place]), bounds)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the whole sum by more, whatever the data."""
        share = float(failure(beta)) / len(self) / 2
        return max(self._reach(place, share) + self._hidden(place, share) for place in range(len(self)))

    @property
    def story(self) -> str:
        """How far thresholds reach."""
        cuts = self.cuts / self.operator.granularity
        return (
            f"Each answer is a sum of weights cut at a threshold, between {min(cuts):g} and {max(cuts):g}; "
            "its standard error does not cover what is cut off."
        )

    @property
    def spent(self) -> Fraction:
        """Twice the rate for each query, or what the guarantee says where its delta allows that rate."""
        if self.guarantee is None:
            return Fraction(0)
        changed = rows_changed(self.guarantee.neighbors, self.guarantee.contributions)
        parts = (changed / self.octave_scale, self._finest * self.guarantee.contributions / self.sum_scale)
        allowed = best_rate(self.guarantee.epsilon, self.guarantee.delta, 2 * len(self))
        return self.guarantee.epsilon if max(parts) <= allowed else len(self) * (parts[0] + parts[1])

    def parts(self) -> Parts:
        """Two scales, and two rows of noisy integers."""
        facts = {"octave_scale": str(self.octave_scale), "sum_scale": str(self.sum_scale)}
        return Parts(facts, {"octaves": _row(self.octaves), "sums": _row(self.sums)})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """Every query has its octaves and its sum."""
        reader = PartsReader(parts)
        reader.expect(facts=_FACTS, series=_SERIES)
        operator = numerical_operator(queries, universe)
        number, octaves = len(operator), len(octave_tops(operator.highest))
        return cls(
            queries=queries,
            universe=universe,
            guarantee=guarantee,
            octaves=reader.noisy("octaves", count=number * octaves).reshape(number, octaves),
            sums=reader.noisy("sums", count=number),
            octave_scale=reader.scale("octave_scale"),
            sum_scale=reader.scale("sum_scale"),
        )

    @cached_property
    def _octave(self) -> Ints:
        return top_octave(self.octaves, self.octave_scale)

    @cached_property
    def _grids(self) -> Floats:
        """What a unit of each sum is worth."""
        return np.array([grid_of(cut) / self.operator.granularity for cut in self.cuts])

    @cached_property
    def _rates(self) -> Floats:
        """One over the noise scale of each sum, in units of its grid."""
        finer = [self._finest // max(1, cut // grid_of(cut)) for cut in self.cuts]
        return np.array([float(part / self.sum_scale) for part in finer])

    @property
    def _finest(self) -> int:
        return min(self.tops[-1], FINEST)

    def _reach(self, place: int, beta: float) -> float:
        """How far noise and the grid take the sum below the threshold, but for chance beta."""
        if not self._octave[place]:
            return 0.0
        units = float(half_width(self._rates[place], np.array(math.log(beta)))) + 1.0
        return units * float(self._grids[place])

    def _hidden(self, place: int, beta: float) -> float:
        """How much the rows above the threshold may have beyond it, but for chance beta."""
        first = int(self._octave[place]) + 1
        top = int(self.operator.tops[place])
        beyond = [max(0, min(octave, top) - int(self.cuts[place])) for octave in self.tops[first:]]
        reach = largest_reach(self.octave_scale, max(1, len(beyond)), beta)
        rows = [max(0.0, float(noisy) + reach) for noisy in self.octaves[place, first:]]
        return sum(n * b for n, b in zip(rows, beyond, strict=True)) / self.operator.granularity


def _row(values: NDArray[Any]) -> NDArray[Any]:
    """Flat, in 64 bits where all fit."""
    flat = values.reshape(-1)
    fits = flat.dtype != object or all(-(2**63) <= int(value) < 2**63 for value in flat)
    return flat.astype(np.int64) if fits else flat
