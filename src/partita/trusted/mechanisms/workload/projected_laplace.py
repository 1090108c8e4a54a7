"""Noise on every answer, then a projection on the answers that some table has [DR14, Algorithm 18]."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final, final

from partita.errors.checks import check
from partita.guarantee.accounting import Composition
from partita.numbers import frozen
from partita.public.queries.queries.universe import Universe
from partita.public.workload.projection.projected_laplace import ProjectedLaplaceRelease
from partita.public.workload.projection.projection import MOST_CELLS
from partita.public.workload.projection.projection_error import AnswerNoise
from partita.public.workload.release.answer_changes import AnswerChanges
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.mechanisms.workload.workload_mechanism import WorkloadMechanism
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts

_ROWS_SHARE: Final = Fraction(1, 20)
_MEASURED: Final = 1 / 3


@final
@frozen(kw_only=True)
class ProjectedLaplace(WorkloadMechanism):
    """Publish once; answer a list of linear queries, projected on what some table could answer.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.   [DR14, Theorem 12.7]
    Error:     with n rows, k queries and noise of deviation s on each, the mean square is
               O(n s sqrt(log |X| / k)), and never much above s^2.
    Proof:     docs/proofs/projected_laplace.md (n is released; the projection is certified)

    Good where there are more queries than rows. The number of rows, by which answers are bounded, gets
    a twentieth of epsilon.

    >>> from partita.domain import Integer
    >>> from partita.queries import prefixes
    >>> ages = Universe(["age"], [Integer(0, 9)])
    >>> ProjectedLaplace(queries=prefixes("age"), universe=ages, epsilon=1).composition.rule
    'pure'
    """

    name: ClassVar[str] = "projection"

    @cached_property
    def changes(self) -> AnswerChanges:
        """By how much neighbours can differ in the answers, in units."""
        return AnswerChanges.between(self.neighbors, contributions=self.contributions, operator=self.operator)

    @cached_property
    def composition(self) -> Composition:
        """How much each answer may cost, by the theorem that asks for the least noise."""
        return self.changes.composition(self.epsilon * (1 - _ROWS_SHARE), self.delta)

    @property
    def uses_delta(self) -> bool:
        """Whether another theorem than the pure one asks for the least noise."""
        return self.composition.rule != "pure"

    @property
    def scale(self) -> Fraction:
        """The noise scale of an answer, in units."""
        return self.changes.each / self.composition.rate

    @property
    def rows_scale(self) -> Fraction:
        """The noise scale of the number of rows."""
        return self.contributions / (self.epsilon * _ROWS_SHARE)

    @property
    def why(self) -> str:
        """Which theorem the noise follows."""
        return (
            f"the noise of each answer follows {self.composition.rule} composition, which asks for the least"
        )

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of an answer: of all noise, along the hull, or of its dimension.

        A third of what the theorem bounds, for random queries and ranges; measured, not proved.
        """
        noise, count = self._noise, len(self.operator)
        hull = _MEASURED * math.sqrt(2 * rows * noise.column_reach(0.5) / count)
        return min(noise.deviation * min(1.0, math.sqrt(self.universe.size / count)), hull)

    def predicted_numbers(self, rows: int) -> int:
        """The noisy answers, and cells with their weights."""
        count = len(self.operator)
        return count + 2 * min(count, self.universe.size)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """The noise, where it comes from, and whether it drowns the rows."""
        deviation = self._noise.deviation
        lines = [
            f"noise of an answer: standard deviation {deviation:.4g}, by {self.composition.rule} composition "
            f"at {float(self.composition.rate):.4g} per answer",
            f"number of rows: noise of scale {float(self.rows_scale):.4g}",
        ]
        if deviation > rows / 4:
            lines.append("the noise of an answer exceeds a quarter of the rows: an even guess may do better")
        return tuple(lines)

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> ProjectedLaplaceRelease:
        """Release the number of rows and every answer with noise; project."""
        data = self.fitting(points)
        session = noise.session()
        released = ProjectedLaplaceRelease(
            rows=int(session.add(data.total, self.rows_scale)),
            rows_scale=self.rows_scale,
            noisy=session.add(self.truth(data), self.scale),
            scale=self.scale,
            queries=self.queries,
            universe=self.universe,
            guarantee=self.guarantee if session.secure else None,
        )
        return released.projected()

    @property
    def _noise(self) -> AnswerNoise:
        return AnswerNoise(self.operator, self.scale)

    def _check(self) -> None:
        _check_size(self.universe)
        for scale in (self.scale, self.rows_scale):
            check_scale(scale, self.epsilon)


def _check_size(universe: Universe) -> None:
    rule, fix = f"must have at most {MOST_CELLS} cells", "choose coarser domains or fewer columns"
    check(universe.size <= MOST_CELLS, "universe", rule, given=universe.size, fix=fix)
