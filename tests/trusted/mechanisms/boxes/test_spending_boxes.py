"""The spending tree over boxes: what it releases, what it answers, and the data that break mechanisms."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.errors import InvalidData, InvalidParameter
from partita.public.axis.tree_solver import UNITS
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.plan import Recipe
from partita.public.boxes.spending_boxes import SpendingBoxesRelease
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.trusted.mechanisms.boxes import SpendingBoxes
from partita.trusted.noise.system import SYSTEM
from partita.trusted.secret import Points

SMALL = (Axis(size=16), Axis(size=16))


def _points(axes: Any, rows: Any, counts: Any = None) -> Points:
    return Points.from_rows(np.array(rows, np.uint64).reshape(-1, len(axes)), axes=axes, counts=counts)


def _released(axes: Any, rows: Any, counts: Any = None, seed: object = 0, **changes: Any) -> Any:
    tree = SpendingBoxes(axes=axes, **{"epsilon": 1, **changes})
    return tree.release(_points(axes, rows, counts), noise=tape_noise(EndlessTape(seed)))


def _spread(axis: Axis, count: int, seed: object) -> Any:
    """Positions of the ordered cells of an axis, about as many in each part of it."""
    words = EndlessTape(seed).take(count)
    return np.array([axis.before + (int(word) * axis.size >> 64) for word in words], np.uint64)


def test_without_noise_every_cell_of_rich_data_is_exact() -> None:
    """Zero noise and many rows: the tree goes down to cells, and every look is the count of its box."""
    rows = list(product(range(16), range(16)))
    counts = np.arange(256) % 7 * 1000 + 500
    release = SpendingBoxes(axes=SMALL, epsilon=1).release(_points(SMALL, rows, counts), noise=ZeroNoise())
    nodes = release.shape.nodes
    table = counts.reshape(16, 16)

    assert (nodes.lows == nodes.highs)[nodes.leaves].all()
    for node, noisy in zip(release.looks.nodes.tolist(), release.looks.noisy.tolist(), strict=True):
        (a, b), (c, d) = nodes.lows[node].astype(int), nodes.highs[node].astype(int)
        assert noisy == table[a : c + 1, b : d + 1].sum()
    assert release.answer(release.everything).value == pytest.approx(counts.sum(), rel=1e-3)


def test_the_same_noise_gives_the_same_release() -> None:
    """What is released is a function of the points and of the noise."""
    rows = np.column_stack([_spread(SMALL[0], 500, "a"), _spread(SMALL[1], 500, "b")])
    one, other = (_released(SMALL, rows, seed=7).parts() for _ in range(2))

    assert one.digest == other.digest
    assert one.digest != _released(SMALL, rows, seed=8).parts().digest


def test_the_first_look_is_at_the_root() -> None:
    """Without a public total a twentieth of the units is spent on it; with one, none are."""
    asked, told = _released(SMALL, [[3, 3]] * 50), _released(SMALL, [[3, 3]] * 50, total=50)

    assert (asked.looks.nodes[0], asked.looks.units[0]) == (0, UNITS // 20)
    assert told.looks.nodes.min() == 1
    assert asked.total is None
    assert told.total == 50


def test_only_released_numbers_begin_the_tree() -> None:
    """A public total of zero spends everything on the root's children, however many rows there are."""
    flat = _released(SMALL, [[3, 3]] * 1000, total=0)

    assert flat.shape.levels.tolist() == [1, 16]
    assert set(flat.looks.units.tolist()) == {UNITS}
    assert _released(SMALL, [[3, 3]] * 1000).shape.levels.size > 2


WIDE = Axis(size=2**32, before=1, after=3)
BREAKING: dict[str, tuple[tuple[Axis, ...], Any]] = {
    "all points equal": ((WIDE, WIDE), [[5_000_000, 7]] * 3000),
    "on a diagonal": ((WIDE, WIDE), [[1 + (k << 20), 1 + (k << 20)] for k in range(4000)]),
    "one empty axis": ((WIDE, Axis(size=2**20)), [[1 + (k << 20), 77] for k in range(3000)]),
    "one cell on an axis": ((Axis(size=1), WIDE), [[0, 1 + (k << 20)] for k in range(3000)]),
    "one cell on both axes": ((Axis(size=1), Axis(size=1)), [[0, 0]] * 100),
    "2^40 x 3": ((Axis(size=2**40), Axis(size=3)), [[k << 27, k % 3] for k in range(3000)]),
    "2^63 x 2^63": ((Axis(size=2**63),) * 2, [[(k << 51) + k, 2**63 - 1 - (k << 50)] for k in range(3000)]),
    "nobody": ((WIDE, WIDE), []),
    "one row": ((WIDE, WIDE), [[9, 9]]),
    "special cells everywhere": (
        (Axis(size=5, before=1, after=3),) * 3,
        list(product((0, 3, 6, 7, 8), repeat=3)) * 20,
    ),
    "only special cells": ((WIDE, WIDE), [[0, WIDE.width - 1]] * 500),
    "labels beside numbers": (
        (Axis(size=12, after=1, labels=True), WIDE),
        [[k % 13, k] for k in range(2000)],
    ),
    "six axes": ((Axis(size=2**20),) * 6, [[k << 9] * 6 for k in range(2000)]),
    "one axis": ((WIDE,), [[1 + (k << 20)] for k in range(2000)]),
}


@pytest.mark.parametrize("name", BREAKING)
def test_any_data_give_sane_answers(name: str) -> None:
    """The total is about right, counts are not negative and add up, and guaranteed bounds hold."""
    axes, rows = BREAKING[name]
    release: SpendingBoxesRelease = _released(axes, rows, seed=name)
    values = release.solution.estimates.values

    total = release.answer(release.everything)
    assert abs(total.value - len(rows)) < 120
    assert total.worst(1e-6)[0] <= len(rows) <= total.worst(1e-6)[1]
    assert np.isfinite(release.error(0.05))
    assert values.min() >= 0
    for family in release.shape.families:
        assert family.sum(values[family.nodes]) == pytest.approx(values[family.parents], abs=1e-6)


@pytest.mark.parametrize("name", BREAKING)
def test_a_cell_and_what_is_beside_it_add_up(name: str) -> None:
    """The halves of everything along each axis add up to the whole; a cell has a sane answer."""
    axes, rows = BREAKING[name]
    release = _released(axes, rows, seed=name)
    low, high, _ = release.everything
    whole = release.answer(release.everything).value
    for at, axis in enumerate(axes):
        middle = [*high[:at], axis.width // 2, *high[at + 1 :]]
        below = release.answer(BoxTerm(low, tuple(middle))).value
        above = 0.0
        if axis.width > 1 and middle[at] < high[at]:
            above = release.answer(BoxTerm((*low[:at], middle[at] + 1, *low[at + 1 :]), high)).value
        assert below + above == pytest.approx(whole)
    cell = tuple(rows[0]) if rows else low
    answer = release.answer(BoxTerm(cell, cell))
    truth = sum(tuple(row) == cell for row in rows)
    assert answer.worst(1e-6)[0] <= truth <= answer.worst(1e-6)[1]


def test_an_atom_is_found_in_a_large_universe() -> None:
    """One point with a third of the rows is told apart from its neighbours, in 2^32 x 2^32 cells."""
    axes = (Axis(size=2**32), Axis(size=2**32))
    quiet = np.column_stack([_spread(axes[0], 6000, "x"), _spread(axes[1], 6000, "y")]).tolist()
    atom = (2**31 + 12345, 999)
    release = _released(axes, [*quiet, *[list(atom)] * 3000])
    low, high = (a - 1 for a in atom), (a + 1 for a in atom)

    assert release.answer(BoxTerm(tuple(low), tuple(high))).value == pytest.approx(3000, abs=200)


def test_special_cells_are_counted_by_themselves() -> None:
    """Rows in special cells of one axis are in boxes of that cell, ordered along the other axis."""
    axes = (Axis(size=2**16, before=1, after=2), Axis(size=2**16))
    rows = [[0, 5]] * 4000 + [[2**16 + 2, 60_000]] * 4000
    release = _released(axes, rows)

    assert release.answer(BoxTerm((0, 0), (0, 99))).value == pytest.approx(4000, abs=150)
    assert release.answer(BoxTerm((2**16 + 2, 50_000), (2**16 + 2, 2**16 - 1))).value == pytest.approx(
        4000, abs=150
    )
    assert release.answer(BoxTerm((1, 0), (2**16, 2**16 - 1))).value < 150


def test_counts_beyond_the_precision_of_floats_stay_exact() -> None:
    """Counts near 2^62 reach the noise as integers."""
    heavy = 2**61 + 1
    axes = (Axis(size=2), Axis(size=2))
    release = SpendingBoxes(axes=axes, epsilon=1).release(
        _points(axes, [[0, 1], [1, 0]], [heavy, 1]), noise=ZeroNoise()
    )

    assert set(release.looks.noisy.tolist()) == {heavy + 1, heavy, 1, 0}


def test_a_box_is_cut_no_further_than_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """No level has more nodes than the limit, and those with the largest released counts are cut."""
    monkeypatch.setattr("partita.trusted.mechanisms.boxes.MOST_NODES", 64)
    rows = np.column_stack([_spread(WIDE, 4000, "m"), _spread(WIDE, 4000, "n")])

    assert _released((WIDE, WIDE), rows).shape.levels[2:].max() <= 64


def test_defaults_follow_the_axes() -> None:
    """Few cells along two axes are cut by two bits at a time, many by one; a single axis by two."""
    few, many = SpendingBoxes(axes=SMALL, epsilon=1), SpendingBoxes(axes=(WIDE, WIDE), epsilon=1)
    view = SpendingBoxes(axes=(WIDE,), epsilon=1)

    assert (few.bits, few.recipe) == (2, Recipe(growth="7/5", worth=8, depth_power="1/2"))
    assert (many.bits, many.recipe) == (1, Recipe(growth="5/3", worth=7, depth_power=1))
    assert (view.bits, view.recipe) == (2, Recipe(growth="3/2", worth=3, depth_power=1))


def test_noise_follows_epsilon_and_neighbours() -> None:
    """A unit has noise of 2^20 times the rows by which neighbours differ over epsilon."""
    scale = SpendingBoxes(axes=SMALL, epsilon="1/2").scale

    assert scale == 2 * UNITS
    assert SpendingBoxes(axes=SMALL, epsilon=1, neighbors="change-one").scale == scale
    assert SpendingBoxes(axes=SMALL, epsilon=1, contributions=2).scale == scale


def test_only_secure_noise_carries_the_guarantee() -> None:
    """Noise from the system gives the guarantee that was asked for, any other gives none."""
    tree, points = SpendingBoxes(axes=SMALL, epsilon="0.1"), _points(SMALL, [[1, 2]])

    assert tree.release(points, noise=SYSTEM).guarantee == tree.guarantee
    assert tree.guarantee.epsilon == Fraction(1, 10)
    assert tree.release(points, noise=ZeroNoise()).guarantee is None


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("axes", []),
        ("axes", [3]),
        ("axes", [Axis(size=2)] * 7),
        ("epsilon", 0),
        ("epsilon", "1e-30"),
        ("total", 1.5),
        ("total", 2**63 + 1),
        ("total", -(2**63) - 1),
        ("bits", 0),
        ("bits", 5),
        ("contributions", 0),
        ("neighbors", "cousins"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(parameter: str, value: Any) -> None:
    """The error names the parameter."""
    with pytest.raises(InvalidParameter) as refused:
        SpendingBoxes(**{"axes": SMALL, "epsilon": 1, parameter: value})

    assert refused.value.parameter == parameter


def test_more_than_six_columns_are_pointed_to_views() -> None:
    """The way out is several releases of fewer columns."""
    with pytest.raises(InvalidParameter, match="views="):
        SpendingBoxes(axes=[Axis(size=2)] * 7, epsilon=1)


@pytest.mark.parametrize(
    ("constant", "value"), [("growth", 0), ("worth", -1), ("worth", "much"), ("depth_power", 2)]
)
def test_bad_recipes_are_refused(constant: str, value: object) -> None:
    """Constants are positive, and the power is a share."""
    with pytest.raises(InvalidParameter) as refused:
        Recipe(**{"growth": 1, "worth": 1, "depth_power": 1, constant: value})

    assert refused.value.parameter == constant


def test_bad_data_are_refused_before_any_draw() -> None:
    """Points on other axes, or that bound contributions less tightly, never meet noise."""
    tree = SpendingBoxes(axes=SMALL, epsilon=1)
    loose = Points.from_rows([[1, 1]], axes=SMALL, contributions=2)
    for wrong in (_points((Axis(size=16), Axis(size=17)), [[1, 1]]), loose, [[1, 1]]):
        with pytest.raises((InvalidData, InvalidParameter)):
            tree.release(wrong, noise=ForbiddenNoise())  # type: ignore[arg-type]


def test_it_says_what_it_did() -> None:
    """The story names the released total and the number of leaves."""
    release = _released(SMALL, [[3, 3]] * 1000, total=1000)

    assert "about 1,000 rows" in release.story
    assert f"{int(release.shape.nodes.leaves.sum()):,} boxes" in release.story


def test_predicted_errors_grow_with_less_epsilon() -> None:
    """A tenth of epsilon has a larger predicted error."""
    one, tenth = (SpendingBoxes(axes=SMALL, epsilon=epsilon) for epsilon in (1, "1/10"))

    assert tenth.predicted_error(10**5) > one.predicted_error(10**5)


@pytest.mark.parametrize(
    ("axes", "rows"), [((WIDE, WIDE), 20_000), (SMALL, 20_000), ((WIDE,), 2000), (SMALL, 0)]
)
def test_predicted_numbers_are_about_those_released(axes: Any, rows: int) -> None:
    """The integers that a file holds are predicted up to a factor of two."""
    tree = SpendingBoxes(axes=axes, epsilon=1)
    places = np.column_stack([_spread(axis, rows, at) for at, axis in enumerate(axes)])
    series = _released(axes, places).parts().series

    assert 0.5 < sum(values.size for values in series.values()) / tree.predicted_numbers(rows) < 2
