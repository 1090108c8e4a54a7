"""The flat grid: sums of cells, their errors and bounds, curves, regions, made-up rows."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidData, InvalidParameter
from partita.public.bounds import laplace_sum_reach, laplace_variance
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.grid import GridRelease, GridSums, count_overlaps
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.trusted.mechanisms.boxes import GridCounts
from partita.trusted.secret import Points

AXES = (Axis(size=3, before=1, after=2), Axis(size=1), Axis(size=4, after=1, labels=True))
SHAPE = (6, 1, 5)


def release(axes: Any = AXES, *, rows: int = 400, noise: Any = None, **changes: Any) -> GridRelease:
    """A grid of rows at positions that a formula gives."""
    places = [[(i * i + 7 * a) % axis.width for a, axis in enumerate(axes)] for i in range(rows)]
    mechanism = GridCounts(axes=axes, **{"epsilon": 1, **changes})
    return mechanism.release(Points.from_rows(places, axes=axes), noise=noise or tape_noise(EndlessTape(1)))


def all_boxes(shape: tuple[int, ...]) -> list[BoxTerm]:
    ranges = [[(a, b) for a in range(width) for b in range(a, width)] for width in shape]
    return [BoxTerm(tuple(a for a, _ in box), tuple(b for _, b in box)) for box in product(*ranges)]


def corners(boxes: list[BoxTerm]) -> tuple[Any, Any]:
    return np.array([box.low for box in boxes], np.uint64), np.array([box.high for box in boxes], np.uint64)


def summed(grid: GridRelease, box: BoxTerm) -> int:
    """The cells of a box, added one by one."""
    cells = grid.noisy.reshape([axis.width for axis in grid.axes])
    return int(cells[tuple(slice(a, b + 1) for a, b in zip(box.low, box.high, strict=True))].sum())


def test_every_box_is_the_sum_of_its_cells() -> None:
    """On all boxes counts, answers and a plain sum of noisy cells agree, special cells included."""
    grid = release()
    boxes = all_boxes(SHAPE)

    expected = [summed(grid, box) for box in boxes]

    assert grid.counts(*corners(boxes)).tolist() == expected
    assert [grid.answer(box).value for box in boxes] == expected


def test_without_noise_the_counts_are_exact() -> None:
    """Every cell has the number of its rows, and everything has them all."""
    grid = release(noise=ZeroNoise())

    assert grid.answer(grid.everything).value == 400
    assert grid.answer(BoxTerm((1, 0, 2), (1, 0, 2))).value == sum(
        (i * i) % 6 == 1 and (i * i + 14) % 5 == 2 for i in range(400)
    )


def test_standard_errors_count_the_cells() -> None:
    """The variance of a box is that of one cell times the number of cells, exactly."""
    grid = release(epsilon="1/2")
    boxes = all_boxes(SHAPE)

    cells = [math.prod(b - a + 1 for a, b in zip(box.low, box.high, strict=True)) for box in boxes]

    assert grid.errors(*corners(boxes)) == pytest.approx(
        np.sqrt(np.array(cells) * laplace_variance(Fraction(2)))
    )
    assert [grid.answer(box).error for box in boxes] == pytest.approx(grid.errors(*corners(boxes)))


def test_what_is_added_and_taken_away_cancels() -> None:
    """A signed sum has the value of its parts, and the error of the cells that are left in it."""
    grid = release()
    whole, part = BoxTerm((0, 0, 0), (5, 0, 4)), BoxTerm((1, 0, 1), (4, 0, 3), -1)

    answer = grid.answer(whole, part, BoxTerm((2, 0, 2), (2, 0, 2)))

    assert answer.value == summed(grid, whole) - summed(grid, part) + summed(
        grid, BoxTerm((2, 0, 2), (2, 0, 2))
    )
    assert answer.error == pytest.approx(math.sqrt((30 - 12 + 1) * laplace_variance(Fraction(1))))
    assert answer.least == -math.inf
    assert grid.answer(whole, whole._replace(sign=-1)).worst(0.05) == (0.0, 0.0)
    assert grid.answer().value == 0.0


def test_guaranteed_bounds_are_those_of_a_sum_of_noises() -> None:
    """A box of m cells is known to the reach of m noises, and to be no less than zero."""
    grid, box = release(), BoxTerm((1, 0, 0), (3, 0, 3))

    low, high = grid.answer(box).worst(0.05)

    reach = laplace_sum_reach(Fraction(1), 12, 0.05)
    assert (low, high) == (max(0.0, summed(grid, box) - reach), summed(grid, box) + reach)


@pytest.mark.parametrize("axes", [(Axis(size=3), Axis(size=2)), (Axis(size=2), Axis(size=1), Axis(size=2))])
def test_splits_add_up(axes: Any) -> None:
    """Wherever a box is cut in two, the counts of the parts add up to that of the whole."""
    grid = release(axes)
    for box in all_boxes(tuple(axis.width for axis in axes)):
        for axis in range(len(axes)):
            for cut in range(box.low[axis], box.high[axis]):
                left = (*box.high[:axis], cut, *box.high[axis + 1 :])
                right = (*box.low[:axis], cut + 1, *box.low[axis + 1 :])
                parts = [BoxTerm(box.low, left), BoxTerm(right, box.high)]
                assert grid.counts(*corners(parts)).sum() == grid.counts(*corners([box]))[0]


def test_the_bound_for_all_boxes_is_the_smaller_of_two() -> None:
    """Few cells: every box at its share of beta; many: all corners at once. An axis of one cell is none."""
    few = GridRelease(axes=(Axis(size=2), Axis(size=1)), noisy=np.zeros(2, np.int64), scale=Fraction(1))
    long = GridRelease(
        axes=(Axis(size=10_000), Axis(size=1)), noisy=np.zeros(10_000, np.int64), scale=Fraction(1)
    )

    assert few.error(0.05) == laplace_sum_reach(Fraction(1), 2, 0.05 / 3)
    assert long.error(0.05) == 2 * laplace_sum_reach(Fraction(1), 10_000, 0.05 / 2)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_curves_rise_and_end_near_the_count(axis: int) -> None:
    """Along every axis the curve of a box without noise has just its counts, and with noise it rises."""
    exact, noisy = release(noise=ZeroNoise()), release(rows=20)
    box = BoxTerm((1, 0, 1), (4, 0, 3))

    cells = [BoxTerm(_at(box.low, axis, p), _at(box.high, axis, p)) for p in range(SHAPE[axis])]

    assert exact.along(axis, box).counts.tolist() == exact.counts(*corners(cells)).tolist()
    assert bool((noisy.along(axis, box).counts >= 0).all())
    assert noisy.along(axis, box).ends.tolist() == list(range(SHAPE[axis]))


def _at(ends: tuple[int, ...], axis: int, place: int) -> tuple[int, ...]:
    return (*ends[:axis], place, *ends[axis + 1 :])


class _Share:
    """A region that takes a given share of every cell, by its place along the last axis."""

    def __init__(self, *shares: float) -> None:
        self.by_place = np.array(shares)

    def shares(self, lows: Any, highs: Any) -> Any:
        assert bool((lows == highs).all())
        return self.by_place[lows[:, -1].astype(np.int64)]


def test_regions_take_cells_by_their_share() -> None:
    """The value is the sum of shares of cells; for certain, cells that are cut may count or not."""
    grid, box = release(), BoxTerm((1, 0, 0), (4, 0, 4))
    by_place = [summed(grid, BoxTerm((1, 0, p), (4, 0, p))) for p in range(5)]

    answer = grid.region(_Share(1.0, 0.5, 0.0, 0.0, 0.25), box)

    assert answer.value == pytest.approx(by_place[0] + by_place[1] / 2 + by_place[4] / 4)
    low, high = answer.worst(0.05)
    assert low == max(0.0, by_place[0] - laplace_sum_reach(Fraction(1), 4, 0.05))
    assert high == by_place[0] + by_place[1] + by_place[4] + laplace_sum_reach(Fraction(1), 12, 0.05)
    assert answer.error > math.sqrt((1 + 0.25 + 0.0625) * 4 * laplace_variance(Fraction(1)))


def test_regions_of_everything_and_of_nothing_are_plain_counts() -> None:
    """A region that holds the box has its count and error; one that misses it is exactly zero."""
    grid, box = release(), BoxTerm((1, 0, 0), (4, 0, 4))

    whole, none = grid.region(_Share(*[1.0] * 5), box), grid.region(_Share(*[0.0] * 5), box)

    assert (whole.value, whole.error) == pytest.approx((grid.answer(box).value, grid.answer(box).error))
    assert whole.worst(0.05) == grid.answer(box).worst(0.05)
    assert (none.value, none.error, none.worst(0.05)) == (0.0, 0.0, (0.0, 0.0))


def test_made_up_rows_follow_the_counts() -> None:
    """As many rows as there are give exact data again; those of nobody lie in no special cell."""
    exact = release(noise=ZeroNoise())
    rows = exact.points(400)

    again = Points.from_rows(rows, axes=AXES)
    empty = GridCounts(axes=AXES, epsilon=1).release(Points.from_rows([], axes=AXES), noise=ZeroNoise())

    assert (
        GridCounts(axes=AXES, epsilon=1).release(again, noise=ZeroNoise()).noisy.tolist()
        == exact.noisy.tolist()
    )
    assert empty.points(12).tolist() == [[i, 0, j] for i in (1, 2, 3) for j in range(4)]
    assert exact.points(0).shape == (0, 3)


@pytest.mark.parametrize("rows", [0, 1, 3, 10**4])
def test_made_up_rows_are_as_many_as_asked_for(rows: int) -> None:
    """Also where most noisy counts are below zero."""
    assert len(release(rows=2, epsilon="1/100").points(rows)) == rows


@pytest.mark.parametrize(
    ("rows", "axes"),
    [
        ([], AXES),
        ([[2, 0, 3]], AXES),
        ([[5, 0, 4]] * 50, AXES),
        ([[i, i] for i in range(9)], (Axis(size=9), Axis(size=9))),
        ([[0, i, 0] for i in range(7)], (Axis(size=4), Axis(size=7), Axis(size=1))),
        ([[0]] * 3, (Axis(size=1),)),
        ([[i, 2] for i in range(5)], (Axis(size=2**20), Axis(size=3))),
    ],
    ids=["nobody", "one", "all equal", "diagonal", "empty axes", "one cell", "long and short"],
)
def test_breaking_cases_are_counted(rows: Any, axes: Any) -> None:
    """Everything counts all rows, and a box of one cell those in it."""
    grid = GridCounts(axes=axes, epsilon=1).release(Points.from_rows(rows, axes=axes), noise=ZeroNoise())

    assert grid.answer(grid.everything).value == len(rows)
    for place in rows[:3]:
        assert grid.answer(BoxTerm(tuple(place), tuple(place))).value == rows.count(place)
    assert math.isfinite(grid.error(0.05))


def test_counts_beyond_64_bits_are_summed_exactly() -> None:
    """Where sums of noisy counts leave 64 bits, they are sums of Python ints."""
    large = 2**61
    axes = (Axis(size=3), Axis(size=3))
    grid = GridRelease(axes=axes, noisy=np.full(9, large), scale=Fraction(1))

    assert grid.sums.of(*corners([grid.everything]))[0] == 9 * large


@pytest.mark.parametrize("width", [2**22 + 1, 2**40])
def test_large_products_are_refused(width: int) -> None:
    """More than 2^22 cells, special cells included, are too many to count one by one."""
    with pytest.raises(InvalidParameter) as refused:
        GridCounts(axes=[Axis(size=width), Axis(size=1)], epsilon=1)

    assert refused.value.parameter == "axes"
    assert "2^22" in refused.value.rule


def test_more_than_six_axes_are_refused_with_a_way_out() -> None:
    """The error names `views=`."""
    with pytest.raises(InvalidParameter, match="views=") as refused:
        GridCounts(axes=[Axis(size=2)] * 7, epsilon=1)

    assert refused.value.parameter == "axes"


@pytest.mark.parametrize("axes", [[], None, "axes", [3], (Axis(size=2), None)])
def test_axes_must_be_axes(axes: Any) -> None:
    """Anything else is a typed error that names the parameter."""
    with pytest.raises(InvalidParameter) as refused:
        GridCounts(axes=axes, epsilon=1)

    assert refused.value.parameter == "axes"


@pytest.mark.parametrize(
    "points",
    [
        Points.from_rows([[77, 0]], axes=[Axis(size=99), Axis(size=1)]),
        Points.from_rows([[1, 0, 1]], axes=AXES, contributions=2),
        [[1, 0, 77]],
        None,
    ],
)
def test_wrong_data_are_refused_before_any_draw(points: Any) -> None:
    """Other axes, looser contributions, or no points at all: nothing is drawn and no value is shown."""
    with pytest.raises((InvalidData, InvalidParameter)) as refused:
        GridCounts(axes=AXES, epsilon=1).release(points, noise=ForbiddenNoise())

    assert "77" not in str(refused.value)


@pytest.mark.parametrize(
    "box",
    [
        BoxTerm((0, 0), (1, 1)),
        BoxTerm((0, 0, 0), (6, 0, 0)),
        BoxTerm((0, 0, -1), (1, 0, 1)),
        BoxTerm((2, 0, 0), (1, 0, 0)),
        BoxTerm((0, 0, 0), (1, 0, 1), 2),
    ],
)
def test_boxes_that_are_none_are_refused(box: BoxTerm) -> None:
    """Ends must be positions on their axes, in order, one pair for each axis; a sign is 1 or -1."""
    grid = release()

    with pytest.raises(InvalidParameter):
        grid.answer(box)


@pytest.mark.parametrize(
    ("lows", "highs"),
    [
        ([[0, 0, 0]], [[6, 0, 0]]),
        ([[0, 0, -1]], [[1, 0, 1]]),
        ([[2, 0, 0]], [[1, 0, 0]]),
        ([[0, 0]], [[1, 1]]),
        ([[0, 0, 0]] * 2, [[1, 0, 1]]),
        ([[0, 0, 0]], [[1, 0, 2**64]]),
    ],
)
def test_arrays_of_boxes_that_are_none_are_refused(lows: Any, highs: Any) -> None:
    """The same for many boxes at once."""
    grid = release()

    for ask in (grid.counts, grid.errors):
        with pytest.raises(InvalidParameter):
            ask(lows, highs)


def test_no_boxes_have_no_counts() -> None:
    """An empty array of boxes gives an empty array of counts."""
    none = np.zeros((0, 3), np.uint64)

    assert release().counts(none, none).shape == release().errors(none, none).shape == (0,)


def test_boxes_are_laid_over_each_other_cell_by_cell() -> None:
    """The numbers of cells for each sum of signs are those of a plain count over all cells."""
    seen = np.random.default_rng(5)
    for _ in range(50):
        ends = np.sort(seen.integers(0, 5, (4, 3, 2)), axis=2)
        boxes = [
            (tuple(box[:, 0].tolist()), tuple(box[:, 1].tolist()), int(sign))
            for box, sign in zip(ends, seen.choice([-1, 1], 4), strict=True)
        ]
        cells = np.zeros((5, 5, 5), np.int64)
        for low, high, sign in boxes:
            cells[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))] += sign
        factors, numbers = np.unique(cells[cells != 0], return_counts=True)
        assert count_overlaps(boxes) == dict(zip(factors.tolist(), numbers.tolist(), strict=True))


def test_a_hundred_thousand_boxes_are_one_call() -> None:
    """Corners of a summed-area table: as many boxes as anybody asks, without a loop over them."""
    grid = GridSums(np.ones((100, 100), np.int64))
    ends = np.sort(np.random.default_rng(0).integers(0, 100, (2, 100_000, 2)), axis=0).astype(np.uint64)

    assert grid.of(*ends).tolist() == (ends[1] - ends[0] + np.uint64(1)).prod(axis=1).tolist()
