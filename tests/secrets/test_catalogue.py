"""Every mechanism that can be published with, on counts that are kept in many places."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.domain.axis import Axis
from partita.public.queries.language import ranges, value
from partita.public.queries.queries import Universe
from partita.testing import EndlessTape, Scattered, ScatteredPoints, ZeroNoise, tape_noise
from partita.trusted.mechanisms.base import WithSpecials
from partita.trusted.mechanisms.catalogue import axis_mechanisms, box_mechanisms, query_mechanisms
from partita.trusted.mechanisms.sums import LevelTrees, LogTree
from partita.trusted.mechanisms.totals import KnotTotal
from partita.trusted.secret import Histogram, Points

from .likeness import alike

NOISES: dict[str, Callable[[], Any]] = {"none": ZeroNoise, "tape": lambda: tape_noise(EndlessTape(11))}

WIDE = {"intervals", "intervals-paper", "partition-tents", "spending-tree"}
AXES = [Axis(size=40, before=1, after=3), Axis(size=6, after=2, labels=True), Axis(size=12, before=1)]
AGE, INCOME, FAR = Integer(0, 9), Integer(0, 20), Integer(0, 2**40)

SINGLE = value("income")
MANY = ranges("age") * value("income")
SIGNED = Integer(-500, 2**40)


def _scrambled(count: int, below: int, turn: int) -> Any:
    """Numbers below a bound, far from even, the same in every run."""
    steps = np.arange(1, count + 1, dtype=object)
    return np.array([int(step * step * turn) % below >> int(step % 7) for step in steps], dtype=object)


def _histogram(size: int) -> Histogram:
    return Histogram.from_cells(_scrambled(900, size, 7919).astype(np.uint64), size=size)


def _points(axes: Any) -> Points:
    columns = [_scrambled(700, axis.width, 7907 + 12 * place) for place, axis in enumerate(axes)]
    return Points.from_rows(np.stack(columns, axis=1).astype(np.uint64), axes=axes)


def _by_value(work: Any) -> Any:
    """Queries carry functions: they travel by value, as Spark sends them, or stay where there is none."""
    if find_spec("pyspark") is None:
        return work
    cloudpickle = import_module("pyspark.cloudpickle")
    return cloudpickle.loads(cloudpickle.dumps(work))


def _asked(points: Points) -> ScatteredPoints:
    return ScatteredPoints(points, travel=_by_value)


def _same(release: Callable[..., Any], here: Any, elsewhere: Any, noise: str) -> bool:
    make = NOISES[noise]
    return alike(release(here, noise=make()), release(elsewhere, noise=make()))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    ("name", "size"),
    [*((name, 64) for name in axis_mechanisms()), *((name, 2**40) for name in sorted(WIDE))],
)
def test_a_column_is_released_alike_wherever_it_is(name: str, size: int, noise: str) -> None:
    """Of one axis the release is the same, number by number, from counts here and from blocks."""
    mechanism, here = axis_mechanisms()[name](size=size, epsilon=1), _histogram(size)

    assert _same(mechanism.release, here, Scattered(here), noise)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", ["intervals", "spending-tree", "partition-tents"])
def test_so_it_is_for_many_rows(name: str, noise: str) -> None:
    """Where cells are full, other branches are taken."""
    here = Histogram.dense([40 + 11 * cell % 97 for cell in range(300)])
    mechanism = axis_mechanisms()[name](size=300, epsilon=4)

    assert _same(mechanism.release, here, Scattered(here), noise)


def test_special_cells_are_beside_counts_that_are_elsewhere() -> None:
    """A column with special cells is released alike."""
    column = WithSpecials(axis=axis_mechanisms()["tree"](size=64, epsilon=1), specials=("below", "null"))

    def release(data: Any, noise: Any) -> Any:
        return column.release(data, {"below": 3, "null": 40}, noise=noise)

    assert _same(release, _histogram(64), Scattered(_histogram(64)), "tape")


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("epsilon", [1, 30])
@pytest.mark.parametrize("axes", [AXES, AXES[:2]], ids=len)
@pytest.mark.parametrize("name", box_mechanisms())
@pytest.mark.spread(24)
def test_boxes_are_released_alike_wherever_points_are(
    name: str, axes: list[Axis], epsilon: int, noise: str
) -> None:
    """A walk that is taken anew in every block ends where one that is remembered does."""
    mechanism, here = box_mechanisms()[name](axes=axes, epsilon=epsilon), _points(axes)

    assert _same(mechanism.release, here, ScatteredPoints(here), noise)


def test_the_walks_above_have_several_steps() -> None:
    """The trees that were compared are deep, and some of their boxes are leaves before the last level."""
    released = box_mechanisms()["spending-boxes"](axes=AXES, epsilon=30).release(
        _points(AXES), noise=ZeroNoise()
    )

    assert released.shape.levels.size > 3


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", query_mechanisms())
@pytest.mark.spread(10)
def test_queries_are_answered_alike_wherever_points_are(name: str, noise: str) -> None:
    """Workloads, weights and truncations find the same numbers in blocks."""
    queries = SINGLE if name == "single-truncation" else MANY
    universe = Universe(["age", "income"], [AGE, INCOME])
    mechanism = query_mechanisms()[name](queries=queries, universe=universe, epsilon=1)
    here = _points(universe.axes)

    assert _same(mechanism.release, here, _asked(here), noise)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("queries", [ranges("age"), ranges("age") * value("far")], ids=str)
@pytest.mark.parametrize("name", ["linear", "composition"])
def test_large_universes_are_answered_point_by_point(name: str, queries: Any, noise: str) -> None:
    """So they do where the universe is no array."""
    universe = Universe(["age", "far"], [AGE, FAR])
    mechanism = query_mechanisms()[name](queries=queries, universe=universe, epsilon=1)
    here = _points(universe.axes)

    assert _same(mechanism.release, here, _asked(here), noise)


@pytest.mark.parametrize("decomposition", ["none", "binary"])
@pytest.mark.parametrize("name", ["global-truncation", "instance-specific", "normalization"])
@pytest.mark.spread(2)
def test_every_decomposition_is_weighed_alike(name: str, decomposition: str) -> None:
    """However values are taken apart."""
    universe = Universe(["age", "income"], [AGE, INCOME])
    options = {"queries": MANY, "universe": universe, "epsilon": 1, "decomposition": decomposition}
    mechanism, here = query_mechanisms()[name](**options), _points(universe.axes)

    assert _same(mechanism.release, here, _asked(here), "tape")


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("moments", [False, True])
def test_sums_are_released_alike_wherever_points_are(moments: bool, noise: str) -> None:
    """Masses of level trees are Python ints, and add up exactly."""
    mechanism = LevelTrees(keys=[Axis.of(AGE)], value=SIGNED, epsilon=1, moments=moments)
    here = _points([Axis.of(AGE), mechanism.cap.value.axis])

    assert _same(mechanism.release, here, ScatteredPoints(here), noise)


@pytest.mark.parametrize("noise", NOISES)
def test_log_trees_are_released_alike_wherever_points_are(noise: str) -> None:
    """So are counts by octaves."""
    mechanism = LogTree(value=SIGNED, epsilon=1)
    here = _points([mechanism.cells.line.axis])

    assert _same(mechanism.release, here, ScatteredPoints(here), noise)


@pytest.mark.parametrize("noise", NOISES)
def test_totals_are_released_alike_wherever_points_are(noise: str) -> None:
    """So are magnitudes and masses on knots."""
    mechanism = KnotTotal(value=SIGNED, epsilon=1)
    here = _points([Axis.of(SIGNED)])

    assert _same(mechanism.release, here, ScatteredPoints(here), noise)
