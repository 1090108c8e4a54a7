"""How the boxes of one level of a tree are cut: along every axis by itself, and their products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Ints, UInts
from partita.public.boxes.plan.nodes import Corners
from partita.public.boxes.plan.slots import Slots


class SlotBoxes(NamedTuple):
    """Boxes of slots first, ..., last (both included): a row for each box, a column for each axis."""

    first: Corners
    last: Corners

    def some(self, which: Bools) -> SlotBoxes:
        """Some of the boxes."""
        return SlotBoxes(self.first[which], self.last[which])


@dataclass(frozen=True, eq=False)
class AxisPieces(ABC):
    """What several boxes are cut into along one axis: slots first, ..., last, box by box, none empty."""

    first: UInts
    last: UInts
    counts: Ints

    @cached_property
    def offsets(self) -> Ints:
        """Where the pieces of each box begin."""
        return np.cumsum(self.counts) - self.counts

    @abstractmethod
    def rank(self, boxes: Ints, slots: UInts) -> Ints:
        """Which piece of its box each slot lies in, counted from 0."""


@final
@dataclass(frozen=True, eq=False)
class _Opened(AxisPieces):
    """The pieces of the one box that holds everything."""

    def rank(self, boxes: Ints, slots: UInts) -> Ints:
        """The last piece that begins at or before each slot."""
        return np.searchsorted(self.first, slots, side="right") - 1


@final
@dataclass(frozen=True, eq=False)
class _Halved(AxisPieces):
    """Pieces of 2^shift slots, counted from where each box begins; empty ones are left out of `ranks`."""

    origins: UInts
    shift: np.uint64
    tried: Ints
    ranks: Ints

    def rank(self, boxes: Ints, slots: UInts) -> Ints:
        """By arithmetic; the pieces that were left out do not count."""
        step = (slots - self.origins[boxes]) >> self.shift
        return np.asarray(self.ranks[self.tried[boxes] + step.astype(np.int64)])


def opened(slots: Slots, left: int) -> AxisPieces:
    """Everything along an axis, cut into pieces that can be halved `left` times, and the single slots."""
    line = slots.line
    run = np.arange(((line.size - 1) >> left) + 1, dtype=np.uint64) << np.uint64(left)
    before, after = (np.arange(count, dtype=np.uint64) for count in (line.before, line.after))
    first = np.concatenate([before, run + np.uint64(line.before), after + np.uint64(line.before + line.size)])
    last = np.append(first[1:], np.uint64(line.width)) - np.uint64(1)
    there = _held(slots, first, last)
    return _Opened(first[there], last[there], np.array([there.sum()]))


def halved(slots: Slots, first: UInts, last: UInts, left: int) -> AxisPieces:
    """Slots first, ..., last of each box, cut into pieces that can be halved `left` times."""
    shift = np.uint64(left)
    counts = ((last - first) >> shift).astype(np.int64) + 1
    tried = np.cumsum(counts) - counts
    box = np.repeat(np.arange(first.size), counts)
    step = (np.arange(box.size) - tried[box]).astype(np.uint64)
    starts = first[box] + (step << shift)
    ends = starts + np.minimum((np.uint64(1) << shift) - np.uint64(1), last[box] - starts)
    there = _held(slots, starts, ends)
    kept = np.bincount(box[there], minlength=first.size)
    ranks = np.cumsum(there) - 1 - (np.cumsum(kept) - kept)[box]
    return _Halved(starts[there], ends[there], kept, origins=first, shift=shift, tried=tried, ranks=ranks)


@final
@dataclass(frozen=True, eq=False)
class Cut:
    """Boxes cut along every axis: the children of a box are the products of its pieces, last axis fastest."""

    axes: tuple[AxisPieces, ...]

    @cached_property
    def sizes(self) -> Ints:
        """How many children each box has."""
        return np.asarray(np.prod([pieces.counts for pieces in self.axes], axis=0))

    @cached_property
    def starts(self) -> Ints:
        """Where the children of each box begin."""
        return np.cumsum(self.sizes) - self.sizes

    def boxes(self) -> SlotBoxes:
        """All children, those of the first box first."""
        parents = np.repeat(np.arange(self.sizes.size), self.sizes)
        rest = np.arange(parents.size) - self.starts[parents]
        first = np.empty((parents.size, len(self.axes)), np.uint64)
        last = np.empty_like(first)
        for axis, pieces in reversed(list(enumerate(self.axes))):
            rest, rank = np.divmod(rest, pieces.counts[parents])
            piece = pieces.offsets[parents] + rank
            first[:, axis], last[:, axis] = pieces.first[piece], pieces.last[piece]
        return SlotBoxes(first, last)

    def child(self, boxes: Ints, slots: Corners) -> Ints:
        """The child of its box that each point lies in, a row of slots for each point."""
        place = np.zeros(boxes.size, np.int64)
        for axis, pieces in enumerate(self.axes):
            place = place * pieces.counts[boxes] + pieces.rank(boxes, slots[:, axis])
        return np.asarray(self.starts[boxes] + place)


def _held(slots: Slots, first: UInts, last: UInts) -> Bools:
    """Which runs of slots hold a position."""
    lows, behind = slots.ends(first, last)
    return lows < behind
