"""Trees without a root, weighted levels, covers of many ranges, and the errors of Smith and Ullman."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from partita import Histogram, InvalidParameter, Tree
from partita.public.axis.base import Hierarchy
from partita.public.bounds import (
    difference_error,
    independent_error,
    largest_reach,
    spread_ranges,
    square_root_error,
    tree_error,
)
from partita.testing import ZeroNoise


@pytest.mark.parametrize(
    ("size", "branching", "widths"),
    [(1, 2, (1,)), (2, 2, (1,)), (8, 2, (1, 2, 4)), (9, 3, (1, 3)), (10, 3, (1, 3, 9)), (5, 16, (1,))],
)
def test_without_a_root_the_level_below_is_the_last(
    size: int, branching: int, widths: tuple[int, ...]
) -> None:
    """The root is left out, unless it is the only level, and the scale has a level less in it."""
    tree = Tree(size=size, epsilon=1, branching=branching, root=False)

    assert tree.widths == widths
    assert tree.scale == len(widths)


def test_levels_share_epsilon_by_their_weights() -> None:
    """Level l gets the share w_l / sum(w), so shares add up to epsilon exactly, whatever the factor."""
    tree = Tree(size=9, epsilon="1/7", branching=3, weights=("0.1", 3, "1/3"), contributions=5)
    same = Tree(size=9, epsilon="1/7", branching=3, weights=(3, 90, 10), contributions=5)

    assert sum(5 / scale for scale in tree.scales) == Fraction(1, 7)
    assert tree.scales == same.scales
    assert tree.scale == max(tree.scales) == tree.scales[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": (1, 2)},
        {"weights": (1, 2, 0, 1)},
        {"weights": (1, 2, -1, 1)},
        {"weights": (1, 2, "x", 1)},
        {"weights": 4},
        {"weights": "1111"},
        {"root": 1},
        {"consistent": 1},
        {"branching": 2**31},
    ],
    ids=str,
)
def test_bad_shapes_are_named(changes: dict[str, Any]) -> None:
    """The error names the parameter that breaks its rule."""
    with pytest.raises(InvalidParameter) as error:
        Tree(size=8, epsilon=1, **changes)

    assert [error.value.parameter] == list(changes)


@given(st.data(), st.integers(1, 300), st.integers(2, 7), st.booleans())
def test_no_cover_has_more_nodes_than_allowed(
    data: st.DataObject, size: int, branching: int, root: bool
) -> None:
    """Covers are exact with and without a root, and keep to the largest number of nodes on each level."""
    shape = Hierarchy.of(size=size, branching=branching, root=root)
    low = data.draw(st.integers(0, size - 1))
    high = data.draw(st.integers(low, size - 1))

    covered: list[int] = []
    numbers = [0] * shape.levels
    for level, first, behind in shape.cover(low, high):
        numbers[level] += behind - first
        covered += range(first * shape.widths[level], min(size, behind * shape.widths[level]))

    assert sorted(covered) == list(range(low, high + 1))
    assert all(number <= most for number, most in zip(numbers, shape.most, strict=True))
    assert numbers == [int(each[0]) for each in shape.numbers(np.array([low]), np.array([high]))]


@given(st.integers(1, 40), st.integers(2, 5), st.booleans())
def test_covers_are_the_shortest(size: int, branching: int, root: bool) -> None:
    """No set of nodes side by side makes up an interval with fewer, by a shortest path over all nodes."""
    shape = Hierarchy.of(size=size, branching=branching, root=root)
    nodes = [
        (node * width, min(size, (node + 1) * width))
        for width, number in zip(shape.widths, shape.nodes, strict=True)
        for node in range(number)
    ]
    for low in range(0, size, 3):
        least = {low: 0}
        for start in range(low, size):
            for first, behind in nodes:
                if first == start and start in least:
                    least[behind] = min(least.get(behind, size), least[start] + 1)
        for high in range(low, size):
            assert sum(b - a for _, a, b in shape.cover(low, high)) == least[high + 1]


def test_a_million_ranges_are_answered_in_blocks() -> None:
    """More ranges than fit in a block give the same answers as a few."""
    tree = Tree(size=100, epsilon=1, branching=3)
    release = tree.release(Histogram.dense(range(100)), noise=ZeroNoise())
    lows = np.tile(np.arange(50, dtype=np.uint64), 2000)
    highs = np.repeat(np.arange(50, 100, dtype=np.uint64), 2000)

    expected = [
        sum(range(int(low), int(high) + 1)) for low, high in zip(lows[::997], highs[::997], strict=True)
    ]

    assert release.counts(lows, highs)[::997].tolist() == expected


# --- the formulas, against laws computed without sampling ---------------------------------------


def _noise_law(scale: Fraction, reach: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    values = np.arange(-reach, reach + 1)
    masses = np.exp(-np.abs(values) / float(scale))
    return values, masses / masses.sum()


def _expected_largest_over_intervals(shape: Hierarchy, scale: Fraction, reach: int) -> float:
    """E of the largest error over all intervals, by enumeration of the noises of all nodes."""
    values, masses = _noise_law(scale, reach)
    count = sum(shape.nodes)
    grids = np.meshgrid(*[np.arange(values.size)] * count, indexing="ij", sparse=True)
    place = np.concatenate([[0], np.cumsum(shape.nodes)])
    largest: Any = 0
    for low, high in product(range(shape.size), repeat=2):
        if low <= high:
            error: Any = sum(
                values[grids[place[level] + node]]
                for level, first, behind in shape.cover(low, high)
                for node in range(first, behind)
            )
            largest = np.maximum(largest, np.abs(error))
    weight: Any = 1.0
    for grid in grids:
        weight = weight * masses[grid]
    return float((largest * weight).sum())


@pytest.mark.parametrize(
    ("size", "branching", "root", "scale", "reach"),
    [
        (2, 2, True, Fraction(2), 40),
        (2, 2, False, Fraction(5), 100),
        (3, 3, True, Fraction(1, 2), 8),
        (3, 2, False, Fraction(1, 2), 6),
        (4, 4, False, Fraction(1), 14),
        (3, 2, True, Fraction(1, 3), 4),
    ],
)
def test_equation_15_and_its_square_root_version_bound_the_exact_expectation(
    size: int, branching: int, root: bool, scale: Fraction, reach: int
) -> None:
    """Over all noises of a small tree, the expected largest error of an interval is below both formulas."""
    shape = Hierarchy.of(size=size, branching=branching, root=root)
    exact = _expected_largest_over_intervals(shape, scale, reach)
    terms, intervals = sum(shape.most), size * (size + 1) // 2

    assert 0 < exact <= tree_error(scale, sum(shape.nodes), terms)
    assert exact <= square_root_error(scale, intervals, terms)


@pytest.mark.parametrize(
    "scale", [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(40)]
)
@pytest.mark.parametrize("number", [1, 2, 10, 1000, 10**6])
def test_the_largest_of_independent_noises_is_bounded(scale: Fraction, number: int) -> None:
    """E max |X_i|, summed from the exact tail of integer noise, is at most scale (ln number + 1)."""
    falling = math.exp(-1 / scale)
    steps = np.arange(1, int(scale * (math.log(number) + 45)) + 2)
    exact = float((-np.expm1(number * np.log1p(-2 * falling**steps / (1 + falling)))).sum())

    assert exact <= independent_error(scale, number)


def test_equation_10_is_the_one_in_the_notes() -> None:
    """For D = 2^k, change-one neighbours and k levels: 2 log2(D) (ln(2D - 1) + 1) / epsilon."""
    size, epsilon = 1024, Fraction(1, 2)
    tree = Tree(size=size, epsilon=epsilon, neighbors="change-one")

    stated = 2 * math.log2(size) * (math.log(2 * size - 1) + 1) / epsilon

    assert tree.node_error == pytest.approx(float(stated))


def test_the_square_root_version_wins_where_covers_are_long() -> None:
    """The bound of a tree is the smaller of the two: (15) for two cells, the square root for many."""
    wide = Tree(size=2**16, epsilon=1, consistent=False)
    terms = sum(wide.shape.most)

    assert wide.largest_error == square_root_error(wide.scale, 2**15 * (2**16 + 1), terms)
    assert wide.largest_error < tree_error(wide.scale, 2**17 - 1, terms) / 2


def test_differences_double_the_error() -> None:
    """(7) is twice the largest error of a prefix."""
    assert difference_error(Fraction(9), 9) == 2 * 9 * (math.log(9) + 1)


@pytest.mark.parametrize("scale", [Fraction(1, 9), Fraction(1), Fraction(50), Fraction(10**6, 7)])
@pytest.mark.parametrize("number", [1, 7, 10**6])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-9])
def test_the_reach_of_the_largest_noise_is_the_least_integer(
    scale: Fraction, number: int, beta: float
) -> None:
    """The union bound over exact tails is at most beta there and, to rounding, above beta one below."""
    reach = largest_reach(scale, number, beta)
    falling = math.exp(-1 / scale)

    def chance(t: float) -> float:
        return number * 2 * math.pow(falling, t + 1) / (1 + falling)

    assert reach == int(reach) >= 0
    assert chance(reach) <= beta
    assert reach == 0 or chance(reach - 1) > beta * (1 - 1e-6)


@pytest.mark.parametrize("size", [1, 5, 90, 91, 10**6, 2**30])
def test_spread_ranges_are_ranges(size: int) -> None:
    """They lie in the universe, in order, and their mean width is about a third of it."""
    lows, highs = spread_ranges(size)

    assert int(lows.min()) >= 0
    assert int(highs.max()) < size
    assert bool((lows <= highs).all())
    assert float((highs - lows + 1).mean()) == pytest.approx((size + 2) / 3, rel=0.02)
