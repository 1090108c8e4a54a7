"""Rank boxes: exact without noise, sound on everything that breaks, consistent, and bounded."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.arrays import Floats
from partita.domain import Integer
from partita.domain.axis import Axis
from partita.errors import InvalidData, InvalidParameter
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.plan import Corners
from partita.public.boxes.rank_boxes import RankBoxesRelease
from partita.public.boxes.regions import HalfSpace
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.trusted.mechanisms.boxes import RankBoxes
from partita.trusted.secret import Points

AGES = (Axis(size=100, before=1, after=2), Axis(size=3, labels=True), Axis(size=2**40))


def _words(seed: object, shape: tuple[int, ...]) -> Any:
    return EndlessTape(seed).take(int(np.prod(shape))).reshape(shape)


def _dependent(rows: int = 4000) -> Corners:
    """Rows of which the columns depend on each other."""
    word = _words("rows", (rows, 3))
    age = (word[:, 0] % 103 + word[:, 1] % 103) // 2
    return np.stack([age, (age > 50) + word[:, 1] % 2, age * 2**30 + word[:, 2] % 2**32], axis=1)


def _release(places: Any, axes: Sequence[Axis], *, epsilon: object = 1, seed: object = 0) -> RankBoxesRelease:
    points = Points.from_rows(np.array(places, np.uint64).reshape(-1, len(axes)), axes=axes)
    return RankBoxes(axes=axes, epsilon=epsilon).release(points, noise=tape_noise(EndlessTape(seed)))


def _boxes(axes: Sequence[Axis], count: int) -> tuple[Corners, Corners]:
    """Boxes with ends anywhere, the box of everything first."""
    widths = np.array([axis.width for axis in axes], np.uint64)
    ends = _words("boxes", (2, count, len(axes))) % widths
    lows, highs = ends.min(axis=0), ends.max(axis=0)
    lows[0], highs[0] = 0, widths - np.uint64(1)
    return lows, highs


def _truth(places: Corners, lows: Corners, highs: Corners) -> Floats:
    inside = (places >= lows[:, None]) & (places <= highs[:, None])
    return np.asarray(inside.all(axis=2).sum(axis=1).astype(np.float64))


def test_without_noise_large_counts_are_exact() -> None:
    """Every box over 4 x 4 x 4 cells of thousands of rows is counted to a thousandth."""
    axes = [Axis(size=4)] * 3
    cells = np.array(list(product(range(4), repeat=3)), np.uint64)
    counts = 1000 + (_words("counts", (64,)) % 9000).astype(np.int64)
    points = Points.from_rows(cells, axes=axes, counts=counts)

    release = RankBoxes(axes=axes, epsilon=1).release(points, noise=ZeroNoise())

    lows, highs = _boxes(axes, 100)
    inside = ((cells >= lows[:, None]) & (cells <= highs[:, None])).all(axis=2)
    assert release.counts(lows, highs) == pytest.approx(inside @ counts, rel=1e-3)


def test_one_tape_gives_one_release() -> None:
    """The same noise gives the same release, number by number."""
    one, other = (_release(_dependent(), AGES) for _ in range(2))

    assert one.parts().digest == other.parts().digest


def test_only_real_noise_carries_the_guarantee() -> None:
    """A release made with injected noise promises nothing; one with fresh noise promises epsilon."""
    points = Points.from_rows(_dependent(50), axes=AGES)
    mechanism = RankBoxes(axes=AGES, epsilon="1/2")

    assert mechanism.release(points).guarantee == mechanism.guarantee
    assert mechanism.release(points, noise=ZeroNoise()).guarantee is None
    assert mechanism.guarantee.epsilon == Fraction(1, 2)


WIDE = (Axis(size=2**40), Axis(size=3), Axis(size=2**63))
BREAKING: dict[str, tuple[Sequence[Axis], Any]] = {
    "nobody": (AGES, []),
    "one row": (AGES, [[50, 1, 2**39]]),
    "all rows alike": (AGES, np.tile([50, 1, 2**39], (200_000, 1))),
    "a diagonal": ([Axis(size=64)] * 4, [[i % 64] * 4 for i in range(5000)]),
    "axes of one cell": ([Axis(size=1)] * 3, [[0, 0, 0]] * 500),
    "one axis of one cell": (
        [Axis(size=9), Axis(size=1), Axis(size=9)],
        [[i % 9, 0, i % 3] for i in range(900)],
    ),
    "axes of all sizes": (WIDE, [[2**40 - 1, 2, 2**63 - 1], [0, 0, 0]] * 700),
    "everybody special": (
        [Axis(size=9, before=1, after=3)] * 3,
        [[[0, 10, 11, 12][i % 4]] * 3 for i in range(2000)],
    ),
    "labels": ([Axis(size=5, after=1, labels=True)] * 4, [[i % 6, i % 5, 0, i % 2] for i in range(3000)]),
    "six axes": ([Axis(size=2**20)] * 6, [[i * 37 % 2**20] * 6 for i in range(3000)]),
    "two axes": ([Axis(size=2**32)] * 2, [[i * 2**20, i] for i in range(3000)]),
}


@pytest.mark.parametrize("name", list(BREAKING))
@pytest.mark.parametrize("epsilon", ["1", "1/100000"])
@pytest.mark.spread(10)
def test_whatever_breaks_other_trees_is_answered(name: str, epsilon: str) -> None:
    """Counts are finite, not negative, at most the whole, with errors and bounds, and can be made up."""
    axes, rows = BREAKING[name]
    release = _release(rows, axes, epsilon=epsilon, seed=name)
    lows, highs = _boxes(axes, 40)

    counts, errors = release.counts(lows, highs), release.errors(lows, highs)
    answer = release.answer(release.everything)
    low, high = answer.worst(0.05)

    assert bool((counts >= 0).all())
    assert bool((counts <= counts[0] * (1 + 1e-9)).all())
    assert bool(np.isfinite(errors).all())
    assert bool((errors > 0).all())
    assert low <= answer.value <= high
    assert np.isfinite(release.error(0.05))
    assert release.points(7).shape == (7, len(axes))
    assert "leaves" in release.story


@pytest.mark.parametrize("name", list(BREAKING))
def test_large_heaps_are_found(name: str) -> None:
    """At epsilon 1 the whole is near the number of rows, and all rows alike are found in their cell."""
    axes, rows = BREAKING[name]
    release = _release(rows, axes, seed=name)

    assert release.counts(*_boxes(axes, 1))[0] == pytest.approx(len(rows), abs=150)
    if name == "all rows alike":
        cell = np.array([[50, 1, 2**39]], np.uint64)
        assert release.counts(cell, cell)[0] == pytest.approx(200_000, rel=0.02)


def test_the_parts_of_a_split_add_up() -> None:
    """A box cut in two along any axis is the sum of its parts, in answers, in counts and along axes."""
    release = _release(_dependent(), AGES)
    lows, highs = _boxes(AGES, 30)
    for axis in range(3):
        wide = highs[:, axis] > lows[:, axis]
        first, behind = highs.copy(), lows.copy()
        middle = lows[:, axis] + (highs[:, axis] - lows[:, axis]) // np.uint64(3)
        first[:, axis], behind[:, axis] = middle, middle + np.uint64(1)
        whole = release.counts(lows, highs)[wide]
        parts = release.counts(lows, first)[wide] + release.counts(behind[wide], highs[wide])

        assert parts == pytest.approx(whole, rel=1e-6, abs=1e-6)


def test_curves_along_an_axis_are_counts_of_boxes() -> None:
    """The increments of `along` are what `counts` gives for the same boxes."""
    release = _release(_dependent(), AGES)
    lows, highs = _boxes(AGES, 12)
    for low, high in zip(lows, highs, strict=True):
        for axis in range(3):
            curve = release.along(axis, BoxTerm(tuple(low.tolist()), tuple(high.tolist())))
            (found,) = curve.between(low[[axis]], high[[axis]])
            assert found == pytest.approx(release.counts(low[None], high[None])[0], rel=1e-6, abs=1e-6)


def test_answers_are_counts_with_errors() -> None:
    """`answer` gives the value and the error that `counts` and `errors` give, and signed sums subtract."""
    release = _release(_dependent(), AGES)
    lows, highs = _boxes(AGES, 8)
    counts, errors = release.counts(lows, highs), release.errors(lows, highs)
    for at, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
        answer = release.answer(BoxTerm(tuple(low), tuple(high)))
        less = release.answer(release.everything, BoxTerm(tuple(low), tuple(high), -1))

        assert answer.value == pytest.approx(counts[at], abs=1e-6)
        assert answer.error == pytest.approx(errors[at], rel=1e-6)
        assert less.value == pytest.approx(counts[0] - counts[at], abs=1e-6)


def test_ranges_of_one_column_are_as_sure_as_their_view() -> None:
    """Along one axis no error exceeds that of the view, alone or in signed sums, and no interval `worst`."""
    release = _release(_dependent(), AGES)
    whole = release.everything
    for low, high in ((30, 31), (50, 55), (1, 50)):
        term = whole._replace(low=(low, 0, 0), high=(high, *whole.high[1:]))
        taken = whole._replace(low=(60, 0, 0), high=(70, *whole.high[1:]), sign=-1)
        sides = [BoxTerm(box.low[:1], box.high[:1], box.sign) for box in (term, taken)]
        answer, view = release.answer(term), release.views.trees[0]

        assert answer.error <= view.answer(sides[0]).error
        assert release.answer(term, taken).error <= view.answer(*sides).error
        assert release.answer(term, term).error == pytest.approx(2 * answer.error, rel=0.1)
        assert release.answer(term, term._replace(sign=-1), term).error == answer.error
        assert answer.worst(0.05)[0] <= answer.interval(0.95)[0]
        assert answer.interval(0.95)[1] <= answer.worst(0.05)[1]


def test_small_special_cells_are_within_their_bars() -> None:
    """17 rows below the domain, alone or with half of another axis: 11 of 12 intervals hold the truth."""
    places = _dependent()
    places[places[:, 0] == 0, 0] = 1
    places[:17, 0] = 0
    lows = np.zeros((2, 3), np.uint64)
    highs = np.array([[0, 2, 2**40 - 1], [0, 2, 2**35]], np.uint64)
    truth = _truth(places, lows, highs)
    held = np.zeros(2)
    for seed in range(12):
        release = _release(places, AGES, epsilon="1/5", seed=seed)
        held += np.abs(release.counts(lows, highs) - truth) <= 1.96 * release.errors(lows, highs)

    assert held.min() >= 11


def test_a_region_has_no_more_rows_than_the_views_allow() -> None:
    """The rows of a region are bounded by all of its box, as the views count them."""
    release = _release(_dependent(), AGES)
    box = BoxTerm((5, 0, 0), (6, 2, 2**40 - 1))
    everywhere = HalfSpace({"age": 1}, at_most=1000).bound(("age",), (Integer(0, 99),))

    high = release.region(everywhere, box).bounds(0.05)[1]

    assert high <= release.views.bounds(box, 0.025)[1]


def test_views_make_guaranteed_bounds_tighter() -> None:
    """A box is bounded by the rows between its sides along each axis: the tree alone allows more."""
    places = np.concatenate([_dependent(), np.tile(np.array([[90, 0, 0]], np.uint64), (4000, 1))])
    release = _release(places, AGES)
    box = BoxTerm((5, 0, 0), (6, 2, 2**40 - 1))

    low, high = release.answer(box).bounds(0.05)
    wider = release.engine.bounds([box], 0.025)

    assert wider[0] <= low <= _truth(places, *(np.array([end], np.uint64) for end in box[:2]))[0] <= high
    assert high < wider[1]


def test_guaranteed_bounds_hold() -> None:
    """The truth of all boxes is within `worst` and `error`, which may fail once in ten thousand times."""
    places = _dependent()
    lows, highs = _boxes(AGES, 6)
    truth = _truth(places, lows, highs)
    for seed in range(6):
        release = _release(places, AGES, seed=seed)
        assert np.abs(release.counts(lows, highs) - truth).max() <= release.error(1e-4)
        for low, high, true in zip(lows.tolist(), highs.tolist(), truth, strict=True):
            least, most = release.answer(BoxTerm(tuple(low), tuple(high))).worst(1e-4)
            assert least <= true <= most


def test_the_tree_knows_what_independence_does_not() -> None:
    """Where one column follows from another, boxes off the diagonal are nearly empty in the answers."""
    axes = [Axis(size=1024)] * 3
    word = _words("diagonal", (20_000,)) % 1024
    release = _release(np.stack([word, word, 1023 - word], axis=1), axes)
    lows = np.array([[0, 512, 0], [0, 0, 512]], np.uint64)
    highs = np.array([[511, 1023, 1023], [511, 511, 1023]], np.uint64)

    off, on = release.counts(lows, highs)

    assert off < 300
    assert on == pytest.approx(10_000, abs=400)


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"axes": [Axis(size=4)]}, "axes"),
        ({"axes": [Axis(size=4)] * 7}, "axes"),
        ({"axes": "many"}, "axes"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "1e-30"}, "epsilon"),
        ({"epsilon": "1e30"}, "epsilon"),
        ({"contributions": 0}, "contributions"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(changes: dict[str, Any], parameter: str) -> None:
    """What cannot be is refused by a typed error that names the parameter."""
    with pytest.raises(InvalidParameter) as caught:
        RankBoxes(**{"axes": AGES, "epsilon": 1, **changes})

    assert caught.value.parameter == parameter


def test_foreign_data_are_refused_before_anything_is_drawn() -> None:
    """Points on other axes, or with more contributions than are protected, cost nothing."""
    mechanism = RankBoxes(axes=AGES, epsilon=1)
    other = Points.from_rows([[1, 1, 1]], axes=[Axis(size=4)] * 3)
    more = Points.from_rows([[1, 1, 1]], axes=AGES, contributions=2)

    with pytest.raises(InvalidData):
        mechanism.release(other, noise=ForbiddenNoise())
    with pytest.raises(InvalidParameter):
        mechanism.release(more, noise=ForbiddenNoise())


def test_predictions_follow_epsilon_and_rows() -> None:
    """More epsilon means smaller errors and larger releases."""
    weak, strong = (RankBoxes(axes=AGES, epsilon=epsilon) for epsilon in ("1/10", 1))

    assert strong.predicted_error(10**5) < weak.predicted_error(10**5) < 10**5
    assert strong.predicted_numbers(10**6) > weak.predicted_numbers(10**6)


@pytest.mark.parametrize("rows", [500, 4000])
def test_predicted_sizes_are_near(rows: int) -> None:
    """The number of integers is predicted within a factor of four."""
    release = _release(_dependent(rows), AGES)
    numbers = sum(series.size for series in release.parts().series.values())

    predicted = RankBoxes(axes=AGES, epsilon=1).predicted_numbers(rows)

    assert numbers / 4 < predicted < 4 * numbers


@pytest.mark.statistics
def test_guaranteed_bounds_fail_rarely_enough() -> None:
    """Of 150 releases of fresh noise with beta = 0.2 no box is missed by more than 60, nor by `error`.

    At a rate of 0.2 more than 60 misses of 150 have probability 5e-9.
    """
    axes = [Axis(size=8)] * 3
    places = _words("few", (60, 3)) % 8
    points = Points.from_rows(places, axes=axes)
    lows, highs = _boxes(axes, 3)
    truth = _truth(places, lows, highs)
    missed = np.zeros(4)
    for _ in range(150):
        release = RankBoxes(axes=axes, epsilon=1).release(points)
        missed[3] += np.abs(release.counts(lows, highs) - truth).max() > release.error(0.2)
        for at, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
            least, most = release.answer(BoxTerm(tuple(low), tuple(high))).bounds(0.2)
            missed[at] += not least <= truth[at] <= most

    assert missed.max() <= 60


COSTS = (Axis(size=121, before=1, after=3), Axis(size=10**9 + 1, before=1, after=3), Axis(size=40))


@pytest.mark.parametrize("outside", [0, 60])
def test_special_cells_beside_a_heap_are_held(outside: int) -> None:
    """Three of five costs are zero: all intervals hold the cell below, and 11 of 12 one of three cells."""
    word = _words("costs", (6_000, 4))
    cost = np.where(word[:, 1] % 5 < 3, 1, 2 + (word[:, 2] % 2**20) // (1 + word[:, 3] % 2**10))
    places = np.stack([1 + word[:, 0] % 100, cost, word[:, 3] % 40], axis=1).astype(np.uint64)
    places[:outside, 1] = 0
    truth = {0: outside, COSTS[1].width - 3: 0, COSTS[1].width - 1: 0}

    missed = []
    for seed in range(4):
        release = _release(places, COSTS, seed=seed)
        for place, rows in truth.items():
            found = release.answer(BoxTerm((0, place, 0), (COSTS[0].width - 1, place, COSTS[2].width - 1)))
            low, high = found.interval(0.95)
            missed += [] if low <= rows <= high else [place]
    assert 0 not in missed
    assert len(missed) <= 1
