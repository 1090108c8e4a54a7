"""Released answers to linear queries: what all kinds have in common, and those with independent noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, Answers
from partita.arrays import Floats
from partita.domain.base import Domain
from partita.errors import InvalidParameter, check_release
from partita.guarantee import (
    CHANGE_ONE,
    Composition,
    Guarantee,
    Neighbors,
    best_composition,
    composed_epsilon,
    rows_changed,
)
from partita.lazy import cached_property
from partita.numbers import check_probability, freeze, integer
from partita.public.axis.base import Parts, PartsReader
from partita.public.base import ReleaseKind, damaged, noisy_integers, view_card
from partita.public.bounds import laplace_variance, largest_reach
from partita.public.queries.operator import Operator, Structured
from partita.public.queries.queries import Queries, Universe


@final
@dataclass(frozen=True)
class Change:
    """Neighbours differ by what one unit adds, at most `mass` spread over cells, on one side or on both.

    On one side (add-remove) it is present in one of them only; on both sides (change-one) it is there
    twice, with other values, so that one answer changes by the spread of weights at most. `moved` is the
    largest mass that counts in one answer, if weights are such that less than all of it does.

    >>> Change.of("change-one", contributions=3)
    Change(mass=3, sides=2, moved=3)
    """

    mass: int
    sides: int = 1
    moved: int = 0

    def __post_init__(self) -> None:
        mass, sides = integer(self.mass, "mass", low=1), integer(self.sides, "sides", low=1, high=2)
        moved = integer(self.moved, "moved", low=0) or mass
        freeze(self, mass=mass, sides=sides, moved=moved)

    @staticmethod
    def of(neighbors: Neighbors, *, contributions: int = 1, row: int = 1, moved: int = 0) -> Change:
        """What neighbours differ by if a row has a mass of `row`, of which `moved` counts in one answer."""
        rows_changed(neighbors, contributions)
        return Change(contributions * row, 2 if neighbors == CHANGE_ONE else 1, contributions * moved)

    @property
    def of_total(self) -> int:
        """The largest change of the sum of all cells."""
        return self.mass

    @property
    def of_cells(self) -> int:
        """The largest sum of the changes of all cells, or of sums over disjoint sets of them."""
        return self.mass * self.sides

    def of_answer(self, operator: Operator) -> int:
        """The largest change of any one answer, in units of the operator times those of mass; at least 1."""
        low, high = min(operator.lowest, 0), max(operator.highest, 0)
        return max(1, self.moved * (max(high, -low) if self.sides == 1 else high - low))

    @property
    def of_sums(self) -> int:
        """The largest change of answers with weights between -1 and 1."""
        return self.moved * self.sides


@final
@dataclass(frozen=True)
class AnswerChanges:
    """By how much neighbours differ in the answers to a workload, and what noise that calls for.

    Neighbours differ by `each` units at most in any of `count` answers, by `losses` times that in all.
    """

    each: int
    losses: Fraction
    count: int

    @staticmethod
    def between(promise: Guarantee, operator: Operator) -> AnswerChanges:
        """The changes between the neighbours of a guarantee.

        A row in or out adds a column of weights, and a row that moves the difference of two. Of the rows
        of a unit that becomes another some move, and others come or go.
        """
        change = Change.of(promise.neighbors, contributions=promise.contributions)
        each, count = change.of_answer(operator), len(operator)
        row = operator.column_norm if promise.neighbors != CHANGE_ONE else operator.column_distance
        if promise.neighbors == CHANGE_ONE and not promise.same_rows:
            row = max(row, operator.column_norm)
        together = Fraction(max(each, promise.contributions * row), each)
        return AnswerChanges(each, min(together, Fraction(count)), count)

    def composition(self, epsilon: Fraction, delta: Fraction) -> Composition:
        """The theorem that asks for the least noise, and what each answer may cost by it."""
        return best_composition(epsilon, delta, self.count, losses=self.losses)

    def cost(self, scale: Fraction, delta: Fraction) -> Fraction:
        """The epsilon at this delta of noise of the scale on every answer."""
        return composed_epsilon(self.each / scale, delta, self.losses)


@final
@dataclass(frozen=True, eq=False)
class NoisyUnits:
    """Noisy integers in units of one over the granularity, each with noise of the scale, in these units."""

    noisy: NDArray[Any]
    granularity: int
    scale: Fraction

    @cached_property
    def values(self) -> Floats:
        """All answers."""
        return np.asarray(self.noisy.astype(np.float64) / self.granularity)

    @cached_property
    def spread(self) -> float:
        """The standard error of every answer."""
        return math.sqrt(laplace_variance(self.scale)) / self.granularity

    def answer(self, index: int, *, least: float) -> Answer:
        """One answer, of which nothing below `least` can be true."""
        units = int(self.noisy[index])

        def bounds(beta: float) -> tuple[float, float]:
            reach = int(largest_reach(self.scale, 1, beta))
            return (units - reach) / self.granularity, (units + reach) / self.granularity

        return Answer(units / self.granularity, lambda: self.spread, bounds, least)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the truth by more, whatever the data."""
        return largest_reach(self.scale, self.noisy.size, float(check_probability(beta))) / self.granularity


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LinearQueriesRelease:
    """Noisy answers in units of one over the granularity, each with noise of the scale, in these units.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    noisy: NDArray[Any]
    queries: tuple[tuple[Fraction, ...], ...]
    granularity: int
    scale: Fraction
    guarantee: Guarantee | None = None

    @property
    def values(self) -> Floats:
        """All answers."""
        return self._units.values

    def answer(self, index: int) -> Answer:
        """The answer to one query. Where no weight is negative, neither is the truth."""
        place = integer(index, "index", low=0, high=len(self.queries) - 1)
        return self._units.answer(place, least=0.0 if min(self.queries[place]) >= 0 else -math.inf)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the truth by more, whatever the data."""
        return self._units.error(beta)

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def _units(self) -> NoisyUnits:
        return NoisyUnits(self.noisy, self.granularity, self.scale)


@dataclass(frozen=True, eq=False, kw_only=True)
class WorkloadRelease(ReleaseKind, ABC):
    """Released answers to all queries of a workload.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    queries: Queries
    universe: Universe
    guarantee: Guarantee | None = None

    @cached_property
    def operator(self) -> Structured:
        """The queries as an operator."""
        return self.queries.over(self.universe)

    @property
    @abstractmethod
    def values(self) -> Floats:
        """All answers, in the order of the queries."""

    @property
    @abstractmethod
    def spreads(self) -> Floats:
        """The standard errors of all answers."""

    @abstractmethod
    def answer(self, index: int) -> Answer:
        """The answer to one query, with its standard error and bounds."""

    @abstractmethod
    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the truth by more, whatever the data."""

    def answers(self) -> Answers:
        """All answers with their standard errors."""
        return Answers(self.values, lambda: self.spreads)

    @property
    def story(self) -> str:
        """Sentences about what was chosen on the way, from released numbers; empty where nothing was."""
        return ""

    @property
    @abstractmethod
    def spent(self) -> Fraction:
        """The epsilon that the noise of what was released costs between the neighbours of the guarantee,
        at its delta; zero if there is no guarantee.
        """

    @abstractmethod
    def parts(self) -> Parts:
        """Everything that was released, as parts of a file that also holds queries and universe."""

    @classmethod
    @abstractmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""

    @staticmethod
    def number_of(queries: Queries, universe: Universe) -> int:
        """How many answers queries of a file have; `InvalidRelease` if they do not fit the columns."""
        try:
            return len(queries.over(universe))
        except InvalidParameter:
            raise damaged("queries", "must be about the columns beside them") from None

    def __len__(self) -> int:
        return len(self.operator)


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
        return self._units.values

    @property
    def spreads(self) -> Floats:
        return np.full(self.noisy.size, self._units.spread)

    def answer(self, index: int) -> Answer:
        """The answer to one query. Where no weight is negative, neither is the truth."""
        place = self.operator.check_index(index)
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
        return AnswerChanges.between(promise, self.operator).cost(self.scale, promise.delta)

    def parts(self) -> Parts:
        return Parts({"scale": str(self.scale)}, {"noisy": noisy_integers(self.noisy, "noisy")})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        reader = PartsReader(parts)
        reader.expect(facts=("scale",), series=("noisy",))
        noisy = reader.noisy("noisy", count=cls.number_of(queries, universe))
        scale = reader.scale("scale")
        return cls(noisy=noisy, scale=scale, queries=queries, universe=universe, guarantee=guarantee)

    @cached_property
    def _units(self) -> NoisyUnits:
        return NoisyUnits(self.noisy, self.operator.granularity, self.scale)


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class QueryView:
    """Columns, their public domains, the queries about them, and the released answers: a part of a release.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how
    it was chosen, a function of public parameters.
    """

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]
    queries: Queries
    answers: WorkloadRelease
    mechanism: str
    why: str = ""

    def __post_init__(self) -> None:
        same = self.answers.universe == self.universe and self.answers.queries == self.queries
        check_release(same, "answers", "must be those to the queries", fix="get the file again")

    def __repr__(self) -> str:
        return f"QueryView({', '.join(self.columns)}; {len(self)} queries; {self.mechanism})"

    def _repr_html_(self) -> str:
        return view_card(self, dict(zip(self.columns, self.domains, strict=True)), queries=f"{len(self):,}")

    def __len__(self) -> int:
        return len(self.answers)

    @cached_property
    def universe(self) -> Universe:
        """The cells that the queries weigh."""
        return Universe(self.columns, self.domains)

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.answers.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the answers have the noise that the guarantee asks for."""
        return self.guarantee is None or self.guarantee.epsilon >= self.answers.spent

    def label(self, index: int) -> str:
        """One query as text, which reads back as that query."""
        return self.queries.label(self.universe, index)

    def answer(self, index: int) -> Answer:
        """The answer to one query."""
        return self.answers.answer(index)

    @cached_property
    def total(self) -> Answer | None:
        """How many rows there are, if one of the queries asks for that; else None."""
        index = self.queries.total_at(self.universe)
        return None if index is None else self.answers.answer(index)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer misses the truth by more."""
        return self.answers.error(beta)
