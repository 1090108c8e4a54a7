"""Where to cut the keys: into cells, or wherever released counts are worth a further half."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np

from partita.domain.axis import Axis
from partita.public.sums.parts.cut import LEAF, MOST_PARTS, Box, Cut, KeyCounts, halves

_MOST_FREE: Final = 64


def cells_of(axes: Sequence[Axis]) -> int:
    """The number of cells of the product, special cells included."""
    return math.prod(axis.width for axis in axes)


def cut_into_cells(axes: tuple[Axis, ...]) -> Cut:
    """Every cell of the product a part of its own."""
    return _grown(axes, lambda boxes: [True] * len(boxes))


def cut_by_counts(axes: tuple[Axis, ...], density: KeyCounts, *, enough: float) -> Cut:
    """Halved wherever the released counts are above `enough`; special cells apart, if they are few."""
    free = math.prod(1 + axis.before + axis.after for axis in axes) <= _MOST_FREE

    def worth(boxes: list[Box]) -> list[bool]:
        lows, highs = (np.array([box[end] for box in boxes], np.uint64) for end in (0, 1))
        counts = density.counts(lows, highs)
        return [
            count > enough or (free and _mixed(axes, box))
            for count, box in zip(counts.tolist(), boxes, strict=True)
        ]

    return _grown(axes, worth)


class _Worth(Protocol):
    def __call__(self, boxes: list[Box]) -> list[bool]:
        """Which boxes are worth halving."""


class _Node:
    """A box on its way to become a part, or two."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.split: tuple[int, int] | None = None
        self.halves: tuple[_Node, ...] = ()

    def preorder(self) -> Iterator[tuple[int, int]]:
        """Axis and position of every node below, this one first."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node.split or (LEAF, 0)
            waiting += reversed(node.halves)


def _grown(axes: tuple[Axis, ...], worth: _Worth) -> Cut:
    """Level by level, as far as it is worth it and there is room."""
    root = _Node((tuple(0 for _ in axes), tuple(axis.width - 1 for axis in axes)))
    level, room = [root], MOST_PARTS - 1
    while level and room:
        level = [node for node in level if node.box[0] != node.box[1]]
        asked = worth([node.box for node in level]) if level else []
        level = [node for node, more in zip(level, asked, strict=True) if more][:room]
        room -= len(level)
        for node in level:
            node.split = _place(axes, node.box)
            node.halves = tuple(_Node(half) for half in halves(node.box, *node.split))
        level = [half for node in level for half in node.halves]
    along, at = zip(*root.preorder(), strict=True)
    return Cut(axes, np.array(along, np.int64), np.array(at, np.uint64))


def _place(axes: Sequence[Axis], box: Box) -> tuple[int, int]:
    """Where to halve a box: special cells first, then along the axis of which it has the largest share."""
    ends = list(zip(axes, *box, strict=True))
    for along, (axis, low, high) in enumerate(ends):
        apart = _special_end(axis, low, high)
        if apart is not None:
            return along, apart
    shares = [(high - low) / axis.width for axis, low, high in ends]
    along = max(range(len(axes)), key=shares.__getitem__)
    _, low, high = ends[along]
    return along, (low + high + 1) // 2


def _mixed(axes: Sequence[Axis], box: Box) -> bool:
    """Whether a special cell is together with others along some axis."""
    return any(_special_end(axis, low, high) is not None for axis, low, high in zip(axes, *box, strict=True))


def _special_end(axis: Axis, low: int, high: int) -> int | None:
    """Where to halve so that a special cell comes apart from what is beside it; None if there is none."""
    behind = axis.before + axis.size
    if low == high or (low >= axis.before and high < behind):
        return None
    if low < axis.before:
        return low + 1
    return behind if low < behind else low + 1
