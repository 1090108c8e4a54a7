"""The Laplace mechanism on any workload of linear queries [DMNS06; SU, section 1.1]."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final, final

from partita.errors.errors import InvalidParameter
from partita.guarantee.accounting import Composition
from partita.numbers import frozen
from partita.public.bounds.query_error import independent_error
from partita.public.bounds.tails import laplace_variance
from partita.public.workload.release.answer_changes import AnswerChanges
from partita.public.workload.release.linear_workload import LinearWorkloadRelease
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.mechanisms.workload.workload_mechanism import WorkloadMechanism
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import LARGEST_SCALE, SYSTEM
from partita.trusted.secret.points import PointCounts

_LARGEST_WEIGHT: Final = 2**64
"""Times fewer than 2^62 rows, that is a released number."""


@final
@frozen(kw_only=True)
class LinearWorkload(WorkloadMechanism):
    """Publish once; answer a list of linear queries, each with noise of its own.

    Guarantee: epsilon-DP, pure; (epsilon, delta)-DP if delta lowers noise; ADD_REMOVE or CHANGE_ONE. [DMNS06]
    Error:     O(norm log k / epsilon) for k queries at once; the norm is the largest sum of absolute
               weights of one cell. With delta, O(sqrt(weight norm log 1/delta) log k / epsilon).
    Proof:     docs/proofs/linear_queries.md (integer noise at a public granularity)

    >>> from partita.domain import Integer
    >>> from partita.queries import Universe, prefixes
    >>> ages = Universe(["age"], [Integer(0, 120)])
    >>> LinearWorkload(queries=prefixes("age"), universe=ages, epsilon=1).scale
    Fraction(121, 1)
    """

    name: ClassVar[str] = "linear"

    @cached_property
    def changes(self) -> AnswerChanges:
        """By how much neighbours can differ in the answers, in units of one over the granularity."""
        return AnswerChanges.between(self.neighbors, contributions=self.contributions, operator=self.operator)

    @cached_property
    def composition(self) -> Composition:
        """How much each answer may cost, by the theorem that asks for the least noise."""
        return self.changes.composition(self.epsilon, self.delta)

    @property
    def uses_delta(self) -> bool:
        """Whether another theorem than the pure one asks for the least noise."""
        return self.composition.rule != "pure"

    @property
    def scale(self) -> Fraction:
        """The noise scale of every answer, in units of one over the operator's granularity."""
        return self.changes.each / self.composition.rate

    @property
    def largest_error(self) -> float:
        """The expected largest error over all queries is at most this [SU, section 1.1]."""
        return independent_error(self.scale, len(self.operator)) / self.operator.granularity

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of every answer, whatever the rows."""
        return float(laplace_variance(self.scale) ** 0.5) / self.operator.granularity

    def predicted_numbers(self, rows: int) -> int:
        """One for each query."""
        return len(self.operator)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """How the budget is shared among the queries."""
        scale, rule = float(self.scale / self.operator.granularity), self.composition.rule
        return (
            f"Noise of scale {scale:.6g} on each of {len(self.operator)} answers, by {rule} composition.",
        )

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> LinearWorkloadRelease:
        """Answer every query in whole units and add noise."""
        truth = self.truth(self.fitting(points))
        session = noise.session()
        return LinearWorkloadRelease(
            noisy=session.add(truth, self.scale),
            scale=self.scale,
            queries=self.queries,
            universe=self.universe,
            guarantee=self.guarantee if session.secure else None,
        )

    def _check(self) -> None:
        """Refuse weights whose answers are no released numbers, and noise that cannot be drawn."""
        if self.operator.largest > _LARGEST_WEIGHT or self.scale > LARGEST_SCALE:
            rule = "must have weights of at most 2^64 units and need noise of a scale of at most 2^62 units"
            fix = "clip values, round weights, or raise epsilon"
            raise InvalidParameter("queries", rule, given=float(self.operator.largest), fix=fix)
        check_scale(self.scale, self.epsilon)
