"""The tree of boxes that may be grown: a function of public numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.domain.axis import LARGEST_AXIS, MOST_AXES, Axis
from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Ints
from partita.public.base.released import damaged
from partita.public.boxes.plan.nodes import Corners
from partita.public.boxes.plan.slots import Slots, halvings
from partita.public.boxes.plan.tree_cut import Cut, SlotBoxes, halved, opened

MOST_BITS: Final = 4
"""No level cuts an axis into more than two to this many pieces, special cells aside."""

_MOST_LEVELS: Final = MOST_AXES * (LARGEST_AXIS - 1).bit_length()
"""If every level halves one axis, and each is halved down to its cells."""

_FEW_LABELS: Final = 16
"""So many labels are told apart at once: their order means nothing, so no half of them is worth a look."""

_MOST_OPENED: Final = 4096
"""No first level has more boxes for the sake of labels: each is looked at, whether or not rows are in it."""


class BoxLevel(NamedTuple):
    """One level: at most how many children boxes have, special cells aside, and the levels from it on.

    `halvings` says how often each axis of the children can still be halved.
    """

    children: int
    left: int
    halvings: tuple[int, ...]


@final
@dataclass(frozen=True, eq=False)
class BoxPlan:
    """Slots along every axis, and a schedule: a row for each level, how many bits each axis is cut by.

    At the first level every axis is cut into its single slots besides, whether it has bits there or not.
    """

    slots: tuple[Slots, ...]
    schedule: Ints

    def __post_init__(self) -> None:
        bits = self.schedule
        if bits.ndim != 2 or bits.shape[1] != len(self.slots) or not 1 <= len(bits) <= _MOST_LEVELS:
            raise damaged("schedule", "must have a row for each level and a column for each axis")
        if bool((bits < 0).any()) or bool((bits > MOST_BITS).any()):
            raise damaged("schedule", f"must cut an axis by 0 to {MOST_BITS} bits at a time")
        if bool((bits.sum(axis=0) > [halvings(slots.line) for slots in self.slots]).any()):
            raise damaged("schedule", "must cut an axis into slots at most")

    @cached_property
    def levels(self) -> tuple[BoxLevel, ...]:
        """The levels of a full tree."""
        most = np.array([halvings(slots.line) for slots in self.slots])
        after = most - np.cumsum(self.schedule, axis=0)
        return tuple(
            BoxLevel(1 << int(bits.sum()), len(after) - at, tuple(left.tolist()))
            for at, (bits, left) in enumerate(zip(self.schedule, after, strict=True))
        )

    @property
    def root(self) -> SlotBoxes:
        """The box of everything."""
        lines = [slots.line for slots in self.slots]
        return SlotBoxes(
            np.zeros((1, len(lines)), np.uint64), np.array([[line.width - 1 for line in lines]], np.uint64)
        )

    def cut(self, at: int, boxes: SlotBoxes) -> Cut:
        """The boxes that are expanded, cut into the nodes of level `at`, counted from 0 below the root."""
        lefts = self.levels[at].halvings
        if at == 0:
            return Cut(tuple(opened(slots, left) for slots, left in zip(self.slots, lefts, strict=True)))
        return Cut(
            tuple(
                halved(slots, boxes.first[:, axis], boxes.last[:, axis], left)
                for axis, (slots, left) in enumerate(zip(self.slots, lefts, strict=True))
            )
        )

    def splittable(self, boxes: SlotBoxes) -> Bools:
        """Which boxes hold several slots along some axis, and several positions there."""
        several = np.zeros(len(boxes.first), bool)
        for axis, slots in enumerate(self.slots):
            first, last = boxes.first[:, axis], boxes.last[:, axis]
            lows, behind = slots.ends(first, last)
            several |= (first < last) & (behind - lows > np.uint64(1))
        return several

    def corners(self, boxes: SlotBoxes) -> tuple[Corners, Corners]:
        """The lowest and the highest positions of boxes that are not empty."""
        lows, highs = np.empty_like(boxes.first), np.empty_like(boxes.last)
        for axis, slots in enumerate(self.slots):
            low, behind = slots.ends(boxes.first[:, axis], boxes.last[:, axis])
            lows[:, axis], highs[:, axis] = low, behind - np.uint64(1)
        return lows, highs

    def holding(self, places: Corners) -> Corners:
        """The slots of points, a row of positions for each."""
        return np.column_stack([slots.holding(places[:, axis]) for axis, slots in enumerate(self.slots)])


def native_schedule(axes: Sequence[Axis], bits: int) -> Ints:
    """Every axis is cut by as many bits at each level, and by what remains at its last.

    Axes of at most 16 labels come first, one by one, into all their labels at once, unless the
    first level would have too many boxes.
    """
    left = np.array([halvings(axis) for axis in axes])
    rows = [_first_row(axes, np.minimum(left, bits))]
    left = left - rows[0]
    while left.any():
        rows.append(np.minimum(left, bits))
        left = left - rows[-1]
    return np.array(rows, np.int64)


def _first_row(axes: Sequence[Axis], usual: Ints) -> Ints:
    row = usual.copy()
    for at, axis in enumerate(axes):
        if axis.labels and axis.size <= _FEW_LABELS:
            whole = row.copy()
            whole[at] = halvings(axis)
            row = whole if _opened(axes, whole) <= _MOST_OPENED else row
    return row


def _opened(axes: Sequence[Axis], row: Ints) -> int:
    """At most how many boxes the first level has."""
    specials = [axis.before + axis.after for axis in axes]
    return int(np.prod([(1 << int(bits)) + more for bits, more in zip(row, specials, strict=True)]))
