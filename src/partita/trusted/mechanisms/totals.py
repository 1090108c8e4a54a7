"""Totals of a column, also by groups: counts of magnitudes choose knots, noisy masses say the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import check
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.bounds import laplace_variance
from partita.public.sums.base import ValueLine
from partita.public.sums.knot_walk import UNIT
from partita.public.sums.parts import count_cells
from partita.public.sums.totals import (
    LARGEST_MAGNITUDE,
    MOST_TOTALS,
    Caps,
    KnotTotalRelease,
    Magnitudes,
    TotalKnots,
)
from partita.trusted.mechanisms.base import Private, check_points_fit, check_scale
from partita.trusted.mechanisms.sums import check_keys
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts

_LOOK_SHARE: Final = Fraction(1, 20)  # of epsilon: better placed knots against less noise on them
_TYPICAL: Final = 1.3  # errors in units of the noise of the last covered knot (benchmarks/README.md)


@final
@frozen(kw_only=True)
class KnotTotal(Private):
    """Publish the total and the mean of a column, of all rows or by groups, and nothing else.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     O(largest covered value / epsilon), whatever the declared bound, and what silent knots hold.
    Proof:     docs/proofs/knot_total.md (one unit of mass for each row, floor splits, integer noise)

    A twentieth of epsilon counts magnitudes of the whole column, four buckets a doubling; they choose a knot
    where values end. The rest is for masses on zero, on this knot, and on its doubles up to the declared
    bound: those of a row are in its own group. Knots below serve groups of smaller values. Sum and count of a
    group are read from the same masses, so that no epsilon is split between them.

    >>> from partita.domain import Integer
    >>> total = KnotTotal(value=Integer(0, 10**9), epsilon=1)
    >>> total.bucket_scale, total.scale * Fraction(19, 20) / 2**30
    (Fraction(20, 1), Fraction(1, 1))
    """

    name: ClassVar[str] = "totals"

    keys: Converted[Sequence[Axis], tuple[Axis, ...]] = parameter(default=())
    value: Domain

    def _convert(self) -> None:
        super()._convert()
        freeze(self, keys=check_keys(self.keys))

    def _check(self) -> None:
        farthest = max(self.magnitudes.up, self.magnitudes.down)
        rule, fix = "must have bounds of less than 2^63 steps from zero", "use a coarser step"
        check(farthest <= LARGEST_MAGNITUDE, "value", rule, given=farthest, fix=fix)
        rule, fix = f"must have at most {MOST_TOTALS:,} cells", "use fewer groups, or publish sums by ranges"
        check(self.groups <= MOST_TOTALS, "keys", rule, given=self.groups, fix=fix)
        for scale in (self.bucket_scale, self.scale):
            check_scale(scale, self.epsilon)

    @cached_property
    def magnitudes(self) -> Magnitudes:
        """The buckets that are counted first."""
        return Magnitudes(ValueLine.of(self.value))

    @property
    def groups(self) -> int:
        """The number of groups, special cells of the keys included."""
        return count_cells(self.keys)

    @property
    def bucket_scale(self) -> Fraction:
        """The noise scale of a bucket: a row is in one at most."""
        return 1 / (self.rate * _LOOK_SHARE)

    @property
    def scale(self) -> Fraction:
        """The noise scale of a mass: a row has one unit of mass on all knots of all groups together."""
        return UNIT / (self.rate * (1 - _LOOK_SHARE))

    @property
    def why(self) -> str:
        """A sentence about what is measured."""
        if not self.keys:
            return "The total alone is measured: all of epsilon is for it, and no counts are beside it."
        return f"Each of the {self.groups:,} cells of the keys is a group with masses of its own."

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error, in rows with the largest covered value; rows do not matter."""
        return _TYPICAL * math.sqrt(laplace_variance(self.scale)) / UNIT

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds, at most."""
        up, down = (1 if length else None for length in (self.magnitudes.up, self.magnitudes.down))
        knots = TotalKnots(self.magnitudes, Caps(up, down, seen=False))
        return self.magnitudes.size + self.groups * knots.size

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> KnotTotalRelease:
        """Count magnitudes, choose knots by the noisy counts, split every row, and add noise to all masses.

        The points have a column for each key, and the value is the last column.
        """
        rows = check_points_fit(points, (*self.keys, self.magnitudes.line.axis), self.contributions)
        if self.rows_changed * (1 / self.bucket_scale + UNIT / self.scale) > self.epsilon:
            raise AssertionError("totals would spend more than their epsilon")
        session = noise.session()
        buckets = session.add(rows.folded(partial(_count_buckets, self.magnitudes)), self.bucket_scale)
        caps = self.magnitudes.caps(buckets, self.bucket_scale, groups=self.groups)
        knots = TotalKnots(self.magnitudes, caps)
        masses = rows.folded(partial(_masses, knots, self.keys))
        return KnotTotalRelease(
            keys=self.keys,
            value=self.magnitudes.line,
            caps=caps,
            buckets=buckets,
            bucket_scale=self.bucket_scale,
            noisy=session.add(masses, self.scale),
            scale=self.scale,
            guarantee=self.guarantee if session.secure else None,
        )


def _count_buckets(magnitudes: Magnitudes, places: UInts, counts: Ints) -> Ints:
    """The number of rows in each bucket, of all groups together."""
    return magnitudes.count(places[:, -1], counts)


def _masses(knots: TotalKnots, keys: Sequence[Axis], places: UInts, counts: Ints) -> NDArray[Any]:
    """The whole mass on each knot of each group, exactly."""
    groups = np.zeros(len(places), np.int64)
    for number, axis in enumerate(keys):
        groups = groups * axis.width + places[:, number].astype(np.int64)
    return knots.masses(places[:, -1], counts, groups, count_cells(keys))
