"""The geometry of trees of boxes: every cut makes up what it cuts, and every point finds its child."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.axis import Axis
from partita.errors import InvalidRelease
from partita.public.boxes.plan import (
    AxisSlots,
    BoxPlan,
    BoxShape,
    RankSlots,
    SlotBoxes,
    halvings,
    native_schedule,
    native_slots,
)

AXES = st.builds(
    Axis, size=st.integers(1, 9), before=st.integers(0, 2), after=st.integers(0, 2), labels=st.booleans()
)


def _native(axes: list[Axis], bits: int = 1) -> BoxPlan:
    return BoxPlan(native_slots(axes), native_schedule(axes, bits))


def _edges(*edges: int) -> RankSlots:
    return RankSlots(np.array(edges, np.uint64))


def _places(plan: BoxPlan, widths: list[int]) -> Any:
    """Every cell of the product of axes."""
    return np.array(list(product(*map(range, widths))), np.uint64)


def _check_level(plan: BoxPlan, front: SlotBoxes, at: int, places: Any, boxes: Any) -> tuple[SlotBoxes, Any]:
    """Children make up the boxes, and each place is in the one child that it is sent to."""
    cut = plan.cut(at, front)
    children = cut.boxes()
    lows, highs = plan.corners(children)
    found = cut.child(boxes, plan.holding(places))
    inside = ((places[:, None] >= lows) & (places[:, None] <= highs)).all(axis=2)
    mine = np.repeat(np.arange(len(front.first)), cut.sizes) == boxes[:, None]

    assert (lows <= highs).all()
    assert ((inside & mine).sum(axis=1) == 1).all()
    assert (inside & mine)[np.arange(len(places)), found].all()
    return children, found


def _check_full_tree(plan: BoxPlan, widths: list[int]) -> None:
    places = _places(plan, widths)
    front, boxes = plan.root, np.zeros(len(places), np.int64)
    for at in range(len(plan.levels)):
        front, boxes = _check_level(plan, front, at, places, boxes)


@given(st.lists(AXES, min_size=1, max_size=3), st.integers(1, 3))
def test_every_level_makes_up_the_one_above(axes: list[Axis], bits: int) -> None:
    """Of all cells, special ones included, each lies in exactly one child, and in the last level alone."""
    plan = _native(axes, bits)
    _check_full_tree(plan, [axis.width for axis in axes])

    front = plan.root
    for at in range(len(plan.levels)):
        front = plan.cut(at, front).boxes()
    assert (front.first == front.last).all()


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=3))
def test_ranks_leave_out_what_is_empty(steps: list[list[int]]) -> None:
    """Slots without a position make no boxes, whichever they are; all others are found."""
    edges = [[0, *np.cumsum(row).tolist()] for row in steps if sum(row)]
    slots = tuple(_edges(*row) for row in edges)
    if slots:
        _check_full_tree(BoxPlan(slots, np.array([[1] * len(slots)] * 2)), [row[-1] for row in edges])


def test_an_axis_may_wait() -> None:
    """A schedule may cut one axis first and another one later, or never to the end."""
    slots: tuple[AxisSlots, ...] = (_edges(0, 1, 2, 3, 9), _edges(0, 2, 2, 4, 5))

    _check_full_tree(BoxPlan(slots, np.array([[1, 0], [0, 1], [1, 0]])), [9, 5])


def test_special_cells_are_pieces_from_the_first_level_on() -> None:
    """The root is cut into halves and special cells along each axis, and their products."""
    plan = _native([Axis(size=8, before=1, after=2), Axis(size=3)])
    children = plan.cut(0, plan.root).boxes()

    assert list(dict.fromkeys(zip(*(end[:, 0].tolist() for end in children), strict=True))) == [
        (0, 0),
        (1, 4),
        (5, 8),
        (9, 9),
        (10, 10),
    ]
    assert len(children.first) == 5 * 2


def test_few_labels_are_told_apart_at_once() -> None:
    """An axis of at most 16 labels has them all at the first level; of seventeen it is halved."""
    few, many = Axis(size=11, after=1, labels=True), Axis(size=17, labels=True)
    wide = Axis(size=2**20)

    assert native_schedule([few, wide], 1)[0].tolist() == [4, 1]
    assert native_schedule([many, wide], 1)[0].tolist() == [1, 1]
    assert len(_native([few, wide]).cut(0, _native([few, wide]).root).boxes().first) == 12 * 2


def test_many_columns_of_labels_do_not_make_too_many_boxes() -> None:
    """Labels are told apart at once only while the first level has at most 4096 boxes."""
    axes = [Axis(size=16, after=1, labels=True)] * 4
    schedule = native_schedule(axes, 1)

    assert schedule[0].tolist() == [4, 4, 1, 1]
    assert schedule.sum(axis=0).tolist() == [4] * 4


def test_axes_of_all_positions_are_cut_exactly() -> None:
    """At 2^63 cells and special cells at both ends, the last level of a path has single positions."""
    axis = Axis(size=2**63, before=4, after=4)
    plan = _native([axis], 4)
    for position in (0, 4, 4 + 2**62, 4 + 2**63 - 1, 4 + 2**63, axis.width - 1):
        places, front = np.array([[position]], np.uint64), plan.root
        for at in range(len(plan.levels)):
            cut = plan.cut(at, front)
            child = cut.child(np.zeros(1, np.int64), places)
            front = SlotBoxes(*(end[child] for end in cut.boxes()))
        assert [end.item() for end in front] == [position, position]


def test_a_level_may_cut_nothing() -> None:
    """A box that is cut by no bits is its own child, at the very end of the longest axis too."""
    axis = Axis(size=2**63, before=1, after=3)
    plan, cut = BoxPlan(native_slots([axis]), np.zeros((2, 1), np.int64)), [False, True, False, False, True]

    nodes = BoxShape.join(plan, [np.array(cut), np.zeros(2, bool)]).nodes

    assert nodes.lows[-2:].ravel().tolist() == [1, axis.width - 1]
    assert nodes.highs[-2:].ravel().tolist() == [2**63, axis.width - 1]
    with pytest.raises(InvalidRelease):
        BoxShape.join(plan, [np.array(cut), np.zeros(1, bool)])


def test_a_box_is_cut_only_if_it_can_be() -> None:
    """A box of one cell, or of one position in several slots, is the end of its path."""
    plan = BoxPlan((_edges(0, 0, 1, 1, 3),), np.array([[1], [1]]))
    halves = plan.cut(0, plan.root).boxes()

    assert plan.splittable(plan.root).tolist() == [True]
    assert [end[:, 0].tolist() for end in plan.corners(halves)] == [[0, 1], [0, 2]]
    assert plan.splittable(halves).tolist() == [False, True]


def test_nodes_are_a_function_of_what_was_cut() -> None:
    """Flags alone give all boxes, breadth first, and the children of each node."""
    plan = _native([Axis(size=4), Axis(size=2)])
    shape = BoxShape.join(plan, [np.array([False, False, True, False]), np.zeros(2, bool)])
    nodes = shape.nodes

    assert nodes.levels.tolist() == [1, 4, 2]
    assert nodes.lows.tolist() == [[0, 0], [0, 0], [0, 1], [2, 0], [2, 1], [2, 0], [3, 0]]
    assert nodes.highs.tolist() == [[3, 1], [1, 0], [1, 1], [3, 0], [3, 1], [2, 0], [3, 0]]
    assert nodes.children.tolist() == [4, 0, 0, 2, 0, 0, 0]
    assert nodes.starts[[0, 3]].tolist() == [1, 5]


@pytest.mark.parametrize(
    "schedule",
    [
        np.zeros((0, 2), np.int64),
        np.array([1, 1]),
        np.array([[1]]),
        np.array([[-1, 1]]),
        np.array([[5, 1]]),
        np.array([[2, 1], [1, 0]]),
        np.zeros((400, 2), np.int64),
    ],
    ids=str,
)
def test_impossible_schedules_are_refused(schedule: Any) -> None:
    """A schedule has a number of bits for each axis at every level, and no more than the axis has."""
    with pytest.raises(InvalidRelease, match="schedule"):
        BoxPlan(native_slots([Axis(size=4), Axis(size=2)]), schedule)


def test_slots_can_be_halved_until_they_are_single() -> None:
    """One slot never, two once, three and four twice, 2^63 of them 63 times."""
    assert [halvings(Axis(size=size)) for size in (1, 2, 3, 4, 5, 2**63)] == [0, 1, 2, 2, 3, 63]
