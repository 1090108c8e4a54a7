"""The tree over parts: least squares against a dense solver, exact variances, the best branching."""

from __future__ import annotations

import numpy as np
import pytest

from partita.public.sums.parts import Blend, PartTree, best_tree


def _incidence(tree: PartTree) -> np.ndarray:
    return tree.sums(np.eye(tree.parts)).T


@pytest.mark.parametrize(
    ("parts", "branching"), [(1, 2), (2, 2), (5, 2), (7, 3), (12, 12), (13, 12), (30, 4)]
)
def test_coefficients_are_those_of_least_squares(parts: int, branching: int) -> None:
    """For every part the coefficients are the row of the pseudo-inverse of the nodes' incidence."""
    tree = PartTree(parts, branching)
    expected = np.linalg.pinv(_incidence(tree))

    assert np.allclose(tree.plain(np.eye(parts)).nodes, expected, atol=1e-12)


def test_guesses_enter_by_their_variance() -> None:
    """With guesses of the parts the coefficients solve the weighted least squares of both."""
    tree, distrust = PartTree(7, 3), np.array([0.1, 1.0, 5.0, 0.5, 2.0, 0.01, 9.0])
    nodes = _incidence(tree)
    normal = nodes.T @ nodes + np.diag(1.0 / distrust)

    found = Blend(tree, distrust)(np.eye(7))

    assert np.allclose(found.nodes, np.linalg.solve(normal, nodes.T), atol=1e-12)
    assert np.allclose(found.guesses, np.linalg.solve(normal, np.diag(1.0 / distrust)), atol=1e-12)


def test_sums_are_those_of_the_nodes() -> None:
    """Every node holds the sum of its parts, each part is in one node of every level."""
    tree = PartTree(10, 3)
    assert tree.sums(np.arange(10)).tolist() == [*range(10), 3, 12, 21, 9, 36, 9]
    assert _incidence(tree).sum(axis=0).tolist() == [tree.levels] * 10


def test_wide_trees_are_better_than_binary_ones() -> None:
    """For 128 parts the best tree has at most two levels, and less than 0.65 of the error of a binary one."""
    best, binary = best_tree(128), PartTree(128, 2)
    ratio = best.typical * best.levels**2 / (binary.typical * binary.levels**2)
    assert best.levels <= 2
    assert ratio < 0.65**2
