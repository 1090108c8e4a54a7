"""Noise on every answer of a list of linear queries, with or without a projection afterwards.

`LinearQueries` takes explicit rows of weights over one axis. `WorkloadMechanism` is the base of all
mechanisms that take queries over a universe.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.errors import check, check_type
from partita.guarantee import ADD_REMOVE, Composition, Guarantee, advanced_rate, corollary_rate
from partita.numbers import (
    Converted,
    Exact,
    check_choice,
    check_probability,
    freeze,
    frozen,
    parameter,
    rational,
)
from partita.public.bounds import independent_error, laplace_variance
from partita.public.queries.operator import Structured
from partita.public.queries.queries import Queries, Universe
from partita.public.queries.ranges import Sparse
from partita.public.workload.projection import (
    MOST_CELLS,
    AnswerNoise,
    ProjectedLaplaceRelease,
    most_rows_added,
    rows_missed,
)
from partita.public.workload.release import (
    AnswerChanges,
    LinearQueriesRelease,
    LinearWorkloadRelease,
    WorkloadRelease,
)
from partita.trusted.mechanisms.base import (
    Mechanism,
    Private,
    check_fits,
    check_points_fit,
    check_rows,
    check_scale,
)
from partita.trusted.noise.system import LARGEST_SCALE, SYSTEM, Noise
from partita.trusted.secret import AxisCounts, PointCounts

Rows: TypeAlias = tuple[tuple[Fraction, ...], ...]

_MOST_WEIGHTS: Final = 2**20  # explicit weights are Python objects: bounds memory
_FINEST: Final = 2**62  # weights become integers of 64 bits


@final
@frozen(kw_only=True)
class LinearQueries(Mechanism):
    """Publish once; answer a given list of linear queries, each a weight for every cell.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DMNS06]
    Error:     O(sensitivity log k / epsilon) for k queries at once; the sensitivity is the largest
               sum of absolute weights of one cell.
    Proof:     docs/proofs/linear_queries.md (integer noise at a public granularity)

    Weights are exact: integers, fractions, decimals or text like "1/3". Noise is added to integers,
    the answers times the weights' common denominator.

    >>> queries = LinearQueries(queries=[[1, 1, 0], [0, "1/2", 1]], epsilon=1)
    >>> queries.granularity, queries.sensitivity, queries.scale
    (2, Fraction(3, 2), Fraction(3, 1))
    """

    queries: Converted[Sequence[Sequence[object]], Rows] = parameter(repr=False)

    def _convert(self) -> None:
        super()._convert()
        freeze(self, queries=_parse_rows(self.queries))

    def _check(self) -> None:
        check_scale(self.scale, self.epsilon)

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.queries[0])

    @cached_property
    def granularity(self) -> int:
        """The least common denominator of all weights: answers are released in units of one over it."""
        return math.lcm(*(weight.denominator for row in self.queries for weight in row))

    @cached_property
    def sensitivity(self) -> Fraction:
        """By how much one row in or out can change all answers together."""
        return Fraction(self._operator.column_norm, self.granularity)

    @cached_property
    def moved(self) -> Fraction:
        """By how much a row that goes from one cell to another can change all answers together."""
        return Fraction(self._operator.column_distance, self.granularity)

    @property
    def changed(self) -> Fraction:
        """By how much neighbours differ in all answers together; a row's worth if no row can change any."""
        if self.neighbors == ADD_REMOVE:
            return self.contributions * self.sensitivity
        if self.same_rows:
            return self.moved or self.sensitivity
        return self.contributions * max(self.moved, self.sensitivity)

    @property
    def scale(self) -> Fraction:
        """The noise scale, in units of one over the granularity."""
        return self.granularity * self.changed / self.epsilon

    @property
    def largest_error(self) -> float:
        """The expected largest error over all queries is at most this [SU, section 1.1]."""
        return independent_error(self.scale, len(self.queries)) / self.granularity

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> LinearQueriesRelease:
        """Answer every query in whole units and add noise."""
        counts = check_fits(data, self.size, self.contributions)
        session = noise.session()
        return LinearQueriesRelease(
            noisy=session.add(self._operator.answers(counts.spread()), self.scale),
            queries=self.queries,
            granularity=self.granularity,
            scale=self.scale,
            guarantee=self.guarantee if session.secure else None,
        )

    @cached_property
    def _operator(self) -> Sparse:
        """The queries in whole units."""
        weights = np.array([[int(w * self.granularity) for w in row] for row in self.queries], dtype=object)
        rows, cells = np.nonzero(weights)
        return Sparse((self.size,), len(self.queries), rows, cells, weights[rows, cells], self.granularity)


def _parse_rows(queries: Any) -> Rows:
    """The queries, exactly: a table of at most 2^20 weights, not all zero, with a moderate denominator."""
    table = queries.tolist() if isinstance(queries, np.ndarray) else queries
    listed = isinstance(table, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in table)
    even = listed and table and all(0 < len(row) == len(table[0]) for row in table)
    rule, fix = "must be rows of one length, a weight for each cell", "pass a list of lists"
    check(even, "queries", rule, given=queries, fix=fix)
    rule, fix = f"must hold at most {_MOST_WEIGHTS} weights", "use a tree for many ranges"
    check(len(table) * len(table[0]) <= _MOST_WEIGHTS, "queries", rule, given=queries, fix=fix)
    exact = tuple(tuple(rational(weight, "queries") for weight in row) for row in table)
    rule, fix = "must hold a weight that is not zero", "leave out queries that ask nothing"
    check(any(any(row) for row in exact), "queries", rule, given=queries, fix=fix)
    common, rule = 1, "must have a common denominator of at most 2^62"
    for denominator in {weight.denominator for row in exact for weight in row}:
        common = math.lcm(common, denominator)
        check(common <= _FINEST, "queries", rule, given=exact, fix="round the weights")
    return exact


# The base of all mechanisms for a list of linear queries.


LARGEST_DENSE: Final = 2**30
"""The largest universe that becomes an array."""

_MOST_CELLS: Final = 2**24  # up to here an array of all cells is faster than weights point by point


@frozen(kw_only=True)
class WorkloadMechanism(Private, ABC):
    """An (epsilon, delta)-DP release of answers to linear queries about points.

    `delta` is the delta that is spent: 0 if a larger one would not lower noise.
    """

    name: ClassVar[str]
    """The name that users know."""

    queries: Queries
    universe: Universe
    delta: Exact = parameter(default=0)

    def __post_init__(self) -> None:
        self._convert()
        self._return_delta()
        self._check()

    def _convert(self) -> None:
        super()._convert()
        promise = Guarantee(epsilon=self.epsilon, delta=self.delta, **self.protected)
        fix = 'pass for example ranges("age") or parse("...")'
        check_type(self.queries, Queries, "queries", "must be queries", fix=fix)
        fix = 'pass Universe(["age"], [Integer(0, 120)])'
        check_type(self.universe, Universe, "universe", "must be a Universe", fix=fix)
        freeze(self, delta=promise.delta)
        self._check_weights()

    def _return_delta(self) -> None:
        """Spend no delta that does not lower noise; called when all parameters are set."""
        if self.delta and not self.uses_delta:
            freeze(self, delta=Fraction(0))

    @property
    def uses_delta(self) -> bool:
        """Whether noise may be drawn by a theorem that needs delta: a function of public facts."""
        return True

    @cached_property
    def operator(self) -> Structured:
        """The queries as an operator over the universe."""
        return self.queries.over(self.universe)

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises, and for whom."""
        return replace(super().guarantee, delta=self.delta)

    @property
    def why(self) -> str:
        """A sentence about what the mechanism chooses, a function of public facts; empty if nothing."""
        return ""

    @abstractmethod
    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of an answer if there are that many rows."""

    @abstractmethod
    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """What a plan shows of the parameters that follow from public facts, a sentence each."""
        return ()

    @abstractmethod
    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> WorkloadRelease:
        """Draw noise and release."""

    def _release_facts(self, session: Noise) -> dict[str, Any]:
        """What every release has: queries, universe, and the guarantee unless noise was injected."""
        guarantee = self.guarantee if session.secure else None
        return {"queries": self.queries, "universe": self.universe, "guarantee": guarantee}

    def fitting(self, points: PointCounts) -> PointCounts:
        """The points, if they lie in the universe and bound contributions at least as tightly."""
        return check_points_fit(points, self.universe.axes, self.contributions)

    def counts(self, points: PointCounts) -> NDArray[np.int64]:
        """How many rows are in each cell of the universe, as an array of its shape."""
        rule = f"must have at most {LARGEST_DENSE} cells to be an array"
        fix = "choose coarser domains or fewer columns"
        check(self.universe.size <= LARGEST_DENSE, "universe", rule, given=self.universe.size, fix=fix)
        return points.spread()

    def truth(self, points: PointCounts) -> NDArray[Any]:
        """The exact answers in units: from an array if the universe is small, else point by point."""
        if self.universe.size <= _MOST_CELLS:
            return np.asarray(self.operator.answers(self.counts(points)))
        return points.folded(self.operator.answers_at)

    def _check_weights(self) -> None:
        rule = "must have a weight that is not zero"
        fix = "ask for values that the columns can have; a function that raises has the weight zero"
        check(self.operator.column_norm != 0, "queries", rule, given="zero for every cell", fix=fix)


def format_sentence(phrase: str) -> str:
    """A phrase with a capital and a full stop, unless it has them.

    >>> format_sentence("one threshold for all queries")
    'One threshold for all queries.'
    """
    return f"{phrase[:1].upper()}{phrase[1:]}" + ("" if phrase.endswith(".") else ".")


@frozen(kw_only=True)
class NoisyWorkload(WorkloadMechanism, ABC):
    """A mechanism that adds independent noise of one scale to every answer."""

    @property
    def answers_epsilon(self) -> Fraction:
        """The epsilon of all answers."""
        return self.epsilon

    @cached_property
    def changes(self) -> AnswerChanges:
        """By how much neighbours can differ in the answers, in units of one over the granularity."""
        return AnswerChanges.between(self.guarantee, self.operator)

    @cached_property
    def composition(self) -> Composition:
        """How much each answer may cost, by the theorem that asks for the least noise."""
        return self.changes.composition(self.answers_epsilon, self.delta)

    @property
    def uses_delta(self) -> bool:
        """Whether another theorem than the pure one asks for the least noise."""
        return self.composition.rule != "pure"

    @property
    def scale(self) -> Fraction:
        """The noise scale of every answer, in units of one over the operator's granularity."""
        return self.changes.each / self.composition.rate


# The Laplace mechanism [DMNS06; SU, section 1.1].


_LARGEST_WEIGHT: Final = 2**64
"""Times fewer than 2^62 rows, the answer still fits in a released number."""


@final
@frozen(kw_only=True)
class LinearWorkload(NoisyWorkload):
    """Publish once; answer a list of linear queries, each with noise of its own.

    Guarantee: epsilon-DP, pure; (epsilon, delta)-DP if delta lowers noise; ADD_REMOVE or CHANGE_ONE. [DMNS06]
    Error:     O(norm log k / epsilon) for k queries at once; the norm is the largest sum of absolute
               weights of one cell. With delta, O(sqrt(weight norm log 1/delta) log k / epsilon).
    Proof:     docs/proofs/linear_queries.md (integer noise at a public granularity)

    >>> from partita import Integer, prefixes
    >>> ages = Universe(["age"], [Integer(0, 120)])
    >>> LinearWorkload(queries=prefixes("age"), universe=ages, epsilon=1).scale
    Fraction(121, 1)
    """

    name: ClassVar[str] = "linear"
    bound_of: ClassVar[str] = "any answer"

    @property
    def largest_error(self) -> float:
        """The expected largest error over all queries is at most this [SU, section 1.1]."""
        return independent_error(self.scale, len(self.operator)) / self.operator.granularity

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no answer is off by more, whatever the data; a release says the same."""
        return AnswerNoise(self.operator, self.scale).reach(
            len(self.operator), float(check_probability(beta))
        )

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of every answer, whatever the rows."""
        return float(laplace_variance(self.scale) ** 0.5) / self.operator.granularity

    def predicted_numbers(self, rows: int) -> int:
        return len(self.operator)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        scale, rule, number = (
            self.scale / self.operator.granularity,
            self.composition.rule,
            len(self.operator),
        )
        return (f"Noise of scale {float(scale):.6g} on each of {number} answers, by {rule} composition.",)

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> LinearWorkloadRelease:
        """Answer every query in whole units and add noise."""
        truth = self.truth(self.fitting(points))
        session = noise.session()
        noisy = session.add(truth, self.scale)
        return LinearWorkloadRelease(noisy=noisy, scale=self.scale, **self._release_facts(session))

    def _check(self) -> None:
        """Refuse weights whose answers do not fit in a release, and noise that cannot be drawn."""
        fits = self.operator.largest <= _LARGEST_WEIGHT and self.scale <= LARGEST_SCALE
        rule = "must have weights of at most 2^64 units and need noise of a scale of at most 2^62 units"
        fix = "clip values, round weights, or raise epsilon"
        check(fits, "queries", rule, given=self.operator.largest, fix=fix)
        check_scale(self.scale, self.epsilon)


# Noise on every answer, then a projection on the answers that some table has [DR14, Algorithm 18].


_Variant: TypeAlias = Literal["tight", "book"]
_ROWS_SHARE: Final = Fraction(1, 20)  # of epsilon, for the number of rows: a tighter hull for noisier answers
_MEASURED: Final = 1 / 3  # typical errors over the theorem's bound, for random queries and ranges


@final
@frozen(kw_only=True)
class ProjectedLaplace(NoisyWorkload):
    """Publish once; answer a list of linear queries, projected on what some table could answer.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.   [DR14, Theorem 12.7]
    Error:     with n rows, k queries and noise of deviation s on each, the mean square is
               O(n s sqrt(log |X| / k)), and never much above s^2.
    Proof:     docs/proofs/projected_laplace.md (n is released; the projection is certified)

    Good where there are more queries than rows. The number of rows, by which answers are bounded, gets
    a twentieth of epsilon; nothing if neighbours have equally many rows, so that it is public. The variant
    "book" is Algorithm 18 as printed, with its noise and its hull, which is right only there, for weights
    between 0 and 1, delta > 0 and epsilon of at most 1.

    >>> from partita import Integer, prefixes
    >>> ages = Universe(["age"], [Integer(0, 9)])
    >>> ProjectedLaplace(queries=prefixes("age"), universe=ages, epsilon=1).composition.rule
    'pure'
    """

    name: ClassVar[str] = "projection"
    bound_of: ClassVar[str] = (
        "the root mean square of the errors of all answers, if a projection is certified"
    )

    variant: _Variant = "tight"

    @property
    def answers_epsilon(self) -> Fraction:
        """What the number of rows leaves."""
        return self.epsilon if self.same_rows else self.epsilon * (1 - _ROWS_SHARE)

    @property
    def rows_scale(self) -> Fraction | None:
        """The noise scale of the number of rows; None if it is public."""
        return None if self.same_rows else self.contributions / (self.epsilon * _ROWS_SHARE)

    @property
    def uses_delta(self) -> bool:
        """The printed noise needs delta; else it is used if another theorem than the pure one is better."""
        return self.variant == "book" or super().uses_delta

    @property
    def scale(self) -> Fraction:
        """The noise scale of every answer, in units; in the book sqrt(8 k ln 1/delta) / epsilon answers."""
        if self.variant != "book":
            return super().scale
        return self.operator.granularity / corollary_rate(self.epsilon, self.delta, len(self.operator))

    @property
    def why(self) -> str:
        if self.variant == "book":
            return "the noise of each answer is that of Algorithm 18 as printed"
        rule = self.composition.rule
        return f"the noise of each answer follows {rule} composition, which asks for the least"

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of an answer: of all noise, along the hull, or of its dimension.

        A third of what the theorem bounds, for random queries and ranges; measured, not proved.
        """
        noise, count = self._noise, len(self.operator)
        hull = _MEASURED * math.sqrt(2 * rows * noise.column_reach(0.5) / count)
        return min(noise.deviation * min(1.0, math.sqrt(self.universe.size / count)), hull)

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta the errors of all answers have no larger root mean square.

        This is Theorem 12.8 as a number, for at most `rows` rows, with exact moments in place of its
        constants: a quarter of beta each for a noisy number of rows that is too large and for one that is too
        small, and half for the noise of answers; docs/proofs/projected_laplace.md, "The bound before any
        data". A release without a certified projection says so: its answers have the noise alone.
        """
        number, chance, scale = check_rows(rows), float(check_probability(beta)), self.rows_scale
        most = number if scale is None else number + most_rows_added(scale, chance / 4)
        beyond = 0 if scale is None else rows_missed(scale, chance / 4)
        return self._noise.distance(most, beyond, chance / 2) / math.sqrt(len(self.operator))

    def predicted_numbers(self, rows: int) -> int:
        """The noisy answers, and cells with their weights."""
        count = len(self.operator)
        return count + 2 * min(count, self.universe.size)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """The noise, where it comes from, and whether it drowns the rows."""
        deviation = self._noise.deviation
        rule = f"by {self.composition.rule} composition at {float(self.composition.rate):.4g} per answer"
        if self.variant == "book":
            rule = "sqrt(8 k ln 1/delta) / epsilon as printed"
        public = "number of rows: public, as neighbours have equally many"
        scale = self.rows_scale
        lines = [
            f"noise of an answer: standard deviation {deviation:.4g}, {rule}",
            public if scale is None else f"number of rows: noise of scale {float(scale):.4g}",
        ]
        if deviation > rows / 4:
            lines.append("the noise of an answer exceeds a quarter of the rows: an even guess may do better")
        return tuple(lines)

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> ProjectedLaplaceRelease:
        """Release the number of rows, noisy unless it is public, and every answer with noise; project."""
        data, scale = self.fitting(points), self.rows_scale
        session = noise.session()
        released = ProjectedLaplaceRelease(
            rows=int(data.total if scale is None else session.add(data.total, scale)),
            rows_scale=scale,
            book=self.variant == "book",
            noisy=session.add(self.truth(data), self.scale),
            scale=self.scale,
            **self._release_facts(session),
        )
        return released.projected()

    @property
    def _noise(self) -> AnswerNoise:
        return AnswerNoise(self.operator, self.scale)

    def _check(self) -> None:
        rule, fix = f"must have at most {MOST_CELLS} cells", "choose coarser domains or fewer columns"
        check(self.universe.size <= MOST_CELLS, "universe", rule, given=self.universe.size, fix=fix)
        for scale in (self.scale, self.rows_scale):
            if scale is not None:
                check_scale(scale, self.epsilon)

    def _return_delta(self) -> None:
        """Refuse what the variant cannot be, before anything is computed from it."""
        check_choice(self.variant, "variant", get_args(_Variant))
        if self.variant == "book":
            self._check_book()
        super()._return_delta()

    def _check_book(self) -> None:
        """Algorithm 18 is private between tables of equally many rows, by a corollary for epsilon up to 1."""
        given, fix = f"{self.neighbors!r} per {self.unit}", 'pass neighbors="change-one" and the unit "row"'
        rule = 'must be "tight" unless neighbours have equally many rows'
        check(self.same_rows, "variant", rule, given=given, fix=fix)
        rule = 'must be above 0 for the variant "book"'
        check(self.delta > 0, "delta", rule, given=self.delta, fix="pass for example 1e-6")
        rule = 'must be at most 1 for the variant "book"'
        check(self.epsilon <= 1, "epsilon", rule, given=self.epsilon, fix='lower it, or use "tight"')
        rate = corollary_rate(self.epsilon, self.delta, len(self.operator))
        rule = "must be so small that advanced composition allows the printed noise"
        allowed = rate <= advanced_rate(self.epsilon, self.delta, len(self.operator))
        check(allowed, "delta", rule, given=self.delta, fix="pass for example 1e-6")
        fits = self.operator.lowest >= 0 and self.operator.highest <= self.operator.granularity
        rule = 'must have weights between 0 and 1 for the variant "book"'
        check(fits, "queries", rule, given=str(self.queries), fix='divide them, or use "tight"')
