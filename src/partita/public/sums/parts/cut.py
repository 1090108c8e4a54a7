"""The keys cut into parts: boxes of positions in a row, in the order of a tree of halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias, final

import numpy as np

from partita.domain.axis import Axis
from partita.numbers import freeze
from partita.public.axis.curve.curve import Floats, Ints, UInts
from partita.public.base.released import damaged
from partita.public.boxes.plan.nodes import Corners, SignedBox, volumes

MOST_PARTS: Final = 2**12
"""No cut has more parts."""

LEAF: Final = -1
"""A part, where a node would have the axis along which it is halved."""

Box: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


class KeyCounts(Protocol):
    """What was released about the keys: counts of boxes of positions, special cells included."""

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The count of each box, corners included."""


class Laid(NamedTuple):
    """A question laid over the parts: the coefficient of each, and between which it lies for certain."""

    mean: Floats
    least: Floats
    most: Floats

    @property
    def cuts(self) -> Ints:
        """The parts that the question cuts."""
        return np.flatnonzero(self.least < self.most)


class Walked(NamedTuple):
    """Corners of the parts; for each node its second half and its number among the parts; the depth."""

    lows: Corners
    highs: Corners
    second: Ints
    number: Ints
    depth: int


@final
@dataclass(frozen=True, eq=False)
class Cut:
    """A tree of halves over the product of some axes, in preorder; its leaves are the parts.

    `along` holds the axis along which a node is halved, -1 for a part, and `at` the first position of its
    second half. With no axes at all there is one part.
    """

    axes: tuple[Axis, ...]
    along: Ints
    at: UInts
    walked: Walked = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.along.size != self.at.size or not 1 <= self.along.size < 2 * MOST_PARTS:
            raise damaged("cut", f"must have 1 to {MOST_PARTS} parts")
        if bool((self.along < LEAF).any()) or bool((self.along >= len(self.axes)).any()):
            raise damaged("cut", "must halve along its axes")
        freeze(self, walked=self._walk())

    @property
    def parts(self) -> int:
        """The number of parts."""
        return int((self.along == LEAF).sum())

    @property
    def lows(self) -> Corners:
        """The lowest position of each part along each axis."""
        return self.walked.lows

    @property
    def highs(self) -> Corners:
        """The highest position of each part along each axis."""
        return self.walked.highs

    @property
    def shallow(self) -> bool:
        """Whether every part is a single cell."""
        return bool((self.lows == self.highs).all())

    def of(self, places: Corners) -> Ints:
        """The part of each point, a row of positions."""
        if len(self.axes) == 1:
            return np.asarray(np.searchsorted(self.lows[:, 0], places[:, 0], side="right") - 1)
        _, _, second, number, depth = self.walked
        node, rows = np.zeros(len(places), np.int64), np.arange(len(places))
        for _ in range(depth):
            axis = self.along[node]
            behind = places[rows, axis] >= self.at[node] if self.axes else np.zeros(len(places), np.bool_)
            node = np.where(axis == LEAF, node, np.where(behind, second[node], node + 1))
        return np.asarray(number[node])

    def laid(self, boxes: Sequence[SignedBox], density: KeyCounts | None = None) -> Laid:
        """A signed sum of boxes over the parts: one that is cut counts by the share of it that is inside.

        The share is that of the released counts, where there are any, else of the cells.
        """
        mean, least, most = np.zeros((3, self.parts))
        for low, high, sign in boxes:
            shares = self._shares(low, high, density)
            inside, touched = (shares >= 1.0) * float(sign), (shares > 0.0) * float(sign)
            mean += sign * shares
            least += np.minimum(inside, touched)
            most += np.maximum(inside, touched)
        return Laid(mean, least, most)

    def _shares(self, low: tuple[int, ...], high: tuple[int, ...], density: KeyCounts | None) -> Floats:
        if not self.axes:
            return np.ones(self.parts)
        lows = np.maximum(self.lows, np.array(low, np.uint64))
        highs = np.minimum(self.highs, np.array(high, np.uint64))
        touched = (lows <= highs).all(axis=1)
        whole = touched & (lows == self.lows).all(axis=1) & (highs == self.highs).all(axis=1)
        shares = whole.astype(np.float64)
        cut = np.flatnonzero(touched & ~whole)
        if cut.size:
            shares[cut] = self._inner(cut, lows[cut], highs[cut], density)
        return np.asarray(shares)

    def _inner(self, parts: Ints, lows: Corners, highs: Corners, density: KeyCounts | None) -> Floats:
        """Which share of parts the boxes inside them hold: more than none of each, and less than all."""
        shares = volumes(lows, highs) / volumes(self.lows[parts], self.highs[parts])
        if density is not None:
            inside, whole = density.counts(lows, highs), density.counts(self.lows[parts], self.highs[parts])
            shares = np.where((whole > 1.0) & (inside >= 0.0), inside / np.maximum(whole, 1.0), shares)
        return np.asarray(np.clip(shares, 1e-9, 1.0 - 1e-9))

    def _walk(self) -> Walked:
        everything: Box = (tuple(0 for _ in self.axes), tuple(axis.width - 1 for axis in self.axes))
        second, number = np.zeros((2, self.along.size), np.int64)
        waiting, depth = [(everything, LEAF, 0)], 0
        boxes: list[Box] = []
        for node, (along, at) in enumerate(zip(self.along.tolist(), self.at.tolist(), strict=True)):
            if not waiting:
                raise damaged("cut", "must be a tree")
            box, parent, deep = waiting.pop()
            depth = max(depth, deep)
            if parent != LEAF:
                second[parent] = node
            if along == LEAF:
                number[node] = len(boxes)
                boxes.append(box)
                continue
            first, behind = halves(box, along, at)
            waiting += [(behind, node, deep + 1), (first, LEAF, deep + 1)]
        if waiting:
            raise damaged("cut", "must be a tree")
        lows, highs = (
            np.array([box[end] for box in boxes], np.uint64).reshape(len(boxes), len(self.axes))
            for end in (0, 1)
        )
        return Walked(lows, highs, second, number, depth)


def halves(box: Box, along: int, at: int) -> tuple[Box, Box]:
    """A box below a position along an axis, and from there on."""
    low, high = box
    if not low[along] < at <= high[along]:
        raise damaged("cut", "must halve boxes inside")
    return (low, _with(high, along, at - 1)), (_with(low, along, at), high)


def _with(ends: tuple[int, ...], along: int, end: int) -> tuple[int, ...]:
    return (*ends[:along], end, *ends[along + 1 :])
