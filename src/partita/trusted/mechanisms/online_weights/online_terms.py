"""The public terms of an online session: what it may cost, how many updates it has, and its noise."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, final

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.guarantee.accounting import measurement_rate, zcdp_budget
from partita.guarantee.guarantee import Guarantee, Neighbors, Unit, positive_epsilon, unit_of
from partita.numbers import freeze, integer, rational
from partita.public.queries.operator.structured import Structured
from partita.public.queries.queries.universe import Universe
from partita.public.workload.release.change import Change
from partita.public.workload.weights.measured import Scales
from partita.trusted.mechanisms.base.checks import check_scale

MOST_UPDATES: Final = 1000
_TOTAL: Final = Fraction(1, 20)
_WARM: Final = Fraction(3, 10)
_RARELY: Final = 4
_MOST_CELLS: Final = 2**27
_FINEST: Final = 2**30


@final
@dataclass(frozen=True, kw_only=True)
class OnlineTerms:
    """Epsilon and delta of a whole session, shared among a first guess and `updates` runs.

    A run compares the answers of the guess with the truth, with noise, until one is off by more than about
    the `threshold`, in rows; that one is measured, and the run ends. Weights are multiples of one over
    the granularity, from 0 to 1.
    """

    universe: Universe
    guarantee: Guarantee
    updates: int
    threshold: Fraction
    granularity: int

    @staticmethod
    def of(
        *,
        universe: Universe,
        epsilon: object,
        updates: int,
        threshold: object = None,
        delta: object = 0,
        neighbors: Neighbors = "add-remove",
        contributions: int = 1,
        unit: Unit | None = None,
        granularity: int = 1,
    ) -> OnlineTerms:
        """The terms as people write them; without a threshold, one that noise alone passes rarely."""
        guarantee = Guarantee(
            epsilon=positive_epsilon(epsilon),
            delta=delta,
            neighbors=neighbors,
            unit=unit_of(unit, contributions),
            contributions=contributions,
        )
        terms = OnlineTerms(
            universe=universe,
            guarantee=guarantee,
            updates=integer(updates, "updates", low=1, high=MOST_UPDATES),
            threshold=Fraction(0) if threshold is None else rational(threshold, "threshold"),
            granularity=integer(granularity, "granularity", low=1, high=_FINEST),
        )
        terms._check()
        if threshold is None:
            freeze(terms, threshold=_RARELY * terms.query_scale / terms.granularity)
        return terms

    @property
    def change(self) -> Change:
        """What neighbours differ by, in rows."""
        return Change.of(self.guarantee.neighbors, contributions=self.guarantee.contributions)

    @property
    def sensitivity(self) -> int:
        """By how much one answer may change, in units: somebody in or out, or with other values."""
        return self.granularity * self.change.of_total

    @cached_property
    def run_rate(self) -> Fraction:
        """The epsilon of the comparisons of one run, and again that of its measurement."""
        return self._rates[2]

    @property
    def threshold_scale(self) -> Fraction:
        """The noise of the threshold: half of a run's comparisons are paid to it."""
        return 2 * self.sensitivity / self.run_rate

    @property
    def query_scale(self) -> Fraction:
        """The noise of each comparison."""
        return 4 * self.sensitivity / self.run_rate

    @property
    def threshold_units(self) -> int:
        """The threshold, rounded down to units."""
        return math.floor(self.threshold * self.granularity)

    @cached_property
    def scales(self) -> Scales:
        """The noise of the first guess and of measurements."""
        total, marginal, run = self._rates
        return Scales(
            total=self.change.of_total / total,
            marginal=self.change.of_cells / marginal,
            selection=self.query_scale,
            answer=self.sensitivity / run,
        )

    @property
    def axes(self) -> list[int]:
        """The axes that the first guess looks at."""
        return [axis for axis, width in enumerate(self.universe.shape) if width > 1]

    def refined(self, operator: Structured) -> Structured:
        """A query in the session's units, if there is one and its weights suit the session."""
        rule = None
        if len(operator) != 1:
            rule = "must be one query at a time"
        elif self.granularity % operator.granularity:
            rule = f"must have weights that are multiples of 1/{self.granularity}"
        elif not 0 <= operator.lowest <= operator.highest <= operator.granularity:
            rule = "must have weights from 0 to 1"
        if rule is not None:
            fix = "rescale it, or open with other terms"
            raise InvalidParameter("query", rule, given=len(operator), fix=fix)
        finer = self.granularity // operator.granularity
        return operator.multiplied(finer, finer)

    def to_text(self) -> str:
        """All terms as one line; a session is opened again with the same line only."""
        public = {
            "columns": list(self.universe.columns),
            "domains": [repr(domain) for domain in self.universe.domains],
            "guarantee": repr(self.guarantee),
            "updates": self.updates,
            "threshold": str(self.threshold),
            "granularity": self.granularity,
        }
        return json.dumps(public, sort_keys=True)

    @cached_property
    def _rates(self) -> tuple[Fraction, Fraction, Fraction]:
        """The epsilon of the total, of each axis, and of half a run."""
        axes = max(1, len(self.axes))
        if not self.guarantee.delta:
            epsilon = self.guarantee.epsilon
            left = epsilon * (1 - _TOTAL - _WARM) / (2 * self.updates)
            return epsilon * _TOTAL, epsilon * _WARM / axes, left
        rho = zcdp_budget(self.guarantee.epsilon, self.guarantee.delta)
        left = measurement_rate(rho * (1 - _TOTAL - _WARM), 2 * self.updates)
        return measurement_rate(rho * _TOTAL), measurement_rate(rho * _WARM, axes), left

    def _check(self) -> None:
        space: object = self.universe
        if not isinstance(space, Universe) or space.size > _MOST_CELLS:
            rule = f"must be a Universe of at most {_MOST_CELLS} cells"
            raise InvalidParameter("universe", rule, given=space, fix="choose coarser domains")
        fix = "leave it out"
        check(self.threshold >= 0, "threshold", "must not be negative", given=self.threshold, fix=fix)
        scales = self.scales
        for scale in (scales.total, scales.marginal, scales.answer, self.threshold_scale, self.query_scale):
            check_scale(scale, self.guarantee.epsilon)
