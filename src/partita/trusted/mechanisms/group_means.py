"""Means of a column by group: one clip for all groups, and two masses for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Final, final

from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import check
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.bounds import laplace_variance
from partita.public.sums.base import ValueLine
from partita.public.sums.group_means import MOST_GROUPS, Clip, GroupMeansRelease, PooledColumn, count_groups
from partita.public.sums.parts import count_cells
from partita.trusted.mechanisms.base import Private, check_points_fit, check_scale
from partita.trusted.mechanisms.sums import ValueCap, check_keys
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts

_CLIP_SHARE: Final = Fraction(1, 10)  # of epsilon: a better clip against less for the masses


@final
@frozen(kw_only=True)
class GroupMeans(Private):
    """Publish once; answer the mean of a column in every group, or in any set of groups.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     about 1.6 hypot(low - mean, high - mean) / (rows of the group times epsilon), for a clip from
               low to high that the whole column speaks for, whatever the declared bounds.
    Proof:     docs/proofs/group_means.md (one unit of mass for each row, integer noise)

    A tenth of epsilon counts the magnitudes of the whole column; they choose the clip. The rest is for the
    masses: each row splits one unit between both ends of the clip, in its own group. Sum and count of a
    group are read from the same two masses, so that no epsilon is split between them.

    >>> from partita.domain import Category, Integer
    >>> GroupMeans(keys=[Axis.of(Category(["a", "b"]))], value=Integer(-60, 999), epsilon=1).groups
    4
    """

    name: ClassVar[str] = "group-means"

    keys: Converted[Sequence[Axis], tuple[Axis, ...]] = parameter()
    value: Domain

    def _convert(self) -> None:
        super()._convert()
        freeze(self, keys=check_keys(self.keys))

    def _check(self) -> None:
        rule, fix = "must be one at most: means are by one column", "name one, or publish sums"
        check(len(self.keys) <= 1, "keys", rule, given=len(self.keys), fix=fix)
        rule, fix = f"must have at most {MOST_GROUPS} cells", "use fewer groups, or publish sums by ranges"
        check(self.groups <= MOST_GROUPS, "keys", rule, given=self.groups, fix=fix)
        line = ValueLine.of(self.value)
        check_scale(self._scale(Clip(-line.down, line.up)), self.epsilon)
        check_scale(self._scale(Clip(0, 1)), self.epsilon)
        check_scale(self.cap.scale, self.epsilon)

    @cached_property
    def cap(self) -> ValueCap:
        """The mechanism that counts magnitudes."""
        return ValueCap(value=self.value, epsilon=self.epsilon * _CLIP_SHARE, **self.protected)

    @property
    def groups(self) -> int:
        """The number of groups, special cells of the key included."""
        return count_cells(self.keys)

    @property
    def why(self) -> str:
        """A sentence about the groups."""
        return (
            f"Each of the {self.groups:,} cells of the key is a group." if self.keys else "There is no key."
        )

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a group's mean, times its rows, in multiples of the clip's width."""
        return math.sqrt(laplace_variance(1 / self._rate))

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return self.cap.buckets.size + 2 * self.groups

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> GroupMeansRelease:
        """Choose the clip by noisy magnitudes, split every row between its ends, and add noise to all masses.

        The points have a column for the key, if there is one, and the value is the last column.
        """
        rows = check_points_fit(points, (*self.keys, self.cap.value.axis), self.contributions)
        session = noise.session()
        buckets = self.cap.measure(rows, session=session)
        clip = self._choose(buckets)
        masses = rows.folded(partial(_masses, self.cap.value, clip, self.groups))
        scale = self._scale(clip)
        return GroupMeansRelease(
            keys=self.keys,
            value=self.cap.value,
            clip=clip,
            buckets=buckets,
            bucket_scale=self.cap.scale,
            noisy=session.add(masses.ravel(), scale),
            scale=scale,
            guarantee=self.guarantee if session.secure else None,
        )

    def _choose(self, buckets: NDArray[Any]) -> Clip:
        """The clip: a function of public parameters and of noisy counts."""
        column = PooledColumn(self.cap.buckets, buckets, self.cap.scale)
        return column.choose(noise=float(1 / self._rate), groups=count_groups(self.keys))

    @property
    def _rate(self) -> Fraction:
        """Epsilon for the masses, for each row by which neighbours may differ."""
        return self.rate * (1 - _CLIP_SHARE)

    def _scale(self, clip: Clip) -> Fraction:
        """Every row has one unit of mass in all groups together."""
        return clip.unit / self._rate


def _masses(line: ValueLine, clip: Clip, groups: int, places: UInts, counts: Ints) -> NDArray[Any]:
    """The whole mass on both knots in each group; a row without a number has none."""
    value = places[:, -1]
    number = ~(line.invalid(value) | line.null(value))
    key = places[number, 0].astype("int64") if places.shape[1] > 1 else number[number].astype("int64") * 0
    return clip.summed(key, line.offsets(value[number]), counts[number], groups)
