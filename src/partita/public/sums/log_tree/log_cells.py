"""Cells of a line of values that are narrow near the origin and wide far from it: 128 for every octave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Floats, Ints, UInts
from partita.public.boxes.plan.nodes import SignedBox
from partita.public.sums.base.value_line import ValueLine

_MANTISSA_BITS: Final = 7


class LogLaid(NamedTuple):
    """A question laid over the cells: the share of each, its values, and how certain both are.

    `share` of the rows of a cell are counted, between `least` and `most` for certain. Their offsets lie
    between `low` and `high`.
    """

    share: Floats
    least: Floats
    most: Floats
    low: Floats
    high: Floats

    @property
    def middle(self) -> Floats:
        """The offset that stands for all of a cell."""
        return (self.low + self.high) / 2.0

    @property
    def square(self) -> Floats:
        """The squared offset that stands for all of a cell: rows are spread evenly over it."""
        return self.middle**2 + ((self.high - self.low + 1.0) ** 2 - 1.0) / 12.0

    @property
    def spread(self) -> Floats:
        """The variance of an offset inside of its cell."""
        return self.square - self.middle**2


@final
@dataclass(frozen=True)
class LogCells:
    """Runs of positions of a value axis: below, the cells of the line in order, above, invalid, null.

    An offset below 256 has a cell of its own; above, cells hold the offsets that share their first 8 bits.
    """

    line: ValueLine

    @cached_property
    def ends(self) -> UInts:
        """The last position of each cell."""
        line = self.line
        down = [line.down - offset for offset in _starts(line.down)]
        up = [line.down + offset - 1 for offset in _starts(line.up)[1:]]
        ordinary = [cell + 1 for cell in (*reversed(down), *up[1:], line.size - 1)]
        behind = range(line.size + 1, line.size + 4)
        return np.array([0, *dict.fromkeys(ordinary), *behind], np.uint64)

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.ends.size)

    @cached_property
    def starts(self) -> UInts:
        """The first position of each cell."""
        return np.concatenate([np.zeros(1, np.uint64), self.ends[:-1] + np.uint64(1)])

    @property
    def numbers(self) -> Floats:
        """One for each cell that holds numbers, else zero; outside of the bounds are numbers, too."""
        return np.asarray(np.arange(self.size) < self.size - 2, np.float64)

    @cached_property
    def octaves(self) -> Ints:
        """How many bits the largest offset of each cell has."""
        ends = np.abs([self.line.offsets(self.starts), self.line.offsets(self.ends)]).max(axis=0)
        return np.array([offset.bit_length() for offset in ends.tolist()])

    @cached_property
    def sides(self) -> Ints:
        """1 for cells above the origin, -1 for those below, 0 for the origin and for no number."""
        signs = np.sign(self._offsets(self.starts) + self._offsets(self.ends))
        return np.asarray(signs * self.numbers, np.int64)

    def of(self, places: UInts) -> Ints:
        """The cell of each position."""
        return np.asarray(np.searchsorted(self.ends, places))

    def laid(self, boxes: Sequence[SignedBox]) -> LogLaid:
        """Disjoint runs of positions over the cells; of a cell that is cut, the share of its positions."""
        share, least, most = np.zeros((3, self.size))
        low, high = self._offsets(self.starts), self._offsets(self.ends)
        for (first,), (last,), sign in boxes:
            begin, end = np.maximum(self.starts, np.uint64(first)), np.minimum(self.ends, np.uint64(last))
            touched = begin <= end
            inside = np.where(touched, (end - begin).astype(np.float64) + 1.0, 0.0)
            part = inside / ((self.ends - self.starts).astype(np.float64) + 1.0)
            share += sign * part
            least += np.minimum((part >= 1.0) * sign, touched * sign)
            most += np.maximum((part >= 1.0) * sign, touched * sign)
            cut = touched & (part < 1.0)
            low[cut], high[cut] = self._offsets(begin[cut]), self._offsets(end[cut])
        return LogLaid(share, least, most, low, high)

    def _offsets(self, places: UInts) -> Floats:
        return self.line.offsets(places).astype(np.float64)


def _starts(length: int) -> list[int]:
    """The offsets 0, ..., length at which cells begin."""
    found, start = [], 0
    while start <= length:
        found.append(start)
        start += 1 << max(0, start.bit_length() - 1 - _MANTISSA_BITS)
    return found
