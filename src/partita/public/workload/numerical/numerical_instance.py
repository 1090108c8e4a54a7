"""Released sums of numerical queries, each cut at a threshold of its own that the same release speaks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, Literal, Self, TypeAlias, final

import numpy as np

from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.axis.base.ranges import Json, Parts
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.base.released import damaged
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.decomposition.space import grade_factors
from partita.public.workload.decomposition.thresholds import (
    CAUTIOUS,
    STEADY,
    first_quiet,
    first_steady,
    last_clear,
)
from partita.public.workload.numerical.numerical import NumericalRelease
from partita.public.workload.numerical.numerical_reading import NumericalReader

Rule: TypeAlias = Literal["steady", "quiet"]

_RULES: Final[tuple[Rule, ...]] = ("steady", "quiet")

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
        """The thresholds."""
        return np.where(self.chosen > 0, _at(self._worth, np.maximum(self.chosen - 1, 0)), 0.0)

    def hidden(self, beta: float) -> Floats:
        """What the rows that may lie above the threshold may have beyond it."""
        reach = self.space.levels(self.weighed.bounds(beta))[0]
        rows = np.vstack([np.maximum(0.0, self._above + reach), np.zeros((1, len(self)))])
        return np.asarray(_at(rows, self.chosen) * (self._worth[-1] - self.factors))

    @property
    def story(self) -> str:
        """How far the thresholds reach."""
        low, high = self.thresholds.min(), self.thresholds.max()
        return (
            f"Every query is cut at a threshold of its own, between {low:g} and {high:g}; "
            "standard errors do not cover what is cut off."
        )

    @property
    def spent(self) -> Fraction:
        """What the weights cost: thresholds cost nothing."""
        return self.weights_cost(Fraction(0))

    def parts(self) -> Parts:
        """The rule, and what was weighed."""
        return self.weighed_parts({"rule": self.rule}, {})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The weighed queries follow from queries, universe and decomposition."""
        reader = NumericalReader.of(parts, queries, universe, facts=("rule",))
        weighed = reader.weighed(reader.space.joint)
        return cls(**reader.common(guarantee), weighed=weighed, rule=_rule(parts.facts["rule"]))

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


def _rule(given: Json) -> Rule:
    for rule in _RULES:
        if given == rule:
            return rule
    raise damaged("rule", "must be one of those that there are")


def _at(table: Floats | Ints, rows: Ints) -> Floats | Ints:
    """One entry of each column."""
    return table[rows, np.arange(table.shape[1])]
