"""Sums over half-spaces and polygons of two keys, and what to publish where they cannot be answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.regions import HalfSpace, Polygon, PublicRegion
from partita.public.grammar import parse_question
from partita.public.queries.language import value
from partita.public.release import Release
from partita.public.sums.level_trees import LevelTreesRelease
from partita.public.sums.view import SumView, ViewKeyCounts
from partita.publish.publish import publish
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.mechanisms.sums import LevelTrees
from partita.trusted.secret import Points

KEYS = {"age": Integer(0, 9), "stay": Integer(0, 7)}
COST = Integer(0, 1023)
RANDOM = np.random.default_rng(3)
ROWS = np.stack([RANDOM.integers(0, 10, 20_000), RANDOM.integers(0, 8, 20_000)], axis=1)
COSTS = np.minimum(ROWS.sum(axis=1) * 4 + RANDOM.integers(0, 30, 20_000), 1023)
TRIANGLE = Polygon("age", "stay", [(-0.5, -0.5), (7.5, -0.5), (-0.5, 7.5)])
pytestmark = pytest.mark.filterwarnings("ignore::partita.PrivacyWarning")  # so that cells are parts

SHAPES: list[tuple[PublicRegion, Callable[[Any, Any], Any]]] = [
    (HalfSpace({"age": 1}, at_most=4.5), lambda age, stay: age <= 4.5),
    (HalfSpace({"stay": -1}, at_most=-2.5), lambda age, stay: stay >= 2.5),
    (
        Polygon("age", "stay", [(1.5, 0.5), (6.5, 0.5), (6.5, 5.5), (1.5, 5.5)]),
        lambda age, stay: (age > 1.5) & (age < 6.5) & (stay > 0.5) & (stay < 5.5),
    ),
]


def _sums(noise: Any, epsilon: int = 1000) -> LevelTreesRelease:
    axes = [*map(Axis.of, KEYS.values())]
    before = [axis.before for axis in (*axes, Axis.of(COST))]
    points = Points.from_rows(np.column_stack([ROWS, COSTS]) + before, axes=[*axes, Axis.of(COST)])
    return LevelTrees(keys=axes, value=COST, epsilon=epsilon).release(points, noise=noise)


@pytest.fixture
def make(together: Any) -> Callable[[Any], Release]:
    """A release of the counts of both keys, and of what costs sum up to."""

    def released(sums: LevelTreesRelease) -> Release:
        counted: Any = together(
            views=[("age", "stay")], age=(KEYS["age"], ROWS[:, 0]), stay=(KEYS["stay"], ROWS[:, 1])
        )
        promise = replace(counted.guarantee, epsilon=Fraction(10_000))
        view = SumView(
            keys=("age", "stay"),
            column="cost",
            declared={**KEYS, "cost": COST},
            sums=replace(sums, guarantee=promise),
            beside=ViewKeyCounts.of_sums(counted.views, ("age", "stay"), "cost"),
            mechanism="level-trees",
        )
        release: Release = replace(counted, sums=(view,), guarantee=counted.guarantee + promise)
        return release

    return released


@pytest.mark.parametrize(("shape", "inside"), SHAPES, ids=["age", "stay", "box"])
def test_without_noise_shapes_of_whole_cells_are_exact(make: Any, shape: PublicRegion, inside: Any) -> None:
    """They are the sums of the rows in them, and those of conditions where these say the same."""
    release = make(_sums(ZeroNoise()))

    assert release.sum("cost", region=shape).value == pytest.approx(COSTS[inside(*ROWS.T)].sum())
    both = inside(*ROWS.T) & (ROWS[:, 0] >= 3)
    assert release.sum("cost", age=(3, 9), region=shape).value == pytest.approx(COSTS[both].sum())


@pytest.mark.parametrize("shape", [TRIANGLE, HalfSpace({"age": 1, "stay": 1}, at_most=7)])
def test_cells_that_a_shape_cuts_count_by_their_share(make: Any, shape: PublicRegion) -> None:
    """Half of what lies on the diagonal counts, and guaranteed bounds hold for all of it and for nothing."""
    release = make(_sums(ZeroNoise()))
    total = ROWS.sum(axis=1)

    found = release.sum("cost", region=shape)

    assert found.value == pytest.approx(COSTS[total < 7].sum() + COSTS[total == 7].sum() / 2, rel=1e-9)
    low, high = found.worst()
    assert low <= COSTS[total < 7].sum()
    assert high >= COSTS[total <= 7].sum()


def test_bounds_hold_with_noise() -> None:
    """On fixed tapes the truth, whose rows may lie anywhere in cut cells, is within the bounds."""
    region = TRIANGLE.bound(tuple(KEYS), tuple(KEYS.values()))
    everything = BoxTerm(*_ordinary())
    for seed in range(10):
        release = _sums(tape_noise(EndlessTape(("shapes", seed))), epsilon=1)
        found = release.sum_in(region, [everything])
        for most in (6, 7):
            low, high = found.worst()
            assert low <= COSTS[ROWS.sum(axis=1) <= most].sum() <= high
        assert found.error > 0


def _ordinary() -> tuple[tuple[int, ...], tuple[int, ...]]:
    axes = [*map(Axis.of, KEYS.values())]
    return tuple(axis.before for axis in axes), tuple(axis.before + axis.size - 1 for axis in axes)


@pytest.mark.parametrize(
    ("ask", "fix"),
    [
        (
            lambda r: r.sum("cost", region=HalfSpace({"age": 1, "weight": 1}, at_most=7)),
            r"by=\['age', 'weight'\]",
        ),
        (lambda r: r.sum("cost", ward=3, region=HalfSpace({"age": 1}, at_most=7)), r"by=\['age', 'ward'\]"),
        (lambda r: r.sum("price", region=TRIANGLE), r"sums=\['price'\]|did you mean"),
        (lambda r: r.sum("cost", region=5), "HalfSpace"),
    ],
)
def test_what_cannot_be_answered_says_what_to_publish(make: Any, ask: Any, fix: str) -> None:
    """Columns by which nothing was summed together, columns without sums, and what is no shape."""
    with pytest.raises(InvalidParameter, match=fix):
        ask(make(_sums(ZeroNoise())))


def test_a_sum_over_a_half_space_is_written_like_a_count(make: Any) -> None:
    """In text, with conditions and in other words, and it survives being written."""
    release = make(_sums(tape_noise(EndlessTape("text")), epsilon=1))
    asked = parse_question("total of cost where stay >= 2 and age + 2*stay <= 9")

    found = asked.kind.ask(release, **asked.arguments)

    shape = HalfSpace({"age": 1, "stay": 2}, at_most=9)
    assert found.value == release.sum("cost", stay=(2, None), region=shape).value
    assert found.value != release.sum("cost", stay=(2, None)).value
    assert parse_question(str(asked)) == asked
    with pytest.raises(InvalidParameter):
        parse_question("mean of cost where age + 2*stay <= 9")


def test_a_release_of_queries_says_which_query_sums_over_a_shape() -> None:
    """It has no sums by keys, and the weight of the shape times the value is what to publish."""
    rows = {"age": [1, 2], "stay": [1, 2], "cost": [5, 6]}
    release = publish(
        rows, {**KEYS, "cost": COST}, epsilon=1, queries=value("cost"), mechanism="normalization"
    )

    with pytest.raises(InvalidParameter, match=r"queries=weights\(\('age', 'stay'\), .*\* value\('cost'\)"):
        release.sum("cost", region=TRIANGLE)


def test_a_key_may_be_called_region(make: Any) -> None:
    """Then what is no shape is a condition on it, as it was before there were shapes."""
    release = make(_sums(ZeroNoise()))
    (view,) = release.sums
    renamed = replace(
        view, keys=("age", "region"), declared={"age": KEYS["age"], "region": KEYS["stay"], "cost": COST}
    )

    found = replace(release, sums=(renamed,)).sum("cost", region=(0, 2))

    assert found.value == pytest.approx(COSTS[ROWS[:, 1] <= 2].sum())
