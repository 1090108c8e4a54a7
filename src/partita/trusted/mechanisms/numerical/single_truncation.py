"""Truncation of a single numerical query at a private threshold [HLY21]; composition repeats it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.numbers import Exact, frozen, parameter
from partita.public.bounds.tails import laplace_variance
from partita.public.workload.decomposition.octaves import FINEST, grid_of, octave_tops, top_octave
from partita.public.workload.numerical.numerical_truncation import TruncationRelease
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.mechanisms.numerical.numerical_mechanism import NumericalMechanism
from partita.trusted.mechanisms.numerical.numerical_rows import Rows, rows_of
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts

_MOST_NUMBERS: Final = 1 << 24


class Cut(NamedTuple):
    """Noisy counts of rows in every octave of each query, and noisy sums in units of their grids."""

    octaves: NDArray[Any]
    sums: NDArray[Any]


@final
@dataclass(frozen=True, kw_only=True)
class Truncation:
    """Queries side by side, each cut at a threshold of its own, each for twice the `rate`.

    One rate pays for the octaves: every row is in one octave of a query. The other pays for the sum: cut at
    the threshold, the rows of a unit move it by at most that for each, as they come, go or change.
    """

    tops: tuple[int, ...]
    rate: Fraction
    rows_changed: int
    contributions: int

    @property
    def octave_scale(self) -> Fraction:
        """The noise on the count of each octave."""
        return self.rows_changed / self.rate

    @property
    def sum_scale(self) -> Fraction:
        """The noise on a sum cut at the last threshold, in units of its grid."""
        return self._finest * self.contributions / self.rate

    def cut(self, rows: Rows, session: Noise) -> Cut:
        """Count octaves, read the thresholds off what is released of them, and sum what lies below."""
        noisy = session.add(rows.octaves(self.tops), self.octave_scale)
        cuts = np.array(self.tops, dtype=object)[top_octave(noisy, self.octave_scale)]
        return Cut(noisy, self._noisy_sums(rows.sums(cuts), cuts, session))

    def _noisy_sums(self, sums: NDArray[Any], cuts: NDArray[Any], session: Noise) -> NDArray[Any]:
        """Sums on their grids, with noise in proportion to their thresholds; those cut at 0 are 0."""
        noisy = np.zeros(cuts.size, dtype=object)
        there = np.flatnonzero(cuts)
        grids = np.array([grid_of(cut) for cut in cuts[there]], dtype=object)
        finer = (self._finest // (cuts[there] // grids)).astype(np.int64)
        noisy[there] = session.add(sums[there] // grids, self.sum_scale, parts=finer)
        return noisy

    @property
    def _finest(self) -> int:
        return min(self.tops[-1], FINEST)


@frozen(kw_only=True)
class TruncatingMechanism(NumericalMechanism, ABC):
    """A mechanism that cuts every query at a threshold of its own, from weights at the rows alone."""

    @property
    @abstractmethod
    def rate(self) -> Fraction:
        """Epsilon for the octaves of one query, and again for its sum."""

    @property
    def truncation(self) -> Truncation:
        """What is done for every query."""
        return Truncation(
            tops=octave_tops(self.operator.highest),
            rate=self.rate,
            rows_changed=self.rows_changed,
            contributions=self.contributions,
        )

    def _check(self) -> None:
        """Refuse more queries than can be held, and an epsilon whose noise cannot be drawn."""
        if self.predicted_numbers(0) > _MOST_NUMBERS:
            rule = f"must release at most {_MOST_NUMBERS} numbers, counted once for every threshold"
            raise InvalidParameter("queries", rule, given=self.predicted_numbers(0), fix="ask for fewer")
        check_scale(self.truncation.octave_scale, self.epsilon)
        check_scale(self.truncation.sum_scale, self.epsilon)

    def predicted_error(self, rows: int) -> float:
        """The standard error of the noise on a query whose largest weight is that of the universe."""
        finest = grid_of(octave_tops(self.operator.highest)[-1])
        spread = math.sqrt(laplace_variance(self.truncation.sum_scale))
        return spread * finest / self.operator.granularity

    def predicted_numbers(self, rows: int) -> int:
        """The octaves and the sum of each query."""
        return len(self.operator) * (len(self.truncation.tops) + 1)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """How epsilon is shared out."""
        return (
            f"every query is cut at a threshold of its own, one of {len(self.truncation.tops)}",
            f"epsilon {float(self.rate):.6g} for a threshold, and as much for the sum below it",
        )

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> TruncationRelease:
        """Cut every query, and sum it."""
        data, session = self.fitting(points), noise.session()
        made = self.truncation.cut(rows_of(self.operator, data), session)
        return TruncationRelease(
            queries=self.queries,
            universe=self.universe,
            octaves=made.octaves,
            sums=made.sums,
            octave_scale=self.truncation.octave_scale,
            sum_scale=self.truncation.sum_scale,
            guarantee=self.guarantee if session.secure else None,
        )


@final
@frozen(kw_only=True)
class SingleTruncation(TruncatingMechanism):
    """Publish once; the sum of one query w over all rows, cut at about the largest w among them.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [HLY21]
    Error:     O(max w(t) over rows log(log Delta / beta) / epsilon), whatever the bound Delta of w.
    Proof:     docs/proofs/single_truncation.md (integer noise, the threshold from noisy octaves)
    """

    name: ClassVar[str] = "single-truncation"

    delta: Exact = parameter(default=0, init=False)

    def _check(self) -> None:
        fix = "use composition for many"
        check(len(self.operator) == 1, "queries", "must be a single query", given=len(self.operator), fix=fix)
        super()._check()

    @property
    def rate(self) -> Fraction:
        """Half of epsilon."""
        return self.epsilon / 2
