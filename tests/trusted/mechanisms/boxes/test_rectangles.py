"""The default for several columns: what it chooses and by what, what it spends, how well it predicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.guarantee import Neighbors
from partita.public.boxes.base import BoxRelease
from partita.public.boxes.grid import GridRelease
from partita.public.boxes.plan import grid_error, rank_error, tree_error
from partita.public.boxes.rank_boxes import RectanglesRelease
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RecordingNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    tape_noise,
)
from partita.trusted.mechanisms.boxes import GridCounts, RankBoxes, Rectangles, SpendingBoxes
from partita.trusted.noise import SYSTEM, Noise
from partita.trusted.secret import Points

Counts = tuple[int, ...]
Run = Callable[[Counts, Noise], Hashable]
SQUARE = (Axis(size=2), Axis(size=2))
CUBE = (Axis(size=2, labels=True), Axis(size=1, after=1), Axis(size=2))
LABELS = (Axis(size=16, after=2, labels=True),) * 3


def points(counts: Counts, axes: tuple[Axis, ...], contributions: int = 1) -> Points:
    """The points of a small product given by the count of each cell."""
    cells = np.array(counts).reshape([axis.width for axis in axes])
    return Points.from_rows(
        np.argwhere(cells >= 0), axes=axes, counts=cells.ravel(), contributions=contributions
    )


@pytest.mark.parametrize(
    ("axes", "total", "name"),
    [
        ((Axis(size=2**32), Axis(size=2**32)), 10**6, "spending-boxes"),
        ((Axis(size=2**40), Axis(size=3, labels=True)), 10, "spending-boxes"),
        (SQUARE, 10**6, "spending-boxes"),
        ((Axis(size=2**20),) * 3, 10**6, "rank-boxes"),
        ((Axis(size=2**63),) * 6, 0, "rank-boxes"),
        ((Axis(size=1000), Axis(size=1000), Axis(size=5)), 100, "rank-boxes"),
        (CUBE, 10**6, "spending-boxes"),
        ((Axis(size=16),) * 3, 10**6, "spending-boxes"),
        (LABELS, 10**3, "rank-boxes"),
        (LABELS, 10**6, "grid"),
        (LABELS, -5, "spending-boxes"),
    ],
)
def test_the_structure_follows_from_public_facts_and_the_total(
    axes: tuple[Axis, ...], total: int, name: str
) -> None:
    """Two columns: a tree. More: ranks where cells are many, else what is predicted to err least."""
    assert Rectangles(axes=axes, epsilon=1).structure(total=total).name == name


def test_the_least_predicted_error_decides() -> None:
    """Where the total is asked for, no other structure is predicted to err less than the one chosen."""
    for sizes, total in product(
        [(2, 2, 2), (9, 9, 9), (30, 40, 50), (4, 4, 4, 4)], [10, 10**3, 10**5, 10**7]
    ):
        for labels in (False, True):
            axes = [Axis(size=size, after=2, labels=labels) for size in sizes]
            chosen = Rectangles(axes=axes, epsilon=1).structure(total=total)
            errors = [
                structure(axes=axes, epsilon=Fraction(99, 100)).predicted_error(total)
                for structure in (GridCounts, SpendingBoxes, RankBoxes)
            ]
            assert chosen.predicted_error(total) == min(errors)


def test_predictions_are_those_of_the_structure() -> None:
    """What is predicted for so many rows is what the structure for that total predicts, with its share."""
    mechanism = Rectangles(axes=LABELS, epsilon=1)
    grid = GridCounts(axes=LABELS, epsilon="0.99")

    assert (
        mechanism.predicted_error(10**6)
        == grid.predicted_error(10**6)
        == grid_error(LABELS, Fraction(99, 100))
    )
    assert mechanism.predicted_numbers(10**6) == 18**3


def test_the_reason_is_a_sentence_about_public_facts() -> None:
    """Each of the three ways to choose has its own."""
    reasons = {Rectangles(axes=axes, epsilon=1).why for axes in (SQUARE, LABELS, (Axis(size=2**20),) * 3)}

    assert len(reasons) == 3
    assert all(reason.endswith(".") for reason in reasons)


@pytest.mark.parametrize("axes", [[Axis(size=2)], [Axis(size=2)] * 7])
def test_two_to_six_columns_are_taken(axes: list[Axis]) -> None:
    """One column has its own mechanisms, and for more than six there is `views=`."""
    with pytest.raises(InvalidParameter) as refused:
        Rectangles(axes=axes, epsilon=1)

    assert refused.value.parameter == "axes"
    assert ("views=" in refused.value.fix) == (len(axes) > 6)


def released(mechanism: Rectangles) -> Run:
    """All integers that a run publishes, with the kind of its release."""

    def run(counts: Counts, noise: Noise) -> Hashable:
        release = mechanism.release(points(counts, mechanism.axes, mechanism.contributions), noise=noise)
        return release.kind, *_published(release)

    return run


def _published(release: BoxRelease) -> tuple[Hashable, ...]:
    """All facts and all series."""
    parts = release.parts()
    series = sorted((name, tuple(values.tolist())) for name, values in parts.series.items())
    return str(sorted(parts.facts.items())), tuple(series)


def loss(run: Run, one: Counts, other: Counts, seed: int = 0) -> Fraction | float:
    try:
        return coupled(run, one, other, tape_noise(EndlessTape(seed), path="numpy").session())
    except CouplingBroken:
        return math.inf


@pytest.mark.parametrize(("axes", "cells"), [(SQUARE, 4), (CUBE, 8)], ids=["two columns", "three columns"])
@pytest.mark.parametrize(("neighbors", "rows"), [("add-remove", 1), ("add-remove", 2), ("change-one", 1)])
def test_every_row_of_every_neighbor_is_paid_for(
    axes: tuple[Axis, ...], cells: int, neighbors: Neighbors, rows: int
) -> None:
    """Pairs from all over tiny universes couple within epsilon: every tenth of all neighbours."""
    mechanism = Rectangles(axes=axes, epsilon=1, neighbors=neighbors, contributions=rows)
    pairs = change_one_pairs(cells, 1) if neighbors == "change-one" else add_remove_pairs(cells, 1)

    run = released(mechanism)

    assert max(loss(run, one, other) for one, other in list(pairs)[::10]) <= Fraction(1, rows)


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_paid_for_where_the_choice_hangs_on_the_noise(seed: int) -> None:
    """Near a border of the choice a neighbour's total, made the same by noise, chooses the same structure."""
    border = _border()
    one, other = [0] * 18**3, [0] * 18**3
    one[400] = other[400] = border
    other[401] = 1

    assert loss(released(Rectangles(axes=LABELS, epsilon=1)), tuple(one), tuple(other), seed) <= 1


def _border() -> int:
    """About the least total for which the labels are counted one by one."""
    low, high = 10**3, 10**6
    while high - low > 1:
        middle = (low + high) // 2
        grid = Rectangles(axes=LABELS, epsilon=1).structure(total=middle).name == "grid"
        low, high = (low, middle) if grid else (middle, high)
    return high


class _ChosenByTheTruth:
    """A planted bug: the structure hangs on the exact number of rows."""

    def __init__(self, mechanism: Rectangles) -> None:
        self.mechanism = mechanism

    def run(self, counts: Counts, noise: Noise) -> Hashable:
        data = points(counts, self.mechanism.axes)
        release = self.mechanism.structure(total=data.total).release(data, noise=noise)
        return release.kind, *_published(release)


def _spends_twice(counts: Counts, noise: Noise) -> Hashable:
    first = released(Rectangles(axes=CUBE, epsilon=1))(counts, noise)
    return first, int(noise.add(sum(counts), Fraction(100)))


def _bare_total(counts: Counts, noise: Noise) -> Hashable:
    return released(Rectangles(axes=CUBE, epsilon=1))(counts, noise), sum(counts)


def test_a_choice_by_the_truth_is_caught() -> None:
    """If the exact total chose, neighbours on both sides of a border would not couple."""
    border = _border()
    one, other = [0] * 18**3, [0] * 18**3
    one[400], other[400] = border - 1, border
    broken = _ChosenByTheTruth(Rectangles(axes=LABELS, epsilon=1))

    assert loss(broken.run, tuple(one), tuple(other)) == math.inf
    assert loss(released(Rectangles(axes=LABELS, epsilon=1)), tuple(one), tuple(other)) <= 1


@pytest.mark.parametrize("bug", [_spends_twice, _bare_total])
def test_totals_beyond_the_share_are_caught(bug: Run) -> None:
    """A second total, or one without noise, costs more than epsilon for some pair."""
    assert max(loss(bug, one, other) for one, other in list(add_remove_pairs(8, 1))[::50]) > 1


def test_the_total_takes_one_hundredth_and_the_structure_the_rest() -> None:
    """The scales that are asked for are those of the total, and of the structure with 99 hundredths."""
    seen = RecordingNoise(ZeroNoise())
    cells = [0] * 18**3
    cells[7] = 10**6

    release = Rectangles(axes=LABELS, epsilon=1).release(points(tuple(cells), LABELS), noise=seen)

    assert isinstance(release, RectanglesRelease)
    assert release.chosen.kind == "grid"
    assert seen.scales == [Fraction(100), Fraction(100, 99)]


def test_two_columns_spend_nothing_on_the_choice() -> None:
    """The release of two columns is that of a spending tree with all of epsilon, on the same noise."""
    counts = (3, 1, 4, 1)
    tree = SpendingBoxes(axes=SQUARE, epsilon=1)

    chosen = released(Rectangles(axes=SQUARE, epsilon=1))(counts, tape_noise(EndlessTape(2)))
    alone = tree.release(points(counts, SQUARE), noise=tape_noise(EndlessTape(2)))

    assert chosen == ("spending-boxes", *_published(alone))


@pytest.mark.parametrize("rows", [0, 10**3, 10**6])
def test_the_choice_can_be_repeated_by_the_total_in_the_release(rows: int) -> None:
    """The released total leads to the structure that was chosen, and the story tells both."""
    mechanism = Rectangles(axes=LABELS, epsilon=1)
    cells = [0] * 18**3
    cells[7] = rows

    release = mechanism.release(points(tuple(cells), LABELS), noise=tape_noise(EndlessTape(rows)))

    assert isinstance(release, RectanglesRelease)
    assert abs(release.total - rows) < 2000
    assert release.chosen.kind == mechanism.structure(total=release.total).name
    assert f"{max(0, release.total):,} rows chose {release.chosen.kind}." in release.story


class _HugeTotal(ZeroNoise):
    """Noise far out, on single numbers alone."""

    def __init__(self, noise: int) -> None:
        self.noise = noise

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return int(x) + self.noise if np.ndim(x) == 0 else super().add(x, scale, parts=parts)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_total_beyond_all_files_is_clipped(sign: int) -> None:
    """Noise of any size gives a total that a file can hold, and no error."""
    mechanism = Rectangles(axes=CUBE, epsilon=1)
    release = mechanism.release(points((1,) * 8, CUBE), noise=_HugeTotal(sign * 2**80))

    assert isinstance(release, RectanglesRelease)
    assert release.total == sign * 2**63
    assert RectanglesRelease.from_parts(release.parts(), None).total == release.total


@pytest.mark.parametrize("axes", [SQUARE, CUBE])
def test_the_guarantee_is_that_of_the_whole(axes: tuple[Axis, ...]) -> None:
    """A release carries all of epsilon if its noise was secure, else nothing."""
    mechanism = Rectangles(axes=axes, epsilon=1)
    data = points((1,) * math.prod(axis.width for axis in axes), axes)

    assert mechanism.release(data, noise=SYSTEM).guarantee == mechanism.guarantee
    assert mechanism.release(data, noise=ZeroNoise()).guarantee is None


@pytest.mark.parametrize("predict", [tree_error, rank_error])
@pytest.mark.parametrize("labels", [False, True])
def test_predictions_grow_with_rows_and_shrink_with_epsilon(predict: Any, labels: bool) -> None:
    """More rows: no smaller an error. More epsilon: a smaller one. Never more than a few times the grid's."""
    axes = [Axis(size=20, after=2, labels=labels)] * 3
    errors = [predict(axes, Fraction(1), rows) for rows in (0, 10, 10**3, 10**6, 10**12)]

    assert errors == sorted(errors)
    assert errors[-1] <= 3 * grid_error(axes, Fraction(1))
    assert predict(axes, Fraction(2), 10**3) < predict(axes, Fraction(1), 10**3)


def _measured(mechanism: Any, cells: Any) -> float:
    """The root-mean-square error of a release over random boxes."""
    axes = mechanism.axes
    data = Points.from_rows(np.argwhere(cells >= 0), axes=axes, counts=cells.ravel())
    release = mechanism.release(data)
    chance = np.random.default_rng(8)
    ranges = [np.stack(np.triu_indices(axis.width), axis=1) for axis in axes]
    chosen = np.stack([some[chance.integers(0, len(some), 500)] for some in ranges], axis=1)
    lows, highs = chosen[:, :, 0].astype(np.uint64), chosen[:, :, 1].astype(np.uint64)
    exact = GridRelease(axes=axes, noisy=cells.ravel(), scale=Fraction(1))
    return float(np.sqrt(np.mean((release.counts(lows, highs) - exact.counts(lows, highs)) ** 2)))


@pytest.mark.statistics
@pytest.mark.parametrize("rows", [10**3, 10**5])
@pytest.mark.parametrize(
    ("structure", "axes"),
    [
        (GridCounts, (Axis(size=16), Axis(size=16))),
        (SpendingBoxes, (Axis(size=64), Axis(size=64))),
        (SpendingBoxes, (Axis(size=12),) * 3),
        (RankBoxes, (Axis(size=16),) * 3),
    ],
)
def test_errors_are_predicted_within_a_factor_of_two(structure: Any, axes: Any, rows: int) -> None:
    """On Zipf columns the geometric mean of five measured errors is within twice the predicted one."""
    weights = np.ones(())
    for axis in axes:
        weights = np.multiply.outer(weights, 1.0 / np.arange(1, axis.width + 1))
    cells = np.random.default_rng(rows).multinomial(rows, (weights / weights.sum()).ravel())
    mechanism = structure(axes=axes, epsilon=1)

    errors = [_measured(mechanism, cells.reshape([axis.width for axis in axes])) for _ in range(5)]

    assert 0.5 < math.exp(float(np.mean(np.log(errors)))) / mechanism.predicted_error(rows) < 2
