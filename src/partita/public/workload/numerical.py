"""Released sums of numerical queries: by multiplicative weights in three ways, or each with its own noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, cast, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Floats, Ints
from partita.errors import InvalidParameter
from partita.guarantee import Guarantee, best_rate, rows_changed
from partita.lazy import cached_property
from partita.numbers import check_probability
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.base import damaged, noisy_integers
from partita.public.bounds import half_width, laplace_variances, largest_reach
from partita.public.queries.operator import Structured
from partita.public.queries.queries import Queries, Universe
from partita.public.workload.decomposition import (
    CAUTIOUS,
    FINEST,
    STEADY,
    GradedQueries,
    Space,
    StoredMethod,
    build_space,
    check_stored_method,
    choose_grid,
    choose_octaves,
    choose_shared_top,
    first_quiet,
    first_steady,
    grade_factors,
    last_clear,
    octave_tops,
)
from partita.public.workload.release import WorkloadRelease
from partita.public.workload.weights import (
    MEASUREMENT_FACTS,
    MEASUREMENT_SERIES,
    Measurements,
    compute_cost,
    format_measurements,
    read_measurements,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class NumericalRelease(WorkloadRelease, ABC):
    """Sums that are read off synthetic rows: for each query the answer to one graded query, times its top.

    `Answer.error` is a model of the error of the synthetic rows, and does not cover what a threshold cuts
    off. `Answer.worst(beta)` and `error(beta)` are guaranteed and do: they allow for every row that may lie
    above the threshold, up to the largest weight of the universe.
    """

    decomposition: StoredMethod
    weighed: Measurements

    @cached_property
    def space(self) -> Space:
        """The cells over which rows were weighed."""
        return build_space(self.operator, self.decomposition)

    @property
    def columns(self) -> Ints:
        """The graded query that answers each query."""
        return np.arange(len(self))

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
        place = self.operator.check_index(index)
        value, spread = float(self.values[place]), float(self.spreads[place])

        def bounds(beta: float) -> tuple[float, float]:
            reach, hidden = self._reach(beta / 2)[place], self.hidden(beta / 2)[place]
            return value - float(reach), value + float(reach + hidden)

        return Answer(value, lambda: spread, bounds)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the whole sum by more, whatever the data."""
        half = float(check_probability(beta)) / 2
        return float((self._reach(half) + self.hidden(half)).max())

    def _reach(self, beta: float) -> Floats:
        """How far the sums below thresholds may be off: by the synthetic rows, and by rounded masses."""
        rounded = self.space.rounding * self.weighed.mass * self.factors.max(initial=0.0)
        return np.asarray(self.weighed.bounds(beta)[self.columns] * self.factors + rounded)

    @property
    def spent(self) -> Fraction:
        """What the weights cost, and what was released before them."""
        if self.guarantee is None:
            return Fraction(0)
        before = self._spent_before(self.guarantee)
        left = self.guarantee.epsilon - before
        rest: dict[str, Any] = {"epsilon": left} if left > 0 else {"delta": Fraction(0)}
        promise, space = replace(self.guarantee, **rest), self.space
        return before + compute_cost(self.weighed, promise, row=space.most, moved=space.moved)

    def _spent_before(self, guarantee: Guarantee) -> Fraction:
        """The epsilon of what was released before the weights."""
        return Fraction(0)

    def weighed_parts(self, facts: Mapping[str, Json], series: Mapping[str, NDArray[Any]]) -> Parts:
        """The measurements and the kind of cells, with parts of the release's own."""
        weighed = format_measurements(self.weighed)
        decomposition: dict[str, Json] = {"decomposition": self.decomposition}
        return Parts({**weighed.facts, **decomposition, **facts}, {**weighed.series, **series})


# Read releases of numerical queries, which may be damaged or hostile.


MOST_CELLS: Final = 1 << 24
"""The largest number of cells: every step of the weights visits all of them."""

MOST_GRADED: Final = 1 << 22
"""The largest number of queries, those for all thresholds counted."""


@final
@dataclass(frozen=True)
class NumericalReader:
    """The parts of a release of numerical queries, and the cells that they are about."""

    parts: PartsReader
    queries: Queries
    universe: Universe
    decomposition: StoredMethod
    space: Space

    @staticmethod
    def of(
        parts: Parts,
        queries: Queries,
        universe: Universe,
        *,
        facts: Iterable[str] = (),
        series: Iterable[str] = (),
    ) -> NumericalReader:
        """The reader, if the release has all parts and no other, over cells that fit in memory."""
        reader, method = PartsReader(parts), parts.facts.get("decomposition")
        reader.expect(
            facts=(*MEASUREMENT_FACTS, "decomposition", *facts), series=(*MEASUREMENT_SERIES, *series)
        )
        operator = numerical_operator(queries, universe)
        try:
            checked = check_stored_method(method)
            space = build_space(operator, checked)
        except InvalidParameter:
            raise damaged("decomposition", "must fit the queries") from None
        if math.prod(space.shape) > MOST_CELLS:
            raise damaged("decomposition", f"must be over at most {MOST_CELLS} cells")
        if space.graded > MOST_GRADED:
            raise damaged("queries", f"must be at most {MOST_GRADED} for all thresholds")
        return NumericalReader(reader, queries, universe, checked, space)

    def common(self, guarantee: Guarantee | None) -> dict[str, Any]:
        """What all releases of numerical queries have."""
        return {
            "queries": self.queries,
            "universe": self.universe,
            "guarantee": guarantee,
            "decomposition": self.decomposition,
        }

    def measurements(self, graded: GradedQueries) -> Measurements:
        """The measurements of the graded queries."""
        return read_measurements(self.parts, graded, self.space.unit)


def numerical_operator(queries: Queries, universe: Universe) -> Structured:
    """The queries as an operator, if they fit the universe and are numerical."""
    try:
        operator = queries.over(universe)
    except InvalidParameter:
        raise damaged("queries", "must fit the universe") from None
    if operator.lowest < 0 or operator.highest < 1:
        raise damaged("queries", "must have positive weights and no negative ones")
    return operator


# The three ways with multiplicative weights.


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GlobalTruncationRelease(NumericalRelease):
    """All queries cut at one threshold, which follows from noisy counts of rows by the octave of their
    largest weight.
    """

    kind: ClassVar[str] = "global-truncation"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"global-truncation": ("KDD22", "HLM12")}
    max_series: ClassVar[int] = 10

    octaves: NDArray[Any]
    octave_scale: Fraction

    @cached_property
    def top(self) -> int:
        """The threshold of all queries, in units of the weights."""
        return choose_shared_top(self.octaves, self.octave_scale, self.space.tops)

    @cached_property
    def factors(self) -> Floats:
        """The largest sum below the threshold that a row has, the same for all queries of classes."""
        return grade_factors(self.space.cut(self.top))

    def hidden(self, beta: float) -> Floats:
        """What the rows in octaves above the threshold may have beyond it."""
        tops = self.space.tops
        first = tops.index(self.top) + 1
        reach = largest_reach(self.octave_scale, max(1, len(tops) - first), beta)
        rows = np.maximum(0.0, self.octaves[first:].astype(np.float64) + reach)
        beyond = np.array([float(top - self.top) for top in self.space.largest[first:]])
        return np.asarray(float(rows @ beyond) * self.space.worth)

    @property
    def story(self) -> str:
        cut = self.top / self.space.granularity
        return f"All weights are cut at {cut:g}; standard errors do not cover what is cut off."

    def _spent_before(self, guarantee: Guarantee) -> Fraction:
        """What the octaves cost."""
        return rows_changed(guarantee.neighbors, guarantee.contributions) / self.octave_scale

    def parts(self) -> Parts:
        return self.weighed_parts({"octave_scale": str(self.octave_scale)}, {"octaves": self.octaves})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The weighed queries follow from the threshold, and that from the octaves."""
        reader = NumericalReader.of(parts, queries, universe, facts=("octave_scale",), series=("octaves",))
        scale, tops = reader.parts.scale("octave_scale"), reader.space.tops
        octaves = reader.parts.noisy("octaves", count=len(tops))
        weighed = reader.measurements(reader.space.cut(choose_shared_top(octaves, scale, tops)))
        return cls(**reader.common(guarantee), weighed=weighed, octaves=octaves, octave_scale=scale)


Rule: TypeAlias = Literal["steady", "quiet"]

ALPHA_FAILS: Final = 0.05
"""How likely some count may be off by more than the alpha of the rule "quiet"."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class InstanceTruncationRelease(NumericalRelease):
    """Counts above every threshold and queries cut at every threshold, from the same synthetic rows.

    The threshold of a query is chosen from these by the rule: the first above which at most alpha rows seem
    to lie ("quiet"), or the first from which larger ones add less than their noise ("steady").
    """

    kind: ClassVar[str] = "instance-specific"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"instance-specific": ("KDD22", "HLM12")}
    max_series: ClassVar[int] = 10

    rule: Rule

    @cached_property
    def chosen(self) -> Ints:
        """The number of each query's threshold among those of the space; 0 cuts everything off."""
        if self.rule == "quiet":
            return first_quiet(self._above, self.weighed.error(ALPHA_FAILS))
        last = self.last_clear
        some = slice(0, len(self.space.tops) if last is None else last + 1)
        worth = np.vstack([np.zeros((1, len(self))), self._worth])[some]
        sums = np.vstack([np.zeros((1, len(self))), self._cut * self._worth])[some]
        return first_steady(sums, self.weighed.spread * worth, CAUTIOUS if last is None else STEADY)

    @cached_property
    def last_clear(self) -> int | None:
        """The number of the last threshold that has rows for sure; None where thresholds are no axis."""
        knots = self.space.knots
        found = None if knots is None else last_clear(self.weighed, len(self.space.shape) - 1)
        return None if knots is None or found is None else self.space.tops.index(knots[found])

    @cached_property
    def thresholds(self) -> Floats:
        """Where each query is cut, as a value."""
        return np.array(self.space.tops, np.float64)[self.chosen] / self.space.granularity

    @property
    def columns(self) -> Ints:
        """The query cut at its threshold; the first one where the threshold is 0."""
        cut = self.space.levels(np.arange(len(self.weighed.operator)))[1]
        return np.asarray(_at(cut, np.maximum(self.chosen - 1, 0)))

    @cached_property
    def factors(self) -> Floats:
        return np.where(self.chosen > 0, _at(self._worth, np.maximum(self.chosen - 1, 0)), 0.0)

    def hidden(self, beta: float) -> Floats:
        """What the rows that may lie above the threshold may have beyond it."""
        reach, tops = self.space.levels(self.weighed.bounds(beta))[0], np.array(self.space.tops, np.float64)
        above = np.maximum(0.0, self._above + reach) * self.space.counted[:, np.newaxis]
        rows = np.vstack([above, np.zeros((1, len(self)))])
        return np.asarray(_at(rows, self.chosen) * (tops[-1] - tops[self.chosen]) * self.space.worth)

    @property
    def story(self) -> str:
        low, high = self.thresholds.min(), self.thresholds.max()
        return (
            f"Every query is cut at a threshold of its own, between {low:g} and {high:g}; "
            "standard errors do not cover what is cut off."
        )

    def parts(self) -> Parts:
        return self.weighed_parts({"rule": self.rule}, {})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The weighed queries follow from queries, universe and decomposition."""
        reader = NumericalReader.of(parts, queries, universe, facts=("rule",))
        weighed, rule = reader.measurements(reader.space.joint), parts.facts["rule"]
        if rule not in get_args(Rule):
            raise damaged("rule", "must be one of those that there are")
        return cls(**reader.common(guarantee), weighed=weighed, rule=cast(Rule, rule))

    @cached_property
    def _above(self) -> Floats:
        return self.space.levels(self.weighed.answers)[0]

    @cached_property
    def _cut(self) -> Floats:
        return self.space.levels(self.weighed.answers)[1]

    @cached_property
    def _worth(self) -> Floats:
        """What an answer of one is worth, for each threshold above 0 and each query."""
        return self.space.levels(grade_factors(self.space.joint))[1]


def _at(table: Floats | Ints, rows: Ints) -> Floats | Ints:
    """One entry of each column."""
    return table[rows, np.arange(table.shape[1])]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NormalizationRelease(NumericalRelease):
    """Nothing is cut off: every answer is multiplied by its largest weight in the universe."""

    kind: ClassVar[str] = "normalization"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"normalization": ("KDD22", "HLM12")}
    max_series: ClassVar[int] = 10

    @cached_property
    def factors(self) -> Floats:
        return grade_factors(self.space.whole)

    def hidden(self, beta: float) -> Floats:
        return np.zeros(len(self))

    def parts(self) -> Parts:
        return self.weighed_parts({}, {})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The weighed queries follow from queries, universe and decomposition."""
        reader = NumericalReader.of(parts, queries, universe)
        return cls(**reader.common(guarantee), weighed=reader.measurements(reader.space.whole))


# Sums with noise of their own.


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TruncationRelease(WorkloadRelease):
    """For each query noisy counts of rows by octaves of its weight, and its noisy sum below a threshold that
    follows from them.

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
        place = self.operator.check_index(index)

        def bounds(beta: float) -> tuple[float, float]:
            reach = self._reach(place, beta / 2)
            value = float(self.values[place])
            return value - reach, value + reach + self._hidden(place, beta / 2)

        return Answer(float(self.values[place]), lambda: float(self.spreads[place]), bounds)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the whole sum by more, whatever the data."""
        share = float(check_probability(beta)) / len(self) / 2
        return max(self._reach(place, share) + self._hidden(place, share) for place in range(len(self)))

    @property
    def story(self) -> str:
        cuts = self.cuts / self.operator.granularity
        return (
            f"Each answer is a sum of weights cut at a threshold, between {min(cuts):g} and {max(cuts):g}; "
            "its standard error does not cover what is cut off."
        )

    @property
    def spent(self) -> Fraction:
        """Twice the rate for each query, or the epsilon of the guarantee if its delta allows that rate."""
        if self.guarantee is None:
            return Fraction(0)
        changed = rows_changed(self.guarantee.neighbors, self.guarantee.contributions)
        parts = (changed / self.octave_scale, self._finest * self.guarantee.contributions / self.sum_scale)
        allowed = best_rate(self.guarantee.epsilon, self.guarantee.delta, 2 * len(self))
        return self.guarantee.epsilon if max(parts) <= allowed else len(self) * (parts[0] + parts[1])

    def parts(self) -> Parts:
        facts = {"octave_scale": str(self.octave_scale), "sum_scale": str(self.sum_scale)}
        octaves = noisy_integers(self.octaves.reshape(-1), "octaves")
        return Parts(facts, {"octaves": octaves, "sums": noisy_integers(self.sums, "sums")})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        reader = PartsReader(parts)
        reader.expect(facts=("octave_scale", "sum_scale"), series=("octaves", "sums"))
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
        return choose_octaves(self.octaves, self.octave_scale)

    @cached_property
    def _grids(self) -> Floats:
        """What a unit of each sum is worth."""
        return np.array([choose_grid(cut) / self.operator.granularity for cut in self.cuts])

    @cached_property
    def _rates(self) -> Floats:
        """One over the noise scale of each sum, in units of its grid."""
        finer = [self._finest // max(1, cut // choose_grid(cut)) for cut in self.cuts]
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
