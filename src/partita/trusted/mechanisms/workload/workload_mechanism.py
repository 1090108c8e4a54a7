"""What every mechanism for a list of linear queries is made with, and what it asks of its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from partita.errors.checks import check, check_type
from partita.guarantee.guarantee import Guarantee
from partita.numbers import Exact, freeze, frozen, parameter
from partita.public.queries.operator.structured import Structured
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.release.workload import WorkloadRelease
from partita.trusted.mechanisms.base.base import Private
from partita.trusted.mechanisms.base.checks import fitting_points
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts

LARGEST_DENSE: Final = 2**30
"""No universe of more cells is made an array."""

_MOST_CELLS: Final = 2**24


@frozen(kw_only=True)
class WorkloadMechanism(Private, ABC):
    """An (epsilon, delta)-DP release of answers to linear queries about points.

    `delta` is what is spent: 0 where a larger one would buy nothing.
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
        freeze(self, queries=_checked(self.queries), universe=_over(self.universe), delta=promise.delta)
        self._check_weights()

    def _return_delta(self) -> None:
        """Spend no delta that buys nothing; called when all parameters are set."""
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

    def fitting(self, points: PointCounts) -> PointCounts:
        """The points, if they lie in the universe and bound contributions at least as tightly."""
        return fitting_points(points, self.universe.axes, self.contributions)

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


def sentence(phrase: str) -> str:
    """A phrase with a capital and a full stop, unless it has them.

    >>> sentence("one threshold for all queries")
    'One threshold for all queries.'
    """
    return f"{phrase[:1].upper()}{phrase[1:]}" + ("" if phrase.endswith(".") else ".")


def _checked(queries: object) -> Queries:
    fix = 'pass for example ranges("age") or parse("...")'
    return check_type(queries, Queries, "queries", "must be queries", fix=fix)


def _over(universe: object) -> Universe:
    fix = 'pass Universe(["age"], [Integer(0, 120)])'
    return check_type(universe, Universe, "universe", "must be a Universe", fix=fix)
