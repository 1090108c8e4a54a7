"""Sums of numerical queries: by multiplicative weights in three ways, or each cut and noised by itself.

Normalization divides every query by its largest weight in the universe. Global truncation cuts all queries at
one private threshold, instance truncation each at its own. Composition cuts and sums every query alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Final, NamedTuple, Protocol, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.errors import check
from partita.guarantee import Composition, best_composition
from partita.numbers import Exact, check_choice, freeze, frozen, parameter
from partita.public.bounds import laplace_variance
from partita.public.queries.expressions import Value
from partita.public.queries.operator import Structured, exact_product, exact_sums
from partita.public.queries.queries import Queries
from partita.public.workload.decomposition import (
    FINEST,
    ClassesAndValue,
    DecomposedSpace,
    GradedQueries,
    Method,
    Space,
    build_space,
    check_method,
    choose_grid,
    choose_octaves,
    choose_shared_top,
    find_octaves,
    grade_factors,
    octave_tops,
    spread_masses,
    stored_method,
)
from partita.public.workload.numerical import (
    MOST_CELLS,
    MOST_GRADED,
    GlobalTruncationRelease,
    InstanceTruncationRelease,
    NormalizationRelease,
    Rule,
    TruncationRelease,
)
from partita.public.workload.release import Change
from partita.public.workload.weights import MOST_ROUNDS, Measurements, WeightsBudget
from partita.trusted.mechanisms.base import check_scale
from partita.trusted.mechanisms.weights import check_scales, noise_scales, warm_axes, weigh
from partita.trusted.mechanisms.workload import WorkloadMechanism
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts

_FEWER_CELLS: Final = (
    "choose coarser domains, or ask for products of classes and one value, "
    "such as ranges(age) * value(income), which are taken apart by themselves"
)


@frozen(kw_only=True)
class NumericalMechanism(WorkloadMechanism, ABC):
    """A mechanism for queries that add up weights of rows, none of them negative."""

    def _check_weights(self) -> None:
        """Refuse queries that ask nothing, and negative weights."""
        super()._check_weights()
        rule, fix = "must have no negative weights", "ask for positive and negative parts by themselves"
        check(self.operator.lowest >= 0, "queries", rule, given=self.queries, fix=fix)


@frozen(kw_only=True)
class WeightsMechanism(NumericalMechanism, ABC):
    """A mechanism that answers graded queries by private multiplicative weights.

    `decomposition` says over which cells: "none" is the universe itself; "hat" and "binary" are classes by
    knots, for queries that are a product of classes and one value; "auto" is "hat" for these and "none" for
    others. `rounds` fixes the number of rounds, which else follows from the noisy number of rows.
    """

    decomposition: Method = "auto"
    rounds: int | None = None

    def _convert(self) -> None:
        super()._convert()
        freeze(self, decomposition=check_method(self.decomposition))
        self._check_sizes()

    @property
    @abstractmethod
    def widest(self) -> GradedQueries:
        """The graded queries, if every row had the largest weight of the universe."""

    @property
    def weights_epsilon(self) -> Fraction:
        """The epsilon of the weights."""
        return self.epsilon

    @property
    def budget(self) -> WeightsBudget:
        """How it is shared among the total, the first guess and the rounds."""
        return WeightsBudget(epsilon=self.weights_epsilon, delta=self.delta, rounds=self.rounds)

    @property
    def uses_delta(self) -> bool:
        """Whether some number of rounds is paid for by another theorem than the pure one."""
        return self.budget.uses_delta(len(self.widest), self._axes)

    @cached_property
    def space(self) -> Space:
        """The cells that are weighed."""
        return build_space(self.operator, stored_method(self.decomposition))

    @property
    def change(self) -> Change:
        """By how much neighbours differ, in mass."""
        space = self.space
        return Change.of(self.neighbors, contributions=self.contributions, row=space.most, moved=space.moved)

    @cached_property
    def decomposed(self) -> ClassesAndValue | None:
        """The classes and the value of the queries, if the cells are made of these."""
        return ClassesAndValue.of(self.operator) if isinstance(self.space, DecomposedSpace) else None

    def masses(self, points: PointCounts) -> NDArray[Any]:
        """The mass in each cell: counts of rows, or values laid on knots."""
        if self.decomposed is None or not isinstance(self.space, DecomposedSpace):
            return self.counts(points)
        return points.folded(partial(_masses, self.decomposed, self.space))

    def measure(self, graded: GradedQueries, points: PointCounts, session: Noise) -> Measurements:
        """The graded queries answered by multiplicative weights, for `weights_epsilon` between neighbours."""
        return weigh(
            self.masses(points),
            operator=graded,
            unit=self.space.unit,
            change=self.change,
            budget=self.budget,
            session=session,
        )

    def _release_facts(self, session: Noise) -> dict[str, Any]:
        """The decomposition, too."""
        return {**super()._release_facts(session), "decomposition": stored_method(self.decomposition)}

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error if rows reach the largest weight of the universe; measured."""
        reach = self.change.of_sums / self.space.unit
        cost = self.budget.cost(rows, self._rounds(rows), self._axes, reach)
        return cost * float(np.sqrt(np.mean(grade_factors(self.space.whole) ** 2)))

    def predicted_numbers(self, rows: int) -> int:
        """The total, the sums along axes, and two numbers for each round."""
        return 1 + sum(self.space.shape) + 2 * self._rounds(rows)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """The number of rounds T and the epsilon of each look."""
        rounds = self._rounds(rows)
        rates = self.budget.rates(rounds, self._axes)
        cells = " x ".join(map(str, self.space.shape))
        return (
            f"Multiplicative weights over {cells} cells and {len(self.widest)} graded queries.",
            f"T = {rounds} rounds, epsilon0 = {float(rates.selection):.6g} to select, "
            f"{float(rates.answer):.6g} to answer ({rates.rule} composition).",
        )

    def _rounds(self, rows: int) -> int:
        reach = self.change.of_sums / self.space.unit
        return self.budget.rounds_for(rows, len(self.widest), self._axes, reach)

    @property
    def _axes(self) -> int:
        """How many axes the first guess is measured along."""
        return len(warm_axes(self.space.shape, self.budget))

    def _check_sizes(self) -> None:
        """Refuse cells and queries that do not fit in memory."""
        cells, graded = math.prod(self.space.shape), self.space.graded
        rule = f"must be such that at most {MOST_CELLS} cells are weighed"
        check(cells <= MOST_CELLS, "universe", rule, given=cells, fix=_FEWER_CELLS)
        rule = f"must be such that at most {MOST_GRADED} queries are weighed, all thresholds counted"
        fix = 'ask for fewer, or use "composition"'
        check(graded <= MOST_GRADED, "queries", rule, given=graded, fix=fix)

    def _check(self) -> None:
        for rounds in (self.budget.rounds or 1, self.budget.rounds or MOST_ROUNDS):
            rates = self.budget.rates(rounds, self._axes)
            check_scales(noise_scales(rates, self.change, self.space.whole), self.epsilon)


def _masses(decomposed: ClassesAndValue, space: DecomposedSpace, places: UInts, counts: Ints) -> NDArray[Any]:
    """Values laid on the knots of their classes."""
    cells, values = decomposed.cells(places), decomposed.values(places)
    table = spread_masses(space.decomposition, cells, values, counts, math.prod(space.classes.shape))
    return table.reshape(space.shape)


# Exact answers about rows, for truncation.


_MOST_AT_ONCE: Final = 1 << 22  # weights in memory at a time
_LARGEST_INT: Final = np.iinfo(np.int64).max


class QueryRows(Protocol):
    """Exact answers about rows, for every query of a list."""

    def octaves(self, tops: tuple[int, ...]) -> Ints:
        """How many rows are in each octave: a row for each query, a column for each top."""

    def sums(self, cuts: NDArray[Any]) -> NDArray[Any]:
        """The sum of min(w, cut) of each query, in units, as Python ints."""


def query_rows(operator: Structured, points: PointCounts) -> QueryRows:
    """By classes where queries are products of zeros and ones and one value, else point by point."""
    decomposed = ClassesAndValue.of(operator)
    if decomposed is not None and decomposed.classes.binary and decomposed.classes.cells <= _MOST_AT_ONCE:
        return ClassRows(decomposed, points)
    return PointRows(operator, points)


@final
@dataclass(frozen=True)
class PointRows:
    """The weights of all queries, evaluated at every point."""

    operator: Structured
    points: PointCounts

    def octaves(self, tops: tuple[int, ...]) -> Ints:
        return self.points.folded(partial(_octaves, self.operator, tops))

    def sums(self, cuts: NDArray[Any]) -> NDArray[Any]:
        return self.points.folded(partial(_sums, self.operator, cuts))


@final
@dataclass(frozen=True)
class ClassRows:
    """Values summed up by classes first: a query adds up the classes that it asks for."""

    decomposed: ClassesAndValue
    points: PointCounts

    def octaves(self, tops: tuple[int, ...]) -> Ints:
        """Rows of classes that a query does not ask for have weight zero."""
        table = self.points.folded(partial(_class_octaves, self.decomposed, tops))
        found = np.asarray(self.decomposed.classes.forward(table))
        found[:, 0] += table.sum() - found.sum(axis=1)
        return found

    def sums(self, cuts: NDArray[Any]) -> NDArray[Any]:
        """All queries for each cut, and of these the queries that have it."""
        total = np.zeros(len(self.decomposed.classes), object)
        for cut in sorted(set(cuts.tolist())):
            mine = cuts == cut
            sums = self.points.folded(partial(_class_sums, self.decomposed, cut))
            total[mine] = np.asarray(self.decomposed.classes.answers(sums))[mine]
        return total


def weight_blocks(operator: Structured, places: UInts, counts: Ints) -> Iterator[tuple[NDArray[Any], Ints]]:
    """The weights of all queries at some points at a time, and how many rows are at each of these."""
    step = max(1, _MOST_AT_ONCE // len(operator))
    for first in range(0, len(places), step):
        some = slice(first, first + step)
        yield operator.weights_at(places[some]), np.asarray(counts[some])


def _octaves(operator: Structured, tops: tuple[int, ...], places: UInts, counts: Ints) -> Ints:
    found = np.zeros((len(operator), len(tops)), np.int64)
    queries = np.arange(len(operator))[:, np.newaxis]
    for weights, times in weight_blocks(operator, places, counts):
        _count(found, queries, find_octaves(weights, tops), times)
    return found


def _sums(operator: Structured, cuts: NDArray[Any], places: UInts, counts: Ints) -> NDArray[Any]:
    total = np.zeros(len(operator), object)
    for weights, times in weight_blocks(operator, places, counts):
        total += exact_product(_cut(weights, cuts[:, np.newaxis]), times, operator.largest)
    return total


def _class_octaves(decomposed: ClassesAndValue, tops: tuple[int, ...], places: UInts, counts: Ints) -> Ints:
    table = np.zeros((decomposed.classes.cells, len(tops)), np.int64)
    _count(table, decomposed.cells(places), find_octaves(decomposed.values(places), tops), counts)
    return table


def _class_sums(decomposed: ClassesAndValue, cut: int, places: UInts, counts: Ints) -> NDArray[Any]:
    values = _cut(decomposed.values(places), np.array(cut, object))
    cells, largest = decomposed.cells(places), decomposed.value.largest
    return exact_sums(values, counts, cells, largest, decomposed.classes.cells).astype(object)


def _count(table: Ints, rows: Ints, octave: Ints, counts: Ints) -> None:
    """Add the rows of each octave."""
    np.add.at(table, (np.broadcast_to(rows, octave.shape), octave), np.broadcast_to(counts, octave.shape))


def _cut(weights: NDArray[Any], cuts: NDArray[Any]) -> NDArray[Any]:
    """min(w, cut); a cut of 2^63 leaves integers of 64 bits as they are."""
    most = cuts if weights.dtype == object else np.minimum(cuts, _LARGEST_INT)
    return np.asarray(np.minimum(weights, np.asarray(most).astype(weights.dtype)))


# Truncation of single queries at private thresholds [HLY21]; composition repeats it.


_MOST_NUMBERS: Final = 1 << 24  # integers in a release file


class OctaveCounts(NamedTuple):
    """Noisy counts of rows in every octave of each query, and noisy sums in units of their grids."""

    octaves: NDArray[Any]
    sums: NDArray[Any]


@final
@dataclass(frozen=True, kw_only=True)
class Truncation:
    """Queries side by side, each cut at a threshold of its own, each for twice the `rate`.

    One rate pays for the octaves: every row is in one octave of a query. The other pays for the sum: cut at
    the threshold, the rows of a unit move it by at most that for each, as they come, go or change.
    """

    tops: tuple[int, ...]
    rate: Fraction
    rows_changed: int
    contributions: int

    @property
    def octave_scale(self) -> Fraction:
        """The noise on the count of each octave."""
        return self.rows_changed / self.rate

    @property
    def sum_scale(self) -> Fraction:
        """The noise on a sum cut at the last threshold, in units of its grid."""
        return self._finest * self.contributions / self.rate

    def cut(self, rows: QueryRows, session: Noise) -> OctaveCounts:
        """Count octaves, choose thresholds from the released counts, and sum what lies below."""
        noisy = session.add(rows.octaves(self.tops), self.octave_scale)
        cuts = np.array(self.tops, dtype=object)[choose_octaves(noisy, self.octave_scale)]
        return OctaveCounts(noisy, self._noisy_sums(rows.sums(cuts), cuts, session))

    def _noisy_sums(self, sums: NDArray[Any], cuts: NDArray[Any], session: Noise) -> NDArray[Any]:
        """Sums on their grids, with noise in proportion to their thresholds; those cut at 0 are 0."""
        noisy = np.zeros(cuts.size, dtype=object)
        there = np.flatnonzero(cuts)
        grids = np.array([choose_grid(cut) for cut in cuts[there]], dtype=object)
        finer = (self._finest // (cuts[there] // grids)).astype(np.int64)
        noisy[there] = session.add(sums[there] // grids, self.sum_scale, parts=finer)
        return noisy

    @property
    def _finest(self) -> int:
        return min(self.tops[-1], FINEST)


@frozen(kw_only=True)
class TruncatingMechanism(NumericalMechanism, ABC):
    """A mechanism that cuts every query at a threshold of its own, from weights at the rows alone."""

    @property
    @abstractmethod
    def rate(self) -> Fraction:
        """Epsilon for the octaves of one query, and again for its sum."""

    @property
    def truncation(self) -> Truncation:
        """What is done for every query."""
        return Truncation(
            tops=octave_tops(self.operator.highest),
            rate=self.rate,
            rows_changed=self.rows_changed,
            contributions=self.contributions,
        )

    def _check(self) -> None:
        """Refuse more queries than fit in a release, and an epsilon whose noise cannot be drawn."""
        numbers = self.predicted_numbers(0)
        rule = f"must release at most {_MOST_NUMBERS} numbers, counted once for every threshold"
        check(numbers <= _MOST_NUMBERS, "queries", rule, given=numbers, fix="ask for fewer")
        check_scale(self.truncation.octave_scale, self.epsilon)
        check_scale(self.truncation.sum_scale, self.epsilon)

    def predicted_error(self, rows: int) -> float:
        """The standard error of the noise on a query whose largest weight is that of the universe."""
        finest = choose_grid(octave_tops(self.operator.highest)[-1])
        spread = math.sqrt(laplace_variance(self.truncation.sum_scale))
        return spread * finest / self.operator.granularity

    def predicted_numbers(self, rows: int) -> int:
        return len(self.operator) * (len(self.truncation.tops) + 1)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        return (
            f"every query is cut at a threshold of its own, one of {len(self.truncation.tops)}",
            f"epsilon {float(self.rate):.6g} for a threshold, and as much for the sum below it",
        )

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> TruncationRelease:
        """Cut every query, and sum it."""
        data, session = self.fitting(points), noise.session()
        made = self.truncation.cut(query_rows(self.operator, data), session)
        return TruncationRelease(
            octaves=made.octaves,
            sums=made.sums,
            octave_scale=self.truncation.octave_scale,
            sum_scale=self.truncation.sum_scale,
            **self._release_facts(session),
        )


@final
@frozen(kw_only=True)
class SingleTruncation(TruncatingMechanism):
    """Publish once; the sum of one query w over all rows, cut at about the largest w among them.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [HLY21]
    Error:     O(max w(t) over rows log(log Delta / beta) / epsilon), whatever the bound Delta of w.
    Proof:     docs/proofs/single_truncation.md (integer noise, the threshold from noisy octaves)
    """

    name: ClassVar[str] = "single-truncation"

    delta: Exact = parameter(default=0, init=False)

    def _check(self) -> None:
        fix = "use composition for many"
        check(len(self.operator) == 1, "queries", "must be a single query", given=len(self.operator), fix=fix)
        super()._check()

    @property
    def rate(self) -> Fraction:
        """Half of epsilon."""
        return self.epsilon / 2


@final
@frozen(kw_only=True)
class ComposedTruncation(TruncatingMechanism):
    """Publish once; the sum of every query, each cut at about its largest weight among the rows.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.  [HLY21; DR14, Thm 3.20]
    Error:     O(max_t w(t) |Q| / epsilon) pure, O(max_t w(t) sqrt(|Q| log 1/delta) / epsilon) with delta.
    Proof:     docs/proofs/composition.md (truncations side by side, the best of three theorems)

    Weights are evaluated at rows only, so that the universe may be of any size.
    """

    name: ClassVar[str] = "composition"

    @cached_property
    def composition(self) -> Composition:
        """The theorem that lets the octaves and the sums of all queries share the budget best."""
        return best_composition(self.epsilon, self.delta, 2 * len(self.operator))

    @property
    def uses_delta(self) -> bool:
        """Whether another theorem than the pure one allows the most."""
        return self.composition.rule != "pure"

    @property
    def rate(self) -> Fraction:
        """Epsilon for the octaves of one query, and again for its sum."""
        return self.composition.rate

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        rule = f"Queries share the budget by {self.composition.rule} composition."
        return (*super().plan_lines(rows), rule)


def decomposed(classes: Queries, *, g: Queries | str) -> Queries:
    """The queries f_w(class) g(row) for every f_w of `classes`; g is a column of numbers, or one query.

    Mechanisms for numerical queries decompose them again: by "hat" or "binary", as `decomposition` says.

    >>> from partita.public.queries.language import ranges
    >>> decomposed(ranges("age"), g="income")
    ranges(age) * value(income)
    """
    shared = Value(g) if isinstance(g, str) else g
    for name, given in (("classes", classes), ("g", shared)):
        fix = 'pass for example ranges("age")'
        check(isinstance(given, Queries), name, "must be queries", given=given, fix=fix)
    apart = not set(classes.columns) & set(shared.columns)
    rule, fix = "must be over other columns than the classes", "use other columns"
    check(apart, "g", rule, given=str(shared), fix=fix)
    return classes * shared


# The three ways with multiplicative weights.


_FINDING: Final = Fraction(1, 20)  # share of the shared threshold: an octave more for noisier sums


@final
@frozen(kw_only=True)
class GlobalTruncation(WeightsMechanism):
    """Publish once; the sum of every query, cut at about the largest weight of any query at any row.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.  [HLM12; KDD22]
    Error:     ~O(sqrt(n) Delta(D)) if delta > 0, ~O(n^(2/3) Delta(D)) pure, up to logarithms and epsilon,
               where Delta(D) is the largest weight of any query at any row.
    Proof:     docs/proofs/global_truncation.md (the threshold from noisy octaves)
    """

    name: ClassVar[str] = "global-truncation"

    @property
    def widest(self) -> GradedQueries:
        """Each query cut at the last threshold."""
        return self.space.cut(self.space.tops[-1])

    @property
    def weights_epsilon(self) -> Fraction:
        """What is left for the weights: nineteen parts of twenty."""
        return self.epsilon * (1 - _FINDING)

    @property
    def octave_scale(self) -> Fraction:
        """The noise on the count of each octave."""
        return self.rows_changed / (self.epsilon * _FINDING)

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> GlobalTruncationRelease:
        """Count rows by the octave of their largest weight, and weigh queries cut where these end."""
        data, session = self.fitting(points), noise.session()
        octaves = session.add(self._octaves(data), self.octave_scale)
        top = choose_shared_top(octaves, self.octave_scale, self.space.tops)
        return GlobalTruncationRelease(
            weighed=self.measure(self.space.cut(top), data, session),
            octaves=octaves,
            octave_scale=self.octave_scale,
            **self._release_facts(session),
        )

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """The share of the threshold, and what the weights do with the rest."""
        share = float(self.epsilon * _FINDING)
        return (f"epsilon {share:.6g} for one threshold of all queries", *super().plan_lines(rows))

    def _octaves(self, points: PointCounts) -> Ints:
        """How many rows have their largest weight in each octave."""
        return points.folded(partial(_octave_counts, _Peaks(self.operator, self.decomposed), self.space.tops))

    def _check(self) -> None:
        """The noise on octaves must be one that can be drawn, too."""
        super()._check()
        check_scale(self.octave_scale, self.epsilon)


class _Peaks(NamedTuple):
    """The largest weights of points."""

    operator: Structured
    decomposed: ClassesAndValue | None

    def at(self, places: UInts, counts: Ints) -> NDArray[Any]:
        """The largest weight of each; if values are decomposed, its value if some query has its class."""
        if self.decomposed is None:
            found = [weights.max(axis=0) for weights, _ in weight_blocks(self.operator, places, counts)]
            return np.concatenate([np.zeros(0, np.int64), *found])
        return np.where(self.decomposed.weighs(places), self.decomposed.values(places), 0)


def _octave_counts(peaks: _Peaks, tops: tuple[int, ...], places: UInts, counts: Ints) -> Ints:
    """How many rows have their largest weight in each octave."""
    found = np.zeros(len(tops), np.int64)
    np.add.at(found, find_octaves(peaks.at(places, counts), tops), counts)
    return found


@final
@frozen(kw_only=True)
class InstanceTruncation(WeightsMechanism):
    """Publish once; the sum of every query, each cut at about its own largest weight among the rows.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.  [HLM12; KDD22]
    Error:     ~O(sqrt(n) Delta_w(D)) if delta > 0, ~O(n^(2/3) Delta_w(D)) pure, up to logarithms and epsilon,
               where Delta_w(D) is the largest weight of w at any row.
    Proof:     docs/proofs/instance_truncation.md (C(Q) and L(Q) in one run, thresholds by post-processing)

    `rule` says how thresholds are read off the release: "steady" weighs what a larger threshold adds against
    its noise; "quiet" is the slides' rule with the guaranteed error of all counts.
    """

    name: ClassVar[str] = "instance-specific"

    rule: Rule = "steady"

    def _convert(self) -> None:
        freeze(self, rule=check_choice(self.rule, "rule", get_args(Rule)))
        super()._convert()

    @property
    def widest(self) -> GradedQueries:
        """Counts above every threshold, and queries cut at every threshold."""
        return self.space.joint

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> InstanceTruncationRelease:
        """Weigh counts and cut queries together; thresholds follow from what is released."""
        data, session = self.fitting(points), noise.session()
        weighed = self.measure(self.space.joint, data, session)
        return InstanceTruncationRelease(weighed=weighed, rule=self.rule, **self._release_facts(session))


@final
@frozen(kw_only=True)
class Normalization(WeightsMechanism):
    """Publish once; the sum of every query, answered over its largest weight and scaled back.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.  [HLM12; KDD22]
    Error:     ~O(sqrt(n) Delta_w) if delta > 0, ~O(n^(2/3) Delta_w) pure, up to logarithms and epsilon, where
               Delta_w is the largest weight of w in the universe.
    Proof:     docs/proofs/normalization.md (exact sums, graded by public numbers)
    """

    name: ClassVar[str] = "normalization"

    @property
    def widest(self) -> GradedQueries:
        """Each query over its largest weight."""
        return self.space.whole

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> NormalizationRelease:
        """Weigh the graded queries."""
        data, session = self.fitting(points), noise.session()
        weighed = self.measure(self.space.whole, data, session)
        return NormalizationRelease(weighed=weighed, **self._release_facts(session))
