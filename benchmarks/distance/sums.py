"""Distances of the mechanisms for sums: from what removing rows costs anybody, and from packings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import cosh, exp, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.distance.row import Distance, Measured, noises
from partita.domain import Integer
from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.public.queries.language import ranges, value
from partita.public.queries.queries import Universe
from partita.trusted.mechanisms.group_means import GroupMeans
from partita.trusted.mechanisms.numerical import (
    ComposedTruncation,
    GlobalTruncation,
    InstanceTruncation,
    Normalization,
    SingleTruncation,
)
from partita.trusted.mechanisms.sums import LevelTrees, LogTree
from partita.trusted.mechanisms.totals import KnotTotal
from partita.trusted.secret import Points

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_EPSILON: Final = 1
_ROWS: Final = 20_000
_AGES: Final = 128
_LARGEST: Final = 2**32 - 1
_TOP: Final = 2**16
"""No row has more."""
_RANGES: Final = 100
_REMOVED: Final = 20
_ENOUGH: Final = 20
"""Releases that take seconds are measured as often, if more trials are asked for."""

_REMOVING: Final = "removing m rows, any mechanism: what that moves / (2 cosh(epsilon m / 2)), best m"
_PACKING: Final = "k equal rows at one of K places, any mechanism, best k [HT10]"
_SETTING: Final = "sums of a value up to 2^32 over 100 ranges of 128 ages, 20,000 rows, epsilon 1"


def single_truncation(trials: int) -> Distance:
    """The sum of all values, against what removing the largest rows costs any mechanism."""
    people = _people()
    mechanism = SingleTruncation(queries=value("income"), universe=_UNIVERSE, epsilon=_EPSILON)
    truth = float(people.incomes.sum())
    released = [mechanism.release(people.points, noise=noise) for noise in noises(trials)]
    return Distance(
        mechanism="single_truncation",
        setting="one sum of a value up to 2^32, 20,000 rows, epsilon 1",
        what="root mean square error of the sum",
        measured=Measured.root([(float(each.values[0]) - truth) ** 2 for each in released]),
        bound=_removal_bound(people.incomes[None]),
        source=_REMOVING,
        note=f"the largest value is {people.incomes.max():,}",
    )


def knot_total(trials: int) -> Distance:
    """The same sum of all values, from masses on knots."""
    incomes = _people().incomes
    mechanism = KnotTotal(value=Integer(0, _LARGEST), epsilon=_EPSILON)
    points = Points.from_rows((incomes + 1)[:, None], axes=[Axis.of(mechanism.value)])
    released = [mechanism.release(points, noise=noise).sum([]).value for noise in noises(trials)]
    return Distance(
        mechanism="knot_total",
        setting="one sum of a value up to 2^32, 20,000 rows, epsilon 1",
        what="root mean square error of the sum",
        measured=Measured.root([(each - float(incomes.sum())) ** 2 for each in released]),
        bound=_removal_bound(incomes[None]),
        source=_REMOVING,
        note=f"the largest value is {incomes.max():,}",
    )


def composition(trials: int) -> Distance:
    """Every range truncated by itself, all for one epsilon."""
    return _way("composition", ComposedTruncation, trials)


def normalization(trials: int) -> Distance:
    """Ranges over the largest value that the universe has."""
    return _way("normalization", Normalization, trials)


def global_truncation(trials: int) -> Distance:
    """Ranges cut at one threshold for all."""
    return _way("global_truncation", GlobalTruncation, trials)


def instance_truncation(trials: int) -> Distance:
    """Ranges cut at thresholds of their own, read off one run of multiplicative weights."""
    return _way("instance_truncation", InstanceTruncation, trials)


def level_trees(trials: int) -> Distance:
    """The largest error over all prefixes of the keys, against a packing of them."""
    packing = _Packing.of(_AGES)
    people = _people().joined(packing.rows, age=_AGES // 2, income=_TOP)
    mechanism = LevelTrees(keys=[_UNIVERSE.axes[0]], value=Integer(0, _LARGEST), epsilon=_EPSILON)
    prefixes = [[BoxTerm((1,), (age,))] for age in range(1, _AGES + 1)]
    truth = np.cumsum(np.bincount(people.ages, people.incomes, _AGES))
    largest = []
    for noise in noises(min(trials, _ENOUGH)):
        release = mechanism.release(people.points, noise=noise)
        largest.append(np.abs([release.sum(terms).value for terms in prefixes] - truth).max())
    return Distance(
        mechanism="level_trees",
        setting=f"sums of a value up to 2^32 over all 128 prefixes of ages, {packing.told}, epsilon 1",
        what="mean of the largest error over all prefixes",
        measured=Measured.mean(largest),
        bound=packing.hidden * _TOP / 2,
        source=_PACKING,
        note=f"k = {packing.rows} rows of {_TOP:,} at one of {_AGES} ages",
    )


def group_means(trials: int) -> Distance:
    """The mean of every age, against what removing the largest rows of each costs any mechanism."""
    people = _people()
    mechanism = GroupMeans(keys=[_UNIVERSE.axes[0]], value=Integer(0, _LARGEST), epsilon=_EPSILON)
    groups = [np.sort(people.incomes[people.ages == age])[::-1] for age in range(_AGES)]
    truth = np.array([rows.mean() for rows in groups])
    squares = []
    for noise in noises(min(trials, _ENOUGH)):
        release = mechanism.release(people.points, noise=noise)
        found = [release.mean([BoxTerm((age + 1,), (age + 1,))]).value for age in range(_AGES)]
        squares.append(np.mean((found - truth) ** 2))
    bounds = [two_points([_shift(rows, m) for m in range(1, _REMOVED)], _EPSILON) for rows in groups]
    return Distance(
        mechanism="group_means",
        setting="means of a value up to 2^32 by 128 ages, 20,000 rows, epsilon 1",
        what="root mean square error over the ages",
        measured=Measured.root(squares),
        bound=sqrt(np.mean(np.square(bounds))),
        source=_REMOVING,
        note="of each age its largest rows are removed, or not",
    )


def _shift(rows: Ints, removed: int) -> float:
    """By how much the mean of some rows, in descending order, falls without the largest of them."""
    return float(rows.mean() - rows[removed:].mean())


def log_tree(trials: int) -> Distance:
    """The largest error over sums of all values up to v, against a packing of the top octave."""
    packing = _Packing.of(_TOP // 2)
    incomes = np.sort(_people().joined(packing.rows, age=0, income=3 * _TOP // 4).incomes)
    ends = np.append(incomes[:: incomes.size // _RANGES], incomes[-1])
    truth = np.array([incomes[incomes <= end].sum() for end in ends])
    mechanism = LogTree(value=Integer(0, _LARGEST), epsilon=_EPSILON)
    points = Points.from_rows((incomes + 1)[:, None], axes=[Axis.of(mechanism.value)])
    largest = []
    for noise in noises(min(trials, _ENOUGH)):
        release = mechanism.release(points, noise=noise)
        found = [release.sum([BoxTerm((1,), (int(end) + 1,))]).value for end in ends]
        largest.append(np.abs(found - truth).max())
    return Distance(
        mechanism="log_tree",
        setting=f"sums of all values up to v, for 100 v, of a value up to 2^32, {packing.told}, epsilon 1",
        what="mean of the largest error over all v",
        measured=Measured.mean(largest),
        bound=packing.hidden * _TOP / 4,
        source=_PACKING,
        note=f"k = {packing.rows} rows of one of the {_TOP // 2:,} values of the octave below {_TOP:,}",
    )


class _Packing(NamedTuple):
    """k equal rows beside others, at one of many places: found there by chance e^(epsilon k) / places."""

    rows: int
    hidden: float

    @classmethod
    def of(cls, places: int) -> _Packing:
        """The k for which most rows remain hidden: k (1 - e^(epsilon k) / places)."""
        return max(
            (cls(k, k * (1 - exp(_EPSILON * k) / places)) for k in range(1, 50)), key=lambda one: one.hidden
        )

    @property
    def told(self) -> str:
        return f"20,000 rows and {self.rows} more"


class _People(NamedTuple):
    """An age and an income for each row; incomes grow with age, by a factor of about 40."""

    ages: Ints
    incomes: Ints

    def joined(self, rows: int, *, age: int, income: int) -> _People:
        """These and as many equal rows more."""
        return _People(np.append(self.ages, [age] * rows), np.append(self.incomes, [income] * rows))

    @property
    def points(self) -> Points:
        before = np.array([axis.before for axis in _UNIVERSE.axes])
        return Points.from_rows(np.stack(self, axis=1) + before, axes=_UNIVERSE.axes)


_UNIVERSE: Final = Universe(["age", "income"], [Integer(0, _AGES - 1), Integer(0, _LARGEST)])


def _people() -> _People:
    rng = np.random.default_rng(10)
    ages = rng.integers(0, _AGES, _ROWS)
    return _People(ages, rng.exponential(2.0 ** (8 + ages / 24)).astype(np.int64).clip(0, _TOP))


def _way(name: str, kind: Any, trials: int) -> Distance:
    """The same ranges of the same rows, whatever the way."""
    people = _people()
    ends = np.sort(np.random.default_rng(11).integers(0, _AGES, (_RANGES, 2)), axis=1)
    weights = people.incomes * ((ends[:, :1] <= people.ages) & (people.ages <= ends[:, 1:]))
    truth = weights.sum(axis=1).astype(float)
    asked = ranges("age", [tuple(pair) for pair in ends.tolist()]) * value("income")
    mechanism = kind(queries=asked, universe=_UNIVERSE, epsilon=_EPSILON)
    released = [mechanism.release(people.points, noise=noise) for noise in noises(min(trials, _ENOUGH))]
    return Distance(
        mechanism=name,
        setting=_SETTING,
        what="root mean square error over the ranges",
        measured=Measured.root([np.mean((each.values - truth) ** 2) for each in released]),
        bound=_removal_bound(weights),
        source=_REMOVING,
        note="the same rows removed from all ranges",
    )


def _removal_bound(weights: Ints) -> float:
    """The least root mean square error over all sums, on these rows or on them without m: one sum a line.

    The two data sets are the same for all sums, so what two points say of each may be added up.
    """
    return two_points(list(_moved(weights.astype(float))), _EPSILON)


def _moved(weights: Floats) -> Iterator[float]:
    """The root mean square over all sums of what 1, 2, 3, ... rows move; any rows will do, so dear ones."""
    moved = np.zeros(len(weights))
    for _ in range(_REMOVED):
        dearest = np.argmax(2 * moved @ weights + (weights**2).sum(axis=0))
        moved = moved + weights[:, dearest]
        weights[:, dearest] = 0
        yield sqrt(np.mean(moved**2))


def two_points(changes: Sequence[float], epsilon: float) -> float:
    """The least root mean square error of a number that 1, 2, 3, ... rows change by so much.

    Of two data sets that are m rows apart, answers S apart, one has at least S / (2 cosh(epsilon m / 2)).

    >>> round(two_points([1, 2, 3], 1.0), 3)
    0.648
    """
    return max(change / (2 * cosh(epsilon * rows / 2)) for rows, change in enumerate(changes, start=1))
