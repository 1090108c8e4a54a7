"""Normalization: numerical queries over their largest weights are linear, and weights answer those."""

from __future__ import annotations

from typing import ClassVar, final

from partita.exact import frozen
from partita.inference.numerical.graded import Graded
from partita.mechanisms.numerical_mechanism import WeighingMechanism
from partita.noise.protocol import Noise
from partita.noise.system import SYSTEM
from partita.points import PointCounts
from partita.releases.numerical_normalization import NormalizationRelease

__all__ = ["Normalization"]


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
