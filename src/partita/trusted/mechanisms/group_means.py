"""Means of a column by group: one clip for all groups, and two masses for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Bools, Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import check
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.bounds import laplace_variance
from partita.public.sums.base import ValueLine
from partita.public.sums.group_means import (
    MOST_GROUPS,
    Clip,
    GroupMeansRelease,
    PooledColumn,
    center_line,
    count_groups,
)
from partita.public.sums.parts import count_cells
from partita.trusted.mechanisms.base import Private, check_points_fit, check_scale
from partita.trusted.mechanisms.sums import ValueCap, check_keys
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts

_CLIP_SHARE: Final = Fraction(1, 10)  # of epsilon: a better clip against less for the masses
# Parts of epsilon that masses lose where values lie in a narrow band. From 1/60 and 1/30 up to 1/40 and 1/10
# errors had no clear order; more for the look makes intervals narrower (benchmarks/README.md, means).
_CENTRE_SHARE: Final = Fraction(1, 40)
_AROUND_SHARE: Final = Fraction(3, 40)
_CENTRE_CELLS: Final = 2**16  # places of a band where its centre may be: finer against longer sums to fold


@final
@frozen(kw_only=True)
class GroupMeans(Private):
    """Publish once; answer the mean of a column in every group, or in any set of groups.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     about 1.6 hypot(low - mean, high - mean) / (rows of the group times epsilon), for a clip from
               low to high that the whole column speaks for, whatever the declared bounds.
    Proof:     docs/proofs/group_means.md (one unit of mass for each row, integer noise, exact choice)

    A tenth of epsilon counts the magnitudes of the whole column; they choose the clip. Where they show a
    narrow band of values far from zero, another tenth chooses a centre of it and counts the magnitudes of
    distances from there. The rest is for the masses: each row splits one unit between both ends of the clip,
    in its own group. Sum and count of a group are read from the same two masses, so that no epsilon is split
    between them.

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
        for clip, band in product((Clip(-line.down, line.up), Clip(0, 1)), (False, True)):
            check_scale(self._scale(clip, band=band), self.epsilon)
        for scale in (self.cap.scale, self._around(line).scale, self._centre_scale):
            check_scale(scale, self.epsilon)

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
        return math.sqrt(laplace_variance(1 / self._rate(band=False)))

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return self.cap.buckets.size + 2 * self.groups

    def release(self, points: PointCounts, *, noise: Noise = SYSTEM) -> GroupMeansRelease:
        """Choose the clip by noisy magnitudes, split every row between its ends, and add noise to all masses.

        The points have a column for the key, if there is one, and the value is the last column.
        """
        rows = check_points_fit(points, (*self.keys, self.cap.value.axis), self.contributions)
        session = noise.session()
        cap, centre = self.cap, 0
        buckets = cap.measure(rows, session=session)
        band = PooledColumn(cap.buckets, buckets, cap.scale).band
        if band is not None:
            centre = self._choose_centre(rows, band, session)
            cap = self._around(center_line(cap.value, centre))
            buckets = cap.measure(rows, session=session)
        clip = self._choose(cap, buckets)
        masses = rows.folded(partial(_masses, cap.value, clip, self.groups))
        scale = self._scale(clip, band=band is not None)
        return GroupMeansRelease(
            keys=self.keys,
            value=self.cap.value,
            clip=clip,
            buckets=buckets,
            bucket_scale=cap.scale,
            noisy=session.add(masses.ravel(), scale),
            scale=scale,
            centre=centre,
            centre_rate=Fraction(0) if band is None else self.rate * (_CLIP_SHARE + _CENTRE_SHARE),
            guarantee=self.guarantee if session.secure else None,
        )

    def _choose_centre(self, points: PointCounts, band: Clip, session: Noise) -> int:
        """About the median of all values, among evenly spaced places of a band, by permute-and-flip.

        The score of a cell is max(2 (rows below it) - rows, rows - 2 (rows up to it)), negated, where rows
        outside of the band count, too. One row moves it by one at most.
        """
        step = -(-(band.high - band.low + 1) // _CENTRE_CELLS)
        starts = range(band.low, band.high + 1, step)
        lasts = np.array([*(start - 1 for start in starts), band.high], np.int64)
        counts = points.folded(partial(_count_cells, self.cap.value, lasts)).astype(object)
        upto = np.cumsum(counts)
        scores = -np.maximum(2 * (upto - counts) - upto[-1], upto[-1] - 2 * upto)[1:-1]
        chosen = session.permute_and_flip(scores, np.ones(len(starts), np.int64), self._centre_scale)
        return min(starts[chosen] + (step - 1) // 2, band.high)

    def _choose(self, cap: ValueCap, buckets: NDArray[Any]) -> Clip:
        """The clip: a function of public parameters, of the centre and of noisy counts."""
        band = cap is not self.cap
        column = PooledColumn(cap.buckets, buckets, cap.scale, centred=band)
        return column.choose(noise=float(1 / self._rate(band=band)), groups=count_groups(self.keys))

    def _around(self, line: ValueLine) -> ValueCap:
        """The mechanism that counts magnitudes of distances from a centre."""
        return ValueCap(value=line, epsilon=self.epsilon * _AROUND_SHARE, **self.protected)

    @property
    def _centre_scale(self) -> Fraction:
        """A row moves all scores by one at most, some of them up and others down."""
        return 2 / (self.rate * _CENTRE_SHARE)

    def _rate(self, *, band: bool) -> Fraction:
        """Epsilon for the masses, for each row by which neighbours may differ."""
        return self.rate * (1 - _CLIP_SHARE - (_CENTRE_SHARE + _AROUND_SHARE) * band)

    def _scale(self, clip: Clip, *, band: bool) -> Fraction:
        """Every row has one unit of mass in all groups together."""
        return clip.unit / self._rate(band=band)


def _masses(line: ValueLine, clip: Clip, groups: int, places: UInts, counts: Ints) -> NDArray[Any]:
    """The whole mass on both knots in each group; a row without a number has none."""
    number = _numbers(line, places)
    key = places[number, 0].astype("int64") if places.shape[1] > 1 else number[number].astype("int64") * 0
    return clip.summed(key, line.offsets(places[number, -1]), counts[number], groups)


def _count_cells(line: ValueLine, lasts: Ints, places: UInts, counts: Ints) -> Ints:
    """The number of rows up to each of these offsets, behind the one before, and of those behind the last."""
    number = _numbers(line, places)
    exact = np.zeros(len(lasts) + 1, np.int64)
    np.add.at(exact, np.searchsorted(lasts, line.offsets(places[number, -1])), counts[number])
    return exact


def _numbers(line: ValueLine, places: UInts) -> Bools:
    """Which rows hold a number."""
    value = places[:, -1]
    return ~(line.invalid(value) | line.null(value))
