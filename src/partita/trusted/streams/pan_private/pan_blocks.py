"""Stretches of periods in which one look at the memory, with all outputs, gives no event away.

The memory of a block is a row of int64 cells that are overwritten in place. Noise is added to a cell
before any event is, and a cell that has served its purpose is set to zero. Cells hold integers modulo
2^64: a function of the exact ones, so nothing more is known from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.public.streams.terms import LARGEST
from partita.trusted.noise.system.protocol import IntegerArray, Noise

Cells: TypeAlias = NDArray[np.int64]
Variant: TypeAlias = Literal["default", "book"]

CELLS: Final = 64
"""Enough for a block of 2^62 periods."""

_FIRST_BITS: Final = 8
_MORE_BITS: Final = 4
_MOST_BITS: Final = 60


@dataclass(frozen=True, kw_only=True)
class Block(ABC):
    """How `length` periods are counted in given cells; it remembers nothing itself.

    Intervals are those of a binary tree over the periods, without its root: at level j the periods that
    agree in all but their last j bits. In a `live` block there may be a look between any two additions, else
    between any two periods only.
    """

    length: int
    rate: Fraction
    live: bool
    noise: Noise

    @property
    def levels(self) -> int:
        """How many intervals hold a period."""
        return max(1, (self.length - 1).bit_length())

    @property
    @abstractmethod
    def scale(self) -> Fraction:
        """The scale of every noise."""

    @property
    @abstractmethod
    def most(self) -> int:
        """No output has more noises than this."""

    @abstractmethod
    def noises(self, position: int) -> int:
        """How many noises are in the output of a period, on top of the output that the block began with."""

    @abstractmethod
    def begin(self, cells: Cells, position: int, value: int) -> None:
        """Begin a period after an output: noise that its events will need goes into the cells."""

    @abstractmethod
    def add(self, cells: Cells, position: int, x: int) -> None:
        """Count x in the period that was begun."""

    @abstractmethod
    def close(self, cells: Cells, position: int, last: int) -> int:
        """The output after `last`: the period that was begun is closed, and those up to there were empty."""

    def _pour(self, cells: Cells) -> None:
        """Add fresh noise to cells, and leave it nowhere else."""
        noisy = np.asarray(self.noise.add(cells, self.scale))
        cells[:] = _words(noisy)
        noisy.fill(0)


@final
class TreeBlock(Block):
    """Figure 12.1 with fresh noise on every output [DR14].

    Cell j belongs to the open interval of level j: the output before it, a noise, and the events in it so
    far. When the interval ends, this plus a fresh noise is the next output. Only intervals that end in an
    output are kept: left children, and both halves. An interval of one period, which no look can fall into,
    needs the fresh noise only.
    """

    @property
    def scale(self) -> Fraction:
        """An event lies in at most `levels` intervals, and one noise of each hides it."""
        return self.levels / self.rate

    @property
    def most(self) -> int:
        full = 1 << self.levels
        return max(self.noises(full - 2), self.noises(full - 1))

    def noises(self, position: int) -> int:
        closed = position + 1
        if closed >> self.levels:
            return 2 * self._noises_of(self._top)
        return sum(self._noises_of(level) for level in range(self.levels) if closed >> level & 1)

    def begin(self, cells: Cells, position: int, value: int) -> None:
        begun = self.levels if position % (1 << self._top) == 0 else _trailing_zeros(position)
        cells[:begun] = value
        if begun > self._first_noisy:
            self._pour(cells[self._first_noisy : begun])

    def add(self, cells: Cells, position: int, x: int) -> None:
        held = [self._holds(level, position) for level in range(self.levels)]
        np.add(cells[: self.levels], x, out=cells[: self.levels], where=held)

    def close(self, cells: Cells, position: int, last: int) -> int:
        while True:
            level = self._longest(position, last)
            self._pour(cells[level : level + 1])
            value = int(cells[level])
            cells[: level + 1] = 0
            position = _end(level, position) + 1
            if position > last:
                return value
            self.begin(cells, position, value)

    @property
    def _top(self) -> int:
        return self.levels - 1

    @property
    def _first_noisy(self) -> int:
        return 0 if self.live else 1

    def _noises_of(self, level: int) -> int:
        return 1 if level < self._first_noisy else 2

    def _holds(self, level: int, position: int) -> bool:
        """Whether an interval of this level that is kept holds the period."""
        return level == self._top or not position >> level & 1

    def _longest(self, position: int, last: int) -> int:
        """The level of the longest kept interval that holds the period and ends in time."""
        fitting = (j for j in range(self.levels) if self._holds(j, position) and _end(j, position) <= last)
        return max(fitting)


@final
class BookBlock(Block):
    """Figure 12.2 [DR14]: a noisy count, and a noise for each interval, erased when the interval ends.

    Cell 0 is the count, which begins with the last output and a noise; cell 1 + j is the noise of the open
    interval of level j. An output is the sum of all cells.
    """

    @property
    def scale(self) -> Fraction:
        """An event is hidden by a shift of the count and of at most `levels` noises."""
        return (1 + self.levels) / self.rate

    @property
    def most(self) -> int:
        return 1 + self.levels

    def noises(self, position: int) -> int:
        return 1 + self.levels

    def begin(self, cells: Cells, position: int, value: int) -> None:
        if position == 0:
            cells[0] = value
            self._pour(cells[:1])

    def add(self, cells: Cells, position: int, x: int) -> None:
        cells[:1] += x

    def close(self, cells: Cells, position: int, last: int) -> int:
        of_interval = cells[1 : 1 + self.levels]
        begun = sum(_start(level, last) >= position for level in range(self.levels))
        if begun:
            of_interval[:begun] = 0
            self._pour(of_interval[:begun])
        value = int(cells[: 1 + self.levels].sum())
        of_interval[: _trailing_zeros(last + 1) + 1] = 0
        return value


BLOCKS: Final[dict[Variant, type[Block]]] = {"default": TreeBlock, "book": BookBlock}


def block_length(start: int, horizon: int | None) -> int:
    """The length of the block that starts here: up to the horizon, or more periods than there were before."""
    if horizon is not None:
        return max(1, horizon - start)
    bits = _FIRST_BITS
    while start >> bits and bits < _MOST_BITS:
        bits += _MORE_BITS
    return max(1, min(1 << bits, LARGEST - start))


def _words(values: IntegerArray) -> Cells:
    """The values modulo 2^64."""
    if values.dtype == np.int64:
        return values.astype(np.int64, copy=False)
    return (values % 2**64).astype(np.uint64).view(np.int64)


def _trailing_zeros(position: int) -> int:
    return (position & -position).bit_length() - 1


def _start(level: int, position: int) -> int:
    """The first period of the interval of this level that holds the period."""
    return position >> level << level


def _end(level: int, position: int) -> int:
    """The last period of the interval of this level that holds the period."""
    return _start(level, position) + (1 << level) - 1
