"""Query- and instance-specific truncation: counts above thresholds and cut queries together [KDD22]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final, get_args

from partita.exact import freeze, one_of
from partita.guarantee import Neighbors, Unit
from partita.inference.numerical.decomposed import Method
from partita.inference.numerical.graded import Graded
from partita.mechanisms.numerical_mechanism import WeighingMechanism
from partita.noise.protocol import Noise
from partita.noise.system import SYSTEM
from partita.points import PointCounts
from partita.queries.queries import Queries
from partita.queries.universe import Universe
from partita.releases.numerical_instance import InstanceTruncationRelease, Rule

__all__ = ["InstanceTruncation"]


@final
@dataclass(frozen=True, init=False, kw_only=True)
class InstanceTruncation(WeighingMechanism):
    """Publish once; the sum of every query, each cut at about its own largest weight among the rows.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.  [HLM12; KDD22]
    Error:     ~O(sqrt(n) Delta_w(D)), where Delta_w(D) is the largest weight of w at any row.
    Proof:     docs/proofs/instance_truncation.md (C(Q) and L(Q) in one run, thresholds by post-processing)

    `rule` says how thresholds are read off the release: "steady" weighs what a larger threshold adds against
    its noise; "quiet" is the slides' rule with the guaranteed error of all counts.
    """

    name: ClassVar[str] = "instance-specific"

    rule: Rule

    def __init__(
        self,
        *,
        queries: Queries,
        universe: Universe,
        epsilon: object,
        delta: object = 0,
        neighbors: Neighbors = "add-remove",
        contributions: int = 1,
        unit: Unit | None = None,
        decomposition: Method = "auto",
        rounds: int | None = None,
        rule: Rule = "steady",
    ) -> None:
        freeze(self, rule=one_of(rule, "rule", get_args(Rule)))
        super().__init__(
            queries=queries,
            universe=universe,
            epsilon=epsilon,
            delta=delta,
            neighbors=neighbors,
            contributions=contributions,
            unit=unit,
            decomposition=decomposition,
            rounds=rounds,
        )

    @property
    def widest(self) -> Graded:
        """Counts above every threshold, and queries cut at every threshold."""
        return self.space.joint

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> InstanceTruncationRelease:
        """Weigh counts and cut queries together; thresholds follow from what is released."""
        data, session = self.fitting(points), noise.session()
        return InstanceTruncationRelease(
            queries=self.queries,
            universe=self.universe,
            decomposition=self.decomposition,
            weighed=self.weighed(self.space.joint, data, session),
            rule=self.rule,
            guarantee=self.guarantee if session.secure else None,
        )
