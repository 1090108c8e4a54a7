"""Pictures of the mechanisms for sums: incomes by age, released by the shipped code on a fixed tape."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.domain import Integer
from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.public.queries.language import ranges, value
from partita.public.queries.queries import Universe
from partita.public.sums.knots import clear_level
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
from scripts.pictures.style import BLUE, FAINT, ORANGE, canvas, fixed_noise

_EPSILON: Final = 1
_AGES: Final = 64
_DECLARED: Final = 2**24
_STEP: Final = 8
_UNIVERSE: Final = Universe(["age", "income"], [Integer(0, _AGES - 1), Integer(0, _DECLARED)])
_ENDS: Final = [(low, low + _STEP - 1) for low in range(0, _AGES, _STEP)]
_NAMES: Final = [f"{low}-{high}" for low, high in _ENDS]


def level_trees() -> Any:
    """A row laid on the two knots around its value, and the sums that follow from all of them."""
    figure, (left, right) = canvas(columns=2)
    _draw_hats(left)
    people = _people()
    mechanism = LevelTrees(keys=[_UNIVERSE.axes[0]], value=Integer(0, _DECLARED), epsilon=_EPSILON)
    release = mechanism.release(people.points, noise=fixed_noise())
    asked = [release.sum([BoxTerm((low + 1,), (high + 1,))]) for low, high in _ENDS]
    _draw_sums(right, people, [one.value for one in asked], [one.error for one in asked])
    return figure


def group_means() -> Any:
    """A row split between the two ends of the clip, and the means that follow, with their intervals."""
    figure, (left, right) = canvas(columns=2)
    _draw_split(left)
    people = _people()
    mechanism = GroupMeans(keys=[_UNIVERSE.axes[0]], value=Integer(0, _DECLARED), epsilon=_EPSILON)
    release = mechanism.release(people.points, noise=fixed_noise())
    ages = np.arange(0, _AGES, 2)
    found = [release.mean([BoxTerm((age + 1,), (age + 1,))]) for age in ages.tolist()]
    values = np.array([one.value for one in found])
    bars = np.abs(np.array([one.interval() for one in found]).T - values)
    truth = [people.inside(age, age).mean() for age in ages.tolist()]
    right.plot(ages, truth, color=FAINT, lw=4, alpha=0.6, label="secret means")
    right.errorbar(ages, values, bars, fmt="o", ms=3, color=BLUE, label="released, 95% intervals")
    right.set(title="mean of income by age", xlabel="age")
    right.legend(loc="upper left")
    return figure


def log_tree() -> Any:
    """Sums of all incomes up to v, and the octaves whose cells are counted."""
    figure, axes = canvas()
    incomes = np.sort(_people().incomes)
    mechanism = LogTree(value=Integer(0, _DECLARED), epsilon=_EPSILON)
    points = Points.from_rows((incomes + 1)[:, None], axes=[Axis.of(mechanism.value)])
    release = mechanism.release(points, noise=fixed_noise())
    ends = 2.0 ** np.linspace(4, 17, 27)
    found = [release.sum([BoxTerm((1,), (int(end) + 1,))]) for end in ends]
    for octave in range(8, 18):
        axes.axvline(2.0**octave, color=FAINT, lw=0.5, alpha=0.5)
    axes.plot(incomes, incomes.cumsum() / 1e6, color=FAINT, lw=4, alpha=0.6, label="secret sums")
    _draw_points(axes, ends, [one.value for one in found], [one.error for one in found])
    axes.set(xscale="log", xlim=(16, 2**17), xlabel="incomes up to v, and a line at every octave")
    axes.set_ylabel("sum, millions")
    axes.legend(loc="upper left")
    return figure


def knot_total() -> Any:
    """Noisy masses on doubling knots, those that are covered, and what a silent knot may hold."""
    figure, axes = canvas()
    incomes = _people().incomes
    mechanism = KnotTotal(value=Integer(0, _DECLARED), epsilon=_EPSILON)
    points = Points.from_rows((incomes + 1)[:, None], axes=[Axis.of(mechanism.value)])
    side = mechanism.release(points, noise=fixed_noise()).estimate.up
    places = np.arange(side.knots.size)
    colors = [BLUE] * side.top + [FAINT] * (places.size - side.top)
    axes.bar(places, side.masses, color=colors, label=f"noisy masses, the first {side.top} are covered")
    axes.axhline(3 * side.noise, color=ORANGE, ls="--", label="the next knot is covered above this")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_xticks(places[::2], [f"{knot:,.0f}" for knot in side.knots[::2]])
    axes.set(xlabel="knot: each is twice the one before", ylabel="rows")
    axes.legend(loc="upper right")
    return figure


def single_truncation() -> Any:
    """Noisy counts of octaves, what they must exceed, and the threshold that follows."""
    figure, axes = canvas()
    mechanism = SingleTruncation(queries=value("income"), universe=_UNIVERSE, epsilon=_EPSILON)
    release = mechanism.release(_people().points, noise=fixed_noise())
    octaves = np.arange(len(release.tops))
    clear = clear_level(release.octave_scale, len(release.tops) - 1)
    chosen = int(np.log2(float(release.cuts[0]))) + 1
    axes.bar(octaves, release.octaves[0].astype(float), color=BLUE, label="released counts of rows")
    axes.axhline(clear, color=FAINT, ls="--", label=f"clear above {clear}")
    axes.axvline(chosen + 0.5, color=ORANGE, label=f"threshold 2^{chosen - 1}")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_xticks(octaves[::3], ["0", *(f"2^{octave - 1}" for octave in octaves[3::3])])
    axes.set(xlabel="octave of the weight of a row", ylabel="rows")
    axes.legend(loc="upper right")
    return figure


def composition() -> Any:
    """Every range is cut near its own largest income, for an eighth of epsilon."""
    mechanism = ComposedTruncation(queries=_asked(), universe=_UNIVERSE, epsilon=_EPSILON)
    release = mechanism.release(_people().points, noise=fixed_noise())
    return _draw_way(release, release.cuts.astype(float))


def normalization() -> Any:
    """All ranges are divided by the largest income that was declared, and their answers drown."""
    mechanism = Normalization(queries=_asked(), universe=_UNIVERSE, epsilon=_EPSILON)
    release = mechanism.release(_people().points, noise=fixed_noise())
    return _draw_way(release, [_DECLARED] * len(_ENDS))


def global_truncation() -> Any:
    """All ranges are cut near the largest income of anybody."""
    mechanism = GlobalTruncation(queries=_asked(), universe=_UNIVERSE, epsilon=_EPSILON)
    release = mechanism.release(_people().points, noise=fixed_noise())
    return _draw_way(release, [release.top] * len(_ENDS))


def instance_truncation() -> Any:
    """Every range is cut near its own largest income, and all share one run."""
    mechanism = InstanceTruncation(queries=_asked(), universe=_UNIVERSE, epsilon=_EPSILON)
    release = mechanism.release(_people().points, noise=fixed_noise())
    return _draw_way(release, release.thresholds)


class _People(NamedTuple):
    """Ages and incomes; incomes double with every eight years."""

    ages: NDArray[np.int64]
    incomes: NDArray[np.int64]

    @property
    def points(self) -> Points:
        before = np.array([axis.before for axis in _UNIVERSE.axes])
        return Points.from_rows(np.stack(self, axis=1) + before, axes=_UNIVERSE.axes)

    def inside(self, low: int, high: int) -> NDArray[np.int64]:
        """The incomes of a range of ages."""
        return self.incomes[(self.ages >= low) & (self.ages <= high)]


def _people() -> _People:
    rows = np.arange(20_000)
    ages = rows % _AGES
    evenly = (rows * 0.6180339887498949 + 0.5) % 1
    return _People(ages, (-np.log1p(-evenly) * 2.0 ** (5 + ages / _STEP)).astype(np.int64))


def _asked() -> Any:
    return ranges("age", _ENDS) * value("income")


def _draw_hats(axes: Any) -> None:
    """Knots in their order, whatever their values: a row between two has mass on both."""
    names = ["0", "c/64", "c/16", "c/4", "c/2", "c"]
    places = np.arange(len(names))
    for knot in places:
        axes.plot(places, np.eye(len(names))[knot], color=BLUE, lw=1.2)
    axes.axvline(2.4, color=ORANGE, label="one row: 0.6 and 0.4")
    axes.plot([2.4, 2.4], [0.6, 0.4], "o", color=ORANGE)
    axes.set_xticks(places, names)
    axes.set(title="the mass of a row on the knots", xlabel="value", ylim=(0, 1.3))
    axes.legend(loc="upper right")


def _draw_split(axes: Any) -> None:
    """The mass of a row on both ends of the clip, for every value."""
    values = np.linspace(-0.3, 1.3, 9)
    upper = np.clip(values, 0, 1)
    axes.plot(values, 1 - upper, color=FAINT, lw=2, label="mass on L")
    axes.plot(values, upper, color=BLUE, lw=2, label="mass on H")
    axes.axvline(0.4, color=ORANGE, label="one row: 0.6 and 0.4")
    axes.plot([0.4, 0.4], [0.6, 0.4], "o", color=ORANGE)
    axes.set_xticks([0, 1], ["L", "H"])
    axes.set(title="the mass of a row on the two knots", xlabel="value", ylim=(-0.05, 1.6))
    axes.legend(loc="upper right")


def _draw_way(release: Any, cuts: ArrayLike) -> Any:
    """Where queries are cut, and what is answered."""
    figure, (left, right) = canvas(columns=2)
    people = _people()
    places = np.arange(len(_ENDS))
    largest = [people.inside(*ends).max() for ends in _ENDS]
    left.bar(places, largest, color=FAINT, alpha=0.5, label="secret: largest income")
    left.plot(places, cuts, "_", color=ORANGE, ms=18, mew=2, label="weights are cut here")
    left.set(yscale="log", title="thresholds", ylim=(100, _DECLARED * 40))
    left.set_xticks(places, _NAMES, rotation=45)
    left.legend(loc="upper left")
    _draw_sums(right, people, release.values, release.spreads)
    return figure


def _draw_sums(axes: Any, people: _People, values: ArrayLike, errors: ArrayLike) -> None:
    """Sums by range of age, and released ones."""
    places = np.arange(len(_ENDS))
    truth = [people.inside(*ends).sum() / 1e6 for ends in _ENDS]
    axes.bar(places, truth, color=FAINT, alpha=0.5, label="secret sums")
    _draw_points(axes, places, values, errors)
    axes.set_xticks(places, _NAMES, rotation=45)
    axes.set(title="sums of income by age, millions", ylim=(None, 1.5 * axes.get_ylim()[1]))
    axes.legend(loc="upper left")


def _draw_points(axes: Any, places: Any, values: ArrayLike, errors: ArrayLike) -> None:
    """Released sums in millions, with two standard errors."""
    bars = 2 * np.asarray(errors, dtype=float) / 1e6
    heights = np.asarray(values, dtype=float) / 1e6
    axes.errorbar(places, heights, bars, fmt="o", ms=4, color=BLUE, label="released, ± 2 errors")
