"""Global truncation: all queries are cut at one private threshold, and weights answer what is left."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.numbers import frozen
from partita.public.axis.curve.curve import Ints, UInts
from partita.public.queries.operator.structured import Structured
from partita.public.workload.decomposition.decomposed import Decomposed
from partita.public.workload.decomposition.graded import Graded
from partita.public.workload.decomposition.octaves import octave_of, shared_top
from partita.public.workload.numerical.numerical_global import GlobalTruncationRelease
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.mechanisms.numerical.numerical_mechanism import WeighingMechanism
from partita.trusted.mechanisms.numerical.numerical_rows import weight_blocks
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts

_FINDING: Final = Fraction(1, 20)


@final
@frozen(kw_only=True)
class GlobalTruncation(WeighingMechanism):
    """Publish once; the sum of every query, cut at about the largest weight of any query at any row.

    Guarantee: epsilon-DP, pure, or (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.  [HLM12; KDD22]
    Error:     ~O(sqrt(n) Delta(D)), where Delta(D) is the largest weight of any query at any row.
    Proof:     docs/proofs/global_truncation.md (the threshold from noisy octaves)
    """

    name: ClassVar[str] = "global-truncation"

    @property
    def widest(self) -> Graded:
        """Each query cut at the last threshold."""
        return self.space.cut(self.space.tops[-1])

    @property
    def weighing(self) -> Fraction:
        """What is left for the weights: nineteen parts of twenty."""
        return self.epsilon * (1 - _FINDING)

    @property
    def octave_scale(self) -> Fraction:
        """The noise on the count of each octave."""
        return self.rows_changed / (self.epsilon * _FINDING)

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> GlobalTruncationRelease:
        """Count rows by the octave of their largest weight, and weigh queries cut where these end."""
        data, session = self.fitting(points), noise.session()
        octaves = session.add(self._octaves(data), self.octave_scale)
        top = shared_top(octaves, self.octave_scale, self.space.tops)
        return GlobalTruncationRelease(
            queries=self.queries,
            universe=self.universe,
            decomposition=self.decomposition,
            weighed=self.weighed(self.space.cut(top), data, session),
            octaves=octaves,
            octave_scale=self.octave_scale,
            guarantee=self.guarantee if session.secure else None,
        )

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """The share of the threshold, and what the weights do with the rest."""
        share = float(self.epsilon * _FINDING)
        return (f"epsilon {share:.6g} for one threshold of all queries", *super().plan_lines(rows))

    def _octaves(self, points: PointCounts) -> Ints:
        """How many rows have their largest weight in each octave."""
        peaks = _Peaks(self.operator, self.decomposed)
        return points.folded(partial(_octave_counts, peaks, self.space.tops))

    def _check(self) -> None:
        """The noise on octaves must be one that can be drawn, too."""
        super()._check()
        check_scale(self.octave_scale, self.epsilon)


class _Peaks(NamedTuple):
    """The largest weights of points."""

    operator: Structured
    decomposed: Decomposed | None

    def at(self, places: UInts, counts: Ints) -> NDArray[Any]:
        """The largest weight of each; if values are decomposed, its value if its class is asked for."""
        if self.decomposed is None:
            found = [weights.max(axis=0) for weights, _ in weight_blocks(self.operator, places, counts)]
            return np.concatenate([np.zeros(0, np.int64), *found])
        return np.where(self.decomposed.asked(places), self.decomposed.values(places), 0)


def _octave_counts(peaks: _Peaks, tops: tuple[int, ...], places: UInts, counts: Ints) -> Ints:
    """How many rows have their largest weight in each octave."""
    found = np.zeros(len(tops), np.int64)
    np.add.at(found, octave_of(peaks.at(places, counts), tops), counts)
    return found
