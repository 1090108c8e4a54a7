"""Consistent trees: exact least squares against dense linear algebra, and what follows from it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita import Histogram, Tree, TreeRelease
from partita.arrays import Floats
from partita.public.axis.base import Hierarchy, Term
from partita.public.axis.consistent import LevelSolver
from partita.public.bounds import laplace_variance, square_root_error
from partita.testing import EndlessTape, ZeroNoise, tape_noise

SIZES = (1, 2, 3, 7, 8, 9, 16, 26, 33)


def weighted(size: int, branching: int, root: bool, uneven: bool) -> Tree:
    levels = Hierarchy.of(size=size, branching=branching, root=root).levels
    weights = [Fraction(1 + 5 * level % 7, 3) for level in range(levels)] if uneven else None
    return Tree(size=size, epsilon=1, branching=branching, root=root, weights=weights)


def noisy(tree: Tree, seed: object = 0) -> TreeRelease:
    counts = [(11 * cell) % 17 for cell in range(tree.size)]
    return tree.release(Histogram.dense(counts), noise=tape_noise(EndlessTape(("consistent", seed))))


class Dense:
    """The same problem as matrices: a row of cells for each node, and the inverse of the normal equations."""

    def __init__(self, release: TreeRelease) -> None:
        self.nodes = np.array(
            [
                [node * width <= cell < (node + 1) * width for cell in range(release.size)]
                for width, number in zip(release.shape.widths, release.shape.nodes, strict=True)
                for node in range(number)
            ],
            np.float64,
        )
        noise = [laplace_variance(scale) for scale in release.scales]
        self.precision = 1.0 / np.repeat(noise, release.shape.nodes)
        self.covariance = np.linalg.inv(self.nodes.T @ (self.precision[:, None] * self.nodes))
        self.cells = self.covariance @ (self.nodes.T @ (self.precision * np.concatenate(release.levels)))

    def weights(self, question: Floats) -> Floats:
        """How the answer to a question is put together from the noisy nodes."""
        return np.asarray(self.precision * (self.nodes @ (self.covariance @ question)))


def question(size: int, terms: list[Term]) -> Floats:
    cells = np.zeros(size)
    for low, high, sign in terms:
        cells[low : high + 1] += sign
    return cells


@pytest.mark.parametrize(
    ("size", "branching", "root", "uneven"),
    [*product(SIZES, (2, 3), (True, False), (True, False)), (20, 5, True, True), (10, 16, True, False)],
)
def test_all_ranges_are_those_of_the_dense_solution(
    size: int, branching: int, root: bool, uneven: bool
) -> None:
    """Values and standard errors of all ranges are the generalised least-squares ones, to rounding."""
    release = noisy(weighted(size, branching, root, uneven))
    dense = Dense(release)
    lows, highs = (ends.astype(np.uint64) for ends in np.triu_indices(size))
    ranges = np.array(
        [question(size, [Term(int(low), int(high))]) for low, high in zip(lows, highs, strict=True)]
    )

    expected = np.sqrt(np.einsum("ij,jk,ik->i", ranges, dense.covariance, ranges))

    assert release.counts(lows, highs) == pytest.approx(ranges @ dense.cells, abs=1e-8)
    assert release.errors(lows, highs) == pytest.approx(expected)
    assert expected.max() ** 2 <= release.solver.largest_variance * (1 + 1e-9)


@given(st.data(), st.integers(1, 40), st.integers(2, 5), st.booleans(), st.booleans())
@settings(max_examples=60)
def test_questions_have_the_weights_of_the_dense_solution(
    data: st.DataObject, size: int, branching: int, root: bool, uneven: bool
) -> None:
    """For a signed sum of ranges every noise has its exact weight, so bounds are those of the true law."""
    release = noisy(weighted(size, branching, root, uneven))
    cells = st.integers(0, size - 1)
    pairs = data.draw(st.lists(st.tuples(cells, cells, st.sampled_from([1, -1])), min_size=1, max_size=4))
    terms = [Term(min(a, b), max(a, b), sign) for a, b, sign in pairs]

    dense, noise = Dense(release), release.solver.noise_of(terms)
    expected = dense.weights(question(size, terms))
    sizes = np.repeat(noise.sizes, noise.times.astype(np.int64))

    answer = release.answer(*terms)
    assert np.sort(sizes[sizes > 1e-12]) == pytest.approx(np.sort(np.abs(expected)[np.abs(expected) > 1e-12]))
    assert answer.value == pytest.approx(float(question(size, terms) @ dense.cells), abs=1e-8)
    assert answer.error**2 == pytest.approx(float(expected**2 @ (1.0 / dense.precision)), abs=1e-9)


@pytest.mark.parametrize("branching", [2, 3, 7])
@pytest.mark.parametrize("root", [True, False])
def test_ranges_add_up(branching: int, root: bool) -> None:
    """A range is the sum of its cells and of any parts side by side; a raw tree's is not."""
    release = noisy(Tree(size=100, epsilon=1, branching=branching, root=root))
    raw = replace(release, consistent=False)

    def gap(each: TreeRelease) -> float:
        whole = each.count(0, 49).value
        return abs(whole - sum(each.count(cell, cell).value for cell in range(50)))

    assert gap(release) < 1e-9 < 1 <= gap(raw)
    assert release.count(3, 90).value == pytest.approx(
        release.count(3, 40).value + release.count(41, 90).value
    )


@pytest.mark.parametrize(("size", "branching"), [(64, 2), (100, 3), (1000, 10)])
@pytest.mark.parametrize("root", [True, False])
def test_no_range_has_a_larger_error_than_its_cover(size: int, branching: int, root: bool) -> None:
    """Least squares has the smallest variance of all unbiased linear answers, that of a cover among them."""
    release = noisy(Tree(size=size, epsilon=1, branching=branching, root=root))
    ends = np.sort(EndlessTape((size, root)).take(2_000).reshape(2, -1) % np.uint64(size), axis=0)

    mine = release.errors(ends[0], ends[1])
    covers = replace(release, consistent=False).errors(ends[0], ends[1])

    assert bool((mine <= covers * (1 + 1e-12)).all())
    assert float((mine**2).mean()) < 0.8 * float((covers**2).mean())
    assert release.error(0.05) < replace(release, consistent=False).error(0.05)


def test_a_million_cells_are_solved_and_agree_with_their_questions() -> None:
    """On a tree that no matrix holds, the error of a question is that of the climb, for ranges anywhere."""
    size = 2**20 - 3
    release = noisy(Tree(size=size, epsilon=1, branching=4))
    ranges = [(0, 0), (0, size - 1), (5, 2**19), (size - 1, size - 1), (2**18, size - 2), (77, 78)]
    lows, highs = np.array(ranges, np.uint64).T

    one_by_one = [release.count(low, high).error for low, high in ranges]

    assert release.errors(lows, highs).tolist() == pytest.approx(one_by_one)


def test_the_spread_over_tapes_is_the_standard_error() -> None:
    """Over 1,500 fixed tapes the spread of a range is its stated standard error, to within a tenth."""
    tree, data = Tree(size=23, epsilon=1, branching=3), Histogram.dense([3] * 23)
    answers = [tree.release(data, noise=tape_noise(EndlessTape(seed))).count(2, 15) for seed in range(1_500)]

    values = np.array([answer.value for answer in answers])

    assert float(values.std()) == pytest.approx(answers[0].error, rel=0.1)
    assert float(values.mean()) == pytest.approx(42, abs=4 * answers[0].error / math.sqrt(1_500))


def test_one_climb_moves_no_count_that_agrees() -> None:
    """Without noise all nodes agree, and every answer is a whole number to the last bit."""
    counts = [(7 * cell) % 5 for cell in range(1_000)]
    release = Tree(size=1_000, epsilon="1/7", branching=3, root=False).release(
        Histogram.dense(counts), noise=ZeroNoise()
    )

    assert release.count(17, 803).value == sum(counts[17:804])


def test_a_file_says_whether_it_is_consistent() -> None:
    """The option is stored; a file that does not mention it is raw, as files of earlier versions are."""
    release = noisy(Tree(size=9, epsilon=1))
    old = release.parts()._replace(facts={**release.parts().facts})
    del old.facts["consistent"]  # type: ignore[attr-defined]

    again, raw = (TreeRelease.from_parts(parts, None) for parts in (release.parts(), old))

    assert again.count(2, 7).value == release.count(2, 7).value
    assert raw.count(2, 7).value == replace(release, consistent=False).count(2, 7).value
    assert "consistent" not in raw.parts().facts


def _expected_largest(release: TreeRelease, reach: int) -> float:
    """E of the largest error over all ranges of a small tree, by enumeration of the noises of all nodes."""
    dense, size = Dense(release), release.size
    values = np.arange(-reach, reach + 1)
    count = len(dense.nodes)
    grids = np.meshgrid(*[values] * count, indexing="ij", sparse=True)
    weight: Any = 1.0
    for grid, scale in zip(
        grids, np.repeat([float(s) for s in release.scales], release.shape.nodes), strict=True
    ):
        masses = np.exp(-np.abs(values) / scale)
        weight = weight * (np.exp(-np.abs(grid) / scale) / masses.sum())
    largest: Any = 0.0
    for low, high in product(range(size), repeat=2):
        if low <= high:
            factors = dense.weights(question(size, [Term(low, high)]))
            error: Any = sum(factor * grid for factor, grid in zip(factors, grids, strict=True))
            largest = np.maximum(largest, np.abs(error))
    return float((largest * weight).sum())


@pytest.mark.parametrize(
    ("size", "branching", "root", "epsilon", "reach"),
    [(2, 2, True, 1, 22), (3, 3, True, 2, 12), (3, 2, False, 3, 7), (4, 4, False, 1, 12)],
)
def test_the_expected_largest_error_is_bounded(
    size: int, branching: int, root: bool, epsilon: int, reach: int
) -> None:
    """Over all noises of a small tree, the expected largest error of a range is below the formula."""
    tree = Tree(size=size, epsilon=epsilon, branching=branching, root=root)
    release = tree.release(Histogram.dense([0] * size), noise=ZeroNoise())

    assert 0 < _expected_largest(release, reach) <= tree.largest_error


def test_the_formula_counts_the_largest_variance_in_noises() -> None:
    """For a wide tree it is the square-root version with a third of the terms of a cover, or fewer."""
    tree = Tree(size=2**16, epsilon=1)
    solver = LevelSolver(tree.shape, tree.scales)
    noises = math.ceil(solver.largest_variance / laplace_variance(tree.scale))

    assert 3 * noises <= sum(tree.shape.most)
    assert tree.largest_error == square_root_error(tree.scale, 2**15 * (2**16 + 1), noises)
