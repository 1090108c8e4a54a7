"""Trees over cells, least squares over their levels, and the projection from the top down."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.local import range_estimates
from partita.local.range_estimates import Details, Look, top_down
from partita.local.ranges import CellTree, ReportView, grid_views, line_views, tensor_views


@given(st.integers(2, 200), st.integers(2, 5), st.data())
@settings(max_examples=60)
def test_a_cover_holds_exactly_its_range(size: int, branching: int, data: Any) -> None:
    """Its nodes are disjoint, and there are at most 2 (branching - 1) of a level."""
    line = CellTree(size, branching)
    low = data.draw(st.integers(0, size - 1))
    high = data.draw(st.integers(low, size - 1))
    cover = line.cover(low, high)
    cells = [x for level, node in cover for x in range(size) if line.node(x, level) == node]
    levels = [level for level, _ in cover]

    assert sorted(cells) == list(range(low, high + 1))
    assert max(levels.count(level) for level in levels) <= 2 * (branching - 1)


def test_a_view_sees_the_node_of_each_column() -> None:
    """Every cell of three columns, as one number and as three."""
    lines = (CellTree(5), CellTree(3), CellTree(4))
    view = ReportView(lines, (2, 0, 1))
    for cell in range(60):
        x, _, z = np.unravel_index(cell, (5, 3, 4))

        assert view.node(cell) == lines[0].node(int(x), 2) * 2 + lines[2].node(int(z), 1)


def test_views_of_many_columns_are_of_one_or_two() -> None:
    """Every level of each column, and one grid for every two."""
    views = grid_views((CellTree(64), CellTree(8), CellTree(1000)), 16)

    assert [view.levels for view in views if sum(map(bool, view.levels)) == 2] == [
        (4, 3, 0),
        (4, 0, 4),
        (0, 3, 4),
    ]
    assert len(views) == 6 + 3 + 10 + 3


def looks(views: tuple[ReportView, ...], rng: Any) -> tuple[Look, ...]:
    """Measurements without any order in them."""
    tables = [rng.normal(size=view.widths) for view in views]
    return tuple(
        Look(view.levels, table, float(rng.uniform(0.5, 3)))
        for view, table in zip(views, tables, strict=True)
    )


def solved(lines: tuple[CellTree, ...], looked: tuple[Look, ...]) -> tuple[Any, Any]:
    """The same by brute force: all equations written down, and the total as one of great weight."""
    shape = [line.size for line in lines]
    cells = np.indices(shape).reshape(len(lines), -1)
    rows, values, weights = [np.ones(cells.shape[1])], [1.0], [1e9]
    for look in looked:
        nodes = [line.node(cell, level) for line, cell, level in zip(lines, cells, look.levels, strict=True)]
        for place in np.ndindex(*look.table.shape):
            rows.append(np.all([node == at for node, at in zip(nodes, place, strict=True)], axis=0) * 1.0)
            values.append(float(look.table[place]))
            weights.append(1 / look.variance)
    matrix, scale = np.array(rows), np.array(weights)
    normal = matrix.T @ (scale[:, None] * matrix)
    return np.linalg.solve(normal, matrix.T @ (scale * np.array(values))).reshape(shape), np.linalg.inv(
        normal
    )


@pytest.mark.parametrize("branching", [2, 3])
def test_one_column_is_solved_by_least_squares(branching: int) -> None:
    """Details by precision are the solution of all equations, and their variances are its covariance."""
    line = CellTree(branching**3, branching)
    looked = looks(line_views(line), np.random.default_rng(7))
    table, covariance = solved((line,), looked)
    details = Details((line,), looked)
    mask = np.zeros(line.size)
    mask[1:6] = 1

    assert np.allclose(details.table((3,)), table, atol=1e-6)
    assert details.variance([mask]) == pytest.approx(mask @ covariance @ mask, rel=1e-5)


def test_two_columns_are_solved_by_least_squares() -> None:
    """The same for rectangles of all levels of two columns, of different branching and height."""
    lines = (CellTree(4, 2), CellTree(9, 3))
    looked = looks(tensor_views(lines), np.random.default_rng(11))
    table, covariance = solved(lines, looked)
    details = Details(lines, looked)
    masks = [np.array([0, 1, 1, 0.0]), np.array([1.0] * 5 + [0.0] * 4)]
    box = np.outer(*masks).ravel()

    assert np.allclose(details.table((2, 2)), table, atol=1e-6)
    assert details.variance(masks) == pytest.approx(box @ covariance @ box, rel=1e-5)


def test_levels_of_a_consistent_tree_add_up() -> None:
    """Parents are the sums of their children at every level, and the root is one."""
    line = CellTree(16)
    details = Details((line,), looks(line_views(line), np.random.default_rng(3)))
    tables = [details.table((level,)) for level in range(5)]

    assert tables[0] == pytest.approx([1.0])
    for coarse, fine in pairwise(tables):
        assert np.allclose(coarse, fine.reshape(-1, 2).sum(axis=1))


def proper(values: Any, shape: tuple[int, ...]) -> bool:
    """The checker of projections: nothing below zero, one in all, and nothing lost of what was proper."""
    projected = range_estimates.top_down(values, (2,) * len(shape))
    sound = projected.shape == shape and bool((projected >= 0).all()) and abs(projected.sum() - 1) < 1e-9
    shares = (np.abs(values) + 1) / (np.abs(values) + 1).sum()
    return sound and np.allclose(range_estimates.top_down(shares, (2,) * len(shape)), shares, atol=1e-9)


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=40))
@settings(max_examples=60)
def test_the_projection_is_a_distribution(values: list[float]) -> None:
    """Of any length; what is one already stays as it is."""
    assert proper(np.array(values), (len(values),))


def test_the_projection_of_tables_is_a_distribution() -> None:
    """Of any shape."""
    rng = np.random.default_rng(5)
    for shape in ((3, 7), (8, 8), (1, 5), (16, 3)):
        assert proper(rng.normal(size=shape), shape)


def test_the_projection_keeps_sums_that_can_be_kept() -> None:
    """Where both halves are positive, their shares stay, whatever the cells do."""
    table = np.array([0.9, -0.5, 0.3, -0.1, 0.5, -0.4, 0.4, -0.1])

    assert top_down(table, (2,))[:4].sum() == pytest.approx(0.6)


def test_a_cut_at_the_leaves_raises_empty_stretches() -> None:
    """Cut off at the cells, a long empty stretch has many times the share that is left from the top down."""
    line, rng = CellTree(1024), np.random.default_rng(2)
    tables = [rng.normal(scale=0.02, size=view.widths) for view in line_views(line)]
    for table in tables:
        table[0] += 1.0
    looked = [Look(view.levels, table, 1.0) for view, table in zip(line_views(line), tables, strict=True)]
    cells = Details((line,), tuple(looked)).table((10,))
    cut = np.maximum(cells, 0)

    assert (cut / cut.sum())[512:].sum() > 10 * top_down(cells, (2,))[512:].sum()


def _loses_total(members: Any, totals: Any) -> Any:
    return np.maximum(members, 0)


def _shares_evenly(members: Any, totals: Any) -> Any:
    return np.repeat(totals[:, None], members.shape[1], axis=1) / members.shape[1]


def _leaves_negative(members: Any, totals: Any) -> Any:
    return members + ((totals - members.sum(axis=1)) / members.shape[1])[:, None]


@pytest.mark.parametrize("plant", [_loses_total, _shares_evenly, _leaves_negative])
def test_a_wrong_projection_is_caught(monkeypatch: pytest.MonkeyPatch, plant: Any) -> None:
    """It changes the total, what was proper, or leaves shares below zero."""
    values = np.array([0.7, -0.4, 0.3, 0.4])
    assert proper(values, (4,))

    monkeypatch.setattr(range_estimates, "project_on_totals", plant)
    assert not proper(values, (4,))
