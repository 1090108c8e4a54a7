"""Least squares over a tree by two passes, against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from partita.arrays import Floats
from partita.public.axis import tree_solver
from partita.public.axis.tree_solver import TreeLevel, TreeShape, TreeSolver

SEEDS = range(12)


def grown(rng: np.random.Generator) -> TreeShape:
    """A tree of three to five levels with families of one to five children."""
    levels = [TreeLevel(np.zeros(1, np.uint64), np.array([10**6 - 1], np.uint64), np.ones(1, bool))]
    for depth in range(int(rng.integers(2, 5))):
        above = levels[-1]
        first: list[int] = []
        last: list[int] = []
        for low, high in zip(above.first[above.expanded], above.last[above.expanded], strict=True):
            inner = rng.choice(
                np.arange(int(low) + 1, int(high) + 1, 7), int(rng.integers(0, 5)), replace=False
            )
            cuts = [int(low), *np.sort(inner).tolist(), int(high) + 1]
            first += cuts[:-1]
            last += [cut - 1 for cut in cuts[1:]]
        wide = np.array(last) - np.array(first) > 100
        expanded = wide & (rng.random(wide.size) < 0.6) & (depth < 3)
        levels.append(TreeLevel(np.array(first, np.uint64), np.array(last, np.uint64), expanded))
        if not expanded.any():
            return TreeShape.join(levels)
    final = levels[-1]
    return TreeShape.join([*levels[:-1], final._replace(expanded=np.zeros(final.first.size, bool))])


def system(shape: TreeShape, precision: Floats, affinity: Floats) -> Floats:
    """S, entry by entry from its definition."""
    low, behind = shape.spans
    cells = np.arange(shape.leaves.size)
    sums = ((low[:, None] <= cells) & (cells < behind[:, None])).astype(np.float64)
    matrix = sums.T @ (precision[:, None] * sums)
    for family in shape.families:
        for start, size in zip(family.starts.tolist(), family.sizes.tolist(), strict=True):
            nodes = np.arange(start, start + size) + family.nodes.start
            apart = sums[nodes] - sums[nodes].mean(0)
            matrix += apart.T @ (affinity[nodes][:, None] * apart)
    return matrix


def solver(seed: int) -> TreeSolver:
    """Precisions over eight orders of magnitude, nodes that say nothing, families alike and not."""
    rng = np.random.default_rng(seed)
    shape = grown(rng)
    precision = 10.0 ** rng.uniform(-4, 4, shape.first.size)
    precision[shape.expanded & (rng.random(precision.size) < 0.3)] = 0.0
    affinity = np.zeros(precision.size)
    for family in shape.families:
        alike = np.where(
            rng.random(family.sizes.size) < 0.5, 10.0 ** rng.uniform(-4, 4, family.sizes.size), 0.0
        )
        affinity[family.nodes] = family.spread(alike)
    return TreeSolver(shape, precision, affinity)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_passes_solve_the_system(seed: int) -> None:
    """S times the solution is the right side, but for the rounding of their largest terms."""
    solve = solver(seed)
    right = np.random.default_rng(seed).normal(size=solve.shape.leaves.size)
    matrix = system(solve.shape, solve.precision, solve.affinity)
    solution = solve(right)

    assert np.abs(matrix @ solution - right).max() <= 1e-13 * (np.abs(matrix) @ np.abs(solution)).max()


def test_many_right_sides_are_solved_as_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows do not mix, however many are solved together."""
    solve = solver(3)
    rights = np.random.default_rng(0).normal(size=(7, solve.shape.leaves.size))
    alone = np.array([solve(right) for right in rights])

    for batch in (1, 2 * rights.shape[1], 10**6):
        monkeypatch.setattr(tree_solver, "_BATCH", batch)

        assert np.array_equal(solve(rights), alone)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_solution_operator_is_symmetric(seed: int) -> None:
    """S^-1 is a covariance: what one leaf says about another it says the other way round."""
    solve = solver(seed)
    covariance = solve(np.eye(solve.shape.leaves.size))

    assert covariance == pytest.approx(covariance.T, rel=1e-9, abs=1e-12 * np.abs(covariance).max())
    assert (np.diag(covariance) > 0).all()
