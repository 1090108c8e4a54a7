"""Query- and instance-specific truncation: counts above thresholds and cut queries together [KDD22]."""

from __future__ import annotations

from typing import ClassVar, final, get_args

from partita.numbers import freeze, frozen, one_of
from partita.public.workload.decomposition.graded import Graded
from partita.public.workload.numerical.numerical_instance import InstanceTruncationRelease, Rule
from partita.trusted.mechanisms.numerical.numerical_mechanism import WeighingMechanism
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts


@final
@frozen(kw_only=True)
class InstanceTruncation(WeighingMechanism):
    """Publish once; the sum of every query, each cut at about its own largest weight among the rows.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.  [HLM12; KDD22]
    Error:     ~O(sqrt(n) Delta_w(D)), where Delta_w(D) is the largest weight of w at any row.
    Proof:     docs/proofs/instance_truncation.md (C(Q) and L(Q) in one run, thresholds by post-processing)

    `rule` says how thresholds are read off the release: "steady" weighs what a larger threshold adds against
    its noise; "quiet" is the slides' rule with the guaranteed error of all counts.
    """

    name: ClassVar[str] = "instance-specific"

    rule: Rule = "steady"

    def _convert(self) -> None:
        freeze(self, rule=one_of(self.rule, "rule", get_args(Rule)))
        super()._convert()

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
