"""Normalization: numerical queries over their largest weights are linear, and weights answer those."""

from __future__ import annotations

from typing import ClassVar, final

from partita.numbers import frozen
from partita.public.workload.decomposition.graded import Graded
from partita.public.workload.numerical.numerical_normalization import NormalizationRelease
from partita.trusted.mechanisms.numerical.numerical_mechanism import WeighingMechanism
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts


@final
@frozen(kw_only=True)
class Normalization(WeighingMechanism):
    """Publish once; the sum of every query, answered over its largest weight and scaled back.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.  [HLM12; KDD22]
    Error:     ~O(sqrt(n) Delta_w), where Delta_w is the largest weight of w in the universe.
    Proof:     docs/proofs/normalization.md (exact sums, graded by public numbers)
    """

    name: ClassVar[str] = "normalization"

    @property
    def widest(self) -> Graded:
        """Each query over its largest weight."""
        return self.space.whole

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> NormalizationRelease:
        """Weigh the graded queries."""
        data, session = self.fitting(points), noise.session()
        return NormalizationRelease(
            queries=self.queries,
            universe=self.universe,
            decomposition=self.decomposition,
            weighed=self.weighed(self.space.whole, data, session),
            guarantee=self.guarantee if session.secure else None,
        )
