"""Slots: where along an axis a tree of boxes may cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from partita.domain.axis import Axis
from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import UInts


class Slots(Protocol):
    """The parts of one axis that a tree never cuts, in order; each holds some positions, or none."""

    @property
    def line(self) -> Axis:
        """A run of slots that is halved again and again, and single ones before and after it."""

    def holding(self, positions: UInts) -> UInts:
        """The slot of each position."""

    def ends(self, first: UInts, last: UInts) -> tuple[UInts, UInts]:
        """The lowest position in slots first, ..., last, and the one behind the highest: equal if none is."""


@final
@dataclass(frozen=True)
class NativeSlots:
    """Every position is a slot of its own; special cells are the single ones."""

    line: Axis

    def holding(self, positions: UInts) -> UInts:
        """The positions themselves."""
        return positions

    def ends(self, first: UInts, last: UInts) -> tuple[UInts, UInts]:
        """The slots themselves."""
        return first, last + np.uint64(1)


@final
@dataclass(frozen=True, eq=False)
class RankSlots:
    """Slot j holds the positions edges[j], ..., edges[j+1]-1; there are a power of two of slots.

    Edges begin with 0, never decrease, and end with the width of the axis. Equal ones enclose nothing.

    >>> slots = RankSlots(np.array([0, 3, 3, 7, 8], np.uint64))
    >>> slots.holding(np.array([0, 3, 7], np.uint64)).tolist(), slots.line.size
    ([0, 2, 3], 4)
    """

    edges: UInts

    @cached_property
    def line(self) -> Axis:
        """All slots, to be halved."""
        return Axis(size=self.edges.size - 1)

    def holding(self, positions: UInts) -> UInts:
        """The last slot that begins at or before each position."""
        return (np.searchsorted(self.edges[:-1], positions, side="right") - 1).astype(np.uint64)

    def ends(self, first: UInts, last: UInts) -> tuple[UInts, UInts]:
        """The edges around the slots."""
        return self.edges[first], self.edges[last + np.uint64(1)]


def native_slots(axes: Sequence[Axis]) -> tuple[Slots, ...]:
    """The positions of every axis."""
    return tuple(NativeSlots(axis) for axis in axes)


def halvings(line: Axis) -> int:
    """How often the run of a line can be halved until its pieces are single slots."""
    return (line.size - 1).bit_length()
