"""Exact counts of combinations of bins: the same as counting row by row, whatever holds the rows."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import combinations
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.public.boxes.bins import AxisBins
from partita.testing.doubles import ScatteredPoints
from partita.trusted.secret import PointCounts, Points
from partita.trusted.tables import MOST_COUNTED

AXES: Final = (Axis(size=5, before=1, after=3), Axis(size=3, after=2, labels=True), Axis(size=2**63, after=1))
BINS: Final = (
    AxisBins.from_edges([0, 3, 8]),
    AxisBins.from_lookup([1, 0, 1, 2, 3]),
    AxisBins.from_edges([9, 2**40, 2**63]),
)
SETS: Final = [(0,), (1,), (2,), (0, 1), (2, 0), (1, 2, 0)]
ROWS: Final = st.lists(
    st.tuples(
        st.integers(0, 8), st.integers(0, 4), st.sampled_from([0, 9, 10, 2**40, 2**40 + 1, 2**63 - 1, 2**63])
    ),
    max_size=40,
)


def by_hand(rows: list[tuple[int, ...]], weights: list[int], chosen: tuple[int, ...]) -> Any:
    """A table that is counted row by row; the bin of a position is found by comparing it with each edge."""
    table = np.zeros([BINS[axis].number for axis in chosen], np.int64)
    for row, weight in zip(rows, weights, strict=True):
        table[tuple(find_bin(BINS[axis], row[axis]) for axis in chosen)] += weight
    return table


def find_bin(bins: AxisBins, position: int) -> int:
    if bins.edges is None:
        assert bins.lookup is not None
        return int(bins.lookup[position])
    return sum(edge < position for edge in bins.edges.tolist())


def points_of(rows: list[tuple[int, ...]], weights: list[int]) -> Points:
    return Points.from_rows(np.array(rows, np.uint64).reshape(len(rows), 3), axes=AXES, counts=weights)


@given(ROWS, st.randoms(use_true_random=False))
def test_tables_are_counted_row_by_row(rows: list[tuple[int, ...]], random: Any) -> None:
    """Each row is in one combination of bins of each set, special cells included, whatever its weight."""
    weights = [random.choice([1, 1, 2, 7]) for _ in rows]
    points = points_of(rows, weights)

    for held in (points, ScatteredPoints(points)):
        for chosen, table in zip(SETS, held.tables(SETS, BINS), strict=True):
            assert table.dtype == np.int64
            assert table.tolist() == by_hand(rows, weights, chosen).tolist()


def test_many_rows_are_counted_in_chunks() -> None:
    """Tables of more rows than one chunk holds, and tables with more cells than that, are exact."""
    numbers = np.arange(50_000)
    rows = np.stack([numbers % 300, numbers % 7, numbers % 1009], axis=1)
    axes = [Axis(size=300), Axis(size=7), Axis(size=1009)]
    points, bins = Points.from_rows(rows, axes=axes), [AxisBins.identity(axis.width) for axis in axes]

    for chosen, table in zip(SETS, points.tables(SETS, bins), strict=True):
        told = Counter(map(tuple, rows[:, chosen].tolist()))
        assert {place: int(table[place]) for place in told} == dict(told)
        assert table.sum() == len(rows)


def test_weights_beyond_floats_are_exact() -> None:
    """Counts that add up to more than 2^53 are added as integers."""
    points = Points.from_rows([[0], [1], [2]], axes=[Axis(size=3)], counts=[2**60 + 1, 1, 2**53 + 1])

    [table] = points.tables([(0,)], [AxisBins.from_edges([1, 2])])

    assert table.tolist() == [2**60 + 2, 2**53 + 1]


def test_bins_as_wide_as_a_byte_do_not_wrap() -> None:
    """A table of 1 x 256 and one of 256 x 256 cells have a place for each combination."""
    axes = [Axis(size=1), Axis(size=256), Axis(size=256)]
    points = Points.from_rows([[0, 255, 255]], axes=axes)

    one, two = points.tables([(0, 1), (1, 2)], [AxisBins.identity(axis.width) for axis in axes])

    assert (one[0, 255], two[255, 255], one.sum(), two.sum()) == (1, 1, 1, 1)


class CountingReads(PointCounts):
    """Points that note how often they are read."""

    def __init__(self, points: Points) -> None:
        self.axes, self.contributions, self.points, self.reads = points.axes, 1, points, 0

    def folded(self, work: Any) -> Any:
        self.reads += 1
        return self.points.folded(pickle.loads(pickle.dumps(work)))

    def alone(self, axis: int) -> Points:
        return self.points.alone(axis)

    def along(self, axis: int) -> Any:
        return self.points.along(axis)


def test_one_pass_counts_all_sets() -> None:
    """The rows are read once for a list of sets, by a function that can travel."""
    held = CountingReads(points_of([(1, 2, 3)], [1]))

    held.tables([*SETS, *combinations(range(3), 2)], BINS)

    assert held.reads == 1


@pytest.mark.parametrize(
    ("sets", "bins"),
    [
        ([()], BINS),
        ([(0, 0)], BINS),
        ([(3,)], BINS),
        ([(-1,)], BINS),
        ([(0,)], BINS[:2]),
        ([(0,)], BINS[::-1]),
        ([(0, 1)] * (MOST_COUNTED // 12 + 1), BINS),
    ],
)
def test_wrong_sets_are_refused(sets: Any, bins: Any) -> None:
    """Sets name different axes, there are bins of each axis, and the counts fit in memory."""
    with pytest.raises(InvalidParameter):
        points_of([(1, 2, 3)], [1]).tables(sets, bins)


def test_no_sets_are_no_tables() -> None:
    """An empty list of sets gives an empty list."""
    assert points_of([(1, 2, 3)], [1]).tables([], BINS) == []
